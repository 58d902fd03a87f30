"""Who leads: one candidate's side of an election for a Lease.

What was seen of the Lease goes in, the next thing to do comes out: read it, create it, update it,
wait. It knows no network, no chance and no clock: seconds of a monotonic clock and the date are
arguments. Its rules are client-go's (``tools/leaderelection``), with these differences:

- Leading lasts ``renew_deadline`` from when the last successful renewal was *sent*. client-go
  counts from its answer, which may be seconds later than what others have seen.
- A record is our own if this candidate wrote it, not because it carries our identity: two
  programs that were given the same identity don't lead together. (Who was killed and comes back
  under its old identity waits until its old lease is over, as everybody does.)
- A write whose answer was lost is looked for at once, and counts from when it was sent.
- ``leaseDurationSeconds`` is rounded up: client-go truncates, so that others come too early.
- The Lease is released only if the record that was read just before is our own.
- Whose Lease was deleted while leading makes it again with the same number of transitions.

As there, the times *in* a Lease are never compared with a clock: another's lease is over when its
record hasn't changed for as long as it says itself, by the clock of who looks. So clocks may be
hours apart, but should run at the same rate: what is safe is a pause, the time that a body takes
to end, and a difference in rate that are together less than ``lease_duration - renew_deadline``.

What an election is told and what it asks for: its numbers, and its actions.

What follows from them is ``machine``'s; carrying them out is the runtime's.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, Literal, TypeAlias

from aioinformer._core.leaderelection import lease as leases
from aioinformer._core.leaderelection.lease import Fencing, LeaseRecord
from aioinformer._core.objects.kube_object import ObjectKey

__all__ = [
    "CreateLease",
    "Election",
    "ElectionAction",
    "ElectionEnded",
    "ElectionPhase",
    "ElectionTimes",
    "LeaseLost",
    "ReadLease",
    "SleepUntil",
    "UpdateLease",
]


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
class ReadLease:
    """Get the Lease; then ``record_read``, or ``record_failure``."""


@dataclass(frozen=True, slots=True)
class CreateLease:
    """Create it; then ``record_write``, or ``record_failure``."""

    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class UpdateLease:
    """Replace it, unless it was changed since; then ``record_write``, or ``record_failure``."""

    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class SleepUntil:
    """Nothing until then; a time of the clock."""

    until: float


@dataclass(frozen=True, slots=True)
class LeaseLost:
    """Leading is over, and nothing is written any more."""

    reason: str


@dataclass(frozen=True, slots=True)
class ElectionEnded:
    """It has been given up."""

    released: bool
    """Whether others may have it at once."""


ElectionAction: TypeAlias = (
    ReadLease | CreateLease | UpdateLease | SleepUntil | LeaseLost | ElectionEnded
)


RELEASED_SECONDS = 1
"""What a released Lease lasts: the least that a server accepts (client-go)."""

MAX_RETRY_AFTER = 300.0
"""Seconds that a server may ask a candidate to wait."""

NEVER = float("inf")


ElectionPhase: TypeAlias = Literal["idle", "seeking", "leading", "lost", "releasing", "ended"]


@dataclass(frozen=True, slots=True)
class _LeaseWrite:
    """A write of ours. Whether it was done is unknown until it is seen."""

    record: LeaseRecord
    base_version: str
    """On which version of the Lease; empty for a new one."""
    sent: float
    term: int
    """In which of this candidate's terms."""


