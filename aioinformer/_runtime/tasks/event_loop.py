"""Which event loop this is.

Everything but reading belongs to the loop that an informer runs in. asyncio doesn't notice a call
from a thread, or from another loop: an event is set and nobody wakes up. So what would go wrong
silently asks here first.

Giving way: long work in the event loop stops every few milliseconds.

An informer lives in somebody else's loop. Reading from a socket that has more, popping from a
mailbox that is full and replacing 100,000 objects would each keep the loop to itself, since none
of them has to wait for anything. Each of them asks a ``TimeSlice`` once in a while.
"""

from __future__ import annotations

import asyncio
from typing import Any

from aioinformer.errors import UsageError

__all__ = [
    "ITEMS_PER_STEP",
    "SLICE_SECONDS",
    "STAGING_SLICE_SECONDS",
    "TimeSlice",
    "check_loop",
    "running_loop",
    "running_task",
]


NOT_IN_EVENT_LOOP = (
    "this must be called in the event loop, not from a thread: a thread reads caches, and has the "
    "loop do the rest with asyncio.run_coroutine_threadsafe()"
)
"""Said to those who are in a thread."""


def running_loop() -> asyncio.AbstractEventLoop:
    """The running event loop.

    Raises:
        UsageError: there is none, in a thread for example.
    """
    try:
        return asyncio.get_running_loop()
    except RuntimeError as error:
        raise UsageError(NOT_IN_EVENT_LOOP) from error


def check_loop(own: asyncio.AbstractEventLoop | None, name: str) -> None:
    """Raise unless this is the loop that ``name`` runs in, or it runs in none yet.

    Raises:
        UsageError: it is another loop, or a thread without one.
    """
    if own is not None and own is not running_loop():
        raise UsageError(
            f"{name} runs in another event loop; use it from there, or from a thread with "
            "asyncio.run_coroutine_threadsafe()"
        )


def running_task() -> asyncio.Task[Any]:
    """The running task.

    Raises:
        UsageError: there is none: this is a callback, or a thread.
    """
    running_loop()
    task = asyncio.current_task()
    if task is None:
        raise UsageError("this must be called in a task, not from a callback")
    return task


SLICE_SECONDS = 0.004
"""Seconds of work between two suspensions. What was begun is finished, so that steps take up to
twice as long; the promise is 10 ms."""

STAGING_SLICE_SECONDS = 0.002
"""The same while a new state is staged: the next step may be a dict of 100,000 that grows, which
can't be split and takes 3 to 7 ms, most of it for fresh memory."""

ITEMS_PER_STEP = 64
"""Items of bulk work between two looks at the clock: about 0.3 ms."""


class TimeSlice:
    """Measures how long its owner has worked since it last gave way."""

    __slots__ = ("_clock", "_started_at")

    def __init__(self) -> None:
        """Start to measure. There must be a running loop."""
        self._clock = asyncio.get_running_loop().time
        self._started_at = self._clock()

    def reset(self) -> None:
        """The owner has just been suspended."""
        self._started_at = self._clock()

    @property
    def expired(self) -> bool:
        """Whether it is time to give way."""
        return self._clock() - self._started_at >= SLICE_SECONDS

    async def maybe_yield(self, budget: float = SLICE_SECONDS) -> None:
        """Give way if it is time to: after ``budget`` seconds of work."""
        if self._clock() - self._started_at >= budget:
            await asyncio.sleep(0)
            self._started_at = self._clock()
