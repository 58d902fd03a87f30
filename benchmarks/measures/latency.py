"""Measure the time of an event from the server's kernel to the handler, at a moderate rate.

    python -m benchmarks.measures.latency --server URL --pods N --events N [--floor]

The server is ``benchmarks.load.paced_server``: each event contains the time at which it was sent.
The program is one informer with one index and one handler that reads the clock, with Python's
default garbage collection. ``--floor`` reads the same bytes with aiohttp alone, which is the time
that this machine needs under its present load.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import time

import aiohttp
import msgspec
from msgspec import Struct

from aioinformer import Client, Event, SharedInformerFactory, Updated
from benchmarks.contestants.ours import namespace, release

__all__ = ["Clock", "Latency", "measure", "measure_floor"]

_VERSION = re.compile(rb'"resourceVersion":"([0-9]+)"')


class Latency(Struct, kw_only=True):
    """The latency of all events, in seconds."""

    rate: float
    """Events a second that arrived."""
    p50: float
    p99: float
    worst: float

    @classmethod
    def of(cls, taken: list[int], seconds: float) -> Latency:
        """Create the statistics.

        Args:
            taken: nanoseconds of each event.
            seconds: the time in which all events arrived.
        """
        ordered = sorted(taken)
        count = len(ordered)
        return cls(
            rate=count / seconds,
            p50=ordered[count // 2] / 1e9,
            p99=ordered[min(count * 99 // 100, count - 1)] / 1e9,
            worst=ordered[-1] / 1e9,
        )


class Clock:
    """The handler: records the time that each update took."""

    def __init__(self, pods: int, events: int) -> None:
        """Expect so many pods and events."""
        self.taken: list[int] = []
        self.synced, self.done = asyncio.Event(), asyncio.Event()
        self._missing = pods
        self._events = events

    def __call__(self, event: Event) -> None:
        """Handle an event."""
        now = time.monotonic_ns()
        if isinstance(event, Updated):
            self.taken.append(now - int(event.obj.resource_version))
            if len(self.taken) == self._events:
                self.done.set()
            return
        self._missing -= 1
        if not self._missing:
            self.synced.set()


async def measure(server: str, events: int, pods: int) -> Latency:
    """Wait for the sync, then time the events."""
    clock = Clock(pods, events)
    async with Client(server) as client, SharedInformerFactory(client) as informers:
        informer = informers.informer("pods", indexers={"namespace": namespace})
        informer.add_handler(clock)
        await clock.synced.wait()
        await asyncio.sleep(0.2)
        start = time.monotonic()
        await release(server)
        await clock.done.wait()
        return Latency.of(clock.taken, time.monotonic() - start)


async def measure_floor(server: str, events: int) -> Latency:
    """Time the arrival of the same bytes in aiohttp alone."""
    chunks: list[tuple[int, bytes]] = []
    lines = 0
    async with (
        aiohttp.ClientSession(server) as session,
        session.get("/api/v1/pods", params={"watch": "true"}) as response,
    ):
        start = time.monotonic()
        async with session.post("/go"):
            pass
        while lines < events:
            chunk = await response.content.readany()
            chunks.append((time.monotonic_ns(), chunk))
            lines += chunk.count(b"\n")
        seconds = time.monotonic() - start
    taken: list[int] = []
    rest = b""
    for now, chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        taken += [now - int(found[1]) for line in whole if (found := _VERSION.search(line))]
    return Latency.of(taken, seconds)


def main() -> None:
    """Measure and print the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--server", required=True)
    parser.add_argument("--pods", type=int, required=True)
    parser.add_argument("--events", type=int, required=True)
    parser.add_argument("--floor", action="store_true", help="without the library")
    options = parser.parse_args()
    common = (options.server, options.events)
    found = asyncio.run(measure_floor(*common) if options.floor else measure(*common, options.pods))
    sys.stdout.buffer.write(msgspec.json.encode(found) + b"\n")


if __name__ == "__main__":
    main()
