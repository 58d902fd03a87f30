"""Reading of the initial list from a real API server, by WatchList and LIST, with interruptions.

``test_promises`` tests the events of changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from aioinformer import (
    BackoffPolicy,
    Client,
    ListerWatcher,
    ListRequest,
    ObjectKey,
    Resource,
    SharedInformer,
    SharedInformerFactory,
    WatchRequest,
)
from aioinformer._core.listwatch.server_profile import ServerProfile
from aioinformer.errors import Status, server_error
from tests.apiserver.server.server_process import AdminClient, ApiServerProcess, Json
from tests.promises.conftest import wait_until
from tests.promises.event_recorder import RecordingHandler, check_event_order, states
from tests.promises.function_lister_watcher import RecordingListerWatcher, loop_time, summarize
from tests.runtime.informers import running_in_background

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(120)]

WIDGETS = Resource("example.com", "v1", "widgets", "Widget", short_names=("wd",))
BACKOFF = BackoffPolicy(initial=0.05, maximum=0.5)
MANY = 1_000


def widget(name: str, *, pad: int = 0, **spec: object) -> Json:
    """Return a widget with the long parts of a pod: containers, conditions, and padding."""
    containers = [{"name": f"c{n}", "image": f"registry.test/shop:{n}"} for n in range(3)]
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name, "labels": {"app": "shop"}},
        "spec": {"size": 1, "containers": containers, "pad": "x" * pad, **spec},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


async def create(admin: AdminClient, count: int, *, pad: int = 0) -> None:
    """So many widgets, twenty at a time."""
    for start in range(0, count, 20):
        names = [f"w-{number:04d}" for number in range(start, min(start + 20, count))]
        await asyncio.gather(*(admin.create(widget(name, pad=pad), "web") for name in names))


async def served(admin: AdminClient) -> dict[ObjectKey, tuple[str, str]]:
    """Return the state of a new list."""
    found = (await admin.list("web"))["items"]
    return {
        ObjectKey(meta["namespace"], meta["name"]): (meta["uid"], meta["resourceVersion"])
        for meta in (item["metadata"] for item in found)
    }


@asynccontextmanager
async def reading(
    server: ApiServerProcess,
    *,
    watch_list: bool = True,
    backoff: BackoffPolicy = BACKOFF,
    profile: ServerProfile | None = None,
) -> AsyncGenerator[tuple[SharedInformer, RecordingListerWatcher]]:
    """Run an informer of the widgets until it is synced, and yield it with its requests."""
    async with Client.connect(kubeconfig=server.kubeconfig) as client:
        noted = RecordingListerWatcher(client.lister_watcher(WIDGETS, namespace="web"))
        widgets = SharedInformer(
            noted, backoff=backoff, watch_list=watch_list, profile=profile, namespace="web"
        )
        async with running_in_background(widgets.run()):
            await widgets.wait_synced(30)
            yield widgets, noted


@dataclass(slots=True, eq=False)
class Held:
    """A ``ListerWatcher`` whose answers aren't read on after some bytes until they may be."""

    source: ListerWatcher
    size: int
    go: asyncio.Event = field(default_factory=asyncio.Event)
    received: int = 0

    @property
    def resource(self) -> Resource:
        return self.source.resource

    @property
    def watch_lists(self) -> bool:
        return self.source.watch_lists

    @asynccontextmanager
    async def list(self, request: ListRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        async with self.source.list(request) as chunks:
            yield self._held(chunks)

    @asynccontextmanager
    async def watch(self, request: WatchRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        async with self.source.watch(request) as chunks:
            yield self._held(chunks)

    async def _held(self, chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
        async for chunk in chunks:
            self.received += len(chunk)
            yield chunk
            if self.received > self.size:
                await self.go.wait()


@dataclass(slots=True, eq=False)
class Forgetful(Held):
    """One that refuses its first request: the version is gone."""

    size: int = 0
    sent: int = 0

    @asynccontextmanager
    async def list(self, request: ListRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        self.sent += 1
        if self.sent == 1:
            raise server_error(Status(410, "Expired", "too old"), phase="list")
        async with self.source.list(request) as chunks:
            yield chunks


def sent(noted: RecordingListerWatcher) -> list[str]:
    """Return the kinds of requests so far."""
    return [summarize(request).split()[0] for _, request in noted.requests]


@pytest.mark.parametrize("watch_list", [True, False], ids=["WatchList", "LIST"])
async def test_a_thousand_widgets_are_read_by_watchlist_and_by_list(
    api_server: ApiServerProcess, admin: AdminClient, *, watch_list: bool
) -> None:
    await create(admin, MANY)
    truth = await served(admin)
    async with reading(api_server, watch_list=watch_list) as (widgets, noted):
        assert widgets.health.strategy == ("watchlist" if watch_list else "list")
        assert states(widgets.lister) == truth
        await admin.merge_patch("w-0007", {"spec": {"size": 2}}, namespace="web")
        await admin.delete("w-0008", namespace="web")
        truth = await served(admin)
        await wait_until(lambda: states(widgets.lister) == truth)
        assert sent(noted) == (["stream"] if watch_list else ["list", "watch"])
        assert widgets.health.error is None


async def test_a_list_in_pages_has_the_same_result(
    api_server: ApiServerProcess, admin: AdminClient
) -> None:
    """The cache ignores a limit; a consistent read doesn't, and that is what follows a 410."""
    await create(admin, 60)
    truth = await served(admin)
    async with Client.connect(kubeconfig=api_server.kubeconfig) as client:
        noted = RecordingListerWatcher(Forgetful(client.lister_watcher(WIDGETS, namespace="web")))
        widgets = SharedInformer(noted, watch_list=False, page_size=7, namespace="web")
        async with running_in_background(widgets.run()):
            await widgets.wait_synced(30)
            assert states(widgets.lister) == truth
            assert sent(noted)[:10] == ["list"] * 2 + ["page"] * 8


@pytest.mark.parametrize("watch_list", [True, False], ids=["WatchList", "LIST"])
async def test_an_expired_version_leads_to_a_new_state_by_the_same_strategy(
    api_server: ApiServerProcess, admin: AdminClient, *, watch_list: bool
) -> None:
    """A restarted server has forgotten the past of watches: what happened before its start."""
    await create(admin, 20)
    late = BackoffPolicy(initial=6.0, jitter=0)  # while the server starts twice
    async with reading(api_server, watch_list=watch_list, backoff=late) as (widgets, noted):
        recorder = RecordingHandler(widgets)
        await widgets.add_handler(recorder).wait_synced(30)
        before = len(noted.requests)
        await api_server.restart()
        await admin.delete("w-0003", namespace="web")
        await admin.merge_patch("w-0004", {"spec": {"size": 9}}, namespace="web")
        truth = await served(admin)
        await api_server.restart()
        await wait_until(lambda: states(widgets.lister) == truth, timeout=40)
        await wait_until(lambda: check_event_order(recorder.events) == truth)
        assert ("stream" if watch_list else "whole") in sent(noted)[before:]
        assert widgets.health.rewinds == 0


@pytest.mark.parametrize("watch_list", [True, False], ids=["WatchList", "LIST"])
async def test_a_server_killed_during_the_initial_list_leaves_no_part_of_it_in_the_cache(
    api_server: ApiServerProcess, admin: AdminClient, *, watch_list: bool
) -> None:
    """Thirty megabytes, of which some have been read: the socket's buffers hold the rest back."""
    await create(admin, 300, pad=100_000)
    truth = await served(admin)
    seen: list[int] = []
    async with Client.connect(kubeconfig=api_server.kubeconfig) as client:
        source = Held(client.lister_watcher(WIDGETS, namespace="web"), 2_000_000)
        widgets = SharedInformer(source, backoff=BACKOFF, watch_list=watch_list, namespace="web")
        widgets.add_handler(lambda _: seen.append(len(widgets.lister.unsynced)))
        async with running_in_background(widgets.run()):
            await wait_until(lambda: source.received > source.size, timeout=30)
            await api_server.kill()
            source.go.set()
            await wait_until(lambda: widgets.health.error is not None, timeout=30)
            assert source.received < 25_000_000
            assert not widgets.synced
            assert len(widgets.lister.unsynced) == 0
            await api_server.start()
            await widgets.wait_synced(45)
            assert states(widgets.lister) == truth
            await wait_until(lambda: len(seen) == len(truth))
    assert set(seen) == {len(truth)}, "the state came at once"


async def test_bookmarks_come_once_a_minute_and_keep_the_informer_fresh(
    api_server: ApiServerProcess, admin: AdminClient
) -> None:
    """Changes in other namespaces advance the version of the informer through bookmarks.

    The first bookmark may come at any time. The interval is measured up to the second one.
    """
    await create(admin, 3)
    profile = ServerProfile()
    async with reading(api_server, profile=profile) as (widgets, noted):
        moved: list[float] = []
        for name in ("elsewhere", "elsewhere-too"):
            before = int(widgets.health.resource_version)
            await admin.create(widget(name), "other")
            await wait_until(lambda: int(widgets.health.resource_version) > before, timeout=75)  # noqa: B023
            moved.append(loop_time())
        assert moved[1] - moved[0] == pytest.approx(60.0, abs=5.0)
        assert profile.bookmark_interval == pytest.approx(60.0, abs=5.0)
        assert widgets.health.fresh is not None
        assert widgets.health.fresh < 5.0
        assert (sent(noted), widgets.health.error) == (["stream"], None)


@pytest.mark.parametrize("watch_list", [True, False], ids=["WatchList", "LIST"])
async def test_metadata_is_read_by_watchlist_and_by_list(
    api_server: ApiServerProcess, admin: AdminClient, *, watch_list: bool
) -> None:
    await create(admin, 20)
    async with (
        Client.connect(kubeconfig=api_server.kubeconfig) as client,
        SharedInformerFactory(client, namespace="web", watch_list=watch_list) as informers,
    ):
        widgets = informers.informer(WIDGETS, metadata_only=True)
        await informers.wait_synced(30)
        assert widgets.health.strategy == ("watchlist" if watch_list else "list")
        await admin.merge_patch("w-0007", {"metadata": {"labels": {"app": "x"}}}, namespace="web")
        await admin.create(widget("w-new"), "web")
        await admin.delete("w-0008", namespace="web")
        truth = await served(admin)
        await wait_until(lambda: states(widgets.lister) == truth)
        for obj in widgets.lister.list():
            assert obj.raw.startswith(b'{"metadata":{')
            assert set(obj) == {"apiVersion", "kind", "metadata"}
            assert obj["kind"] == "Widget"
        assert await widgets.verify(contents=True)


@pytest.mark.parametrize("watch_list", [True, False], ids=["WatchList", "LIST"])
async def test_several_namespaces_are_in_one_cache(
    api_server: ApiServerProcess, admin: AdminClient, *, watch_list: bool
) -> None:
    for namespace in ("web", "shop", "other"):
        await admin.create(widget("first"), namespace)
    async with (
        Client.connect(kubeconfig=api_server.kubeconfig) as client,
        SharedInformerFactory(client, watch_list=watch_list, backoff=BACKOFF) as informers,
    ):
        widgets = informers.informer(WIDGETS, namespaces=["web", "shop"])
        recorder = RecordingHandler(widgets)
        await widgets.add_handler(recorder).wait_synced(30)
        assert sorted(map(str, widgets.lister.keys())) == ["shop/first", "web/first"]
        await admin.create(widget("second"), "shop")
        await admin.delete("first", namespace="web")
        await admin.merge_patch("first", {"spec": {"size": 2}}, namespace="shop")
        await wait_until(lambda: widgets.lister.get("web/first") is None)
        await wait_until(lambda: widgets.lister["shop/first"]["spec"]["size"] == 2)
        widgets.add_namespace("other")
        await wait_until(lambda: widgets.lister.get("other/first") is not None)
        widgets.remove_namespace("shop")
        await wait_until(lambda: list(map(str, widgets.lister.keys())) == ["other/first"])
        await wait_until(lambda: check_event_order(recorder.events) == states(widgets.lister))
        assert await widgets.verify(contents=True)
