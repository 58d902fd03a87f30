"""One shard of an informer: the same objects, whether the server selects them or not."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from aioinformer import (
    Event,
    KubeObject,
    Metrics,
    Resource,
    Shard,
    SharedInformer,
    SharedInformerFactory,
    labelled,
)
from aioinformer._core.listwatch.reflector_requests import ListRequest, WatchRequest
from aioinformer.errors import UsageError
from aioinformer.lowlevel import InformerOptions, ListerWatcher
from aioinformer.sharding.state.ranges import HashRanges, ShardKey
from aioinformer.testing import Cluster, ClusterSource, Features
from aioinformer.testing.server.source import ClusterListerWatcher
from tests.runtime.informers import FAST_BACKOFF
from tests.runtime.scripted_source import wait_until

NAMESPACES = "shop", "cart", "web"
SERVERS = pytest.mark.parametrize("sharding", [True, False], ids=["selects", "ignores"])
READS = pytest.mark.parametrize("watch_list", [True, False], ids=["watchlist", "list"])


def cluster_with_pods(count: int = 60, *, sharding: bool) -> Cluster:
    cluster = Cluster(features=Features(sharding=sharding))
    for name in NAMESPACES:
        cluster.create("namespaces", {"metadata": {"name": name, "labels": {"team": name[0]}}})
    for number in range(count):
        put(cluster, number)
    return cluster


def put(cluster: Cluster, number: int) -> str:
    """Create a pod and return its key."""
    namespace = NAMESPACES[number % 3]
    metadata = {"name": f"p{number}", "labels": {"n": str(number % 2)}}
    cluster.create("pods", {"metadata": metadata}, namespace=namespace)
    return f"{namespace}/p{number}"


def keys(informer: SharedInformer[Any]) -> set[str]:
    return {str(obj.key) for obj in informer.lister.list()}


def expected_keys(cluster: Cluster, index: int, count: int, by: ShardKey = "uid") -> set[str]:
    ranges = HashRanges.of([index], count, by)
    pods = [each["metadata"] for each in cluster.objects("pods")]
    return {
        f"{each['namespace']}/{each['name']}"
        for each in pods
        if ranges.has(each["uid"], each["namespace"])
    }


@SERVERS
@READS
@pytest.mark.parametrize("by", ["uid", "namespace"])
async def test_the_shards_are_disjoint_and_together_the_whole(
    sharding: bool, watch_list: bool, by: ShardKey
) -> None:
    cluster = cluster_with_pods(sharding=sharding)
    source = ClusterSource(cluster)
    async with SharedInformerFactory(source, watch_list=watch_list, page_size=7) as informers:
        every = informers.informer("pods")
        shards = [informers.informer("pods", shard=Shard(index, 3, by)) for index in range(3)]
        await informers.wait_synced(30)
        for number in range(60, 90):
            put(cluster, number)
        for number in range(0, 60, 5):
            cluster.delete("pods", f"p{number}", namespace=NAMESPACES[number % 3])
        for number in range(1, 60, 5):
            patch = {"metadata": {"labels": {"changed": "yes"}}}
            cluster.merge_patch("pods", f"p{number}", patch, namespace=NAMESPACES[number % 3])
        await wait_until(lambda: len(every.lister.list()) == 78)
        expected = [expected_keys(cluster, index, 3, by) for index in range(3)]
        # Not their number: one shard may lack as many additions as another lacks deletions.
        await wait_until(lambda: [keys(each) for each in shards] == expected)
        for each in shards:
            assert await each.verify(timeout=10), "the cache is compared with the same shard"
            assert each.health.ok
        changed = [obj for each in shards for obj in each.lister.list(labels="changed=yes")]
        assert len(changed) == 12


@SERVERS
@READS
async def test_health_and_metrics_show_if_the_server_or_the_informer_selects(
    sharding: bool, watch_list: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "aioinformer")
    dropped: list[int] = []

    class Counts(Metrics):
        def other_shards(self, informer: str, count: int) -> None:
            assert informer == "pods (selected)"
            dropped.append(count)

    cluster = cluster_with_pods(sharding=sharding)
    async with SharedInformerFactory(
        ClusterSource(cluster), watch_list=watch_list, metrics=Counts()
    ) as informers:
        pods = informers.informer("pods", shard=Shard(1, 4))
        await informers.wait_synced(30)
        others = 60 - len(keys(pods))
        health = pods.health
        assert pods.name == "pods where shard 1 of 4"
        if sharding:
            assert (health.shard_filter, health.other_shards, dropped) == ("server", 0, [])
            assert "shards" not in str(health)
        else:
            assert (health.shard_filter, health.other_shards) == ("client", others)
            assert sum(dropped) == others
            assert f"{others} objects of other shards dropped" in str(health)
        logged = [each for each in caplog.messages if "objects of other shards arrive" in each]
        assert len(logged) == (0 if sharding else 1)


async def test_the_health_of_an_informer_without_a_shard_has_no_shard_filter() -> None:
    async with SharedInformerFactory(ClusterSource(cluster_with_pods(sharding=True))) as informers:
        pods = informers.informer("pods")
        await informers.wait_synced(30)
        assert (pods.health.shard_filter, pods.health.other_shards) == ("", 0)


@SERVERS
async def test_an_informer_of_several_namespaces_reads_one_shard(sharding: bool) -> None:
    cluster = cluster_with_pods(sharding=sharding)
    async with SharedInformerFactory(ClusterSource(cluster)) as informers:
        named = informers.informer("pods", namespaces=["shop", "web"], shard=Shard(0, 2))
        followed = informers.informer("pods", namespaces=labelled("team=c"), shard=Shard(0, 2))
        await informers.wait_synced(30)
        expected = expected_keys(cluster, 0, 2)
        assert keys(named) == {key for key in expected if not key.startswith("cart/")}
        assert keys(followed) == {key for key in expected if key.startswith("cart/")}
        assert named.health.shard_filter == ("server" if sharding else "client")
        assert (named.health.other_shards > 0) is not sharding
        assert await named.verify(timeout=10)


@SERVERS
async def test_metadata_alone_is_split_like_whole_objects(sharding: bool) -> None:
    cluster = cluster_with_pods(sharding=sharding)
    async with SharedInformerFactory(ClusterSource(cluster)) as informers:
        pods = informers.informer("pods", metadata_only=True, shard=Shard(0, 2))
        chosen = informers.informer("pods", labels="n=1", shard=Shard(0, 2))
        await informers.wait_synced(30)
        assert keys(pods) == expected_keys(cluster, 0, 2)
        odd = {key for key in expected_keys(cluster, 0, 2) if int(key.split("/p")[1]) % 2}
        assert keys(chosen) == odd


async def test_a_wait_for_an_object_of_another_shard_ends() -> None:
    cluster = cluster_with_pods(sharding=False)
    async with SharedInformerFactory(ClusterSource(cluster)) as informers:
        shards = [informers.informer("pods", shard=Shard(index, 2)) for index in range(2)]
        await informers.wait_synced(30)
        created = cluster.get("pods", "p0", namespace="shop")
        cluster.delete("pods", "p0", namespace="shop")
        del created["metadata"]["uid"], created["metadata"]["resourceVersion"]
        written = cluster.create("pods", created, namespace="shop")
        found = [await each.wait_for(written, timeout=10) for each in shards]
        assert sorted(each is None for each in found) == [False, True]


async def test_objects_of_other_shards_never_reach_a_program() -> None:
    """Neither transform=, nor index functions, nor listeners see another shard's object."""
    cluster = cluster_with_pods(sharding=False)
    seen: set[str] = set()

    def look(obj: KubeObject) -> KubeObject:
        seen.add(str(obj.key))
        return obj

    async with SharedInformerFactory(ClusterSource(cluster)) as informers:
        pods = informers.informer("pods", transform=look, shard=Shard(0, 2))
        events: list[Event] = []

        async def record(event: Event) -> None:
            events.append(event)

        pods.add_handler(record)
        await informers.wait_synced(30)
        for number in range(60, 80):
            put(cluster, number)
        expected = expected_keys(cluster, 0, 2)
        await wait_until(lambda: keys(pods) == expected)
        await wait_until(lambda: len(events) == len(expected))
        assert seen == expected
        assert {str(event.obj.key) for event in events} == expected


