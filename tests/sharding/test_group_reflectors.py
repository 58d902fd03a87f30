"""An informer on a group reads the shards that its member holds, and they come and go."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from aioinformer import (
    Added,
    Deleted,
    Event,
    KubeObject,
    Metrics,
    Problem,
    SharedInformer,
    SharedInformerFactory,
)
from aioinformer.errors import UsageError
from aioinformer.sharding.state.ranges import HashRanges
from aioinformer.testing import Cluster, ClusterSource, Features
from aioinformer.testing.faults.faults import RequestVerb
from aioinformer.testing.simulation import run
from tests.runtime.informers import FAST_BACKOFF
from tests.runtime.scripted_source import wait_until, yield_to_loop
from tests.sharding.memory_assignment import MemoryAssignment

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


async def test_new_objects_of_a_held_shard_are_not_initial() -> None:
    cluster = cluster_with_pods(5)
    group = MemoryAssignment(assigned=range(8))
    async with SharedInformerFactory(ClusterSource(cluster)) as informers:
        pods = informers.informer("pods", shard=group)
        recorder = Recorder()
        registration = pods.add_handler(recorder)
        await registration.wait_synced(30)
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


async def test_a_reverted_move_of_shards_leaves_the_correct_objects() -> None:
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
async def test_a_shard_that_moves_away_during_a_list_leaves_no_objects(
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
async def test_a_member_that_loses_all_shards_before_its_initial_list_is_synced(
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


async def test_a_group_by_namespace_rejects_a_resource_without_namespaces() -> None:
    informers = SharedInformerFactory(ClusterSource(Cluster()))
    with pytest.raises(UsageError, match="pass a group that splits by uid"):
        informers.informer("nodes", shard=MemoryAssignment(by="namespace"))


# -- gained shards -------------------------------------------------------------------------------


class Requests(Metrics):
    """The requests of informers, and the objects and events that arrived, by verb."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.arrived: Counter[str] = Counter()

    def request_started(self, informer: str, verb: str) -> None:
        self.started.append(verb)

    def received(self, informer: str, verb: str, size: int, events: int) -> None:
        self.arrived[verb] += events

    def clear(self) -> None:
        self.started.clear()
        self.arrived.clear()


@READS
async def test_a_member_that_gains_shards_lists_only_those(watch_list: bool) -> None:
    cluster = cluster_with_pods(400, sharding=True)
    group, requests = MemoryAssignment(assigned=range(7)), Requests()
    async with SharedInformerFactory(
        ClusterSource(cluster), watch_list=watch_list, page_size=20, metrics=requests
    ) as informers:
        pods = informers.informer("pods", shard=group)
        recorder = Recorder()
        pods.add_handler(recorder, overflow="block")
        await informers.wait_synced(10)
        await wait_until(lambda: recorder.present == expected(cluster, *range(7)))
        await wait_until(lambda: pods.health.state == "watching")
        requests.clear()
        recorder.events.clear()
        group.assign(range(8))
        await wait_until(lambda: recorder.present == expected(cluster, *range(8)))
        gained = len(expected(cluster, 7))
        arrived = requests.arrived["watchlist" if watch_list else "list"]
        assert gained <= arrived <= gained + 1, "and the end mark of a WatchList"
        assert sorted(recorder.events) == sorted(
            f"added {name} initial=True" for name in expected(cluster, 7)
        )
        await wait_until(lambda: pods.health.shard_watches == 1)
        await wait_until(lambda: "watch" in requests.started)
        assert not requests.arrived["watch"], "the watch is resumed, and nothing is sent again"
        put(cluster, 400)
        await wait_until(lambda: "p400" in names(pods))
        assert await pods.verify(timeout=10)


@pytest.mark.parametrize("namespaces", [None, ["web", "other"]])
async def test_a_verification_leaves_out_the_first_shards_while_they_are_read(
    namespaces: list[str] | None,
) -> None:
    group, source = MemoryAssignment(), ClusterSource(cluster_with_pods(20))
    async with SharedInformerFactory(source, backoff=FAST_BACKOFF) as informers:
        pods = informers.informer("pods", shard=group, namespaces=namespaces)
        await informers.wait_synced(10)
        with source.faults.stall(verb="watch_list", after=100, under_way=False):
            group.assign(range(8))
            await wait_until(lambda: group.working == set(range(8)))
            assert (await pods.verify(timeout=10)).objects == 0
        await wait_until(lambda: len(names(pods)) == 20)
        assert (await pods.verify(timeout=10)).objects == 20


