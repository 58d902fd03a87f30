"""A cluster in the place of a client: bytes in the shape that a reflector reads."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from aioinformer._core.cursor import ListRequest, WatchRequest
from aioinformer._core.resources import find_built_in
from aioinformer.errors import BadRequest, Expired, NotFound
from aioinformer.testing import Cluster, ClusterSource, ManualClock
from tests.testing.exchanges import WIDGETS

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


async def test_a_long_list_comes_in_pieces_and_leaves_the_loop_to_others() -> None:
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


async def test_a_watch_tells_what_happens_while_it_is_read(cluster: Cluster) -> None:
    source = ClusterSource(cluster).lister_watcher(PODS, fields="metadata.name!=b")
    async with source.watch(WatchRequest(str(cluster.resource_version), 60)) as lines:
        first = asyncio.ensure_future(anext(lines))
        await asyncio.sleep(0)
        cluster.delete("pods", "b")
        cluster.delete("pods", "c")
        assert read(await first) == ("DELETED", "c")
        cluster.delete("pods", "a")
        assert read(await anext(lines)) == ("DELETED", "a")


async def test_a_watch_ends_when_its_time_is_up(cluster: Cluster) -> None:
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
        types = [read(line)[0] async for line in lines]
    assert types == ["DELETED", "BOOKMARK"]


async def test_leaving_a_watch_closes_it(cluster: Cluster) -> None:
    source = ClusterSource(cluster).lister_watcher(PODS)
    async with source.watch(WatchRequest("1", 60)) as lines:
        assert read(await anext(lines)) == ("ADDED", "a")
        assert "1 watches" in repr(cluster)
    assert "0 watches" in repr(cluster)
    assert [line async for line in lines] == []


async def test_a_cancelled_reader_loses_no_event(cluster: Cluster) -> None:
    source = ClusterSource(cluster).lister_watcher(PODS)
    async with source.watch(WatchRequest(str(cluster.resource_version), 60)) as lines:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await anext(lines)
    assert "0 watches" in repr(cluster)


async def test_a_refusal_is_raised_on_entering_with_its_phase(cluster: Cluster) -> None:
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
