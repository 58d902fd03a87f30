"""A list of any length that no step has to walk, copy or free as a whole.

To copy or to free a ``list`` of a million objects takes one step of tens of milliseconds, and the
garbage collector walks over all of its items each time. It untracks the tuples of a ``ChunkedList``
at the first look, since their items, cached objects and events, are untracked.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Protocol, TypeVar, cast, overload, runtime_checkable

T = TypeVar("T")

CHUNK_SIZE = 256
"""Items of a chunk, which are freed or delivered to a mailbox in a tenth of a millisecond."""


@runtime_checkable
class Chunked(Protocol):
    """A collection whose items are held in smaller collections."""

    @property
    def chunks(self) -> Sequence[Collection[object]]: ...


class ChunkedList(Sequence[T]):
    """A sequence that grows at its end."""

    __slots__ = ("_chunks", "_closed_count", "_open")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._chunks: list[tuple[T, ...]] = []
        self._closed_count = 0
        self._open: list[T] = []
        """The items that are not in a chunk yet."""
        self.extend(items)

    def append(self, item: T) -> None:
        self._open.append(item)
        if len(self._open) == CHUNK_SIZE:
            self._close_chunk()

    def extend(self, items: Iterable[T]) -> None:
        """Add items at the end. The chunks of another ``ChunkedList`` are shared, not copied."""
        if isinstance(items, ChunkedList):
            self._close_chunk()
            self._chunks += items.chunks
            self._closed_count += len(items)
            return
        source = iter(items)
        while added := tuple(islice(source, CHUNK_SIZE - len(self._open))):
            self._open += added
            if len(self._open) == CHUNK_SIZE:
                self._close_chunk()

    def _close_chunk(self) -> None:
        if self._open:
            self._chunks.append(tuple(self._open))
            self._closed_count += len(self._open)
            self._open = []

    @property
    def chunks(self) -> list[tuple[T, ...]]:
        """All items in a new list of chunks, none of which is empty."""
        self._close_chunk()
        return self._chunks.copy()

    def __len__(self) -> int:
        return self._closed_count + len(self._open)

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(self.chunks)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        return list(self)[index]  # walks over all items: programs and tests look into short lists

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return list(self) == list(cast("Sequence[object]", other))

    def __repr__(self) -> str:
        return f"<ChunkedList items={len(self)}>"


def chunks_of(items: Iterable[object]) -> list[Collection[object]]:
    """Return the items in chunks: those of a ``Chunked``, else new ones."""
    return [*items.chunks] if isinstance(items, Chunked) else [*iter_chunks(items)]


def drain_chunks(chunks: Iterable[Collection[T]]) -> Iterator[T]:
    """Iterate over the items; release each chunk once read, so that no step frees them all."""
    return chain.from_iterable(_pop_chunks(deque(chunks)))


def _pop_chunks(chunks: deque[Collection[T]]) -> Iterator[Collection[T]]:
    while chunks:
        yield chunks.popleft()


def iter_chunks(items: Iterable[T]) -> Iterator[tuple[T, ...]]:
    """Yield the items in tuples of ``CHUNK_SIZE``; each item is touched once."""
    source = iter(items)
    while chunk := tuple(islice(source, CHUNK_SIZE)):
        yield chunk
