"""The numbers of a work queue at one moment, as programs and metrics see them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["QueueStatistics", "ReadQueue"]


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
