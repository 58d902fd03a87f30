"""Run all measurements, and return their medians.

The contestants take turns, since other programs may use the machine too: a load that slows one
contestant for a minute slows the others in that minute too, and the ratios remain.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import msgspec
from msgspec import Struct

from benchmarks.contestants.clientgo import encode
from benchmarks.contestants.contestant import Contestant, Peers, ours
from benchmarks.load.meter import Sample
from benchmarks.load.pods import Dataset
from benchmarks.load.processes import (
    PACED,
    MeasurementFailed,
    MemorySamples,
    machine_name,
    output,
    serving,
)
from benchmarks.load.scratch import scratch
from benchmarks.load.server import rate
from benchmarks.measures.caches import CACHES, Cache
from benchmarks.measures.callbacks import Longest, LongestCallback
from benchmarks.measures.curves import (
    Curve,
    Curves,
    by_listeners,
    by_objects,
    during_sync,
    with_listeners,
)
from benchmarks.measures.fanout import Fanout
from benchmarks.measures.imports import ImportTimes
from benchmarks.measures.latency import Latency

__all__ = ["FULL", "QUICK", "CacheSizes", "Numbers", "Results", "Size", "run"]

RATE = 5_000
"""Events a second in the measurement of latency."""
FEW = 1_000
"""Cached objects in the smaller cache of ``CacheSizes``."""
VARIANT_REPETITIONS = 2
"""Runs of a variant at most. Its differences from the contestant that it varies are large."""
CURVES = ("ours", "client-go JSON", "kube-rs typed")
"""The contestants whose costs are measured by the number of cached objects."""


@dataclass(frozen=True, slots=True)
class Size:
    """The sizes of a run."""

    pods: int
    events: int
    repetitions: int
    slow: int
    """Pods, and events, for contestants that take a millisecond for each."""
    large: int
    """Pods for the longest callback."""
    fanout: int
    """Events for the cost of one more listener."""
    paced: int
    """Events for the latency."""
    imports: int
    complete: bool = True
    """True to measure also the variants that differ little from others."""


FULL = Size(
    pods=50_000,
    events=50_000,
    repetitions=5,
    slow=2_000,
    large=100_000,
    fanout=20_000,
    paced=20_000,
    imports=15,
)
"""The sizes of the published numbers; takes some minutes."""
QUICK = Size(
    pods=5_000,
    events=10_000,
    repetitions=2,
    slow=200,
    large=20_000,
    fanout=2_000,
    paced=2_500,
    imports=5,
    complete=False,
)
"""Sizes for CI, which show that the benchmarks work and the rough speed; takes under a minute."""


class Numbers(Struct, kw_only=True):
    """The medians of one contestant."""

    pods: int
    events: int
    sync_wall: float
    """Seconds; so are the next three."""
    sync_cpu: float
    events_wall: float
    events_cpu: float
    peak: float
    """The highest number of resident bytes above the bare process, as a multiple of the bytes of
    JSON listed; 0 if not measured."""
    settled: float

    @property
    def rate(self) -> float:
        """Events a second."""
        return self.events / self.events_wall

    @property
    def cpu_per_event(self) -> float:
        """Seconds of CPU an event."""
        return self.events_cpu / self.events

    @classmethod
    def of(cls, samples: list[Sample], dataset: Dataset) -> Numbers:
        """Return the medians of ``samples``."""

        def middle(value: Callable[[Sample], float]) -> float:
            return median(value(sample) for sample in samples)

        return cls(
            pods=dataset.pods,
            events=dataset.events,
            sync_wall=middle(lambda s: s.sync_wall),
            sync_cpu=middle(lambda s: s.sync_cpu),
            events_wall=middle(lambda s: s.events_wall),
            events_cpu=middle(lambda s: s.events_cpu),
            peak=middle(lambda s: (s.peak - s.bare) / dataset.listed_bytes),
            settled=middle(lambda s: (s.settled - s.bare) / dataset.listed_bytes),
        )


class CacheSizes(Struct):
    """The cost of changes of random objects, in a small cache and in a large one."""

    few: Numbers
    many: Numbers


class Results(Struct, kw_only=True):
    """The results of one run."""

    size: Size
    load_rate: float
    """Bytes a second that the load server sends to a socket that discards them."""
    event_bytes: float
    """Bytes of JSON an event."""
    numbers: dict[str, Numbers]
    """By contestant."""
    versions: dict[str, str]
    """The versions of the peers, by project."""
    absent: dict[str, str]
    """The reasons for missing numbers, by project."""
    machine: str
    """The machine and the Python version."""
    day: str
    curves: Curves
    longest: Longest
    fanout: Fanout
    caches: dict[str, Cache]
    latency: dict[str, Latency]
    """The latency of events at a moderate rate (``ours``), and of the same bytes without the
    library (``floor``)."""
    cache_sizes: CacheSizes
    imports: ImportTimes


def run(size: Size, report: Callable[[str], None]) -> Results:
    """Run all measurements.

    Args:
        size: the sizes of the run.
        report: called with the name of each measurement before it starts.
    """
    peers = Peers.find(report, complete=size.complete)
    contestants = [*_ours(size), *peers.present]
    with scratch() as folder:
        report("writing the bytes")
        dataset, small = _datasets(folder, size, peers.go)
        with serving(dataset.folder) as server:
            load_rate = rate(server)
        samples: dict[str, list[Sample]] = {each.name: [] for each in contestants}
        memory: dict[str, Curve] = {}
        for repetition in range(size.repetitions):
            for each in tuple(contestants):
                if each.variant and repetition >= VARIANT_REPETITIONS:
                    continue
                report(f"{repetition + 1} of {size.repetitions}: {each.name}")
                watched = MemorySamples() if repetition == 0 else None
                try:
                    sample = each.measure(small if each.slow else dataset, watched)
                except MeasurementFailed as error:
                    contestants.remove(each)
                    peers.leave_out(each, error)
                    continue
                samples[each.name].append(sample)
                if watched is not None and sample.bare and not each.slow:
                    memory[each.name] = during_sync(watched, sample)
        listeners = _listeners(peers, dataset, report) if size.complete else {}
    report("the longest callback")
    longest = _longest(size)
    report("further listeners")
    fanout = _fanout(size)
    report("caches")
    caches = _caches(size)
    report("latency")
    latency = _latency(size)
    report("few objects and many")
    cache_sizes = _cache_sizes(size)
    objects = _objects(contestants, size, report) if size.complete else {}
    report("imports")
    return Results(
        size=size,
        load_rate=load_rate,
        event_bytes=dataset.event_bytes / dataset.events,
        numbers={
            each.name: Numbers.of(samples[each.name], small if each.slow else dataset)
            for each in contestants
        },
        versions=peers.versions,
        absent=peers.absent,
        machine=machine_name(),
        day=datetime.now(UTC).date().isoformat(),
        curves=Curves(memory=memory, objects=objects, listeners=listeners),
        longest=longest,
        fanout=fanout,
        caches=caches,
        latency=latency,
        cache_sizes=cache_sizes,
        imports=ImportTimes.measure(size.imports),
    )


def _ours(size: Size) -> list[Contestant]:
    few = [
        ours("ours"),
        ours("ours, 3 fields", "--reads=fields"),
        ours("ours, whole body", "--reads=body"),
        ours("ours, 16 listeners", "--listeners=16"),
    ]
    if not size.complete:
        return few
    return [
        *few,
        replace(ours("ours, fields(...) of 3", "--reads=projection"), variant=True),
        replace(ours("ours, async handler", "--coroutine"), variant=True),
    ]


def _datasets(folder: Path, size: Size, binary: Path | None) -> tuple[Dataset, Dataset]:
    places = folder / "dataset", folder / "small"
    for place in places:
        place.mkdir()
    dataset = Dataset.write(places[0], size.pods, size.events)
    small = Dataset.write(places[1], size.slow, size.slow)
    for each in (dataset, small):
        each.write_pages()
    if binary is not None:
        encode(binary, dataset)
    return dataset, small


def _listeners(peers: Peers, dataset: Dataset, report: Callable[[str], None]) -> dict[str, Curve]:
    forms: dict[str, Callable[[int], Contestant]] = {
        "ours": lambda count: ours(f"ours, {count} listeners", f"--listeners={count}")
    }
    if peers.go is not None:
        forms["client-go protobuf"] = with_listeners(peers.go)
    return by_listeners(forms, dataset, report)


def _objects(
    contestants: Sequence[Contestant], size: Size, report: Callable[[str], None]
) -> dict[str, Curve]:
    chosen = [each for each in contestants if each.name in CURVES]
    with scratch() as folder:
        datasets: list[Dataset] = []
        for pods in (FEW, 10_000, size.large):
            place = folder / str(pods)
            place.mkdir()
            datasets.append(Dataset.write(place, pods, size.fanout))
            datasets[-1].write_pages()
        return by_objects(chosen, datasets, report)


def _longest(size: Size) -> Longest:
    """Return the medians of the longest callbacks."""
    command = [sys.executable, "-m", "benchmarks.measures.callbacks", f"--pods={size.large}"]
    found: list[Longest] = []
    with scratch() as folder:
        Dataset.write(folder, size.large, 0).write_relist()
        for _ in range(size.repetitions):
            with serving(folder) as server:
                printed = output([*command, f"--server={server}"], "callbacks")
            found.append(msgspec.json.decode(printed, type=Longest))
    return Longest(
        sync=_middle([each.sync for each in found]),
        relist=_middle([each.relist for each in found]),
        resync=_middle([each.resync for each in found]),
        add_index=_middle([each.add_index for each in found]),
    )


def _fanout(size: Size) -> Fanout:
    command = [sys.executable, "-m", "benchmarks.measures.fanout", f"--events={size.fanout}"]
    return msgspec.json.decode(output(command, "further listeners"), type=Fanout)


def _caches(size: Size) -> dict[str, Cache]:
    """Measure each kind of cache once, in a process of its own; the results hardly vary."""
    found: dict[str, Cache] = {}
    with scratch() as folder:
        places = {True: folder / "small", False: folder / "large"}
        for small, place in places.items():
            place.mkdir()
            Dataset.write(place, size.slow if small else size.pods, 0)
        for name in CACHES:
            slow = name == "models"
            pods = size.slow if slow else size.pods
            command = [sys.executable, "-m", "benchmarks.measures.caches", f"--cache={name}"]
            with serving(places[slow]) as server:
                printed = output([*command, f"--server={server}", f"--pods={pods}"], name)
            found[name] = msgspec.json.decode(printed, type=Cache)
    return found


def _latency(size: Size) -> dict[str, Latency]:
    """Measure both in turns, and return of each the run with the median p50."""
    samples: dict[str, list[Latency]] = {"ours": [], "floor": []}
    sizes = [f"--pods={size.slow}", f"--events={size.paced}"]
    with scratch() as folder:
        Dataset.write(folder, size.slow, 0)
        for _ in range(min(3, size.repetitions) if size.complete else 1):
            for name, found in samples.items():
                command = [sys.executable, "-m", "benchmarks.measures.latency", *sizes]
                command += ["--floor"] if name == "floor" else []
                paced = serving(folder, *sizes, f"--rate={RATE}", program=PACED)
                with paced as server:
                    printed = output([*command, f"--server={server}"], f"latency, {name}")
                found.append(msgspec.json.decode(printed, type=Latency))
    return {
        name: sorted(found, key=lambda each: each.p50)[len(found) // 2]
        for name, found in samples.items()
    }


def _cache_sizes(size: Size) -> CacheSizes:
    """Measure both caches in turns."""
    contestant = ours("ours")
    sizes = FEW, size.large
    samples: tuple[list[Sample], list[Sample]] = [], []
    with scratch() as folder:
        datasets: list[Dataset] = []
        for pods in sizes:
            place = folder / str(pods)
            place.mkdir()
            datasets.append(Dataset.write(place, pods, size.events))
        for _ in range(size.repetitions if size.complete else 1):
            for dataset, found in zip(datasets, samples, strict=True):
                found.append(contestant.measure(dataset))
    few, many = (Numbers.of(*each) for each in zip(samples, datasets, strict=True))
    return CacheSizes(few, many)


def _middle(found: list[LongestCallback]) -> LongestCallback:
    by_cpu = sorted(found, key=lambda each: each.cpu)
    middle = by_cpu[len(by_cpu) // 2]
    return LongestCallback(middle.cpu, median(each.wall for each in found), middle.what)
