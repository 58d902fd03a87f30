"""What an election is told and what it asks for: its numbers, and its actions.

What follows from them is ``machine``'s; carrying them out is the runtime's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

__all__ = ["Action", "Create", "ElectionTimes", "Ended", "Lost", "Read", "Update", "Wait"]

JITTER = 1.2
"""By how much of itself a wait for somebody else's lease is stretched, at most (client-go's
``JitterFactor``). A leader's waits are exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionTimes:
    """The numbers of an election, in seconds. The defaults are those of Kubernetes' own parts."""

    lease_duration: float = 15.0
    """How long others wait after the last change that they saw before they take the Lease."""
    renew_deadline: float = 10.0
    """How long a leader leads after the last renewal that succeeded."""
    retry_period: float = 2.0
    """Between two tries."""

    def __post_init__(self) -> None:
        lease, renew, retry = self.lease_duration, self.renew_deadline, self.retry_period
        for name, value in zip(self.__slots__, (lease, renew, retry), strict=True):
            if not 0 < value < float("inf"):
                raise ValueError(f"{name} must be above 0 and finite, not {value:g} s")
        if lease <= renew:
            raise ValueError(
                f"lease_duration ({lease:g} s) must be longer than renew_deadline ({renew:g} s)"
            )
        if renew <= JITTER * retry:
            raise ValueError(
                f"renew_deadline ({renew:g} s) must be longer than {JITTER:g} times retry_period "
                f"({retry:g} s)"
            )


# -- what to do --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Read:
    """Get the Lease; then ``read``, or ``failed``."""


@dataclass(frozen=True, slots=True)
class Create:
    """Create it; then ``stored``, or ``failed``."""

    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Update:
    """Replace it, unless it was changed since; then ``stored``, or ``failed``."""

    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing until then; a time of the clock."""

    until: float


@dataclass(frozen=True, slots=True)
class Lost:
    """Leading is over, and nothing is written any more."""

    reason: str


@dataclass(frozen=True, slots=True)
class Ended:
    """It has been given up."""

    released: bool
    """Whether others may have it at once."""


Action: TypeAlias = Read | Create | Update | Wait | Lost | Ended