# -- requests ------------------------------------------------------------------------------------


async def test_equal_shards_share_one_informer() -> None:
    informers = SharedInformerFactory(ClusterSource(Cluster()))
    first = informers.informer("pods", shard=Shard(0, 4))
    assert informers.informer("pods", shard=Shard(0, 4)) is first
    assert informers.informer("pods", shard=Shard(1, 4)) is not first
    assert informers.informer("pods", shard=Shard(0, 4, by="namespace")) is not first
    every = informers.informer("pods")
    assert every is not first
    assert informers.informer("pods", shard=Shard(0, 1)) is every


async def test_a_factory_has_a_shard_for_all_of_its_informers() -> None:
    cluster = cluster_with_pods(sharding=False)
    source = ClusterSource(cluster)
    async with SharedInformerFactory(source, shard=Shard(0, 2)) as informers:
        pods = informers.informer("pods")
        every = informers.informer("pods", shard=Shard(0, 1))
        followed = informers.informer("pods", namespaces=labelled("team in (s, c, w)"))
        await informers.wait_synced(30)
        assert keys(pods) == keys(followed) == expected_keys(cluster, 0, 2)
        assert len(keys(every)) == 60
        assert followed.namespaces == ("cart", "shop", "web"), "all namespaces are followed"


async def test_shards_by_namespace_need_namespaces() -> None:
    informers = SharedInformerFactory(ClusterSource(Cluster()))
    with pytest.raises(
        UsageError, match=r"nodes are in no namespace.*pass Shard\(1, 2\) that splits by uid"
    ):
        informers.informer("nodes", shard=Shard(1, 2, by="namespace"))
    informers.informer("nodes", shard=Shard(1, 2))


