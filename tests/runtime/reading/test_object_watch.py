"""Watches without a cache: events, resumption, and errors that end them."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
from msgspec import Struct

from aioinformer import ListRequest, Resource, WatchRequest
from aioinformer._runtime.reading.object_watch import ObjectWatch
from aioinformer.errors import (
    ConnectionFailed,
    ConnectionLost,
    Expired,
    Forbidden,
    ModelMismatch,
    NotRunning,
    Unauthorized,
)
from tests.client.virtual_time import in_virtual_time
from tests.runtime.scripted_source import (
    ErrorResponse,
    ScriptedListerWatcher,
    added,
    bookmark,
    deleted,
    error_event,
    error_response,
    list_response,
    modified,
    scripted_lister_watcher,
    wait_until,
    watch_response,
)

CLOSING_SECONDS = 0.5
"""The time that a ``SlowlyClosedSource`` takes to close a watch."""


class SlowlyClosedSource:
    """A source whose watches take a while to close, as a TLS connection may."""

    watch_lists = False

    def __init__(self, source: ScriptedListerWatcher) -> None:
        self._source = source
        self.resource: Resource = source.resource
        self.closing = asyncio.Event()

    def list(self, request: ListRequest) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._source.list(request)

    @asynccontextmanager
    async def watch(self, request: WatchRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        try:
            async with self._source.watch(request) as chunks:
                yield chunks
        finally:
            self.closing.set()
            await asyncio.sleep(CLOSING_SECONDS)


async def test_changes_come_with_their_type_and_key() -> None:
    source = scripted_lister_watcher(
        watch_response(added("a", 11), modified("a", 12) + deleted("a", 13), never_ends=True)
    )
    async with ObjectWatch(source, "10") as watch:
        found = [await anext(watch) for _ in range(3)]

        assert [(event.type, str(event.key)) for event in found] == [
            ("ADDED", "web/a"),
            ("MODIFIED", "web/a"),
            ("DELETED", "web/a"),
        ]
        assert found[1].obj.resource_version == "12"
        assert watch.resource_version == "13"
    assert source.requests[0].resource_version == "10"
    assert source.open_responses == 0


@in_virtual_time
async def test_a_lost_connection_is_resumed_after_the_last_change() -> None:
    source = scripted_lister_watcher(
        watch_response(added("a", 11), error=ConnectionLost("reset", phase="watch")),
        error_response(503, "ServiceUnavailable"),
        watch_response(added("b", 12), never_ends=True),
    )
    async with ObjectWatch(source, "10") as watch:
        assert [(await anext(watch)).obj.name for _ in range(2)] == ["a", "b"]
    assert [isinstance(each, WatchRequest) for each in source.requests] == [True, False, True]
    assert source.requests[-1].resource_version == "11"


@in_virtual_time
async def test_an_idle_connection_is_replaced() -> None:
    """Nothing arrives after the bookmark, not even the end of the watch."""
    source = scripted_lister_watcher(
        watch_response(bookmark(11), never_ends=True),
        list_response(version="11"),
        watch_response(added("a", 12), never_ends=True),
    )
    async with ObjectWatch(source, "10") as watch:
        assert (await anext(watch)).obj.name == "a"


@in_virtual_time
async def test_bookmarks_move_the_version_and_are_no_events() -> None:
    source = scripted_lister_watcher(watch_response(bookmark(15), added("a", 16), never_ends=True))
    async with ObjectWatch(source, "10") as watch:
        waiting = asyncio.create_task(anext(watch))
        await asyncio.wait_for(waiting, 5)
        assert watch.resource_version == "16"


@pytest.mark.parametrize("as_event", [True, False], ids=["an ERROR event", "a response"])
async def test_an_expired_version_ends_the_watch(as_event: bool) -> None:
    end = (
        watch_response(added("a", 11), error_event(410, "Expired"))
        if as_event
        else error_response(410, "Expired")
    )
    source = scripted_lister_watcher(end)
    async with ObjectWatch(source, "10") as watch:
        if as_event:
            assert (await anext(watch)).obj.name == "a"
        with pytest.raises(Expired):
            await anext(watch)
        with pytest.raises(Expired):
            await anext(watch)


async def test_a_rejected_watch_ends_with_its_error() -> None:
    async with ObjectWatch(scripted_lister_watcher(error_response(403, "Forbidden")), "10") as w:
        with pytest.raises(Forbidden):
            await anext(w)


@in_virtual_time
async def test_a_role_that_may_only_watch_resumes_after_an_outage() -> None:
    """The check of the server's version is a list, which the role doesn't allow."""
    source = scripted_lister_watcher(
        watch_response(added("a", 11), error=ConnectionLost("reset", phase="watch")),
        ErrorResponse(ConnectionFailed("refused")),
        error_response(403, "Forbidden"),
        watch_response(added("b", 12), never_ends=True),
    )
    async with ObjectWatch(source, "10") as watch:
        assert [(await anext(watch)).obj.name for _ in range(2)] == ["a", "b"]
    assert [isinstance(each, WatchRequest) for each in source.requests] == [
        True,
        False,
        False,
        True,
    ]


@in_virtual_time
async def test_credentials_that_expire_in_an_outage_end_the_watch() -> None:
    """The check of the server's version ends nothing; the watch that follows does."""
    source = scripted_lister_watcher(
        ErrorResponse(ConnectionFailed("refused")),
        error_response(401, "Unauthorized"),
        error_response(401, "Unauthorized"),
    )
    async with ObjectWatch(source, "10") as watch:
        with pytest.raises(Unauthorized):
            await anext(watch)
    assert len(source.requests) == 3


