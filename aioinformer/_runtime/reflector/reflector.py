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

from typing_extensions import Unpack

from aioinformer._core.codec.list_decoder import ListDecoder
from aioinformer._core.codec.shape import Converter
from aioinformer._core.codec.watch_decoder import InitialList, WatchDecoder
from aioinformer._core.listwatch.availability import ResourceAvailability
from aioinformer._core.listwatch.backoff import Backoff
from aioinformer._core.listwatch.outcomes import Outcome, classify
from aioinformer._core.listwatch.requests import AnyRequest, ListRequest, WatchRequest
from aioinformer._core.listwatch.server_profile import ServerProfile
from aioinformer._core.listwatch.state_machine import ListWatchState
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._runtime.reflector.delta_queue import DeltaQueue
from aioinformer._runtime.reflector.lister_watcher import (
    ListerWatcher,
    SharedSlot,
    SupportsDiscovery,
)
from aioinformer._runtime.reflector.options import ReflectorKeywords, ReflectorOptions
from aioinformer._runtime.reflector.watch_reader import WatchReader
from aioinformer._runtime.reflector.watchdog import Watchdog
from aioinformer._runtime.reporting.health import ReflectorStatus
from aioinformer._runtime.reporting.reporter import InformerReporter
from aioinformer._runtime.tasks.event_loop import TimeSlice
from aioinformer.errors import (
    FetchError,
    ProtocolError,
    RequestTimedOut,
    ResourceMoved,
    ServerError,
    ServerRewound,
)

__all__ = ["Reflector"]


def _unchanged(obj: KubeObject) -> KubeObject:
    return obj


def _stale_list_error(request: ListRequest) -> ProtocolError | None:
    """What is wrong with a list that is older than a state seen before. A probe is no list: what
    it found is told when the state was read.
    """
    said = "the list is older than the one asked for; the newest state is read instead"
    return None if request.freshness_check else ProtocolError(said, phase="list")


