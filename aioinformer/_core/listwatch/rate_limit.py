"""How often one client may ask: a token bucket for restarts, and a gate that a server closes.

Each reflector backs off by itself, and that is polite for one. Five hundred of them that lost
the same server come back together. What they share is here, as numbers and moments: who may ask
now, and if not, when. Time is an argument, in seconds of a monotonic clock; waiting in line is
``traffic``'s business.
"""

from __future__ import annotations

from dataclasses import dataclass

from aioinformer.errors import FetchError, ServerError, ServerFailure, TransportError

__all__ = ["Bucket", "Limits", "ServerLimiter"]

NEVER = float("-inf")

TOO_MANY_REQUESTS, SERVICE_UNAVAILABLE = 429, 503
"""The two answers whose Retry-After speaks for the whole server. Others carry one as well: a 504
'too large resource version' says when to ask for that version again (recording 20)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What all informers of one client share: how much of a server they may ask for at once.

    A program that lists and watches a dozen resources never meets them. They are for the
    hundreds that start together, or lose their server together.

    Raises:
        ValueError: a number that would let nobody through.
    """

    lists: int = 8
    """Initial states under way at once: lists with all their pages, and WatchLists up to the
    end of their initial state. A server counts one large list as many requests (API Priority
    and Fairness)."""
    restarts: float = 20.0
    """Requests a second that follow a failure or replace a stream that ended. Each may be
    followed by another at once (the watch after the list), so that with the burst no second
    sees more than 50."""
    burst: int = 5
    """Of those, how many may come at once."""
    retry_after: float = 30.0
    """Seconds of a ``Retry-After`` that all informers wait; who was told waits all of it. Longer
    than that, and one absurd header would stop them all."""
    patience: float = 60.0
    """Seconds after which an initial state that still isn't complete no longer counts among
    ``lists``. kube-apiserver ends a list after 60 s by itself; what drips on for longer must not
    keep the others from starting."""

    def __post_init__(self) -> None:
        if self.lists < 1 or self.burst < 1 or not self.restarts > 0:
            raise ValueError("lists and burst must be at least 1, and restarts above 0")
        if not (self.retry_after >= 0 and self.patience > 0):
            raise ValueError("retry_after must not be negative, and patience above 0")


class Bucket:
    """Tokens that come back at a rate. All of its state is one moment: when it is full again."""

    __slots__ = ("_burst", "_full_at", "_interval")

    def __init__(self, rate: float, burst: int) -> None:
        """Make a full bucket of ``burst`` tokens, into which ``rate`` a second come back."""
        self._interval = 1 / rate
        self._burst = burst
        self._full_at = NEVER

    @property
    def ready_at(self) -> float:
        """From when on there is a token."""
        # A moment rather than a remaining time: whoever sleeps until then finds it so, where a
        # sum of fractions may leave a wait too short for the clock to pass.
        return self._full_at - (self._burst - 1) * self._interval

    def take(self, now: float) -> None:
        """Take a token. Ask ``ready_at`` first."""
        self._full_at = max(self._full_at, now) + self._interval

    def __repr__(self) -> str:
        return f"<Bucket {1 / self._interval:g}/s burst={self._burst} ready at {self.ready_at:.3f}>"


class ServerLimiter:
    """What is known of a server's patience."""

    __slots__ = ("_bucket", "_max_retry_after", "blocked_until", "failing", "failures")

    def __init__(self, limits: Limits) -> None:
        """Nobody has asked yet."""
        self.failures = 0
        """Requests that failed as they do when a server is in trouble."""
        self.failing = False
        """Whether one has failed so and none has succeeded since."""
        self.blocked_until = NEVER
        """Until when nothing is sent at all."""
        self._bucket = Bucket(limits.restarts, limits.burst)
        self._max_retry_after = limits.retry_after

    @property
    def ready_at(self) -> float:
        """From when on a request that takes a token may be sent."""
        return max(self.blocked_until, self._bucket.ready_at)

    def take(self, now: float) -> None:
        """A request that takes a token is sent."""
        self._bucket.take(now)

    def record_success(self) -> None:
        """The server began to answer what it was asked."""
        self.failing = False

    def record_failure(self, error: FetchError, now: float) -> None:
        """A request or the reading of its answer failed.

        A refusal that the server means (403, 404, 410) is neither trouble nor the end of it.
        """
        if not _is_server_trouble(error):
            return
        self.failures += 1
        self.failing = True
        pause = _requested_wait(error)
        if pause > 0:
            self.blocked_until = max(self.blocked_until, now + min(pause, self._max_retry_after))

    def __repr__(self) -> str:
        mood = "in trouble" if self.failing else "well"
        return f"<ServerLimiter {mood} failures={self.failures} opens at {self.blocked_until:.3f} {self._bucket!r}>"


def _is_server_trouble(error: FetchError) -> bool:
    if isinstance(error, ServerError):
        return error.status.code == TOO_MANY_REQUESTS or isinstance(error, ServerFailure)
    return isinstance(error, TransportError)


def _requested_wait(error: FetchError) -> float:
    """Seconds that the server asks everybody to wait."""
    if isinstance(error, ServerError) and error.status.code in (
        TOO_MANY_REQUESTS,
        SERVICE_UNAVAILABLE,
    ):
        return error.status.retry_after or 0.0
    return 0.0
