"""Whose turn it is: a line of those who wait for things, one thing for each.

Whoever waits is called in the order of coming, and one of the things is kept for it until it runs:
who comes in between must look at ``kept`` and doesn't overtake. What was kept for somebody who is
cancelled before that goes to the next. Nothing is taken here: whoever was called takes for itself,
with no await in between, so that a cancellation can't lose anything.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sized
from contextlib import suppress

__all__ = ["Turns"]


class Turns:
    """Those who wait for what ``things`` has."""

    __slots__ = ("_things", "kept", "waiters")

    def __init__(self, things: Sized) -> None:
        """Nobody waits yet for any of ``things``, whose number is asked for when it may matter."""
        self.kept = 0
        """How many things are kept for those who were called and did not run yet."""
        self.waiters: deque[asyncio.Future[bool]] = deque()
        """Those who were not called yet."""
        self._things = things

    async def wait(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Wait for one's turn, in the running ``loop``; whether there is something to take.

        If not, ``dismiss`` was called: there won't be anything.
        """
        waiter: asyncio.Future[bool] = loop.create_future()
        self.waiters.append(waiter)
        try:
            called = await waiter
        except asyncio.CancelledError:
            with suppress(ValueError):  # it is there unless it was to be called
                self.waiters.remove(waiter)
            if not waiter.cancelled() and waiter.result():
                self.kept -= 1
                self.call()
            raise
        self.kept -= called
        return called

    def call(self) -> None:
        """Keep a thing for each of those who wait, as far as there are things."""
        while self.waiters and len(self._things) > self.kept:
            waiter = self.waiters.popleft()
            if not waiter.done():
                self.kept += 1
                waiter.set_result(True)

    def dismiss(self) -> None:
        """Let all of them go with nothing."""
        while self.waiters:
            waiter = self.waiters.popleft()
            if not waiter.done():
                waiter.set_result(False)

    def __repr__(self) -> str:
        return f"<Turns waiting={len(self.waiters)} kept={self.kept}>"
