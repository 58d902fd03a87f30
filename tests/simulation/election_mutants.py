"""Elections and electors with one planted bug each."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import replace
from math import ceil
from typing import Any

from aioinformer._core.leaderelection.election import Election, ElectionAction
from aioinformer._core.leaderelection.lease import LeaseRecord
from tests.simulation.election_world import Candidate


class CountsFromTheResponse(Election):
    """Counts a renewal from its answer, as client-go does."""

    def record_write(self, lease: Mapping[str, Any], now: float, jitter: float) -> None:
        self._uncertain_writes[-1] = replace(self._uncertain_writes[-1], sent=now)
        super().record_write(lease, now, jitter)


class TrustsTimesInTheLease(Election):
    """Compares the times in another candidate's lease with its own clock."""

    _date = 0.0

    def step(self, now: float, wall: dt.datetime) -> ElectionAction:
        self._date = wall.timestamp() - now
        return super().step(now, wall)

    def _lease_expiry(self) -> float:
        record = self._observed_record
        if record is None or not record.renewed:
            return super()._lease_expiry()
        renewed = dt.datetime.fromisoformat(record.renewed).timestamp()
        return renewed - self._date + record.duration


class IgnoresTheLeaseDuration(Election):
    """Waits for other candidates as long as its own lease lasts."""

    def _lease_expiry(self) -> float:
        return self._observed_at + self.times.lease_duration


class TruncatesTheDuration(Election):
    """Writes the duration without its fraction, as client-go does."""

    def _next_record(self, stamp: str) -> LeaseRecord:
        record = super()._next_record(stamp)
        cut = max(1, int(self.times.lease_duration))
        return replace(record, duration=cut) if record.holder else record


class TrustsTheIdentityAlone(Election):
    """Takes every lease with its identity for its own, as client-go does."""

    def _match_own_write(self, record: LeaseRecord) -> None:
        super()._match_own_write(record)
        self._is_ours = self._is_ours or record.holder == self.identity


class SkipsTheFencingToken(Election):
    """Takes a Lease over without counting the transition."""

    def _next_record(self, stamp: str) -> LeaseRecord:
        record = super()._next_record(stamp)
        seen = self._observed_record
        return record if seen is None else replace(record, transitions=seen.transitions)


class LeadsForTheWholeLease(Election):
    """Leaves no time for pauses."""

    def _match_own_write(self, record: LeaseRecord) -> None:
        super()._match_own_write(record)
        if self.phase == "leading" and self._last_write is not None:
            self.leads_until = self._last_write.sent + ceil(self.times.lease_duration)


class ReleasesFirst(Candidate):
    """Releases the lease before the body has ended, as client-go does after a loss."""

    def finish_body(self) -> None:
        if self._body_running and not self._body_ending and not self.world.calm:
            super().finish_body()
            self.release()

    def on_body_ended(self) -> None:
        self.world.end_body(self)
        self._body_running = self._body_ending = False
        self.start()


class IgnoresTheDeadline(Candidate):
    """Notices the end of its time only when its next request has failed."""

    def check_deadline(self) -> None:
        return

    @property
    def request_timeout(self) -> float:
        return self.spec.times.renew_deadline / 2
