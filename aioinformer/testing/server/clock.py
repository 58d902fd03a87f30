"""What time it is for a server in a test: the event loop's, or whatever the test says.

Everything here that is due by time alone (bookmarks, the end of a watch, the three seconds in
which a list waits for a version that isn't there yet, drips and delays) asks a ``Clock``.
``LoopClock`` is the time of the event loop, real or simulated. ``ManualClock`` stands still until
it is told to go on, so that a test over real sockets sees an hour of bookmarks in a millisecond.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

__all__ = ["Clock", "LoopClock", "ManualClock"]


class Clock(Protocol):
    """Tells the time in seconds, and waits for it."""

    @property
    def now(self) -> float:
        """Seconds since some moment."""
        ...

    async def until(self, ready: asyncio.Event, deadline: float) -> None:
        """Wait for the event, and no longer than until the deadline (``inf``: for ever)."""
        ...


class LoopClock:
    """The time of the running event loop."""

    @property
    def now(self) -> float:
        """Seconds of ``loop.time()``."""
        return asyncio.get_running_loop().time()

    async def until(self, ready: asyncio.Event, deadline: float) -> None:
        """Wait for the event, and no longer than until the deadline."""
        try:
            async with asyncio.timeout_at(None if deadline == float("inf") else deadline):
                await ready.wait()
        except TimeoutError:
            return  # something is due

    def __repr__(self) -> str:
        return "<LoopClock>"


class ManualClock:
    """Time that passes when a test says so.

    ::

        clock = ManualClock()
        async with ApiServer(clock=clock) as server:
            ...  # open a watch
            clock.advance(60)  # its next bookmark comes
    """

    def __init__(self, now: float = 0.0) -> None:
        """Make a clock that stands at ``now`` seconds."""
        self._now = now
        self._waiting: dict[asyncio.Event, float] = {}

    @property
    def now(self) -> float:
        """Seconds that it shows."""
        return self._now

    @property
    def waiting(self) -> int:
        """How many wait for it, or for something that may come before."""
        return len(self._waiting)

    def advance(self, seconds: float) -> None:
        """Let time pass; those whose time has come go on when the loop next runs.

        Raises:
            ValueError: time doesn't go back.
        """
        if seconds < 0:
            raise ValueError(f"time doesn't go back ({seconds} s)")
        self._now += seconds
        for alarm, deadline in self._waiting.items():
            if deadline <= self._now:
                alarm.set()

    async def until(self, ready: asyncio.Event, deadline: float) -> None:
        """Wait for the event, and no longer than until the clock shows the deadline.

        The event itself is the alarm: whoever waits looks at what is due when it wakes.
        """
        if deadline <= self._now:
            return
        self._waiting[ready] = deadline
        try:
            await ready.wait()
        finally:
            del self._waiting[ready]

    def __repr__(self) -> str:
        return f"<ManualClock {self._now:g} s {self.waiting} waiting>"
