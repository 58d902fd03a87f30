"""A cache whose objects are kept in segments, since a list has brought many."""

from __future__ import annotations

import sys
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioinformer import Delta, Event, KubeObject
from aioinformer._core.cache import store
from aioinformer._core.cache.indexer import Indexer
from aioinformer._core.cache.lister import Lister
from aioinformer._core.cache.memory import estimate_overhead
from aioinformer._core.cache.partitions import PartitionedIndexer
from aioinformer._core.cache.verification import Comparison
from aioinformer._core.objects.deltas import Replaced
from aioinformer._core.segmented_dict import SegmentedDict
from aioinformer._core.sharding.ranges import HashRanges
from tests.core import strategies
from tests.core.builders import PODS, key, pod

CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["write", "delete", "relist", "retain"]),
        strategies.few_names,
        st.sets(strategies.few_names),
    ),
    max_size=12,
)
Change = tuple[Literal["write", "delete", "relist", "retain"], str, set[str]]


def node_of(obj: KubeObject) -> str:
    node: str = obj["spec"]["nodeName"]
    return node


def replace(cache: Indexer | PartitionedIndexer, replaced: Replaced) -> list[Event]:
    replacement = cache.replace(replaced)
    while not replacement.step(1):
        pass
    events = [*replacement.commit()]
    while not replacement.step(1):
        pass
    return events


def kind(indexer: Indexer) -> type[object]:
    return type(indexer.state.objects)


def change(indexer: Indexer, number: int, made: Change) -> list[Event]:
    """Make a change; return its events, in an order that does not depend on the cache's."""
    kind, name, names = made
    events: list[Event] = []
    version = str(number)
    match kind:
        case "write":
            indexer.apply(Delta("Updated", pod(name, rv=version, node=f"n{len(names)}")), events)
        case "delete":
            indexer.apply(Delta("Deleted", pod(name, rv=version)), events)
        case "relist":
            objects = [pod(each, rv=version, node=name) for each in sorted(names)]
            events = replace(indexer, Replaced(objects, version))
        case "retain":
            half = HashRanges.of([0], 2, "uid")
            events = replace(indexer, Replaced((), "", "scope_removed", retained=half))
    return sorted(events, key=lambda event: (type(event).__name__, event.obj.key))


@given(CHANGES)
@settings(deadline=None)
def test_events_and_reads_are_those_of_any_other_cache(changes: list[Change]) -> None:
    plain, segmented = Indexer({"node": node_of}), Indexer({"node": node_of})
    for number, made in enumerate(changes, 1):
        expected = change(plain, number, made)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store, "SEGMENTED_SIZE", 0)
            found = change(segmented, number, made)

        assert found == expected
        assert dict(segmented.state.objects) == dict(plain.state.objects)
        assert segmented.state.json_bytes == plain.state.json_bytes
        buckets = [{**each.state.indexes["node"].buckets} for each in (segmented, plain)]
        assert buckets[0] == buckets[1]


def test_a_list_of_many_objects_is_kept_in_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "SEGMENTED_SIZE", 3)
    indexer, objects = Indexer(), [pod(name, rv="1") for name in "abc"]
    replace(indexer, Replaced(objects[:2], "1"))
    assert kind(indexer) is dict
    replace(indexer, Replaced(objects, "2"))
    assert kind(indexer) is SegmentedDict
    replace(indexer, Replaced((), "", retained=HashRanges.of(range(8), 8, "uid")))
    assert kind(indexer) is SegmentedDict, "the objects that stay count"
    lister = Lister(indexer, PODS)

    assert sorted(obj.name for obj in lister) == ["a", "b", "c"]
    assert (lister.get("a", namespace="web"), len(lister)) == (objects[0], 3)
    assert sorted(lister.keys()) == [key(name) for name in "abc"]
    assert len(lister.list(namespace="web")) == 3
    assert isinstance(indexer.state.copy_objects(), SegmentedDict)
    assert indexer.state.overhead_bytes == estimate_overhead(indexer.state.objects) > 300
    comparison = Comparison(indexer.state.objects.copy(), "2")
    comparison.add_server_object(pod("b", rv="1"))
    while not comparison.step(1):
        pass
    assert {*comparison.close().differences} == {key("a"), key("c")}
    replace(indexer, Replaced(objects[:2], "3"))
    assert kind(indexer) is dict


def test_a_namespace_of_many_objects_is_kept_in_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "SEGMENTED_SIZE", 2)
    cache = PartitionedIndexer()
    objects = {name: [pod(each, namespace=name) for each in "xyz"[:count]] for name, count in
               {"large": 3, "small": 1}.items()}  # fmt: skip
    for name, found in objects.items():
        cache.add_scope(name)
        replace(cache, Replaced(found, "1", scope=name))
    state = cache.state

    assert {type(part.state.objects) for part in state.parts.values()} == {dict, SegmentedDict}
    assert state.copy_objects() == {obj.key: obj for each in objects.values() for obj in each}
    assert sorted(obj.key for obj in state.objects.values()) == sorted(state.objects)
    assert len(state.candidates("large")) == 3


def test_a_step_enlarges_few_of_the_buckets_that_are_of_one_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """20 namespaces of 43,690 pods take 2 ms each to grow, and are due one pod after the other."""
    monkeypatch.setattr(store, "SEGMENTED_SIZE", 1000)
    indexer = Indexer({"namespace": lambda obj: obj.key.namespace})
    objects = [pod(str(number), namespace=f"n{number % 20}") for number in range(20 * 700)]
    replacement = indexer.replace(Replaced(objects, "1"))
    buckets = indexer.states[-1].indexes["namespace"].buckets
    most, sizes = 0, dict[str, int]()
    while not replacement.step(64):
        before, sizes = sizes, {name: sys.getsizeof(each) for name, each in buckets.items()}
        grown = [name for name, size in sizes.items() if before.get(name) != size]
        most = max(most, len(grown))

    assert len(buckets) == 20
    assert 0 < most <= 5
