"""A schedule of faults: which fault begins when and lasts how long, drawn from a seed.

Each fault means the same without the others, so that any part of a schedule is a schedule: a
failing one is made smaller by leaving faults out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Literal, TypeAlias, get_args

from aioinformer.testing.faults.faults import Fault
from aioinformer.testing.server.source import ClusterSource

FaultKind: TypeAlias = Literal[
    "refuse",
    "reset",
    "stall",
    "drip",
    "corrupt",
    "latency",
    "status",
    "forbid",
    "drop_bookmarks",
    "delay_bookmarks",
    "endless_watch_list",
    "repeat_bookmarks",
    "end_watches",
    "error_event",
    "compact",
    "empty_watch_cache",
]
"""The methods of ``Faults`` that a schedule calls, and two of ``Cluster`` (``compact``,
``empty_watch_cache``), which take no time."""

FAULT_KINDS: tuple[FaultKind, ...] = get_args(FaultKind)

Options: TypeAlias = Mapping[str, int | float | str]
"""Keyword arguments of a method of ``Faults``."""

_INSTANT = ("compact", "empty_watch_cache")
_NEW_REQUESTS = ("refuse", "latency", "status", "forbid", "endless_watch_list", *_INSTANT)
"""Faults that concern later requests. A watch lasts for minutes, so that a schedule often breaks
the watches at the same moment."""

_LASTING = (0.05, 1.0, 10.0, 60.0)
"""Seconds that a fault lasts: from one missed request up to several backoffs."""
_READS = ("any", "list", "watch")
_WRITES = ("create", "update", "patch", "delete")
_READ_CODES = (401, 404, 410, 429, 500, 503)
_WRITE_CODES = (409, 429, 500, 503)
_OFFSETS = (1, 50, 400, 3000)
"""Bytes of a body before a fault: inside a line, between lines, and after some objects."""
_TOGETHER = 0.4
"""Share of the faults that begin within milliseconds of the one before: most failures are there."""
_BREAKS_WATCHES = 0.6
"""Share of the ``_NEW_REQUESTS`` faults that come with a broken watch."""


@dataclass(frozen=True, slots=True)
class ScheduledFault:
    """One fault of a schedule."""

    at: float
    """Virtual seconds after the start of the program."""
    kind: FaultKind
    lasting: float = 0.0
    """Seconds until the fault ends; 0 for ``compact`` and ``empty_watch_cache``."""
    options: Options = field(default_factory=dict[str, int | float | str])

    def begin(self, source: ClusterSource) -> Fault | None:
        """Switch the fault on; return the switch, or ``None`` if the fault takes no time."""
        if self.kind in _INSTANT:
            getattr(source.cluster, self.kind)()
            return None
        start: Callable[..., Fault] = getattr(source.faults, self.kind)
        return start(**self.options)

    def __str__(self) -> str:
        lasting = f" for {self.lasting:g} s" if self.kind not in _INSTANT else ""
        options = "".join(f" {name}={value}" for name, value in self.options.items())
        return f"at {self.at:.6f} s{lasting}: {self.kind}{options}"


def draw_schedule(
    random: Random, *, kinds: Sequence[FaultKind], count: int, duration: float
) -> tuple[ScheduledFault, ...]:
    """Draw a schedule, in the order of time.

    A kind that is named twice is drawn twice as often. ``count`` is the number of faults without
    the broken watches that accompany some of them; all begin and end within ``duration`` seconds.
    """
    schedule: list[ScheduledFault] = []
    at = 0.0
    for _ in range(count):
        together = schedule and random.random() < _TOGETHER
        at = (
            min(at + random.uniform(0, 0.01), duration) if together else random.uniform(0, duration)
        )
        fault = _draw_fault(random, random.choice(kinds), at, duration)
        schedule.append(fault)
        breaks = random.random() < _BREAKS_WATCHES
        if breaks and fault.kind in _NEW_REQUESTS and "reset" in kinds:
            lasting = min(0.001, duration - at)
            schedule.append(ScheduledFault(at, "reset", lasting, {"verb": "watch"}))
    return tuple(sorted(schedule, key=lambda each: each.at))


def _draw_fault(random: Random, kind: FaultKind, at: float, duration: float) -> ScheduledFault:
    lasting = 0.0 if kind in _INSTANT else min(random.choice(_LASTING), duration - at)
    return ScheduledFault(at, kind, lasting, _draw_options(random, kind))


def _draw_options(random: Random, kind: FaultKind) -> Options:
    reads = random.random() < 0.6
    verb = random.choice(_READS if reads else _WRITES)
    match kind:
        case "reset" | "stall":
            # Without an offset not even the head of the answer arrives.
            offset = random.choice((None, *_OFFSETS))
            return {"verb": verb} if offset is None else {"verb": verb, "after": offset}
        case "drip":
            return {"verb": verb, "size": random.choice((7, 100))}
        case "corrupt":
            return {"verb": verb, "after": random.choice(_OFFSETS)}
        case "latency":
            return {"verb": verb, "seconds": random.choice((0.1, 2.0, 20.0))}
        case "status":
            code = random.choice(_READ_CODES if reads else _WRITE_CODES)
            asks = {"retry_after": random.choice((1, 20))} if code in (429, 503) else {}
            return {"code": code, "verb": verb, **asks}
        case "forbid":
            return {"verb": verb}
        case "error_event":
            return {"code": random.choice((403, 410, 500))}
        case "delay_bookmarks":
            return {"seconds": random.choice((30.0, 120.0))}
        case _:
            return {}
