"""The comparison of versions of an object."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from msgspec import Struct

from aioinformer._core.cache.comparison import is_same_content
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.stored import ExcludedObject, ModelObject
from tests.core.builders import PODS, key, make_object, pod, pod_body, undecodable_pod
from tests.core.models import Metadata, Pod, Spec


def held(node: str) -> ModelObject:
    model = Pod(Metadata("a"), Spec(node))
    return ModelObject(key("a"), b"", PODS, stored_uid="uid-a", stored_version="1", model=model)


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (pod("a"), True),
        (make_object(pod_body("a") | {"kind": "Pod", "apiVersion": "v1"}), True),
        (pod("a", node="node-2"), False),
        (pod("a", rv="2"), False),
        (pod("a", uid="another"), False),
        (ExcludedObject.of(pod("a")), False),
    ],
)
def test_objects_are_the_same_in_version_and_content(new: KubeObject, expected: bool) -> None:
    assert is_same_content(pod("a"), new) is expected


def test_models_are_compared_with_each_other() -> None:
    assert is_same_content(held("node-1"), held("node-1"))
    assert not is_same_content(held("node-1"), held("node-2"))


@dataclass(eq=False)
class ByIdentity:
    """A model whose instances are never equal."""

    node: str


def test_models_without_a_comparison_are_compared_by_their_json() -> None:
    one, same, other = (
        ModelObject(
            key("a"), b"", PODS, stored_uid="uid-a", stored_version="1", model=ByIdentity(node)
        )
        for node in ("node-1", "node-1", "node-2")
    )

    assert is_same_content(one, same)
    assert not is_same_content(one, other)


class Touchy(Struct):
    """A model that can't be compared."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("not comparable")


def test_models_that_can_not_be_compared_are_taken_to_differ() -> None:
    one, two = (
        ModelObject(key("a"), b"", PODS, stored_uid="uid-a", stored_version="1", model=Touchy())
        for _ in "12"
    )

    assert not is_same_content(one, two)


def test_what_can_not_be_opened_is_compared_by_its_bytes() -> None:
    assert is_same_content(undecodable_pod(), undecodable_pod())
