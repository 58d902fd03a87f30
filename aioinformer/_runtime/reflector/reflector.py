"""The reflector: a coroutine that lists, watches, and feeds a DeltaQueue, until it is cancelled.

The reflector carries bytes from a ``ListerWatcher`` to ``_core``, which makes all decisions. Every
failure is reported and tried again. If the DeltaFIFO is full, the socket isn't read: the server or
the connection notices the slow consumer, and memory stays bounded.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal, NoReturn

from msgspec import structs
from typing_extensions import Unpack

from aioinformer._core.chunked_list import ChunkedList
from aioinformer._core.codec.initial_list import InitialList
from aioinformer._core.codec.shape import Converter
from aioinformer._core.codec.watch_decoder import WatchDecoder
from aioinformer._core.listwatch.availability import ResourceAvailability
from aioinformer._core.listwatch.backoff import Backoff
from aioinformer._core.listwatch.liveness import IdleTimeout
from aioinformer._core.listwatch.outcomes import Outcome, RequestEnd
from aioinformer._core.listwatch.page_sequence import PageSequence
from aioinformer._core.listwatch.reflector_requests import (
    DEFAULT_START,
    AnyRequest,
    ListRequest,
    Start,
    WatchRequest,
)
from aioinformer._core.listwatch.server_profile import ServerProfile
from aioinformer._core.listwatch.state_machine import ListWatchState
from aioinformer._core.listwatch.transitions import (
    TRANSITIONS,
    WATCH_ONLY_TRANSITIONS,
    ScheduledRequest,
    Wait,
)
from aioinformer._core.objects.decode_errors import discard_input
from aioinformer._core.objects.deltas import Confirmed, Replaced
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.object_key import ObjectFilter
from aioinformer._core.objects.resources import is_built_in_group
from aioinformer._runtime.reflector.delta_queue import EntryQueue
from aioinformer._runtime.reflector.lister_watcher import (
    ListerWatcher,
    RenewsCredentials,
    SharesAnswers,
    SharesListSlots,
    SupportsDiscovery,
    SupportsListOptions,
    served_namespace,
)
from aioinformer._runtime.reflector.options import ReflectorKeywords, ReflectorOptions
from aioinformer._runtime.reflector.poll_wait import PollWait
from aioinformer._runtime.reflector.watchdog import Watchdog
from aioinformer._runtime.reporting.reflector_status import ReflectorStatus
from aioinformer._runtime.reporting.reporter import InformerReporter
from aioinformer._runtime.tasks.event_loop import loop_clock
from aioinformer.errors import FetchError, RequestTimedOut, ResourceMoved, ServerRewound

if TYPE_CHECKING:  # for types alone
    from aioinformer._core.codec.list_decoder import ListEnvelope

READ_SECONDS = 0.001
"""Seconds of decoding after which the pump gets its turn. Later, the objects of the first changes
would have left the processor's cache before the pump applies them."""


def _unchanged(obj: KubeObject) -> KubeObject:
    return obj


def _discard(objects: Iterable[KubeObject]) -> None:
    pass


def _is_freshness_check(request: AnyRequest) -> bool:
    return isinstance(request, ListRequest) and request.freshness_check


def with_filter(source: ListerWatcher, filter: ObjectFilter | None) -> ListerWatcher:
    """Return the source that asks for the objects of a filter, if it takes list options."""
    if filter is None or not isinstance(source, SupportsListOptions):
        return source
    return source.with_list_options(filter.list_options)


