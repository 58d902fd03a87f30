"""The reflector: a coroutine that lists, watches for ever, and feeds a queue.

It carries bytes from a ``ListerWatcher`` to ``_core``, which decides everything: what they mean,
what to ask for next and when, when silence has lasted too long. Whatever goes wrong is told to
``reports`` and tried again.

When the queue is full, the socket isn't read: the server or the connection notices a consumer
that is too slow, memory doesn't.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import Literal, NoReturn

from aioinformer._core.codec.list_decoder import ListDecoder
from aioinformer._core.codec.shape import Keep
from aioinformer._core.codec.watch_decoder import LINE_CAP, InitialState, Intake
from aioinformer._core.listwatch.availability import Absence
from aioinformer._core.listwatch.backoff import Backoff, BackoffPolicy
from aioinformer._core.listwatch.idle_timeout import LivenessPolicy
from aioinformer._core.listwatch.outcomes import Outcome, classify
from aioinformer._core.listwatch.requests import AnyRequest, ListRequest, WatchRequest
from aioinformer._core.listwatch.server_profile import Habits
from aioinformer._core.listwatch.state_machine import Cursor
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._runtime.reflector.delta_queue import DeltaQueue
from aioinformer._runtime.reflector.lister_watcher import ListerWatcher, Locatable, Shared
from aioinformer._runtime.reflector.watch_reader import WatchStream
from aioinformer._runtime.reflector.watchdog import Watchdog
from aioinformer._runtime.reporting.health import Condition
from aioinformer._runtime.reporting.reporter import Reports
from aioinformer._runtime.tasks.event_loop import Pace
from aioinformer.errors import (
    FetchError,
    ProtocolError,
    RequestTimedOut,
    ResourceMoved,
    ServerError,
    ServerRewound,
)

__all__ = ["Reflector"]


def _same(obj: KubeObject) -> KubeObject:
    return obj


def _too_old(request: ListRequest) -> ProtocolError | None:
    """What is wrong with a list that is older than a state seen before. A probe is no list: what
    it found is told when the state was read.
    """
    said = "the list is older than the one asked for; the newest state is read instead"
    return None if request.probe else ProtocolError(said, phase="list")


class Reflector:
    """Keeps a queue fed with the state of one resource in one scope, and its changes."""

    def __init__(
        self,
        source: ListerWatcher,
        queue: DeltaQueue,
        *,
        backoff: BackoffPolicy | None = None,
        liveness: LivenessPolicy | None = None,
        habits: Habits | None = None,
        watch_list: bool = True,
        page_size: int = 0,
        managed_fields: bool = False,
        line_cap: int = LINE_CAP,
        keep: Keep | None = None,
        known: Callable[[KubeObject], KubeObject] = _same,
        fail_fast: tuple[type[FetchError], ...] = (),
        reports: Reports | None = None,
    ) -> None:
        """Make a reflector; ``run`` starts it.

        Args:
            source: where to ask.
            queue: what to feed.
            backoff: how long to wait after failures.
            liveness: how long to bear silence.
            habits: what is known of how the resource is served; shared by its informers.
            watch_list: whether to get the state by a WatchList where the source and the server
                can do that, rather than by a list.
            page_size: items a page; 0 for client-go's rule (500, or whatever the server's cache
                gives).
            managed_fields: whether objects keep their managedFields.
            line_cap: the longest watch event, in bytes, that is accepted.
            known: gives the object in memory that is the same version of one that was read, so
                that a relist doesn't hold it twice; ``Indexer.known``.
            keep: what makes of an object what is kept of it (``Shape.keep``); ``None`` for the
                object itself.
            fail_fast: errors that are raised from ``run`` instead of being tried again.
            reports: where to tell what happens.
        """
        self._source = source
        self._queue = queue
        self._absence = Absence()
        self._cursor = Cursor(
            backoff=Backoff(backoff or BackoffPolicy()),
            page_size=page_size,
            habits=habits,
            watch_list=watch_list and source.watch_lists,
            lookup=isinstance(source, Locatable),
        )
        self._liveness = liveness or LivenessPolicy()
        self._managed_fields = managed_fields
        self._line_cap = line_cap
        self._keep = keep
        self._known = known
        self._fail_fast = fail_fast
        self._listed: list[KubeObject] = []
        self._opened = False
        self.reports = reports or Reports(str(source.resource))
        """Where it tells what happens."""

    @property
    def resource_version(self) -> str:
        """The last version received; the cache may not have applied it yet."""
        return self._cursor.resource_version

    @property
    def source(self) -> ListerWatcher:
        """What it reads; another one once the resource is served in another version."""
        return self._source

    @property
    def condition(self) -> Condition:
        """What it does now, and what went wrong last."""
        return self.reports.condition

    @property
    def strategy(self) -> Literal["watchlist", "list"]:
        """How the state is, or was last, read."""
        return "watchlist" if self._cursor.streamed else "list"

    async def run(self) -> NoReturn:
        """List and watch until cancelled.

        Raises:
            FetchError: one of ``fail_fast``.
        """
        clock = asyncio.get_running_loop().time
        self.reports.start(clock)
        request = self._cursor.begin(now=clock(), jitter=random.random())
        while True:
            outcome, error = await self._attempt(request)
            retry_after = error.status.retry_after if isinstance(error, ServerError) else None
            step = self._cursor.advance(
                outcome, now=clock(), jitter=random.random(), retry_after=retry_after
            )
            self.reports.ended(outcome, error, step.delay)
            if error is not None and isinstance(error, self._fail_fast):
                raise error
            if step.delay:
                await asyncio.sleep(step.delay)
            request = step.request

    async def _attempt(self, request: AnyRequest) -> tuple[Outcome, FetchError | None]:
        """Make one request: how it ended, and with what error."""
        self._opened = False
        self.reports.asked(request)
        try:
            if isinstance(request, ListRequest):
                outcome = await self._list(request)
                return outcome, _too_old(request) if outcome is Outcome.REWOUND else None
            if isinstance(request, WatchRequest):
                return await self._watch(request)
            return await self._look_up(), None
        except FetchError as error:
            return classify(error, opened=self._opened), error
        except asyncio.CancelledError:
            self.reports.cancelled()
            raise

    @property
    def _reuse(self) -> Callable[[KubeObject], KubeObject]:
        # A server that has gone back in time gives versions a second time, to other objects.
        return self._known if self._cursor.trusted else _same

    # -- lists ---------------------------------------------------------------------------------

    async def _list(self, request: ListRequest) -> Outcome:
        if not request.continue_token:
            self._listed = []
        decoder = ListDecoder(self._source.resource, managed_fields=self._managed_fields)
        async with self._source.list(request) as chunks:
            self._opened = True
            page = await self._read_page(chunks, decoder)
            rest, frame = decoder.close()
            self.reports.received(0, len(rest))
            outcome = self._cursor.page(frame.resource_version, frame.continue_token)
            if outcome is Outcome.COMPLETE and isinstance(chunks, Shared):
                chunks.settled()
        if request.probe:
            return outcome
        # Only now: a page that broke off is asked for again.
        self._listed += page
        self._listed += self._kept(rest)
        if outcome is Outcome.COMPLETE:
            listed, self._listed = self._listed, []
            self._arrived(listed)
            self.reports.fresh(asyncio.get_running_loop().time())
        return outcome

    async def _read_page(
        self, chunks: AsyncIterator[bytes], decoder: ListDecoder
    ) -> list[KubeObject]:
        page: list[KubeObject] = []
        pace, total = Pace(), self._liveness.list_total
        limit = asyncio.timeout(total)
        try:
            async with limit:
                async for chunk in chunks:
                    objects = decoder.feed(chunk)
                    if self._keep is None:
                        page += self._kept(objects)
                    else:  # a program's code, or a model's: each object may take a while
                        for obj in objects:
                            page += self._kept((obj,))
                            await pace.breathe()
                    self.reports.received(len(chunk), len(objects))
                    await pace.breathe()
        except TimeoutError as error:
            if not limit.expired():
                raise
            said = f"the list has not ended after {total:g} s, and was given up"
            raise RequestTimedOut(said, phase="list") from error
        return page

    def _kept(self, objects: Iterable[KubeObject]) -> Iterator[KubeObject]:
        """What is kept of them, or is in memory already."""
        return map(self._reuse, objects if self._keep is None else map(self._keep, objects))

    def _arrived(self, objects: Sequence[KubeObject]) -> None:
        """A whole state was read; the cursor knows its version."""
        self._absence.forget()
        version = self._cursor.resource_version
        self._queue.replace(objects, version, rewound=self._cursor.by_content)
        if self._cursor.rewound:
            self.reports.rewound(ServerRewound(str(self._source.resource), version))

    # -- watches -------------------------------------------------------------------------------

    async def _watch(self, request: WatchRequest) -> tuple[Outcome, FetchError | None]:
        self._listed = []  # of a list that was given up halfway
        intake = Intake(
            self._source.resource,
            initial=InitialState(self._reuse) if request.initial else None,
            managed_fields=self._managed_fields,
            line_cap=self._line_cap,
            keep=self._keep,
        )
        stream = WatchStream(
            request, intake, self._queue, self._cursor, self.reports, arrived=self._arrived
        )
        async with Watchdog() as watchdog, self._source.watch(request) as chunks:
            self._opened = True
            await stream.read(chunks, watchdog, self._liveness)
        return stream.expired() if watchdog.expired else stream.ended()

    # -- is it served at all? ------------------------------------------------------------------

    async def _look_up(self) -> Outcome:
        source = self._source
        if not isinstance(source, Locatable):
            return Outcome.SERVED  # as far as anybody can tell
        found = await source.served()
        asked, was_certain = source.resource, self._absence.confirmed
        outcome = self._absence.hear(found, asked, asyncio.get_running_loop().time())
        if outcome is Outcome.ABSENT:
            certain = self._absence.confirmed and not was_certain
            self.reports.absent(confirmed=certain)
            if certain and self._cursor.resource_version:
                # Not before the first state: an empty cache must not pass for a synced one.
                self._queue.replace([], self._cursor.resource_version, reason="resource_gone")
        elif found is not None and outcome is Outcome.MOVED:
            self._source = source.of(found)
            self._cursor.distrust()
            self.reports.moved(ResourceMoved(f"{asked} ({asked.api_version})", found.api_version))
        return outcome

    def __repr__(self) -> str:
        return f"<Reflector {self._source.resource} {self.condition.state} {self._cursor!r}>"