@SERVERS
async def test_the_watch_continues_while_gained_shards_are_listed(sharding: bool) -> None:
    cluster = cluster_with_pods(60, sharding=sharding)
    group, source = MemoryAssignment(assigned=[0, 1, 2, 3]), ClusterSource(cluster)
    async with SharedInformerFactory(source, backoff=FAST_BACKOFF) as informers:
        pods = informers.informer("pods", shard=group)
        await informers.wait_synced(10)
        await wait_until(lambda: pods.health.state == "watching")
        assert pods.health.shard_watches == 1
        with source.faults.stall(verb="watch_list", after=500, under_way=False):
            group.assign(range(8))
            await wait_until(lambda: pods.health.shard_watches == 2)
            await wait_until(lambda: pods.health.state == "listing")
            for number in range(60, 90):
                put(cluster, number)
            for number in range(0, 30, 3):
                cluster.delete("pods", f"p{number}", namespace="web")
            await wait_until(lambda: names(pods) == expected(cluster, 0, 1, 2, 3))
            assert await pods.verify(timeout=10)
            group.assign([0, 1, 2, 3, 4])  # the reading begins anew, with fewer shards
            await wait_until(lambda: group.working == {0, 1, 2, 3, 4})
        await wait_until(lambda: names(pods) == expected(cluster, 0, 1, 2, 3, 4))
        await wait_until(lambda: pods.health.shard_watches == 1)


async def test_changes_that_a_gained_state_contains_are_not_delivered_again() -> None:
    cluster = cluster_with_pods(40)
    group, source = MemoryAssignment(assigned=[0, 1, 2, 3]), ClusterSource(cluster)
    async with SharedInformerFactory(source, watch_list=False, backoff=FAST_BACKOFF) as informers:
        pods = informers.informer("pods", shard=group)
        recorder = Recorder()
        pods.add_handler(recorder, overflow="block")
        await informers.wait_synced(10)
        await wait_until(lambda: pods.health.state == "watching")
        with source.faults.stall(
            after=0, verb="watch", under_way=True
        ):  # the watch falls behind what is written now
            await yield_to_loop()
            for number in range(40, 80):
                put(cluster, number)
            created = expected(cluster, 4, 5, 6, 7)
            for number in range(40, 80, 2):
                cluster.delete("pods", f"p{number}", namespace="web")
            recorder.events.clear()
            group.assign(range(8))
            await wait_until(lambda: recorder.present >= expected(cluster, 4, 5, 6, 7))
        await wait_until(lambda: recorder.present == expected(cluster, *range(8)))
        gained = expected(cluster, 4, 5, 6, 7)
        events = [each for each in recorder.events if each.split()[1] in created]
        assert sorted(events) == sorted(f"added {name} initial=True" for name in gained)
        assert gained < created, "objects that were gone when their shard was read"


async def test_an_error_of_the_reading_of_gained_shards_is_shown_and_retried() -> None:
    cluster = cluster_with_pods(20)
    group, source = MemoryAssignment(assigned=[0]), ClusterSource(cluster)
    problems: list[Problem] = []
    async with SharedInformerFactory(
        source, backoff=FAST_BACKOFF, watch_list=False, on_error=problems.append
    ) as informers:
        pods = informers.informer("pods", shard=group)
        await informers.wait_synced(10)
        await wait_until(lambda: pods.health.state == "watching")
        source.faults.status(503, verb="list", times=3)
        group.assign([0, 1])
        await wait_until(lambda: bool(problems))
        await wait_until(lambda: names(pods) == expected(cluster, 0, 1))
        assert "gained 1 shard" in problems[0].informer
        await wait_until(lambda: pods.health.error is None)


