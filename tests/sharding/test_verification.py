"""The comparison of a group's informer with the server, while shards move."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from aioinformer import KubeObject, SharedInformerFactory
from aioinformer.testing import Cluster, ClusterSource, Features
from aioinformer.testing.simulation import run
from tests.runtime.informers import FAST_BACKOFF
from tests.sharding.memory_assignment import MemoryAssignment
from tests.sharding.test_group_reflectors import keys, put_in, selected

MOVES = [([0, 1, 2], [0]), ([0], [0, 1, 2]), ([0, 1], [2, 3])]


@pytest.mark.parametrize("expires", [False, True], ids=["slow", "expired"])
@pytest.mark.parametrize("sharding", [False, True], ids=["ignores", "selects"])
@pytest.mark.parametrize("namespaces", [None, ["a", "b"]], ids=["all", "namespaces"])
@pytest.mark.parametrize(("before", "after"), MOVES)
def test_a_repair_leaves_the_shards_alone_that_move_meanwhile(
    before: list[int], after: list[int], namespaces: list[str] | None, sharding: bool, expires: bool
) -> None:
    async def program() -> None:
        cluster = Cluster(window=100 if expires else 10_000, features=Features(sharding=sharding))
        for number in range(30):
            put_in(cluster, "a", number)
            put_in(cluster, "b", number)
        group, source = MemoryAssignment(assigned=before), ClusterSource(cluster)
        async with SharedInformerFactory(source, backoff=FAST_BACKOFF) as informers:
            pods = informers.informer("pods", shard=group, namespaces=namespaces)
            await pods.wait_synced(timeout=10)
            reasons = list[str]()

            @pods.on_delete
            def note(obj: KubeObject, *, reason: str) -> None:
                reasons.append(reason)

            verifying = move_meanwhile(cluster, source, group, after, expires=expires)
            result, _ = await asyncio.gather(pods.verify(repair=True, timeout=100), verifying)
            assert result, str(result)
            await asyncio.sleep(5)
            assert keys(pods) == selected(cluster, "ab", after)
            assert set(reasons) <= {"scope_removed"}
            assert await pods.verify(timeout=100)

    run(program(), seed=1)


def test_a_repair_leaves_shards_out_whose_state_is_newer_than_the_watch() -> None:
    async def program() -> None:
        cluster = Cluster(features=Features(watch_list=False))
        for number in range(30):
            put_in(cluster, "a", number)
        group, source = MemoryAssignment(assigned=[0]), ClusterSource(cluster)
        async with SharedInformerFactory(source, backoff=FAST_BACKOFF) as informers:
            pods = informers.informer("pods", shard=group)
            await pods.wait_synced(timeout=10)
            with source.faults.stall(verb="watch"):
                moving = selected(cluster, "a", [1])
                for key in moving:
                    labels = {"metadata": {"labels": {"value": "new"}}}
                    cluster.merge_patch("pods", key.partition("/")[2], labels, namespace="a")
                group.assign([0, 1])
                await asyncio.sleep(3)
                assert keys(pods) == selected(cluster, "a", [0, 1])
                result = await pods.verify(repair=True, timeout=20)
                assert result, str(result)
                assert result.objects == len(selected(cluster, "a", [0]))
            await asyncio.sleep(100)
            assert {pods.lister[key].labels["value"] for key in moving} == {"new"}
            assert (await pods.verify(timeout=100)).objects == len(keys(pods))

    run(program(), seed=1)


def move_meanwhile(
    cluster: Cluster,
    source: ClusterSource,
    group: MemoryAssignment,
    after: list[int],
    *,
    expires: bool,
) -> Coroutine[Any, Any, None]:
    """Return the move of shards during a comparison, whose lists last or have to be repeated."""
    if expires:
        for number in range(150):
            cluster.create("configmaps", {"metadata": {"name": f"c{number}"}}, namespace="z")

    async def move() -> None:
        # Lists of shards that move in come by WatchLists.
        stalled = None if expires else source.faults.stall(verb="list")
        await asyncio.sleep(1)
        group.assign(after)
        await asyncio.sleep(5)
        if stalled is not None:
            stalled.end()
        put_in(cluster, "a", 77)
        put_in(cluster, "b", 77)

    return move()
