"""Measure the cost of each further listener, without a socket.

    python -m benchmarks.measures.fanout [--events N]

With a busy server many events arrive in one wake-up of the loop, and a listener is cheap. The
expensive case is an event that arrives alone. So a source in memory sends batches of one or of 64
events, and waits before the next batch until the last listener has received this one. Informers
with one listener and with 17 are measured in turns, in CPU time of the thread and with the garbage
collector disabled; their difference is the cost of the further listeners. The listeners count
events, and their statistics are on, as always.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import msgspec
from msgspec import Struct

from aioinformer import BUILT_IN, Event, ListRequest, Resource, SharedInformer, WatchRequest

__all__ = ["Fanout", "measure"]

FEW, MANY = 1, 17
"""Listeners of the two informers that are compared."""
PODS = 500
ALONE, TOGETHER = 1, 64
"""Events a wake-up."""
TURNS = 5
"""The number of measurements of each; the quickest of each counts, since noise only adds."""
BRIEF = 20_000
"""The default number of events."""


class Fanout(Struct):
    """Microseconds of CPU an event that each further listener costs."""

    alone: float
    """The handler is a plain function, with one event a wake-up."""
    together: float
    """The handler is a plain function, with 64 events a wake-up."""
    coroutine: float
    """The handler is an async function that doesn't wait, with one event a wake-up."""


class Count:
    """A handler that counts events, as a plain and as an async function."""

    def __init__(self) -> None:
        """Start at 0."""
        self.events = 0

    def plain(self, event: Event) -> None:
        """Count an event."""
        self.events += 1

    async def coroutine(self, event: Event) -> None:
        """Count an event."""
        self.events += 1


class Feed:
    """A ``ListerWatcher`` in memory: a list, then events in batches."""

    resource: Resource = next(each for each in BUILT_IN if each.plural == "pods")
    watch_lists = False

    def __init__(self, events: int, batch: int, delivered: Callable[[], int]) -> None:
        """Prepare the bytes of all events.

        Args:
            events: the number of events.
            batch: the number of events in one chunk.
            delivered: returns the number of events that the last listener has received.
        """
        self.over = asyncio.Event()
        """Set after the delivery of the last event."""
        self.spent = 0.0
        """Seconds of CPU from the first event to the last."""
        self._delivered = delivered
        self._batch = batch
        self._chunks = list(_chunks(events, batch))

    @asynccontextmanager
    async def list(self, request: ListRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        """Yield the pods."""
        yield self._listed()

    @asynccontextmanager
    async def watch(self, request: WatchRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        """Yield the events, and then wait forever."""
        yield self._watched()

    async def _listed(self) -> AsyncGenerator[bytes]:
        items = b",".join(_pod(number, 1) for number in range(PODS))
        yield b'{"metadata":{"resourceVersion":"1"},"items":[%b]}' % items

    async def _watched(self) -> AsyncGenerator[bytes]:
        await self._until(PODS)
        gc.collect()
        gc.disable()
        start, sent = time.thread_time(), PODS
        for chunk in self._chunks:
            yield chunk
            sent += self._batch
            await self._until(sent)
        self.spent = time.thread_time() - start
        gc.enable()
        self.over.set()
        await asyncio.Event().wait()

    async def _until(self, count: int) -> None:
        while self._delivered() < count:  # noqa: ASYNC110 - an event would be part of the cost
            await asyncio.sleep(0)


def _pod(number: int, version: int) -> bytes:
    return (
        b'{"metadata":{"name":"pod-%d","namespace":"web","uid":"uid-%d","resourceVersion":"%d"}}'
        % (number, number, version)
    )


def _chunks(events: int, batch: int) -> Iterator[bytes]:
    """Yield changes of one pod after the other, ``batch`` a chunk."""
    for start in range(0, events, batch):
        yield b"".join(
            b'{"type":"MODIFIED","object":%b}\n' % _pod(number % PODS, number + 2)
            for number in range(start, start + batch)
        )


async def _cost(listeners: int, events: int, batch: int, *, coroutine: bool) -> float:
    """Return the seconds of CPU an event."""
    counts = [Count() for _ in range(listeners)]
    feed = Feed(events - events % batch, batch, lambda: counts[-1].events)
    informer = SharedInformer(feed)
    for each in counts:
        informer.add_handler(each.coroutine if coroutine else each.plain)
    work = asyncio.create_task(informer.run())
    await feed.over.wait()
    work.cancel()
    await asyncio.wait({work})
    sent = PODS + events - events % batch
    if any(each.events != sent for each in counts):
        raise AssertionError("a listener has not received every event")
    return feed.spent / (sent - PODS)


def _further(events: int, batch: int, turns: int, *, coroutine: bool = False) -> float:
    few, many = float("inf"), float("inf")
    for _ in range(turns):
        few = min(few, asyncio.run(_cost(FEW, events, batch, coroutine=coroutine)))
        many = min(many, asyncio.run(_cost(MANY, events, batch, coroutine=coroutine)))
    return (many - few) / (MANY - FEW) * 1e6


def measure(events: int, turns: int = TURNS) -> Fanout:
    """Measure the three cases."""
    return Fanout(
        alone=_further(events, ALONE, turns),
        together=_further(events, TOGETHER, turns),
        coroutine=_further(events, ALONE, turns, coroutine=True),
    )


def main() -> None:
    """Measure and print the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=BRIEF)
    found = measure(parser.parse_args().events)
    sys.stdout.buffer.write(msgspec.json.encode(found) + b"\n")


if __name__ == "__main__":
    main()
