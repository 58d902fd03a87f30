"""Scans of a cache."""

from __future__ import annotations

import asyncio
import time

import pytest

from aioinformer import Delta, Indexer, KubeObject, Lister, label_index
from aioinformer._core.objects.deltas import Replaced
from aioinformer._runtime.tasks.event_loop import ITEMS_PER_STEP
from aioinformer._runtime.tasks.scan import Scan
from aioinformer.errors import InvalidSelector, NotSynced, UsageError
from tests.runtime.scripted_source import PODS, pod


def holding(count: int) -> Indexer:
    """Create a synced cache of ``count`` pods."""
    indexer = Indexer({"labels": label_index("app")})
    replacement = indexer.replace(Replaced([pod(f"p-{n}", n + 1) for n in range(count)], "9"))
    while not replacement.step(1000):
        pass
    replacement.commit()
    return indexer


def lister_of(indexer: Indexer) -> Lister:
    """Return a lister as an informer makes it."""
    return Lister(indexer, PODS, start_scan=Scan)


def odd(obj: KubeObject) -> bool:
    return int(obj.resource_version) % 2 == 1


async def test_a_scan_finds_the_objects_of_a_list() -> None:
    lister = lister_of(holding(500))
    assert [obj async for obj in lister.scan()] == lister.list()
    assert [obj async for obj in lister.scan(where=odd)] == lister.list(where=odd)
    found = [obj async for obj in lister.scan(fields="metadata.name=p-7", namespace="web")]
    assert [obj.name for obj in found] == ["p-7"]
    assert [obj async for obj in lister.scan(labels="app=shop")] == []


async def test_a_scan_returns_the_state_at_its_start_despite_later_changes() -> None:
    indexer = holding(300)
    names: list[str] = []
    async for obj in lister_of(indexer).scan():
        names.append(obj.name)
        indexer.apply(Delta("Deleted", pod(f"p-{300 - len(names)}", 1000)), [])
        indexer.apply(Delta("Added", pod(f"q-{len(names)}", 1001)), [])

    assert names == [f"p-{n}" for n in range(300)]


@pytest.mark.parametrize("passing", [True, False], ids=["all pass", "none passes"])
async def test_a_scan_yields_to_the_loop_every_few_milliseconds(*, passing: bool) -> None:
    lister, turns = lister_of(holding(400)), 0

    def slow(_obj: KubeObject) -> bool:
        time.sleep(0.0001)
        return passing

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.create_task(count())
    found = [obj async for obj in lister.scan(where=slow)]
    counting.cancel()

    assert len(found) == (400 if passing else 0)
    assert turns >= 4  # 40 ms of work


async def test_a_scan_that_is_left_early_reads_no_further_object() -> None:
    read: list[str] = []

    def passes(obj: KubeObject) -> bool:
        read.append(obj.name)
        return True

    async for _ in lister_of(holding(2 * ITEMS_PER_STEP)).scan(where=passes):
        break

    assert 0 < len(read) <= ITEMS_PER_STEP


async def test_the_errors_of_a_scan_are_raised_at_its_call() -> None:
    lister = lister_of(Indexer())
    with pytest.raises(NotSynced):
        lister.scan()
    assert [obj async for obj in lister.unsynced.scan()] == []
    with pytest.raises(InvalidSelector):
        lister.unsynced.scan(labels="app in (")


async def test_a_scan_of_a_lister_without_an_informer_is_a_usage_error() -> None:
    lister = Lister(holding(1), PODS)
    with pytest.raises(UsageError, match=r"can't scan.*read with list\(\)"):
        lister.scan()
    assert len(lister.list()) == 1


async def test_a_scan_in_a_thread_is_a_usage_error() -> None:
    lister = lister_of(holding(1))
    with pytest.raises(UsageError, match="event loop"):
        await asyncio.to_thread(lister.scan)
    assert len(await asyncio.to_thread(lister.list)) == 1


async def test_the_repr_of_a_scan_shows_its_progress() -> None:
    scan = lister_of(holding(100)).scan()
    await anext(scan)
    assert repr(scan) == "<Scan <Search searched=64/100>>"
    assert repr(lister_of(holding(1))) == "<Lister pods objects=1 synced=True>"
