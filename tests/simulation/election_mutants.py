"""Elections, and those who carry them out, with one planted bug each."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import replace
from math import ceil
from typing import Any

from aioinformer._core.leaderelection.election import Action, Election
from aioinformer._core.leaderelection.lease import LeaseRecord
from tests.simulation.electing import Candidate


class CountsFromTheAnswer(Election):
    """client-go: a renewal counts from when its answer came."""

    def stored(self, lease: Mapping[str, Any], now: float, jitter: float) -> None:
        self._bids[-1] = replace(self._bids[-1], sent=now)
        super().stored(lease, now, jitter)


class BelievesTimesInTheLease(Election):
    """Another's lease is over when its times say so by our date."""

    _date = 0.0

    def step(self, now: float, wall: dt.datetime) -> Action:
        self._date = wall.timestamp() - now
        return super().step(now, wall)

    def _over(self) -> float:
        record = self._record
        if record is None or not record.renewed:
            return super()._over()
        renewed = dt.datetime.fromisoformat(record.renewed).timestamp()
        return renewed - self._date + record.duration


class KnowsItsOwnDurationOnly(Election):
    """Others are waited for as long as we would be."""

    def _over(self) -> float:
        return self._seen_at + self.times.lease_duration


class CutsOffSeconds(Election):
    """client-go: the duration is written without its fraction."""

    def _next(self, stamp: str) -> LeaseRecord:
        record = super()._next(stamp)
        cut = max(1, int(self.times.lease_duration))
        return replace(record, duration=cut) if record.holder else record


class TakesItsNameForItself(Election):
    """client-go: whatever carries our identity is ours."""

    def _recognise(self, record: LeaseRecord) -> None:
        super()._recognise(record)
        self._ours = self._ours or record.holder == self.identity


class ForgetsTheFence(Election):
    """Takes the Lease over without counting it."""

    def _next(self, stamp: str) -> LeaseRecord:
        record = super()._next(stamp)
        seen = self._record
        return record if seen is None else replace(record, transitions=seen.transitions)


class LeadsForTheWholeLease(Election):
    """Nothing is left for pauses."""

    def _recognise(self, record: LeaseRecord) -> None:
        super()._recognise(record)
        if self.phase == "leading" and self._held is not None:
            self.until = self._held.sent + ceil(self.times.lease_duration)


class ReleasesFirst(Candidate):
    """client-go after a loss, and whoever ends its context: the lease goes before the body does."""

    def enough(self) -> None:
        if self._inside and not self._ending and not self.world.calm:
            super().enough()
            self.give_up()

    def ended(self) -> None:
        self.world.leave(self)
        self._inside = self._ending = False
        self.begin()


class NeverLooksAtTheClock(Candidate):
    """A leader notices that time is up when its next request has failed."""

    def look(self) -> None:
        return

    @property
    def patience(self) -> float:
        return self.nature.times.renew_deadline / 2
