"""How long to wait after a failure: exponential, jittered, forgotten after a quiet time.

Time and chance are arguments: ``now`` in seconds of any monotonic clock, ``jitter`` in [0, 1).
One ``Backoff`` is shared by everything that one reflector retries, so that two kinds of failure
in turn don't ask twice as often as one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Backoff", "BackoffPolicy"]

MAX_RETRY_AFTER = 300.0
"""Seconds that a server may ask to wait. One absurd ``Retry-After`` must not end an informer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackoffPolicy:
    """The numbers of a backoff; all times in seconds.

    The defaults are client-go's reflector: 0.8 s doubling to 30 s, each wait stretched by up to
    its own length, so that a thousand clients of one server don't come back together.
    """

    initial: float = 0.8
    factor: float = 2.0
    maximum: float = 30.0
    jitter: float = 1.0
    """A wait ``d`` becomes ``d × (1 + jitter × chance)``; 0 makes waits exact."""
    reset_after: float = 120.0
    """A quiet time after which the next failure counts as the first. Measured from the end of
    the last wait: client-go measures from the last reset, which restarts a continuous outage at
    0.8 s every two minutes."""

    def __post_init__(self) -> None:
        if not 0 < self.initial <= self.maximum:
            raise ValueError(f"initial must be in (0, maximum], not {self.initial:g}")
        if self.factor < 1 or self.jitter < 0 or self.reset_after <= 0:
            raise ValueError("factor must be at least 1, jitter at least 0, reset_after above 0")


@dataclass(slots=True)
class Backoff:
    """The state of one backoff."""

    policy: BackoffPolicy = field(default_factory=BackoffPolicy)
    failures: int = 0
    """Failures since the last quiet time."""
    _quiet_since: float = float("-inf")

    def is_first(self, now: float) -> bool:
        """Whether a failure now would be the first since a quiet time."""
        return self.failures == 0 or now - self._quiet_since >= self.policy.reset_after

    def skip(self, now: float) -> float:
        """Count a failure without a wait: the one immediate second attempt of an outage."""
        self.failures = 1 if self.is_first(now) else self.failures + 1
        self._quiet_since = now
        return 0.0

    def next(self, now: float, jitter: float, *, minimum: float = 0.0) -> float:
        """Count a failure; the seconds to wait before the next attempt, ``minimum`` at least."""
        if self.is_first(now):
            self.failures = 0
        policy = self.policy
        # Capped in the exponent too: 2.0 ** 1024 is an OverflowError after days of outage.
        bare = policy.initial * policy.factor ** min(self.failures, 64)
        delay = max(
            min(minimum, MAX_RETRY_AFTER), min(policy.maximum, bare) * (1 + policy.jitter * jitter)
        )
        self.failures += 1
        self._quiet_since = now + delay
        return delay
