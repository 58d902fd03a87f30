"""An informer on a group reads the shards that its member holds, and they come and go."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer import Added, Deleted, Event, SharedInformer, SharedInformerFactory, labelled
from aioinformer._core.sharding.ranges import HashRanges
from aioinformer.errors import UsageError
from aioinformer.testing import Cluster, ClusterSource, Features
from tests.runtime.informers import FAST_BACKOFF
from tests.runtime.scopes.memory_assignment import MemoryAssignment
from tests.runtime.scripted_source import wait_until, yield_to_loop

SERVERS = pytest.mark.parametrize("sharding", [True, False], ids=["selects", "ignores"])
READS = pytest.mark.parametrize("watch_list", [True, False], ids=["watchlist", "list"])


def cluster_with_pods(count: int, *, sharding: bool = False) -> Cluster:
    cluster = Cluster(features=Features(sharding=sharding))
    for number in range(count):
        put(cluster, number)
    return cluster


def put(cluster: Cluster, number: int) -> None:
    cluster.create("pods", {"metadata": {"name": f"p{number}"}}, namespace="web")


def names(informer: SharedInformer[Any]) -> set[str]:
    return {obj.name for obj in informer.lister.list()}


def expected(cluster: Cluster, *shards: int, count: int = 8) -> set[str]:
    ranges = HashRanges.of(shards, count, "uid")
    pods = [each["metadata"] for each in cluster.objects("pods")]
    return {each["name"] for each in pods if ranges.has(each["uid"], "web")}


def held(informer: SharedInformer[Any]) -> list[int]:
    return list(informer.health.shards)


class Recorder:
    """A handler that keeps the events of each object, and checks their order."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.present: set[str] = set()

    async def __call__(self, event: Event) -> None:
        name = event.obj.name
        if isinstance(event, Added):
            assert name not in self.present
            self.present.add(name)
            self.events.append(f"added {name} initial={event.initial}")
        elif isinstance(event, Deleted):
            assert name in self.present
            self.present.remove(name)
            self.events.append(f"deleted {name} {event.reason}")
        else:
            assert name in self.present
            self.events.append(f"updated {name}")


@SERVERS
@READS
async def test_shards_that_move_are_delivered_as_initial_and_removed_objects(
    sharding: bool, watch_list: bool
) -> None:
    cluster = cluster_with_pods(60, sharding=sharding)
    group = MemoryAssignment(assigned=[0, 1, 5])
    source = ClusterSource(cluster)
    async with SharedInformerFactory(
        source, watch_list=watch_list, page_size=5, backoff=FAST_BACKOFF
    ) as informers:
        pods = informers.informer("pods", shard=group)
        recorder = Recorder()
        pods.add_handler(recorder, overflow="block")
        await informers.wait_synced(10)
        await wait_until(lambda: recorder.present == expected(cluster, 0, 1, 5))
        assert names(pods) == expected(cluster, 0, 1, 5)
        assert pods.name == "pods where shards of g"
        assert held(pods) == [0, 1, 5]
        assert group.working == {0, 1, 5}

        recorder.events.clear()
        group.assign([0, 5])
        await wait_until(lambda: recorder.present == expected(cluster, 0, 5))
        assert sorted(recorder.events) == sorted(
            f"deleted {name} scope_removed" for name in expected(cluster, 1)
        )
        assert group.working == {0, 5}

        recorder.events.clear()
        group.assign([0, 5, 6, 7])
        await wait_until(lambda: recorder.present == expected(cluster, 0, 5, 6, 7))
        assert sorted(recorder.events) == sorted(
            f"added {name} initial=True" for name in expected(cluster, 6, 7)
        )

        recorder.events.clear()
        group.assign([2])  # everything moves at once
        await wait_until(lambda: recorder.present == expected(cluster, 2))
        assert held(pods) == [2]
        for number in range(60, 90):
            put(cluster, number)
        await wait_until(lambda: recorder.present == expected(cluster, 2))
        assert names(pods) == expected(cluster, 2)
        assert await pods.verify(timeout=10)


async def test_new_objects_of_a_held_shard_are_no_initial_ones() -> None:
    cluster = cluster_with_pods(5)
    group = MemoryAssignment(assigned=range(8))
    async with SharedInformerFactory(ClusterSource(cluster)) as informers:
        pods = informers.informer("pods", shard=group)
        recorder = Recorder()
        pods.add_handler(recorder)
        await informers.wait_synced(10)
        recorder.events.clear()
        put(cluster, 5)
        await wait_until(lambda: recorder.events == ["added p5 initial=False"])