async def test_a_recreated_object_in_a_gained_shard_survives_the_deletion_of_the_old_object() -> (
    None
):
    """The old object's deletion arrives after the state that contains the new object."""
    cluster = cluster_with_pods(0)
    for number in range(64):
        put(cluster, number)
    group, source = MemoryAssignment(assigned=[0, 1, 2, 3]), ClusterSource(cluster)
    async with SharedInformerFactory(source, watch_list=False, backoff=FAST_BACKOFF) as informers:
        pods = informers.informer("pods", shard=group)
        recorder = Recorder()
        pods.add_handler(recorder, overflow="block")
        await informers.wait_synced(10)
        await wait_until(lambda: pods.health.state == "watching")
        with source.faults.stall(after=0, verb="watch", under_way=True):
            await yield_to_loop()
            for number in range(64):
                cluster.delete("pods", f"p{number}", namespace="web")
                put(cluster, number)
            group.assign(range(8))
            await wait_until(lambda: names(pods) >= expected(cluster, 4, 5, 6, 7))
        await wait_until(lambda: recorder.present == {f"p{number}" for number in range(64)})
        assert await pods.verify(timeout=10), "at a version after the deletions"
        assert names(pods) == {f"p{number}" for number in range(64)}


async def test_a_shard_that_moves_in_is_read_with_the_last_writes_of_its_former_owner() -> None:
    cluster = cluster_with_pods(40)
    group, source = MemoryAssignment(), ClusterSource(cluster)
    stale: list[str] = []
    async with SharedInformerFactory(source, watch_list=False) as informers:
        pods = informers.informer("pods", shard=group)

        @pods.on_add
        def check(obj: KubeObject, *, initial: bool) -> None:
            if not obj.labels.get("written"):
                stale.append(obj.name)

        await informers.wait_synced(10)
        for number in range(40):
            patch = {"metadata": {"labels": {"written": "yes"}}}
            cluster.merge_patch("pods", f"p{number}", patch, namespace="web")
        source.faults.stale_lists(20)  # a server whose cache is behind answers "any version" so
        group.assign([0, 1])
        await wait_until(lambda: names(pods) == expected(cluster, 0, 1))
        group.assign(range(8))
        await wait_until(lambda: names(pods) == expected(cluster, *range(8)))
        assert stale == []


# -- several namespaces --------------------------------------------------------------------------


def put_in(cluster: Cluster, namespace: str, number: int) -> None:
    cluster.create("pods", {"metadata": {"name": f"p{number}"}}, namespace=namespace)


def selected(cluster: Cluster, namespaces: Iterable[str], shards: Iterable[int]) -> set[str]:
    ranges, chosen = HashRanges.of(shards, 8, "uid"), set(namespaces)
    found = [each["metadata"] for each in cluster.objects("pods")]
    return {
        f"{each['namespace']}/{each['name']}"
        for each in found
        if each["namespace"] in chosen and ranges.has(each["uid"], each["namespace"])
    }


def keys(informer: SharedInformer[Any]) -> set[str]:
    return {str(obj.key) for obj in informer.lister.list()}


@SERVERS
@READS
async def test_the_shards_of_several_namespaces_come_and_go(
    sharding: bool, watch_list: bool
) -> None:
    cluster = Cluster(features=Features(sharding=sharding))
    for namespace in ("a", "b", "c"):
        for number in range(40):
            put_in(cluster, namespace, number)
    group = MemoryAssignment(assigned=[0, 1])
    async with SharedInformerFactory(
        ClusterSource(cluster), watch_list=watch_list, backoff=FAST_BACKOFF
    ) as informers:
        pods = informers.informer("pods", shard=group, namespaces=["a", "b"])
        await informers.wait_synced(10)
        await wait_until(lambda: keys(pods) == selected(cluster, "ab", [0, 1]))
        assert [each.namespace for each in pods.health.scopes] == ["a", "b"]
        assert pods.health.shards == (0, 1)
        assert pods.health.shard_watches == 2
        group.assign([1, 2, 3])
        await wait_until(lambda: keys(pods) == selected(cluster, "ab", [1, 2, 3]))
        pods.add_namespace("c")
        await wait_until(lambda: keys(pods) == selected(cluster, "abc", [1, 2, 3]))
        pods.remove_namespace("a")
        await wait_until(lambda: keys(pods) == selected(cluster, "bc", [1, 2, 3]))
        group.assign([])
        await wait_until(lambda: not keys(pods) and not group.working)
        group.assign(range(8))
        await wait_until(lambda: keys(pods) == selected(cluster, "bc", range(8)))
        assert await pods.verify(timeout=10)


