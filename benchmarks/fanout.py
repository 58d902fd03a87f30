"""The cost of each further listener, without a socket.

    python -m benchmarks.fanout [--events N]

With a busy server many events arrive in one wake-up, and a listener is cheap. The expensive case is
an event that arrives alone. Therefore a source in memory sends one event or 64 events at a time,
and waits until the last listener has received them. An informer with one listener and one with 17
are measured in turns, in CPU time of the thread and without garbage collection; the difference is
the cost of the further listeners. The listeners count events, and their statistics are on.
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
"""Numbers of listeners of the two informers."""
PODS = 500
ALONE, TOGETHER = 1, 64
"""Numbers of events per wake-up."""
TURNS = 5
"""Number of measurements of each. The fastest counts, because noise only adds time."""
BRIEF = 20_000
"""Default number of events."""


class Fanout(Struct):
    """Microseconds of CPU time per event and further listener."""

    alone: float
    """A plain function, with one event per wake-up."""
    together: float
    """A plain function, with 64 events per wake-up."""
    coroutine: float
    """An async function that doesn't wait, with one event per wake-up."""


class Count:
    """A handler that counts events."""

    def __init__(self) -> None:
        """Create a counter at zero."""
        self.events = 0

    def plain(self, event: Event) -> None:
        """Count an event."""
        self.events += 1

    async def coroutine(self, event: Event) -> None:
        """Count an event."""
        self.events += 1


class Feed:
    """A ``ListerWatcher`` in memory: a list, then ``batch`` events at a time."""

    resource: Resource = next(each for each in BUILT_IN if each.plural == "pods")
    watch_lists = False

    def __init__(self, events: int, batch: int, heard: Callable[[], int]) -> None:
        """Create the source; ``heard`` returns the events of the last listener."""
        self.over = asyncio.Event()
        """Set when the last listener has received the last event."""
        self.spent = 0.0
        """Seconds of CPU time from the first event to the last."""
        self._heard = heard
        self._batch = batch
        self._chunks = list(_chunks(events, batch))

    @asynccontextmanager
    async def list(self, request: ListRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        """Yield the list of pods."""
        yield self._listed()

    @asynccontextmanager
    async def watch(self, request: WatchRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        """Yield the events, then wait for ever."""
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
    """Yield chunks of ``batch`` changes, of one pod after the other."""
    for start in range(0, events, batch):
        yield b"".join(
            b'{"type":"MODIFIED","object":%b}\n' % _pod(number % PODS, number + 2)
            for number in range(start, start + batch)
        )


async def _cost(listeners: int, events: int, batch: int, *, coroutine: bool) -> float:
    """Return the seconds of CPU time per event."""
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
    """Measure all cases."""
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
