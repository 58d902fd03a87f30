"""One key in a work queue with its priority, and the statistics of a queue."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import IntEnum
from typing import Generic, TypeAlias, TypeVar

from msgspec import Struct

__all__ = ["Priority", "QueueItem", "QueueStatistics", "ReadQueue"]


K = TypeVar("K", bound=Hashable)


class Priority(IntEnum):
    """The priority of a key. A work queue hands out the greater one first."""

    LOW = 0
    """For keys without a change: initial lists and resyncs, thousands of keys at once."""
    NORMAL = 1
    """For keys whose object has just changed."""


class QueueItem(Struct, Generic[K], eq=False):
    """One run of a key, from the request until the key is done.

    There is one for each key that waits. A ``Struct`` is made in half the time of a class.
    """

    key: K
    priority: Priority
    added_at: float
    """The time at which the run was requested."""
    started_at: float | None = None
    """The time at which a worker took the key; ``None`` while it waits."""
    rerun: QueueItem[K] | None = None
    """The next run, which was requested while this one was under way."""

    def __repr__(self) -> str:
        state = "waiting" if self.started_at is None else "again" if self.rerun else "at work"
        return f"<QueueItem {self.key!r} {self.priority.name} {state}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatistics:
    """Statistics of a work queue. Times are in seconds; counts are since the queue was made."""

    normal: int
    """Keys that wait at normal priority."""
    low: int
    """Keys that wait at low priority."""
    delayed: int
    """Keys that wait for their time."""
    processing: int
    """Keys that are being processed."""
    adds: int
    """Runs that were requested. An add of a key that waits already requests no run."""
    merged: int
    """Adds that requested no run, since the key waited already."""
    retries: int
    """Rate-limited adds. client-go counts every delayed add, periodic ones included."""
    dropped: int
    """Runs that were discarded by a shutdown: of keys added afterwards, of keys that were delayed
    at the time, and, with ``drop=True``, of keys that waited."""
    done: int
    """Runs that have ended."""
    waited_mean: float
    """Mean time that the keys which were handed out had waited since their first add. The rerun of
    a key waits from the end of the run before it. A delay doesn't count."""
    waited_max: float
    """The maximum of these times."""
    waiting_longest: float
    """Seconds that the next key of either priority has waited by now; 0 if none waits. A key behind
    it may have waited longer if its priority was raised or if it is a rerun."""
    worked_mean: float
    """Mean duration of a run."""
    worked_max: float
    """The maximum of these times."""
    running_longest: float
    """Duration by now of the longest run under way. It grows if a run is stuck."""
    unfinished_seconds: float
    """The sum of the durations by now of all runs under way."""

    @property
    def depth(self) -> int:
        """Keys that wait to be handed out: client-go's depth."""
        return self.normal + self.low


ReadQueue: TypeAlias = Callable[[], QueueStatistics]
"""Reads a queue's statistics. It may be called in any thread. Two of the numbers may be of
different moments."""
