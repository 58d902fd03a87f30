"""The reflector: reads a list, then a watch, for ever, and feeds what comes into the queue.

It is a thin shell. What to ask for next, and after what wait, is the cursor's table; cutting
bytes into objects is the wires'; the network is behind ``ListerWatcher``, which is declared here,
by its consumer. What is left is: ask, read, hand on, give way, wait.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import NoReturn, Protocol

from aioinformer._core.backoff import Backoff, BackoffPolicy
from aioinformer._core.cursor import (
    SHORT_WATCH,
    Cursor,
    ListRequest,
    Request,
    WatchRequest,
)
from aioinformer._core.deltas import Bookmark, Delta
from aioinformer._core.list_wire import ListDecoder
from aioinformer._core.objects import KubeObject
from aioinformer._core.outcomes import Outcome, classify
from aioinformer._core.resources import Resource
from aioinformer._core.wire import LINE_CAP, EventDecoder, LineSplitter
from aioinformer._runtime.delta_queue import DeltaQueue
from aioinformer._runtime.health import Condition
from aioinformer._runtime.pace import Pace
from aioinformer.errors import ConnectionLost, FetchError, ServerError

__all__ = ["ListerWatcher", "Reflector"]

log = logging.getLogger("aioinformer.reflector")


class ListerWatcher(Protocol):
    """Lists and watches one resource in one scope. ``Client.lister_watcher`` makes them.

    Entering a context sends the request; it raises a ``FetchError`` unless the server answers
    with 200. What is iterated are the bytes of the body, cut as they happened to arrive; a
    connection that breaks raises a ``TransportError`` there. Leaving the context early closes
    the connection.
    """

    @property
    def resource(self) -> Resource:
        """What is listed and watched."""
        ...

    def list(self, request: ListRequest) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Ask for a page of the list."""
        ...

    def watch(self, request: WatchRequest) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Ask for the stream of changes."""
        ...


class Reflector:
    """Keeps a queue fed with the state of one resource in one scope, and its changes."""

    def __init__(
        self,
        source: ListerWatcher,
        queue: DeltaQueue,
        *,
        backoff: BackoffPolicy | None = None,
        page_size: int = 0,
        managed_fields: bool = False,
        line_cap: int = LINE_CAP,
    ) -> None:
        """Make a reflector; ``run`` starts it.

        Args:
            source: where to ask.
            queue: what to feed.
            backoff: how long to wait after failures.
            page_size: items a page; 0 for client-go's rule (500, or whatever the server's cache
                gives).
            managed_fields: whether objects keep their managedFields.
            line_cap: the longest watch event, in bytes, that is accepted.
        """
        self._source = source
        self._queue = queue
        self._cursor = Cursor(backoff=Backoff(backoff or BackoffPolicy()), page_size=page_size)
        self._managed_fields = managed_fields
        self._line_cap = line_cap
        self._listed: list[KubeObject] = []
        self._streaming = False
        self.condition = Condition()
        """What the reflector does now, and what went wrong last."""

    @property
    def resource_version(self) -> str:
        """The last version received; the cache may not have applied it yet."""
        return self._cursor.resource_version

    async def run(self) -> NoReturn:
        """List and watch until cancelled."""
        clock = asyncio.get_running_loop().time
        self.condition.start(clock)
        request: Request = self._cursor.request
        while True:
            outcome, retry_after = await self._attempt(request)
            step = self._cursor.advance(
                outcome, now=clock(), jitter=random.random(), retry_after=retry_after
            )
            log.debug("%s: %s, next %s", self._source.resource, outcome.name, step)
            if step.delay:
                self.condition.wait(step.delay)
                await asyncio.sleep(step.delay)
            request = step.request

    async def _attempt(self, request: Request) -> tuple[Outcome, float | None]:
        """Make one request; how it ended, and how long the server asks to wait."""
        self._streaming = False
        try:
            if isinstance(request, ListRequest):
                return await self._list(request), None
            return await self._watch(request), None
        except FetchError as error:
            self._failed(error)
            retry_after = error.status.retry_after if isinstance(error, ServerError) else None
            return classify(error, in_stream=self._streaming), retry_after

    def _failed(self, error: FetchError) -> None:
        self.condition.fail(error)
        log.warning("%s: %s: %s", self._source.resource, type(error).__name__, error)

    async def _list(self, request: ListRequest) -> Outcome:
        self.condition.enter("listing")
        if not request.continue_token:
            self._listed = []
        decoder = ListDecoder(self._source.resource, managed_fields=self._managed_fields)
        page: list[KubeObject] = []
        pace = Pace()
        async with self._source.list(request) as chunks:
            async for chunk in chunks:
                page += decoder.feed(chunk)
                await pace.breathe()
        rest, frame = decoder.close()
        outcome = self._cursor.page(frame.resource_version, frame.continue_token)
        # Only now: a page that broke off is asked for again.
        self._listed += page
        self._listed += rest
        self.condition.succeed()
        if outcome is Outcome.COMPLETE:
            listed, self._listed = self._listed, []
            self._queue.replace(listed, frame.resource_version)
        return outcome

    async def _watch(self, request: WatchRequest) -> Outcome:
        clock = asyncio.get_running_loop().time
        started, changed = clock(), False
        splitter = LineSplitter(cap=self._line_cap)
        decoder = EventDecoder(self._source.resource, managed_fields=self._managed_fields)
        pace = Pace()
        async with self._source.watch(request) as chunks:
            self._streaming = True
            self.condition.enter("watching")
            self.condition.succeed()
            async for chunk in chunks:
                entries = self._accept(splitter.feed(chunk), decoder)
                changed = changed or any(isinstance(entry, Delta) for entry in entries)
                if self._queue.fifo.full:
                    await self._queue.room()
                    pace.rested()
                await pace.breathe()
        if splitter.pending:
            log.debug("%s: half an event at the end", self._source.resource)
        # A bookmark is no progress, and neither is an old event once more: who sends one and hangs
        # up would be asked without a pause. (client-go counts events, and does ask so.)
        moved = self._cursor.resource_version != request.resource_version
        if (changed and moved) or clock() - started >= SHORT_WATCH:
            return Outcome.ENDED
        self._failed(
            ConnectionLost("the watch ended at once, with nothing new in it", phase="watch")
        )
        return Outcome.UNSERVED

    def _accept(self, lines: list[bytes], decoder: EventDecoder) -> list[Delta | Bookmark]:
        """Queue what ``lines`` say, and return it. What came before a bad line counts."""
        entries: list[Delta | Bookmark] = []
        try:
            for line in lines:
                entries.append(decoder.decode(line))  # noqa: PERF401 - an error keeps the rest
        finally:
            self._queue.feed(entries)
            if entries:
                self._cursor.saw(_version(entries[-1]))
        return entries

    def __repr__(self) -> str:
        return f"<Reflector {self._source.resource} {self.condition.state} {self._cursor!r}>"


def _version(entry: Delta | Bookmark) -> str:
    return entry.resource_version if isinstance(entry, Bookmark) else entry.obj.resource_version
