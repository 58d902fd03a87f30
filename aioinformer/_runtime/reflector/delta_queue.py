"""The DeltaFIFO with waiting at both ends: the reflector waits for room, the pump for entries.

A task that was woken checks again before it acts, with no await in between, so that a cancellation
can't lose an entry.
"""

from __future__ import annotations

import asyncio
from collections.abc import Container, Sequence
from typing import Protocol

from aioinformer._core.cache.delta_fifo import DeltaFIFO
from aioinformer._core.objects.deltas import Bookmark, Delta, QueueEntry, Replaced, StateEntry
from aioinformer._core.objects.kube_object import KubeObject, ObjectKey


class EntryQueue(Protocol):
    """The side of a queue that a reflector feeds."""

    def feed(self, entries: Sequence[Delta | Bookmark]) -> bool:
        """Queue a piece of a watch.

        Return True if the queue is full: the caller waits for ``room`` before it reads on.
        """
        ...

    def put(self, entry: StateEntry) -> None:
        """Queue an entry that isn't a change of the server's, behind all that is queued."""

    async def room(self) -> None:
        """Wait until the queue is below its high mark."""


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

    def put(self, entry: StateEntry) -> None:
        """Queue an entry that isn't a change of the server's, behind all that is queued."""
        self.fifo.put(entry)
        self.filled.set()

    def replace(self, objects: Sequence[KubeObject], resource_version: str) -> None:
        """Queue a whole new state, as ``DeltaFIFO.replace`` does."""
        self.put(Replaced(objects, resource_version))

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
