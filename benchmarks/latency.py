"""The latency of an event from the server's kernel to the handler, at a moderate rate.

    python -m benchmarks.latency --server URL --pods N --events N [--floor]

The server is that of ``pacing``, whose events contain the time of sending. There is one informer
with one index and a handler that reads the clock; garbage collection has its defaults. ``--floor``
measures the same with aiohttp alone: the time that the machine needs to transport the bytes.
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
from benchmarks.ours import namespace, release

__all__ = ["Latency", "measure", "measure_floor"]

_VERSION = re.compile(rb'"resourceVersion":"([0-9]+)"')


class Latency(Struct, kw_only=True):
    """The latency of all events, in seconds."""

    rate: float
    """The rate of received events, per second."""
    p50: float
    p99: float
    worst: float

    @classmethod
    def of(cls, taken: list[int], seconds: float) -> Latency:
        """Compute the latency from nanoseconds per event and the duration of all events."""
        ordered = sorted(taken)
        count = len(ordered)
        return cls(
            rate=count / seconds,
            p50=ordered[count // 2] / 1e9,
            p99=ordered[min(count * 99 // 100, count - 1)] / 1e9,
            worst=ordered[-1] / 1e9,
        )


class _Clock:
    """A handler that reads the clock."""

    def __init__(self, pods: int, events: int) -> None:
        self.taken: list[int] = []
        self.synced, self.done = asyncio.Event(), asyncio.Event()
        self._awaited = pods
        self._events = events

    def __call__(self, event: Event) -> None:
        now = time.monotonic_ns()
        if isinstance(event, Updated):
            self.taken.append(now - int(event.obj.resource_version))
            if len(self.taken) == self._events:
                self.done.set()
            return
        self._awaited -= 1
        if not self._awaited:
            self.synced.set()


async def measure(server: str, events: int, pods: int) -> Latency:
    """Sync, then measure the events."""
    clock = _Clock(pods, events)
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
    """Measure the arrival of the bytes in aiohttp without further work."""
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
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--server", required=True)
    parser.add_argument("--pods", type=int, required=True)
    parser.add_argument("--events", type=int, required=True)
    parser.add_argument("--floor", action="store_true", help="without the library")
    given = parser.parse_args()
    asked = (given.server, given.events)
    found = asyncio.run(measure_floor(*asked) if given.floor else measure(*asked, given.pods))
    sys.stdout.buffer.write(msgspec.json.encode(found) + b"\n")


if __name__ == "__main__":
    main()
