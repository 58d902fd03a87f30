"""Measure the longest callbacks of the event loop during a sync, relist, resync and index build.

    python -m benchmarks.measures.callbacks --server URL --pods N

An event loop runs everything as an ``asyncio.Handle``, and each handle is timed here: in CPU time
of the thread, which the informer causes, and in wall time, which other processes influence too.
The measured work is a sync, a relist in which every object has changed, a resync, and the addition
of an index.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
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
from benchmarks.contestants.ours import namespace, release

__all__ = ["Longest", "LongestCallback", "Timer", "timing"]

RUN = "_run"
"""The method that the loop calls for each handle. asyncio has no public hook at this place."""
INDEXERS: Mapping[str, Callable[[KubeObject], Iterable[str] | str | None]] = {
    "namespace": namespace,
    "node": field("spec.nodeName"),
    "labels": label_index("app", "tier"),
}
"""Three indexes, one of them with a label of every object: large dicts grow in large steps."""
TICK = 0.0001
"""Seconds an object between resyncs, so that the first resync follows the sync and the relist
without a long wait."""


class LongestCallback(Struct):
    """The longest callback of one part of the work, in seconds."""

    cpu: float = 0.0
    """By CPU time of the thread."""
    wall: float = 0.0
    """By wall time, of any callback."""
    what: str = ""
    """The callback with the most CPU time: the name of its task, or of its function."""
    collection: float = 0.0
    """The longest garbage collection, by CPU time. It is a part of the callback in which it began,
    and visits the objects of the whole program."""


class Longest(Struct):
    """The longest callbacks of all measured parts of the work."""

    sync: LongestCallback
    relist: LongestCallback
    resync: LongestCallback
    add_index: LongestCallback


class Timer:
    """A runner of handles that records the longest."""

    def __init__(self, run: Callable[[asyncio.Handle], None]) -> None:
        """Create a timer that runs handles by ``run``."""
        self.longest = LongestCallback()
        self._run = run
        self._collecting = 0.0

    def timed(self, handle: asyncio.Handle) -> None:
        """Run one handle and record its times."""
        wall, cpu = time.perf_counter(), time.thread_time()
        self._run(handle)
        cpu, wall = time.thread_time() - cpu, time.perf_counter() - wall
        if cpu > self.longest.cpu:
            self.longest.cpu, self.longest.what = cpu, _name(handle)
        self.longest.wall = max(self.longest.wall, wall)

    def collected(self, phase: str, _: dict[str, int]) -> None:
        """Record a garbage collection: a callback of ``gc``."""
        now = time.thread_time()
        if phase == "start":
            self._collecting = now
        else:
            self.longest.collection = max(self.longest.collection, now - self._collecting)

    def take(self) -> LongestCallback:
        """Return the longest callbacks since the previous call."""
        longest, self.longest = self.longest, LongestCallback()
        return longest


def _name(handle: asyncio.Handle) -> str:
    callback = getattr(handle, "_callback", None)
    owner = getattr(callback, "__self__", None)
    return owner.get_name() if isinstance(owner, asyncio.Task) else repr(callback)


class _Progress:
    """The handler: counts additions, changes and resyncs."""

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
    """Sync, expire the watch, relist, resync, and add an index."""
    progress = _Progress(pods)
    async with (
        Client(server) as client,
        SharedInformerFactory(client, resync=1 + TICK * pods) as informers,
    ):
        informer = informers.informer("pods", indexers=INDEXERS)
        await asyncio.sleep(0)  # the creation of the client isn't counted
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
    """Time every handle of every loop within the context."""
    timer = Timer(getattr(asyncio.Handle, RUN))

    def run(handle: asyncio.Handle) -> None:
        timer.timed(handle)

    gc.callbacks.append(timer.collected)
    try:
        with patch.object(asyncio.Handle, RUN, run):
            yield timer
    finally:
        gc.callbacks.remove(timer.collected)


def main() -> None:
    """Measure and print the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", required=True)
    parser.add_argument("--pods", type=int, required=True)
    arguments = parser.parse_args()
    with timing() as timer:
        longest = asyncio.run(measure(arguments.server, arguments.pods, timer))
    sys.stdout.buffer.write(msgspec.json.encode(longest) + b"\n")


if __name__ == "__main__":
    main()
