"""``EventRecorder``: Kubernetes Events that tell users what a controller does.

A reconcile must not fail because an Event can't be written, so ``record`` returns at once and
raises no error of the server. An ``EventSeriesTracker`` decides which records are the same Event
and when it is sent. A task sends one Event after the other, and retries after errors of the network
and of an overloaded server.
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from aioinformer._core.listwatch.backoff import MAX_RETRY_AFTER
from aioinformer._core.quantities import quantity
from aioinformer._core.writing.write_requests import EventType
from aioinformer._runtime.reporting.error_hook import FailureLog, Outage, call_hook, check_hook
from aioinformer._runtime.reporting.problem import OnError, Problem
from aioinformer._runtime.tasks.event_loop import check_loop, running_loop
from aioinformer._runtime.tasks.supervisor import Supervisor
from aioinformer._runtime.writing.resource_writer import ResourceWriter
from aioinformer.errors import (
    AlreadyExists,
    InformerError,
    NotFound,
    NotRunning,
    ServerError,
    ServerFailure,
    TooManyRequests,
    TransportError,
    UsageError,
)
from aioinformer.eventrecorder.state.event_objects import (
    EventRecord,
    ObjectReference,
    ReportingController,
)
from aioinformer.eventrecorder.state.event_series import (
    EventSeries,
    EventSeriesTracker,
    PendingEvent,
)

log = logging.getLogger("aioinformer.events")

MAX_QUEUED = 1000
"""Events that may wait to be sent (client-go's ``maxQueuedEvents``)."""
MAX_ATTEMPTS = 12
"""The most requests for one Event (client-go's ``maxTriesPerEvent``)."""
RETRY_DELAY = 10.0
"""Seconds between two attempts (client-go's ``defaultSleepDuration``); at first a random part of
that, so that all clients that lost one server don't return at once."""
SERIES_CHECK_INTERVAL = 60.0
"""Seconds between two checks for series that are over: a sixth of the quiet time that ends one."""


@dataclass(frozen=True, slots=True)
class EventStatistics:
    """Counts of an event recorder, since it was made."""

    recorded: int
    sent: int
    """Requests that the server has accepted: Events, and counts of series."""
    filtered: int
    """Records that led to no Event because there were too many for one object."""
    dropped: int
    """Records without an Event: unusable, beyond the queue's limit, or unsent at the end."""
    failed: int
    """Events that the server rejected, or that could not be sent in ``MAX_ATTEMPTS`` attempts."""
    queued: int


class EventRecorder:
    """A recorder of one controller's Events. Enter it with ``async with``, once, in one event loop.

        async with EventRecorder(client.api(events), controller="example.com/foo") as recorder:
            recorder.record(foo, "Normal", "Created", f"created {child.name}", action="Create")

    Repeated records become one Event with a count, as with client-go's ``tools/events``: the second
    record within six minutes is sent at once, later counts every half hour and at the end. Beyond
    25 at once, records of one object are discarded. Records made before the recorder is entered are
    sent then.

    Args:
        events: writes ``events.events.k8s.io`` in every namespace; made without a namespace.
        controller: the controller's name, such as ``example.com/foo-controller``.
        instance: the replica's name; by default made of the controller's and the host's name.
        on_error: called with a ``Problem`` for each Event that was not sent. Must be quick.
        shutdown_timeout: the most seconds that leaving takes to send queued Events.

    Raises:
        UsageError: ``controller`` is empty.
        TypeError: ``on_error`` is not a plain function.
    """

    def __init__(
        self,
        events: ResourceWriter,
        *,
        controller: str,
        instance: str = "",
        on_error: OnError | None = None,
        shutdown_timeout: float = 2.0,
    ) -> None:
        if not controller:
            raise UsageError("an EventRecorder needs the name of its controller")
        check_hook(on_error)
        host = socket.gethostname() or "unknown"
        default_instance = f"{controller.replace('/', '-')}-{host}"
        self._events = events
        self._reporter = ReportingController(controller, instance or default_instance)
        self._on_error = on_error
        self._hook_failures = FailureLog(log)
        self._shutdown_timeout = shutdown_timeout
        self._series_tracker = EventSeriesTracker()
        self._queue: deque[EventSeries] = deque()
        self._unsent: set[EventSeries] = set()
        self._wakeup = asyncio.Event()
        self._idle = asyncio.Event()
        self._supervisor = Supervisor(f"event recorder of {controller}")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending = False
        self._recorded = self._sent = self._dropped = self._failed = 0
        self._outage = Outage(log)

    # -- recording -----------------------------------------------------------------------------

    def record(
        self,
        obj: Mapping[str, Any],
        event_type: EventType,
        reason: str,
        note: str = "",
        *,
        action: str = "",
        related: Mapping[str, Any] | None = None,
    ) -> None:
        """Record that something has happened to an object. Returns at once.

        A record that can't become an Event (an object without kind or name, another type) raises no
        error. It is logged, counted as dropped and reported to ``on_error``.

        Args:
            obj: the object, from a cache or a writer.
            event_type: ``Normal``, or ``Warning`` for something that may need attention.
            reason: one word in CamelCase, for programs: ``Created``.
            note: a sentence for people, cut after 1024 bytes.
            action: what was done or tried, in one word; the reason, by default.
            related: another object that is concerned, such as the child.

        Raises:
            UsageError: called from a thread, or in another event loop.
        """
        check_loop(self._loop, repr(self))
        now = running_loop().time()
        self._recorded += 1
        try:
            event = EventRecord(
                ObjectReference.of(obj),
                event_type,
                reason,
                note,
                action,
                None if related is None else ObjectReference.of(related),
            )
            if self._ending:
                raise NotRunning(f"{self!r} has ended: {event} is not sent")
        except UsageError as error:
            self._dropped += 1
            self._report("dropped", error)
            return
        self._enqueue(self._series_tracker.observe(event, time.time_ns(), now))

    def _enqueue(self, series: list[EventSeries]) -> None:
        for entry in series:
            if entry in self._unsent:  # it is sent with its newest count
                continue
            if len(self._queue) >= MAX_QUEUED:
                self._dropped += 1
                self._series_tracker.forget(entry)
                if (
                    self._dropped & (self._dropped - 1) == 0
                ):  # log at 1, 2, 4, 8... discarded Events
                    log.warning(
                        "events of %s: %s discarded, since %d others wait to be sent",
                        self._reporter.controller,
                        quantity(self._dropped, "event"),
                        MAX_QUEUED,
                    )
                continue
            self._unsent.add(entry)
            self._queue.append(entry)
            self._wakeup.set()

    def statistics(self) -> EventStatistics:
        """Return the counts since the recorder was made."""
        return EventStatistics(
            self._recorded,
            self._sent,
            self._series_tracker.filtered,
            self._dropped,
            self._failed,
            len(self._unsent),
        )

    # -- life ----------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        await self._supervisor.enter(self._start)
        return self

    def _start(self) -> None:
        self._supervisor.spawn(self._run(), name=f"{self!r}")

    async def __aexit__(self, kind: object, exc: BaseException | None, trace: object) -> None:
        try:
            await self._flush()
        finally:
            self._ending = True
            await self._supervisor.leave(
                exc, timeout=self._shutdown_timeout, running_names=lambda: ()
            )
            if left := len(self._unsent):
                self._dropped += left
                self._unsent.clear()
                log.warning(
                    "events of %s: ended with %s unsent",
                    self._reporter.controller,
                    quantity(left, "event"),
                )

    async def _flush(self) -> None:
        """Send the queued Events and the counts of all series within ``shutdown_timeout``."""
        self._ending = True
        self._idle.clear()
        self._enqueue(self._series_tracker.close())
        if not self._unsent or not self._supervisor.running:
            return
        try:
            async with asyncio.timeout(self._shutdown_timeout):
                await self._idle.wait()
        except TimeoutError:
            pass  # __aexit__ counts and logs the Events that are left

    # -- sending -------------------------------------------------------------------------------

    async def _run(self) -> None:
        clock = running_loop().time
        check_at = clock() + SERIES_CHECK_INTERVAL
        while True:
            if clock() >= check_at:  # also while there is always something to send
                self._enqueue(self._series_tracker.take_due(clock()))
                check_at = clock() + SERIES_CHECK_INTERVAL
            if self._queue:
                entry = self._queue.popleft()
                await self._send_with_retries(entry)
                self._unsent.discard(entry)
            else:
                self._idle.set()
                await self._wait_queued(until=check_at)

    async def _wait_queued(self, *, until: float) -> None:
        self._wakeup.clear()
        try:
            async with asyncio.timeout_at(until):
                await self._wakeup.wait()
        except TimeoutError:
            pass  # a check for series that are over is due

    async def _send_with_retries(self, series: EventSeries) -> None:
        for attempt in range(MAX_ATTEMPTS):
            try:
                if (event := series.pending_event(self._reporter)) is not None:
                    await self._send(series, event)
            except InformerError as error:
                last = attempt == MAX_ATTEMPTS - 1
                if last or not _is_retryable(error):
                    self._give_up(series, error)
                    return
                await asyncio.sleep(_retry_delay(error, attempt))
            except Exception as error:
                log.exception(
                    "events of %s: the writer raised an error of another kind than a "
                    "ResourceWriter does",
                    self._reporter.controller,
                )
                self._give_up(series, error)
                return
            else:
                return

    async def _send(self, series: EventSeries, event: PendingEvent) -> None:
        if event.is_new:
            try:
                await self._events.create(event.body)
            except AlreadyExists:
                log.debug(
                    "%r: exists already, so the answer to an earlier attempt was lost", series
                )
        else:
            await self._patch(series, event)
        series.record_sent(event)
        self._sent += 1
        self._outage.end("events of %s: sent again", self._reporter.controller)

    async def _patch(self, series: EventSeries, event: PendingEvent) -> None:
        try:
            await self._events.patch(f"{event.namespace}/{event.name}", event.body)
        except NotFound:  # the server deletes Events after an hour
            series.record_deleted()
            complete = series.pending_event(self._reporter)
            if complete is not None:
                await self._send(series, complete)

    def _give_up(self, series: EventSeries, error: Exception) -> None:
        self._failed += 1
        self._outage.begin()
        self._series_tracker.forget(series)
        self._report(f"{series.record}", error, " was not sent")

    def _report(self, cause: str, error: Exception, what: str = "") -> None:
        log.warning("events of %s: %s%s: %s", self._reporter.controller, cause, what, error)
        problem = Problem(
            informer=self._reporter.controller, phase="event", cause=cause, error=error
        )
        call_hook(self._on_error, self._hook_failures, problem)

    def __repr__(self) -> str:
        state = self._supervisor.state
        return f"<EventRecorder of {self._reporter.controller} {state} queued={len(self._unsent)}>"


def _is_retryable(error: InformerError) -> bool:
    """Return True if the error may be temporary: of the network, or of an overloaded server."""
    return isinstance(error, TransportError | ServerFailure | TooManyRequests)


def _retry_delay(error: InformerError, attempt: int) -> float:
    """Return the seconds until the next attempt."""
    requested = error.status.retry_after if isinstance(error, ServerError) else None
    own = RETRY_DELAY if attempt else RETRY_DELAY * random.random()
    # One absurd Retry-After must not keep all later Events from the server.
    return max(min(requested or 0.0, MAX_RETRY_AFTER), own)
