"""Remove from a failing case the items that the failure doesn't need.

The algorithm is delta debugging (Zeller and Hildebrandt's ``ddmin``): leave out parts, large ones
first and ever smaller ones then, and keep every smaller case that still fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

BUDGET = 400
"""Attempts. Most failures are reduced to a handful of items after a hundred."""


def shrink(
    items: Sequence[int], fails: Callable[[Sequence[int]], bool], *, budget: int = BUDGET
) -> list[int]:
    """Return the smallest failing part of ``items`` found in ``budget`` calls of ``fails``."""
    kept = list(items)
    size = max(1, len(kept) // 2)
    while kept:
        at = 0
        smaller = False
        while at < len(kept):
            if budget <= 0:
                return kept
            budget -= 1
            without = kept[:at] + kept[at + size :]
            if fails(without):
                kept, smaller = without, True
            else:
                at += size
        if size == 1 and not smaller:
            return kept
        size = max(1, min(size, len(kept)) // (1 if smaller and size == 1 else 2))
    return kept
