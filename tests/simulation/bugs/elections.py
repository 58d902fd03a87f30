"""The planted bugs of elections: each of the rules is seen to be needed."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from math import ceil
from typing import Any

from aioinformer.leaderelection.state.election import Election
from tests.simulation.bugs.planted_bug import Original, planted_bug, planted_bugs
from tests.simulation.leases.election_world import Candidate


@planted_bug(Election, "record_write")
def a_renewal_counts_from_its_response(
    record: Original, election: Any, lease: Any, now: float, jitter: float
) -> Any:
    """Count as client-go does."""
    writes = election._uncertain_writes
    writes[-1] = replace(writes[-1], sent=now)
    record(election, lease, now, jitter)


@planted_bug(Election, "step")
def the_times_in_a_lease_are_trusted(
    step: Original, election: Any, now: float, wall: dt.datetime
) -> Any:
    """Compare the times in another candidate's lease with the own clock."""
    record = election._observed_record
    if record is not None and record.renewed:
        renewed = dt.datetime.fromisoformat(record.renewed).timestamp()
        election._observed_at = renewed - (wall.timestamp() - now)
    return step(election, now, wall)


@planted_bug(Election, "_lease_expiry")
def the_lease_duration_is_ignored(_: Original, election: Any) -> Any:
    """Wait for other candidates as long as the own lease lasts."""
    return election._observed_at + election.times.lease_duration


@planted_bug(Election, "_next_record")
def the_duration_is_truncated(make: Original, election: Any, stamp: str) -> Any:
    """Write the duration without its fraction, as client-go does."""
    record = make(election, stamp)
    cut = max(1, int(election.times.lease_duration))
    return replace(record, duration=cut) if record.holder else record


@planted_bug(Election, "_match_own_write")
def the_identity_alone_is_trusted(match: Original, election: Any, record: Any) -> Any:
    """Take every lease with the own identity for the own one, as client-go does."""
    match(election, record)
    election._is_ours = election._is_ours or record.holder == election.identity


@planted_bug(Election, "_next_record")
def the_fencing_token_is_skipped(make: Original, election: Any, stamp: str) -> Any:
    """Take a Lease over without counting the transition."""
    record, seen = make(election, stamp), election._observed_record
    return record if seen is None else replace(record, transitions=seen.transitions)


@planted_bug(Election, "_match_own_write")
def a_leader_leads_for_the_whole_lease(match: Original, election: Any, record: Any) -> Any:
    """Leave no time for pauses."""
    match(election, record)
    if election.phase == "leading" and election._last_write is not None:
        election.leads_until = election._last_write.sent + ceil(election.times.lease_duration)


@planted_bug(Candidate, "finish_body")
def a_lease_is_released_first(finish: Original, candidate: Any) -> Any:
    """Release the lease before the body has ended, as client-go does after a loss."""
    if candidate._body_running and not candidate._body_ending and not candidate.world.time.calm:
        finish(candidate)
        candidate.release()


@a_lease_is_released_first.also(Candidate, "on_body_ended")
def _(_: Original, candidate: Any) -> Any:
    candidate.world.end_body(candidate)
    candidate._body_running = candidate._body_ending = False
    candidate.start()


@planted_bug(Candidate, "check_deadline")
def the_deadline_is_ignored(_: Original, candidate: Any) -> Any:
    """Notice the end of the time to lead only when the next request has failed."""
    return


@the_deadline_is_ignored.also(Candidate, "request_timeout")
def _(_: Original, candidate: Any) -> Any:
    return candidate.spec.times.renew_deadline / 2


BUGS = planted_bugs(globals())
