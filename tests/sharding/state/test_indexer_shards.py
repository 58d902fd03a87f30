"""The cache keeps the objects of some shards, and delivers those of new shards as initial ones."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aioinformer._core.cache.delta_fifo import DeltaFIFO
from aioinformer._core.cache.indexer import Indexer, StagedReplacement
from aioinformer._core.objects.deltas import Delta, Replaced
from aioinformer._core.objects.kube_object import Added, Deleted, Event, KubeObject, ObjectKey
from aioinformer.sharding.state.ranges import HashRanges, ShardKey
from tests.core.builders import PODS

SHARDS = st.frozensets(st.integers(0, 7))
KEYS = st.sampled_from(["uid", "namespace"])
OBJECTS = st.dictionaries(
    st.tuples(st.sampled_from("abc"), st.integers(0, 20)), st.integers(0, 10**6), max_size=25
)


def pods(chosen: dict[tuple[str, int], int]) -> list[KubeObject]:
    return [
        KubeObject(ObjectKey(namespace, f"p{name}"), f"uid-{uid}", "5", b'{"metadata":{}}', PODS)
        for (namespace, name), uid in chosen.items()
    ]


def commit(replacement: StagedReplacement, steps: int) -> list[Event]:
    while not replacement.step(steps):
        pass
    events = [*replacement.commit()]
    while not replacement.step(steps):
        pass
    return events


def popped(fifo: DeltaFIFO) -> Replaced:
    entry = fifo.pop()
    assert isinstance(entry, Replaced)
    return entry


@given(OBJECTS, SHARDS, KEYS, st.integers(1, 9))
def test_the_objects_of_other_shards_are_removed(
    chosen: dict[tuple[str, int], int], shards: frozenset[int], by: ShardKey, steps: int
) -> None:
    ranges = HashRanges.of(shards, 8, by)
    fifo, indexer = DeltaFIFO(), Indexer({"namespace": lambda obj: [obj.key.namespace]})
    objects = pods(chosen)
    fifo.replace(objects, "7")
    fifo.put(Replaced((), "", "scope_removed", kept=ranges))
    commit(indexer.replace(popped(fifo)), steps)
    events = commit(indexer.replace(popped(fifo)), steps)
    kept = {obj.key: obj for obj in objects if ranges.has(obj.uid, obj.key.namespace)}
    assert indexer.state.objects == kept
    assert (indexer.state.resource_version, indexer.state.synced) == ("7", True)
    assert {event.key for event in events} == {obj.key for obj in objects} - kept.keys()
    assert all(isinstance(each, Deleted) and each.reason == "scope_removed" for each in events)
    buckets = indexer.state.indexes["namespace"].buckets
    assert {key for bucket in buckets.values() for key in bucket} == kept.keys()


@given(OBJECTS, SHARDS, KEYS)
def test_the_objects_of_gained_shards_are_initial_ones(
    chosen: dict[tuple[str, int], int], shards: frozenset[int], by: ShardKey
) -> None:
    gained = HashRanges.of(shards, 8, by)
    indexer, objects = Indexer(), pods(chosen)
    commit(indexer.replace(Replaced((), "7")), 8)
    events = commit(indexer.replace(Replaced(objects, "8", initial=gained)), 8)
    found = {event.key: event.initial for event in events if isinstance(event, Added)}
    assert found == {obj.key: gained.has(obj.uid, obj.key.namespace) for obj in objects}


def test_a_cache_without_a_first_state_is_not_synced_by_a_removal() -> None:
    indexer = Indexer()
    commit(indexer.replace(Replaced((), "", kept=HashRanges.of([1], 8, "uid"))), 8)
    assert not indexer.state.synced


def test_the_rejection_of_an_object_is_removed_with_its_shard() -> None:
    def fail_for_some(obj: KubeObject) -> list[str]:
        if obj.resource_version == "9":
            raise ValueError("no")
        return []

    indexer = Indexer({"broken": fail_for_some})
    objects = pods({("a", 1): 1, ("a", 2): 2})
    commit(indexer.replace(Replaced(objects, "7")), 8)
    newer = [KubeObject(obj.key, obj.uid, "9", b'{"metadata":{"x":1}}', PODS) for obj in objects]
    commit(indexer.replace(Replaced(newer, "9")), 8)
    assert len(indexer.rejected) == 2
    none = HashRanges("uid", ())
    commit(indexer.replace(Replaced((), "", "scope_removed", kept=none)), 8)
    assert indexer.rejected == {}
    assert indexer.state.objects == {}


@given(OBJECTS, SHARDS, KEYS)
def test_the_rejection_of_an_object_that_was_never_cached_is_removed_with_its_shard(
    chosen: dict[tuple[str, int], int], shards: frozenset[int], by: ShardKey
) -> None:
    def fail(_: KubeObject) -> list[str]:
        raise ValueError("no")

    ranges, indexer, objects = HashRanges.of(shards, 8, by), Indexer({"broken": fail}), pods(chosen)
    commit(indexer.replace(Replaced(objects, "7")), 8)
    assert indexer.rejected.keys() == {obj.key for obj in objects}
    commit(indexer.replace(Replaced((), "", "scope_removed", kept=ranges)), 8)
    kept = {obj.key for obj in objects if ranges.has(obj.uid, obj.key.namespace)}
    assert indexer.rejected.keys() == kept


@given(OBJECTS, OBJECTS, SHARDS, st.integers(1, 7))
def test_the_state_of_gained_shards_leaves_the_other_objects_as_they_are(
    before: dict[tuple[str, int], int],
    after: dict[tuple[str, int], int],
    shards: frozenset[int],
    steps: int,
) -> None:
    gained = HashRanges.of(shards, 8, "uid")
    fifo, indexer = DeltaFIFO(), Indexer({"namespace": lambda obj: [obj.key.namespace]})
    kept = [obj for obj in pods(before) if not gained.has(obj.uid, obj.key.namespace)]
    added = [obj for obj in pods(after) if gained.has(obj.uid, obj.key.namespace)]
    fifo.replace(kept, "7")
    fifo.put(Replaced(added, "9", initial=gained, extends=True))
    commit(indexer.replace(popped(fifo)), steps)
    events = commit(indexer.replace(popped(fifo)), steps)
    expected = {obj.key: obj for obj in kept} | {obj.key: obj for obj in added}
    assert indexer.state.objects == expected
    assert (indexer.state.resource_version, indexer.state.synced) == ("7", True)
    assert {event.key for event in events} == {obj.key for obj in added}
    new = {obj.key for obj in added} - {obj.key for obj in kept}
    found = [event for event in events if isinstance(event, Added) and event.key in new]
    assert {event.key for event in found} == new
    assert all(event.initial for event in found)
    buckets = indexer.state.indexes["namespace"].buckets
    assert {key for bucket in buckets.values() for key in bucket} == expected.keys()


def test_changes_of_an_older_object_with_the_name_of_a_gained_object_are_dropped() -> None:
    key = ObjectKey("a", "x")
    old, new = (
        KubeObject(key, uid, version, b"{}", PODS) for uid, version in (("o", "5"), ("n", "8"))
    )
    indexer, events = Indexer(), list[Event]()
    commit(indexer.replace(Replaced([old], "5")), 8)
    every = HashRanges.of([0], 1, "uid")
    commit(indexer.replace(Replaced([new], "9", initial=every, extends=True)), 8)
    changed = KubeObject(key, "o", "6", b"{}", PODS)
    indexer.apply(Delta("Updated", changed), events)
    indexer.apply(Delta("Deleted", KubeObject(key, "o", "7", b"{}", PODS)), events)
    assert events == []
    assert indexer.state.objects == {key: new}
    assert indexer.state.resource_version == "7"
    indexer.apply(Delta("Deleted", KubeObject(key, "n", "10", b"{}", PODS)), events)
    assert indexer.state.objects == {}


def test_a_successor_from_before_the_state_of_a_gained_shard_replaces_an_older_object() -> None:
    key = ObjectKey("a", "x")
    old, new = (
        KubeObject(key, uid, version, b"{}", PODS) for uid, version in (("o", "5"), ("n", "7"))
    )
    indexer, events = Indexer(), list[Event]()
    commit(indexer.replace(Replaced([old], "5")), 8)
    other = HashRanges("uid", ())
    commit(indexer.replace(Replaced([], "9", initial=other, extends=True)), 8)
    indexer.apply(Delta("Added", new), events)
    assert [type(event) for event in events] == [Deleted, Added]
    assert indexer.state.objects == {key: new}
