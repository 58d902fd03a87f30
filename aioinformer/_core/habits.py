"""What is known of how a server serves one resource, across reconnects and informers.

Two things are worth remembering: whether a WatchList of it comes to an end, and how far apart its
bookmarks are. Both are learnt the slow way (a deadline, a minute of silence), so informers of the
same resource share one ``Habits``. Time is an argument, in seconds of a monotonic clock.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Habits", "older"]

STREAMLESS = 1800.0
"""Seconds for which a resource is listed after a WatchList of it did not work: long against the
cost of one more try, short against the life of a server that is upgraded meanwhile."""

USUAL = 60.0
"""Seconds between the bookmarks of a kube-apiserver (the cacher's defaultBookmarkFrequency)."""

PATIENT = 600.0
"""Seconds: the longest time between bookmarks that is believed. Watches last no longer."""


@dataclass(slots=True, eq=False)
class Habits:
    """How one resource is served."""

    lists_until: float = float("-inf")
    """Until when no WatchList is asked for."""
    cadence: float | None = None
    """Seconds between two bookmarks; ``None`` while none has been seen."""

    def streams(self, now: float) -> bool:
        """Whether to ask for a WatchList."""
        return now >= self.lists_until

    def no_stream(self, now: float) -> None:
        """A WatchList did not work."""
        self.lists_until = now + STREAMLESS

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
        self.cadence = min(steady, PATIENT)

    def was_silent(self) -> None:
        """A stream was given up. If the next one is silent too, that may be how things are here:
        a server has no bookmark to send when nothing at all has happened.
        """
        if self.cadence is not None:
            self.cadence = min(2 * self.cadence, PATIENT)


def older(version: str, than: str) -> bool:
    """Whether a resourceVersion is certainly the older one of two.

    They are decimal numbers on any conformant server (KEP-5504); of others nothing is certain.
    """
    if not (_is_number(version) and _is_number(than)):
        return False
    return (len(version), version) < (len(than), than)


def _is_number(version: str) -> bool:
    return version.isascii() and version.isdecimal() and not version.startswith("0")
