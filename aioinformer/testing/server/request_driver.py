"""A request on its way through a server: the waits that faults and versions ask for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from aioinformer.errors import ConnectionFailed, ConnectionLost, RequestTimedOut
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.cluster.watches import Watch
from aioinformer.testing.faults.effects import (
    BreakConnection,
    RespondWithBody,
    RespondWithError,
    SendBytes,
    WaitUntil,
)
from aioinformer.testing.faults.exchange import FaultedRequest
from aioinformer.testing.server.clock import Clock
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import encode_error_event

CHUNK_BYTES = 64 * 1024
"""Bytes of a list that are sent at a time. An HTTP client reads about as much at once."""

CHUNK_LINES = 16
"""The most events of a watch in one chunk: about as many pods as fit a TLS record of 16 KiB."""

VERSION_WAIT_TIMEOUT = 3.0
"""Seconds that a server waits for a later resourceVersion (the watch cache's ``blockTimeout``)."""


class RequestDriver:
    """One request under faults. The code that made the ``FaultedRequest`` closes it."""

    def __init__(self, request: FaultedRequest, clock: Clock) -> None:
        self._request = request
        self._clock = clock
        self._wakeup = asyncio.Event()
        self.client_deadline = _NEVER
        """The time at which the client gives up, unless bytes arrive; ``inf`` for never. It is for
        sources without sockets, where no client counts the seconds."""
        request.on_change = self._wakeup.set

    @property
    def request(self) -> FaultedRequest:
        return self._request

    async def start_response(self) -> RespondWithBody | None:
        """Wait until the answer can begin; return the whole answer if it is not the server's own.

        Raises:
            ServerError: the answer is this error.
            ConnectionFailed, ConnectionLost: no answer is sent.
            RequestTimedOut: the client gives up.
        """
        while True:
            match self._request.response_action(self._clock.now):
                case SendBytes():
                    return None
                case RespondWithBody() as foreign:
                    return foreign
                case WaitUntil(until):
                    await self._wait_until(until)
                case RespondWithError(error):
                    raise error
                case BreakConnection(refused):
                    if refused:
                        raise ConnectionFailed("the connection was refused")
                    raise ConnectionLost("the connection broke before the answer")

    async def wait_for_version(self, cluster: Cluster, version: int) -> None:
        """Wait until the cluster has reached a version, at most ``VERSION_WAIT_TIMEOUT``."""
        if version <= cluster.resource_version:
            return
        reached = asyncio.Event()
        with cluster.expecting(version, reached.set):
            await self._clock.until(reached, self._clock.now + VERSION_WAIT_TIMEOUT)

    async def transfer(self, chunks: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
        """Yield the bytes that the faults let pass; raise ``ConnectionLost`` if they break it."""
        request = self._request
        async with aclosing(chunks):
            async for chunk in chunks:
                if request.undisturbed:
                    request.bytes_sent += len(chunk)
                    if chunk:
                        yield chunk
                    continue
                rest = chunk
                while part := await self._transfer_next(rest):
                    yield part
                    rest = rest[len(part) :]
        # A stalled connection doesn't end, so the end of the body waits like its bytes.
        await self._transfer_next(b"")

    async def _transfer_next(self, data: bytes) -> bytes:
        while True:
            match self._request.body_action(data, self._clock.now):
                case SendBytes(part):
                    return part
                case WaitUntil(until):
                    await self._wait_until(until)
                case BreakConnection() | RespondWithError() | RespondWithBody():
                    raise ConnectionLost("the connection broke in the middle of the answer")

    async def watch_lines(self, watch: Watch) -> AsyncGenerator[bytes]:
        """Yield the lines of a watch, and ``b""`` after each wait, for ``transfer`` to read the
        faults.
        """
        request, clock = self._request, self._clock
        watch.on_ready = self._wakeup.set
        watch.bookmark_delay = request.bookmark_delay
        while not watch.ended:
            self._wakeup.clear()
            if (end := request.watch_end(clock.now, idle=False)) is not None:
                if end.status is not None:
                    yield encode_error_event(statuses.status_document(end.status))
                return
            lines = request.sent_lines(taken := watch.take(clock.now))
            for start in range(0, len(lines), CHUNK_LINES):
                yield b"".join(lines[start : start + CHUNK_LINES])
            if not taken and request.watch_end(clock.now, idle=True) is not None:
                for line in request.sent_lines(watch.take_bookmark()):
                    yield line
                return
            if not taken and not watch.ended:
                deadline = min(watch.next_deadline, request.next_watch_end())
                await clock.until(self._wakeup, deadline)
                yield b""

    async def _wait_until(self, until: float) -> None:
        if self._clock.now >= self.client_deadline:
            raise RequestTimedOut("no bytes came in time")
        self._wakeup.clear()
        await self._clock.until(self._wakeup, min(until, self.client_deadline))

    def __repr__(self) -> str:
        return f"<RequestDriver of {self._request!r}>"


_NEVER = float("inf")


async def split_chunks(body: bytes) -> AsyncGenerator[bytes]:
    """Yield a body in the pieces in which a server sends it."""
    for start in range(0, len(body), CHUNK_BYTES):
        yield body[start : start + CHUNK_BYTES]
        await asyncio.sleep(0)  # other tasks run between the pieces of a long list
