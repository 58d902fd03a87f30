"""The request rate that all informers of a client share: a token bucket, and Retry-After pauses.

Five hundred reflectors that lost the same server return together. Time is an argument, in seconds
of a monotonic clock; waiting is done elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

from aioinformer.errors import FetchError, ServerError, ServerFailure, TransportError

NEVER = float("-inf")

TOO_MANY_REQUESTS, SERVICE_UNAVAILABLE = 429, 503
"""The two statuses whose Retry-After concerns the whole server. Other responses have one too: that
of a 504 'too large resource version' concerns that version only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits that all informers of one client share.

    They are for hundreds of informers that start together, or lose their server together; a program
    that lists and watches a dozen resources never reaches them.

    Raises:
        ValueError: a number would let no request through.

    Example::

        gentle = Limits(lists=2, restarts=5)  # for a small server
        shop = Client("https://cluster.example.com", token="secret", limits=gentle)
    """

    lists: int = 8
    """Initial lists that are read at the same time: lists with all their pages, and WatchLists up
    to their end mark. A server counts one large list as many requests (API Priority and Fairness).
    """
    restarts: float = 20.0
    """Requests per second that follow a failure or replace a watch that ended. Each may be followed
    by another one at once (the watch after the list), so that with the burst there are at most 50
    requests in any second."""
    burst: int = 5
    """The number of such requests that may be sent at once."""
    retry_after: float = 30.0
    """The most seconds of a ``Retry-After`` that all informers wait. The informer that received it
    waits longer if asked to. Without this limit one absurd header would stop all informers."""
    slot_timeout: float = 60.0
    """Seconds after which an initial list that still isn't complete no longer counts among
    ``lists``. kube-apiserver ends a list after 60 s by itself; a response that drips for longer
    must not keep other informers from starting."""

    def __post_init__(self) -> None:
        if self.lists < 1 or self.burst < 1 or not self.restarts > 0:
            raise ValueError("lists and burst must be at least 1, and restarts above 0")
        if not (self.retry_after >= 0 and self.slot_timeout > 0):
            raise ValueError("retry_after must not be negative, and slot_timeout above 0")


class Bucket:
    """A token bucket. Its state is one time: when it will be full again."""

    __slots__ = ("_burst", "_full_at", "_interval")

    def __init__(self, rate: float, burst: int) -> None:
        self._interval = 1 / rate
        self._burst = burst
        self._full_at = NEVER

    @property
    def ready_at(self) -> float:
        # A time instead of a remaining wait: a caller that sleeps until this time finds a token. A
        # sum of fractions may leave a wait that is too short for the clock to advance.
        return self._full_at - (self._burst - 1) * self._interval

    def take(self, now: float) -> None:
        self._full_at = max(self._full_at, now) + self._interval

    def __repr__(self) -> str:
        return f"<Bucket {1 / self._interval:g}/s burst={self._burst} ready at {self.ready_at:.3f}>"


class ServerLimiter:
    """The token bucket of one client, and the state of its server."""

    __slots__ = ("_bucket", "_max_retry_after", "blocked_until", "failing", "failures")

    def __init__(self, limits: Limits) -> None:
        self.failures = 0
        """Requests that failed in a way that shows that the server is in trouble."""
        self.failing = False
        """True if a request has failed so and none has succeeded since."""
        self.blocked_until = NEVER
        self._bucket = Bucket(limits.restarts, limits.burst)
        self._max_retry_after = limits.retry_after

    @property
    def ready_at(self) -> float:
        return max(self.blocked_until, self._bucket.ready_at)

    def take(self, now: float) -> None:
        self._bucket.take(now)

    def record_success(self) -> None:
        self.failing = False

    def record_failure(self, error: FetchError, now: float) -> None:
        """Record that a request, or reading its response, failed.

        An error that the server sends on purpose (403, 404, 410) neither shows trouble nor ends it.
        """
        if not is_server_trouble(error):
            return
        self.failures += 1
        self.failing = True
        pause = _requested_wait(error)
        if pause > 0:
            self.blocked_until = max(self.blocked_until, now + min(pause, self._max_retry_after))

    def __repr__(self) -> str:
        state = "failing" if self.failing else "well"
        blocked = f"blocked until {self.blocked_until:.3f}"
        return f"<ServerLimiter {state} failures={self.failures} {blocked} {self._bucket!r}>"


def is_server_trouble(error: FetchError) -> bool:
    if isinstance(error, ServerError):
        return error.status.code == TOO_MANY_REQUESTS or isinstance(error, ServerFailure)
    return isinstance(error, TransportError)


def _requested_wait(error: FetchError) -> float:
    if isinstance(error, ServerError) and error.status.code in (
        TOO_MANY_REQUESTS,
        SERVICE_UNAVAILABLE,
    ):
        return error.status.retry_after or 0.0
    return 0.0
