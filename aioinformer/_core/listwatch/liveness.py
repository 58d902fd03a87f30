"""Time limits of watches and lists, and the idle timeout of a watch: its time without data.

A connection can die silently, and TCP notices only some of that. A server that sends bookmarks does
so about once a minute. So where bookmarks were seen, a time without data that is longer than their
interval means a dead connection. The end mark of a WatchList is a bookmark: behind it, an interval
of a minute is assumed until one was measured. If no bookmark was ever seen, a time without data
proves nothing: there is no idle timeout then, and the watch ends at its deadline. After an idle
timeout a freshness check asks the server for its version. A newer version than that of the watch
means that the server had a bookmark to send. An equal one means that it had none, and the idle
timeout grows.

The watchdog of the runtime waits until ``IdleTimeout.deadline``. aioinformer's client additionally
ends every watch ``Timeouts.grace`` seconds after its deadline, and a list or single request after
``Timeouts.read`` seconds without data.
"""

from __future__ import annotations

from msgspec import Struct

from aioinformer._core.listwatch.server_profile import ServerProfile
from aioinformer.errors import RequestTimedOut

FINAL_BOOKMARK_WINDOW = 5.0
"""Seconds before the deadline of a watch in which bookmarks don't count for the interval, because a
server sends one or two just before the end."""

DEADLINE_GRACE = 60.0
"""Seconds that a watch may last beyond its deadline. aioinformer's client ends such a watch earlier
(``Timeouts.grace``); this limit is for other list/watch sources."""

MIN_TIMEOUT = 15.0
"""The least idle timeout in seconds. A server under load is late with its bookmarks."""

NEVER = float("inf")


class LivenessPolicy(Struct, frozen=True, kw_only=True):
    """The numbers for idle timeouts and for the time limits of initial lists, in seconds.

    Example::

        slow = LivenessPolicy(initial_idle=60, list_total=1200)
        nodes = informers.informer("nodes", liveness=slow)
    """

    idle_factor: float = 1.25
    """The idle timeout of a watch is this many times the interval of bookmarks: 75 s on a
    kube-apiserver, which sends one per minute. 0 disables the idle timeout."""
    initial_idle: float = 30.0
    """Seconds without data after which a WatchList that hasn't sent its initial-events-end bookmark
    is abandoned. Servers write the initial list as fast as it is read. A server that doesn't know
    WatchLists sends all objects and then nothing."""
    initial_total: float = 300.0
    """Seconds after which a WatchList without that bookmark is abandoned, even if data arrives."""
    list_total: float = 600.0
    """The longest time from the first byte of a list's page to its last. kube-apiserver allows a
    minute; this limit is for a response that drips."""

    def __post_init__(self) -> None:
        if self.idle_factor < 0 or 0 < self.idle_factor < 1:
            raise ValueError(f"idle_factor must be 0 or at least 1, not {self.idle_factor:g}")
        if min(self.initial_idle, self.initial_total, self.list_total) <= 0:
            raise ValueError("initial_idle, initial_total and list_total must be above 0")


class IdleTimeout:
    def __init__(
        self,
        policy: LivenessPolicy,
        profile: ServerProfile,
        *,
        now: float,
        timeout: float,
        initial: bool,
    ) -> None:
        """Create the idle timeout of a watch whose response has begun, for ``timeout`` seconds.

        ``profile`` learns the bookmark interval of the resource. ``initial`` is True for a
        WatchList.
        """
        self.initial_list_complete = not initial
        self.last_data = now
        """The time of the last data. An attribute, since it is set per chunk."""
        self.server_moved = False
        """True if the freshness check has shown a newer version than the watch."""
        self._expired_at: float | None = None
        self._policy = policy
        self._profile = profile
        self._watch_deadline = now + timeout
        self._initial_deadline = now + policy.initial_total
        self._interval_start: float | None = now
        self._first_bookmark = True
        self._paused = False

    def complete_initial_list(self, now: float) -> None:
        self.initial_list_complete = True
        self._profile.record_end_mark()
        self._interval_start = now

    def record_bookmark(self, now: float) -> None:
        if self._interval_start is not None and now < self._watch_deadline - FINAL_BOOKMARK_WINDOW:
            self._profile.record_bookmark(now - self._interval_start, first=self._first_bookmark)
        self._interval_start, self._first_bookmark = now, False

    def expire(self, now: float) -> RequestTimedOut | None:
        """Record that the timeout has ended the watch. Return the error to report, if any.

        There is none where idle watches are normal.
        """
        self._expired_at = now
        if self._profile.rarely_sends_bookmarks:
            return None
        message = (
            f"the watch received no data for {self.timeout:.0f} s (idle timeout), "
            "longer than the interval of bookmarks; replacing it"
        )
        return RequestTimedOut(message, phase="watch")

    @property
    def expired(self) -> bool:
        """True if the timeout has ended the watch, until the check that follows ends."""
        return self._expired_at is not None

    def end_check(self) -> None:
        """Record the end of the freshness check that has followed the timeout, if one has."""
        if self._expired_at is not None:
            moved, until, self._expired_at = self.server_moved, self._expired_at, None
            self._profile.record_silent_watch(self.last_data, until, moved=moved)

    def pause(self) -> None:
        """Stop the timeout: nothing is read while the consumer is slow."""
        self._paused = True

    def resume(self, now: float) -> None:
        """Start the timeout again. Data that waits in the socket has yet to be read."""
        self._paused = False
        self.last_data = now
        self._watch_deadline = max(self._watch_deadline, now)
        self._interval_start = None  # the reader was late, so the interval is unknown
        self._initial_deadline = max(self._initial_deadline, now + self._policy.initial_idle)

    @property
    def timeout(self) -> float:
        if not self.initial_list_complete:
            return self._policy.initial_idle
        interval, factor = self._profile.bookmark_interval, self._policy.idle_factor
        return NEVER if interval is None or not factor else max(MIN_TIMEOUT, factor * interval)

    @property
    def deadline(self) -> float:
        """The time at which the watch is cancelled unless data arrives; infinity while paused."""
        if self._paused:
            return NEVER
        end = (
            self._watch_deadline + DEADLINE_GRACE
            if self.initial_list_complete
            else self._initial_deadline
        )
        return min(self.last_data + self.timeout, end)

    def past_deadline(self, now: float) -> bool:
        """Return True if the watch has outlived its deadline, with or without data."""
        return self.initial_list_complete and now >= self._watch_deadline + DEADLINE_GRACE

    def __repr__(self) -> str:
        state = "a watch" if self.initial_list_complete else "an initial list"
        paused = " paused" if self._paused else ""
        return f"<IdleTimeout of {state}{paused} {self.timeout:g} s>"
