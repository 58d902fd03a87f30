"""The measurement of a process, and the report of a contestant.

Every contestant runs in a process of its own and prints one ``Sample`` as JSON. CPU time is that of
all threads; memory is the kernel's count of resident bytes.
"""

from __future__ import annotations

import resource
import time
from pathlib import Path

from msgspec import Struct

__all__ = ["Sample", "Stopwatch", "forget_highest", "highest", "resident"]


class Sample(Struct, kw_only=True, forbid_unknown_fields=True):
    """One measurement of one contestant."""

    sync_wall: float
    """Seconds until the handler has received every listed object."""
    sync_cpu: float
    """CPU seconds of the sync."""
    events_wall: float
    """Seconds from ``/go`` until the handler has received the last event."""
    events_cpu: float
    """CPU seconds of the events."""
    bare: int = 0
    """Resident bytes before the informer runs."""
    peak: int = 0
    """Maximum resident bytes until the end of the sync."""
    settled: int = 0
    """Resident bytes shortly after the sync."""
    delivered: int
    """Number of events that the handler has received."""
    digest: str = ""
    """The digest of the last received version of each object."""


class Stopwatch:
    """A stopwatch that starts when it is created."""

    def __init__(self) -> None:
        """Start the stopwatch."""
        self._wall = time.perf_counter()
        self._cpu = _processor_seconds()

    def stop(self) -> tuple[float, float]:
        """Return the wall and CPU seconds since the start."""
        return time.perf_counter() - self._wall, _processor_seconds() - self._cpu


def _processor_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def resident() -> int:
    """Return the resident bytes of this process."""
    return _status("VmRSS")


def highest() -> int:
    """Return the maximum resident bytes of this process."""
    return _status("VmHWM")


def forget_highest() -> None:
    """Reset the maximum to the current value."""
    Path("/proc/self/clear_refs").write_text("5")  # proc(5): resets VmHWM


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * 1024
    raise LookupError(field)
