"""The state machine of one candidate for a Lease.

Each state of the Lease that was read goes in; the next action comes out: read, create or update the
Lease, or wait. Seconds of a monotonic clock and the date are arguments. Its rules are client-go's
(``tools/leaderelection``), with these differences:

- A leader leads until ``renew_deadline`` after its last successful renewal was *sent*. client-go
  counts from the answer, which may arrive seconds after others have seen the renewal.
- A record counts as ours if this candidate wrote it, not if it carries our identity: two programs
  with the same identity don't lead together.
- If the answer to a write is lost, the Lease is read at once. If the write took effect, it counts
  from when it was sent.
- ``leaseDurationSeconds`` is rounded up. client-go truncates, so that others take over too early.
- The Lease is released only if the record that was read just before is ours.
- A leader whose Lease was deleted creates it again with the same number of transitions.

As in client-go, the times *in* a Lease are never compared with a clock. A candidate considers the
leader's lease expired when the record hasn't changed for the record's duration, by the candidate's
clock. So clocks may differ by hours but must run at the same rate.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, Literal, TypeAlias

from aioinformer._core.objects.kube_object import ObjectKey
from aioinformer.leaderelection.state import lease as leases
from aioinformer.leaderelection.state.lease import Fencing, LeaseRecord

JITTER = 1.2
"""The most by which a wait for another's lease is lengthened, as a multiple of it (client-go's
``JitterFactor``). A leader's waits are exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionTimes:
    """The times of an election, in seconds. The defaults are those of Kubernetes' control plane."""

    lease_duration: float = 15.0
    """Seconds that other candidates wait after the last change that they saw."""
    renew_deadline: float = 10.0
    """Seconds that a leader leads after its last successful renewal."""
    retry_period: float = 2.0
    """Seconds between two attempts."""

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


# -- actions -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReadLease:
    """Get the Lease; then call ``record_read`` or ``record_failure``."""


@dataclass(frozen=True, slots=True)
class CreateLease:
    """Create the Lease; then call ``record_write`` or ``record_failure``."""

    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class UpdateLease:
    """Replace the Lease unless it has changed since; then record the write or the failure."""

    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class SleepUntil:
    """Do nothing until this time of the clock."""

    until: float


@dataclass(frozen=True, slots=True)
class LeaseLost:
    """Stop leading: leadership was lost, and nothing is written any more."""

    reason: str


@dataclass(frozen=True, slots=True)
class ElectionEnded:
    """Stop: the candidate has ended its term."""

    released: bool
    """True if other candidates may take the Lease at once."""


ElectionAction: TypeAlias = (
    ReadLease | CreateLease | UpdateLease | SleepUntil | LeaseLost | ElectionEnded
)


RELEASED_SECONDS = 1
"""The duration in a released Lease: the least that a server accepts (client-go)."""

MAX_RETRY_AFTER = 300.0
"""The most seconds of a server's ``Retry-After`` that a candidate waits."""

NEVER = float("inf")


ElectionPhase: TypeAlias = Literal["idle", "seeking", "leading", "lost", "releasing", "ended"]


_HOLDING: tuple[ElectionPhase, ...] = ("leading", "releasing")


@dataclass(frozen=True, slots=True)
class _LeaseWrite:
    """A write of this candidate. The write is uncertain until the Lease is read in that state."""

    record: LeaseRecord
    base_version: str
    """The resourceVersion that the write replaces; empty for a creation."""
    sent: float
    term: int
    """The number of this candidate's term in which it was sent."""


