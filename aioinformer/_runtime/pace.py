"""Giving way: long work in the event loop stops every few milliseconds.

An informer lives in somebody else's loop. Reading from a socket that has more, popping from a
mailbox that is full and replacing 100,000 objects would each keep the loop to itself, since none
of them has to wait for anything. Each of them asks a ``Pace`` once in a while.
"""

from __future__ import annotations

import asyncio

__all__ = ["BUDGET", "STAGING", "STEP", "Pace"]

BUDGET = 0.004
"""Seconds of work between two suspensions. What was begun is finished, so that steps take up to
twice as long; the promise is 10 ms."""

STAGING = 0.002
"""The same while a new state is staged: the next step may be a dict of 100,000 that grows, which
can't be split and takes 3 to 7 ms, most of it for fresh memory."""

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
        return self._worked >= BUDGET

    @property
    def _worked(self) -> float:
        return self._now() - self._since

    async def breathe(self, budget: float = BUDGET) -> None:
        """Give way if it is time to: after ``budget`` seconds of work."""
        if self._worked >= budget:
            await asyncio.sleep(0)
            self._since = self._now()
