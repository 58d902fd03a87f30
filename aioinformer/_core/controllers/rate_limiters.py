"""How long a key waits before it is tried again, by client-go's rules and with its numbers.

A limiter is told that a key is to be tried again and says after how many seconds. Time is an
argument, in seconds of a monotonic clock, and nothing here is random: keys that fail together are
kept apart by the bucket that all of them share.
"""

from __future__ import annotations

from collections.abc import Hashable
from math import inf, ldexp
from typing import Generic, Protocol, TypeVar

from aioinformer._core.listwatch.rate_limit import Bucket

__all__ = [
    "FastSlow",
    "ItemExponential",
    "MaxOf",
    "RateLimiter",
    "TokenBucket",
    "default_limiter",
]

K_contra = TypeVar("K_contra", bound=Hashable, contravariant=True)

BASE, CAP = 0.005, 1000.0
"""Seconds: 5 ms, doubling up to 17 minutes. client-go's default for controllers."""

RATE, BURST = 10.0, 100
"""Retries a second of all keys together, and how many of them may come at once. As above."""


class RateLimiter(Protocol[K_contra]):
    """Says how long keys wait. Implement it for a rule of your own; it must not block."""

    def when(self, key: K_contra, now: float) -> float:
        """Count a failure of ``key``; the seconds until it may be tried again, 0 for at once."""
        ...

    def forget(self, key: K_contra) -> None:
        """The key is well, or gone for good: its failures don't count any more."""
        ...

    def retries(self, key: K_contra) -> int:
        """How many failures of it count."""
        ...


class _FailureCounts:
    """How often each key has failed. A key that is forgotten takes no memory."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[Hashable, int] = {}

    def count(self, key: Hashable) -> int:
        """Count one more; how many there were before."""
        before = self._counts.get(key, 0)
        self._counts[key] = before + 1
        return before

    def forget(self, key: Hashable) -> None:
        """Its failures don't count any more."""
        self._counts.pop(key, None)
        if not self._counts:
            self._counts.clear()  # an emptied dict keeps the room of its best days

    def retries(self, key: Hashable) -> int:
        """How many failures of it count."""
        return self._counts.get(key, 0)

    def __len__(self) -> int:
        return len(self._counts)


class ItemExponential(_FailureCounts):
    """Each failure of a key doubles its wait: client-go's ItemExponentialFailureRateLimiter.

    Args:
        base: seconds after the first failure.
        cap: the most, in seconds, reached after 18 failures by default.

    Raises:
        ValueError: a number that can't be.
    """

    __slots__ = ("_base", "_cap")

    def __init__(self, base: float = BASE, cap: float = CAP) -> None:
        if not 0 < base <= cap < inf:
            raise ValueError(f"base must be above 0 and at most cap, not {base:g} and {cap:g}")
        super().__init__()
        self._base = base
        self._cap = cap

    def when(self, key: Hashable, now: float) -> float:
        """Count a failure; the seconds to wait."""
        try:
            return min(ldexp(self._base, self.count(key)), self._cap)
        except OverflowError:  # after a thousand failures
            return self._cap

    def __repr__(self) -> str:
        return f"<ItemExponential {self._base:g}-{self._cap:g} s keys={len(self)}>"


class FastSlow(_FailureCounts):
    """Quick for the first failures of a key, then slow: client-go's ItemFastSlowRateLimiter.

    Args:
        fast: seconds to wait at first.
        slow: seconds to wait afterwards.
        attempts: how many waits are fast.

    Raises:
        ValueError: a number that can't be.
    """

    __slots__ = ("_attempts", "_fast", "_slow")

    def __init__(self, fast: float, slow: float, attempts: int) -> None:
        if not (0 <= fast < inf and 0 <= slow < inf and attempts >= 0):
            raise ValueError("fast, slow and attempts must not be negative, and be finite")
        super().__init__()
        self._fast = fast
        self._slow = slow
        self._attempts = attempts

    def when(self, key: Hashable, now: float) -> float:
        """Count a failure; the seconds to wait."""
        return self._fast if self.count(key) < self._attempts else self._slow

    def __repr__(self) -> str:
        rule = f"{self._attempts} x {self._fast:g} s, then {self._slow:g} s"
        return f"<FastSlow {rule} keys={len(self)}>"


class TokenBucket:
    """All keys together, so many a second: client-go's BucketRateLimiter.

    Whoever asks has a place in line, and the wait until it is reached. It knows no key.

    Args:
        rate: a second.
        burst: how many may come at once, after a quiet time.

    Raises:
        ValueError: a number that would let nobody through.
    """

    __slots__ = ("_bucket",)

    def __init__(self, rate: float = RATE, burst: int = BURST) -> None:
        if not 0 < rate < inf or burst < 1:
            raise ValueError(f"rate must be above 0 and burst at least 1, not {rate:g}, {burst}")
        self._bucket = Bucket(rate, burst)

    def when(self, key: Hashable, now: float) -> float:
        """Take a place in line; the seconds until it is reached."""
        ready = self._bucket.ready_at
        self._bucket.take(now)
        return max(0.0, ready - now)

    def forget(self, key: Hashable) -> None:
        """Nothing: a place that was taken stays so."""

    def retries(self, key: Hashable) -> int:
        """0, since it knows no key."""
        return 0

    def __repr__(self) -> str:
        return f"<TokenBucket {self._bucket!r}>"


class MaxOf(Generic[K_contra]):
    """The longest wait of several limiters; each of them is told of every failure.

    Raises:
        ValueError: no limiter at all.
    """

    __slots__ = ("_limiters",)

    def __init__(self, *limiters: RateLimiter[K_contra]) -> None:
        if not limiters:
            raise ValueError("MaxOf needs a limiter at least")
        self._limiters = limiters

    def when(self, key: K_contra, now: float) -> float:
        """Count a failure with each; the longest wait."""
        return max([each.when(key, now) for each in self._limiters])

    def forget(self, key: K_contra) -> None:
        """Have each forget it."""
        for each in self._limiters:
            each.forget(key)

    def retries(self, key: K_contra) -> int:
        """What the one that counted the most says."""
        return max([each.retries(key) for each in self._limiters])

    def __repr__(self) -> str:
        return f"<MaxOf {', '.join(map(repr, self._limiters))}>"


def default_limiter() -> MaxOf[Hashable]:
    """client-go's for controllers: 5 ms doubling to 1000 s for each key, and no more than 10 a
    second, after a burst of 100, for all of them.
    """
    return MaxOf(ItemExponential(), TokenBucket())
