"""The numbers of the last minute, so that a new page has charts at once.

An open page continues the charts from the status that it receives each second.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress

import msgspec

from aioinformer import SharedInformer
from examples.fastapi_app.status import ChangeCounter

__all__ = ["History", "Sample"]

MINUTE = 60
"""The number of samples to keep, one for each second."""


class Sample(msgspec.Struct, gc=False):
    """The numbers of one second."""

    objects: int
    """Cached objects at the end of the second."""
    added: int
    updated: int
    deleted: int


class History:
    """Samples of the informers' objects and changes, one for each second."""

    def __init__(
        self, informers: Mapping[str, SharedInformer], counters: Mapping[str, ChangeCounter]
    ) -> None:
        """Start without samples."""
        self.samples: deque[Sample] = deque(maxlen=MINUTE)
        self._informers = informers
        self._counters = counters
        self._before = (0, 0, 0)

    def sample(self) -> None:
        """Add the sample of the second that has passed."""
        counters = self._counters.values()
        now = (
            sum(each.added for each in counters),
            sum(each.updated for each in counters),
            sum(each.deleted for each in counters),
        )
        added, updated, deleted = (
            late - early for early, late in zip(self._before, now, strict=True)
        )
        self._before = now
        if not all(each.synced for each in self._informers.values()):
            return  # the cache is still growing, not the cluster
        objects = sum(each.health.objects for each in self._informers.values())
        self.samples.append(Sample(objects, added, updated, deleted))

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Add a sample each second until the block ends."""
        task = asyncio.create_task(self._run(), name="history")
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(1)
            self.sample()

    def __repr__(self) -> str:
        return f"<History of {len(self.samples)} s>"
