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
    "Action",
    "Create",
    "Election",
    "ElectionTimes",
    "Ended",
    "Lost",
    "Phase",
    "Read",
    "Update",
    "Wait",
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


RELEASED_SECONDS = 1
"""What a released Lease lasts: the least that a server accepts (client-go)."""

LONGEST = 300.0
"""Seconds that a server may ask a candidate to wait."""

NEVER = float("inf")


Phase: TypeAlias = Literal["idle", "seeking", "leading", "lost", "releasing", "ended"]


@dataclass(frozen=True, slots=True)
class _Bid:
    """A write of ours. Whether it was done is unknown until it is seen."""

    record: LeaseRecord
    base: str
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
        self.phase: Phase = "idle"
        self.loss = ""
        """Why it was lost."""
        self.until = -NEVER
        """Leading ends then, unless the lease is renewed before; a time of the clock."""
        self._key = key
        self._lease: Mapping[str, Any] | None = None
        self._record: LeaseRecord | None = None
        self._seen_at = -NEVER
        self._ours = False
        """Whether the record seen last is one that we wrote."""
        self._term = 0
        self._held: _Bid | None = None
        """What we are known to have written last."""
        self._bids: list[_Bid] = []
        """What we may have written on the version seen last, or yet may."""
        self._due = -NEVER
        self._writes = False
        """Whether to write next, rather than to look."""
        self._looked_again = False
        self._give_up = NEVER
        self.released = False
        """Whether it was given up so that others may have it at once."""

    # -- how it stands -------------------------------------------------------------------------

    def leads(self, now: float) -> bool:
        """Whether it leads at this moment."""
        return self.phase == "leading" and now < self.until

    @property
    def leader(self) -> str:
        """Who holds the Lease, as far as was seen; empty for nobody."""
        return self._record.holder if self._record is not None and self._lease is not None else ""

    @property
    def fencing(self) -> Fencing | None:
        """Our term; ``None`` if we don't lead."""
        if self.phase != "leading" or self._held is None:
            return None
        return Fencing(self._held.record.transitions, self.identity)

    @property
    def renewed_at(self) -> float | None:
        """When the last renewal that succeeded was sent; a time of the clock."""
        return None if self._held is None else self._held.sent

    @property
    def open_to_others(self) -> float:
        """When another may lead at the earliest, if we never write again; a time of the clock."""
        return -NEVER if self._held is None else self._held.sent + self.times.lease_duration

    def patience(self, now: float) -> float:
        """Seconds that a request may take from now."""
        limit = self.times.renew_deadline / 2  # so that there is time for a second one (client-go)
        if self.phase == "leading":
            limit = min(limit, self.until - now)
        elif self.phase == "releasing":
            limit = min(limit, self._give_up - now)
        return max(0.0, limit)

    # -- what is wanted ------------------------------------------------------------------------

    def seek(self, now: float) -> None:
        """Run for a term. What ran in the one before must have ended."""
        self.phase, self._term, self._due = "seeking", self._term + 1, now
        self._writes = self._looked_again = self.released = False
        self.loss, self.until = "", -NEVER

    def release(self, now: float) -> None:
        """Give it up: others may lead as soon as it is written. What ran in it must have ended.

        After a loss nothing is written: the Lease runs out by itself, and soon.
        """
        written = [*self._bids, *([self._held] if self._ours and self._held else [])]
        if self.phase == "lost" or not written:
            self.end()
            return
        self.phase, self._looked_again = "releasing", False
        self._sleep(now, writes=False)
        over = max(bid.sent for bid in written) + self.times.lease_duration
        self._give_up = min(now + self.times.renew_deadline, over)

    def end(self) -> None:
        """Write nothing more."""
        if self.phase != "lost":
            self.phase = "ended"

    def check(self, now: float) -> None:
        """See whether time alone has ended it."""
        if self.phase == "leading" and now >= self.until:
            self._lose(f"it was not renewed for {self.times.renew_deadline:g} s")
        elif self.phase == "releasing" and now >= self._give_up:
            self.phase = "ended"

    def step(self, now: float, wall: dt.datetime) -> Action:
        """What to do now.

        Args:
            now: seconds of a monotonic clock that doesn't stand still while the machine sleeps.
            wall: the date, which is written into the Lease and means nothing else.
        """
        self.check(now)
        if self.phase == "lost":
            return Lost(self.loss)
        if self.phase in ("idle", "ended"):
            return Ended(self.released)
        if now < self._due:
            return Wait(min(self._due, self._limit()))
        return self._write(now, leases.microtime(wall)) if self._writes else Read()

    # -- what came of it -----------------------------------------------------------------------

    def read(self, lease: Mapping[str, Any] | None, now: float, jitter: float) -> None:
        """The Lease was read; ``None`` if there is none.

        Args:
            lease: as the server has it.
            now: seconds of the clock.
            jitter: chance in [0, 1).
        """
        self._look(lease, now)
        if self.phase == "releasing":
            self._on_release()
        elif self.phase == "leading":
            self._on_renewal()
        elif self.phase == "seeking":
            self._on_attempt(now, jitter)

    def stored(self, lease: Mapping[str, Any], now: float, jitter: float) -> None:
        """The Lease was created or updated, and is this now."""
        bid, answer = self._bids[-1], LeaseRecord.of(lease)
        if answer.holder == bid.record.holder and answer != bid.record:
            self._bids.append(replace(bid, record=answer))  # an admission webhook had a hand in it
        self._looked_again = False
        self.read(lease, now, jitter)
        if self.phase == "leading" and self._ours:
            self._sleep(now + self.times.retry_period, writes=True)

    def failed(self, now: float, jitter: float, *, least: float = 0.0) -> None:
        """It failed; a write may have been done all the same.

        Args:
            now: seconds of the clock.
            jitter: chance in [0, 1).
            least: seconds that the server asked to wait.
        """
        if self._writes and not self._looked_again and not least:
            self._looked_again = True
            self._sleep(now, writes=False)
            return
        self._looked_again = False
        self._sleep(now + self._pause(now, jitter, least), writes=False)

    # -- the rules -----------------------------------------------------------------------------

    def _look(self, lease: Mapping[str, Any] | None, now: float) -> None:
        """Remember what was seen, and since when it is so, by our clock."""
        self._lease = lease
        if lease is None:
            base, self._ours = "", False
        else:
            base, record = leases.version(lease), LeaseRecord.of(lease)
            if record != self._record:
                self._record, self._seen_at = record, now
            self._recognise(record)
        self._bids = [bid for bid in self._bids if bid.base == base]  # others can't be done now

    def _recognise(self, record: LeaseRecord) -> None:
        candidates = [*self._bids] if self._held is None else [*self._bids, self._held]
        found = next((bid for bid in candidates if bid.record.wrote(record)), None)
        self._ours = found is not None
        if found is None:
            return
        self._held = found
        if found.term == self._term and self.phase == "leading":
            self.until = found.sent + self.times.renew_deadline

    def _on_attempt(self, now: float, jitter: float) -> None:
        held = self._held
        if self._ours and held is not None and held.term == self._term:
            if now < held.sent + self.times.renew_deadline:
                self.phase, self.until = "leading", held.sent + self.times.renew_deadline
                self._sleep(now + self.times.retry_period, writes=True)
                return
        elif not self._ours and self.leader and now < self._over():
            self._looked_again = False
            again = now + self._pause(now, jitter, 0.0)
            self._sleep(min(again, self._over()), writes=False)
            return
        self._sleep(now, writes=True)

    def _on_renewal(self) -> None:
        if self._ours or self._lease is None:
            self._sleep(-NEVER, writes=True)
        else:
            self._lose(self._record.usurper(self.identity) if self._record else "")

    def _on_release(self) -> None:
        if self._ours and self.leader:
            self._sleep(-NEVER, writes=True)
        else:
            self.phase, self.released = "ended", self._ours  # ours, without a holder: it is done

    def _over(self) -> float:
        """When the lease that was seen last is over, if its record doesn't change."""
        seconds = self._record.duration if self._record is not None else 0.0
        return self._seen_at + (seconds if seconds > 0 else self.times.lease_duration)

    def _lose(self, reason: str) -> None:
        self.phase, self.loss = "lost", reason

    # -- writing -------------------------------------------------------------------------------

    def _write(self, now: float, stamp: str) -> Create | Update:
        lease, record = self._lease, self._next(stamp)
        base = "" if lease is None else leases.version(lease)
        self._bids.append(_Bid(record, base, now, self._term))
        if lease is None:
            return Create(leases.created(self._key, record))
        return Update(leases.changed(lease, record))

    def _next(self, stamp: str) -> LeaseRecord:
        seen, held, lasts = self._record, self._held, ceil(self.times.lease_duration)
        if self.phase == "releasing":
            transitions = seen.transitions if seen is not None else 0
            return LeaseRecord("", RELEASED_SECONDS, transitions, stamp, stamp)
        if held is not None and held.term == self._term and self._goes_on():
            return replace(held.record, duration=lasts, renewed=stamp)
        transitions = 0 if seen is None else seen.transitions + 1
        return LeaseRecord(self.identity, lasts, transitions, stamp, stamp)

    def _goes_on(self) -> bool:
        """Whether what is written next belongs to the term that was won."""
        return self._ours or (self._lease is None and self.phase == "leading")

    # -- waiting -------------------------------------------------------------------------------

    def _sleep(self, until: float, *, writes: bool) -> None:
        self._due, self._writes = until, writes

    def _pause(self, now: float, jitter: float, least: float) -> float:
        """Seconds to the next try: a leader's are exact, and leave it time for one more."""
        period = self.times.retry_period
        if self.phase == "seeking":
            return max(period * (1 + JITTER * jitter), min(least, LONGEST))
        return max(period, min(least, (self._limit() - now) / 2))

    def _limit(self) -> float:
        """When time alone ends the phase."""
        if self.phase == "leading":
            return self.until
        return self._give_up if self.phase == "releasing" else NEVER

    def __repr__(self) -> str:
        return f"<Election of {self._key} by {self.identity} {self.phase} leader={self.leader!r}>"
