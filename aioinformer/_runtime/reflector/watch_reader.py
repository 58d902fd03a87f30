"""The reading of one watch: bytes to the DeltaFIFO, as fast as the DeltaFIFO takes them.

A WatchList brings the whole state first, which replaces the cached one when it is complete. If the
DeltaFIFO is full, the socket isn't read: the server or the connection notices the slow consumer,
and memory stays bounded.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from aioinformer._core.codec.watch_decoder import InitialList, WatchDecoder
from aioinformer._core.listwatch.idle_timeout import IdleTimeout
from aioinformer._core.listwatch.state_machine import ListWatchState
from aioinformer._runtime.reflector.delta_queue import EntryQueue
from aioinformer._runtime.reporting.reporter import InformerReporter
from aioinformer._runtime.tasks.event_loop import loop_clock

__all__ = ["WatchReader"]

READ_SECONDS = 0.001
"""Seconds of decoding after which the pump gets its turn. Later, the objects of the first changes
would have left the processor's cache before the pump applies them."""


class WatchReader:
    """The reader of one watch."""

    def __init__(
        self,
        decoder: WatchDecoder,
        queue: EntryQueue,
        state: ListWatchState,
        reporter: InformerReporter,
        *,
        on_initial_list: Callable[[InitialList], None],
        on_confirmed: Callable[[], None],
    ) -> None:
        """Create the reader of a watch whose response has begun.

        Args:
            decoder: decodes the bytes of the watch.
            queue: receives the changes.
            state: learns what has arrived.
            reporter: receives sizes and counts.
            on_initial_list: is called with the complete initial list of a WatchList.
            on_confirmed: is called when the watch has confirmed a restored state.
        """
        self._decoder = decoder
        self._queue = queue
        self._state = state
        self._reporter = reporter
        self._on_initial_list = on_initial_list
        self._on_confirmed = on_confirmed
        self._confirmation = state.confirmation
        self._clock = loop_clock()

    async def read(self, chunks: AsyncIterator[bytes], idle_timeout: IdleTimeout) -> None:
        """Read until the watch ends, or until this task is cancelled.

        Raises:
            FetchError: the watch ended with an error. The changes before it were queued.
        """
        clock, size = self._clock, self._decoder.slice_bytes
        worked = 0.0  # without the waits for data: after a wait there is no need to yield
        async for chunk in chunks:
            for start in range(0, len(chunk), size):
                began = clock()
                self._enqueue(chunk[start : start + size], began)
                worked += clock() - began
                if self._queue.fifo.full:
                    idle_timeout.pause()
                    await self._queue.room()
                    idle_timeout.resume(clock())
                    worked = 0.0
                elif worked >= READ_SECONDS:
                    await asyncio.sleep(0)
                    worked = 0.0

    def _enqueue(self, data: bytes, now: float) -> None:
        """Decode a piece of the watch that has arrived by ``now``, and queue its changes."""
        batch = self._decoder.feed(data)
        if batch.initial_list is not None:
            self._on_initial_list(batch.initial_list)
        entries, bookmarks = batch.entries, batch.bookmarks
        if entries:
            self._queue.feed(entries)
        self._state.record_watch_data(
            batch.resource_version,
            now=now,
            # A change of another shard's object was a change, too: the server serves the watch.
            changed=len(entries) > bookmarks or batch.excluded > 0,
            bookmark=bookmarks > 0,
        )
        if self._confirmation.pending and self._confirmation.reach(self._state.resource_version):
            self._on_confirmed()
        self._reporter.received(len(data), batch.event_count, now if entries else None)
        if batch.excluded:
            self._reporter.other_shards(batch.excluded)
        if batch.unexpected is not None:
            self._reporter.events_ignored(batch.unexpected, batch.ignored)
        if batch.error is not None:
            raise batch.error

    def __repr__(self) -> str:
        return f"<WatchReader {self._decoder!r}>"
