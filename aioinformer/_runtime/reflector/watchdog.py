"""The watchdog: the timer of the idle timeout.

The deadline of the idle timeout moves with every piece of data, and a new timer for each would cost
more than decoding it. So one timer checks now and then, and sleeps again if data has arrived.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from aioinformer._core.listwatch.idle_timeout import MIN_TIMEOUT, IdleTimeout

__all__ = ["RECHECK_DELAY", "Watchdog"]

RECHECK_DELAY = 0.1
"""Seconds between the last two checks: data in the socket of a busy loop has yet to be read."""

HANG_THRESHOLD = 1.0
"""Seconds by which a check may be late. If it is later, this process hung and not the server: the
data that arrived meanwhile has yet to be read, and gets a second for that."""


class Watchdog:
    """A context that is left when an idle timeout passes.

    The watchdog cancels the task that entered the context. The cancellation ends at the end of the
    context, and ``expired`` is true then.
    """

    def __init__(self) -> None:
        """Create a watchdog without a timeout."""
        self.expired = False
        """True if the watchdog has ended the context."""
        self._rechecking = False
        self._idle_timeout: IdleTimeout | None = None
        self._loop = asyncio.get_running_loop()
        self._timeout = asyncio.timeout(None)
        self._timer: asyncio.TimerHandle | None = None

    def guard(self, idle_timeout: IdleTimeout) -> None:
        """End the context at the deadline of ``idle_timeout``, which moves."""
        self._idle_timeout = idle_timeout
        self._schedule_check(max(0.0, min(idle_timeout.deadline - self._loop.time(), MIN_TIMEOUT)))

    def _schedule_check(self, seconds: float) -> None:
        at = self._loop.time() + seconds
        self._timer = self._loop.call_at(at, self._check, at)

    def _check(self, planned: float) -> None:
        now = self._loop.time()
        due = self._idle_timeout.deadline if self._idle_timeout is not None else now + MIN_TIMEOUT
        if due > now:
            self._rechecking = False
            # At most MIN_TIMEOUT: the first bookmark of a watch sets a deadline where there was
            # none.
            self._schedule_check(min(due - now, MIN_TIMEOUT))
        elif now > planned + HANG_THRESHOLD:
            self._schedule_check(HANG_THRESHOLD)
        elif not self._rechecking:
            self._rechecking = True
            self._schedule_check(RECHECK_DELAY)
        else:
            self._timeout.reschedule(now)

    async def __aenter__(self) -> Self:
        await self._timeout.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if self._timer is not None:
            self._timer.cancel()
        try:
            await self._timeout.__aexit__(kind, error, trace)
        except TimeoutError:
            self.expired = True
            return True
        return False

    def __repr__(self) -> str:
        state = "expired" if self.expired else "active" if self._idle_timeout else "inactive"
        return f"<Watchdog {state} {self._idle_timeout!r}>"
