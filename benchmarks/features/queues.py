"""Measure the work queue beside client-go's, in one run on one machine.

python -m benchmarks.features.queues [--quick]

Both queues perform the same operations with the same keys, a namespace and a name. Each measurement
runs in a process of its own, and the queues take turns: the speed of the machine may change, but
the ratios remain. Our queue always counts and times its operations. client-go's does so only with
a metrics provider, as in a controller, so it is measured with and without. The provider here only
adds numbers up; Prometheus counters cost more. Without Go, the table compares our queue with
``asyncio.Queue`` alone, which doesn't merge, delay or measure: the least cost of waking workers in
asyncio.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import msgspec
from msgspec import Struct

from aioinformer import ObjectKey, WorkQueue
from benchmarks.contestants.clientgo import CLIENT_GO
from benchmarks.contestants.compiled import PeerMissing
from benchmarks.load.processes import output

__all__ = ["Comparison", "Times", "compare", "main", "measure", "measure_plain", "table"]

KEYS, FEW_KEYS = 100_000, 10_000
REPETITIONS, FEW_REPETITIONS = 7, 3
WORKERS = 4
"""The number of workers that wait together, a controller's default."""

OURS, PLAIN = "ours", "asyncio.Queue"
BARE, MEASURED = "client-go", "client-go, metrics"


class Times(Struct, kw_only=True, forbid_unknown_fields=True):
    """Seconds for all keys; 0 for an operation that a queue doesn't have."""

    add: float
    """Add distinct keys to an empty queue."""
    work: float
    """Get these keys, each done before the next."""
    again: float
    """Add, get and finish one key repeatedly."""
    merged: float
    """Add one key repeatedly while it waits."""
    delayed: float
    """Add distinct keys with delays of microseconds, until the last is done."""
    workers: float
    """Add keys from one task while several workers wait, until all are done."""


ROWS: Mapping[str, str] = {
    "add": "add, distinct keys",
    "work": "get and done, distinct keys",
    "again": "add, get and done, one key",
    "merged": "add of a key that waits",
    "delayed": "add_after, get and done",
    "workers": f"add, {WORKERS} workers waiting",
}


# -- one measurement of ours ---------------------------------------------------------------------


async def measure(keys: int) -> Times:
    """Measure our queue by the operations that ``queues.go`` measures with client-go's."""
    every = [ObjectKey("default", f"pod-{number}") for number in range(keys)]
    queue, watch = WorkQueue[ObjectKey](), _Watch()
    for key in every:
        queue.add(key)
    add = watch.lap()
    await _work(queue, keys)
    work = watch.lap()
    for _ in every:
        queue.add(every[0])
        queue.done(await queue.get())
    again = watch.lap()
    queue.add(every[0])
    for _ in every:
        queue.add(every[0])
    merged = watch.lap()
    await _work(queue, 1)
    watch.lap()
    for number, key in enumerate(every):
        queue.add_after(key, (1 + number % 7) * 1e-6)
    await _work(queue, keys)
    delayed = watch.lap()
    await _together(queue.add, every, partial(_work, queue))
    workers = watch.lap()
    return Times(add=add, work=work, again=again, merged=merged, delayed=delayed, workers=workers)


async def measure_plain(keys: int) -> Times:
    """Measure the operations that asyncio's queue has too."""
    every = [ObjectKey("default", f"pod-{number}") for number in range(keys)]
    queue, watch = asyncio.Queue[ObjectKey](), _Watch()
    for key in every:
        queue.put_nowait(key)
    add = watch.lap()
    await _take(queue, keys)
    work = watch.lap()
    for _ in every:
        queue.put_nowait(every[0])
        await queue.get()
        queue.task_done()
    again = watch.lap()
    await _together(queue.put_nowait, every, partial(_take, queue))
    workers = watch.lap()
    return Times(add=add, work=work, again=again, merged=0, delayed=0, workers=workers)


class _Watch:
    def __init__(self) -> None:
        self._since = time.perf_counter()

    def lap(self) -> float:
        since, self._since = self._since, time.perf_counter()
        return self._since - since


