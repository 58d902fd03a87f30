"""Tests of waits for a version that is not reached yet, and of faults without sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from aioinformer._core.listwatch.reflector_requests import ListRequest, WatchRequest
from aioinformer._core.objects.resources import find_built_in
from aioinformer.errors import (
    ConnectionFailed,
    ConnectionLost,
    FetchError,
    Forbidden,
    RequestTimedOut,
    ServerFailure,
)
from aioinformer.testing import Cluster, ClusterSource, Fault, Faults, ManualClock
from aioinformer.testing.server.source import TIMEOUTS, ClusterListerWatcher

PODS = find_built_in("pods")


@pytest.fixture
def faults() -> Faults:
    return Faults()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    cluster.create("pods", {"metadata": {"name": "web-0"}})
    return cluster


@pytest.fixture
def pods(cluster: Cluster, faults: Faults, clock: ManualClock) -> ClusterListerWatcher:
    return ClusterSource(cluster, faults, clock).lister_watcher(PODS, namespace="default")


async def listed(pods: ClusterListerWatcher, version: str = "") -> bytes:
    async with pods.list(ListRequest(version, 0)) as chunks:
        return b"".join([chunk async for chunk in chunks])


async def waits(task: asyncio.Task[bytes]) -> None:
    for _ in range(20):
        await asyncio.sleep(0)
    assert not task.done()


async def test_a_list_waits_three_seconds_for_a_version_and_then_gives_up(
    cluster: Cluster, pods: ClusterListerWatcher, clock: ManualClock
) -> None:
    """Recording 20."""
    listing = asyncio.create_task(listed(pods, "9"))
    await waits(listing)
    clock.advance(2.9)
    await waits(listing)
    clock.advance(0.1)
    with pytest.raises(ServerFailure, match="Too large resource version: 9, current: 2"):
        await listing


async def test_a_list_is_served_as_soon_as_the_version_is_there(
    cluster: Cluster, pods: ClusterListerWatcher, clock: ManualClock
) -> None:
    listing = asyncio.create_task(listed(pods, "4"))
    for name in ("a", "b"):
        await waits(listing)
        cluster.create("pods", {"metadata": {"name": name}})
    assert b'"resourceVersion":"4"' in await listing
    assert clock.now == 0.0


async def test_a_watch_from_a_future_version_starts_at_once(
    pods: ClusterListerWatcher, clock: ManualClock
) -> None:
    async with pods.watch(WatchRequest("9", 60)):
        assert clock.now == 0.0


async def test_a_broken_connection_is_a_transport_error(
    pods: ClusterListerWatcher, faults: Faults
) -> None:
    expected: list[tuple[type[FetchError], Callable[[], Fault]]] = [
        (ConnectionFailed, faults.refuse),
        (ConnectionLost, faults.reset),
        (ConnectionLost, lambda: faults.reset(after=10)),
        (Forbidden, faults.forbid),
    ]
    for error, turn in expected:
        with turn(), pytest.raises(error) as caught:
            await listed(pods)
        assert caught.value.phase == "list"
    assert b"web-0" in await listed(pods)


async def test_an_idle_watch_breaks_when_it_is_reset(
    pods: ClusterListerWatcher, faults: Faults
) -> None:
    async with pods.watch(WatchRequest("2", 60)) as lines:
        reading = asyncio.create_task(_next(lines))
        await waits(reading)
        faults.reset(verb="watch")
        with pytest.raises(ConnectionLost):
            await reading
    assert "0 watches" in repr(pods.source.cluster)


async def _next(lines: AsyncIterator[bytes]) -> bytes:
    return await anext(lines)


async def test_a_stalled_watch_sends_nothing_and_does_not_end(
    cluster: Cluster, pods: ClusterListerWatcher, faults: Faults, clock: ManualClock
) -> None:
    async with pods.watch(WatchRequest("2", 60)) as lines:
        reading = asyncio.create_task(_next(lines))
        fault = faults.stall()
        cluster.create("pods", {"metadata": {"name": "a"}})
        await waits(reading)
        clock.advance(80)
        await waits(reading)
        fault.end()
        assert b'"ADDED"' in await reading


async def test_a_client_gives_up_half_a_minute_after_the_requested_end_of_a_stalled_watch(
    pods: ClusterListerWatcher, faults: Faults, clock: ManualClock
) -> None:
    async with pods.watch(WatchRequest("2", 60)) as lines:
        reading = asyncio.create_task(_next(lines))
        faults.stall()
        await waits(reading)
        clock.advance(60 + TIMEOUTS.grace)
        with pytest.raises(RequestTimedOut):
            await reading


async def test_a_client_gives_up_a_list_without_a_byte(
    pods: ClusterListerWatcher, faults: Faults, clock: ManualClock
) -> None:
    switches: tuple[Callable[[], Fault], ...] = (
        faults.stall,
        lambda: faults.stall(after=10),
        lambda: faults.latency(9999),
    )
    for switch_on in switches:
        with switch_on():
            listing = asyncio.create_task(listed(pods))
            await waits(listing)
            clock.advance(TIMEOUTS.read - 1)
            await waits(listing)
            clock.advance(1)
            with pytest.raises(RequestTimedOut):
                await listing


async def test_latency_and_drip_use_the_time_of_the_clock(
    pods: ClusterListerWatcher, faults: Faults, clock: ManualClock
) -> None:
    whole = await listed(pods)
    faults.latency(1)
    faults.drip(size=len(whole) // 2 + 1, every=5)
    listing = asyncio.create_task(listed(pods))
    for seconds in (1, 5):
        await waits(listing)
        clock.advance(seconds)
    assert await listing == whole


async def test_a_restored_cluster_ends_its_watches_and_reuses_versions(
    cluster: Cluster, pods: ClusterListerWatcher
) -> None:
    past, before = cluster.snapshot(), await listed(pods)
    async with pods.watch(WatchRequest("2", 60)) as lines:
        cluster.delete("pods", "web-0")
        cluster.restore(past)
        assert [line async for line in lines] == []
    assert await listed(pods) == before
    assert repr(past) == "<Snapshot rv=2 1 object>"
    cluster.restore()
    assert cluster.resource_version == 1
    assert b'"items":[]' in await listed(pods)
