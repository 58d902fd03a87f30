"""A request on its way through a server, faults included: the waiting that ``FaultedRequest`` asks for.

Shared by the two front ends: ``handlers`` sends over HTTP what gets through, ``list_watcher``
yields it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from aioinformer.errors import ConnectionFailed, ConnectionLost
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.cluster.watches import Watch
from aioinformer.testing.faults.effects import (
    BreakConnection,
    RespondWithError,
    SendBytes,
    WaitUntil,
)
from aioinformer.testing.faults.exchange import FaultedRequest
from aioinformer.testing.server.clock import Clock

__all__ = ["RequestDriver", "split_chunks"]

CHUNK_BYTES = 64 * 1024
"""Bytes of a list at a time: an HTTP client reads about as much."""

VERSION_WAIT_TIMEOUT = 3.0
"""How long a server waits for a resourceVersion that isn't there yet (the watch cache's
``blockTimeout``)."""


class RequestDriver:
    """One request. Its exchange is closed by whoever made it."""

    def __init__(self, request: FaultedRequest, clock: Clock) -> None:
        """Make the passage of an exchange, whose time is the clock's."""
        self._request = request
        self._clock = clock
        self._wakeup = asyncio.Event()
        request.on_change = self._wakeup.set

    async def start_response(self) -> None:
        """Return when the answer may begin.

        Raises:
            ServerError: it is this error.
            ConnectionFailed, ConnectionLost: there is none.
        """
        while True:
            match self._request.response_action(self._clock.now):
                case SendBytes():
                    return
                case WaitUntil(until):
                    await self._wait_until(until)
                case RespondWithError(error):
                    raise error
                case BreakConnection(refused):
                    if refused:
                        raise ConnectionFailed("the connection was refused")
                    raise ConnectionLost("the connection broke before the answer")

    async def wait_for_version(self, cluster: Cluster, version: int) -> None:
        """Wait until the cluster has reached a version, though not for long."""
        if version <= cluster.resource_version:
            return
        reached = asyncio.Event()
        with cluster.expecting(version, reached.set):
            await self._clock.until(reached, self._clock.now + VERSION_WAIT_TIMEOUT)

    async def transfer(self, chunks: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
        """What gets through of a body, in the pieces in which it does.

        Raises:
            ConnectionLost: the connection broke.
        """
        async with aclosing(chunks):
            async for chunk in chunks:
                rest = chunk
                while part := await self._transfer_next(rest):
                    yield part
                    rest = rest[len(part) :]
        await self._transfer_next(
            b""
        )  # a connection that has fallen silent doesn't say that it ends

    async def _transfer_next(self, data: bytes) -> bytes:
        while True:
            match self._request.body_action(data, self._clock.now):
                case SendBytes(part):
                    return part
                case WaitUntil(until):
                    await self._wait_until(until)
                case BreakConnection() | RespondWithError():
                    raise ConnectionLost("the connection broke in the middle of the answer")

    async def watch_lines(self, watch: Watch) -> AsyncGenerator[bytes]:
        """The lines of a watch as they come, until it ends; empty ones when the faults change.

        The caller closes the watch.
        """
        exchange = self._request
        watch.on_ready = self._wakeup.set
        watch.bookmark_delay = exchange.bookmark_delay
        while not watch.ended:
            self._wakeup.clear()
            lines = watch.take(self._clock.now)
            for line in lines:
                if not exchange.drops_line(line):
                    yield line
            if not lines and not watch.ended:
                await self._clock.until(self._wakeup, watch.next_deadline)
                yield b""

    async def _wait_until(self, until: float) -> None:
        self._wakeup.clear()
        await self._clock.until(self._wakeup, until)

    def __repr__(self) -> str:
        return f"<RequestDriver of {self._request!r}>"


async def split_chunks(body: bytes) -> AsyncGenerator[bytes]:
    """A body in the pieces in which it is sent."""
    for start in range(0, len(body), CHUNK_BYTES):
        yield body[start : start + CHUNK_BYTES]
        await asyncio.sleep(0)  # a list of any size leaves the loop to others
