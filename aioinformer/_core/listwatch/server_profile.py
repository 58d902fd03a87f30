"""What is known of how a server serves one resource, across reconnects and informers.

Two things are worth remembering: whether a WatchList of it comes to an end, and how far apart its
bookmarks are. Both are learnt the slow way (a deadline, a minute of silence), so informers of the
same resource share one ``Habits``. Time is an argument, in seconds of a monotonic clock.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["STREAMLESS", "UNLUCKY", "Habits"]

STREAMLESS = 1800.0
"""Seconds for which a resource is listed after its server was found to have no WatchList: long
against the cost of one more try, short against the life of a server that is upgraded meanwhile."""

UNLUCKY = 120.0
"""Seconds for which it is listed after WatchLists that broke off or failed, where a list worked: it
may have been something that passes."""

USUAL = 60.0
"""Seconds between the bookmarks of a kube-apiserver (the cacher's defaultBookmarkFrequency)."""

PATIENT = 230.0
"""Seconds: the longest time between bookmarks that is believed. A watch lasts five minutes at
least, and patience is a quarter longer than this: a silent one is looked into before its end."""


@dataclass(slots=True, eq=False)
class Habits:
    """How one resource is served."""

    lists_until: float = float("-inf")
    """Until when no WatchList is asked for."""
    cadence: float | None = None
    """Seconds between two bookmarks; ``None`` while none has been seen."""
    _believed: float | None = None
    """What it was before streams were given up."""

    def streams(self, now: float) -> bool:
        """Whether to ask for a WatchList."""
        return now >= self.lists_until

    def no_stream(self, now: float, seconds: float) -> None:
        """A WatchList did not work, and a list did: remember it for so long."""
        self.lists_until = max(self.lists_until, now + seconds)

    def saw_bookmark(self, after: float, *, first: bool) -> None:
        """A bookmark came.

        One long distance counts at once, short ones by and by: a timer that is too short costs
        a reconnect, one that is too long some seconds.

        Args:
            after: seconds since the one before, or since the beginning of the watch.
            first: whether it is the first of its watch. A server may send them to all watches at
                once, so that how soon the first one came says nothing.
        """
        if first:
            steady = max(after, self.cadence or USUAL)
        elif self.cadence is None:
            steady = after
        else:
            steady = max(after, 0.5 * self.cadence + 0.5 * after)
        self.cadence, self._believed = min(steady, PATIENT), None

    @property
    def patient(self) -> bool:
        """Whether silence has become usual here: some servers have no bookmark to send where
        nothing happens.
        """
        return self.cadence is not None and self.cadence >= PATIENT

    def was_silent(self) -> None:
        """A stream was given up. If the next one is silent too, that may be how things are here:
        a server has no bookmark to send when nothing at all has happened.
        """
        if self.cadence is not None:
            self._believed = self._believed or self.cadence
            self.cadence = min(2 * self.cadence, PATIENT)

    def was_dead(self) -> None:
        """What the stream that was given up should have brought came with the next one."""
        if self._believed is not None:
            self.cadence, self._believed = self._believed, None
