"""The delay before another run of a key, checked where a reconciler writes it."""

from __future__ import annotations

from datetime import timedelta
from math import isfinite


def delay_seconds(after: object) -> float:
    """Return ``requeue_after`` in seconds.

    Raises:
        TypeError: the delay is neither a number nor a ``timedelta``.
        ValueError: the delay is negative or not finite.
    """
    if isinstance(after, timedelta):
        after = after.total_seconds()
    # True is an int, and would be a second.
    if isinstance(after, bool) or not isinstance(after, int | float):
        raise TypeError(f"requeue_after must be seconds or a timedelta, not {after!r}")
    if not (isfinite(after) and after >= 0):
        raise ValueError(f"requeue_after must be seconds from 0 on, or None, not {after!r}")
    return after
