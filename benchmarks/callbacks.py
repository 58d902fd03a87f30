"""How long one callback keeps the event loop, while much happens at once.

    python -m benchmarks.callbacks --server URL --pods N

Everything that an event loop runs is an ``asyncio.Handle``; each is timed here, in CPU time of
the thread, which is the informer's doing, and in wall time, which is also the machine's. A sync,
a relist in which every object has changed, a resync, and an index that is added.
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
"""The method that the loop calls for each handle. It offers no other place to stand."""
INDEXERS: Mapping[str, Callable[[KubeObject], Iterable[str] | str | None]] = {
    "namespace": namespace,
    "node": field("spec.nodeName"),
    "labels": label_index("app", "tier"),
}
"""Three of them. With a label that every object has: large dicts grow in large steps."""
TICK = 0.0001
"""Seconds an object between resyncs: later than sync and relist, and soon enough to wait for."""


class Stretch(Struct):
    """The longest callbacks of one stretch of work, in seconds."""

    cpu: float = 0.0
    """By CPU time of the thread."""
    wall: float = 0.0
    """By the clock, of any callback."""
    what: str = ""
    """Which callback the first was: the name of its task, or of its function."""


class Longest(Struct):
    """The longest callbacks of everything that was measured."""

    sync: Stretch
    relist: Stretch
    resync: Stretch
    add_index: Stretch


class Timer:
    """Runs handles, and notes how long they took."""

    def __init__(self, run: Callable[[asyncio.Handle], None]) -> None:
        """None yet; ``run`` runs them."""
        self.longest = Stretch()
        self._run = run

    def timed(self, handle: asyncio.Handle) -> None:
        """Run one."""
        wall, cpu = time.perf_counter(), time.thread_time()
        self._run(handle)
        cpu, wall = time.thread_time() - cpu, time.perf_counter() - wall
        if cpu > self.longest.cpu:
            self.longest.cpu, self.longest.what = cpu, _name(handle)
        self.longest.wall = max(self.longest.wall, wall)

    def take(self) -> Stretch:
        """The longest since this was called last."""
        taken, self.longest = self.longest, Stretch()
        return taken


def _name(handle: asyncio.Handle) -> str:
    callback = getattr(handle, "_callback", None)
    owner = getattr(callback, "__self__", None)
    return owner.get_name() if isinstance(owner, asyncio.Task) else repr(callback)


class _Progress:
    """The handler: counts what it is told by what it means."""

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
    """Sync, let the watch expire, relist, resync, add an index."""
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
    """Within the context, every handle of every loop is timed."""
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
