"""A dict of any length that grows, and is freed, in parts.

Python's dict grows by moving all of its entries: 10 ms and more at 170,000 entries, 40 ms at
700,000, in the middle of whatever step adds one more. A ``SegmentedDict`` is made of small dicts,
of which each key belongs to one by its hash. The small dicts fill up at different times, and each
grows in less than a millisecond. A lookup takes a third of a microsecond more than in one dict. The
order is not that of the insertions, in which the values may lie in memory, so that walking over all
of them takes longer, too. A ``SegmentedDict`` therefore pays for large caches only.

A copy of the keys, values or items by one call, such as ``list(found.values())``, is exact even
while another thread changes the dict: the call runs in C, and the interpreter switches threads
between instructions only.
"""

from __future__ import annotations

from collections.abc import (
    ItemsView,
    Iterator,
    KeysView,
    MutableMapping,
    ValuesView,
)
from itertools import chain
from sys import getsizeof
from typing import Any, TypeVar, overload

__all__ = ["SegmentedDict"]

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")

SEGMENTS = 64
"""The number of dicts: a power of two. At a million entries, each has 16,000 entries."""
MASK = SEGMENTS - 1


class SegmentedDict(MutableMapping[K, V]):
    """A mapping whose entries are in ``SEGMENTS`` dicts. Its order is that of the segments."""

    __slots__ = ("_count", "segments")

    def __init__(self, segments: tuple[dict[K, V], ...] | None = None) -> None:
        """Make an empty dict, or one of these segments of another one."""
        if segments is None:
            segments = tuple({} for _ in range(SEGMENTS))
        self.segments: tuple[dict[K, V], ...] = segments
        """The dicts. To be read only."""
        self._count = sum(map(len, segments))

    def __getitem__(self, key: K) -> V:
        return self.segments[hash(key) & MASK][key]

    @overload
    def get(self, key: K, /) -> V | None: ...
    @overload
    def get(self, key: K, default: V | D, /) -> V | D: ...
    def get(self, key: K, default: Any = None, /) -> Any:
        """Return the value of ``key``, or ``default``."""
        return self.segments[hash(key) & MASK].get(key, default)

    def __contains__(self, key: object) -> bool:
        return key in self.segments[hash(key) & MASK]

    def __setitem__(self, key: K, value: V) -> None:
        segment = self.segments[hash(key) & MASK]
        before = len(segment)
        segment[key] = value
        self._count += len(segment) - before

    def __delitem__(self, key: K) -> None:
        del self.segments[hash(key) & MASK][key]
        self._count -= 1

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[K]:
        return chain.from_iterable(self.segments)

    def keys(self) -> KeysView[K]:
        """Return a view of the keys."""
        return KeysView(self)

    def values(self) -> ValuesView[V]:
        """Return a view of the values."""
        return _SegmentedValues(self)

    def items(self) -> ItemsView[K, V]:
        """Return a view of the items."""
        return _SegmentedItems(self)

    def popitem(self) -> tuple[K, V]:
        """Remove and return some item; raise ``KeyError`` if there is none."""
        segment = next(filter(None, self.segments), None)
        if segment is None:
            raise KeyError("popitem(): the dict is empty")
        self._count -= 1
        return segment.popitem()

    def copy(self) -> SegmentedDict[K, V]:
        """Return a copy, which takes as long as that of a dict."""
        return SegmentedDict(tuple(map(dict[K, V].copy, self.segments)))

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + sum(map(getsizeof, self.segments))

    def __repr__(self) -> str:
        return f"<SegmentedDict entries={len(self)}>"


class _SegmentedValues(ValuesView[V]):
    """The values, without a lookup of each."""

    def __init__(self, owner: SegmentedDict[Any, V]) -> None:
        super().__init__(owner)
        self._owner = owner

    def __iter__(self) -> Iterator[V]:
        return chain.from_iterable(map(dict[Any, V].values, self._owner.segments))


class _SegmentedItems(ItemsView[K, V]):
    """The items, without a lookup of each."""

    def __init__(self, owner: SegmentedDict[K, V]) -> None:
        super().__init__(owner)
        self._owner = owner

    def __iter__(self) -> Iterator[tuple[K, V]]:
        return chain.from_iterable(map(dict[K, V].items, self._owner.segments))
