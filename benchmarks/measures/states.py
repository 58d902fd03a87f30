"""Measure the memory and the longest callbacks of reading a whole state, first and again.

    python -m benchmarks.measures.states [--pods N] [--large N] [--repetitions N]

The state is read by WatchList and by LIST, each in one response: a first time, and again, either
unchanged or with every object changed. Memory is the highest number of resident bytes above the
bare process, as a multiple of the bytes of JSON listed. The informer has one index and one listener
that counts. The longest callbacks are measured with more pods than the memory.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
from collections.abc import Callable, Iterator
from statistics import median

import msgspec
from msgspec import Struct

from aioinformer import Client, SharedInformer, SharedInformerFactory
from benchmarks.contestants.ours import Count, namespace, release
from benchmarks.load.meter import forget_highest, highest, resident
from benchmarks.load.pods import Dataset
from benchmarks.load.processes import output, serving
from benchmarks.load.scratch import scratch
from benchmarks.measures.callbacks import LongestCallback, Timer, timing

__all__ = ["Cost", "Readings", "measure", "measured"]

WAYS = ("watchlist", "list")
AGAIN = {"unchanged": "/forget", "changed": "/expire"}
"""The request to the load server, by the second state."""
SETTLE = 1.0
"""Seconds to wait after the last delivery, in which the informer frees the old state in steps."""
MOST_MEMORY, MOST_CALLBACK = 1.0, 10.0
"""The limits: multiples of the bytes listed, if the state doesn't change, and milliseconds."""


class Cost(Struct):
    """The cost of reading the state once."""

    peak: int
    """The highest number of resident bytes above the bare process."""
    longest: LongestCallback
    """The longest callbacks."""


class Readings(Struct):
    """The state, read twice in one process."""

    first: Cost
    again: Cost


# -- in a process of its own -------------------------------------------------------------------


async def measure(server: str, pods: int, way: str, again: str, timer: Timer) -> Readings:
    """Read the state, end the watch, and read the state again.

    Args:
        server: the URL of the load server.
        pods: the number of pods in the state.
        way: ``watchlist`` or ``list``.
        again: the second state, ``unchanged`` or ``changed``.
        timer: records the longest callbacks.
    """
    async with (
        Client(server) as client,
        SharedInformerFactory(client, watch_list=way == "watchlist") as informers,
    ):
        await _tidy(timer)
        bare = resident()
        informer = informers.informer("pods", indexers={"namespace": namespace})
        handler = Count()
        informer.add_handler(handler, overflow="block")
        first = await _read(lambda: handler.events >= pods, bare, timer)
        await release(server)
        await _tidy(timer)
        forget_highest()
        began = asyncio.get_running_loop().time()
        await release(server, AGAIN[again])
        # Not a look for another state than ``watching``, which may last less than a millisecond.
        await _until(lambda: _left_its_state(informer, began))
        events = 2 * pods if again == "changed" else pods
        second = await _read(lambda: _watching(informer) and handler.events >= events, bare, timer)
        health = informer.health
    if (health.objects, health.strategy) != (pods, way):
        raise AssertionError(
            f"{health.objects} pods were read by {health.strategy}, not {pods} by {way}"
        )
    return Readings(first, second)


async def _tidy(timer: Timer) -> None:
    """Collect garbage in a callback that isn't counted."""
    gc.collect()
    await asyncio.sleep(0)
    timer.take()


async def _read(done: Callable[[], bool], bare: int, timer: Timer) -> Cost:
    await _until(done)
    await asyncio.sleep(SETTLE)
    return Cost(highest() - bare, timer.take())


def _watching(informer: SharedInformer) -> bool:
    return informer.health.state == "watching"


def _left_its_state(informer: SharedInformer, began: float) -> bool:
    return informer.health.since < asyncio.get_running_loop().time() - began


async def _until(done: Callable[[], bool]) -> None:
    while not done():  # noqa: ASYNC110 - an event would be measured too
        await asyncio.sleep(0.001)


# -- the table ---------------------------------------------------------------------------------


def measured(dataset: Dataset, way: str, again: str) -> Readings:
    """Measure in a new process, with a new load server."""
    with serving(dataset.folder) as server:
        command = [sys.executable, "-m", "benchmarks.measures.states", f"--server={server}"]
        options = [f"--pods={dataset.pods}", f"--way={way}", f"--again={again}"]
        return msgspec.json.decode(output([*command, *options], "states"), type=Readings)


def _rows(pods: int, large: int, repetitions: int) -> Iterator[str]:
    yield f"{'':26}{'peak / JSON listed':>20}{'longest callback: CPU':>24}{'wall':>9}"
    with scratch() as folder:
        small, big = folder / "memory", folder / "callbacks"
        datasets: list[Dataset] = []
        for place, size in ((small, pods), (big, large)):
            place.mkdir()
            datasets.append(Dataset.write(place, size, 0))
            datasets[-1].write_relist()
        for way in WAYS:
            firsts: list[tuple[Readings, Readings]] = []
            for again in AGAIN:
                pairs = [
                    (measured(datasets[0], way, again), measured(datasets[1], way, again))
                    for _ in range(repetitions)
                ]
                firsts += pairs
                costs = [(memory.again, callbacks.again) for memory, callbacks in pairs]
                yield _row(f"{way}, again, {again}", datasets[0], costs, bound=again != "changed")
            costs = [(memory.first, callbacks.first) for memory, callbacks in firsts]
            yield _row(f"{way}, first", datasets[0], costs, bound=True)


def _row(name: str, dataset: Dataset, costs: list[tuple[Cost, Cost]], *, bound: bool) -> str:
    peak = median(memory.peak for memory, _ in costs) / dataset.listed_bytes
    cpu = median(callbacks.longest.cpu for _, callbacks in costs) * 1e3
    wall = median(callbacks.longest.wall for _, callbacks in costs) * 1e3
    worst = max((callbacks.longest for _, callbacks in costs), key=lambda each: each.cpu).what
    met = (peak <= MOST_MEMORY or not bound) and cpu <= MOST_CALLBACK
    remark = worst if met else f"{worst}, NOT MET"
    return f"{name:26}{peak:>18.2f} x{cpu:>21.1f} ms{wall:>6.1f} ms  {remark}"


def main() -> None:
    """Measure all states and print a table; with ``--server``, measure one for the parent."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.measures.states", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument(
        "--pods", type=int, default=50_000, help="pods in the measurement of memory"
    )
    parser.add_argument(
        "--large", type=int, default=100_000, help="pods in the measurement of callbacks"
    )
    parser.add_argument("--repetitions", type=int, default=3)
    for option in ("--server", "--way", "--again"):
        parser.add_argument(option, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.server is None:
        for row in _rows(options.pods, options.large, options.repetitions):
            print(row, flush=True)
        return
    with timing() as timer:
        readings = asyncio.run(
            measure(options.server, options.pods, options.way, options.again, timer)
        )
    sys.stdout.buffer.write(msgspec.json.encode(readings) + b"\n")


if __name__ == "__main__":
    main()
