"""Measure large caches, many informers in one process, and quiet resources beside a noisy one.

``python -m benchmarks --scale`` runs each measurement once, in a process of its own:

- caches of many objects: the initial list, its longest callback, memory, and events;
- several hundred informers with some listeners each;
- the latency of 50 resources with few changes, alone and beside a resource whose changes fill the
  event loop.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path

import msgspec
from msgspec import Struct

from aioinformer import Client, Resource, SharedInformer, SharedInformerFactory
from benchmarks.contestants.ours import Count, namespace, release
from benchmarks.load.meter import Stopwatch, highest, resident
from benchmarks.load.pods import Dataset
from benchmarks.load.processes import LOAD, PACED, machine_name, output, serving
from benchmarks.load.scratch import scratch
from benchmarks.measures.callbacks import LongestCallback, Timer, timing
from benchmarks.measures.latency import Clock, Latency

__all__ = ["FULL_SCALE", "TINY_SCALE", "Scale", "ScaleSize", "scale", "scale_rows"]

SETTLE = 1.0
"""Seconds to wait before the memory is read."""
QUIET_RATE = 10.0
"""Events a second of each quiet resource."""
NOISE = {"alone": 0.0, "beside 5,000 events/s": 5_000.0, "beside a full event loop": -1.0}
"""Events a second of the noisy resource; -1 for as many as the process takes."""


@dataclass(frozen=True, slots=True)
class ScaleSize:
    """The sizes of a run."""

    caches: tuple[tuple[int, bool], ...]
    """Numbers of objects, each with True if the objects are small."""
    events: int
    informers: int
    listeners: int
    """Listeners of each informer."""
    quiet: int
    """Quiet resources."""
    seconds: float
    """The time in which the quiet resources change."""


FULL_SCALE = ScaleSize(
    caches=((100_000, True), (1_000_000, True), (25_000, False), (250_000, False)),
    events=50_000,
    informers=500,
    listeners=4,
    quiet=50,
    seconds=8,
)
"""The sizes of the published numbers."""
TINY_SCALE = ScaleSize(
    caches=((2_000, True),), events=1_000, informers=10, listeners=2, quiet=3, seconds=0.5
)
"""Sizes that only show that the measurements work."""


class LargeCache(Struct, kw_only=True):
    """One cache. Times are seconds."""

    objects: int
    json: float
    """Bytes of JSON an object, as the server sends them."""
    sync_wall: float
    sync_cpu: float
    longest: LongestCallback
    """The longest callbacks of the initial list."""
    longest_live: LongestCallback
    """The longest callbacks during the events."""
    settled: float
    """Bytes an object above the bare process."""
    peak: float
    event_cpu: float
    """Seconds of CPU an event."""


class ManyInformers(Struct, kw_only=True):
    """Many informers with some listeners each. Times are seconds."""

    informers: int
    listeners: int
    objects: int
    """Objects in all caches."""
    sync_wall: float
    sync_cpu: float
    longest: LongestCallback
    longest_live: LongestCallback
    memory: float
    """Bytes an informer, with its connection, its listeners and its objects."""
    tasks: float
    """Tasks an informer."""
    event_cpu: float
    """Seconds of CPU an event, delivered to all listeners of its informer."""


class Scale(Struct, kw_only=True):
    """The results of one run."""

    day: str
    machine: str
    """The machine and the Python version."""
    caches: list[LargeCache]
    many: ManyInformers
    quiet_resources: int
    quiet: dict[str, Latency]
    """The latency of the quiet resources, by the noise beside them."""


def scale(size: ScaleSize, report: Callable[[str], None]) -> Scale:
    """Run all measurements.

    Args:
        size: the sizes of the run.
        report: called with the name of each measurement before it starts.
    """
    caches: list[LargeCache] = []
    for objects, small in size.caches:
        report(f"a cache of {objects:,} objects")
        with scratch() as folder:
            dataset = Dataset.write(folder, objects, size.events, small=small)
            printed = _measured("cache", folder, objects, size.events)
        found = msgspec.json.decode(printed, type=LargeCache)
        found.json = dataset.listed_bytes / objects
        caches.append(found)
    report(f"{size.informers} informers")
    with scratch() as folder:
        Dataset.write(folder, 100, 100, small=True)
        options = f"--informers={size.informers}", f"--listeners={size.listeners}"
        many = msgspec.json.decode(
            _measured("many", folder, 100, 100, *options), type=ManyInformers
        )
    quiet: dict[str, Latency] = {}
    for name, rate in NOISE.items():
        report(f"quiet resources {name}")
        quiet[name] = _quiet(size, rate)
    return Scale(
        day=datetime.now(UTC).date().isoformat(),
        machine=machine_name(),
        caches=caches,
        many=many,
        quiet_resources=size.quiet,
        quiet=quiet,
    )


def _measured(what: str, folder: Path, pods: int, events: int, *options: str) -> bytes:
    command = [sys.executable, "-m", "benchmarks.measures.scale", what, f"--pods={pods}"]
    with serving(folder) as server:
        command += [f"--events={events}", f"--server={server}", *options]
        return output(command, f"{pods:,} objects, {what}")


def _quiet(size: ScaleSize, rate: float) -> Latency:
    pods, events = 20, max(1, int(QUIET_RATE * size.seconds))
    sizes = f"--pods={pods}", f"--events={events}"
    with scratch() as folder:
        quiet, noisy = folder / "quiet", folder / "noisy"
        for place in (quiet, noisy):
            place.mkdir()
        Dataset.write(quiet, pods, 0, small=True)
        # More events than the process takes in the time of the measurement.
        noise = int(size.seconds * 60_000) if rate < 0 else int(size.seconds * rate)
        Dataset.write(noisy, 1_000, noise, small=True)
        paced = f"--pods=1000 --events={noise} --rate={max(rate, 1)}".split()
        program = LOAD if rate <= 0 else PACED
        with (
            serving(quiet, *sizes, f"--rate={QUIET_RATE}", program=PACED) as server,
            serving(noisy, *(paced if rate > 0 else ()), program=program) as noise_server,
        ):
            command = [
                sys.executable,
                "-m",
                "benchmarks.measures.scale",
                "quiet",
                f"--server={server}",
            ]
            command += [*sizes, f"--informers={size.quiet}", f"--noise={noise_server}"]
            printed = output(command, "quiet resources")
    return msgspec.json.decode(printed, type=Latency)


# -- in a process of its own -------------------------------------------------------------------


async def measure_cache(server: str, objects: int, events: int, timer: Timer) -> LargeCache:
    """Fill one cache, let the memory settle, then receive the events."""
    async with Client(server) as client, SharedInformerFactory(client) as informers:
        await _collect(timer)
        bare, watch = resident(), Stopwatch()
        count = Count()
        informer = informers.informer("pods", indexers={"namespace": namespace})
        informer.add_handler(count, overflow="block")
        await _until(lambda: count.events >= objects)
        sync_wall, sync_cpu = watch.stop()
        longest = timer.take()
        peak = highest()
        await asyncio.sleep(SETTLE)
        settled = resident()
        timer.take()
        watch = Stopwatch()
        await release(server)
        await _until(lambda: count.events >= objects + events)
        _, events_cpu = watch.stop()
        return LargeCache(
            objects=objects,
            json=0,
            sync_wall=sync_wall,
            sync_cpu=sync_cpu,
            longest=longest,
            longest_live=timer.take(),
            settled=(settled - bare) / objects,
            peak=(peak - bare) / objects,
            event_cpu=events_cpu / events,
        )


async def measure_many(
    server: str, objects: int, events: int, informers: int, listeners: int, timer: Timer
) -> ManyInformers:
    """Run many informers, each with the same objects and the same number of listeners."""
    async with Client(server) as client, SharedInformerFactory(client) as factory:
        await _collect(timer)
        bare, watch, tasks = resident(), Stopwatch(), len(asyncio.all_tasks())
        counts: list[Count] = []
        for number in range(informers):
            informer = _custom_informer(factory, number)
            for _ in range(listeners):
                counts.append(Count())
                informer.add_handler(counts[-1], overflow="block")
            await asyncio.sleep(0)  # the creation of all informers in one step isn't counted
        await _until(lambda: all(each.events >= objects for each in counts))
        sync_wall, sync_cpu = watch.stop()
        longest = timer.take()
        await asyncio.sleep(SETTLE)
        memory, tasks = resident() - bare, len(asyncio.all_tasks()) - tasks
        timer.take()
        watch = Stopwatch()
        await release(server)
        await _until(lambda: all(each.events >= objects + events for each in counts))
        _, events_cpu = watch.stop()
        return ManyInformers(
            informers=informers,
            listeners=informers * listeners,
            objects=informers * objects,
            sync_wall=sync_wall,
            sync_cpu=sync_cpu,
            longest=longest,
            longest_live=timer.take(),
            memory=memory / informers,
            tasks=tasks / informers,
            event_cpu=events_cpu / events / informers,
        )


async def measure_quiet(
    server: str, noise_server: str, objects: int, events: int, informers: int
) -> Latency:
    """Time the events of the quiet resources while the noisy one changes."""
    noise = Count()
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client(server))
        factory = await stack.enter_async_context(SharedInformerFactory(client))
        clocks = [Clock(objects, events) for _ in range(informers)]
        for number, clock in enumerate(clocks):
            _custom_informer(factory, number).add_handler(clock, overflow="block")
        noisy_client = await stack.enter_async_context(Client(noise_server))
        noisy_factory = await stack.enter_async_context(SharedInformerFactory(noisy_client))
        noisy_factory.informer("pods").add_handler(noise)
        for clock in clocks:
            await clock.synced.wait()
        await _until(lambda: noise.events > 0)
        await asyncio.sleep(0.3)
        watch = Stopwatch()
        await release(noise_server)
        await release(server)
        for clock in clocks:
            await clock.done.wait()
        taken = [each for clock in clocks for each in clock.taken]
        return Latency.of(taken, watch.stop()[0])


def _custom_informer(factory: SharedInformerFactory, number: int) -> SharedInformer:
    return factory.informer(Resource("", "v1", f"gadgets{number}", "Pod"))


async def _collect(timer: Timer) -> None:
    """Collect garbage in a callback that isn't counted, as the imports before it."""
    gc.collect()
    await asyncio.sleep(0)
    timer.take()


