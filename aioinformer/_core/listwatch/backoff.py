"""Exponential backoff with jitter, which starts again after a quiet time.

Time and randomness are arguments: ``now`` in seconds of any monotonic clock, ``jitter`` in [0, 1).
A reflector has one ``Backoff`` for everything that it retries, so that two kinds of failure in turn
don't cause twice as many requests as one kind.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Backoff", "BackoffPolicy"]

MAX_RETRY_AFTER = 300.0
"""The longest wait, in seconds, that a server may ask for. One absurd ``Retry-After`` must not end
an informer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackoffPolicy:
    """The numbers of a backoff. All times are in seconds.

    The defaults are those of client-go's reflector: 0.8 s, doubled up to 30 s. Each wait is
    stretched by up to its own length, so that a thousand clients of one server don't return at
    the same moment.
    """

    initial: float = 0.8
    factor: float = 2.0
    maximum: float = 30.0
    jitter: float = 1.0
    """A wait ``d`` becomes ``d × (1 + jitter × random)``; 0 makes waits exact."""
    reset_after: float = 120.0
    """The quiet time after which the next failure counts as the first. It is measured from the end
    of the last wait. client-go measures from the last reset, and so starts again at 0.8 s every two
    minutes of a continuous outage."""

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
        """Return True if a failure now would be the first since a quiet time."""
        return self.failures == 0 or now - self._quiet_since >= self.policy.reset_after

    def skip(self, now: float) -> float:
        """Count a failure without a wait. An outage has one immediate second attempt."""
        self.failures = 1 if self.is_first(now) else self.failures + 1
        self._quiet_since = now
        return 0.0

    def next(self, now: float, jitter: float, *, minimum: float = 0.0) -> float:
        """Count a failure. Return the seconds to wait, ``minimum`` at least."""
        if self.is_first(now):
            self.failures = 0
        policy = self.policy
        # The exponent is limited too: after days of outage, 2.0 ** 1024 is an OverflowError.
        bare = policy.initial * policy.factor ** min(self.failures, 64)
        delay = max(
            min(minimum, MAX_RETRY_AFTER), min(policy.maximum, bare) * (1 + policy.jitter * jitter)
        )
        self.failures += 1
        self._quiet_since = now + delay
        return delay
