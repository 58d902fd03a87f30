"""Resyncs: one timer for all listeners of an informer, each with a period of its own.

A resync tells a listener the cached state once more, so that what it does about an object is done
again now and then. It asks nothing of the server. What is handed over is one sequence for all
listeners that are due, in one short step however much is cached; when its objects are told is up
to each listener, in between whatever else it does, and behind everything that is news.

The rules are client-go's (``ResyncPeriod``, ``resyncCheckPeriod`` and ``shouldResync``), except:

- A listener's period is its own. In client-go none is shorter than the informer's, all are rounded
  up to multiples of it, and 0 for the informer forbids them to everybody.
- It goes on while the server can't be reached. In client-go each attempt to list starts the timer
  anew, so that short failures starve it.
- A listener that has not been through with its last resync is not given another; client-go queues
  them up. Nor is there one for somebody before the informer's first state.
- What has changed since the resync began, or is about to be told anyway, is not told again.
"""

from __future__ import annotations

import asyncio
from typing import NoReturn

from aioinformer._runtime.listeners import Listener
from aioinformer._runtime.pump import Pump

__all__ = ["MINIMUM", "ResyncTimer"]

MINIMUM = 1.0
"""Seconds: the least that a listener can ask for (client-go's ``minimumResyncPeriod``)."""


class ResyncTimer:
    """Tells the listeners of one pump what is cached, each when it is due."""

    def __init__(self, pump: Pump, period: float = 0.0) -> None:
        """Make a timer; ``run`` starts it.

        Args:
            pump: whose listeners are told.
            period: seconds, for listeners that don't ask for their own; 0 for never.
        """
        if not period >= 0:  # nor may it be nan
            raise ValueError(f"resync must be seconds, or 0 for never, not {period:g}")
        self._pump = pump
        self._period = period
        self._next: float | None = None
        self._sooner = asyncio.Event()
        self._running = False

    def period(self, asked: float | None) -> float:
        """The period of a listener that has ``asked`` for one.

        Args:
            asked: seconds; 0 for never; ``None`` for what the informer does.
        """
        if asked is None:
            return self._period
        if not asked >= 0:
            raise ValueError(f"resync must be seconds, or 0 for never, not {asked:g}")
        return max(asked, MINIMUM) if asked else 0.0

    def add(self, listener: Listener) -> None:
        """A listener has joined: its first resync is due one period from now."""
        if not (listener.resync_period and self._running):
            return  # those that are there when it begins to run are found then
        due = listener.resync_due = asyncio.get_running_loop().time() + listener.resync_period
        if self._next is None or due < self._next:
            self._sooner.set()

    async def run(self) -> NoReturn:
        """Tell who is due, until cancelled."""
        loop = asyncio.get_running_loop()
        self._running = True
        while True:
            self._tell(loop.time())
            await self._sleep()

    def _tell(self, now: float) -> None:
        """Have those told that are due, and find out who is next. Who left is forgotten."""
        due: list[Listener] = []
        self._next = None
        for listener in self._pump.audience:
            if not listener.resync_period:
                continue
            if listener.resync_due is None:
                listener.resync_due = now + listener.resync_period
            elif listener.resync_due <= now:
                due.append(listener)
                listener.resync_due = now + listener.resync_period
            if self._next is None or listener.resync_due < self._next:
                self._next = listener.resync_due
        self._pump.resync(due)

    async def _sleep(self) -> None:
        try:
            async with asyncio.timeout_at(self._next):
                await self._sooner.wait()
        except TimeoutError:
            return
        self._sooner.clear()

    def __repr__(self) -> str:
        return f"<ResyncTimer period={self._period:g} next={self._next}>"
