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

__all__ = ["Delays"]

K = TypeVar("K", bound=Hashable)

FEW = 64
"""Left entries that are not worth a new heap."""

MOVED = 8
"""Entries that move over with each add: enough to be over long before the next time."""


class _Delayed(Struct, Generic[K], eq=False):
    key: K
    priority: Priority
    ready: float
    left: bool = False


_Heap: TypeAlias = "list[tuple[float, int, _Delayed[K]]]"
"""The number keeps those of one time in order, and keys from being compared."""


class Delays(Generic[K]):
    """Keys by the time at which they are ready, on any monotonic clock."""

    __slots__ = ("_by_key", "_heap", "_left", "_number", "_old")

    def __init__(self) -> None:
        """Nothing is delayed."""
        self._by_key: dict[K, _Delayed[K]] = {}
        self._heap: _Heap[K] = []
        self._old: _Heap[K] = []
        self._left = 0
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
            held.left = True
            self._left += 1
        entry = self._by_key[key] = _Delayed(key, priority, ready)
        self._number += 1
        heappush(self._heap, (ready, self._number, entry))
        if self._old:
            self._move()
        elif self._left > FEW and self._left > len(self._by_key):
            self._old, self._heap = self._heap, []

    def _move(self) -> None:
        for _ in range(min(MOVED, len(self._old))):
            last = self._old.pop()
            if last[2].left:
                self._left -= 1
            else:
                heappush(self._heap, last)

    @property
    def due(self) -> float | None:
        """When the next one is ready."""
        heap = self._first()
        return heap[0][0] if heap else None

    def pop(self, now: float) -> tuple[K, Priority] | None:
        """The one that has been ready for the longest, if any is."""
        heap = self._first()
        if not heap or heap[0][0] > now:
            return None
        entry = heappop(heap)[2]
        del self._by_key[entry.key]
        if not self._by_key:
            self._old, self._heap, self._left = [], [], 0
            self._by_key.clear()  # an emptied dict keeps the room of its best days
        elif self._left:
            self._tidy()
        return entry.key, entry.priority

    def drop(self, limit: int) -> bool:
        """Forget up to ``limit`` of them, the next ones last; whether there are more."""
        for _ in range(limit):
            heap = self._heap or self._old
            if not heap:
                break
            entry = heap.pop()[2]
            if not entry.left:
                del self._by_key[entry.key]
        if not self._by_key:
            self._by_key.clear()  # as above
        return bool(self._heap or self._old)

    def _first(self) -> _Heap[K]:
        """The heap that holds the next one."""
        old, heap = self._old, self._heap
        return old if old and (not heap or old[0] < heap[0]) else heap

    def _tidy(self) -> None:
        """Have no left entry on top: what is there decides when the next one is due."""
        while (heap := self._first()) and heap[0][2].left:
            heappop(heap)
            self._left -= 1

    def __len__(self) -> int:
        return len(self._by_key)

    def __repr__(self) -> str:
        return f"<Delays {len(self._by_key)} keys, the next at {self.due}>"
