"""The watchdog: ends a wait for bytes that will not come.

What is due when is ``liveness``' to say, and moves with every byte; a timer for each would cost
more than the byte. So one timer looks now and then, and goes back to sleep if something came.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from aioinformer._core.listwatch.idle_timeout import LEAST, Liveness

__all__ = ["MEANWHILE", "Watchdog"]

MEANWHILE = 0.1
"""Seconds between the last two looks: what came to the socket of a busy loop has yet to be read."""

LATE = 1.0
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
        self._last_look = False
        self._liveness: Liveness | None = None
        self._loop = asyncio.get_running_loop()
        self._timeout = asyncio.timeout(None)
        self._timer: asyncio.TimerHandle | None = None

    def guard(self, liveness: Liveness) -> None:
        """From now on, this tells when to give up."""
        self._liveness = liveness
        self._sleep(max(0.0, min(liveness.due - self._loop.time(), LEAST)))

    def _sleep(self, seconds: float) -> None:
        at = self._loop.time() + seconds
        self._timer = self._loop.call_at(at, self._look, at)

    def _look(self, planned: float) -> None:
        now = self._loop.time()
        due = self._liveness.due if self._liveness is not None else now + LEAST
        if due > now:
            self._last_look = False
            # Never longer: the first bookmark of a stream makes an end where there was none.
            self._sleep(min(due - now, LEAST))
        elif now > planned + LATE:
            self._sleep(LATE)
        elif not self._last_look:
            self._last_look = True
            self._sleep(MEANWHILE)
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
        state = "expired" if self.expired else "on guard" if self._liveness else "asleep"
        return f"<Watchdog {state} {self._liveness!r}>"
