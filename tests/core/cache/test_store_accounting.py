"""The bytes of a cache state, and its parts."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from aioinformer._core.cache.store import CacheState, Index
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer.errors import IndexFailed
from tests.core.builders import pod


def by_node(obj: KubeObject) -> Iterable[str]:
    return (obj["spec"]["nodeName"],)


def make_state() -> CacheState:
    return CacheState(indexes={"node": Index("node", by_node)})


def test_the_bytes_of_json_are_those_of_the_cached_versions() -> None:
    state, first, second, other = make_state(), pod("a"), pod("a", rv="2222"), pod("b")
    state.put(first, None)
    assert state.json_bytes == len(first.raw)
    state.put(other, None)
    assert state.json_bytes == len(first.raw) + len(other.raw)
    state.put(second, first)
    assert state.json_bytes == len(second.raw) + len(other.raw)
    state.remove(other)
    assert state.json_bytes == len(second.raw)
    state.remove(second)
    assert state.json_bytes == 0


def only_a(obj: KubeObject) -> str:
    if obj.name != "a":
        raise ValueError("another name")
    return obj.name


def test_an_object_that_an_index_function_rejects_adds_no_bytes() -> None:
    state, a = CacheState(indexes={"name": Index("name", only_a)}), pod("a")
    state.put(a, None)
    with pytest.raises(IndexFailed, match="another name"):
        state.put(pod("b"), None)
    assert (state.json_bytes, list(state.objects)) == (len(a.raw), [a.key])


def test_indexes_and_those_under_construction_belong_to_the_overhead() -> None:
    plain, indexed, building = CacheState(), make_state(), CacheState()
    building.building = (Index("node", by_node),)
    for number in range(100):
        obj = pod(f"p{number}", node=f"n{number}")
        for state in (plain, indexed, building):
            state.put(obj, None)
    assert 0 < plain.overhead_bytes < building.overhead_bytes == indexed.overhead_bytes


def test_a_state_without_namespaces_contains_every_key() -> None:
    state, a, b = make_state(), pod("a"), pod("b", namespace="shop")
    state.put(a, None)
    state.put(b, None)
    assert state.part_of(a.key) is state
    assert state.candidates("web") == [a, b]
    assert state.candidates(None) == [a, b]
    copied = state.copy_objects()
    assert copied == {a.key: a, b.key: b}
    state.remove(a)
    assert len(copied) == 2


def test_an_index_passes_the_result_of_its_adapter_to_its_function() -> None:
    index = Index("name", lambda found: (found,), adapter=lambda obj: obj.name.upper())
    assert index.values(pod("a")) == ("A",)
    copied = index.empty_copy()
    index.move(pod("a"), (), ("A",))
    assert (copied.name, copied.values(pod("b")), copied.buckets) == ("name", ("B",), {})
