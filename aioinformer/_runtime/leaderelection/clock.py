"""Seconds that go by also while the machine sleeps.

An event loop's clock stands still on Linux while the machine is suspended, and a lease doesn't. So
this one adds the time that the machine has slept: by how much ``CLOCK_BOOTTIME`` has got away from
``CLOCK_MONOTONIC``. Where there is no such clock nothing is added: on Windows the loop's goes on by
itself, on macOS a sleeping leader wakes up as one until its next renewal fails.

A timer of the loop doesn't know of it: whoever waits has to look now and then.
"""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["SuspendAwareClock", "suspended_seconds"]

MIN_SUSPEND = 0.1
"""Seconds. Less is no sleep, but what went by between reading one clock and the other."""

INITIAL_READS = 3
"""At the beginning: the one with the least in between counts."""

_BOOT_CLOCK: int | None = getattr(time, "CLOCK_BOOTTIME", None)


def suspended_seconds() -> float:
    """How long this machine has been suspended since some moment; 0 where that isn't known."""
    if _BOOT_CLOCK is None:
        return 0.0
    boot = time.clock_gettime(_BOOT_CLOCK)
    return boot - time.monotonic()  # in this order: what goes by in between makes it less


class SuspendAwareClock:
    """A monotonic clock. May be read from any thread."""

    def __init__(
        self, monotonic: Callable[[], float], suspended: Callable[[], float] = suspended_seconds
    ) -> None:
        """Make a clock.

        Args:
            monotonic: seconds that go by while the machine is awake: a loop's ``time``.
            suspended: seconds that it has slept, from some moment on.
        """
        self._monotonic = monotonic
        self._read_suspended = suspended
        self._suspended_before = max(suspended() for _ in range(INITIAL_READS))
        self._suspended = 0.0

    @property
    def now(self) -> float:
        """Seconds: those of ``awake``, and those slept since the clock was made."""
        slept = self._read_suspended() - self._suspended_before
        if slept > self._suspended + MIN_SUSPEND:
            self._suspended = slept
        return self._monotonic() + self._suspended

    def __repr__(self) -> str:
        return f"<SuspendAwareClock {self.now:.3f} s, slept {self._suspended:g} s>"
