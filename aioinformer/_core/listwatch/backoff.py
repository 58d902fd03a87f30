"""Exponential backoff with jitter, for the failures of one outage.

``now`` is in seconds of any monotonic clock, ``jitter`` in [0, 1). A reflector has one ``Backoff``
for everything that it retries, so that two kinds of failure in turn don't cause twice as many
requests as one kind.

An outage begins with a failure, and ends with a quiet time, or with a success (a whole state that
was read, or a watch that the server has accepted) after which requests keep working for some
seconds. Three things shorten the waits of an outage, each once: a request of another kind follows
at once, a sign that the server is back lowers the count of failures, and an answer to another
informer ends a wait. The first two minutes are not so strict: there each 410 after a failure of
another kind is followed at once.
"""

from __future__ import annotations

from msgspec import Struct

MAX_RETRY_AFTER = 300.0
"""The longest wait, in seconds, that a server may ask for. One absurd ``Retry-After`` must not end
an informer."""

SETTLING_TIME = 20.0
"""Seconds without a failure after a success, which end an outage. A server that serves each state
and breaks each watch, or breaks each watch after this time, is so requested three times a minute at
most. Without an end of the outage, a load balancer that cuts each connection after a minute would
make the waits grow to the greatest one."""

FIRST_PAUSE = 3.0
"""The least wait, in seconds, before a request that the server asked to delay: a failing informer
sends five requests in ten seconds at most."""

LATER_PAUSE = 20.0
"""The same once an outage has lasted for ``BackoffPolicy.reset_after``: three requests a minute."""

SPACING_JITTER = 0.05
"""The part of a distance between watches by which it is stretched at most."""

BUDGET = (10.0, 5)
"""The seconds in which at most so many requests follow failures. Waits that grow keep to it by
themselves; a wait that is skipped and one that an answer ends could be too short together."""


class BackoffPolicy(Struct, frozen=True, kw_only=True):
    """The numbers of a backoff. All times are in seconds.

    The first wait is that of client-go's reflector, 0.8 s. The waits grow by half up to 20 s, so
    that each is about half as long as the outage so far; client-go doubles them up to 30 s. Each
    wait is stretched by up to its own length, so that a thousand clients of one server don't return
    at the same moment.
    """

    initial: float = 0.8
    factor: float = 1.5
    maximum: float = 20.0
    jitter: float = 1.0
    """A wait ``d`` becomes ``d × (1 + jitter × random)``; 0 makes waits exact."""
    reset_after: float = 120.0
    """The quiet time after which the next failure counts as the first, measured from the end of the
    last wait. client-go measures from the last reset, and so starts again at 0.8 s every two
    minutes of a continuous outage."""

    def __post_init__(self) -> None:
        if not 0 < self.initial <= self.maximum:
            raise ValueError(f"initial must be in (0, maximum], not {self.initial:g}")
        if self.factor < 1 or self.jitter < 0 or self.reset_after <= 0:
            raise ValueError("factor must be at least 1, jitter at least 0, reset_after above 0")


