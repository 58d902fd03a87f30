"""Leaves out of a failing case what the failure doesn't need.

Delta debugging (Zeller and Hildebrandt's ``ddmin``): try without ever smaller parts, keep every
smaller case that still fails. It knows nothing of what the items are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

__all__ = ["BUDGET", "shrink"]

BUDGET = 400
"""Attempts: most failures are down to a handful of items after a hundred."""


def shrink(
    items: Sequence[int], fails: Callable[[Sequence[int]], bool], *, budget: int = BUDGET
) -> list[int]:
    """A part of ``items`` that still fails; the smallest that the budget finds.

    Args:
        items: a case that fails.
        fails: whether a part of it does. Must be the same for the same part.
        budget: how often ``fails`` may be called.
    """
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
