"""``EventRecorder``: tells users what a controller does, in Events beside the objects it is about.

    async with EventRecorder(client.api(events), controller="example.com/foo") as recorder:
        recorder.record(foo, "Normal", "Created", f"created {child.name}", action="Create")

To tell is never worth more than to do: ``record`` returns at once and raises nothing, whatever the
server says. What is the same event and when it is sent is decided in ``_core.aggregation``; here a
task sends one after the other, and tries again what the network or an overloaded server has kept.
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
from types import TracebackType
from typing import Any, Self

from aioinformer._core.writing.event_objects import (
    EventRecord,
    EventType,
    ObjectReference,
    ReportingController,
)
from aioinformer._core.writing.event_series import EventSeries, EventSeriesTracker, PendingEvent
from aioinformer._runtime.reporting.reporter import OnError, Problem, call_hook, check_hook
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

__all__ = ["EventRecorder", "EventStatistics"]

log = logging.getLogger("aioinformer.events")

MAX_QUEUED = 1000
"""Events that may wait to be sent (client-go's ``maxQueuedEvents``)."""
MAX_ATTEMPTS = 12
RETRY_DELAY = 10.0
"""How often an event is sent at most, and the seconds in between (client-go's
``maxTriesPerEvent`` and ``defaultSleepDuration``). The first pause is a part of that at random: not
all that lost one server shall be back at once."""
SERIES_CHECK_INTERVAL = 60.0
"""Seconds between two looks at series that may be over: a sixth of what ends one."""


@dataclass(frozen=True, slots=True)
class EventStatistics:
    """What has become of what was recorded, since the recorder was made."""

    recorded: int
    """Calls of ``record``."""
    sent: int
    """Requests that the server has accepted: Events, and counts of series."""
    filtered: int
    """Calls that weren't told, since there were too many of one object."""
    dropped: int
    """Events that weren't told: unusable, too many waiting, or left when the recorder ended."""
    failed: int
    """Events that the server refused, or that could not be sent in time."""
    queued: int
    """Events that wait to be sent."""


class EventRecorder:
    """Records events of one controller. Enter it with ``async with``, once.

    Repeated events become a series with a count, as with client-go's ``tools/events``: the second
    one within six minutes is told at once, later ones each half hour and at the end. More than 25
    at once of one object are not told.

    What is recorded before it is entered is sent then. It belongs to one event loop.

    Args:
        events: writes ``events.events.k8s.io``, in every namespace: made without one.
        controller: its name, such as ``example.com/foo-controller``.
        instance: which replica; by default the controller's name and the host's.
        on_error: is told of what was not sent, quickly.
        shutdown_timeout: seconds that leaving takes at most, to send what waits.

    Raises:
        UsageError: there is no name.
        TypeError: ``on_error`` is no function, or async.
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
        words = controller.replace("/", "-")
        self._events = events
        self._reporter = ReportingController(controller, instance or f"{words}-{host}")
        self._on_error = on_error
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
        """Tell of something that has happened to an object. Returns at once.

        What can't be an event (an object without kind or name, another type) is logged, counted as
        dropped and told to ``on_error``, not raised.

        Args:
            obj: what it is about, from a cache or a writer.
            event_type: ``Normal``, or ``Warning`` for what somebody may want to do something about.
            reason: why, in one word in CamelCase, for programs: ``Created``.
            note: a sentence for people; beyond 1024 bytes it is cut.
            action: what was done or tried, in one word; the reason, by default.
            related: another object that has to do with it, such as the child.

        Raises:
            UsageError: it is called from a thread, or another event loop.
        """
        check_loop(self._loop, repr(self))
        now = running_loop().time()
        self._recorded += 1
        try:
            second = None if related is None else ObjectReference.of(related)
            occurrence = EventRecord(
                ObjectReference.of(obj), event_type, reason, note, action, second
            )
            if self._ending:
                raise NotRunning(f"{self!r} has ended: {occurrence} is not told")
        except UsageError as error:
            self._dropped += 1
            self._report("dropped", error)
            return
        self._enqueue(self._series_tracker.observe(occurrence, time.time_ns(), now))

    def _enqueue(self, series: list[EventSeries]) -> None:
        for entry in series:
            if entry in self._unsent:
                continue
            if len(self._queue) >= MAX_QUEUED:
                self._dropped += 1
                self._series_tracker.forget(entry)
                if self._dropped & (self._dropped - 1) == 0:  # 1, 2, 4, 8...: not one line each
                    log.warning("%r: too many events wait; dropped %d", self, self._dropped)
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

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
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
                log.warning("%r has ended with %d events unsent", self, left)

    async def _flush(self) -> None:
        """Send what waits, and the counts of all series, in the time that there is."""
        self._ending = True
        self._idle.clear()
        self._enqueue(self._series_tracker.close())
        if not self._supervisor.running:
            return
        try:
            async with asyncio.timeout(self._shutdown_timeout):
                await self._idle.wait()
        except TimeoutError:
            pass  # what is left is counted and logged when the recorder has ended

    # -- sending -------------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            while self._queue:
                entry = self._queue.popleft()
                await self._send_with_retries(entry)
                self._unsent.discard(entry)
            self._idle.set()
            self._wakeup.clear()
            try:
                async with asyncio.timeout(SERIES_CHECK_INTERVAL):
                    await self._wakeup.wait()
            except TimeoutError:
                self._enqueue(self._series_tracker.take_due(running_loop().time()))

    async def _send_with_retries(self, series: EventSeries) -> None:
        """Send what is to be said of an event, until it is accepted or given up."""
        for attempt in range(MAX_ATTEMPTS):
            try:
                if (draft := series.pending_event(self._reporter)) is not None:
                    await self._send(series, draft)
            except InformerError as error:
                last = attempt == MAX_ATTEMPTS - 1
                if last or not _is_retryable(error):
                    self._give_up(series, error)
                    return
                await asyncio.sleep(_retry_delay(error, attempt))
            except Exception as error:
                log.exception("%r: the writer raised what no writer should", self)
                self._give_up(series, error)
                return
            else:
                return

    async def _send(self, series: EventSeries, event: PendingEvent) -> None:
        if event.is_new:
            try:
                await self._events.create(event.body)
            except AlreadyExists:
                log.debug("%r: the answer to a first attempt was lost", series)
        else:
            await self._patch(series, event)
        series.record_sent(event)
        self._sent += 1

    async def _patch(self, series: EventSeries, event: PendingEvent) -> None:
        try:
            await self._events.patch(f"{event.namespace}/{event.name}", event.body)
        except NotFound:  # it has expired there
            series.record_deleted()
            whole = series.pending_event(self._reporter)
            if whole is not None:
                await self._send(series, whole)

    def _give_up(self, series: EventSeries, error: Exception) -> None:
        self._failed += 1
        self._series_tracker.forget(series)
        self._report(f"{series.record}", error)

    def _report(self, cause: str, error: Exception) -> None:
        log.warning("%r: %s: %s", self, cause, error)
        problem = Problem(
            informer=self._reporter.controller, phase="event", cause=cause, error=error
        )
        call_hook(self._on_error, problem, log)

    def __repr__(self) -> str:
        state = self._supervisor.state
        return f"<EventRecorder of {self._reporter.controller} {state} queued={len(self._unsent)}>"


def _is_retryable(error: InformerError) -> bool:
    """Whether it may be over in a while: the network, or a server in trouble."""
    return isinstance(error, TransportError | ServerFailure | TooManyRequests)


def _retry_delay(error: InformerError, attempt: int) -> float:
    """Seconds until the next attempt."""
    waits = error.status.retry_after if isinstance(error, ServerError) else None
    return max(waits or 0.0, RETRY_DELAY if attempt else RETRY_DELAY * random.random())