class Backoff(Struct):
    policy: BackoffPolicy = BackoffPolicy()
    failures: int = 0
    """Failures of this outage, as far as they lengthen the next wait."""
    _began: float = 0.0
    quiet_since: float = float("-inf")
    _works_since: float | None = None
    """The time of the first success after the last failure."""
    _least_wait: float = 0.0
    """Seconds that each wait lasts at least, once a server has asked for waits for a long time."""
    _skipped: bool = False
    _eased: bool = False
    _woken: bool = False
    _recent: tuple[float, ...] = ()
    """The times of the last requests after failures, with the one that waits."""

    def is_first(self, now: float) -> bool:
        if self.failures == 0 or now - self.quiet_since >= self.policy.reset_after:
            return True
        return self._works_since is not None and now - self._works_since >= SETTLING_TIME

    def can_skip(self, now: float, *, again: bool = False) -> bool:
        """Return True if no wait is necessary: once per outage, and ``again`` for two minutes."""
        if self.is_first(now) or not self._skipped:
            return True
        return again and not self._is_long(now)

    def _is_long(self, now: float) -> bool:
        return now - self._began >= self.policy.reset_after

    def skip(self, now: float, *, minimum: float = 0.0) -> float:
        """Count a failure whose wait is skipped, but for the ``minimum`` that the server asked for.

        A server that was restored asks for a second with each 'too large resource version'.
        """
        self._count(now)
        self._skipped = True
        return self._schedule(now, min(minimum, MAX_RETRY_AFTER))

    def next(self, now: float, jitter: float, *, minimum: float = 0.0) -> float:
        """Count a failure. Return the seconds to wait, ``minimum`` at least."""
        self._count(now)
        policy = self.policy
        # The exponent is limited too: after days of outage, 2.0 ** 1024 is an OverflowError.
        bare = policy.initial * policy.factor ** min(self.failures - 1, 64)
        delay = max(
            min(minimum, MAX_RETRY_AFTER),
            max(self._least_wait, min(policy.maximum, bare)) * (1 + policy.jitter * jitter),
        )
        return self._schedule(now, delay)

    def pause(self, now: float, jitter: float, requested: float) -> float:
        """Count a failure after which the server asked for a wait. Return the seconds to wait.

        The server knows its load, so the wait doesn't grow with each such failure. The least wait
        is some seconds, because most servers ask for one second at any load.
        """
        least = self._count_once(now) * (1 + self.policy.jitter * jitter)
        return self._schedule(now, max(min(requested, MAX_RETRY_AFTER), least))

    def space(self, now: float, jitter: float, began: float) -> float:
        """Count a watch that began at a time and was cut. Return the seconds to wait.

        The first one is replaced at once. Watches that are cut after fifteen seconds each are so
        replaced at once for two minutes, and after five seconds later on.
        """
        first = self.is_first(now)
        least = self._count_once(now) * (1 + SPACING_JITTER * self.policy.jitter * jitter)
        return self._schedule(now, 0.0 if first else max(0.0, began + least - now))

    def _count_once(self, now: float) -> float:
        """Count a failure that doesn't let the waits grow. Return the least seconds to wait."""
        before = 0 if self.is_first(now) else self.failures
        self._count(now)
        self.failures = max(before, 1)
        late = self._is_long(now)
        least = min(LATER_PAUSE if late else FIRST_PAUSE, self.policy.maximum)
        # A failure of another kind would wait for a second otherwise.
        self._least_wait = least if late else 0.0
        return least

    def record_success(self, now: float) -> None:
        """Record that a whole state was read, or that the server has accepted a watch."""
        if self._works_since is None:
            self._works_since = now

    def record_answer(self, unreachable: float = 0.0) -> None:
        """Record that the server is back: an event, or an answer after ``unreachable`` seconds.

        The count of failures falls to one, once per outage: the waits were those of a server that
        is down. After minutes without an answer, the next failure begins another outage.
        """
        if unreachable >= self.policy.reset_after:
            self.failures, self._least_wait = 0, 0.0
        if not self._eased:
            self._eased = True
            self.failures = min(self.failures, 1)
            self._least_wait = 0.0

    @property
    def can_wake(self) -> bool:
        """True if an answer to another informer may end the wait under way."""
        return not self._woken

    def wake(self, now: float) -> float:
        """End the wait under way. Return the seconds that have to be waited still."""
        self._woken, self._recent = True, self._recent[:-1]
        return self._schedule(now, 0.0)

    def record_request(self, now: float) -> None:
        """Record a request that follows a failure without a wait."""
        self._recent = (*self._recent[-BUDGET[1] :], now)

    def _schedule(self, now: float, delay: float) -> float:
        """Return the seconds to wait: ``delay``, or more after many requests."""
        # A program that chooses shorter waits chooses more requests.
        scale = min(1.0, self.policy.initial / BackoffPolicy().initial)
        recent = [at for at in self._recent if at <= now]
        seconds, most = BUDGET
        if len(recent) >= most:
            delay = max(delay, recent[-most] + scale * seconds - now)
        self.quiet_since = now + delay
        self.record_request(self.quiet_since)
        return delay

    def _count(self, now: float) -> None:
        if self.is_first(now):
            self.failures = 0
            self._began, self._least_wait = now, 0.0
            self._skipped = self._eased = self._woken = False
        self._works_since = None
        self.failures += 1
