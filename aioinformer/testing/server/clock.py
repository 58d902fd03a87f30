"""Clocks of a server in a test: the event loop's time, or a time that the test moves.

A server asks its ``Clock`` for everything that is due by time alone: bookmarks, the end of a watch,
the three seconds in which a list waits for a version that is not reached yet, drips and delays.
"""

from __future__ import annotations

import asyncio
from typing import Protocol


class Clock(Protocol):
    """A time in seconds, and a way to wait for it."""

    @property
    def now(self) -> float:
        """Seconds since an arbitrary moment."""
        ...

    async def until(self, ready: asyncio.Event, deadline: float) -> None:
        """Wait until the event is set or the deadline has come (``inf``: no deadline).

        The deadline can set the event, so a caller has to check for both causes.
        """


class LoopClock:
    """The time of the running event loop."""

    @property
    def now(self) -> float:
        """Seconds of ``loop.time()``."""
        return asyncio.get_running_loop().time()

    async def until(self, ready: asyncio.Event, deadline: float) -> None:
        # Each change ends a wait of each watch, and ``asyncio.timeout`` would cost as much as all
        # other steps of such a wait.
        loop = asyncio.get_running_loop()
        timer = None if deadline == float("inf") else loop.call_at(deadline, ready.set)
        try:
            await ready.wait()
        finally:
            if timer is not None:
                timer.cancel()

    def __repr__(self) -> str:
        return "<LoopClock>"


class ManualClock:
    """A time that stands still until a test advances it, also over real sockets.

    ::

        clock = ManualClock()
        async with ApiServer(clock=clock) as server:
            ...  # open a watch
            clock.advance(60)  # its next bookmark comes
    """

    def __init__(self, now: float = 0.0) -> None:
        """Make a clock that shows ``now`` seconds."""
        self._now = now
        self._waiting: dict[asyncio.Event, float] = {}

    @property
    def now(self) -> float:
        """The seconds that the clock shows."""
        return self._now

    @property
    def waiting(self) -> int:
        """Tasks that wait for a time or an event."""
        return len(self._waiting)

    def advance(self, seconds: float) -> None:
        """Advance the time. Tasks whose deadline has come run when the loop next runs.

        Raises:
            ValueError: ``seconds`` is negative.
        """
        if seconds < 0:
            raise ValueError(f"a clock can't go back; seconds must be 0 or more, not {seconds}")
        self._now += seconds
        for ready, deadline in self._waiting.items():
            if deadline <= self._now:
                ready.set()

    async def until(self, ready: asyncio.Event, deadline: float) -> None:
        """Wait until the event is set; ``advance`` sets it at the deadline too."""
        if deadline <= self._now:
            return
        self._waiting[ready] = deadline
        try:
            await ready.wait()
        finally:
            del self._waiting[ready]

    def __repr__(self) -> str:
        return f"<ManualClock {self._now:g} s {self.waiting} waiting>"
