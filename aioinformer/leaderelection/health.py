"""The public state of an elector, for readiness probes and people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from aioinformer._runtime.reporting.error_texts import describe_error
from aioinformer.errors.texts import one_line
from aioinformer.leaderelection.campaign import Campaign
from aioinformer.leaderelection.state.election import ElectionPhase
from aioinformer.leaderelection.suspend_clock import SuspendAwareClock

ElectionState: TypeAlias = Literal["idle", "waiting", "leading", "lost", "releasing"]
"""``idle``: no term is wanted. ``waiting``: another candidate leads, or the server can't be
reached. ``lost``: leadership was lost, and the program hasn't asked for it again."""

_STATES: dict[ElectionPhase, ElectionState] = {
    "idle": "idle",
    "seeking": "waiting",
    "leading": "leading",
    "lost": "lost",
    "releasing": "releasing",
    "ended": "idle",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionHealth:
    """The state of an elector at one moment."""

    state: ElectionState
    since: float
    """Seconds in this state."""
    leader: str
    """The leader's identity when the Lease was last read; empty for none, and after this candidate
    has lost the lease, until another holds it."""
    error: Exception | None
    """The last error; ``None`` once the request has succeeded again."""
    renewed: float | None
    """Seconds since our last successful renewal was sent; ``None`` before the first."""
    expires_in: float | None
    """Seconds for which this candidate leads without a renewal; ``None`` if it doesn't lead."""

    def __str__(self) -> str:
        leader = one_line(self.leader) or "none"
        parts = [f"{self.state} for {self.since:.1f} s", f"leader: {leader}"]
        if self.renewed is not None and self.state == "leading":
            parts.append(f"renewed {self.renewed:.1f} s ago")
        if self.error is not None:
            parts.append(f"last error: {describe_error(self.error)}")
        return ", ".join(parts)


class ElectionStatus:
    """The state of an election, and since when."""

    def __init__(self, campaign: Campaign, clock: SuspendAwareClock) -> None:
        """Start in the state ``idle``."""
        self._campaign = campaign
        self._clock = clock
        self._state: ElectionState = "idle"
        self._since = clock.now

    @property
    def state(self) -> ElectionState:
        """The current state."""
        return _STATES[self._campaign.election.phase]

    def update(self) -> None:
        """Note the time if the state has changed."""
        if self.state != self._state:
            self._state, self._since = self.state, self._clock.now

    @property
    def health(self) -> ElectionHealth:
        """A snapshot."""
        now, election = self._clock.now, self._campaign.election
        election.check_deadline(now)
        self.update()
        renewed = election.renewed_at
        return ElectionHealth(
            state=self._state,
            since=now - self._since,
            leader=election.leader,
            error=self._campaign.error,
            renewed=None if renewed is None else now - renewed,
            expires_in=election.leads_until - now if election.leads(now) else None,
        )

    def __repr__(self) -> str:
        return f"<ElectionStatus {self.state} since {self._since:.3f} s>"
