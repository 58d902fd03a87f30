"""Elections, and those who carry them out, with one planted bug each."""

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
    """client-go: a renewal counts from when its answer came."""

    def record_write(self, lease: Mapping[str, Any], now: float, jitter: float) -> None:
        self._uncertain_writes[-1] = replace(self._uncertain_writes[-1], sent=now)
        super().record_write(lease, now, jitter)


class TrustsTimesInTheLease(Election):
    """Another's lease is over when its times say so by our date."""

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
    """Others are waited for as long as we would be."""

    def _lease_expiry(self) -> float:
        return self._observed_at + self.times.lease_duration


class TruncatesTheDuration(Election):
    """client-go: the duration is written without its fraction."""

    def _next_record(self, stamp: str) -> LeaseRecord:
        record = super()._next_record(stamp)
        cut = max(1, int(self.times.lease_duration))
        return replace(record, duration=cut) if record.holder else record


class TrustsTheIdentityAlone(Election):
    """client-go: whatever carries our identity is ours."""

    def _match_own_write(self, record: LeaseRecord) -> None:
        super()._match_own_write(record)
        self._is_ours = self._is_ours or record.holder == self.identity


class SkipsTheFencingToken(Election):
    """Takes the Lease over without counting it."""

    def _next_record(self, stamp: str) -> LeaseRecord:
        record = super()._next_record(stamp)
        seen = self._observed_record
        return record if seen is None else replace(record, transitions=seen.transitions)


class LeadsForTheWholeLease(Election):
    """Nothing is left for pauses."""

    def _match_own_write(self, record: LeaseRecord) -> None:
        super()._match_own_write(record)
        if self.phase == "leading" and self._last_write is not None:
            self.leads_until = self._last_write.sent + ceil(self.times.lease_duration)


class ReleasesFirst(Candidate):
    """client-go after a loss, and whoever ends its context: the lease goes before the body does."""

    def finish_body(self) -> None:
        if self._body_running and not self._body_ending and not self.world.calm:
            super().finish_body()
            self.release()

    def on_body_ended(self) -> None:
        self.world.end_body(self)
        self._body_running = self._body_ending = False
        self.start()


class IgnoresTheDeadline(Candidate):
    """A leader notices that time is up when its next request has failed."""

    def check_deadline(self) -> None:
        return

    @property
    def request_timeout(self) -> float:
        return self.spec.times.renew_deadline / 2
