"""The index of an informer with compressed objects."""

from __future__ import annotations

from aioinformer import KubeObject
from aioinformer._core.cache.compressed_index import CompressedIndex
from tests.core.compression.rested import compress, object_of, pod_bodies


class NodeIndex:
    """An index function that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, obj: KubeObject) -> str:
        self.calls += 1
        return str(obj["spec"]["nodeName"])


def test_an_object_that_is_not_compressed_is_read() -> None:
    function, obj = NodeIndex(), object_of(pod_bodies()[0])

    assert CompressedIndex("node", function).values(obj) == (obj["spec"]["nodeName"],)
    assert function.calls == 1


def test_a_compressed_object_has_its_values_beside_it() -> None:
    function = NodeIndex()
    obj = compress(object_of(pod_bodies()[0]), values={"node": ("kept",), "other": ("no",)})

    assert CompressedIndex("node", function).values(obj) == ("kept",)
    assert function.calls == 0


def test_no_values_are_values_too() -> None:
    function = NodeIndex()
    obj = compress(object_of(pod_bodies()[0]), values={"node": ()})

    assert CompressedIndex("node", function).values(obj) == ()
    assert function.calls == 0


def test_a_compressed_object_without_values_of_the_index_is_read() -> None:
    function = NodeIndex()
    obj = compress(object_of(pod_bodies()[0]), values={"other": ("no",)})

    assert CompressedIndex("node", function).values(obj) == (obj["spec"]["nodeName"],)
    assert function.calls == 1
