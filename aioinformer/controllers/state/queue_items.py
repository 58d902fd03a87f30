"""One key in a work queue, and its priority."""

from __future__ import annotations

from collections.abc import Hashable
from enum import IntEnum
from typing import Generic, TypeVar

from msgspec import Struct

K = TypeVar("K", bound=Hashable)


class Priority(IntEnum):
    """The priority of a key. A work queue hands out the greater one first."""

    LOW = 0
    """For keys without a change: initial lists and resyncs, thousands of keys at once."""
    NORMAL = 1


class QueueItem(Struct, Generic[K], eq=False):
    """One run of a key, from its request until it is done. A ``Struct`` is made twice as fast."""

    key: K
    priority: Priority
    added_at: float
    started_at: float | None = None
    """The time at which a worker took the key; ``None`` while it waits."""
    rerun: QueueItem[K] | None = None
    """The next run, which was requested while this one was under way."""

    def __repr__(self) -> str:
        state = "waiting" if self.started_at is None else "processing"
        rerun = ", rerun requested" if self.rerun else ""
        return f"<QueueItem {self.key!r} {self.priority.name} {state}{rerun}>"