class Election:
    """One candidate."""

    def __init__(self, key: ObjectKey, *, identity: str, times: ElectionTimes) -> None:
        """Make a candidate; ``seek`` makes it run.

        Args:
            key: of the Lease.
            identity: its own; of no other candidate.
            times: the numbers.

        Raises:
            ValueError: no identity: that is how a Lease is released.
        """
        if not identity:
            raise ValueError("identity is empty; each candidate needs one of its own")
        self.identity = identity
        self.times = times
        self.phase: ElectionPhase = "idle"
        self.lost_reason = ""
        """Why it was lost."""
        self.leads_until = -NEVER
        """Leading ends then, unless the lease is renewed before; a time of the clock."""
        self._key = key
        self._observed_lease: Mapping[str, Any] | None = None
        self._observed_record: LeaseRecord | None = None
        self._observed_at = -NEVER
        self._is_ours = False
        """Whether the record seen last is one that we wrote."""
        self._term = 0
        self._last_write: _LeaseWrite | None = None
        """What we are known to have written last."""
        self._uncertain_writes: list[_LeaseWrite] = []
        """What we may have written on the version seen last, or yet may."""
        self._next_action_at = -NEVER
        self._write_next = False
        """Whether to write next, rather than to look."""
        self._reread_after_failure = False
        self._release_deadline = NEVER
        self.released = False
        """Whether it was given up so that others may have it at once."""

    # -- how it stands -------------------------------------------------------------------------

    def leads(self, now: float) -> bool:
        """Whether it leads at this moment."""
        return self.phase == "leading" and now < self.leads_until

    @property
    def leader(self) -> str:
        """Who holds the Lease, as far as was seen; empty for nobody."""
        return (
            self._observed_record.holder
            if self._observed_record is not None and self._observed_lease is not None
            else ""
        )

    @property
    def fencing(self) -> Fencing | None:
        """Our term; ``None`` if we don't lead."""
        if self.phase != "leading" or self._last_write is None:
            return None
        return Fencing(self._last_write.record.transitions, self.identity)

    @property
    def renewed_at(self) -> float | None:
        """When the last renewal that succeeded was sent; a time of the clock."""
        return None if self._last_write is None else self._last_write.sent

    @property
    def takeover_at(self) -> float:
        """When another may lead at the earliest, if we never write again; a time of the clock."""
        return (
            -NEVER
            if self._last_write is None
            else self._last_write.sent + self.times.lease_duration
        )

    def request_timeout(self, now: float) -> float:
        """Seconds that a request may take from now."""
        limit = self.times.renew_deadline / 2  # so that there is time for a second one (client-go)
        if self.phase == "leading":
            limit = min(limit, self.leads_until - now)
        elif self.phase == "releasing":
            limit = min(limit, self._release_deadline - now)
        return max(0.0, limit)

    # -- what is wanted ------------------------------------------------------------------------

    def seek(self, now: float) -> None:
        """Run for a term. What ran in the one before must have ended."""
        self.phase, self._term, self._next_action_at = "seeking", self._term + 1, now
        self._write_next = self._reread_after_failure = self.released = False
        self.lost_reason, self.leads_until = "", -NEVER

    def release(self, now: float) -> None:
        """Give it up: others may lead as soon as it is written. What ran in it must have ended.

        After a loss nothing is written: the Lease runs out by itself, and soon.
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
        over = max(bid.sent for bid in written) + self.times.lease_duration
        self._release_deadline = min(now + self.times.renew_deadline, over)

    def end(self) -> None:
        """Write nothing more."""
        if self.phase != "lost":
            self.phase = "ended"

    def check_deadline(self, now: float) -> None:
        """See whether time alone has ended it."""
        if self.phase == "leading" and now >= self.leads_until:
            self._lose(f"it was not renewed for {self.times.renew_deadline:g} s")
        elif self.phase == "releasing" and now >= self._release_deadline:
            self.phase = "ended"

    def step(self, now: float, wall: dt.datetime) -> ElectionAction:
        """What to do now.

        Args:
            now: seconds of a monotonic clock that doesn't stand still while the machine sleeps.
            wall: the date, which is written into the Lease and means nothing else.
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
            if self._write_next
            else ReadLease()
        )

    # -- what came of it -----------------------------------------------------------------------

    def record_read(self, lease: Mapping[str, Any] | None, now: float, jitter: float) -> None:
        """The Lease was read; ``None`` if there is none.

        Args:
            lease: as the server has it.
            now: seconds of the clock.
            jitter: chance in [0, 1).
        """
        self._observe(lease, now)
        if self.phase == "releasing":
            self._on_release()
        elif self.phase == "leading":
            self._on_renewal()
        elif self.phase == "seeking":
            self._on_attempt(now, jitter)

    def record_write(self, lease: Mapping[str, Any], now: float, jitter: float) -> None:
        """The Lease was created or updated, and is this now."""
        bid, answer = self._uncertain_writes[-1], LeaseRecord.of(lease)
        if answer.holder == bid.record.holder and answer != bid.record:
            self._uncertain_writes.append(
                replace(bid, record=answer)
            )  # an admission webhook had a hand in it
        self._reread_after_failure = False
        self.record_read(lease, now, jitter)
        if self.phase == "leading" and self._is_ours:
            self._schedule(now + self.times.retry_period, write=True)

    def record_failure(self, now: float, jitter: float, *, minimum: float = 0.0) -> None:
        """It failed; a write may have been done all the same.

        Args:
            now: seconds of the clock.
            jitter: chance in [0, 1).
            minimum: seconds that the server asked to wait.
        """
        if self._write_next and not self._reread_after_failure and not minimum:
            self._reread_after_failure = True
            self._schedule(now, write=False)
            return
        self._reread_after_failure = False
        self._schedule(now + self._retry_delay(now, jitter, minimum), write=False)

    # -- the rules -----------------------------------------------------------------------------

    def _observe(self, lease: Mapping[str, Any] | None, now: float) -> None:
        """Remember what was seen, and since when it is so, by our clock."""
        self._observed_lease = lease
        if lease is None:
            base, self._is_ours = "", False
        else:
            base, record = leases.resource_version(lease), LeaseRecord.of(lease)
            if record != self._observed_record:
                self._observed_record, self._observed_at = record, now
            self._match_own_write(record)
        self._uncertain_writes = [
            bid for bid in self._uncertain_writes if bid.base_version == base
        ]  # others can't be done now

    def _match_own_write(self, record: LeaseRecord) -> None:
        candidates = (
            [*self._uncertain_writes]
            if self._last_write is None
            else [*self._uncertain_writes, self._last_write]
        )
        found = next((bid for bid in candidates if bid.record.is_same_write(record)), None)
        self._is_ours = found is not None
        if found is None:
            return
        self._last_write = found
        if found.term == self._term and self.phase == "leading":
            self.leads_until = found.sent + self.times.renew_deadline

    def _on_attempt(self, now: float, jitter: float) -> None:
        held = self._last_write
        if self._is_ours and held is not None and held.term == self._term:
            if now < held.sent + self.times.renew_deadline:
                self.phase, self.leads_until = "leading", held.sent + self.times.renew_deadline
                self._schedule(now + self.times.retry_period, write=True)
                return
        elif not self._is_ours and self.leader and now < self._lease_expiry():
            self._reread_after_failure = False
            again = now + self._retry_delay(now, jitter, 0.0)
            self._schedule(min(again, self._lease_expiry()), write=False)
            return
        self._schedule(now, write=True)

    def _on_renewal(self) -> None:
        if self._is_ours or self._observed_lease is None:
            self._schedule(-NEVER, write=True)
        else:
            self._lose(
                self._observed_record.other_holder(self.identity) if self._observed_record else ""
            )

    def _on_release(self) -> None:
        if self._is_ours and self.leader:
            self._schedule(-NEVER, write=True)
        else:
            self.phase, self.released = "ended", self._is_ours  # ours, without a holder: it is done

    def _lease_expiry(self) -> float:
        """When the lease that was seen last is over, if its record doesn't change."""
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
        seen, held, lasts = self._observed_record, self._last_write, ceil(self.times.lease_duration)
        if self.phase == "releasing":
            transitions = seen.transitions if seen is not None else 0
            return LeaseRecord("", RELEASED_SECONDS, transitions, stamp, stamp)
        if held is not None and held.term == self._term and self._continues_term():
            return replace(held.record, duration=lasts, renewed=stamp)
        transitions = 0 if seen is None else seen.transitions + 1
        return LeaseRecord(self.identity, lasts, transitions, stamp, stamp)

    def _continues_term(self) -> bool:
        """Whether what is written next belongs to the term that was won."""
        return self._is_ours or (self._observed_lease is None and self.phase == "leading")

    # -- waiting -------------------------------------------------------------------------------

    def _schedule(self, until: float, *, write: bool) -> None:
        self._next_action_at, self._write_next = until, write

    def _retry_delay(self, now: float, jitter: float, minimum: float) -> float:
        """Seconds to the next try: a leader's are exact, and leave it time for one more."""
        period = self.times.retry_period
        if self.phase == "seeking":
            return max(period * (1 + JITTER * jitter), min(minimum, MAX_RETRY_AFTER))
        return max(period, min(minimum, (self._phase_deadline() - now) / 2))

    def _phase_deadline(self) -> float:
        """When time alone ends the phase."""
        if self.phase == "leading":
            return self.leads_until
        return self._release_deadline if self.phase == "releasing" else NEVER

    def __repr__(self) -> str:
        return f"<Election of {self._key} by {self.identity} {self.phase} leader={self.leader!r}>"
