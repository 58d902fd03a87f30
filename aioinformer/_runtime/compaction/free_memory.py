"""The return of free memory to the operating system, where the C library keeps it.

A list passes through buffers that are larger than its objects. After the initial list, glibc holds
the free parts of these buffers for later, a twentieth of what the cache takes, which no later
change needs. ``malloc_trim`` gives them back, in half a millisecond after 100,000 pods. The call
takes 0.25 ms for each MB, in one step, and no other thread can allocate meanwhile. So nothing is
returned if a program, or a relist in which every object has changed, has left much more.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

__all__ = ["MAX_FREE", "FreedMemory", "freed_memory", "release_free_memory"]

MAX_FREE = 16 * 1024 * 1024
"""Free bytes, those returned before included, above which nothing is returned: 4 ms."""

MAX_FREED = 32 * 1024 * 1024
"""Free bytes since the last return, above which ``FreedMemory`` returns nothing: 8 ms. The parts
are far smaller, but the first return includes what the initial list has left."""

MAX_TRAINING_FREED = 24 * 1024 * 1024
"""Bytes that the training of a dictionary leaves at the end of its heap: a sample of 16 MB,
and tables. To return them holds up no other thread."""

TOP_BLOCKS = 48
TOP_BLOCK_BYTES = 1024 * 1024
"""Blocks that cover these bytes: 48 MB, since a heap has 64 MB at most. glibc maps a block of this
size for itself only before a larger one was freed."""
LAST_BLOCK_BYTES = 100_000
"""A block between the others and the end: too large for the lists of small free parts, and too
small to be mapped for itself."""


def release_free_memory() -> bool:
    """Return free memory to the operating system. True if there was some, and not too much."""
    functions = _find_functions()
    if functions is None:
        return False
    count_free, trim = functions
    return count_free() <= MAX_FREE and bool(trim(0))


class FreedMemory:
    """The return of memory that is freed in parts, after each part.

    glibc also counts as free the memory that was returned before. So the number after the last
    return is kept, and the memory that was freed since is what a return takes time for.
    """

    def __init__(self) -> None:
        """Begin before anything was returned."""
        self._returned = 0

    def release(self) -> bool:
        """Return free memory to the system. True if there was some, and not too much."""
        functions = _find_functions()
        if functions is None:
            return False
        count_free, trim = functions
        if count_free() - self._returned > MAX_FREED:
            return False
        released = bool(trim(0))
        self._returned = count_free()
        return released

    def release_from_thread(self) -> bool:
        """Return free memory, also that at the end of this thread's heap, after a training.

        ``malloc_trim`` returns free memory inside of a heap, and the end of the main thread's heap
        alone. So blocks are allocated at the end of this thread's heap, and one more behind them.
        Once they are freed, they are free memory inside of the heap. Nothing is written to the
        blocks, so that new ones take no memory.

        Returns:
            True if there was free memory, and not too much.
        """
        functions, allocator = _find_functions(), _find_allocator()
        if functions is None or allocator is None:
            return False
        (count_free, trim), (malloc, free) = functions, allocator
        if count_free() - self._returned > MAX_FREED + MAX_TRAINING_FREED:
            return False
        blocks = [malloc(TOP_BLOCK_BYTES) for _ in range(TOP_BLOCKS)]
        last = malloc(LAST_BLOCK_BYTES)
        for block in blocks:
            free(block)
        released = bool(trim(0))
        free(last)
        self._returned = count_free()
        return released

    def __repr__(self) -> str:
        return f"<FreedMemory returned={self._returned} B>"


freed_memory = FreedMemory()
"""The memory that compression has freed in this process."""


@cache
def _find_functions() -> tuple[Callable[[], int], Callable[[int], int]] | None:
    """Return functions of glibc 2.33: one counts free bytes, one returns them to the system.

    ``None`` with another C library, or where ctypes isn't allowed.
    """
    try:
        import ctypes  # takes 6 ms, and most processes never call this

        class MallocInfo(ctypes.Structure):
            """``struct mallinfo2`` of malloc.h: ten numbers, the ninth counts free bytes."""

            _fields_ = (("before", ctypes.c_size_t * 8), ("free", ctypes.c_size_t * 2))

        library = ctypes.CDLL(None)
        info, trim = library.mallinfo2, library.malloc_trim
        info.restype = MallocInfo
    except (AttributeError, ImportError, OSError, TypeError):
        return None
    return lambda: int(info().free[0]), trim


@cache
def _find_allocator() -> tuple[Callable[[int], int | None], Callable[[int | None], object]] | None:
    """Return glibc's ``malloc`` and ``free``; ``None`` without a glibc that has ``mallinfo2``."""
    if _find_functions() is None:
        return None
    import ctypes

    library = ctypes.CDLL(None)
    malloc, free = library.malloc, library.free
    malloc.restype, malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    free.restype, free.argtypes = None, [ctypes.c_void_p]
    return malloc, free
