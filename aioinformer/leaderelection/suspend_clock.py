"""A monotonic clock that advances while the machine is suspended.

The clock of an event loop on Linux stands still while the machine is suspended, but a lease
expires. So this clock adds the growth of the difference between ``CLOCK_BOOTTIME`` and
``CLOCK_MONOTONIC``. On Windows the loop's clock advances by itself. On macOS a leader that was
suspended remains leader after it wakes up, until its next renewal fails.

Timers of the loop don't include the time of suspension, so a program that waits must read this
clock now and then.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

MIN_SUSPEND = 0.1
"""Seconds. A smaller difference is the time between reading one clock and the other."""

INITIAL_READS = 3
"""Pairs of reads at the start, of which the closest counts."""

_BOOT_CLOCK: int | None = getattr(time, "CLOCK_BOOTTIME", None)


def suspended_seconds() -> float:
    """Return the seconds that this machine has been suspended since some moment; 0 if not known."""
    if _BOOT_CLOCK is None:
        return 0.0
    boot = time.clock_gettime(_BOOT_CLOCK)
    return boot - time.monotonic()  # read last: time between the reads lowers the difference


class LoopTime:
    """The time of an event loop that may start later: 0 until ``start``."""

    def __init__(self) -> None:
        """Belong to no loop yet."""
        self._read: Callable[[], float] | None = None

    def start(self) -> None:
        """Show the time of the running loop from now on."""
        self._read = asyncio.get_running_loop().time

    def __call__(self) -> float:
        return 0.0 if self._read is None else self._read()

    def __repr__(self) -> str:
        return f"<LoopTime {self():.3f} s>"


class SuspendAwareClock:
    """A monotonic clock that includes suspension. May be read from any thread."""

    def __init__(
        self, monotonic: Callable[[], float], suspended: Callable[[], float] = suspended_seconds
    ) -> None:
        """Start without suspension. ``suspended`` returns the seconds of suspension since some
        moment.
        """
        self._monotonic = monotonic
        self._read_suspended = suspended
        self._suspended_before = max(suspended() for _ in range(INITIAL_READS))
        self._suspended = 0.0

    @property
    def now(self) -> float:
        """Seconds of ``monotonic`` plus the seconds of suspension since the clock was made."""
        suspended = self._read_suspended() - self._suspended_before
        if suspended > self._suspended + MIN_SUSPEND:
            self._suspended = suspended
        return self._monotonic() + self._suspended

    def __repr__(self) -> str:
        return f"<SuspendAwareClock {self.now:.3f} s, suspended {self._suspended:g} s>"
