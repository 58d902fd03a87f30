"""Work on the cache that waits for a calm moment: smaller objects.

An object that has just arrived has its uid and version as strings, since it is read and compared
soon. Most objects of a cache then rest for hours. Once a part of the cache has changed and no storm
of changes is under way, this walks over the cache in steps and packs those objects (``object_body``
says how). Without changes, there is neither a timer nor any work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from aioinformer._core.chunked_list import drain_chunks, iter_chunks
from aioinformer._core.objects.kube_object import pack_identity
from aioinformer._runtime.tasks.event_loop import ITEMS_PER_STEP, TimeSlice

if TYPE_CHECKING:  # for types alone
    from aioinformer._core.cache.protocols import ObjectCache

__all__ = ["CacheCompaction"]

MIN_CHANGES = 1024
"""Changes after which the cache is packed at the earliest. So many objects hold 0.2 MB more than
they need."""
CHANGED_PART = 8
"""The cache is packed when one object in so many has changed: a pass costs 0.1 µs an object, and
0.5 µs for one that has changed."""
CALM_SECONDS = 1.0
"""Seconds in which few changes arrive before the cache is packed. In a storm, an object is likely
to change again, and the processor has other work."""
CALM_CHANGES = 256
"""Changes in these seconds that count as few."""


class CacheCompaction:
    """Packs the objects of one cache."""

    def __init__(self, indexer: ObjectCache) -> None:
        """Make the compaction of a cache. ``run`` serves requests from before its start, too."""
        self.changes = 0
        """Changes since the cache was packed last. The pump counts them."""
        self.threshold = MIN_CHANGES
        """The changes at which the pump calls ``request``."""
        self.start: Callable[[], None] | None = None
        """Starts ``run``; called at the first request, since small caches never need the task."""
        self._indexer = indexer
        self._requested = asyncio.Event()

    def request(self) -> None:
        """Pack the cache in the next calm moment."""
        self._requested.set()
        start, self.start = self.start, None
        if start is not None:
            start()

    async def run(self) -> NoReturn:
        """Carry out requests until cancelled."""
        while True:
            await self._requested.wait()
            self._requested.clear()
            await self._wait_for_calm()
            await self._pack()

    async def _wait_for_calm(self) -> None:
        before = -CALM_CHANGES
        while self.changes - before >= CALM_CHANGES:
            before = self.changes
            await asyncio.sleep(CALM_SECONDS)

    async def _pack(self) -> None:
        """Pack all objects that the cache holds now, in steps."""
        objects = self._indexer.state.objects
        self.changes, self.threshold = 0, max(MIN_CHANGES, len(objects) // CHANGED_PART)
        found, time_slice = drain_chunks([*iter_chunks(objects.values())]), TimeSlice()
        del objects
        for number, obj in enumerate(found, 1):
            pack_identity(obj)
            if number % ITEMS_PER_STEP == 0:
                await time_slice.maybe_yield()

    def __repr__(self) -> str:
        return f"<CacheCompaction changes={self.changes}/{self.threshold}>"
