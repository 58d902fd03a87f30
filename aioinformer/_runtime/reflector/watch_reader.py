"""One watch, being read: bytes to the queue, as fast as the queue takes them.

Of a WatchList, the whole state first. What the bytes mean is ``intake``'s, when their absence
means something ``liveness``'; what to do when the watch has ended is up to the cursor.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from aioinformer._core.codec.watch_decoder import Intake
from aioinformer._core.listwatch.idle_timeout import Liveness, LivenessPolicy
from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer._core.listwatch.requests import WatchRequest
from aioinformer._core.listwatch.state_machine import Cursor
from aioinformer._core.objects.deltas import Bookmark, Delta
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._runtime.reflector.delta_queue import DeltaQueue
from aioinformer._runtime.reflector.lister_watcher import Shared
from aioinformer._runtime.reflector.watchdog import Watchdog
from aioinformer._runtime.reporting.reporter import Reports
from aioinformer._runtime.tasks.event_loop import Pace
from aioinformer.errors import ConnectionLost, FetchError, RequestTimedOut

__all__ = ["WatchStream"]

SOON = 5.0
"""Seconds after the opening of a watch within which it brings what the one before missed."""


class WatchStream:
    """What one watch request leads to."""

    def __init__(
        self,
        request: WatchRequest,
        intake: Intake,
        queue: DeltaQueue,
        cursor: Cursor,
        reports: Reports,
        *,
        arrived: Callable[[Sequence[KubeObject]], None],
    ) -> None:
        """A watch that is about to be asked for.

        Args:
            request: what is asked.
            intake: what its bytes become.
            queue: where that goes.
            cursor: is told how far it has come.
            reports: is told what came.
            arrived: called with the whole state, once a WatchList has brought it.
        """
        self._request = request
        self._intake = intake
        self._queue = queue
        self._cursor = cursor
        self._reports = reports
        self._arrived = arrived
        self._clock = asyncio.get_running_loop().time
        self._opened_at = 0.0
        self._changed = False
        self._limit = 0.0
        self._overstayed = False

    async def read(
        self, chunks: AsyncIterator[bytes], watchdog: Watchdog, policy: LivenessPolicy
    ) -> None:
        """Read until the end, or until ``watchdog`` ends it.

        Raises:
            FetchError: it did not end well. What came before was queued.
        """
        self._opened_at = now = self._clock()
        timeout, initial = self._request.timeout, self._request.initial
        liveness = Liveness(policy, self._cursor.habits, now=now, timeout=timeout, initial=initial)
        watchdog.guard(liveness)
        if not initial:
            self._reports.watching()
        try:
            await self._read(chunks, liveness)
        finally:
            self._limit = liveness.limit
            self._overstayed = liveness.overstayed(self._clock())

    async def _read(self, chunks: AsyncIterator[bytes], liveness: Liveness) -> None:
        pace = Pace()
        async for chunk in chunks:
            for portion in self._intake.portions(chunk):
                self._take(portion, chunks, liveness)
                if self._queue.fifo.full:
                    liveness.hold()
                    await self._queue.room()
                    liveness.resume(self._clock())
                    pace.rested()
                await pace.breathe()

    def _take(self, portion: bytes, chunks: AsyncIterator[bytes], liveness: Liveness) -> None:
        now = self._clock()
        liveness.heard(now)
        try:
            self._intake.feed(portion)
        finally:  # what came before a bad line counts
            self._settle(chunks, liveness, now)
            self._queue_up(liveness, now)
        self._reports.received(len(portion), self._intake.events())

    def _settle(self, chunks: AsyncIterator[bytes], liveness: Liveness, now: float) -> None:
        """If the initial state is complete: what follows is a watch."""
        state = self._intake.take_state()
        if state is None:
            return
        objects, version = state
        self._cursor.settle(version)
        liveness.settle(now)
        if isinstance(chunks, Shared):
            chunks.settled()
        self._arrived(objects)
        self._reports.fresh(now)
        self._reports.watching()

    def _queue_up(self, liveness: Liveness, now: float) -> None:
        live, bookmarks = self._intake.take()
        if not live:
            return
        self._queue.feed(live)
        self._cursor.saw(_version(live))
        if len(live) > bookmarks:
            if not self._changed and now - self._opened_at < SOON:
                self._cursor.habits.was_dead()
            self._changed = True
        if bookmarks:
            liveness.bookmark(now)
        self._reports.fresh(now)

    # -- how it ended --------------------------------------------------------------------------

    def ended(self) -> tuple[Outcome, FetchError | None]:
        """It ended without an error: what that means, and what is wrong with it."""
        lasted = self._clock() - self._opened_at
        outcome = self._cursor.ended(lasted=lasted, changed=self._changed)
        if not self._cursor.settled:
            said = (
                f"the WatchList ended after {lasted:.1f} s, before its initial state was complete"
            )
            return outcome, ConnectionLost(said, phase="watch")
        if outcome is Outcome.ENDED:
            return outcome, None
        said = "at once" if outcome is Outcome.UNSERVED else f"after {lasted:.1f} s"
        return outcome, ConnectionLost(
            f"the watch ended {said}, with nothing new in it", phase="watch"
        )

    def expired(self) -> tuple[Outcome, FetchError | None]:
        """It was given up: what that means, and what is wrong with it."""
        if self._overstayed:
            said = f"the watch outlived its {self._request.timeout} s, and was given up"
            return Outcome.SEVERED, RequestTimedOut(said, phase="watch")
        if self._cursor.settled:
            if self._cursor.habits.patient:  # this server has nothing to say, again and again
                return Outcome.SILENT, None
            said = f"the watch was silent for {self._limit:.0f} s, longer than bookmarks are apart"
            return Outcome.SILENT, RequestTimedOut(said, phase="watch")
        lasted = self._clock() - self._opened_at
        said = f"the WatchList had no end mark after {lasted:.0f} s; lists are used instead"
        return Outcome.OVERDUE, RequestTimedOut(said, phase="watch")

    def __repr__(self) -> str:
        return f"<WatchStream {self._request} {self._intake!r}>"


def _version(entries: Sequence[Delta | Bookmark]) -> str:
    """The last version in what came; bookmarks without one say nothing."""
    for entry in reversed(entries):
        known = (
            entry.resource_version if isinstance(entry, Bookmark) else entry.obj.resource_version
        )
        if known:
            return known
    return ""