class Reflector:
    """Keeps a queue fed with the state of one resource in one scope, and its changes."""

    def __init__(
        self,
        source: ListerWatcher,
        queue: DeltaQueue,
        *,
        options: ReflectorOptions | None = None,
        habits: ServerProfile | None = None,
        managed_fields: bool = False,
        keep: Converter | None = None,
        known: Callable[[KubeObject], KubeObject] = _unchanged,
        fail_fast: tuple[type[FetchError], ...] = (),
        reports: InformerReporter | None = None,
        **keywords: Unpack[ReflectorKeywords],
    ) -> None:
        """Create a reflector; ``run`` starts it.

        Args:
            source: the source of lists and watches.
            queue: the queue that the reflector feeds.
            options: the options; default: ``ReflectorOptions()``.
            habits: the server's behaviour for this resource, shared by its informers.
            managed_fields: True keeps ``metadata.managedFields`` in the objects.
            keep: converts an object that was read to its stored form (``Shape.keep``); ``None``
                stores objects unchanged.
            known: returns the cached object if it is the same version as the one that was read,
                so that a relist doesn't hold it twice (``Indexer.deduplicate``).
            fail_fast: errors that ``run`` raises instead of trying again.
            reports: receives states, numbers and problems.
            **keywords: single options, by the names of ``ReflectorOptions``' fields.
        """
        self._options = options = (options or ReflectorOptions()).merge(keywords)
        self._source = source
        self._queue = queue
        self._availability = ResourceAvailability()
        self._state = ListWatchState(
            backoff=Backoff(options.backoff),
            page_size=options.page_size,
            profile=habits,
            watch_list=options.watch_list and source.watch_lists,
            discovery=isinstance(source, SupportsDiscovery),
        )
        self._managed_fields = managed_fields
        self._converter = keep
        self._find_cached = known
        self._fail_fast = fail_fast
        self._listed: list[KubeObject] = []
        self._opened = False
        self.reports = reports or InformerReporter(str(source.resource))
        """Where it tells what happens."""

    @property
    def resource_version(self) -> str:
        """The last version received; the cache may not have applied it yet."""
        return self._state.resource_version

    @property
    def source(self) -> ListerWatcher:
        """What it reads; another one once the resource is served in another version."""
        return self._source

    @property
    def condition(self) -> ReflectorStatus:
        """What it does now, and what went wrong last."""
        return self.reports.status

    @property
    def strategy(self) -> Literal["watchlist", "list"]:
        """How the state is, or was last, read."""
        return "watchlist" if self._state.used_watchlist else "list"

    async def run(self) -> NoReturn:
        """List and watch until cancelled.

        Raises:
            FetchError: one of ``fail_fast``.
        """
        clock = asyncio.get_running_loop().time
        self.reports.start(clock)
        request = self._state.begin(now=clock(), jitter=random.random())
        while True:
            outcome, error = await self._attempt(request)
            retry_after = error.status.retry_after if isinstance(error, ServerError) else None
            step = self._state.advance(
                outcome, now=clock(), jitter=random.random(), retry_after=retry_after
            )
            self.reports.request_ended(outcome, error, step.delay)
            if error is not None and isinstance(error, self._fail_fast):
                raise error
            if step.delay:
                await asyncio.sleep(step.delay)
            request = step.request

    async def _attempt(self, request: AnyRequest) -> tuple[Outcome, FetchError | None]:
        """Make one request: how it ended, and with what error."""
        self._opened = False
        self.reports.request_started(request)
        try:
            if isinstance(request, ListRequest):
                outcome = await self._list(request)
                return outcome, _stale_list_error(request) if outcome is Outcome.REWOUND else None
            if isinstance(request, WatchRequest):
                return await self._watch(request)
            return await self._check_served(), None
        except FetchError as error:
            return classify(error, opened=self._opened), error
        except asyncio.CancelledError:
            self.reports.request_cancelled()
            raise

    @property
    def _deduplicate(self) -> Callable[[KubeObject], KubeObject]:
        # A server that has gone back in time gives versions a second time, to other objects.
        return self._find_cached if self._state.versions_comparable else _unchanged

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
            outcome = self._state.finish_page(frame.resource_version, frame.continue_token)
            if outcome is Outcome.COMPLETE and isinstance(chunks, SharedSlot):
                chunks.release()
        if request.freshness_check:
            return outcome
        # Only now: a page that broke off is asked for again.
        self._listed += page
        self._listed += self._convert(rest)
        if outcome is Outcome.COMPLETE:
            listed, self._listed = self._listed, []
            self._publish_list(listed)
            self.reports.mark_fresh(asyncio.get_running_loop().time())
        return outcome

    async def _read_page(
        self, chunks: AsyncIterator[bytes], decoder: ListDecoder
    ) -> list[KubeObject]:
        page: list[KubeObject] = []
        pace, total = TimeSlice(), self._options.liveness.list_total
        limit = asyncio.timeout(total)
        try:
            async with limit:
                async for chunk in chunks:
                    objects = decoder.feed(chunk)
                    if self._converter is None:
                        page += self._convert(objects)
                    else:  # a program's code, or a model's: each object may take a while
                        for obj in objects:
                            page += self._convert((obj,))
                            await pace.maybe_yield()
                    self.reports.received(len(chunk), len(objects))
                    await pace.maybe_yield()
        except TimeoutError as error:
            if not limit.expired():
                raise
            said = f"the list has not ended after {total:g} s, and was given up"
            raise RequestTimedOut(said, phase="list") from error
        return page

    def _convert(self, objects: Iterable[KubeObject]) -> Iterator[KubeObject]:
        """What is kept of them, or is in memory already."""
        return map(
            self._deduplicate, objects if self._converter is None else map(self._converter, objects)
        )

    def _publish_list(self, objects: Sequence[KubeObject]) -> None:
        """A whole state was read; the cursor knows its version."""
        self._availability.reset()
        version = self._state.resource_version
        self._queue.replace(objects, version, rewound=self._state.by_content)
        if self._state.version_went_back:
            self.reports.server_rewound(ServerRewound(str(self._source.resource), version))

    # -- watches -------------------------------------------------------------------------------

    async def _watch(self, request: WatchRequest) -> tuple[Outcome, FetchError | None]:
        self._listed = []  # of a list that was given up halfway
        intake = WatchDecoder(
            self._source.resource,
            initial=InitialList(self._deduplicate) if request.initial else None,
            managed_fields=self._managed_fields,
            line_cap=self._options.line_cap,
            converter=self._converter,
        )
        stream = WatchReader(
            request, intake, self._queue, self._state, self.reports, publish_list=self._publish_list
        )
        async with Watchdog() as watchdog, self._source.watch(request) as chunks:
            self._opened = True
            await stream.read(chunks, watchdog, self._options.liveness)
        return stream.classify_timeout() if watchdog.expired else stream.classify_end()

    # -- is it served at all? ------------------------------------------------------------------

    async def _check_served(self) -> Outcome:
        source = self._source
        if not isinstance(source, SupportsDiscovery):
            return Outcome.SERVED  # as far as anybody can tell
        found = await source.discover()
        asked, was_certain = source.resource, self._availability.absence_confirmed
        outcome = self._availability.record(found, asked, asyncio.get_running_loop().time())
        if outcome is Outcome.NOT_SERVED:
            certain = self._availability.absence_confirmed and not was_certain
            self.reports.resource_absent(confirmed=certain)
            if certain and self._state.resource_version:
                # Not before the first state: an empty cache must not pass for a synced one.
                self._queue.replace([], self._state.resource_version, reason="resource_gone")
        elif found is not None and outcome is Outcome.API_VERSION_CHANGED:
            self._source = source.with_resource(found)
            self._state.compare_by_content()
            self.reports.resource_moved(
                ResourceMoved(f"{asked} ({asked.api_version})", found.api_version)
            )
        return outcome

    def __repr__(self) -> str:
        return f"<Reflector {self._source.resource} {self.condition.state} {self._state!r}>"
