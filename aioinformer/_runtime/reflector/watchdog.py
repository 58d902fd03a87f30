"""The watchdog: the timer of the idle timeout.

The deadline moves with every piece of data, and a new timer for each would cost more than decoding
it. So one timer checks now and then, and sleeps again if data has arrived.
"""

from __future__ import annotations

import asyncio
from typing import Self

from aioinformer._core.listwatch.liveness import MIN_TIMEOUT, IdleTimeout

RECHECK_DELAY = 0.1
"""Seconds between the last two checks: data in the socket of a busy loop has yet to be read."""

HANG_THRESHOLD = 1.0
"""Seconds by which a check may be late. If it is later, this process hung and not the server: the
data that arrived meanwhile gets a second to be read."""


class Watchdog:
    """A context that is left when an idle timeout passes.

    The watchdog cancels the task that entered the context. The cancellation ends at the end of the
    context, and ``expired`` is true then.
    """

    def __init__(self) -> None:
        self.expired = False
        self._rechecking = False
        self._cancelled = False
        self._idle_timeout: IdleTimeout | None = None
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        """Cancellations of the task that were requested before the context was entered."""
        self._timer: asyncio.TimerHandle | None = None

    def guard(self, idle_timeout: IdleTimeout) -> None:
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
        elif self._task is not None:
            # Not by asyncio.timeout, which cancels one turn of the loop later: by then the task may
            # have received data.
            self._cancelled = True
            self._task.cancel()

    async def __aenter__(self) -> Self:
        self._task = asyncio.current_task()
        self._cancelling = 0 if self._task is None else self._task.cancelling()
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if self._timer is not None:
            self._timer.cancel()
        if not self._cancelled or self._task is None:
            return False
        # Another cancellation of the task goes on.
        cancelled = isinstance(error, asyncio.CancelledError)
        self.expired = self._task.uncancel() <= self._cancelling and cancelled
        return self.expired

    def __repr__(self) -> str:
        state = "expired" if self.expired else "active" if self._idle_timeout else "inactive"
        return f"<Watchdog {state} {self._idle_timeout!r}>"
