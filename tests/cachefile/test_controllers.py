"""Controllers on informers with a cache file, which a thread opens before anything is read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aioinformer import CacheFile, Controller, ShardGroup, SharedInformerFactory
from aioinformer.testing import ClusterSource
from tests.cachefile.programs import until
from tests.runtime.controllers.reconcilers import BARS, FOOS, RecordingReconciler, make_cluster

Make = Callable[[SharedInformerFactory, Any], Controller]


def run_one(factory: SharedInformerFactory, reconcile: Any) -> Controller:
    return Controller(factory.informer(FOOS), reconcile)


def run_owner(factory: SharedInformerFactory, reconcile: Any) -> Controller:
    return Controller(factory.informer(FOOS), reconcile).owns(factory.informer(BARS))


def run_namespaces(factory: SharedInformerFactory, reconcile: Any) -> Controller:
    return Controller(factory.informer(FOOS, namespaces=["default"]), reconcile)


@pytest.mark.parametrize("make", [run_one, run_owner, run_namespaces])
async def test_a_controller_starts_while_a_thread_opens_the_cache_file(
    tmp_path: Path, make: Make
) -> None:
    cluster = make_cluster()
    cluster.create(FOOS, {"metadata": {"name": "a"}})
    reconcile = RecordingReconciler()
    cache = CacheFile(tmp_path / "cache.db")
    async with SharedInformerFactory(ClusterSource(cluster), cache=cache) as factory:
        controller = make(factory, reconcile)
        running = asyncio.create_task(controller.run())
        await until(lambda: reconcile.runs or running.done())
        controller.stop()
        await running
    assert reconcile.runs


async def test_health_does_not_ask_to_enter_a_factory_that_opens_its_file(tmp_path: Path) -> None:
    source, cache = ClusterSource(make_cluster()), CacheFile(tmp_path / "cache.db")
    async with SharedInformerFactory(source, cache=cache) as factory:
        foos = factory.informer(FOOS)
        for _ in range(3):
            await asyncio.sleep(0)
        assert "not started" not in str(foos.health)


@pytest.mark.parametrize("by_informer", [False, True])
async def test_a_controller_starts_on_a_group_while_a_thread_opens_the_cache_file(
    tmp_path: Path, *, by_informer: bool
) -> None:
    cluster = make_cluster()
    cluster.create(FOOS, {"metadata": {"name": "a"}})
    reconcile, cache = RecordingReconciler(), CacheFile(tmp_path / "cache.db")
    source = ClusterSource(cluster)
    group = ShardGroup(source, "g", namespace="web", identity="a", shards=4, cache=cache)
    async with group:
        if by_informer:
            controller = Controller(group.informer(FOOS), reconcile)
        else:
            controller = Controller(FOOS, reconcile, shards=group)
        running = asyncio.create_task(controller.run())
        await until(lambda: reconcile.runs or running.done())
        controller.stop()
        await running
    assert reconcile.runs