class Election:
    """The state of one candidate."""

    def __init__(self, key: ObjectKey, *, identity: str, times: ElectionTimes) -> None:
        """Make a candidate, which does nothing before ``seek``. Raises ``ValueError`` for an empty
        identity, which would mean a released Lease.
        """
        if not identity:
            raise ValueError("identity is empty; each candidate needs an identity of its own")
        self.identity = identity
        self.times = times
        self.phase: ElectionPhase = "idle"
        self.lost_reason = ""
        self.leads_until = -NEVER
        """The time of the clock at which leading ends unless the lease is renewed before."""
        self._key = key
        self._observed_lease: Mapping[str, Any] | None = None
        self._observed_record: LeaseRecord | None = None
        self._observed_at = -NEVER
        self._is_ours = False
        """True if this candidate wrote the record that was read last."""
        self._term = 0
        self._last_write: _LeaseWrite | None = None
        """The last write that is known to have taken effect."""
        self._uncertain_writes: list[_LeaseWrite] = []
        """Writes on the version read last that may have taken effect, or may still do."""
        self._next_action_at = -NEVER
        self.writes_next = False
        """True if the next action is a write, False if it is a read."""
        self._reread_after_failure = False
        self._release_deadline = NEVER
        self.released = False
        self.expires = False
        """True if the release was given up while the Lease may still be this candidate's."""

    # -- state ---------------------------------------------------------------------------------

    def leads(self, now: float) -> bool:
        """Return True if this candidate leads at this moment."""
        return self.phase == "leading" and now < self.leads_until

    def due_in(self, now: float) -> float:
        """Return the seconds to the next action."""
        return max(0.0, self._next_action_at - now)

    @property
    def leader(self) -> str:
        """The leader's identity when the Lease was last read; empty for none, and for this
        candidate while it doesn't lead: its lease was lost, or is that of an earlier process.
        """
        holder = self._holder
        return "" if holder == self.identity and self.phase not in _HOLDING else holder

    @property
    def _holder(self) -> str:
        """The holder in the Lease that was read last; empty for none."""
        return (
            self._observed_record.holder
            if self._observed_record is not None and self._observed_lease is not None
            else ""
        )

    @property
    def fencing(self) -> Fencing | None:
        """The number of our term; ``None`` while this candidate doesn't lead."""
        if self.phase != "leading" or self._last_write is None:
            return None
        return Fencing(self._last_write.record.transitions, self.identity)

    @property
    def renewed_at(self) -> float | None:
        """The time at which our last successful write was sent; ``None`` before the first."""
        return None if self._last_write is None else self._last_write.sent

    @property
    def takeover_at(self) -> float:
        """The earliest time of the clock at which another may lead, if we never write again."""
        return (
            -NEVER
            if self._last_write is None
            else self._last_write.sent + self.times.lease_duration
        )

    def request_timeout(self, now: float) -> float:
        """Return the seconds that a request may take from now."""
        limit = self.times.renew_deadline / 2  # leaves time for a second request (client-go)
        if self.phase == "leading":
            limit = min(limit, self.leads_until - now)
        elif self.phase == "releasing":
            limit = min(limit, self._release_deadline - now)
        return max(0.0, limit)

    # -- requests of the owner -----------------------------------------------------------------

    def seek(self, now: float) -> None:
        """Start to run for a term. Everything that ran in the previous term must have ended."""
        self.phase, self._term, self._next_action_at = "seeking", self._term + 1, now
        self.writes_next = self._reread_after_failure = self.released = self.expires = False
        self.lost_reason, self.leads_until = "", -NEVER

    def release(self, now: float) -> None:
        """Release the Lease after the end of everything that ran in the term. After a loss nothing
        is written, since the Lease expires soon by itself.
        """
        written = [
            *self._uncertain_writes,
            *([self._last_write] if self._is_ours and self._last_write else []),
        ]
        if self.phase == "lost" or not written:
            self.end()
            return
        self.phase, self._reread_after_failure = "releasing", False
        self._schedule(now, write=False)
        # After the expiry of our last write a release has no use.
        expiry = max(write.sent for write in written) + self.times.lease_duration
        self._release_deadline = min(now + self.times.renew_deadline, expiry)

    def end(self) -> None:
        """Write nothing more."""
        if self.phase != "lost":
            self.phase = "ended"

    def hasten(self, now: float) -> None:
        """Make a leader's next renewal due now, since its Lease is to state something new, unless a
        request has failed.
        """
        if self.phase == "leading" and self.writes_next:
            self._next_action_at = min(self._next_action_at, now)

    def check_deadline(self, now: float) -> None:
        """End the phase if its deadline has passed."""
        if self.phase == "leading" and now >= self.leads_until:
            self._lose(f"it was not renewed for {self.times.renew_deadline:g} s")
        elif self.phase == "releasing" and now >= self._release_deadline:
            self.phase, self.expires = "ended", True

    def step(self, now: float, wall: dt.datetime) -> ElectionAction:
        """Return the next action. ``wall`` is the date to write into the Lease, and used for
        nothing else.
        """
        self.check_deadline(now)
        if self.phase == "lost":
            return LeaseLost(self.lost_reason)
        if self.phase in ("idle", "ended"):
            return ElectionEnded(self.released)
        if now < self._next_action_at:
            return SleepUntil(min(self._next_action_at, self._phase_deadline()))
        return (
            self._build_write(now, leases.format_micro_time(wall))
            if self.writes_next
            else ReadLease()
        )

    # -- results of actions --------------------------------------------------------------------

    def record_read(self, lease: Mapping[str, Any] | None, now: float, jitter: float) -> None:
        """Take the Lease as the server has it, or ``None``. ``jitter`` is a random number in [0,
        1).
        """
        self._observe(lease, now)
        if self.phase == "releasing":
            self._on_release()
        elif self.phase == "leading":
            self._on_renewal()
        elif self.phase == "seeking":
            self._on_attempt(now, jitter)

    def record_write(self, lease: Mapping[str, Any], now: float, jitter: float) -> None:
        """Take the Lease that a creation or update returned."""
        write, answer = self._uncertain_writes[-1], LeaseRecord.of(lease)
        # An admission webhook may have changed the record: then the changed one is ours as well.
        if answer.holder == write.record.holder and answer != write.record:
            self._uncertain_writes.append(replace(write, record=answer))
        self._reread_after_failure = False
        self.record_read(lease, now, jitter)
        if self.phase == "leading" and self._is_ours:
            self._schedule(now + self.times.retry_period, write=True)

    def record_failure(self, now: float, jitter: float, *, minimum: float = 0.0) -> None:
        """Take the failure of an action. A write that failed may have taken effect. ``minimum`` is
        the seconds that the server asked to wait.
        """
        # After a failed write the Lease is read at once, since the write may have taken effect.
        if self.writes_next and not self._reread_after_failure and not minimum:
            self._reread_after_failure = True
            self._schedule(now, write=False)
            return
        self._reread_after_failure = False
        self._schedule(now + self._retry_delay(now, jitter, minimum), write=False)

    # -- the rules -----------------------------------------------------------------------------

    def _observe(self, lease: Mapping[str, Any] | None, now: float) -> None:
        """Remember the Lease, and since when its record is unchanged by our clock."""
        self._observed_lease = lease
        if lease is None:
            base, self._is_ours = "", False
        else:
            base, record = leases.resource_version(lease), LeaseRecord.of(lease)
            if record != self._observed_record:
                self._observed_record, self._observed_at = record, now
            self._match_own_write(record)
        # A write on another version of the Lease can't take effect any more.
        self._uncertain_writes = [
            write for write in self._uncertain_writes if write.base_version == base
        ]

    def _match_own_write(self, record: LeaseRecord) -> None:
        candidates = (
            [*self._uncertain_writes]
            if self._last_write is None
            else [*self._uncertain_writes, self._last_write]
        )
        found = next((write for write in candidates if write.record.is_same_write(record)), None)
        self._is_ours = found is not None
        if found is None:
            return
        self._last_write = found
        if found.term == self._term and self.phase == "leading":
            self.leads_until = found.sent + self.times.renew_deadline

    def _on_attempt(self, now: float, jitter: float) -> None:
        last = self._last_write
        # Our own write of this term: we lead, unless its renew_deadline is over already.
        if self._is_ours and last is not None and last.term == self._term:
            if now < last.sent + self.times.renew_deadline:
                self.phase, self.leads_until = "leading", last.sent + self.times.renew_deadline
                self._schedule(now + self.times.retry_period, write=True)
                return
        # Another holder whose lease has not expired: wait, but not beyond the expiry.
        elif not self._is_ours and self._holder and now < self._lease_expiry():
            self._reread_after_failure = False
            retry_at = now + self._retry_delay(now, jitter, 0.0)
            self._schedule(min(retry_at, self._lease_expiry()), write=False)
            return
        # Released, expired, missing, or ours from an earlier term: take it.
        self._schedule(now, write=True)

    def _on_renewal(self) -> None:
        if self._is_ours or self._observed_lease is None:
            self._schedule(-NEVER, write=True)
        else:
            self._lose(
                self._observed_record.other_holder(self.identity) if self._observed_record else ""
            )

    def _on_release(self) -> None:
        if self._is_ours and self._holder:
            self._schedule(-NEVER, write=True)
        else:
            # Our record without a holder is the release itself; another's record ends it as well.
            self.phase, self.released = "ended", self._is_ours

    def _lease_expiry(self) -> float:
        """Return when the lease that was read last expires, if its record doesn't change."""
        seconds = self._observed_record.duration if self._observed_record is not None else 0.0
        return self._observed_at + (seconds if seconds > 0 else self.times.lease_duration)

    def _lose(self, reason: str) -> None:
        self.phase, self.lost_reason = "lost", reason

    # -- writing -------------------------------------------------------------------------------

    def _build_write(self, now: float, stamp: str) -> CreateLease | UpdateLease:
        lease, record = self._observed_lease, self._next_record(stamp)
        base = "" if lease is None else leases.resource_version(lease)
        self._uncertain_writes.append(_LeaseWrite(record, base, now, self._term))
        if lease is None:
            return CreateLease(leases.build_lease(self._key, record))
        return UpdateLease(leases.update_lease(lease, record))

    def _next_record(self, stamp: str) -> LeaseRecord:
        seen, last = self._observed_record, self._last_write
        duration = ceil(self.times.lease_duration)  # the field is in whole seconds
        if self.phase == "releasing":
            transitions = seen.transitions if seen is not None else 0
            return LeaseRecord("", RELEASED_SECONDS, transitions, stamp, stamp)
        if last is not None and last.term == self._term and self._continues_term():
            return replace(last.record, duration=duration, renewed=stamp)
        transitions = 0 if seen is None else seen.transitions + 1
        return LeaseRecord(self.identity, duration, transitions, stamp, stamp)

    def _continues_term(self) -> bool:
        """Return True if the next write belongs to the term that was won."""
        return self._is_ours or (self._observed_lease is None and self.phase == "leading")

    # -- waiting -------------------------------------------------------------------------------

    def _schedule(self, until: float, *, write: bool) -> None:
        self._next_action_at, self.writes_next = until, write

    def _retry_delay(self, now: float, jitter: float, minimum: float) -> float:
        """Return the seconds to the next attempt: of a leader exact, with time for one more."""
        period = self.times.retry_period
        if self.phase == "seeking":
            return max(period * (1 + JITTER * jitter), min(minimum, MAX_RETRY_AFTER))
        return max(period, min(minimum, (self._phase_deadline() - now) / 2))

    def _phase_deadline(self) -> float:
        """Return when time alone ends the phase."""
        if self.phase == "leading":
            return self.leads_until
        return self._release_deadline if self.phase == "releasing" else NEVER

    def __repr__(self) -> str:
        return f"<Election of {self._key} by {self.identity} {self.phase} leader={self.leader!r}>"
