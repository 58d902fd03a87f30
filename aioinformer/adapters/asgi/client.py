"""One client of a feed: what its streams have pending, as far as its socket takes it.

``send`` of an ASGI server waits while the socket takes no more. Nothing is taken from the streams
meanwhile, so that what waits for a slow client is in its mailboxes, where it is merged.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable

from aioinformer._runtime.delivery.streams import EventStream
from aioinformer._runtime.tasks.event_loop import TimeSlice
from aioinformer.adapters.asgi.responses import Headers, Message, Send
from aioinformer.adapters.asgi.sse import RESET_FRAME, SYNCED_FRAME, FrameEncoder

__all__ = ["STREAM_HEADERS", "FeedClient"]

BATCH_BYTES = 64 * 1024
"""Bytes of frames that are sent at once, roughly: what uvicorn buffers for a socket."""

STREAM_HEADERS: Headers = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # nginx would collect what should be sent
]


class FeedClient:
    """One response to somebody who listens."""

    def __init__(self, streams: Iterable[EventStream], send: Send, frames: FrameEncoder) -> None:
        """Tell what ``streams``, which are entered, have; nothing is sent yet."""
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
        """Whether none of its streams brings anything more."""
        return all(stream.ended for stream in self._streams)

    async def start(self) -> None:
        """Send the head of the response, and that what follows is everything."""
        start: Message = {"type": "http.response.start", "status": 200, "headers": STREAM_HEADERS}
        await self._send(start)
        await self.send(RESET_FRAME)

    async def send(self, frames: bytes) -> None:
        """Send frames; waits while the socket takes no more."""
        await self._send({"type": "http.response.body", "body": frames, "more_body": True})
        self._sent_bytes += len(frames)

    async def end(self) -> None:
        """End the response."""
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def send_pending(self) -> bool:
        """Send some of what is pending; whether there may be more."""
        batch: list[bytes] = []
        size = 0
        for stream in self._streams:
            while size < BATCH_BYTES and (event := stream.next_nowait()) is not None:
                frame = self._frames.encode(stream.source, event)
                batch.append(frame)
                size += len(frame)
                if self._time_slice.expired:
                    await self._time_slice.maybe_yield()
        full = size >= BATCH_BYTES
        if full:
            self._streams.rotate(-1)  # the others have their turn
        elif not self._synced and all(stream.synced for stream in self._streams):
            self._synced = True
            batch.append(SYNCED_FRAME)
        if body := b"".join(batch):
            await self.send(body)
        return full

    async def wait_pending(self, *, until: float) -> None:
        """Wait until there may be something to send, or for that time of the loop, or ``wake``."""
        if self._woken:  # while it was busy
            return
        loop = asyncio.get_running_loop()
        self._waiter = waiter = loop.create_future()
        timer = loop.call_at(until, _set_done, waiter)
        for stream in self._streams:
            stream.wake(waiter)
        try:
            if waiter.done():  # there was so much to pass over that it is time to give way
                await asyncio.sleep(0)
            await waiter
        finally:
            timer.cancel()
            self._waiter = None
        self._time_slice.reset()

    def wake(self) -> None:
        """Let it wait for nothing more."""
        self._woken = True
        if self._waiter is not None:
            _set_done(self._waiter)

    def __repr__(self) -> str:
        pending = sum(stream.statistics().pending for stream in self._streams)
        return f"<FeedClient sent={self._sent_bytes} B pending={pending}>"


def _set_done(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
