"""Controllers on informers with a cache file, which a thread opens before anything is read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from aioinformer import (
    CacheFile,
    Controller,
    ObjectKey,
    ReconcileContext,
    ShardGroup,
    SharedInformerFactory,
)
from aioinformer.testing import ClusterSource
from tests.cachefile.programs import until
from tests.runtime.informers import cluster_with_pods

Make = Callable[[SharedInformerFactory, Any], Controller]


async def run_until_reconciled(make: Callable[[Any], Controller]) -> None:
    reconciled = asyncio.Event()

    async def reconcile(_: ObjectKey, __: ReconcileContext) -> None:
        reconciled.set()

    controller = make(reconcile)
    running = asyncio.create_task(controller.run())
    await until(lambda: reconciled.is_set() or running.done())
    controller.stop()
    await running
    assert reconciled.is_set()


def run_one(factory: SharedInformerFactory, reconcile: Any) -> Controller:
    return Controller(factory.informer("pods"), reconcile)


def run_owner(factory: SharedInformerFactory, reconcile: Any) -> Controller:
    return Controller(factory.informer("pods"), reconcile).owns(factory.informer("jobs"))


def run_namespaces(factory: SharedInformerFactory, reconcile: Any) -> Controller:
    return Controller(factory.informer("pods", namespaces=["default"]), reconcile)


@pytest.mark.parametrize("make", [run_one, run_owner, run_namespaces])
async def test_a_controller_starts_while_a_thread_opens_the_cache_file(
    tmp_path: Path, make: Make
) -> None:
    source, cache = ClusterSource(cluster_with_pods("a")), CacheFile(tmp_path / "cache.db")
    async with SharedInformerFactory(source, cache=cache) as factory:
        await run_until_reconciled(partial(make, factory))


async def test_health_does_not_ask_to_enter_a_factory_that_opens_its_file(tmp_path: Path) -> None:
    source, cache = ClusterSource(cluster_with_pods()), CacheFile(tmp_path / "cache.db")
    async with SharedInformerFactory(source, cache=cache) as factory:
        pods = factory.informer("pods")
        for _ in range(3):
            await asyncio.sleep(0)
        assert "not started" not in str(pods.health)


@pytest.mark.parametrize("by_informer", [False, True])
async def test_a_controller_starts_on_a_group_while_a_thread_opens_the_cache_file(
    tmp_path: Path, *, by_informer: bool
) -> None:
    source, cache = ClusterSource(cluster_with_pods("a")), CacheFile(tmp_path / "cache.db")
    group = ShardGroup(source, "g", namespace="web", identity="a", shards=4, cache=cache)

    def make(reconcile: Any) -> Controller:
        if by_informer:
            return Controller(group.informer("pods"), reconcile)
        return Controller("pods", reconcile, shards=group)

    async with group:
        await run_until_reconciled(make)
