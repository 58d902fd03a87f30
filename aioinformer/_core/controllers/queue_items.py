"""One key on its way through a work queue, and how urgent that is.

The numbers of a work queue at one moment, as programs and metrics see them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import IntEnum
from typing import Generic, TypeAlias, TypeVar

from msgspec import Struct

__all__ = ["Priority", "QueueItem", "QueueStatistics", "ReadQueue"]


K = TypeVar("K", bound=Hashable)


class Priority(IntEnum):
    """How urgent a key is. The greater is handed out first."""

    LOW = 0
    """What nothing has happened to: initial lists and resyncs, thousands of keys at once."""
    NORMAL = 1
    """What has just changed."""


class QueueItem(Struct, Generic[K], eq=False):
    """One run of a key, from when it was asked for until it is done.

    There is one for each key that waits: a ``Struct`` is made in half the time of a class.
    """

    key: K
    priority: Priority
    added_at: float
    """When the run was asked for."""
    started_at: float | None = None
    """When somebody began to work on it; ``None`` while it waits."""
    rerun: QueueItem[K] | None = None
    """The run after this one, asked for while this one was under way."""

    def __repr__(self) -> str:
        state = "waiting" if self.started_at is None else "again" if self.rerun else "at work"
        return f"<QueueItem {self.key!r} {self.priority.name} {state}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatistics:
    """A work queue's numbers. Times are in seconds; all counts are since it was made."""

    normal: int
    """Keys that wait at normal priority."""
    low: int
    """Keys that wait at low priority."""
    delayed: int
    """Keys whose time has not come yet."""
    processing: int
    """Keys that are being worked on."""
    adds: int
    """Runs that were asked for; what was added while it already waited counts once."""
    merged: int
    """Adds that asked for nothing new, since the key already waited."""
    retries: int
    """Rate-limited adds. client-go counts every delayed one, periodic ones included."""
    dropped: int
    """Runs that a queue which is shut down owes: of keys added since, of those that were delayed
    at the time, and, if it was told to drop them, of those that waited."""
    done: int
    """Runs that have ended."""
    waited_mean: float
    """How long the keys that were handed out had waited since they were first added, on average.
    What is added while it is worked on waits from then on; a delay doesn't count."""
    waited_max: float
    """The longest of these."""
    waiting_longest: float
    """How long the next key of either priority has waited by now; 0 if none does. Behind it, one
    that was moved up, or comes back from its run, may have waited longer."""
    worked_mean: float
    """How long a run took, on average."""
    worked_max: float
    """The longest of these."""
    running_longest: float
    """How long the longest of the runs under way has taken by now. It grows if one is stuck."""
    unfinished_seconds: float
    """The same of all of them together."""

    @property
    def depth(self) -> int:
        """Keys that wait to be handed out: client-go's depth."""
        return self.normal + self.low


ReadQueue: TypeAlias = Callable[[], QueueStatistics]
"""Reads a queue's numbers. It may be called in any thread, and tolerates that two of them are of
different moments."""
