"""What happened in one run, written down in order: the evidence that the promises are judged by.

The records are ``records``'. Nothing is judged here, and nothing is formatted until somebody wants
the trace.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count

from aioinformer._core.objects.kube_object import KubeObject
from aioinformer.testing.simulation.departures import Overflowed, Visited
from aioinformer.testing.simulation.plan import Plan
from aioinformer.testing.simulation.records import (
    Broke,
    Closed,
    Clumsy,
    Ending,
    Joined,
    Kept,
    Left,
    Logged,
    Record,
    Request,
    Restored,
    Sample,
    Taken,
    Told,
    Trouble,
    Version,
    Write,
)

__all__ = ["History"]

_VALUE = re.compile(rb'"value":(\d+)')


@dataclass(slots=True)
class History:
    """All that happened, in order."""

    plan: Plan
    clock: Callable[[], float] = float
    """Virtual seconds; set when the loop runs."""
    over: bool = False
    """Whether everything is being ended: from here on what informers show means nothing."""
    writes: list[Write] = field(default_factory=list[Write])
    backups: list[Kept] = field(default_factory=list[Kept])
    restores: list[Restored] = field(default_factory=list[Restored])
    faults: list[Broke] = field(default_factory=list[Broke])
    requests: list[Request] = field(default_factory=list[Request])
    closings: list[Closed] = field(default_factory=list[Closed])
    taken: list[Taken] = field(default_factory=list[Taken])
    troubles: list[Trouble] = field(default_factory=list[Trouble])
    counted: Counter[tuple[str, str, str]] = field(default_factory=Counter[tuple[str, str, str]])
    """What metrics were told of failures: informer, phase, name of the exception."""
    told: list[Told] = field(default_factory=list[Told])
    joined: list[Joined] = field(default_factory=list[Joined])
    clumsy: list[Clumsy] = field(default_factory=list[Clumsy])
    left: list[Left] = field(default_factory=list[Left])
    overflowed: list[Overflowed] = field(default_factory=list[Overflowed])
    visited: list[Visited] = field(default_factory=list[Visited])
    samples: list[Sample] = field(default_factory=list[Sample])
    logs: list[Logged] = field(default_factory=list[Logged])
    ending: Ending = field(default_factory=lambda: Ending(0, 0.0))
    _orders: Iterator[int] = field(default_factory=lambda: count(1))
    _versions: dict[bytes, Version] = field(default_factory=dict[bytes, Version])

    def version_of(self, obj: KubeObject) -> Version:
        """What is written down of an object; one tuple a state, however often it is seen."""
        known = self._versions.get(obj.raw)
        if known is None:
            value = _VALUE.search(obj.raw)
            number = int(obj.resource_version)
            known = Version(obj.uid, number, int(value[1]) if value else 0)
            self._versions[obj.raw] = known
        return known

    def stamp(self) -> tuple[int, float]:
        """The number and time of something that happens now."""
        return next(self._orders), self.clock()

    def records(self) -> list[Record]:
        """Everything, in order."""
        everything: list[Record] = [
            *self.writes,
            *self.backups,
            *self.restores,
            *self.faults,
            *self.requests,
            *self.closings,
            *self.taken,
            *self.troubles,
            *self.told,
            *self.joined,
            *self.clumsy,
            *self.left,
            *self.overflowed,
            *self.visited,
            *self.samples,
            *self.logs,
            self.ending,
        ]
        return sorted(everything, key=lambda record: record.order)

    def trace(self) -> str:
        """One line an event. The same seed gives the same bytes."""
        return "".join(f"{each.time:14.6f} {each}\n" for each in self.records())

    def __repr__(self) -> str:
        return (
            f"<History seed={self.plan.seed} writes={len(self.writes)} faults={len(self.faults)} "
            f"requests={len(self.requests)} told={len(self.told)} samples={len(self.samples)}>"
        )
