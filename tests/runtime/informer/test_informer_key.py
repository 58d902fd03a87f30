"""The key under which requests share one informer."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from aioinformer import Resource
from aioinformer._runtime.informer.informer_key import InformerKey
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
def test_a_resource_is_the_same_however_it_was_found() -> None:
    by_hand = Resource("", "v1", "pods", "pod", namespaced=False)
    discovered = Resource("example.com", "v1", "widgets", "Widget", short_names=("wd",))

    assert of(by_hand, namespace="web") == of("pods", namespace="web")
    assert of(discovered) == of(WIDGETS)
    assert of(WIDGETS) != of(Resource("example.com", "v2", "widgets", "Widget"))


def test_a_selector_is_the_same_however_it_is_written() -> None:
    assert of(labels="a=1, b=2") == of(labels={"a": "1", "b": "2"})


def test_a_namespace_means_nothing_to_what_is_in_none() -> None:
    assert of("nodes", namespace="web") == of("nodes")


def test_an_empty_namespace_is_all_of_them() -> None:
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
def test_its_label_in_metrics_never_names_an_object(
    identity: InformerKey, name: str, label: str
) -> None:
    assert str(identity) == name
    assert identity.label == label


def test_what_is_wrong_is_said_at_once() -> None:
    with pytest.raises(UnknownResource):
        of("gadgets")
    with pytest.raises(InvalidSelector):
        of(labels="a in (")


async def test_a_forgotten_await_is_named() -> None:
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
