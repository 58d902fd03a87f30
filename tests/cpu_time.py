"""Time that a thread spends on a CPU or waits for one, for limits that hold on busy machines."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from itertools import pairwise
from pathlib import Path
from threading import Thread

__all__ = ["StallMeter", "Stopwatch", "cpu_wait_seconds", "short_turns"]

# Tests replace attributes of the module.
_monotonic, _process_time, _sleep = time.monotonic, time.process_time, time.sleep

SCHEDULER_STATISTICS = Path("/proc/thread-self/schedstat")


def cpu_wait_seconds() -> float:
    """Return the seconds that this thread was ready to run and waited for a CPU.

    Returns:
        0 where the system doesn't tell, so that the time of a step is its wall time there.
    """
    with suppress(OSError):
        return int(SCHEDULER_STATISTICS.read_text().split()[1]) / 1e9
    return 0.0


class StallMeter(Thread):
    """A measurement of the time in which this process had no CPU at all.

    A virtual machine that is paused, a container that has used up its share of a CPU and a process
    that is stopped don't count this time as waiting for a CPU. This thread sleeps for short times
    and counts how late it wakes up. Time in which the process has computed meanwhile doesn't count,
    because a C function that holds the interpreter's lock delays this thread as well.
    """

    INTERVAL = 0.05
    """Seconds of each sleep."""

    def __init__(self) -> None:
        super().__init__(name="stall meter of the tests", daemon=True)
        self._counted = 0.0
        self._due = self._cpu_time = 0.0
        self._begin_interval()

    def run(self) -> None:
        """Measure until the process ends."""
        while True:
            _sleep(self.INTERVAL)
            self._counted += self._late_seconds()
            self._begin_interval()

    @property
    def seconds(self) -> float:
        """The seconds so far, with those of a stall that has just ended."""
        return self._counted + self._late_seconds()

    def _begin_interval(self) -> None:
        self._due, self._cpu_time = _monotonic() + self.INTERVAL, _process_time()

    def _late_seconds(self) -> float:
        return max(0.0, _monotonic() - self._due - (_process_time() - self._cpu_time))


class Stopwatch:
    """The time since its start, without the time in which this process had no CPU."""

    def __init__(self, stalls: StallMeter) -> None:
        self._stalls = stalls
        self._start = _monotonic() - stalls.seconds

    @property
    def seconds(self) -> float:
        """The seconds so far."""
        return _monotonic() - self._stalls.seconds - self._start


@asynccontextmanager
async def short_turns(
    limit: float, measure: Callable[[], float] = time.thread_time
) -> AsyncGenerator[None]:
    """Check that no turn of the loop takes as much as ``limit``: CPU seconds, unless ``measure``
    returns another quantity that grows.
    """
    turns = [measure()]

    async def tick() -> None:
        while True:
            await asyncio.sleep(0)
            turns.append(measure())

    # Objects of earlier tests would make a garbage collection in a turn as long as they are many.
    gc.freeze()
    ticking = asyncio.create_task(tick())
    try:
        yield
    finally:
        ticking.cancel()
        await asyncio.wait({ticking})
    longest = max(after - before for before, after in pairwise(turns))
    assert longest < limit, f"a turn of the loop took {longest:g}"
