"""Measure what grows with what: memory over the time of a sync, and costs by size.

The curves are for plots. Each point is measured once or a few times, so a curve shows a shape; the
table has the medians.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import TypeAlias

from msgspec import Struct

from benchmarks.contestants.contestant import Contestant
from benchmarks.load.meter import Sample
from benchmarks.load.pods import Dataset
from benchmarks.load.processes import MeasurementFailed, MemorySamples

__all__ = [
    "LISTENERS",
    "Curve",
    "Curves",
    "by_listeners",
    "by_objects",
    "during_sync",
    "with_listeners",
]

LISTENERS = 1, 4, 16, 64
POINTS = 160
"""Points of a curve of memory at most."""
TURNS = 2
"""Measurements of a point of the library; the peers differ by more than noise, and have one."""

Curve: TypeAlias = list[tuple[float, float]]


class Curves(Struct, kw_only=True):
    """The curves of each contestant, by its name."""

    memory: dict[str, Curve]
    """Resident bytes by seconds since the start of the process, until the events begin."""
    objects: dict[str, Curve]
    """Seconds of CPU an event by the number of cached objects."""
    listeners: dict[str, Curve]
    """Seconds of CPU an event by the number of listeners."""


def during_sync(samples: MemorySamples, sample: Sample) -> Curve:
    """Return the memory until the release of the events, thinned out to a moderate size."""
    if not samples.points:
        return []
    end = samples.points[-1][0] - sample.events_wall
    points = [(round(at, 3), float(size)) for at, size in samples.points if at <= end]
    step = max(1, -(-len(points) // POINTS))
    # The highest value of each group remains, since a peak may be short.
    groups = (points[first : first + step] for first in range(0, len(points), step))
    return [max(group, key=lambda point: point[1]) for group in groups]


def by_objects(
    contestants: Sequence[Contestant], datasets: Sequence[Dataset], report: Callable[[str], None]
) -> dict[str, Curve]:
    """Measure the events of each contestant with each dataset."""
    curves: dict[str, Curve] = {each.name: [] for each in contestants}
    for dataset in datasets:
        for each in contestants:
            report(f"{dataset.pods:,} objects: {each.name}")
            curves[each.name] += _point(dataset.pods, each, dataset)
    return curves


def by_listeners(
    forms: dict[str, Callable[[int], Contestant]],
    dataset: Dataset,
    report: Callable[[str], None],
) -> dict[str, Curve]:
    """Measure the events of each contestant with each number of listeners.

    Args:
        forms: return a contestant with so many listeners.
        dataset: the bytes to read.
        report: called with the name of each measurement before it starts.
    """
    curves: dict[str, Curve] = {name: [] for name in forms}
    for listeners in LISTENERS:
        for name, form in forms.items():
            report(f"{listeners} listeners: {name}")
            curves[name] += _point(listeners, form(listeners), dataset)
    return curves


def with_listeners(binary: Path) -> Callable[[int], Contestant]:
    """Return client-go, on protobuf, by the number of its listeners."""

    def contestant(listeners: int) -> Contestant:
        command = (str(binary), "--protobuf", f"--listeners={listeners}")
        return Contestant(f"client-go protobuf, {listeners} listeners", command)

    return contestant


def _point(at: float, contestant: Contestant, dataset: Dataset) -> Curve:
    """Return the measured point; none if a peer failed, which ends no run."""
    own = contestant.name.startswith("ours")
    try:
        return [(at, _cost(contestant, dataset, TURNS if own else 1))]
    except MeasurementFailed:
        if own:
            raise
        return []


def _cost(contestant: Contestant, dataset: Dataset, turns: int) -> float:
    return median(contestant.measure(dataset).events_cpu for _ in range(turns)) / dataset.events