class Reflector:
    """A feeder of one DeltaQueue with the state of one resource in one scope, and its changes."""

    def __init__(
        self,
        source: ListerWatcher,
        queue: EntryQueue,
        *,
        options: ReflectorOptions | None = None,
        profile: ServerProfile | None = None,
        managed_fields: bool = False,
        converter: Converter | None = None,
        deduplicate: Callable[[KubeObject], KubeObject] = _unchanged,
        fail_fast: tuple[type[FetchError], ...] = (),
        watch_only: bool = False,
        filter: ObjectFilter | None = None,
        reporter: InformerReporter | None = None,
        **keywords: Unpack[ReflectorKeywords],
    ) -> None:
        """Create a reflector; ``run`` starts it.

        Args:
            source: the source of lists and watches.
            queue: the queue that the reflector feeds.
            options: the options; default: ``ReflectorOptions()``.
            profile: the server's behaviour for this resource, shared by its informers.
            managed_fields: True keeps ``metadata.managedFields`` in the objects.
            converter: converts an object to its stored form (``Shape.converter``); ``None`` for no
                conversion.
            deduplicate: returns the cached object if it equals the object that was read, so that a
                relist doesn't hold it twice (``Indexer.deduplicate``).
            fail_fast: errors that ``run`` raises instead of trying again. Errors of a freshness
                check are not raised: the role may allow watches only, and a watch follows.
            watch_only: True if the source raises an error in place of a list, for a consumer that
                keeps no state. A watch that the server fails to serve is then tried again for ever.
            filter: selects the objects that are read; ``None`` for all of the source.
            reporter: receives states, numbers and problems.
            **keywords: single options, by the names of ``ReflectorOptions``' fields.
        """
        self._options = options = (options or ReflectorOptions()).merge(keywords)
        self._queue = queue
        self._availability = ResourceAvailability()
        self._state = ListWatchState(
            backoff=Backoff(options.backoff),
            liveness=options.liveness,
            page_size=options.page_size,
            profile=profile,
            watch_list=options.watch_list and source.watch_lists,
            discovery=isinstance(source, SupportsDiscovery),
            poll_interval=options.poll_interval,
            watch_seconds=options.watch_seconds,
            transitions=WATCH_ONLY_TRANSITIONS if watch_only else TRANSITIONS,
        )
        self._managed_fields = managed_fields
        self._converter = converter
        self._deduplicate = deduplicate
        self._fail_fast = fail_fast
        self._listed = ChunkedList[KubeObject]()
        self._pages = PageSequence()
        self._opened = False
        self._answers = 0
        """The answers to all informers of the source up to the last failure."""
        self.filter = filter
        self._source = source
        self.poll_wait = PollWait()
        self.reporter = reporter or InformerReporter(str(source.resource))

    @property
    def resource_version(self) -> str:
        """The last version received. The cache may not have applied it yet."""
        return self._state.resource_version

    @property
    def source(self) -> ListerWatcher:
        """The source, asking for the objects of the filter if it takes list options. Replaced when
        the API version changes.
        """
        return with_filter(self._source, self.filter)

    @property
    def unfiltered_source(self) -> ListerWatcher:
        return self._source

    @property
    def status(self) -> ReflectorStatus:
        return self.reporter.status

    @property
    def strategy(self) -> Literal["watchlist", "list"]:
        """The kind of request by which the state is, or was last, read."""
        return "watchlist" if self._state.used_watchlist else "list"

    @property
    def reads_state(self) -> bool:
        """True if the request under way, or the next one, reads the whole state."""
        return not self._state.watches

    def with_filter(
        self, filter: ObjectFilter, queue: EntryQueue, reporter: InformerReporter
    ) -> Reflector:
        """Return a reflector of other objects of the same source, with the same options."""
        return Reflector(
            self._source,
            queue,
            options=self._options,
            profile=self._state.profile,
            managed_fields=self._managed_fields,
            converter=self._converter,
            deduplicate=self._deduplicate,
            fail_fast=self._fail_fast,
            filter=filter,
            reporter=reporter,
        )

    async def run(self, start: Start = DEFAULT_START) -> NoReturn:
        """List and watch until cancelled; raise ``FetchError`` for one of ``fail_fast``."""
        # With the first request, for which the HTTP library loads ``random`` anyway.
        from random import random

        clock = asyncio.get_running_loop().time
        self.reporter.start(clock)
        request = self._state.begin(start, now=clock(), jitter=random())
        while True:
            end = await self._attempt(request)
            step = self._state.advance(
                end.outcome, now=clock(), jitter=random(), retry_after=end.retry_after
            )
            self.reporter.request_ended(end, step.transition, step.delay)
            if isinstance(end.error, self._fail_fast) and not (
                step.transition.tries_list or _is_freshness_check(request)
            ):
                try:
                    raise end.error
                finally:
                    del end  # the traceback refers to this frame
            if step.delay:
                await self._wait(step)
            request = step.request

    async def _wait(self, step: ScheduledRequest) -> None:
        """Wait before the next request. An answer to another informer, other credentials, and a
        wait for the cache of one that polls may end the wait.
        """
        source, ended = self._source, False
        if step.transition.wait is Wait.POLL:
            await self.poll_wait.wait(step.delay)
        elif step.until_answer and isinstance(source, SharesAnswers):
            ended = await source.wait_for_answer(step.delay, success=step.until_success)
        elif step.until_credentials and isinstance(source, RenewsCredentials):
            ended = await source.wait_for_credentials(step.delay)
        else:
            await asyncio.sleep(step.delay)
        if ended:
            await asyncio.sleep(self._state.end_wait(asyncio.get_running_loop().time()))

    async def _attempt(self, request: AnyRequest) -> RequestEnd:
        self._opened = False
        self.reporter.request_started(request)
        try:
            if isinstance(request, ListRequest):
                return await self._list(request)
            if isinstance(request, WatchRequest):
                return await self._watch(request)
            return await self._check_served()
        except FetchError as error:
            return self._state.finish_failed(
                discard_input(error),
                opened=self._opened,
                now=asyncio.get_running_loop().time(),
                answered=self._answered_another(),
            )
        except asyncio.CancelledError:
            self.reporter.request_cancelled()
            raise

    def _answered_another(self) -> bool:
        """Return True if the server has answered an informer since the last failure.

        Called when a request has failed. If that was answered, the result has no meaning.
        """
        if not isinstance(self._source, SharesAnswers):
            return False
        before, self._answers = self._answers, self._source.answers
        return self._answers > before

    # -- lists ---------------------------------------------------------------------------------

    async def _list(self, request: ListRequest) -> RequestEnd:
        if not request.continue_token:
            self._listed, self._pages = ChunkedList[KubeObject](), PageSequence()
            self.status.begin_state()
        page = ChunkedList[KubeObject]()
        async with self.source.list(request) as chunks:
            self._opened = True
            take = _discard if request.freshness_check else self._page_collector(page)
            envelope, count = await self._read_page(chunks, take)
            if not request.freshness_check:
                self._pages.add(count, envelope.remaining, envelope.continue_token)
            end = self._state.finish_page(envelope.resource_version, envelope.continue_token)
        if request.freshness_check:
            if self._state.confirmation.reach(self._state.resource_version):
                self._confirm_restored()
            return end
        # Only now: a page that breaks off is requested again.
        self._listed.extend(page)
        if end.outcome in (Outcome.COMPLETE, Outcome.POLLED):
            listed, self._listed = self._listed, ChunkedList[KubeObject]()
            self._publish_state(listed)
            self.reporter.mark_fresh(asyncio.get_running_loop().time())
        return end

    def _page_collector(
        self, page: ChunkedList[KubeObject]
    ) -> Callable[[Iterable[KubeObject]], None]:
        """Return a function that appends the stored or cached form of objects to ``page``."""
        convert, deduplicate = self._converter, self._deduplicate

        def collect(objects: Iterable[KubeObject]) -> None:
            page.extend(map(deduplicate, objects if convert is None else map(convert, objects)))

        return collect

    async def _read_page(
        self, chunks: AsyncIterator[bytes], on_objects: Callable[[Iterable[KubeObject]], None]
    ) -> tuple[ListEnvelope, int]:
        """Read a page. Return the list without its items, and the number of items."""
        # Loaded by the first list, since a WatchList needs none of this.
        from aioinformer._core.codec.list_decoder import ListDecoder
        from aioinformer._runtime.reflector.list_reader import read_page

        decoder = ListDecoder(
            self._source.resource,
            managed_fields=self._managed_fields,
            namespace=served_namespace(self._source),
            cap=self._options.line_cap,
            filter=self.filter,
        )
        total = self._options.liveness.list_total
        limit = asyncio.timeout(total)
        try:
            async with limit:
                envelope = await read_page(
                    chunks,
                    decoder,
                    on_objects,
                    yield_after_each=self._converter is not None,
                    received=self.reporter.received,
                )
        except TimeoutError:
            if not limit.expired():
                raise
            message = f"the list did not end within {total:g} s (liveness.list_total); trying again"
            raise RequestTimedOut(message, phase="list") from None
        finally:
            if decoder.excluded:
                self.reporter.objects_excluded(decoder.excluded)
        return envelope, decoder.count

    def _publish_state(self, objects: Sequence[KubeObject]) -> None:
        self._availability.reset()
        version = self._state.resource_version
        self._queue.put(Replaced(objects, version))
        if self._state.version_went_back:
            self.reporter.server_rewound(ServerRewound(str(self._source.resource), version))

    # -- watches -------------------------------------------------------------------------------

    def _make_watch_decoder(self, request: WatchRequest) -> WatchDecoder:
        return WatchDecoder(
            self._source.resource,
            initial=InitialList(self._deduplicate) if request.initial else None,
            managed_fields=self._managed_fields,
            namespace=served_namespace(self._source),
            line_cap=self._options.line_cap,
            validate=self._options.validate,
            converter=self._converter,
            admit=None if self.filter is None else self.filter.admits,
        )

    async def _watch(self, request: WatchRequest) -> RequestEnd:
        self._listed = ChunkedList[KubeObject]()  # pages of a list that was abandoned
        if request.initial:
            self.status.begin_state()
        decoder, clock = self._make_watch_decoder(request), loop_clock()
        size, worked = decoder.slice_bytes, 0.0
        async with Watchdog() as watchdog, self.source.watch(request) as chunks:
            self._opened = True
            idle_timeout = self._state.open_watch(request, clock())
            watchdog.guard(idle_timeout)
            if not request.initial:
                self.reporter.watch_opened()
            async for chunk in chunks:
                for start in range(0, len(chunk), size):
                    began = clock()
                    full = self._take_changes(decoder, chunk[start : start + size], began)
                    # Only the work is counted: after a wait for data there is no need to yield.
                    worked += clock() - began
                    if full:
                        await self._wait_for_room(idle_timeout)
                    elif worked >= READ_SECONDS:
                        await asyncio.sleep(0)
                    else:
                        continue
                    worked = 0.0
        state = self._state
        end = (state.finish_idle_watch if watchdog.expired else state.finish_watch)(clock())
        if state.confirmation.end_watch(end):
            self._confirm_restored()
        return structs.replace(end, error=decoder.finish() or end.error) if end.error else end

    async def _wait_for_room(self, idle_timeout: IdleTimeout) -> None:
        idle_timeout.pause()
        await self._queue.room()
        idle_timeout.resume(asyncio.get_running_loop().time())

    def _take_changes(self, decoder: WatchDecoder, data: bytes, now: float) -> bool:
        """Decode a piece of the watch that has arrived by ``now``, and queue its changes.

        Return True if the queue is full.

        Raises:
            FetchError: the watch ended with an error. The changes before it were queued.
        """
        batch, state, reporter = decoder.feed(data), self._state, self.reporter
        if batch.excluded:
            reporter.objects_excluded(batch.excluded)
        if batch.initial_list is not None:
            self._complete_initial_list(batch.initial_list)
        entries, bookmarks, full = batch.entries, batch.bookmarks, False
        if entries:
            full = self._queue.feed(entries)
            reporter.status.fresh_at = now
        state.record_watch_data(
            batch.resource_version,
            now=now,
            # A change of an excluded object was a change, too: the server serves the watch.
            changed=len(entries) > bookmarks or batch.excluded > 0,
            bookmark=bookmarks > 0,
        )
        if state.confirmation.pending and state.confirmation.reach(state.resource_version):
            self._confirm_restored()
        if reporter.has_telemetry:
            reporter.received(len(data), batch.event_count)
        if batch.unexpected is not None:
            reporter.events_ignored(batch.unexpected, batch.ignored)
        if batch.error is not None:
            raise batch.error
        return full

    def _confirm_restored(self) -> None:
        self._queue.put(Confirmed())
        self.reporter.mark_fresh(asyncio.get_running_loop().time())

    def _complete_initial_list(self, initial: InitialList) -> None:
        """Publish the initial list of a WatchList, which is a watch from now on."""
        now = asyncio.get_running_loop().time()
        self._state.complete_initial_list(initial.resource_version, now)
        if isinstance(self._source, SharesListSlots):
            self._source.release_list_slot()
        self._publish_state(initial.objects())
        self.reporter.mark_fresh(now)
        self.reporter.watch_opened()

    # -- discovery -----------------------------------------------------------------------------

    async def _check_served(self) -> RequestEnd:
        source = self._source
        if not isinstance(source, SupportsDiscovery):
            return RequestEnd(Outcome.SERVED)  # nothing shows the contrary
        found = await source.discover()
        requested, was_confirmed = source.resource, self._availability.absence_confirmed
        outcome = self._availability.record(found, requested, asyncio.get_running_loop().time())
        if outcome is Outcome.NOT_SERVED:
            confirmed = self._availability.absence_confirmed and not was_confirmed
            self.reporter.resource_absent(confirmed=confirmed)
            # Not before the first state: an empty cache must not pass for a synced one.
            is_cached = self._state.resource_version and not is_built_in_group(requested.group)
            if confirmed and is_cached:
                self._queue.put(Replaced((), self._state.resource_version, "resource_gone"))
        elif found is not None and outcome is Outcome.API_VERSION_CHANGED:
            self._source = source.with_resource(found)
            self.reporter.resource_moved(
                ResourceMoved(f"{requested} ({requested.api_version})", found.api_version)
            )
        return RequestEnd(outcome)

    def __repr__(self) -> str:
        version = self._state.resource_version or "none"
        return f"<Reflector {self._source.resource} {self.status.state} rv={version}>"