@pytest.mark.parametrize("given", [2, "0/2", (0, 2), Shard])
def test_the_shard_option_accepts_only_a_shard(given: object) -> None:
    with pytest.raises(TypeError, match="shard must be a Shard such as"):
        InformerOptions(shard=cast("Shard", given))


async def test_the_selector_of_a_shard_is_no_option_of_lists() -> None:
    with pytest.raises(ValueError, match="can't contain shardSelector: pass shard="):
        InformerOptions(list_options={"shardSelector": "x"})


# -- servers that change -------------------------------------------------------------------------


@dataclass
class ChangingServer:
    """A source whose server serves the selector or ignores it, as ``selects`` says."""

    inner: ClusterSource
    selects: bool
    requests: list[str] = field(default_factory=list[str])

    def lister_watcher(
        self, resource: Resource, *, namespace: str | None, labels: str, fields: str
    ) -> ListerWatcher:
        plain = self.inner.lister_watcher(
            resource, namespace=namespace, labels=labels, fields=fields
        )
        return ChangingListerWatcher(self, plain, plain)


class ChangingListerWatcher:
    """Sends the selector to a cluster that serves it, or not at all."""

    def __init__(
        self, server: ChangingServer, plain: ClusterListerWatcher, selecting: ClusterListerWatcher
    ) -> None:
        self.server, self.plain, self.selecting = server, plain, selecting
        self.resource, self.watch_lists = plain.resource, True

    def with_list_options(self, options: Mapping[str, str]) -> ChangingListerWatcher:
        selecting = self.plain.with_list_options(options)
        return ChangingListerWatcher(self.server, self.plain, selecting)

    def _current(self, verb: str) -> ClusterListerWatcher:
        self.server.requests.append(f"{verb} selects={self.server.selects}")
        return self.selecting if self.server.selects else self.plain

    def list(self, request: ListRequest) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._current("list").list(request)

    def watch(self, request: WatchRequest) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._current("watch").watch(request)


@READS
@pytest.mark.parametrize(
    "versions",
    [(False, True, False), (True, False, True), (True, True, False)],
    ids=["upgraded", "rolled back", "rolled back late"],
)
async def test_listeners_receive_the_same_events_if_the_server_starts_or_stops_selecting(
    watch_list: bool, versions: tuple[bool, ...]
) -> None:
    cluster = cluster_with_pods(sharding=True)
    server = ChangingServer(ClusterSource(cluster), selects=versions[0])
    async with SharedInformerFactory(
        server, watch_list=watch_list, backoff=FAST_BACKOFF
    ) as informers:
        pods = informers.informer("pods", shard=Shard(0, 2))
        events: list[str] = []

        async def record(event: Event) -> None:
            events.append(f"{type(event).__name__} {event.obj.key}")

        pods.add_handler(record, overflow="block")
        await informers.wait_synced(30)
        initial = expected_keys(cluster, 0, 2)
        await wait_until(lambda: len(events) == len(initial))
        assert sorted(events) == sorted(f"Added {key}" for key in initial)
        number = 60
        for selects in versions[1:]:
            before = len(server.requests)
            server.selects = selects
            with server.inner.faults.end_watches(under_way=True):
                await wait_until(
                    lambda: f"watch selects={selects}" in server.requests[before:]  # noqa: B023
                )
            for _ in range(20):
                put(cluster, number)
                number += 1
            expected = expected_keys(cluster, 0, 2)
            await wait_until(lambda: keys(pods) == expected)  # noqa: B023 - called at once
        final = expected_keys(cluster, 0, 2)
        await wait_until(lambda: len(events) >= len(final))
        assert sorted(events) == sorted(f"Added {key}" for key in final)


async def test_the_informer_selects_the_shard_if_the_source_has_no_list_options() -> None:
    """A source of a program's own can't ask for a shard; the informer selects the objects."""
    cluster = cluster_with_pods(sharding=True)
    whole = ClusterSource(cluster)

    class PlainListerWatcher:
        def __init__(self, inner: ListerWatcher) -> None:
            self.resource, self.watch_lists = inner.resource, True
            self.list, self.watch = inner.list, inner.watch

    class PlainSource:
        def lister_watcher(self, *arguments: Any, **options: Any) -> ListerWatcher:
            return PlainListerWatcher(whole.lister_watcher(*arguments, **options))

    async with SharedInformerFactory(PlainSource()) as informers:
        pods = informers.informer("pods", shard=Shard(0, 2))
        await informers.wait_synced(30)
        assert keys(pods) == expected_keys(cluster, 0, 2)
        assert pods.health.shard_filter == "client"
