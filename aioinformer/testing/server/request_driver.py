"""A request on its way through a server, faults included: the waiting that ``Exchange`` asks for.

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
from aioinformer.testing.faults.effects import Break, Fail, Send, Wait
from aioinformer.testing.faults.exchange import Exchange
from aioinformer.testing.server.clock import Clock

__all__ = ["Passage", "chunks_of"]

CHUNK = 64 * 1024
"""Bytes of a list at a time: an HTTP client reads about as much."""

FRESH_SECONDS = 3.0
"""How long a server waits for a resourceVersion that isn't there yet (the watch cache's
``blockTimeout``)."""


class Passage:
    """One request. Its exchange is closed by whoever made it."""

    def __init__(self, exchange: Exchange, clock: Clock) -> None:
        """Make the passage of an exchange, whose time is the clock's."""
        self._exchange = exchange
        self._clock = clock
        self._stirred = asyncio.Event()
        exchange.on_change = self._stirred.set

    async def admit(self) -> None:
        """Return when the answer may begin.

        Raises:
            ServerError: it is this error.
            ConnectionFailed, ConnectionLost: there is none.
        """
        while True:
            match self._exchange.head(self._clock.now):
                case Send():
                    return
                case Wait(until):
                    await self._wait(until)
                case Fail(error):
                    raise error
                case Break(refused):
                    if refused:
                        raise ConnectionFailed("the connection was refused")
                    raise ConnectionLost("the connection broke before the answer")

    async def fresh(self, cluster: Cluster, version: int) -> None:
        """Wait until the cluster has reached a version, though not for long."""
        if version <= cluster.resource_version:
            return
        reached = asyncio.Event()
        with cluster.expecting(version, reached.set):
            await self._clock.until(reached, self._clock.now + FRESH_SECONDS)

    async def carry(self, chunks: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
        """What gets through of a body, in the pieces in which it does.

        Raises:
            ConnectionLost: the connection broke.
        """
        async with aclosing(chunks):
            async for chunk in chunks:
                rest = chunk
                while part := await self._next(rest):
                    yield part
                    rest = rest[len(part) :]
        await self._next(b"")  # a connection that has fallen silent doesn't say that it ends

    async def _next(self, data: bytes) -> bytes:
        while True:
            match self._exchange.send(data, self._clock.now):
                case Send(part):
                    return part
                case Wait(until):
                    await self._wait(until)
                case Break() | Fail():
                    raise ConnectionLost("the connection broke in the middle of the answer")

    async def lines(self, watch: Watch) -> AsyncGenerator[bytes]:
        """The lines of a watch as they come, until it ends; empty ones when the faults change.

        The caller closes the watch.
        """
        exchange = self._exchange
        watch.on_ready = self._stirred.set
        watch.bookmark_delay = exchange.bookmark_delay
        while not watch.ended:
            self._stirred.clear()
            lines = watch.take(self._clock.now)
            for line in lines:
                if not exchange.withholds(line):
                    yield line
            if not lines and not watch.ended:
                await self._clock.until(self._stirred, watch.next_deadline)
                yield b""

    async def _wait(self, until: float) -> None:
        self._stirred.clear()
        await self._clock.until(self._stirred, until)

    def __repr__(self) -> str:
        return f"<Passage of {self._exchange!r}>"


async def chunks_of(body: bytes) -> AsyncGenerator[bytes]:
    """A body in the pieces in which it is sent."""
    for start in range(0, len(body), CHUNK):
        yield body[start : start + CHUNK]
        await asyncio.sleep(0)  # a list of any size leaves the loop to others
