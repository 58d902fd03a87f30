"""The longest callbacks on the event loop during expensive operations.

    python -m benchmarks.callbacks --server URL --pods N

An event loop runs each callback as an ``asyncio.Handle``. This module measures each handle in CPU
time of the thread, which depends on the informer, and in wall time, which also depends on the
machine. The operations are a sync, a relist in which every object has changed, a resync, and the
addition of an index.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from unittest.mock import patch

import msgspec
from msgspec import Struct

from aioinformer import (
    Added,
    Client,
    Event,
    KubeObject,
    SharedInformerFactory,
    Updated,
    field,
    label_index,
)
from benchmarks.ours import namespace, release

__all__ = ["Longest", "Stretch", "Timer", "timing"]

RUN = "_run"
"""The method that the loop calls for each handle. The loop offers no other hook."""
INDEXERS: Mapping[str, Callable[[KubeObject], Iterable[str] | str | None]] = {
    "namespace": namespace,
    "node": field("spec.nodeName"),
    "labels": label_index("app", "tier"),
}
"""Three indexes. Every object has the label of one, because large dicts grow in large steps."""
TICK = 0.0001
"""Seconds per object between resyncs: after sync and relist, and soon enough for a measurement."""


class Stretch(Struct):
    """The longest callbacks during one operation, in seconds."""

    cpu: float = 0.0
    """The longest by CPU time of the thread."""
    wall: float = 0.0
    """The longest by wall time, of any callback."""
    what: str = ""
    """The name of the task or function of the callback in ``cpu``."""


class Longest(Struct):
    """The longest callbacks of all measured operations."""

    sync: Stretch
    relist: Stretch
    resync: Stretch
    add_index: Stretch


class Timer:
    """A measurement of the durations of handles."""

    def __init__(self, run: Callable[[asyncio.Handle], None]) -> None:
        """Create the timer; ``run`` runs a handle."""
        self.longest = Stretch()
        self._run = run

    def timed(self, handle: asyncio.Handle) -> None:
        """Run a handle and record its duration."""
        wall, cpu = time.perf_counter(), time.thread_time()
        self._run(handle)
        cpu, wall = time.thread_time() - cpu, time.perf_counter() - wall
        if cpu > self.longest.cpu:
            self.longest.cpu, self.longest.what = cpu, _name(handle)
        self.longest.wall = max(self.longest.wall, wall)

    def take(self) -> Stretch:
        """Return the longest callbacks since the last call."""
        taken, self.longest = self.longest, Stretch()
        return taken


def _name(handle: asyncio.Handle) -> str:
    callback = getattr(handle, "_callback", None)
    owner = getattr(callback, "__self__", None)
    return owner.get_name() if isinstance(owner, asyncio.Task) else repr(callback)


class _Progress:
    """A handler that counts the events by kind."""

    def __init__(self, pods: int) -> None:
        self._pods = pods
        self._counts = {"added": 0, "changed": 0, "resynced": 0}
        self.reached = {name: asyncio.Event() for name in self._counts}

    def on_event(self, event: Event) -> None:
        match event:
            case Added():
                self._count("added")
            case Updated(resync=True):
                self._count("resynced")
            case _:
                self._count("changed")

    def _count(self, name: str) -> None:
        self._counts[name] += 1
        if self._counts[name] == self._pods:
            self.reached[name].set()


async def measure(server: str, pods: int, timer: Timer) -> Longest:
    """Sync, let the watch expire, relist, resync, and add an index."""
    progress = _Progress(pods)
    async with (
        Client(server) as client,
        SharedInformerFactory(client, resync=1 + TICK * pods) as informers,
    ):
        informer = informers.informer("pods", indexers=INDEXERS)
        timer.take()
        informer.add_handler(progress.on_event)
        await progress.reached["added"].wait()
        sync = timer.take()
        await release(server)
        await release(server, "/expire")
        await progress.reached["changed"].wait()
        relist = timer.take()
        await progress.reached["resynced"].wait()
        resync = timer.take()
        await informer.add_index("phase", field("status.phase"))
        return Longest(sync, relist, resync, timer.take())


@contextmanager
def timing() -> Generator[Timer]:
    """Measure every handle of every loop within the context."""
    timer = Timer(getattr(asyncio.Handle, RUN))

    def run(handle: asyncio.Handle) -> None:
        timer.timed(handle)

    with patch.object(asyncio.Handle, RUN, run):
        yield timer


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", required=True)
    parser.add_argument("--pods", type=int, required=True)
    arguments = parser.parse_args()
    with timing() as timer:
        longest = asyncio.run(measure(arguments.server, arguments.pods, timer))
    sys.stdout.buffer.write(msgspec.json.encode(longest) + b"\n")


if __name__ == "__main__":
    main()