async def test_an_informer_of_several_namespaces_is_synced_without_a_shard() -> None:
    cluster, group = Cluster(), MemoryAssignment()
    put_in(cluster, "a", 1)
    async with SharedInformerFactory(ClusterSource(cluster)) as informers:
        pods = informers.informer("pods", shard=group, namespaces=["a", "b"])
        await informers.wait_synced(10)
        pods.add_namespace("c")
        await yield_to_loop()
        assert pods.health.ok
        assert not keys(pods)
        group.assign(range(8))
        await wait_until(lambda: keys(pods) == {"a/p1"})


# -- histories -----------------------------------------------------------------------------------


class VersionRecorder:
    """A handler that checks the order of events and versions of each object."""

    def __init__(self) -> None:
        self.present: dict[str, tuple[str, int]] = {}

    async def __call__(self, event: Event) -> None:
        key, obj = str(event.key), event.obj
        uid, version = obj.uid, int(obj.resource_version)
        if isinstance(event, Added):
            assert key not in self.present, key
            self.present[key] = uid, version
        elif isinstance(event, Deleted):
            assert self.present.pop(key)[0] == uid
        else:
            before = self.present[key]
            assert before[0] == uid
            assert before[1] < version, "a version never goes back"
            self.present[key] = uid, version


@pytest.mark.parametrize(
    "seed",
    [
        *(1003, 1096, 1103, 1220, 1296),
        *range(5),
        *(pytest.param(seed, marks=pytest.mark.simulation) for seed in range(5, 20)),
    ],
)
def test_random_moves_and_faults_leave_the_server_s_objects(seed: int) -> None:
    rng = random.Random(seed)
    namespaces = rng.choice([None, ["a", "b"]])
    sharding, watch_list = rng.random() < 0.5, rng.random() < 0.5

    async def scenario() -> None:
        cluster = Cluster(features=Features(sharding=sharding))
        group, source = MemoryAssignment(), ClusterSource(cluster)
        async with SharedInformerFactory(
            source, watch_list=watch_list, page_size=rng.choice([0, 7]), backoff=FAST_BACKOFF
        ) as informers:
            pods = informers.informer("pods", shard=group, namespaces=namespaces)
            recorder = VersionRecorder()
            pods.add_handler(recorder, overflow=rng.choice(["block", "coalesce"]))
            for _ in range(120):
                write(cluster, rng)
                if rng.random() < 0.25:
                    group.assign(rng.sample(range(8), rng.randrange(9)))
                if rng.random() < 0.1:
                    verbs: list[RequestVerb] = ["list", "watch", "watch_list"]
                    source.faults.status(503, verb=rng.choice(verbs), times=1)
                if rng.random() < 0.05:
                    source.faults.reset(verb="watch", under_way=True)
                if rng.random() < 0.05:
                    source.faults.stall(after=0, verb="watch", under_way=True)
                await asyncio.sleep(rng.choice([0, 0.001, 0.01, 0.3]))
            source.faults.clear()
            chosen = namespaces or ["a", "b"]
            await informers.wait_synced(60)
            wanted = selected(cluster, chosen, group.assigned)
            async with asyncio.timeout(600):
                while not (keys(pods) == wanted == set(recorder.present)):  # noqa: ASYNC110
                    await asyncio.sleep(0.5)
                assert group.working == group.assigned
            assert await pods.verify(timeout=60)

    run(scenario(), seed=seed)


def write(cluster: Cluster, rng: random.Random) -> None:
    """Create, change, delete or replace some pods."""
    for _ in range(rng.randrange(4)):
        namespace, number = rng.choice("ab"), rng.randrange(30)
        name = f"p{number}"
        found = cluster.find_object("pods", name, namespace=namespace)
        if found is None:
            put_in(cluster, namespace, number)
        elif rng.random() < 0.5:
            patch = {"metadata": {"labels": {"x": str(rng.random())}}}
            cluster.merge_patch("pods", name, patch, namespace=namespace)
        else:
            cluster.delete("pods", name, namespace=namespace)
            if rng.random() < 0.5:
                put_in(cluster, namespace, number)
