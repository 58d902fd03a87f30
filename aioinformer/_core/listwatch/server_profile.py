"""What is known of how a server serves one resource, across reconnects and informers.

Two things are worth remembering: whether a WatchList of it comes to an end, and how far apart its
bookmarks are. Both are learnt the slow way (a deadline, a minute of silence), so informers of the
same resource share one ``ServerProfile``. Time is an argument, in seconds of a monotonic clock.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["WATCHLIST_FAILED_PAUSE", "WATCHLIST_UNSUPPORTED_PAUSE", "ServerProfile"]

WATCHLIST_UNSUPPORTED_PAUSE = 1800.0
"""Seconds for which a resource is listed after its server was found to have no WatchList: long
against the cost of one more try, short against the life of a server that is upgraded meanwhile."""

WATCHLIST_FAILED_PAUSE = 120.0
"""Seconds for which it is listed after WatchLists that broke off or failed, where a list worked: it
may have been something that passes."""

DEFAULT_BOOKMARK_INTERVAL = 60.0
"""Seconds between the bookmarks of a kube-apiserver (the cacher's defaultBookmarkFrequency)."""

MAX_BOOKMARK_INTERVAL = 230.0
"""Seconds: the longest time between bookmarks that is believed. A watch lasts five minutes at
least, and patience is a quarter longer than this: a silent one is looked into before its end."""


@dataclass(slots=True, eq=False)
class ServerProfile:
    """How one resource is served."""

    watchlist_paused_until: float = float("-inf")
    """Until when no WatchList is asked for."""
    bookmark_interval: float | None = None
    """Seconds between two bookmarks; ``None`` while none has been seen."""
    _interval_before_timeouts: float | None = None
    """What it was before streams were given up."""

    def supports_watchlist(self, now: float) -> bool:
        """Whether to ask for a WatchList."""
        return now >= self.watchlist_paused_until

    def record_watchlist_failure(self, now: float, seconds: float) -> None:
        """A WatchList did not work, and a list did: remember it for so long."""
        self.watchlist_paused_until = max(self.watchlist_paused_until, now + seconds)

    def record_bookmark(self, interval: float, *, first: bool) -> None:
        """A bookmark came.

        One long distance counts at once, short ones by and by: a timer that is too short costs
        a reconnect, one that is too long some seconds.

        Args:
            interval: seconds since the one before, or since the beginning of the watch.
            first: whether it is the first of its watch. A server may send them to all watches at
                once, so that how soon the first one came says nothing.
        """
        if first:
            steady = max(interval, self.bookmark_interval or DEFAULT_BOOKMARK_INTERVAL)
        elif self.bookmark_interval is None:
            steady = interval
        else:
            steady = max(interval, 0.5 * self.bookmark_interval + 0.5 * interval)
        self.bookmark_interval, self._interval_before_timeouts = (
            min(steady, MAX_BOOKMARK_INTERVAL),
            None,
        )

    @property
    def rarely_sends_bookmarks(self) -> bool:
        """Whether silence has become usual here: some servers have no bookmark to send where
        nothing happens.
        """
        return (
            self.bookmark_interval is not None and self.bookmark_interval >= MAX_BOOKMARK_INTERVAL
        )

    def record_idle_timeout(self) -> None:
        """A stream was given up. If the next one is silent too, that may be how things are here:
        a server has no bookmark to send when nothing at all has happened.
        """
        if self.bookmark_interval is not None:
            self._interval_before_timeouts = (
                self._interval_before_timeouts or self.bookmark_interval
            )
            self.bookmark_interval = min(2 * self.bookmark_interval, MAX_BOOKMARK_INTERVAL)

    def record_dead_connection(self) -> None:
        """What the stream that was given up should have brought came with the next one."""
        if self._interval_before_timeouts is not None:
            self.bookmark_interval, self._interval_before_timeouts = (
                self._interval_before_timeouts,
                None,
            )
