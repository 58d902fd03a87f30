"""A watch for a program of its own: the changes of a resource from one version on, without a cache.

As client-go's ``RetryWatcher``, the iterator raises the errors after which no watch from that
version can work, such as a 410. Unlike that one, this watch notices a connection that is silently
dead, and a server that was restored to an older state.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Generic, Literal, NoReturn, Self, TypeAlias

from msgspec import Struct
from typing_extensions import TypeVar

from aioinformer._core.codec.metadata_form import keep_metadata
from aioinformer._core.listwatch.reflector_requests import NEWEST, ListRequest, Start, WatchRequest
from aioinformer._core.objects.deltas import Bookmark, Delta, DeltaKind, QueueEntry
from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.resources import Resource
from aioinformer._runtime.reading.object_list import ListOptions, decode_model, read_pages
from aioinformer._runtime.reflector.delta_queue import DeltaQueue
from aioinformer._runtime.reflector.lister_watcher import ListerWatcher
from aioinformer._runtime.reflector.reflector import Reflector
from aioinformer.errors import (
    BadRequest,
    Expired,
    FetchError,
    Forbidden,
    NotFound,
    NotRunning,
    Status,
    Unauthorized,
    server_error,
)

T = TypeVar("T", default=KubeObject)

WatchEventType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED"]

_TYPES: dict[DeltaKind, WatchEventType] = {
    "Added": "ADDED",
    "Updated": "MODIFIED",
    "Deleted": "DELETED",
}

FATAL_ERRORS = (Expired, BadRequest, Unauthorized, Forbidden, NotFound)
"""The errors that end the watch: the request is wrong, not permitted, or about forgotten changes.
Failures of the server and of connections are tried again for ever. A malformed stream, and a server
that closes each watch at once, end the watch with a 410: no watch from that version works."""


class WatchEvent(Struct, Generic[T], frozen=True):
    """One change, as the server sent it."""

    type: WatchEventType
    obj: T
    """The new state; the last one for ``DELETED``."""
    key: ObjectKey


class _WatchOnlySource:
    """A source without lists of whole states, which the reflector needs when no watch works.

    The list fails with the error of the watch if that one is fatal, else with a 410, so that the
    reflector ends.
    """

    def __init__(self, source: ListerWatcher) -> None:
        self._source = source
        self._error: FetchError | None = None
        self._version = ""

    @property
    def resource(self) -> Resource:
        return self._source.resource

    @property
    def watch_lists(self) -> bool:
        return False

    @asynccontextmanager
    async def list(self, request: ListRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        if not request.freshness_check:
            raise self._fatal_error()
        async with self._source.list(request) as chunks:
            yield chunks

    @asynccontextmanager
    async def watch(self, request: WatchRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        self._version, self._error = request.resource_version, None
        try:
            async with self._source.watch(request) as chunks:
                yield chunks
        except FetchError as error:
            self._error = error
            raise

    def _fatal_error(self) -> FetchError:
        error = self._error
        if isinstance(error, FATAL_ERRORS):
            return error
        message = f"the changes since resourceVersion {self._version} can't be watched"
        return server_error(
            Status(410, "Expired", f"{message}: {error}" if error else message), phase="watch"
        )


class ObjectWatch(Generic[T]):
    """The changes of a resource, as an async iterator in an async context.

    Leaving the context ends the watch. The server is read while the consumer works, up to a limit
    of the queue; then the socket is no longer read until the consumer has caught up.
    """

    def __init__(
        self,
        source: ListerWatcher,
        resource_version: str = "",
        *,
        model: type[T] | None = None,
        metadata_only: bool = False,
        managed_fields: bool = False,
    ) -> None:
        """Create a watch; entering the context starts it.

        Without a ``resource_version``, it begins after the newest state at the time of entering.
        """
        self.resource_version = resource_version
        """The version up to which changes were returned. A new watch can start there."""
        self._source = source
        self._model = model
        self._queue = DeltaQueue()
        self._reflector = Reflector(
            _WatchOnlySource(source),
            self._queue,
            managed_fields=managed_fields,
            converter=keep_metadata if metadata_only else None,
            fail_fast=FATAL_ERRORS,
            watch_only=True,
        )
        self._task: asyncio.Task[NoReturn] | None = None

    async def __aenter__(self) -> Self:
        """Start the watch.

        Raises:
            FetchError: no version was given, and the newest one could not be read.
        """
        if self._task is not None:
            raise NotRunning(f"{self!r} can be entered only once")
        if not self.resource_version:
            self.resource_version = await self._read_newest_version()
        self._task = asyncio.create_task(
            self._reflector.run(Start(resume_from=self.resource_version)), name=repr(self)
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        task, cancelled = self._task, None
        while task is not None and not task.done():
            task.cancel()
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError as error:
                cancelled = error  # raised when the watch has closed its connection
        if task is not None and not task.cancelled():
            task.exception()  # asyncio logs an exception that nothing has retrieved
        if cancelled is not None:
            raise cancelled

    async def _read_newest_version(self) -> str:
        request = ListRequest(NEWEST, limit=1, freshness_check=True)
        pages = read_pages(self._source, ListOptions[KubeObject](request=request))
        try:
            return (await anext(pages)).resource_version
        finally:
            await pages.aclose()

    def __aiter__(self) -> AsyncIterator[WatchEvent[T]]:
        return self

    async def __anext__(self) -> WatchEvent[T]:
        """Return the next change.

        Raises:
            Expired: the server has forgotten the changes since ``resource_version``: list again.
            BadRequest, Unauthorized, Forbidden, NotFound: the server rejected the watch.
            ModelMismatch: the object doesn't fit ``model``. The next call returns the next change.
            NotRunning: the context wasn't entered, or was left.
        """
        while True:
            entry = self._queue.pop()
            if entry is None:
                await self._wait_for_entries()
                continue
            event = self._take(entry)
            if event is not None:
                return event

    def _take(self, entry: QueueEntry) -> WatchEvent[T] | None:
        if isinstance(entry, Delta):
            obj = entry.obj
            self.resource_version = obj.resource_version or self.resource_version
            return WatchEvent(_TYPES[entry.kind], decode_model(obj, self._model), obj.key)
        if isinstance(entry, Bookmark):
            self.resource_version = entry.resource_version or self.resource_version
            return None
        raise AssertionError(f"a watch without lists got {entry!r}")  # see _WatchOnlySource

    async def _wait_for_entries(self) -> None:
        task = self._task
        if task is None:
            raise NotRunning(f"{self!r} is not open: use it inside `async with`")
        ready = asyncio.create_task(self._queue.ready())
        try:
            await asyncio.wait([task, ready], return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
        if self._queue.fifo:
            return
        if task.cancelled():
            raise NotRunning(f"{self!r} has ended")
        if task.done():
            task.result()  # raises the error

    def __repr__(self) -> str:
        return f"<ObjectWatch of {self._source.resource} after {self.resource_version or 'now'}>"
