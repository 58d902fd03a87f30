"""The numbers of one listener, as a program sees them.

They are kept where that costs nothing for each event: time is looked at once a batch, and most of
them are only worked out when somebody asks.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

__all__ = ["Statistics", "Timing", "now"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """A listener's numbers at one moment."""

    pending: int
    """Live events queued, and what others were merged into."""
    limit: int
    """Live events that the mailbox holds."""
    high: int
    """The most that were ever pending, after those too many were merged."""
    delivered: int
    """Events handed to the handler or taken from the stream."""
    merged: int
    """Events that were not told by themselves, since later ones took them in."""
    errors: int
    """Events at which the handler raised."""
    synced: bool
    """Whether the state that the listener found was told and dealt with."""
    oldest: float
    """Seconds that the oldest pending event has waited; 0 if none does. Resyncs don't count."""
    spent_last: float
    """Seconds that the handler's last call took."""
    spent_mean: float
    """Seconds that a call took on average."""
    spent_max: float
    """The most that a call took."""


class Timing:
    """How long the calls of a handler took."""

    __slots__ = ("_calls", "_total", "last", "max")

    def __init__(self) -> None:
        """No call yet."""
        self.last = 0.0
        """Seconds of the last call."""
        self.max = 0.0
        """Seconds of the longest call."""
        self._calls = 0
        self._total = 0.0

    def spent(
        self,
        seconds: float,
        calls: int = 1,
        last: float | None = None,
        longest: float | None = None,
    ) -> None:
        """The last ``calls`` calls took so long together, the ``last`` of them and the
        ``longest`` so long, if that isn't the same.
        """
        self._calls += calls
        self._total += seconds
        self.last = seconds if last is None else last
        if longest is None:
            longest = seconds
        if longest > self.max:
            self.max = longest

    @property
    def mean(self) -> float:
        """Seconds of a call on average; 0 before the first."""
        return self._total / self._calls if self._calls else 0.0

    def __repr__(self) -> str:
        return f"<Timing calls={self._calls} mean={self.mean:g} max={self.max:g}>"


def now() -> float:
    """The time of the loop, which is the monotonic clock where it isn't a simulated one; so it can
    be asked from a thread without one.
    """
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return time.monotonic()
