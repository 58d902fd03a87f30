"""Keys that wait for their time: a heap that holds each key once.

A key that is delayed twice is ready at the earlier of the two times and has the higher of the two
priorities, as in controller-runtime's queue. The heap entry of the later time is stale and skipped.
When most entries are stale, a new heap is begun, and each ``add`` moves a few entries from the end
of the old one, which so stays a heap: no single step is long.
"""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heappop, heappush
from typing import Generic, TypeAlias, TypeVar

from msgspec import Struct

from aioinformer._core.quantities import quantity
from aioinformer.controllers.state.queue_items import Priority

K = TypeVar("K", bound=Hashable)

MIN_STALE = 64
"""The number of stale entries up to which no new heap is begun."""

MOVE_BATCH = 8
"""Entries that each ``add`` moves: enough to finish long before the next new heap."""


class _DelayedKey(Struct, Generic[K], eq=False):
    key: K
    priority: Priority
    ready: float
    stale: bool = False


_Heap: TypeAlias = "list[tuple[float, int, _DelayedKey[K]]]"
"""Time, number and entry. The number keeps keys with equal times in order, uncompared."""


class DelayQueue(Generic[K]):
    """Keys by the time at which they are ready, on any monotonic clock."""

    __slots__ = ("_by_key", "_heap", "_number", "_old_heap", "_stale")

    def __init__(self) -> None:
        """Start without keys."""
        self._by_key: dict[K, _DelayedKey[K]] = {}
        self._heap: _Heap[K] = []
        self._old_heap: _Heap[K] = []
        self._stale = 0
        self._number = 0

    def add(self, key: K, ready: float, priority: Priority) -> None:
        """Delay a key until ``ready``, or until its present time if that is earlier."""
        present = self._by_key.get(key)
        if present is not None:
            if priority > present.priority:
                present.priority = priority
            if ready >= present.ready:
                return
            priority = present.priority
            present.stale = True
            self._stale += 1
        entry = self._by_key[key] = _DelayedKey(key, priority, ready)
        self._number += 1
        heappush(self._heap, (ready, self._number, entry))
        if self._old_heap:
            self._move_entries()
        elif self._stale > MIN_STALE and self._stale > len(self._by_key):
            self._old_heap, self._heap = self._heap, []

    def _move_entries(self) -> None:
        for _ in range(min(MOVE_BATCH, len(self._old_heap))):
            last = self._old_heap.pop()
            if last[2].stale:
                self._stale -= 1
            else:
                heappush(self._heap, last)

    @property
    def next_due(self) -> float | None:
        """The time at which the next key is ready; ``None`` if there is none."""
        heap = self._next_heap()
        return heap[0][0] if heap else None

    def pop(self, now: float) -> tuple[K, Priority] | None:
        """Remove and return the key that has been ready for the longest; ``None`` if none is."""
        heap = self._next_heap()
        if not heap or heap[0][0] > now:
            return None
        entry = heappop(heap)[2]
        del self._by_key[entry.key]
        if not self._by_key:
            self._old_heap, self._heap, self._stale = [], [], 0
            self._by_key.clear()  # an emptied dict keeps its memory; clear() releases it
        elif self._stale:
            self._drop_stale_top()
        return entry.key, entry.priority

    def drop(self, limit: int) -> bool:
        """Discard up to ``limit`` entries. Return True if there are more."""
        for _ in range(limit):
            # From the end of the list: the rest is still a heap, and the next key comes last.
            heap = self._heap or self._old_heap
            if not heap:
                break
            entry = heap.pop()[2]
            if not entry.stale:
                del self._by_key[entry.key]
        if not self._by_key:
            self._by_key.clear()  # releases the memory
        return bool(self._heap or self._old_heap)

    def _next_heap(self) -> _Heap[K]:
        """Return the heap that holds the next key."""
        old, heap = self._old_heap, self._heap
        return old if old and (not heap or old[0] < heap[0]) else heap

    def _drop_stale_top(self) -> None:
        """Remove stale entries from the top, since ``next_due`` reads the top entry."""
        while (heap := self._next_heap()) and heap[0][2].stale:
            heappop(heap)
            self._stale -= 1

    def __len__(self) -> int:
        return len(self._by_key)

    def __repr__(self) -> str:
        return f"<DelayQueue {quantity(len(self._by_key), 'key')}, the next at {self.next_due}>"
