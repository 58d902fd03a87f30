"""One watch, being read: bytes to the queue, as fast as the queue takes them.

Of a WatchList, the whole state first. What the bytes mean is ``intake``'s, when their absence
means something ``liveness``'; what to do when the watch has ended is up to the cursor.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from aioinformer._core.codec.watch_decoder import WatchDecoder
from aioinformer._core.listwatch.idle_timeout import IdleTimeout, LivenessPolicy
from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer._core.listwatch.requests import WatchRequest
from aioinformer._core.listwatch.state_machine import ListWatchState
from aioinformer._core.objects.deltas import Bookmark, Delta
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._runtime.reflector.delta_queue import DeltaQueue
from aioinformer._runtime.reflector.lister_watcher import SharedSlot
from aioinformer._runtime.reflector.watchdog import Watchdog
from aioinformer._runtime.reporting.reporter import InformerReporter
from aioinformer._runtime.tasks.event_loop import TimeSlice
from aioinformer.errors import ConnectionLost, FetchError, RequestTimedOut

__all__ = ["WatchReader"]

MISSED_CHANGES_WINDOW = 5.0
"""Seconds after the opening of a watch within which it brings what the one before missed."""


class WatchReader:
    """What one watch request leads to."""

    def __init__(
        self,
        request: WatchRequest,
        decoder: WatchDecoder,
        queue: DeltaQueue,
        state: ListWatchState,
        reporter: InformerReporter,
        *,
        publish_list: Callable[[Sequence[KubeObject]], None],
    ) -> None:
        """A watch that is about to be asked for.

        Args:
            request: what is asked.
            decoder: what its bytes become.
            queue: where that goes.
            state: is told how far it has come.
            reporter: is told what came.
            publish_list: called with the whole state, once a WatchList has brought it.
        """
        self._request = request
        self._decoder = decoder
        self._queue = queue
        self._state = state
        self._reporter = reporter
        self._publish_list = publish_list
        self._clock = asyncio.get_running_loop().time
        self._opened_at = 0.0
        self._changed = False
        self._timeout_seconds = 0.0
        self._past_deadline = False

    async def read(
        self, chunks: AsyncIterator[bytes], watchdog: Watchdog, policy: LivenessPolicy
    ) -> None:
        """Read until the end, or until ``watchdog`` ends it.

        Raises:
            FetchError: it did not end well. What came before was queued.
        """
        self._opened_at = now = self._clock()
        timeout, initial = self._request.timeout, self._request.initial
        liveness = IdleTimeout(
            policy, self._state.profile, now=now, timeout=timeout, initial=initial
        )
        watchdog.guard(liveness)
        if not initial:
            self._reporter.watch_opened()
        try:
            await self._read(chunks, liveness)
        finally:
            self._timeout_seconds = liveness.timeout
            self._past_deadline = liveness.past_deadline(self._clock())

    async def _read(self, chunks: AsyncIterator[bytes], idle_timeout: IdleTimeout) -> None:
        pace = TimeSlice()
        async for chunk in chunks:
            for portion in self._decoder.slices(chunk):
                self._feed_slice(portion, chunks, idle_timeout)
                if self._queue.fifo.full:
                    idle_timeout.pause()
                    await self._queue.room()
                    idle_timeout.resume(self._clock())
                    pace.reset()
                await pace.maybe_yield()

    def _feed_slice(
        self, data: bytes, chunks: AsyncIterator[bytes], idle_timeout: IdleTimeout
    ) -> None:
        now = self._clock()
        idle_timeout.data_received(now)
        try:
            self._decoder.feed(data)
        finally:  # what came before a bad line counts
            self._on_initial_list(chunks, idle_timeout, now)
            self._enqueue(idle_timeout, now)
        self._reporter.received(len(data), self._decoder.take_event_count())

    def _on_initial_list(
        self, chunks: AsyncIterator[bytes], idle_timeout: IdleTimeout, now: float
    ) -> None:
        """If the initial state is complete: what follows is a watch."""
        state = self._decoder.take_initial_list()
        if state is None:
            return
        objects, version = state
        self._state.complete_initial_list(version)
        idle_timeout.complete_initial_list(now)
        if isinstance(chunks, SharedSlot):
            chunks.release()
        self._publish_list(objects)
        self._reporter.mark_fresh(now)
        self._reporter.watch_opened()

    def _enqueue(self, idle_timeout: IdleTimeout, now: float) -> None:
        live, bookmarks = self._decoder.take_entries()
        if not live:
            return
        self._queue.feed(live)
        self._state.observe_version(_last_version(live))
        if len(live) > bookmarks:
            if not self._changed and now - self._opened_at < MISSED_CHANGES_WINDOW:
                self._state.profile.record_dead_connection()
            self._changed = True
        if bookmarks:
            idle_timeout.record_bookmark(now)
        self._reporter.mark_fresh(now)

    # -- how it ended --------------------------------------------------------------------------

    def classify_end(self) -> tuple[Outcome, FetchError | None]:
        """It ended without an error: what that means, and what is wrong with it."""
        lasted = self._clock() - self._opened_at
        outcome = self._state.classify_watch_end(lasted=lasted, changed=self._changed)
        if not self._state.initial_list_complete:
            said = (
                f"the WatchList ended after {lasted:.1f} s, before its initial state was complete"
            )
            return outcome, ConnectionLost(said, phase="watch")
        if outcome is Outcome.ENDED:
            return outcome, None
        said = "at once" if outcome is Outcome.EMPTY_WATCH else f"after {lasted:.1f} s"
        return outcome, ConnectionLost(
            f"the watch ended {said}, with nothing new in it", phase="watch"
        )

    def classify_timeout(self) -> tuple[Outcome, FetchError | None]:
        """It was given up: what that means, and what is wrong with it."""
        if self._past_deadline:
            said = f"the watch outlived its {self._request.timeout} s, and was given up"
            return Outcome.CONNECTION_LOST, RequestTimedOut(said, phase="watch")
        if self._state.initial_list_complete:
            if (
                self._state.profile.rarely_sends_bookmarks
            ):  # this server has nothing to say, again and again
                return Outcome.IDLE_TIMEOUT, None
            said = f"the watch was silent for {self._timeout_seconds:.0f} s, longer than bookmarks are apart"
            return Outcome.IDLE_TIMEOUT, RequestTimedOut(said, phase="watch")
        lasted = self._clock() - self._opened_at
        said = f"the WatchList had no end mark after {lasted:.0f} s; lists are used instead"
        return Outcome.WATCHLIST_TIMEOUT, RequestTimedOut(said, phase="watch")

    def __repr__(self) -> str:
        return f"<WatchReader {self._request} {self._decoder!r}>"


def _last_version(entries: Sequence[Delta | Bookmark]) -> str:
    """The last version in what came; bookmarks without one say nothing."""
    for entry in reversed(entries):
        known = (
            entry.resource_version if isinstance(entry, Bookmark) else entry.obj.resource_version
        )
        if known:
            return known
    return ""
