"""The index of an informer with compressed objects."""

from __future__ import annotations

import pytest

from aioinformer import KubeObject
from aioinformer._core.cache import compressed_index as compressed_index_module
from aioinformer._core.cache.compressed_index import CompressedIndex
from tests.core.builders import pod
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


def test_an_empty_set_of_values_is_kept_too() -> None:
    function = NodeIndex()
    obj = compress(object_of(pod_bodies()[0]), values={"node": ()})

    assert CompressedIndex("node", function).values(obj) == ()
    assert function.calls == 0


def test_a_compressed_object_without_values_of_the_index_is_read() -> None:
    function = NodeIndex()
    obj = compress(object_of(pod_bodies()[0]), values={"other": ("no",)})

    assert CompressedIndex("node", function).values(obj) == (obj["spec"]["nodeName"],)
    assert function.calls == 1


def test_the_function_receives_the_result_of_the_adapter() -> None:
    index = CompressedIndex("name", lambda name: f"{name}!", lambda obj: obj.name)

    assert index.name == "name"
    assert index.values(pod("a")) == ("a!",)


def test_the_values_found_last_are_taken_once_without_another_call() -> None:
    function, obj = NodeIndex(), pod("a", node="node-1")
    index = CompressedIndex("node", function)
    index.values(obj)

    assert index.take_values(obj) == ("node-1",)
    assert function.calls == 1
    assert index.take_values(obj) == ("node-1",)
    assert function.calls == 2
    assert index.take_values(obj) == ("node-1",)
    assert function.calls == 3, "values that were taken are not kept"


def test_the_values_of_another_version_of_an_object_are_not_taken() -> None:
    function, old, new = NodeIndex(), pod("a", node="node-1"), pod("a", rv="2", node="node-2")
    index = CompressedIndex("node", function)
    index.values(old)

    assert index.take_values(new) == ("node-2",)
    assert index.take_values(old) == ("node-1",)
    assert function.calls == 3


def test_the_values_beside_a_compressed_object_are_taken_again_and_again() -> None:
    function = NodeIndex()
    obj = compress(object_of(pod_bodies()[0]), values={"node": ("kept",)})
    index = CompressedIndex("node", function)

    assert [index.take_values(obj) for _ in "12"] == [("kept",), ("kept",)]
    assert function.calls == 0


def test_the_number_of_kept_values_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compressed_index_module, "MAX_KEPT", 2)
    function, objects = NodeIndex(), [pod(name, node=f"node-{name}") for name in "abc"]
    index = CompressedIndex("node", function)
    for obj in objects:
        index.values(obj)

    assert [index.take_values(obj) for obj in objects] == [("node-a",), ("node-b",), ("node-c",)]
    assert function.calls == 3 + 2, "the third object replaced the values of the first two"
