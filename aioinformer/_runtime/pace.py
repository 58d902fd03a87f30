"""Giving way: long work in the event loop stops every few milliseconds.

An informer lives in somebody else's loop. Reading from a socket that has more, popping from a
mailbox that is full and replacing 100,000 objects would each keep the loop to itself, since none
of them has to wait for anything. Each of them asks a ``Pace`` once in a while.
"""

from __future__ import annotations

import asyncio

__all__ = ["BUDGET", "STEP", "Pace"]

BUDGET = 0.004
"""Seconds of work between two suspensions. What was begun is finished, so that steps take up to
twice as long; the promise is 10 ms."""

STEP = 64
"""Items of bulk work between two looks at the clock: about 0.3 ms."""


class Pace:
    """Measures how long its owner has worked since it last gave way."""

    __slots__ = ("_now", "_since")

    def __init__(self) -> None:
        """Start to measure. There must be a running loop."""
        self._now = asyncio.get_running_loop().time
        self._since = self._now()

    def rested(self) -> None:
        """The owner has just been suspended."""
        self._since = self._now()

    @property
    def due(self) -> bool:
        """Whether it is time to give way."""
        return self._now() - self._since >= BUDGET

    async def breathe(self) -> None:
        """Give way if it is time to."""
        if self.due:
            await asyncio.sleep(0)
            self._since = self._now()
