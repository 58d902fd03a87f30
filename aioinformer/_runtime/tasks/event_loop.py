"""Checks of the event loop, and time slices for long work in it.

Everything but reading belongs to the event loop in which an informer runs. asyncio doesn't notice a
call from a thread or from another loop: an event is set, and no task wakes up. So every call that
would fail silently checks the loop first.

An informer lives in the loop of a program. Reading from a socket that has more data, popping from a
full mailbox and replacing 100,000 objects would each block the loop, because none of them has to
wait. Each of them asks a ``TimeSlice`` now and then, and yields to the loop every few milliseconds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from aioinformer.errors import UsageError

NOT_IN_EVENT_LOOP = (
    "this must be called in the event loop, not from a thread: a thread reads caches, and has the "
    "loop do the rest with asyncio.run_coroutine_threadsafe()"
)
"""The error text for a call from a thread."""

NOT_ASYNCIO = (
    "aioinformer runs on asyncio, and another library, such as trio, runs this coroutine: start "
    "the program with asyncio.run(), or with anyio.run(), whose default is asyncio"
)
"""The error text for a coroutine that runs without an event loop of asyncio."""


def running_loop() -> asyncio.AbstractEventLoop:
    """Return the running event loop.

    Raises:
        UsageError: no loop is running, for example in a thread.
    """
    try:
        return asyncio.get_running_loop()
    except RuntimeError as error:
        raise UsageError(NOT_IN_EVENT_LOOP) from error


def own_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop that runs the calling coroutine.

    Raises:
        UsageError: another library than asyncio runs the coroutine.
    """
    try:
        return asyncio.get_running_loop()
    except RuntimeError as error:
        raise UsageError(NOT_ASYNCIO) from error


def check_loop(own: asyncio.AbstractEventLoop | None, name: str) -> None:
    """Raise unless ``own`` is the running loop, or ``None``.

    Args:
        own: the loop in which the called thing runs; ``None`` if it doesn't run yet.
        name: the called thing, for the error.

    Raises:
        UsageError: another loop is running, or none.
    """
    if own is not None and own is not running_loop():
        raise UsageError(
            f"{name} runs in another event loop; use it from there, or from a thread with "
            "asyncio.run_coroutine_threadsafe()"
        )


def running_task() -> asyncio.Task[Any]:
    """Return the running task.

    Raises:
        UsageError: no task is running: the caller is a callback, or in a thread.
    """
    running_loop()
    task = asyncio.current_task()
    if task is None:
        raise UsageError("this must be called in a task, not from a callback")
    return task


def loop_clock() -> Callable[[], float]:
    """Return a function that returns the time of the running loop, for code that reads it often.

    asyncio's own loops have the time of ``time.monotonic``, and call that function in a method. The
    function itself takes half as long, which counts where the clock is read for each event. Any
    other loop has a ``time`` of its own, which is returned.
    """
    loop = asyncio.get_running_loop()
    own = getattr(loop.time, "__func__", None)  # None for a function that a test has put there
    return time.monotonic if own is asyncio.BaseEventLoop.time else loop.time


def loop_time() -> float:
    """Return the time of the running loop, or the monotonic clock in a thread without a loop.

    The loop's time is the monotonic clock, except in a simulated loop.
    """
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return time.monotonic()


SLICE_SECONDS = 0.004
"""Seconds of work after which long work yields to the loop. A step that was begun is finished, so a
slice takes up to twice as long; the promise is 10 ms."""

STAGING_SLICE_SECONDS = 0.002
"""The same while a new state is staged: the next step may enlarge a dict of 100,000, which can't be
split and takes 3 to 7 ms, most of it for fresh memory."""

ITEMS_PER_STEP = 64
"""Items of bulk work between two reads of the clock: about 0.3 ms."""


class TimeSlice:
    """The time that its owner has worked since it last yielded to the loop."""

    __slots__ = ("_clock", "started_at")

    def __init__(self) -> None:
        """Begin a slice. There must be a running loop."""
        self._clock = loop_clock()
        self.started_at = self._clock()
        """The loop's time at which the slice began. The owner sets this time, or calls ``reset``,
        after it was suspended."""

    def reset(self) -> None:
        """Begin a new slice, after the owner was suspended."""
        self.started_at = self._clock()

    @property
    def expired(self) -> bool:
        """True if the slice is over."""
        return self._clock() - self.started_at >= SLICE_SECONDS

    async def maybe_yield(self, budget: float = SLICE_SECONDS) -> None:
        """Yield to the loop if the owner has worked for ``budget`` seconds."""
        if self._clock() - self.started_at >= budget:
            await asyncio.sleep(0)
            self.started_at = self._clock()
