"""The watchdog: ends a wait for bytes that will not come.

What is due when is ``liveness``' to say, and moves with every byte; a timer for each would cost
more than the byte. So one timer looks now and then, and goes back to sleep if something came.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from aioinformer._core.listwatch.idle_timeout import MIN_TIMEOUT, IdleTimeout

__all__ = ["RECHECK_DELAY", "Watchdog"]

RECHECK_DELAY = 0.1
"""Seconds between the last two looks: what came to the socket of a busy loop has yet to be read."""

HANG_THRESHOLD = 1.0
"""Seconds by which a look may be late. If it is later than that, it was this process that hung, not
the server: what came meanwhile has yet to be read, and gets a second for that."""


class Watchdog:
    """Within its context, cancels the task that entered when ``liveness`` says that it is time.

    The cancellation ends at the end of the context; ``expired`` tells of it.
    """

    def __init__(self) -> None:
        """A watchdog with nothing to guard yet."""
        self.expired = False
        """Whether it ended the context."""
        self._rechecking = False
        self._idle_timeout: IdleTimeout | None = None
        self._loop = asyncio.get_running_loop()
        self._timeout = asyncio.timeout(None)
        self._timer: asyncio.TimerHandle | None = None

    def guard(self, idle_timeout: IdleTimeout) -> None:
        """From now on, this tells when to give up."""
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
            # Never longer: the first bookmark of a stream makes an end where there was none.
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
        state = "expired" if self.expired else "on guard" if self._idle_timeout else "asleep"
        return f"<Watchdog {state} {self._idle_timeout!r}>"
