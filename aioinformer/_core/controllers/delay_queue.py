"""Keys whose time has not come yet: a heap in which each key is once.

A key that is delayed twice comes at the earlier of the two times and with the higher of the two
priorities, as in controller-runtime's queue; client-go's has the first half of it. An entry that
became earlier is left in the heap and passed over. When those are the majority a new heap is begun
and the old one moves over, a few entries with each add: no single step is long, however many there
are. An entry is taken from the old heap's end, so that what remains of it is a heap still.
"""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heappop, heappush
from typing import Generic, TypeAlias, TypeVar

from msgspec import Struct

from aioinformer._core.controllers.queue_items import Priority

__all__ = ["DelayQueue"]

K = TypeVar("K", bound=Hashable)

MIN_STALE = 64
"""Left entries that are not worth a new heap."""

MOVE_BATCH = 8
"""Entries that move over with each add: enough to be over long before the next time."""


class _DelayedKey(Struct, Generic[K], eq=False):
    key: K
    priority: Priority
    ready: float
    stale: bool = False


_Heap: TypeAlias = "list[tuple[float, int, _DelayedKey[K]]]"
"""The number keeps those of one time in order, and keys from being compared."""


class DelayQueue(Generic[K]):
    """Keys by the time at which they are ready, on any monotonic clock."""

    __slots__ = ("_by_key", "_heap", "_number", "_old_heap", "_stale")

    def __init__(self) -> None:
        """Nothing is delayed."""
        self._by_key: dict[K, _DelayedKey[K]] = {}
        self._heap: _Heap[K] = []
        self._old_heap: _Heap[K] = []
        self._stale = 0
        self._number = 0

    def add(self, key: K, ready: float, priority: Priority) -> None:
        """Delay a key until ``ready``, or until when it was delayed already if that is earlier."""
        held = self._by_key.get(key)
        if held is not None:
            if priority > held.priority:
                held.priority = priority
            if ready >= held.ready:
                return
            priority = held.priority
            held.stale = True
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
        """When the next one is ready."""
        heap = self._next_heap()
        return heap[0][0] if heap else None

    def pop(self, now: float) -> tuple[K, Priority] | None:
        """The one that has been ready for the longest, if any is."""
        heap = self._next_heap()
        if not heap or heap[0][0] > now:
            return None
        entry = heappop(heap)[2]
        del self._by_key[entry.key]
        if not self._by_key:
            self._old_heap, self._heap, self._stale = [], [], 0
            self._by_key.clear()  # an emptied dict keeps the room of its best days
        elif self._stale:
            self._drop_stale_top()
        return entry.key, entry.priority

    def drop(self, limit: int) -> bool:
        """Forget up to ``limit`` of them, the next ones last; whether there are more."""
        for _ in range(limit):
            heap = self._heap or self._old_heap
            if not heap:
                break
            entry = heap.pop()[2]
            if not entry.stale:
                del self._by_key[entry.key]
        if not self._by_key:
            self._by_key.clear()  # as above
        return bool(self._heap or self._old_heap)

    def _next_heap(self) -> _Heap[K]:
        """The heap that holds the next one."""
        old, heap = self._old_heap, self._heap
        return old if old and (not heap or old[0] < heap[0]) else heap

    def _drop_stale_top(self) -> None:
        """Have no left entry on top: what is there decides when the next one is due."""
        while (heap := self._next_heap()) and heap[0][2].stale:
            heappop(heap)
            self._stale -= 1

    def __len__(self) -> int:
        return len(self._by_key)

    def __repr__(self) -> str:
        return f"<DelayQueue {len(self._by_key)} keys, the next at {self.next_due}>"
