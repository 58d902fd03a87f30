"""The wait between two lists that refresh a cache; it is shorter while a program waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager, suppress

from aioinformer._runtime.reflector.options import MIN_POLL_INTERVAL


class PollWait:
    """Waits for the next list, and knows who waits for the cache."""

    def __init__(self) -> None:
        self._hurried = 0
        self._changed = asyncio.Event()

    @contextmanager
    def hurried(self) -> Generator[None]:
        """Let lists follow each other at the least interval inside of the block."""
        self._hurried += 1
        self._changed.set()
        try:
            yield
        finally:
            self._hurried -= 1

    async def wait(self, delay: float) -> None:
        """Wait ``delay`` seconds, or ``MIN_POLL_INTERVAL`` while the cache is waited for."""
        clock = asyncio.get_running_loop().time
        began = clock()
        while (left := began + self._limit(delay) - clock()) > 0:
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._changed.wait()

    def _limit(self, delay: float) -> float:
        return min(delay, MIN_POLL_INTERVAL) if self._hurried else delay

    def __repr__(self) -> str:
        return f"<PollWait hurried={self._hurried}>"
