"""Time that a thread spends on a CPU or waits for one, for limits that hold on busy machines."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from itertools import pairwise
from pathlib import Path

__all__ = ["cpu_wait_seconds", "short_turns"]

SCHEDULER_STATISTICS = Path("/proc/thread-self/schedstat")


def cpu_wait_seconds() -> float:
    """Return the seconds that this thread was ready to run and waited for a CPU.

    Returns:
        0 where the system doesn't tell, so that the time of a step is its wall time there.
    """
    with suppress(OSError):
        return int(SCHEDULER_STATISTICS.read_text().split()[1]) / 1e9
    return 0.0


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
