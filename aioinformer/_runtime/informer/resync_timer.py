"""Resyncs: one timer for all listeners of an informer, each with a period of its own.

One short step passes one shared sequence of objects to all listeners that are due; each takes the
objects when it has nothing else pending. The rules are those of client-go (``resyncCheckPeriod``,
``shouldResync``), with these differences:

- Each listener has its own period, which client-go derives from the informer's.
- Resyncs go on while the server can't be reached. Failing lists restart client-go's timer.
- No listener gets a resync before the initial list is complete and its last one has ended.
- Objects that have changed since the resync began, or have an event pending, are skipped.
"""

from __future__ import annotations

import asyncio
from typing import NoReturn

from aioinformer._runtime.delivery.listener import Listener
from aioinformer._runtime.informer.pump import Pump

MIN_RESYNC_PERIOD = 1.0
"""Seconds: the shortest period that a listener gets (client-go's ``minimumResyncPeriod``)."""


class ResyncTimer:
    """Starts the resyncs of the listeners of one pump, each when it is due."""

    def __init__(self, pump: Pump, period: float = 0.0) -> None:
        """Make a timer with a default ``period`` in seconds, or 0 for never; ``run`` starts it."""
        self._pump = pump
        self._default_period = period
        self._next_due: float | None = None
        self._rescheduled = asyncio.Event()
        self._running = False
        self._needed = False
        self._begun = False

    def resolve_period(self, requested: float | None) -> float:
        """Return a listener's period in seconds: 0 for never; for ``None``, the informer's."""
        if requested is None:
            return self._default_period
        if not requested >= 0:  # written so that a NaN fails, too
            raise ValueError(f"resync must be seconds, or 0 for never, not {requested:g}")
        return max(requested, MIN_RESYNC_PERIOD) if requested else 0.0

    def add(self, listener: Listener) -> None:
        """Schedule the first resync of a listener that has joined: one period from now."""
        if not listener.resync_period:
            return
        self._needed = True
        if not self._running:
            return  # ``run`` schedules the listeners that are there when it starts
        due = listener.resync_due = asyncio.get_running_loop().time() + listener.resync_period
        if self._next_due is None or due < self._next_due:
            self._rescheduled.set()

    def begin(self) -> bool:
        """Return True, once, after a listener with a period has joined: ``run`` is needed then."""
        begins = self._needed and not self._begun
        self._begun = self._begun or begins
        return begins

    async def run(self) -> NoReturn:
        """Start the resyncs that are due, until cancelled."""
        loop = asyncio.get_running_loop()
        self._running = True
        while True:
            self._resync_due_listeners(loop.time())
            await self._wait_until_due()

    def _resync_due_listeners(self, now: float) -> None:
        """Resync the listeners that are due, and compute when the next one is due."""
        due: list[Listener] = []
        self._next_due = None
        for listener in self._pump.listeners:
            if not listener.resync_period:
                continue
            if listener.resync_due is None:
                listener.resync_due = now + listener.resync_period
            elif listener.resync_due <= now:
                due.append(listener)
                listener.resync_due = now + listener.resync_period
            if self._next_due is None or listener.resync_due < self._next_due:
                self._next_due = listener.resync_due
        self._pump.resync(due)

    async def _wait_until_due(self) -> None:
        try:
            async with asyncio.timeout_at(self._next_due):
                await self._rescheduled.wait()
        except TimeoutError:
            return
        self._rescheduled.clear()

    def __repr__(self) -> str:
        return f"<ResyncTimer period={self._default_period:g} next={self._next_due}>"