async def test_a_member_without_shards_is_synced_and_sends_no_request() -> None:
    cluster = cluster_with_pods(20)
    group = MemoryAssignment()
    source = ClusterSource(cluster)
    async with SharedInformerFactory(source) as informers:
        pods = informers.informer("pods", shard=group)
        await informers.wait_synced(10)
        await yield_to_loop()
        assert names(pods) == set()
        assert pods.health.ok
        assert pods.health.shards == ()
        group.assign([3])
        await wait_until(lambda: names(pods) == expected(cluster, 3))
        group.assign([])
        await wait_until(lambda: names(pods) == set())
        put(cluster, 20)
        await yield_to_loop()
        assert names(pods) == set()
        group.assign(range(8))
        await wait_until(lambda: len(names(pods)) == 21)


async def test_one_watch_asks_for_adjacent_shards_in_one_range() -> None:
    group = MemoryAssignment(assigned=[1, 2, 3, 6])
    async with SharedInformerFactory(ClusterSource(cluster_with_pods(8))) as informers:
        pods = informers.informer("pods", shard=group)
        await informers.wait_synced(10)
        ranges = HashRanges.of([1, 2, 3, 6], 8, "uid")
        assert ranges.count == 2
        assert ranges.selector.count("shardRange") == 2
        await wait_until(lambda: pods.health.state == "watching")


async def test_a_move_that_is_taken_back_meanwhile_leaves_the_right_objects() -> None:
    cluster = cluster_with_pods(40)
    group = MemoryAssignment(assigned=range(8))
    async with SharedInformerFactory(ClusterSource(cluster)) as informers:
        pods = informers.informer("pods", shard=group)
        recorder = Recorder()
        pods.add_handler(recorder)
        await informers.wait_synced(10)
        for turns in range(12):
            group.assign([0, 1])
            await yield_to_loop(turns)
            group.assign([1, 2, 3])
            await yield_to_loop(turns)
        await wait_until(lambda: names(pods) == expected(cluster, 1, 2, 3))
        await wait_until(lambda: recorder.present == expected(cluster, 1, 2, 3))
        await wait_until(lambda: group.working == {1, 2, 3})


@READS
async def test_a_shard_that_moves_away_during_a_list_leaves_nothing_behind(
    watch_list: bool,
) -> None:
    cluster = cluster_with_pods(60)
    group = MemoryAssignment(assigned=range(8))
    source = ClusterSource(cluster)
    async with SharedInformerFactory(source, watch_list=watch_list) as informers:
        with source.faults.stall(verb="watch_list" if watch_list else "list", after=9000):
            pods = informers.informer("pods", shard=group)
            await wait_until(lambda: pods.health.state == "listing")
            await yield_to_loop(100)
            assert not pods.synced
            group.assign([0, 1])
            await wait_until(lambda: group.working == {0, 1})
        await informers.wait_synced(10)
        await wait_until(lambda: names(pods) == expected(cluster, 0, 1))
        await yield_to_loop(100)
        assert names(pods) == expected(cluster, 0, 1)
        assert pods.health.ok


@READS
async def test_a_member_that_loses_all_shards_before_its_first_state_is_synced(
    watch_list: bool,
) -> None:
    cluster = cluster_with_pods(60)
    group = MemoryAssignment(assigned=range(8))
    source = ClusterSource(cluster)
    async with SharedInformerFactory(source, watch_list=watch_list) as informers:
        with source.faults.stall(verb="watch_list" if watch_list else "list", after=9000):
            pods = informers.informer("pods", shard=group)
            await wait_until(lambda: pods.health.state == "listing")
            group.assign([])
            await wait_until(lambda: not group.working)
        await informers.wait_synced(10)
        assert names(pods) == set()
        group.assign([3])
        await wait_until(lambda: names(pods) == expected(cluster, 3))


async def test_the_end_of_the_informer_ends_its_work_on_all_shards() -> None:
    group = MemoryAssignment(assigned=[1])
    async with SharedInformerFactory(ClusterSource(cluster_with_pods(8))) as informers:
        informers.informer("pods", shard=group)
        await informers.wait_synced(10)
        assert group.working == {1}
    assert not group.working
    assert [each.closed for each in group.subscriptions] == [True]


async def test_a_group_and_several_namespaces_exclude_each_other() -> None:
    informers = SharedInformerFactory(ClusterSource(Cluster()))
    group = MemoryAssignment()
    for namespaces in (["a", "b"], labelled("team=shop")):
        with pytest.raises(UsageError, match="can't read the shards of a group and several"):
            informers.informer("pods", shard=group, namespaces=namespaces)
    with pytest.raises(UsageError, match="pass a group that splits by uid"):
        informers.informer("nodes", shard=MemoryAssignment(by="namespace"))
