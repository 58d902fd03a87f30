"""The return of free memory: none if there is much, since the call holds up all threads."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from aioinformer._runtime.compaction import free_memory
from aioinformer._runtime.compaction.free_memory import (
    MAX_FREE,
    MAX_FREED,
    MAX_TRAINING_FREED,
    FreedMemory,
    release_free_memory,
)


class Heap:
    """A C library whose free memory the test sets."""

    def __init__(self, free: int, *, trims: bool = True) -> None:
        self.free = free
        self.trims = trims
        self.calls = list[str]()

    def functions(self) -> tuple[Callable[[], int], Callable[[int], int]]:
        return lambda: self.free, self.trim

    def trim(self, pad: int) -> int:
        self.calls.append(f"trim {pad}")
        return int(self.trims)

    def allocator(self) -> tuple[Callable[[int], int | None], Callable[[int | None], object]]:
        return self.malloc, lambda block: self.calls.append(f"free {block}")

    def malloc(self, size: int) -> int | None:
        self.calls.append("malloc")
        return size

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(free_memory, "_find_functions", self.functions)
        monkeypatch.setattr(free_memory, "_find_allocator", self.allocator)


def test_free_memory_is_returned_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    heap = Heap(MAX_FREE)
    heap.install(monkeypatch)
    assert release_free_memory()

    heap.free = MAX_FREE + 1
    assert not release_free_memory()
    assert heap.calls == ["trim 0"]


def test_a_heap_without_free_memory_returns_none(monkeypatch: pytest.MonkeyPatch) -> None:
    heap = Heap(0, trims=False)
    heap.install(monkeypatch)

    assert not release_free_memory()
    assert not FreedMemory().release()


def test_memory_that_was_returned_before_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The C library counts as free what it has given back."""
    heap, freed = Heap(MAX_FREED), FreedMemory()
    heap.install(monkeypatch)

    assert freed.release()
    assert repr(freed) == f"<FreedMemory returned={MAX_FREED} B>"
    heap.free = 2 * MAX_FREED
    assert freed.release()
    heap.free = 3 * MAX_FREED + 1
    assert not freed.release()
    assert repr(freed) == f"<FreedMemory returned={2 * MAX_FREED} B>"


def test_a_training_may_leave_more_and_the_end_of_its_heap_is_returned_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heap, freed = Heap(MAX_FREED + MAX_TRAINING_FREED), FreedMemory()
    heap.install(monkeypatch)

    assert freed.release_from_thread()
    trimmed = heap.calls.index("trim 0")
    before, after = heap.calls[:trimmed], heap.calls[trimmed + 1 :]
    # The last block keeps the others inside of the heap, and is freed after them.
    assert before.count("malloc") == len(before) - before.count("malloc") + 1 == 49
    assert after == [f"free {free_memory.LAST_BLOCK_BYTES}"]

    heap.calls.clear()
    heap.free += MAX_FREED + MAX_TRAINING_FREED + 1
    assert not freed.release_from_thread()
    assert heap.calls == []


def test_another_c_library_returns_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(free_memory, "_find_functions", lambda: None)
    monkeypatch.setattr(free_memory, "_find_allocator", lambda: None)

    assert not release_free_memory()
    assert not FreedMemory().release()
    assert not FreedMemory().release_from_thread()
