"""Measure the time and memory of this process, and define the ``Sample`` of a contestant.

Every contestant runs in a process of its own and prints one ``Sample`` as JSON. CPU time is that of
all threads; memory is the kernel's count of resident bytes.
"""

from __future__ import annotations

import resource
import time
from pathlib import Path

from msgspec import Struct

__all__ = ["Sample", "Stopwatch", "count_sockets", "forget_highest", "highest", "resident"]


class Sample(Struct, kw_only=True, forbid_unknown_fields=True):
    """One measurement of one contestant."""

    sync_wall: float
    """Seconds until the handler had received every listed object."""
    sync_cpu: float
    """Seconds."""
    events_wall: float
    """Seconds from the release of the events until the handler had received the last."""
    events_cpu: float
    """Seconds."""
    bare: int = 0
    """Bytes resident before the informer ran."""
    peak: int = 0
    """The highest number of bytes resident until the end of the sync."""
    settled: int = 0
    """Bytes resident a moment after the sync."""
    delivered: int
    """Events that the handler received."""
    digest: str = ""
    """A digest of the last version of each object that the handler received."""


class Stopwatch:
    """A stopwatch for wall and CPU time."""

    def __init__(self) -> None:
        """Start to measure."""
        self._wall = time.perf_counter()
        self._cpu = _processor_seconds()

    def stop(self) -> tuple[float, float]:
        """Return the wall and CPU seconds since the start."""
        return time.perf_counter() - self._wall, _processor_seconds() - self._cpu


def _processor_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def count_sockets() -> int:
    """Return the number of open sockets of this process."""
    count = 0
    for each in Path("/proc/self/fd").iterdir():
        try:
            count += str(each.readlink()).startswith("socket:")
        except FileNotFoundError:
            continue  # the descriptor of this listing
    return count


def resident() -> int:
    """Return the resident bytes of this process."""
    return _status("VmRSS")


def highest() -> int:
    """Return the highest number of resident bytes of this process until now."""
    return _status("VmHWM")


def forget_highest() -> None:
    """Reset the result of ``highest`` to the present number of resident bytes."""
    Path("/proc/self/clear_refs").write_text("5")  # proc(5): resets VmHWM


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * 1024
    raise LookupError(field)
