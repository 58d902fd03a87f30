"""The quantities that the soak test samples, and their units."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec import Struct

__all__ = ["QUANTITIES", "Ending", "Quantity", "Sample", "read_samples"]


class Sample(Struct, kw_only=True, forbid_unknown_fields=True):
    """The state of the program at one time. A sample is one line of a file."""

    time: float
    """Seconds since the program was synced."""
    memory: float
    """Resident bytes."""
    p50: float
    """Seconds from a write to its handler, the median since the sample before."""
    p99: float
    cpu: float
    """Seconds of CPU time for each event since the sample before, of all threads. Unlike a latency,
    the CPU time hardly depends on what else the machine does."""
    tasks: int
    sockets: int
    objects: int
    """Objects in all caches. The load changes this number, and memory follows."""
    events: int
    """Events that the handlers have received since the start."""


class Ending(Struct, kw_only=True, forbid_unknown_fields=True):
    """The state of the program after its informers have ended."""

    tasks: int
    """Tasks that are left."""
    sockets: int
    """Sockets that are left."""
    verified: bool
    """True if the caches were equal to the server's lists, contents included."""
    disturbances: int
    """Failures of requests and watches that the error hook received."""
    restarts: int
    """Factories and streams that were entered and left."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A quantity to judge."""

    field: str
    """The field of ``Sample``."""
    title: str
    unit: str
    scale: float
    """Units for one unit of the field."""
    resolution: float
    """The growth, in units, that is too small to count: the size of one step of the quantity (an
    arena of the interpreter's allocator has 1 MiB), or what the scheduler of a busy machine adds to
    a latency."""


QUANTITIES: Sequence[Quantity] = (
    Quantity("memory", "Resident memory", "MB", 1e-6, 1.05),
    Quantity("p50", "Latency, median", "ms", 1e3, 0.1),
    Quantity("p99", "Latency, 99 %", "ms", 1e3, 1.0),
    Quantity("cpu", "CPU time an event", "µs", 1e6, 10.0),
    Quantity("tasks", "Tasks", "tasks", 1, 0.5),
    Quantity("sockets", "Sockets", "sockets", 1, 0.5),
)


def read_samples(file: Path) -> tuple[list[Sample], Ending]:
    """Return the samples of a file and its last line, the ending.

    Raises:
        msgspec.DecodeError: the file is damaged, or the program did not end.
    """
    lines: Iterable[bytes] = file.read_bytes().splitlines()
    *samples, ending = lines
    return (
        [msgspec.json.decode(line, type=Sample) for line in samples],
        msgspec.json.decode(ending, type=Ending),
    )
