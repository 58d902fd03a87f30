"""The split of a resource into shards is that of the API server itself (KEP-5866)."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from aioinformer import (
    CacheFile,
    Client,
    Event,
    Shard,
    SharedInformer,
    SharedInformerFactory,
)
from aioinformer._core.sharding.ranges import HashRanges, ShardKey
from tests.apiserver.server.server_process import AdminClient, ApiServerProcess, Json, wait_until
from tests.cachefile.programs import RequestLog
from tests.runtime.scopes.memory_assignment import MemoryAssignment

pytestmark = pytest.mark.apiserver

GATE = "--feature-gates=ShardedListAndWatch=true"
COUNT = 4


@asynccontextmanager
async def server_with(
    binary: Path, data: Path, folder: Path, *options: str
) -> AsyncGenerator[ApiServerProcess]:
    """Run a server with widgets and these options."""
    shutil.copytree(data, folder, ignore=shutil.ignore_patterns("*.log"))
    server = ApiServerProcess(binary, folder, *options)
    await server.start()
    try:
        yield server
    finally:
        await server.kill()


def keys(informer: SharedInformer) -> set[str]:
    return {str(obj.key) for obj in informer.lister.list()}


def widget(name: str) -> Json:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}}


async def create_widgets(admin: AdminClient, first: int, last: int) -> None:
    for number in range(first, last):
        await admin.create(widget(f"w{number}"), f"team-{number % 5}")


@pytest.mark.parametrize("by", ["uid", "namespace"])
@pytest.mark.parametrize("watch_list", [True, False], ids=["watchlist", "list"])
async def test_the_server_and_the_informer_select_the_same_objects_by_hash(
    apiserver_binary: Path,
    data_with_widgets: Path,
    tmp_path: Path,
    by: ShardKey,
    watch_list: bool,
) -> None:
    """Both must drop the same objects: the server by its selector, the informer by its hash."""
    async with (
        server_with(apiserver_binary, data_with_widgets, tmp_path / "s", GATE) as server,
        AdminClient(server) as admin,
        Client.connect(kubeconfig=server.kubeconfig) as client,
        SharedInformerFactory(client, watch_list=watch_list, page_size=10) as informers,
    ):
        await create_widgets(admin, 0, 40)
        widgets = await client.resource("widgets.example.com")
        every = informers.informer(widgets)
        shards = [informers.informer(widgets, shard=Shard(i, COUNT, by)) for i in range(COUNT)]
        await informers.wait_synced(30)
        await create_widgets(admin, 40, 60)
        await wait_until(lambda: settled(every, shards, 60))
        for index, shard in enumerate(shards):
            ranges = HashRanges.of([index], COUNT, by)
            objects = every.lister.list()
            expected = {str(obj.key) for obj in objects if ranges.has(obj.uid, obj.key.namespace)}
            # The server has selected: not one object of another shard has arrived, and so what
            # the hash selects here is all that the server has sent.
            assert (shard.health.shard_filter, shard.health.other_shards) == ("server", 0)
            assert keys(shard) == expected
        assert sum(len(keys(each)) for each in shards) == 60


async def settled(every: SharedInformer, shards: list[SharedInformer], count: int) -> bool:
    return len(keys(every)) == count == sum(len(keys(each)) for each in shards)


async def has_all(events: list[str], expected: set[str]) -> bool:
    return set(events) == expected


async def test_no_event_is_lost_when_the_server_stops_and_starts_to_select_by_shard(
    apiserver_binary: Path, data_with_widgets: Path, tmp_path: Path
) -> None:
    """Upgrade and rollback: the gate on, off, and on again, on one port with one etcd."""
    folder = tmp_path / "s"
    events: list[str] = []
    shutil.copytree(data_with_widgets, folder, ignore=shutil.ignore_patterns("*.log"))
    on = ApiServerProcess(apiserver_binary, folder, GATE)
    off = ApiServerProcess(apiserver_binary, folder)
    await on.start()
    running = on
    try:
        async with (
            Client.connect(kubeconfig=on.kubeconfig) as client,
            SharedInformerFactory(client) as informers,
        ):
            off.url = on.url
            widgets = await client.resource("widgets.example.com")
            shard = informers.informer(widgets, shard=Shard(1, 2))

            async def record(event: Event) -> None:
                events.append(f"{type(event).__name__} {event.obj.name}")

            shard.add_handler(record, overflow="block")
            await informers.wait_synced(30)
            expected: set[str] = set()
            for round_number, server in enumerate((on, off, on)):
                if server is not running:
                    await running.kill()
                    await server.start()
                    running = server
                async with AdminClient(server) as admin:
                    for number in range(10):
                        name = f"r{round_number}-{number}"
                        body = await admin.create(widget(name))
                        uid = body["metadata"]["uid"]
                        if HashRanges.of([1], 2, "uid").has(uid, ""):
                            expected.add(f"Added {name}")
                await wait_until(partial(has_all, events, expected))
            assert sorted(events) == sorted(expected)
            assert len(expected) > 5
            assert shard.health.other_shards > 0, "the server without the gate sent all objects"
    finally:
        await running.kill()


@pytest.mark.parametrize("gate", [True, False], ids=["selects", "ignores"])
async def test_shards_of_a_group_are_resumed_from_a_cache_file_without_a_list(
    apiserver_binary: Path, data_with_widgets: Path, tmp_path: Path, gate: bool
) -> None:
    options = [GATE] if gate else []
    async with (
        server_with(apiserver_binary, data_with_widgets, tmp_path / "s", *options) as server,
        AdminClient(server) as admin,
        Client.connect(kubeconfig=server.kubeconfig) as client,
    ):
        await create_widgets(admin, 0, 40)
        widgets = await client.resource("widgets.example.com")
        for run in range(2):
            group, requests = MemoryAssignment(), RequestLog()
            cache = CacheFile(tmp_path / "cache.db")
            async with SharedInformerFactory(client, cache=cache, metrics=requests) as informers:
                shards = informers.informer(widgets, shard=group)
                await informers.wait_synced(30)
                group.assign([0, 1])
                await wait_until(partial(shows, admin, shards, [0, 1]))
                held = [0, 1, 5]
                group.assign(held)
                created = 80 + 100 * run
                # The watch of the others may be newer than the last change of shard 5 in the file.
                # This server sends no bookmark within seconds, so that the state of shard 5 is as
                # new only after another change. Without one, the whole state would be read.
                while not await shows(admin, shards, held):
                    await create_widgets(admin, created, created + 2)
                    created += 2
                    await asyncio.sleep(0.2)
                if run == 0:
                    await create_widgets(admin, 40, 60)  # the watch reaches the state of shard 5
                    await wait_until(partial(shows, admin, shards, held))
                    assert {"list", "watchlist"} & set(requests.verbs)
                else:
                    assert not {"list", "watchlist", "page"} & set(requests.verbs)
                    assert await shards.verify(timeout=30)
            if run == 0:
                await create_widgets(admin, 60, 80)


async def shows(admin: AdminClient, informer: SharedInformer, held: list[int]) -> bool:
    """Return True if an informer shows the widgets of these shards."""
    ranges = HashRanges.of(held, 8, "uid")
    found = [each["metadata"] for each in (await admin.list())["items"]]
    expected = {f"{m['namespace']}/{m['name']}" for m in found if ranges.has(m["uid"], "")}
    return keys(informer) == expected
