"""Server behaviour learned per resource: WatchList support, and the interval of bookmarks.

Both are learned slowly (by a deadline, by a minute without data), so the informers of one resource
share one ``ServerProfile``, which outlives reconnects. Time is in seconds of a monotonic clock.
"""

from __future__ import annotations

from msgspec import Struct

WATCHLIST_UNSUPPORTED_PAUSE = 1800.0
"""Seconds for which a resource is listed after its server was found to have no WatchList. One more
attempt is cheap compared with this time, and an upgraded server is noticed soon."""

WATCHLIST_FAILED_PAUSE = 120.0
"""The same after WatchLists that broke off or failed while a list worked. The cause may pass."""

WATCHLIST_UNANSWERED_PAUSE = 1.0
"""The same after WatchLists that were not answered: the server was probably down."""

DEFAULT_BOOKMARK_INTERVAL = 60.0
"""Seconds between the bookmarks of a kube-apiserver (the cacher's defaultBookmarkFrequency)."""

MAX_BOOKMARK_INTERVAL = 230.0
"""The longest bookmark interval in seconds that is used. A watch lasts at least five minutes, and
the idle timeout is a quarter longer than the interval, so that it can still pass within a watch."""

LATENESS = 1.25
"""A bookmark that comes after up to so many intervals is in time. Servers send the bookmarks that
are due about once a second, and are late under load."""

MAX_SILENT_WATCHES = 10
"""Silent watches in a row that are put down to dead connections, where bookmarks have shown their
interval. A server that sends none to so many new watches no longer sends them at that interval."""


class ServerProfile(Struct, eq=False):
    watchlist_paused_until: float = float("-inf")
    bookmark_interval: float | None = None
    """Seconds between two bookmarks; ``None`` until one, or an end mark, was seen."""
    _interval_before_timeouts: float | None = None
    _measured: bool = False
    """True once the time between two bookmarks of one watch was about the known interval."""
    _silent_watches: int = 0
    """The watches put down to dead connections since the last bookmark that came in time."""
    _silent_until: float = float("-inf")
    """The time at which the last silent watch that counted was replaced."""
    _missed_bookmark: bool = False
    """True if the server had a bookmark to send while the last watch was silent."""

    def supports_watchlist(self, now: float) -> bool:
        return now >= self.watchlist_paused_until

    def record_watchlist_failure(self, now: float, seconds: float) -> None:
        """Record for ``seconds`` that a WatchList did not work while a list did."""
        self.watchlist_paused_until = max(self.watchlist_paused_until, now + seconds)

    def record_end_mark(self) -> None:
        """Record the end mark of a WatchList, a bookmark.

        Until their interval is known, kube-apiserver's is assumed: the first bookmark comes a
        minute after the end mark, and a connection may die before.
        """
        if self.bookmark_interval is None:
            self.bookmark_interval = DEFAULT_BOOKMARK_INTERVAL

    def record_bookmark(self, interval: float, *, first: bool) -> None:
        """Record a bookmark ``interval`` seconds after the previous one, or the beginning of the
        watch.

        A longer interval counts at once, a shorter one by half: an idle timeout that is too short
        costs a reconnect, one that is too long costs some seconds. A bookmark that comes within the
        interval before idle timeouts shows that the server is as fast as before. The ``first`` one
        of a watch proves nothing unless the interval was measured before: a server may send
        bookmarks to all watches at the same time.
        """
        before = self._interval_before_timeouts
        if before is None or interval > LATENESS * before:
            self._interval_before_timeouts = None
        elif self._measured or not first:
            self._restore_interval()
        known = self.bookmark_interval or DEFAULT_BOOKMARK_INTERVAL
        if LATENESS * interval >= known:
            self._measured = self._measured or not first
            self._silent_watches = 0
        if first:
            steady = max(interval, known)
        elif self.bookmark_interval is None:
            steady = interval
        else:
            steady = max(interval, 0.5 * known + 0.5 * interval)
        self.bookmark_interval, self._missed_bookmark = min(steady, MAX_BOOKMARK_INTERVAL), False

    @property
    def rarely_sends_bookmarks(self) -> bool:
        """True if idle watches are normal here.

        Some servers have no bookmark to send as long as nothing at all changes.
        """
        return (
            self.bookmark_interval is not None
            and self.bookmark_interval >= MAX_BOOKMARK_INTERVAL
            and not self._missed_bookmark
        )

    def record_silent_watch(self, since: float, until: float, *, moved: bool) -> None:
        """Record that a watch without data ``since`` a time was replaced at the time ``until``.

        If the server has ``moved`` to a newer version than the watch has shown, there was a
        bookmark to send, and so the connection is taken for dead. But the server may also send
        bookmarks more rarely than it seemed, which is assumed from the second silent watch in a row
        on where their interval was never measured, and after ``MAX_SILENT_WATCHES`` where it was.
        Of the watches that fall silent in one incident, the first one counts.
        """
        if since < self._silent_until or self.bookmark_interval is None:
            return
        self._silent_until, self._missed_bookmark = until, moved
        if moved and self._silent_watches < (MAX_SILENT_WATCHES if self._measured else 1):
            self._silent_watches += 1
            self._restore_interval()
            self.bookmark_interval = max(self.bookmark_interval, DEFAULT_BOOKMARK_INTERVAL)
        else:
            self.record_idle_timeout()

    def record_idle_timeout(self) -> None:
        """Double the interval, because a watch was silent although its connection may be alive."""
        if self.bookmark_interval is not None:
            self._interval_before_timeouts = (
                self._interval_before_timeouts or self.bookmark_interval
            )
            self.bookmark_interval = min(2 * self.bookmark_interval, MAX_BOOKMARK_INTERVAL)

    def record_dead_connection(self) -> None:
        """Record that the replaced watch had missed changes: its connection was dead."""
        self._silent_watches = 0
        self._restore_interval()

    def _restore_interval(self) -> None:
        if self._interval_before_timeouts is not None:
            self.bookmark_interval = self._interval_before_timeouts
            self._interval_before_timeouts = None
