"""Delays before a failed key is retried, by client-go's rules and with its numbers.

Time is an argument, in seconds of a monotonic clock, and no rule is random: keys that fail together
are spread by the token bucket that they share.
"""

from __future__ import annotations

from collections.abc import Hashable
from math import inf, ldexp
from typing import Generic, Protocol, TypeVar

from aioinformer._core.listwatch.rate_limit import Bucket

K_contra = TypeVar("K_contra", bound=Hashable, contravariant=True)

BASE, CAP = 0.005, 1000.0
"""Seconds: 5 ms, doubled up to 17 minutes (client-go)."""

RATE, BURST = 10.0, 100
"""Retries a second over all keys, and how many may follow each other at once (client-go)."""


class RateLimiter(Protocol[K_contra]):
    """A rule for the delay of failed keys. Implement it for another rule; it must not block."""

    def when(self, key: K_contra, now: float) -> float:
        """Count a failure of ``key``. Return the seconds until it may be retried; 0 for at once."""
        ...

    def forget(self, key: K_contra) -> None:
        """Forget the failures of ``key``, since it succeeded or its object was deleted."""
        ...

    def retries(self, key: K_contra) -> int:
        """Return the number of failures of ``key`` that are remembered."""
        ...


class _FailureCounts:
    """The number of failures of each key. A key that is forgotten takes no memory."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[Hashable, int] = {}

    def count(self, key: Hashable) -> int:
        """Count a failure. Return the number of failures before it."""
        before = self._counts.get(key, 0)
        self._counts[key] = before + 1
        return before

    def forget(self, key: Hashable) -> None:
        """Forget the failures of ``key``."""
        self._counts.pop(key, None)
        if not self._counts:
            self._counts.clear()  # an emptied dict keeps its memory; clear() releases it

    def retries(self, key: Hashable) -> int:
        """Return the number of failures of ``key`` that are remembered."""
        return self._counts.get(key, 0)

    def __len__(self) -> int:
        return len(self._counts)


class ItemExponential(_FailureCounts):
    """A delay that doubles with each failure of a key: client-go's
    ItemExponentialFailureRateLimiter.

    Args:
        base: seconds after the first failure.
        cap: the maximum in seconds, reached after 18 failures by default.

    Raises:
        ValueError: a number is out of range.
    """

    __slots__ = ("_base", "_cap")

    def __init__(self, base: float = BASE, cap: float = CAP) -> None:
        if not 0 < base <= cap < inf:
            raise ValueError(f"base must be above 0 and at most cap, not {base:g} and {cap:g}")
        super().__init__()
        self._base = base
        self._cap = cap

    def when(self, key: Hashable, now: float) -> float:
        """Count a failure. Return the seconds to wait."""
        try:
            return min(ldexp(self._base, self.count(key)), self._cap)
        except OverflowError:  # ldexp() overflows after a thousand failures
            return self._cap

    def __repr__(self) -> str:
        return f"<ItemExponential {self._base:g}-{self._cap:g} s keys={len(self)}>"


class FastSlow(_FailureCounts):
    """``attempts`` times a short delay, then a long one: client-go's ItemFastSlowRateLimiter.

    Args:
        fast: seconds to wait at first.
        slow: seconds to wait afterwards.
        attempts: the number of short delays.

    Raises:
        ValueError: a number is out of range.
    """

    __slots__ = ("_attempts", "_fast", "_slow")

    def __init__(self, fast: float, slow: float, attempts: int) -> None:
        if not (0 <= fast < inf and 0 <= slow < inf and attempts >= 0):
            raise ValueError("fast, slow and attempts must be 0 or more, and finite")
        super().__init__()
        self._fast = fast
        self._slow = slow
        self._attempts = attempts

    def when(self, key: Hashable, now: float) -> float:
        """Count a failure. Return the seconds to wait."""
        return self._fast if self.count(key) < self._attempts else self._slow

    def __repr__(self) -> str:
        rule = f"{self._attempts} x {self._fast:g} s, then {self._slow:g} s"
        return f"<FastSlow {rule} keys={len(self)}>"


class TokenBucket:
    """A limit on the retries a second over all keys: client-go's BucketRateLimiter.

    Each call takes the next place in a queue of retries and returns the time until that place.

    Args:
        rate: retries a second.
        burst: retries that may follow each other at once after a quiet time.

    Raises:
        ValueError: a number is out of range.
    """

    __slots__ = ("_bucket",)

    def __init__(self, rate: float = RATE, burst: int = BURST) -> None:
        if not 0 < rate < inf or burst < 1:
            raise ValueError(f"rate must be above 0 and burst at least 1, not {rate:g}, {burst}")
        self._bucket = Bucket(rate, burst)

    def when(self, key: Hashable, now: float) -> float:
        """Take the next place. Return the seconds until it."""
        ready = self._bucket.ready_at
        self._bucket.take(now)
        return max(0.0, ready - now)

    def forget(self, key: Hashable) -> None:
        """Do nothing: a place that was taken is not given back."""

    def retries(self, key: Hashable) -> int:
        """Return 0, since no key is remembered."""
        return 0

    def __repr__(self) -> str:
        return f"<TokenBucket {self._bucket!r}>"


class MaxOf(Generic[K_contra]):
    """The longest delay of several limiters, each of which counts every failure.

    Raises:
        ValueError: no limiter is given.
    """

    __slots__ = ("_limiters",)

    def __init__(self, *limiters: RateLimiter[K_contra]) -> None:
        if not limiters:
            raise ValueError("MaxOf needs at least one limiter")
        self._limiters = limiters

    def when(self, key: K_contra, now: float) -> float:
        """Count a failure with each limiter. Return the longest delay."""
        return max([each.when(key, now) for each in self._limiters])

    def forget(self, key: K_contra) -> None:
        """Forget the failures of ``key`` in each limiter."""
        for each in self._limiters:
            each.forget(key)

    def retries(self, key: K_contra) -> int:
        """Return the largest number of failures that a limiter remembers."""
        return max([each.retries(key) for each in self._limiters])

    def __repr__(self) -> str:
        return f"<MaxOf {', '.join(map(repr, self._limiters))}>"


def default_limiter() -> MaxOf[Hashable]:
    """Return client-go's limiter for controllers: 5 ms doubled up to 1000 s for each key, and 10 a
    second after a burst of 100 over all keys.
    """
    return MaxOf(ItemExponential(), TokenBucket())
