"""The last minute in numbers, so that a page that is opened has charts at once.

Pages go on by themselves with what they are told each second.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress

import msgspec

from aioinformer import SharedInformer
from examples.fastapi_app.news import Tally

__all__ = ["History", "Sample"]

MINUTE = 60
"""Samples that are kept, one a second."""


class Sample(msgspec.Struct, gc=False):
    """One second."""

    objects: int
    """Cached at its end."""
    added: int
    updated: int
    deleted: int


class History:
    """Samples of what the informers hold and tell."""

    def __init__(
        self, informers: Mapping[str, SharedInformer], tallies: Mapping[str, Tally]
    ) -> None:
        """Nothing was sampled yet."""
        self.samples: deque[Sample] = deque(maxlen=MINUTE)
        self._informers = informers
        self._tallies = tallies
        self._before = (0, 0, 0)

    def sample(self) -> None:
        """A second has passed."""
        tallies = self._tallies.values()
        now = (
            sum(each.added for each in tallies),
            sum(each.updated for each in tallies),
            sum(each.deleted for each in tallies),
        )
        added, updated, deleted = (
            late - early for early, late in zip(self._before, now, strict=True)
        )
        self._before = now
        if not all(each.synced for each in self._informers.values()):
            return  # what grows then is the cache, not the cluster
        objects = sum(each.health.objects for each in self._informers.values())
        self.samples.append(Sample(objects, added, updated, deleted))

    @asynccontextmanager
    async def kept(self) -> AsyncGenerator[None]:
        """Sample each second, until the block ends."""
        keeping = asyncio.create_task(self._keep(), name="history")
        try:
            yield
        finally:
            keeping.cancel()
            with suppress(asyncio.CancelledError):
                await keeping

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(1)
            self.sample()

    def __repr__(self) -> str:
        return f"<History of {len(self.samples)} s>"
