"""The library as a contestant: it reads from the load server through its public API.

    python -m benchmarks.contestants.ours --server URL --pods N --events N \
        [--reads ...] [--listeners N]

The program is one informer with an index on the namespace, and a handler with ``overflow="block"``.
The variants differ in the fields that the handler reads. Further listeners only count events.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias

import aiohttp
import msgspec

from aioinformer import Client, Event, KubeObject, SharedInformerFactory, Updated, fields
from benchmarks.load.meter import Sample, Stopwatch, highest, resident
from benchmarks.load.pods import digest

__all__ = ["Reads", "Tally", "measure", "release"]

Reads: TypeAlias = Literal["metadata", "fields", "projection", "body"]
"""The part of an object that the handler reads. ``projection`` reads the same fields as ``fields``,
with one call of the function that ``fields(...)`` returns."""

SETTLE = 0.5
"""Seconds to wait before the memory is read, so that temporary objects are freed; the same for all
contestants."""


class Tally:
    """The handler: counts events, and records the last version of each object."""

    def __init__(self, pods: int, events: int, reads: Reads) -> None:
        """Create a handler that expects so many pods and events."""
        self.updated = 0
        self.last: dict[str, str] = {}
        self.done = asyncio.Event()
        self._added = 0
        self._pods, self._events = pods, events
        self._read = _READERS[reads]
        self.synced = asyncio.Event()

    def on_event(self, event: Event) -> None:
        """Handle an event as a plain function."""
        obj = event.obj
        self.last[obj.name] = obj.resource_version
        if isinstance(event, Updated):
            self._read(obj)
            self.updated += 1
            if self.updated == self._events:
                self.done.set()
        else:
            self._added += 1
            if self._added == self._pods:
                self.synced.set()

    async def on_event_async(self, event: Event) -> None:
        """Handle an event as an async function, the form in most programs."""
        self.on_event(event)


class Count:
    """The handler of a further listener: it counts events."""

    def __init__(self) -> None:
        """Start at 0."""
        self.events = 0

    def __call__(self, event: Event) -> None:
        """Count an event."""
        self.events += 1


def _metadata(obj: KubeObject) -> object:
    return obj.uid


def _fields(obj: KubeObject) -> object:
    return obj["spec"]["nodeName"], obj["status"]["phase"], obj["status"]["podIP"]


_project = fields("spec.nodeName", "status.phase", "status.podIP")


def _body(obj: KubeObject) -> object:
    return obj.to_dict()


_READERS: dict[Reads, Callable[[KubeObject], object]] = {
    "metadata": _metadata,
    "fields": _fields,
    "projection": _project,
    "body": _body,
}


def namespace(obj: KubeObject) -> str:
    """Return the namespace: the index function, the same as client-go's default one."""
    return obj.namespace


async def release(server: str, path: str = "/go") -> None:
    """Make the load server go on, by a ``POST`` to ``path``."""
    async with aiohttp.ClientSession(server) as session, session.post(path):
        pass


async def measure(
    server: str,
    pods: int,
    events: int,
    *,
    reads: Reads = "metadata",
    listeners: int = 1,
    coroutine: bool = False,
) -> Sample:
    """Wait for the sync, let the memory settle, then receive the events."""
    tally = Tally(pods, events, reads)
    handler: Callable[[Event], Awaitable[None] | None]
    handler = tally.on_event_async if coroutine else tally.on_event
    async with Client(server) as client, SharedInformerFactory(client) as informers:
        gc.collect()
        bare, watch = resident(), Stopwatch()
        informer = informers.informer("pods", indexers={"namespace": namespace})
        informer.add_handler(handler, overflow="block")
        others = [Count() for _ in range(listeners - 1)]
        for other in others:
            informer.add_handler(other, overflow="block")
        await tally.synced.wait()
        sync_wall, sync_cpu = watch.stop()
        peak = highest()
        await asyncio.sleep(SETTLE)
        gc.collect()
        settled = resident()
        watch = Stopwatch()
        await release(server)
        await tally.done.wait()
        # An asyncio.Event, set by the listeners, would add to their cost.
        while not all(other.events == pods + events for other in others):  # noqa: ASYNC110
            await asyncio.sleep(0)
        events_wall, events_cpu = watch.stop()
        cached = {obj.name: obj.resource_version for obj in informer.lister}
    if cached != tally.last:
        raise AssertionError("the cache differs from the last delivered versions")
    return Sample(
        sync_wall=sync_wall,
        sync_cpu=sync_cpu,
        events_wall=events_wall,
        events_cpu=events_cpu,
        bare=bare,
        peak=peak,
        settled=settled,
        delivered=tally.updated,
        digest=digest(tally.last),
    )


def main() -> None:
    """Measure and print the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", required=True)
    parser.add_argument("--pods", type=int, required=True)
    parser.add_argument("--events", type=int, required=True)
    parser.add_argument("--reads", choices=sorted(_READERS), default="metadata")
    parser.add_argument("--listeners", type=int, default=1)
    parser.add_argument("--coroutine", action="store_true", help="the handler is async")
    arguments = parser.parse_args()
    sample = asyncio.run(
        measure(
            arguments.server,
            arguments.pods,
            arguments.events,
            reads=arguments.reads,
            listeners=arguments.listeners,
            coroutine=arguments.coroutine,
        )
    )
    sys.stdout.buffer.write(msgspec.json.encode(sample) + b"\n")


if __name__ == "__main__":
    main()
