"""What a stretch of this process cost, and what all contestants report.

Every contestant runs in a process of its own and prints one ``Sample`` as JSON. CPU is that of
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
    """Seconds until the handler had heard of every listed object."""
    sync_cpu: float
    """Seconds."""
    events_wall: float
    """Seconds from letting the events go until the handler had heard of the last."""
    events_cpu: float
    """Seconds."""
    bare: int = 0
    """Bytes resident before the informer ran."""
    peak: int = 0
    """The most bytes resident until the sync was over."""
    settled: int = 0
    """Bytes resident a moment after."""
    delivered: int
    """Events that the handler heard of."""
    digest: str = ""
    """Which version of each object it heard of last."""


class Stopwatch:
    """Measures from where it is made."""

    def __init__(self) -> None:
        """Start."""
        self._wall = time.perf_counter()
        self._cpu = _processor_seconds()

    def stop(self) -> tuple[float, float]:
        """Wall and CPU seconds since."""
        return time.perf_counter() - self._wall, _processor_seconds() - self._cpu


def _processor_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def resident() -> int:
    """Bytes that this process has in memory."""
    return _status("VmRSS")


def highest() -> int:
    """The most that it ever had."""
    return _status("VmHWM")


def forget_highest() -> None:
    """Begin anew: the most is what there is now."""
    Path("/proc/self/clear_refs").write_text("5")  # proc(5): resets VmHWM


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * 1024
    raise LookupError(field)
