"""The DeltaFIFO with waiting at both ends: the reflector waits for room, the pump for entries.

A task that was woken checks again before it acts, with no await in between, so that a cancellation
can't lose an entry.
"""

from __future__ import annotations

import asyncio
from collections.abc import Container, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from aioinformer._core.cache.delta_fifo import DeltaFIFO
from aioinformer._core.objects.deltas import Bookmark, Correction, Delta, QueueEntry
from aioinformer._core.objects.kube_object import DeleteReason, KubeObject, ObjectKey

if TYPE_CHECKING:  # for informers of shards
    from aioinformer.sharding.state.ranges import HashRanges


class EntryQueue(Protocol):
    """The side of a queue that a reflector feeds."""

    @property
    def fifo(self) -> DeltaFIFO: ...

    def feed(self, entries: Sequence[Delta | Bookmark]) -> bool:
        """Queue a piece of a watch.

        Return True if the queue is full: the caller waits for ``room`` before it reads on.
        """
        ...

    def replace(
        self,
        objects: Sequence[KubeObject],
        resource_version: str,
        *,
        reason: DeleteReason = "vanished",
        gained: HashRanges | None = None,
    ) -> None:
        """Queue a whole new state. ``gained``: the shards whose objects are initial ones."""

    def confirm(self) -> None:
        """Queue the mark that the restored state, with the changes before, is up to date."""

    async def room(self) -> None:
        """Wait until the queue is below its high mark."""


class InformerQueue(EntryQueue, Protocol):
    """The side of an informer's queue that also takes states of shards and of a cache file."""

    def retain(self, ranges: HashRanges) -> None:
        """Queue the removal of all shards but these."""

    def extend_state(
        self, objects: Sequence[KubeObject], resource_version: str, gained: HashRanges
    ) -> None:
        """Queue the state of shards that were gained."""

    def restore(self, objects: Sequence[KubeObject], resource_version: str) -> None:
        """Queue a whole state that was read from a cache file."""


class DeltaQueue:
    def __init__(self, known: Container[ObjectKey] | None = None) -> None:
        """Create an empty queue; ``known`` are the keys in the store, as for ``DeltaFIFO``."""
        self.fifo = DeltaFIFO(known)
        self.filled = asyncio.Event()
        """Set with each entry. The pump, as ``ready`` does, clears the event and waits."""
        self.producer_waiting = False
        """True if the producer waits for room, so that ``wake_producer`` must be called."""
        self._drained = asyncio.Event()

    def feed(self, entries: Sequence[Delta | Bookmark]) -> bool:
        full = self.fifo.extend(entries)
        self.filled.set()
        return full

    def replace(
        self,
        objects: Sequence[KubeObject],
        resource_version: str,
        *,
        reason: DeleteReason = "vanished",
        scope: str | None = None,
        gained: HashRanges | None = None,
    ) -> None:
        self.fifo.replace(objects, resource_version, reason=reason, scope=scope, gained=gained)
        self.filled.set()

    def retain(self, ranges: HashRanges, *, scope: str | None = None) -> None:
        self.fifo.retain(ranges, scope=scope)
        self.filled.set()

    def extend_state(
        self,
        objects: Sequence[KubeObject],
        resource_version: str,
        gained: HashRanges,
        *,
        scope: str | None = None,
    ) -> None:
        self.fifo.extend_state(objects, resource_version, gained, scope=scope)
        self.filled.set()

    def restore(
        self, objects: Sequence[KubeObject], resource_version: str, *, scope: str | None = None
    ) -> None:
        self.fifo.replace(objects, resource_version, scope=scope, restored=True)
        self.filled.set()

    def confirm(self, *, scope: str | None = None) -> None:
        self.fifo.confirm(scope)
        self.filled.set()

    def correct(self, corrections: Iterable[Correction]) -> None:
        self.fifo.correct(corrections)
        self.filled.set()

    def pop(self) -> QueueEntry | None:
        entry = self.fifo.pop()
        if self.producer_waiting:
            self.wake_producer()
        return entry

    def wake_producer(self) -> None:
        """Wake the waiting producer if the queue has room again.

        The pump pops a batch of entries from ``fifo`` itself, and calls this once.
        """
        if not self.fifo.full:
            self._drained.set()

    async def room(self) -> None:
        while self.fifo.full:
            self.producer_waiting = True
            self._drained.clear()
            await self._drained.wait()
        self.producer_waiting = False

    async def ready(self) -> None:
        entries = self.fifo.entries
        while not entries:
            self.filled.clear()
            await self.filled.wait()

    def __repr__(self) -> str:
        return f"<DeltaQueue {self.fifo!r}>"


class ScopeQueue:
    """The end of a shared DeltaQueue that the reflector of one namespace feeds.

    Whole states and bookmarks carry the namespace as their scope; changes have it in their key.
    """

    def __init__(self, queue: DeltaQueue, namespace: str) -> None:
        self._queue = queue
        self._namespace = namespace
        self.closed = False
        """True once the namespace was removed. Nothing is queued any more."""

    @property
    def fifo(self) -> DeltaFIFO:
        return self._queue.fifo

    def feed(self, entries: Sequence[Delta | Bookmark]) -> bool:
        if self.closed:
            return False
        return self._queue.feed(
            [
                Bookmark(each.resource_version, each.ends_initial, self._namespace)
                if isinstance(each, Bookmark)
                else each
                for each in entries
            ]
        )

    def replace(
        self,
        objects: Sequence[KubeObject],
        resource_version: str,
        *,
        reason: DeleteReason = "vanished",
        gained: HashRanges | None = None,
    ) -> None:
        if not self.closed:
            self._queue.replace(
                objects, resource_version, reason=reason, scope=self._namespace, gained=gained
            )

    def retain(self, ranges: HashRanges) -> None:
        if not self.closed:
            self._queue.retain(ranges, scope=self._namespace)

    def extend_state(
        self, objects: Sequence[KubeObject], resource_version: str, gained: HashRanges
    ) -> None:
        if not self.closed:
            self._queue.extend_state(objects, resource_version, gained, scope=self._namespace)

    def restore(self, objects: Sequence[KubeObject], resource_version: str) -> None:
        if not self.closed:
            self._queue.restore(objects, resource_version, scope=self._namespace)

    def confirm(self) -> None:
        if not self.closed:
            self._queue.confirm(scope=self._namespace)

    def remove(self) -> None:
        """Queue the removal of the namespace's objects, and nothing after it."""
        self.replace((), "", reason="scope_removed")
        self.closed = True

    async def room(self) -> None:
        await self._queue.room()

    def __repr__(self) -> str:
        return f"<ScopeQueue of {self._namespace} {self._queue!r}>"