@in_virtual_time
@pytest.mark.parametrize("as_event", [True, False], ids=["an ERROR event", "a response"])
async def test_a_server_that_keeps_failing_does_not_end_the_watch(as_event: bool) -> None:
    """The version stays valid until the server says that it has expired."""
    failure = (
        watch_response(error_event(500, "InternalError"))
        if as_event
        else error_response(500, "InternalError")
    )
    source = scripted_lister_watcher(
        *[failure] * 20, watch_response(added("a", 11), never_ends=True)
    )
    async with ObjectWatch(source, "10") as watch:
        assert (await anext(watch)).obj.name == "a"
    assert not any(isinstance(request, ListRequest) for request in source.requests)


@in_virtual_time
async def test_a_malformed_change_ends_the_watch() -> None:
    """A watch from the same version would begin with the same bytes."""
    source = scripted_lister_watcher(watch_response(added("a", 11), b"<html>\n"))
    async with ObjectWatch(source, "10") as watch:
        assert (await anext(watch)).obj.name == "a"
        with pytest.raises(Expired, match=r"can't be watched: .*malformed"):
            await anext(watch)


@in_virtual_time
async def test_a_watch_without_a_cache_sends_no_list() -> None:
    """An informer would list again; a watch without a cache has no use for a list."""
    source = scripted_lister_watcher(*[watch_response()] * 8)
    async with ObjectWatch(source, "10") as watch:
        with pytest.raises(Expired, match="the changes since resourceVersion 10 can't be watched"):
            await anext(watch)
    assert not any(isinstance(request, ListRequest) for request in source.requests)


async def test_a_watch_without_a_version_begins_at_the_newest_one() -> None:
    source = scripted_lister_watcher(
        list_response(version="20"), watch_response(added("a", 21), never_ends=True)
    )
    async with ObjectWatch(source) as watch:
        assert (await anext(watch)).obj.name == "a"
    assert [request.query().get("limit") for request in source.requests] == ["1", None]
    assert source.requests[1].resource_version == "20"


class Metadata(Struct, frozen=True):
    name: str
    size: int


class Model(Struct, frozen=True):
    metadata: Metadata | None = None
    data: str = ""


async def test_an_object_that_does_not_fit_the_model_does_not_end_the_watch() -> None:
    good = b'{"type":"ADDED","object":{"metadata":{"name":"b","resourceVersion":"12","size":1}}}\n'
    source = scripted_lister_watcher(watch_response(added("a", 11), good, never_ends=True))
    async with ObjectWatch(source, "10", model=Model) as watch:
        with pytest.raises(ModelMismatch, match="pods web/a"):
            await anext(watch)
        assert (await anext(watch)).obj.metadata == Metadata("b", 1)


async def test_a_watch_raises_not_running_outside_of_its_context() -> None:
    source = scripted_lister_watcher(watch_response(never_ends=True))
    watch = ObjectWatch(source, "10")
    with pytest.raises(NotRunning, match="use it inside `async with`"):
        await anext(watch)
    async with watch:
        waiting = asyncio.create_task(anext(watch))
        await source.wait_for_request(1)
    with pytest.raises(NotRunning, match="has ended"):
        await waiting
    with pytest.raises(NotRunning, match="can be entered only once"):
        async with watch:
            pass


@in_virtual_time
async def test_a_program_that_is_cancelled_while_it_leaves_a_watch_is_cancelled() -> None:
    source = SlowlyClosedSource(
        scripted_lister_watcher(watch_response(added("a", 11), never_ends=True))
    )

    async def read_one() -> None:
        async with ObjectWatch(source, "10") as watch:
            await anext(watch)

    reading = asyncio.create_task(read_one())
    await source.closing.wait()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert asyncio.all_tasks() == {asyncio.current_task()}, "the watch has ended, too"


async def test_an_error_that_nobody_read_is_no_warning_when_the_watch_is_left() -> None:
    problems: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: problems.append(str(context["message"])))
    source = scripted_lister_watcher(watch_response(added("a", 11)), error_response(410, "Expired"))
    async with ObjectWatch(source, "10") as watch:
        await anext(watch)
        await wait_until(lambda: not source.open_responses and not source.responses)
        await asyncio.sleep(0)
    del watch
    gc.collect()
    assert problems == []
