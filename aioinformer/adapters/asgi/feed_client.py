"""One client of a feed: pending events of its streams, sent as fast as its socket takes them.

``send`` of an ASGI server waits while the socket is full. No event is taken from the streams
meanwhile, so that events for a slow client stay in its mailboxes, where they are merged.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Any

from aioinformer._runtime.delivery.streams import EventStream
from aioinformer._runtime.tasks.event_loop import TimeSlice
from aioinformer.adapters.asgi.asgi_messages import Headers, Send, start_response
from aioinformer.adapters.asgi.sse import RESET_FRAME, SYNCED_FRAME, FrameEncoder

BATCH_BYTES = 64 * 1024
"""Bytes of frames that are sent at once, roughly: uvicorn's buffer for a socket."""

STREAM_HEADERS: Headers = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # or nginx would buffer the stream
)


class FeedClient:
    """A response with an event stream."""

    def __init__(
        self, streams: Iterable[EventStream[Any]], send: Send, frames: FrameEncoder
    ) -> None:
        """Send the events of ``streams``, which are entered. Nothing is sent before ``start``."""
        self._streams = deque(streams)
        self._send = send
        self._frames = frames
        self._time_slice = TimeSlice()
        self._synced = False
        self._sent_bytes = 0
        self._woken = False
        self._waiter: asyncio.Future[None] | None = None

    @property
    def ended(self) -> bool:
        """True if no stream will bring another event."""
        return all(stream.ended for stream in self._streams)

    async def start(self) -> None:
        """Send the head of the response and the ``reset`` frame: a full state follows."""
        await start_response(self._send, 200, STREAM_HEADERS)
        await self.send(RESET_FRAME)

    async def send(self, frames: bytes) -> None:
        """Send frames; wait while the socket is full."""
        await self._send({"type": "http.response.body", "body": frames, "more_body": True})
        self._sent_bytes += len(frames)

    async def end(self) -> None:
        """End the response."""
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def send_pending(self) -> bool:
        """Send some of the pending events. Return True if more may be pending."""
        batch: list[bytes] = []
        size = 0
        for stream in self._streams:
            while size < BATCH_BYTES and (event := stream.stored_nowait()) is not None:
                frame = self._frames.encode(stream.source, event)
                batch.append(frame)
                size += len(frame)
                if self._time_slice.expired:
                    await self._time_slice.maybe_yield()
        full = size >= BATCH_BYTES
        if full:
            self._streams.rotate(-1)  # the next batch begins with another stream
        elif not self._synced and all(stream.synced for stream in self._streams):
            self._synced = True
            batch.append(SYNCED_FRAME)
        if body := b"".join(batch):
            await self.send(body)
        return full

    async def wait_pending(self, *, until: float) -> None:
        """Wait until an event may be pending, the time is ``until``, or ``wake`` is called."""
        if self._woken:  # while events were sent
            return
        loop = asyncio.get_running_loop()
        self._waiter = waiter = loop.create_future()
        timer = loop.call_at(until, _set_done, waiter)
        for stream in self._streams:
            stream.wake(waiter)
        try:
            # A stream that excluded many events in a row completes the waiter to yield to the loop.
            if waiter.done():
                await asyncio.sleep(0)
            await waiter
        finally:
            timer.cancel()
            self._waiter = None
        self._time_slice.reset()

    def wake(self) -> None:
        """End the current wait, and every later one at once."""
        self._woken = True
        if self._waiter is not None:
            _set_done(self._waiter)

    def __repr__(self) -> str:
        pending = sum(stream.statistics().pending for stream in self._streams)
        return f"<FeedClient sent={self._sent_bytes} B pending={pending}>"


def _set_done(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