async def _until(done: Callable[[], bool]) -> None:
    while not done():  # noqa: ASYNC110 - an event would be part of the cost
        await asyncio.sleep(0.01)


# -- the table ---------------------------------------------------------------------------------


def scale_rows(found: Scale) -> Iterator[str]:
    """Yield the section of ``RESULTS.md``."""
    yield "## Scale"
    yield ""
    yield (
        f"Measured on {found.day}: {found.machine}. One informer with one index and one listener, "
        "in a process that times each callback of the event loop. The state comes by WatchList; "
        "callbacks are in CPU time."
    )
    yield ""
    yield "| objects | JSON each | sync | longest callback: sync; events | memory each | an event |"
    yield "|---|---|---|---|---|---|"
    for each in found.caches:
        yield (
            f"| {each.objects:,} | {each.json:,.0f} B | {each.sync_wall:.1f} s, "
            f"{each.sync_cpu / each.objects * 1e6:.1f} µs each | {each.longest.cpu * 1e3:.1f} ms; "
            f"{each.longest_live.cpu * 1e3:.1f} ms | {each.settled:,.0f} B, peak {each.peak:,.0f} "
            f"B | {each.event_cpu * 1e6:.1f} µs |"
        )
    yield ""
    yield from _growth_rows(found.caches)
    many = found.many
    yield (
        f"{many.informers:,} informers with {many.listeners:,} listeners and {many.objects:,} "
        f"objects in one process: synced after {many.sync_wall:.1f} s with {many.sync_cpu:.1f} s "
        f"of CPU, {many.memory / 1e3:,.0f} kB and {many.tasks:.1f} tasks an informer, "
        f"{many.event_cpu * 1e6:.1f} µs an event, longest callback "
        f"{many.longest.cpu * 1e3:.1f} ms (sync) and {many.longest_live.cpu * 1e3:.1f} ms "
        "(events)."
    )
    if many.longest.collection:
        yield (
            "A garbage collection, which visits all tasks and informers, is up to "
            f"{many.longest.collection * 1e3:.1f} ms of the former."
        )
    yield ""
    yield (
        f"The latency of {found.quiet_resources} quiet resources, {QUIET_RATE:g} events/s each, "
        "from the server's socket to the handler:"
    )
    yield ""
    yield "| noise | median | 99 % | worst |"
    yield "|---|---|---|---|"
    for name, latency in found.quiet.items():
        yield (
            f"| {name} | {latency.p50 * 1e3:.2f} ms | {latency.p99 * 1e3:.2f} ms | "
            f"{latency.worst * 1e3:.1f} ms |"
        )
    yield ""


