"""The reflector of an informer of one scope, and what its health says of shards."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from aioinformer import DeltaQueue, Health, Indexer, Shard
from aioinformer._runtime.reflector.delta_queue import InformerQueue
from aioinformer._runtime.reflector.reflector import Reflector
from aioinformer._runtime.scopes.reflectors import SingleReflector, with_shards
from aioinformer._runtime.tasks.task_group import StrictTaskGroup
from aioinformer.testing import Cluster, ClusterSource, Features
from aioinformer.testing.simulation import run
from tests.runtime.informers import cluster_with_pods
from tests.runtime.scripted_source import PODS
from tests.runtime.virtual_waits import until

HEALTH = Health(
    state="watching",
    since=1.0,
    error=None,
    retry_in=None,
    synced=True,
    resource_version="7",
    objects=0,
    rejected=(),
    blocked_by=(),
)


def pod_reflector(cluster: Cluster, shard: Shard | None = None) -> Reflector:
    source = ClusterSource(cluster).lister_watcher(PODS)
    return Reflector(source, DeltaQueue(), shard=shard)


def sharding_cluster(*, selects: bool) -> Cluster:
    cluster = Cluster(features=Features(sharding=selects))
    for number in range(12):
        cluster.create("pods", {"metadata": {"name": f"p{number}"}})
    return cluster


async def read_all(reflectors: Sequence[Reflector], group: asyncio.TaskGroup) -> None:
    """Run reflectors until each watches."""
    tasks = [group.create_task(each.run()) for each in reflectors]
    await until(lambda: all(each.status.state == "watching" for each in reflectors))
    for task in tasks:
        task.cancel()


def shard_health(*clusters: Cluster) -> tuple[str, int]:
    """Return the side that filters, and the objects of other shards, of one reflector each."""

    async def main() -> Health:
        reflectors = [pod_reflector(cluster, Shard(0, 2)) for cluster in clusters]
        async with asyncio.TaskGroup() as group:
            await read_all(reflectors, group)
        return with_shards(HEALTH, reflectors)

    health = run(main(), seed=1)
    return health.shard_filter, health.other_shards


def test_an_informer_of_all_objects_has_no_shard_filter() -> None:
    assert with_shards(HEALTH, [pod_reflector(Cluster())]) is HEALTH


def test_the_server_filters_only_if_it_does_so_for_every_scope() -> None:
    selects, ignores = sharding_cluster(selects=True), sharding_cluster(selects=False)
    assert shard_health(selects, selects) == ("server", 0)
    side, dropped = shard_health(ignores)
    assert side == "client"
    assert 0 < dropped < 12
    assert shard_health(selects, ignores) == ("client", dropped)
    assert shard_health(ignores, ignores) == ("client", 2 * dropped)


def test_the_only_reflector_is_run_with_its_queue_and_without_a_scope() -> None:
    started = list[tuple[Reflector, InformerQueue, str]]()

    async def run_recorded(reflector: Reflector, queue: InformerQueue, scope: str) -> None:
        started.append((reflector, queue, scope))
        raise LookupError("the end")

    async def main() -> None:
        reflector, queue = pod_reflector(cluster_with_pods("a")), DeltaQueue()
        single = SingleReflector("pods", reflector, queue, Indexer(), run_recorded)
        names = set[str]()

        async def start() -> None:
            async with StrictTaskGroup("informer") as group:
                single.start(group)
                names.update(task.get_name() for task in asyncio.all_tasks())

        with pytest.raises(ExceptionGroup, match="TaskGroup"):
            await start()
        assert "reflector of pods" in names
        assert started == [(reflector, queue, "")]
        assert repr(single) == f"<SingleReflector {reflector!r}>"

    run(main(), seed=1)


def test_the_health_of_one_scope_has_the_strategy_the_freshness_and_the_only_part() -> None:
    async def main() -> None:
        reflector, indexer = pod_reflector(sharding_cluster(selects=False), Shard(0, 2)), Indexer()
        single = SingleReflector("pods", reflector, DeltaQueue(), indexer)
        before = single.fresh
        async with asyncio.TaskGroup() as group:
            await read_all([reflector], group)
        health = single.summarize(replace(HEALTH, strategy="list"))
        assert health.strategy == reflector.strategy == "watchlist"
        assert health.shard_filter == "client"
        assert before is None
        assert single.fresh == reflector.status.fresh is not None
        (part,) = single.parts()
        assert (part.source, part.indexer) == (reflector.source, indexer)
        assert part.ranges == Shard(0, 2).ranges

    run(main(), seed=1)
