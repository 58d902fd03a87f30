"""The key under which requests share one informer."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from aioinformer import Resource
from aioinformer._informers.informer_key import InformerKey
from aioinformer.errors import InvalidSelector, UnknownResource, UsageError

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")


def of(
    resource: str | Resource = "pods",
    *,
    namespace: str | None = None,
    labels: str | Mapping[str, str] = "",
    fields: str | Mapping[str, str] = "",
) -> InformerKey:
    return InformerKey.of(
        resource, namespace=namespace, labels=labels, fields=fields, managed_fields=False
    )


def test_a_resource_is_the_same_under_all_of_its_names() -> None:
    assert of("pods") == of("po") == of("Pod") == of("pod")


@pytest.mark.client_go(26, 134)
def test_a_resource_has_the_same_key_whether_discovered_or_written_by_hand() -> None:
    by_hand = Resource("", "v1", "pods", "pod", namespaced=False)
    discovered = Resource("example.com", "v1", "widgets", "Widget", short_names=("wd",))

    assert of(by_hand, namespace="web") == of("pods", namespace="web")
    assert of(discovered) == of(WIDGETS)
    assert of(WIDGETS) != of(Resource("example.com", "v2", "widgets", "Widget"))


def test_two_spellings_of_a_selector_have_the_same_key() -> None:
    assert of(labels="a=1, b=2") == of(labels={"a": "1", "b": "2"})


def test_a_namespace_is_ignored_for_a_cluster_scoped_resource() -> None:
    assert of("nodes", namespace="web") == of("nodes")


def test_an_empty_namespace_means_all_namespaces() -> None:
    assert of(namespace="") == of(namespace=None)


@pytest.mark.client_go(127)
@pytest.mark.parametrize(
    ("identity", "name", "label"),
    [
        (of(), "pods", "pods"),
        (of(namespace="web"), "pods in web", "pods in web"),
        (
            of(namespace="web", labels="app=shop"),
            "pods in web where app=shop",
            "pods in web (selected)",
        ),
        (
            of(fields="metadata.name=web-0"),
            "pods where metadata.name=web-0",
            "pods (selected)",
        ),
    ],
    ids=str,
)
def test_the_metrics_label_of_an_informer_never_contains_an_object_name(
    identity: InformerKey, name: str, label: str
) -> None:
    assert str(identity) == name
    assert identity.label == label


def test_a_wrong_resource_or_selector_is_an_error_at_once() -> None:
    with pytest.raises(UnknownResource):
        of("gadgets")
    with pytest.raises(InvalidSelector):
        of(labels="a in (")


async def test_the_error_for_a_missing_await_contains_the_correct_call() -> None:
    async def resource() -> Resource:
        return WIDGETS

    with pytest.raises(UsageError, match=r"await client\.resource"):
        of(resource())  # type: ignore[arg-type]  # the beginner's mistake


def test_a_list_as_namespace_is_rejected_with_the_right_option() -> None:
    with pytest.raises(TypeError, match=r"not \['web', 'shop'\]; .*pass namespaces=\[\.\.\.\]"):
        of(namespace=["web", "shop"])  # type: ignore[arg-type]


def test_informers_of_two_versions_have_different_names() -> None:
    beta = Resource("example.com", "v1beta1", "widgets", "Widget")
    scaler = Resource("autoscaling", "v1", "horizontalpodautoscalers", "HorizontalPodAutoscaler")

    assert str(of(WIDGETS, namespace="web")) == "widgets.example.com in web"
    assert str(of(beta, namespace="web")) == "widgets.v1beta1.example.com in web"
    assert of(beta).label == "widgets.v1beta1.example.com"
    assert str(of("hpa")) == "horizontalpodautoscalers.autoscaling"  # v2
    assert str(of(scaler)) == "horizontalpodautoscalers.v1.autoscaling"
    assert str(of(Resource("", "v2", "pods", "Pod"))) == "pods.v2"