def _growth_rows(caches: Sequence[LargeCache]) -> Iterator[str]:
    """Yield the table of what grows with the number of objects of one size."""
    pairs = [
        (few, many)
        for few, many in combinations(caches, 2)
        if few.objects < many.objects and max(few.json, many.json) < 2 * min(few.json, many.json)
    ]
    if not pairs:
        return
    yield "The growth with the number of objects, as a multiple of the smaller cache:"
    yield ""
    yield (
        "| objects | sync, each | longest callback: sync; events | memory each; peak | an event |"
    )
    yield "|---|---|---|---|---|"
    for few, many in pairs:
        cpu = many.sync_cpu / many.objects / (few.sync_cpu / few.objects)
        yield (
            f"| {few.objects:,} to {many.objects:,} of {many.json:,.0f} B | {cpu:.2f} x | "
            f"{many.longest.cpu / few.longest.cpu:.1f} x; "
            f"{many.longest_live.cpu / few.longest_live.cpu:.1f} x | "
            f"{many.settled / few.settled:.2f} x; {many.peak / few.peak:.2f} x | "
            f"{many.event_cpu / few.event_cpu:.2f} x |"
        )
    yield ""


def main() -> None:
    """Measure one thing for the parent process, and print the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=("cache", "many", "quiet"))
    parser.add_argument("--server", required=True)
    parser.add_argument("--noise", default="")
    parser.add_argument("--pods", type=int, required=True)
    parser.add_argument("--events", type=int, required=True)
    parser.add_argument("--informers", type=int, default=1)
    parser.add_argument("--listeners", type=int, default=1)
    options = parser.parse_args()
    found: LargeCache | ManyInformers | Latency
    sizes = options.server, options.pods, options.events
    if options.what == "quiet":
        server, pods, events = sizes
        found = asyncio.run(measure_quiet(server, options.noise, pods, events, options.informers))
    else:
        with timing() as timer:
            if options.what == "cache":
                found = asyncio.run(measure_cache(*sizes, timer))
            else:
                found = asyncio.run(
                    measure_many(*sizes, options.informers, options.listeners, timer)
                )
    sys.stdout.buffer.write(msgspec.json.encode(found) + b"\n")


if __name__ == "__main__":
    main()
