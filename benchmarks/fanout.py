"""What each further listener costs, alone: no socket, and a source that waits for the last.

    python -m benchmarks.fanout [--events N]

Behind a busy server many events come with one wake-up, and a listener is cheap; the dear case is
an event that comes alone. So here a source in memory gives some events at a time, one or 64, and
no more before the last listener has heard of them. What one listener and 17 cost, in turns, in CPU
time of the thread and with the garbage collector at rest, tells what a further one does. The
listeners count, and their statistics are on, as they always are.
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
"""Times that both are measured; the quickest of each counts, since noise only adds."""
BRIEF = 20_000
"""Events that are measured unless another number is asked for."""


class Fanout(Struct):
    """Microseconds of CPU an event that each further listener costs."""

    alone: float
    """Of a plain function, with one event a wake-up."""
    together: float
    """The same, with 64."""
    coroutine: float
    """Of an async function that doesn't wait, with one event a wake-up."""


class Count:
    """The handler."""

    def __init__(self) -> None:
        """None yet."""
        self.events = 0

    def plain(self, event: Event) -> None:
        """One more."""
        self.events += 1

    async def coroutine(self, event: Event) -> None:
        """One more."""
        self.events += 1


class Feed:
    """A ``ListerWatcher`` in memory: a list, then so many events at a time."""

    resource: Resource = next(each for each in BUILT_IN if each.plural == "pods")
    watch_lists = False

    def __init__(self, events: int, batch: int, heard: Callable[[], int]) -> None:
        """A feed; ``heard``: the events that the last listener was told of."""
        self.over = asyncio.Event()
        """Set when the last event was heard of."""
        self.spent = 0.0
        """Seconds of CPU from the first event to the last."""
        self._heard = heard
        self._batch = batch
        self._chunks = list(_chunks(events, batch))

    @asynccontextmanager
    async def list(self, request: ListRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        """The pods."""
        yield self._listed()

    @asynccontextmanager
    async def watch(self, request: WatchRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        """The events, and then silence."""
        yield self._watched()

    async def _listed(self) -> AsyncGenerator[bytes]:
        items = b",".join(_pod(number, 1) for number in range(PODS))
        yield b'{"metadata":{"resourceVersion":"1"},"items":[%b]}' % items

    async def _watched(self) -> AsyncGenerator[bytes]:
        await self._until(PODS)
        gc.collect()
        gc.disable()
        start, told = time.thread_time(), PODS
        for chunk in self._chunks:
            yield chunk
            told += self._batch
            await self._until(told)
        self.spent = time.thread_time() - start
        gc.enable()
        self.over.set()
        await asyncio.Event().wait()

    async def _until(self, count: int) -> None:
        while self._heard() < count:  # noqa: ASYNC110 - an event would be part of the cost
            await asyncio.sleep(0)


def _pod(number: int, version: int) -> bytes:
    return (
        b'{"metadata":{"name":"pod-%d","namespace":"web","uid":"uid-%d","resourceVersion":"%d"}}'
        % (number, number, version)
    )


def _chunks(events: int, batch: int) -> Iterator[bytes]:
    """The changes of one pod after the other, ``batch`` a chunk."""
    for start in range(0, events, batch):
        yield b"".join(
            b'{"type":"MODIFIED","object":%b}\n' % _pod(number % PODS, number + 2)
            for number in range(start, start + batch)
        )


async def _cost(listeners: int, events: int, batch: int, *, coroutine: bool) -> float:
    """Seconds of CPU an event."""
    counts = [Count() for _ in range(listeners)]
    feed = Feed(events - events % batch, batch, lambda: counts[-1].events)
    informer = SharedInformer(feed)
    for each in counts:
        informer.add_handler(each.coroutine if coroutine else each.plain)
    work = asyncio.create_task(informer.run())
    await feed.over.wait()
    work.cancel()
    await asyncio.wait({work})
    told = PODS + events - events % batch
    if any(each.events != told for each in counts):
        raise AssertionError("a listener has not heard of every event")
    return feed.spent / (told - PODS)


def _further(events: int, batch: int, turns: int, *, coroutine: bool = False) -> float:
    few, many = float("inf"), float("inf")
    for _ in range(turns):
        few = min(few, asyncio.run(_cost(FEW, events, batch, coroutine=coroutine)))
        many = min(many, asyncio.run(_cost(MANY, events, batch, coroutine=coroutine)))
    return (many - few) / (MANY - FEW) * 1e6


def measure(events: int, turns: int = TURNS) -> Fanout:
    """Measure all of it."""
    return Fanout(
        alone=_further(events, ALONE, turns),
        together=_further(events, TOGETHER, turns),
        coroutine=_further(events, ALONE, turns, coroutine=True),
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=BRIEF)
    found = measure(parser.parse_args().events)
    sys.stdout.buffer.write(msgspec.json.encode(found) + b"\n")


if __name__ == "__main__":
    main()
