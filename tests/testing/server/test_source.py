"""Tests of a cluster in the place of a client: the bytes that a reflector reads."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from aioinformer import Client, Resource
from aioinformer._core.listwatch.reflector_requests import ListRequest, WatchRequest
from aioinformer._core.objects.resources import find_built_in
from aioinformer.errors import (
    BadRequest,
    ConnectionFailed,
    Expired,
    Forbidden,
    NotFound,
    ServerFailure,
)
from aioinformer.testing import ApiServer, Cluster, ClusterSource, ManualClock
from tests.testing.recorded_exchanges import WIDGETS

PODS = find_built_in("pods")


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    for name in "abc":
        cluster.create("pods", {"metadata": {"name": name, "labels": {"is": name}}})
    return cluster


def read(line: bytes) -> tuple[str, str]:
    event: dict[str, Any] = msgspec.json.decode(line)
    return event["type"], event["object"]["metadata"].get("name", "")


async def test_a_page_is_what_the_cluster_lists(cluster: Cluster) -> None:
    source = ClusterSource(cluster).lister_watcher(PODS, namespace="default", labels="is in (a,b)")
    async with source.list(ListRequest(resource_version="", limit=1)) as chunks:
        body = b"".join([chunk async for chunk in chunks])
    assert body == cluster.list("pods", namespace="default", labels="is in (a,b)", limit=1)
    token = msgspec.json.decode(body)["metadata"]["continue"]
    async with source.list(ListRequest("", 1, token)) as chunks:
        body = b"".join([chunk async for chunk in chunks])
    assert [item["metadata"]["name"] for item in msgspec.json.decode(body)["items"]] == ["b"]


async def test_a_long_list_is_sent_in_pieces_and_yields_to_the_loop() -> None:
    cluster = Cluster()
    cluster.create("configmaps", {"metadata": {"name": "a"}, "data": {"x": "y" * 200_000}})
    source = ClusterSource(cluster).lister_watcher(find_built_in("configmaps"))
    others = 0

    async def count() -> None:
        nonlocal others
        while True:
            others += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    async with source.list(ListRequest()) as chunks:
        sizes = [len(chunk) async for chunk in chunks]
    counting.cancel()
    assert len(sizes) == 4
    assert others >= 3


async def test_a_watch_sends_the_changes_while_it_is_read(cluster: Cluster) -> None:
    source = ClusterSource(cluster).lister_watcher(PODS, fields="metadata.name!=b")
    async with source.watch(WatchRequest(str(cluster.resource_version), 60)) as lines:
        first = asyncio.ensure_future(anext(lines))
        await asyncio.sleep(0)
        cluster.delete("pods", "b")
        cluster.delete("pods", "c")
        assert read(await first) == ("DELETED", "c")
        cluster.delete("pods", "a")
        assert read(await anext(lines)) == ("DELETED", "a")


async def test_a_watch_ends_at_its_timeout(cluster: Cluster) -> None:
    clock = ManualClock()
    source = ClusterSource(cluster, clock=clock).lister_watcher(PODS)
    async with source.watch(WatchRequest(str(cluster.resource_version), 600)) as lines:
        clock.advance(600)
        assert [line async for line in lines] == []


async def test_a_watch_ends_with_its_resource(cluster: Cluster) -> None:
    cluster.add_resource(WIDGETS)
    cluster.create(WIDGETS, {"metadata": {"name": "w"}})
    source = ClusterSource(cluster).lister_watcher(WIDGETS)
    version = str(cluster.resource_version)
    async with source.watch(WatchRequest(version, 60)) as lines:
        cluster.remove_resource(WIDGETS)
        types = [read(line)[0] async for chunk in lines for line in chunk.splitlines()]
    assert types == ["DELETED", "BOOKMARK"]


async def test_leaving_a_watch_closes_it(cluster: Cluster) -> None:
    source = ClusterSource(cluster).lister_watcher(PODS)
    async with source.watch(WatchRequest("1", 60)) as lines:
        first, *_ = (await anext(lines)).splitlines()
        assert read(first) == ("ADDED", "a")
        assert "1 watch" in repr(cluster)
    assert "0 watches" in repr(cluster)
    assert [line async for line in lines] == []


async def test_a_cancelled_reader_loses_no_event(cluster: Cluster) -> None:
    source = ClusterSource(cluster).lister_watcher(PODS)
    async with source.watch(WatchRequest(str(cluster.resource_version), 60)) as lines:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await anext(lines)
    assert "0 watches" in repr(cluster)


async def test_an_error_is_raised_on_entering_with_its_phase(cluster: Cluster) -> None:
    source = ClusterSource(cluster)
    with pytest.raises(NotFound) as missing:
        async with source.lister_watcher(WIDGETS).list(ListRequest()):
            pytest.fail("nothing is listed")
    assert missing.value.phase == "list"
    with pytest.raises(BadRequest) as misspelled:
        async with source.lister_watcher(PODS, labels="a===").watch(WatchRequest("1", 60)):
            pytest.fail("nothing is watched")
    assert misspelled.value.phase == "watch"


async def test_an_expired_token_is_raised_with_the_fresh_one(cluster: Cluster) -> None:
    source = ClusterSource(cluster).lister_watcher(PODS)
    async with source.list(ListRequest("", 1)) as chunks:
        page = b"".join([chunk async for chunk in chunks])
    cluster.delete("pods", "c")
    cluster.compact()
    token = msgspec.json.decode(page)["metadata"]["continue"]
    with pytest.raises(Expired) as caught:
        async with source.list(ListRequest("", 1, token)):
            pytest.fail("nothing is listed")
    assert caught.value.status.continue_token


# -- discovery ---------------------------------------------------------------------------------


async def test_a_resource_is_served_until_it_is_removed(cluster: Cluster) -> None:
    source = ClusterSource(cluster).lister_watcher(WIDGETS)
    assert await source.discover() is None
    cluster.add_resource(WIDGETS)
    assert await source.discover() == WIDGETS
    cluster.remove_resource(WIDGETS)
    assert await source.discover() is None


async def test_a_resource_that_changed_its_version_is_served_in_the_preferred_one(
    cluster: Cluster,
) -> None:
    source = ClusterSource(cluster).lister_watcher(WIDGETS)
    for version in ("v2beta1", "v2"):
        cluster.add_resource(replace(WIDGETS, version=version))
    assert await source.discover() == replace(WIDGETS, version="v2")
    cluster.add_resource(WIDGETS)
    assert await source.discover() == WIDGETS


async def test_faults_concern_discovery(cluster: Cluster) -> None:
    source = ClusterSource(cluster)
    reader = source.lister_watcher(WIDGETS)
    with source.faults.status(503, verb="get"), pytest.raises(ServerFailure) as caught:
        await reader.discover()
    assert caught.value.phase == "discovery"
    with source.faults.forbid(), pytest.raises(Forbidden):
        await reader.discover()
    with source.faults.refuse(), pytest.raises(ConnectionFailed):
        await reader.discover()
    with source.faults.forbid(verb="list"):
        assert await reader.discover() is None


async def test_a_client_discovers_the_same_over_http(cluster: Cluster) -> None:
    """A client reads discovery documents; the source reads the resources of the cluster."""
    source = ClusterSource(cluster).lister_watcher(WIDGETS)
    states: list[Resource | None] = []
    async with ApiServer(cluster) as server:
        for versions in ((), ("v1",), ("v1", "v2"), ("v2",), ("v2", "v3alpha1"), ("v3alpha1",)):
            for version in versions:
                cluster.add_resource(replace(WIDGETS, version=version))
            states.append(await source.discover())
            async with Client(
                server.url
            ) as client:  # a new client, since a client caches the answer
                assert await client.lister_watcher(WIDGETS).discover() == states[-1]
            for version in versions:
                cluster.remove_resource(replace(WIDGETS, version=version))
    assert [state and state.version for state in states] == [
        None,
        "v1",
        "v1",
        "v2",
        "v2",
        "v3alpha1",
    ]