async def _work(queue: WorkQueue[ObjectKey], keys: int) -> None:
    for _ in range(keys):
        queue.done(await queue.get())


async def _take(queue: asyncio.Queue[ObjectKey], keys: int) -> None:
    for _ in range(keys):
        await queue.get()
        queue.task_done()


async def _together(
    add: Callable[[ObjectKey], object],
    every: list[ObjectKey],
    work: Callable[[int], Coroutine[Any, Any, None]],
) -> None:
    async with asyncio.TaskGroup() as group:
        for _ in range(WORKERS):
            group.create_task(work(len(every) // WORKERS))
        await asyncio.sleep(0)
        for number, key in enumerate(every):
            add(key)
            if number % WORKERS == 0:
                await asyncio.sleep(0)  # let the workers run; in Go they run in parallel


# -- the comparison ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Comparison:
    """The medians of all measured queues."""

    keys: int
    times: dict[str, Times]
    missing: str = ""
    """The reason for missing numbers of client-go; empty if they exist."""


def compare(keys: int, repetitions: int, *, peers: bool = True) -> Comparison:
    """Measure all queues in turns.

    Args:
        keys: the number of keys.
        repetitions: the number of measurements of each queue.
        peers: True if client-go takes part, provided that it can be built.
    """
    one = [sys.executable, "-m", "benchmarks.features.queues", "--one", str(keys)]
    commands = {OURS: one, PLAIN: [*one, "--plain"]}
    missing = "" if peers else "not asked for"
    try:
        if peers:
            go = [str(CLIENT_GO.build()), "queues", f"-keys={keys}", f"-workers={WORKERS}"]
            commands |= {BARE: go, MEASURED: [*go, "-metrics"]}
    except PeerMissing as error:
        missing = str(error)
    found: dict[str, list[Times]] = {name: [] for name in commands}
    for _ in range(repetitions):
        for name, command in commands.items():
            found[name].append(msgspec.json.decode(output(command, name), type=Times))
    return Comparison(keys, {name: _medians(each) for name, each in found.items()}, missing)


def _medians(samples: list[Times]) -> Times:
    return Times(**{name: median(getattr(each, name) for each in samples) for name in ROWS})


def table(found: Comparison) -> str:
    """Return a table of the nanoseconds a key, and of our throughput as a multiple of theirs."""
    return "\n".join(_lines(found))


def _lines(found: Comparison) -> Iterator[str]:
    yield f"{found.keys:,} keys; ns a key, and the throughput of ours as a multiple of theirs"
    if found.missing:
        yield f"no client-go: {found.missing}"
    yield f"{'':<32}" + "".join(f"{name:>26}" for name in found.times)
    for name, label in ROWS.items():
        own = getattr(found.times[OURS], name)
        cells = [_cell(own, getattr(each, name), found.keys) for each in found.times.values()]
        yield f"{label:<32}{cells[0]:>26}" + "".join(f"{cell:>26}" for cell in cells[1:])


def _cell(own: float, theirs: float, keys: int) -> str:
    if not theirs:
        return "-"
    text = f"{theirs / keys * 1e9:,.0f}"
    return text if theirs is own else f"{text}  ({theirs / own:.2f} x)"


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.features.queues", description=__doc__
    )
    parser.add_argument("--quick", action="store_true", help="fewer keys, some seconds")
    parser.add_argument(
        "--one", type=int, metavar="KEYS", help="measure our queue once; print JSON"
    )
    parser.add_argument("--plain", action="store_true", help="with --one: asyncio's queue")
    arguments = parser.parse_args()
    if arguments.one is not None:
        work = (measure_plain if arguments.plain else measure)(arguments.one)
        print(msgspec.json.encode(asyncio.run(work)).decode())
    elif arguments.quick:
        print(table(compare(FEW_KEYS, FEW_REPETITIONS)))
    else:
        print(table(compare(KEYS, REPETITIONS)))


if __name__ == "__main__":
    main()
