"""A program's function that replaces or drops objects before anything sees them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from aioinformer._core.codec.shape import Transformer
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.stored import ExcludedObject
from aioinformer.errors import TransformFailed
from tests.core.builders import make_object, pod, pod_body


def failed(made: object, obj: KubeObject) -> str:
    """Return the error text for a transform that returns this."""
    stored = Transformer(lambda _: made)(obj)  # type: ignore[arg-type,return-value] # pyright: ignore[reportArgumentType] # whatever a program returns
    assert isinstance(stored, ExcludedObject)
    assert isinstance(stored.error, TransformFailed)
    return str(stored.error)


def test_the_object_itself_stays_as_it_is() -> None:
    obj = pod("a")

    assert Transformer(lambda obj: obj)(obj) is obj


def test_a_mapping_replaces_the_body() -> None:
    def without_spec(obj: KubeObject) -> Mapping[str, Any]:
        body = obj.to_dict()
        del body["spec"]
        return body

    obj = pod("a", labels={"app": "shop"})
    made = Transformer(without_spec)(obj)

    assert "spec" not in made
    assert made.labels == {"app": "shop"}
    assert (made.key, made.uid, made.resource_version) == (obj.key, obj.uid, "1")
    assert len(made.raw) < len(obj.raw) + len('"kind":"Pod","apiVersion":"v1",')


def test_a_mapping_may_contain_parts_of_the_object() -> None:
    obj = make_object(pod_body("a") | {"status": {"ips": [{"ip": "10.0.0.1"}]}})
    made = Transformer(lambda obj: {"metadata": obj["metadata"], "status": obj["status"]})(obj)

    assert made["status"] == {"ips": [{"ip": "10.0.0.1"}]}


def test_another_cached_object_of_the_same_version_is_another_body() -> None:
    other = make_object(pod_body("a") | {"spec": {}})
    made = Transformer(lambda _: other)(pod("a"))

    assert made["spec"] == {}


def test_a_transform_that_returns_none_drops_the_object() -> None:
    stored = Transformer(lambda _: None)(pod("a"))

    assert isinstance(stored, ExcludedObject)
    assert stored.error is None


@pytest.mark.client_go(119)
@pytest.mark.parametrize(
    "other",
    [
        pod("b"),
        pod("a", uid="another"),
        pod("a", rv="2"),
        pod_body("a", namespace="elsewhere"),
        {"metadata": {"name": "a", "namespace": "web"}},
    ],
)
def test_a_transform_must_keep_name_namespace_uid_and_version(other: object) -> None:
    message = failed(other, pod("a"))

    assert message.startswith("pods web/a at resourceVersion 1: transform= ")
    assert "it must keep name, namespace, uid and resourceVersion: it returned " in message
    assert message.endswith(" for web/a uid=uid-a rv=1")


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (7, "it returned a int, not an object, a mapping or None"),
        ({}, "missing required field `metadata`"),
        ({"metadata": {"name": "a"}, "x": object()}, "a object can't be written as JSON"),
    ],
)
def test_a_result_that_is_no_object_is_rejected(made: object, message: str) -> None:
    assert message in failed(made, pod("a"))


@pytest.mark.parametrize("error", [ValueError("no"), asyncio.CancelledError()])
def test_every_exception_of_a_transform_rejects_the_object(error: BaseException) -> None:
    def clumsy(_: KubeObject) -> None:
        raise error

    stored = Transformer(clumsy)(pod("a"))

    assert isinstance(stored, ExcludedObject)
    assert isinstance(stored.error, TransformFailed)
    assert stored.error.__cause__ is error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit()])
def test_an_interrupt_in_a_transform_is_raised(error: BaseException) -> None:
    def quit_(_: KubeObject) -> None:
        raise error

    with pytest.raises(type(error)):
        Transformer(quit_)(pod("a"))
