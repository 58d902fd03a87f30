"""The rules of an election, without a clock or a network."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer import Fencing, ObjectKey
from aioinformer.errors import Conflict, NotFound
from aioinformer.leaderelection.state.election import (
    CreateLease,
    Election,
    ElectionAction,
    ElectionEnded,
    ElectionTimes,
    LeaseLost,
    ReadLease,
    SleepUntil,
    UpdateLease,
)
from aioinformer.leaderelection.state.lease import LeaseRecord
from aioinformer.testing import Cluster

KEY = ObjectKey("web", "controller")
WALL = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
FAR_AWAY = dt.datetime(1999, 1, 1, tzinfo=dt.UTC)


def lease_of(holder: str, *, version: int = 1, renewed: int = 0, **spec: object) -> dict[str, Any]:
    """Return a Lease that another candidate has written."""
    base = {
        "holderIdentity": holder,
        "leaseDurationSeconds": 15,
        "leaseTransitions": 4,
        "acquireTime": "2026-01-01T00:00:00.000000Z",
        "renewTime": f"2026-01-01T00:00:{renewed:02}.000000Z",
    }
    metadata = {"name": KEY.name, "namespace": KEY.namespace, "resourceVersion": str(version)}
    return {"metadata": metadata, "spec": base | spec}


class Server:
    """Does what an election asks for, at a time."""

    def __init__(self, election: Election) -> None:
        self.election = election
        self.lease: dict[str, Any] | None = None
        self.version = 100

    def step(self, now: float) -> ElectionAction:
        """Ask once, and answer at once."""
        action = self.election.step(now, WALL + dt.timedelta(seconds=now))
        match action:
            case ReadLease():
                self.election.record_read(self.lease, now, 0.0)
            case CreateLease(body) | UpdateLease(body):
                self.store(body)
                assert self.lease is not None
                self.election.record_write(self.lease, now, 0.0)
            case _:
                pass
        return action

    def store(self, body: dict[str, Any]) -> None:
        """Write it."""
        self.version += 1
        self.lease = body | {"metadata": body["metadata"] | {"resourceVersion": str(self.version)}}

    def run(self, now: float) -> ElectionAction:
        """Do all there is to do at a time; what remains."""
        while isinstance(action := self.step(now), ReadLease | CreateLease | UpdateLease):
            pass
        return action

    @property
    def record(self) -> LeaseRecord:
        assert self.lease is not None
        return LeaseRecord.of(self.lease)


def candidate(identity: str = "a", now: float = 0.0, **times: float) -> Server:
    """One that runs."""
    election = Election(KEY, identity=identity, times=ElectionTimes(**times))
    election.seek(now)
    return Server(election)


def leader(now: float = 0.0) -> Server:
    """One that leads."""
    server = candidate(now=now)
    server.run(now)
    assert server.election.leads(now)
    return server


# -- taking it --------------------------------------------------------------------------------


def test_a_lease_that_is_not_there_is_created() -> None:
    server = candidate()
    assert server.step(0.0) == ReadLease()
    assert isinstance(server.step(0.0), CreateLease)
    assert server.election.leads(0.0)
    assert server.election.fencing == Fencing(0, "a")
    assert server.record == LeaseRecord(
        "a", 15, 0, "2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:00.000000Z"
    )


def test_a_lease_without_a_holder_is_taken_at_once() -> None:
    """client-go: an empty holderIdentity."""
    server = candidate()
    server.lease = lease_of("")
    server.run(0.0)
    assert server.election.fencing == Fencing(5, "a")


@pytest.mark.client_go(135)
def test_the_lease_of_another_holder_expires_when_it_is_unchanged_for_its_duration() -> None:
    server = candidate()
    server.lease = lease_of("b", leaseDurationSeconds=30)
    assert server.run(100.0) == SleepUntil(102.0)
    assert server.run(102.0) == SleepUntil(104.0)
    server.lease = lease_of("b", version=2, renewed=9, leaseDurationSeconds=30)
    assert server.run(104.0) == SleepUntil(106.0), "it was renewed"
    server.run(133.0)
    assert not server.election.leads(133.0)
    assert server.run(133.5) == SleepUntil(134.0), "not after the retry: when it is over"
    server.run(134.0)
    assert server.election.fencing == Fencing(5, "a")
    assert server.election.leader == "a"


def test_a_touched_label_is_no_renewal() -> None:
    server = candidate()
    server.lease = lease_of("b", version=1)
    server.run(0.0)
    server.lease = lease_of("b", version=2)
    server.run(10.0)
    server.run(15.0)
    assert server.election.leads(15.0)


@pytest.mark.parametrize("renewed", ["1999-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z"])
def test_the_times_in_a_lease_are_ignored(renewed: str) -> None:
    server = candidate()
    server.lease = lease_of("b", renewTime=renewed)
    server.run(0.0)
    server.run(14.9)
    assert not server.election.leads(14.9)
    server.run(15.0)
    assert server.election.leads(15.0)


def test_a_lease_without_a_duration_lasts_as_long_as_the_own_duration() -> None:
    server = candidate()
    server.lease = lease_of("b", leaseDurationSeconds=None)
    server.run(0.0)
    server.run(14.9)
    assert not server.election.leads(14.9)
    server.run(15.0)
    assert server.election.leads(15.0)


@pytest.mark.parametrize(("jitter", "wait"), [(0.0, 2.0), (0.5, 3.2), (0.999, 4.4)])
def test_the_wait_for_another_holder_has_a_jitter(jitter: float, wait: float) -> None:
    election = candidate().election
    election.step(0.0, WALL)
    election.record_read(lease_of("b"), 0.0, jitter)
    action = election.step(0.0, WALL)
    assert isinstance(action, SleepUntil)
    assert action.until == pytest.approx(wait, abs=0.01)


def test_a_lease_with_the_own_name_that_another_process_wrote_is_not_taken_at_once() -> None:
    """client-go takes it at once, and two programs of one name lead together."""
    server = candidate("twin")
    server.lease = lease_of("twin")
    server.run(0.0)
    server.run(14.0)
    assert not server.election.leads(14.0)
    server.run(15.0)
    assert server.election.fencing == Fencing(5, "twin")


# -- keeping it ---------------------------------------------------------------------------------


def test_a_leader_renews_each_retry_period_and_keeps_the_rest() -> None:
    server = leader()
    before = server.record
    assert server.step(1.9) == SleepUntil(2.0)
    assert isinstance(server.step(2.0), UpdateLease)
    after = server.record
    assert after.renewed > before.renewed
    assert (after.acquired, after.transitions) == (before.acquired, before.transitions)
    assert server.election.leads_until == 12.0


def test_leadership_lasts_from_the_time_at_which_the_renewal_was_sent() -> None:
    server = leader()
    action = server.election.step(2.0, WALL + dt.timedelta(seconds=2))
    assert isinstance(action, UpdateLease)
    server.store(action.body)
    assert server.lease is not None
    server.election.record_write(server.lease, 5.0, 0.0)
    assert server.election.leads_until == 12.0, "client-go: 15"
    assert server.election.step(5.0, WALL) == SleepUntil(7.0)


def test_after_a_failed_renewal_the_lease_is_read_at_once_and_then_each_retry_period() -> None:
    server = leader()
    election = server.election
    assert isinstance(election.step(2.0, WALL), UpdateLease)
    election.record_failure(3.0, 0.0)
    assert election.step(3.0, WALL) == ReadLease()
    election.record_failure(3.5, 0.0)
    assert election.step(3.5, WALL) == SleepUntil(5.5)
    assert election.step(5.5, WALL) == ReadLease()
    election.record_read(server.lease, 5.6, 0.0)
    assert isinstance(election.step(5.6, WALL), UpdateLease), "the Lease is unchanged"


def test_after_two_consecutive_conflicts_the_leader_waits() -> None:
    server = leader()
    election = server.election
    for _ in range(2):
        assert isinstance(election.step(2.0, WALL), UpdateLease)
        election.record_failure(2.0, 0.0)
        if isinstance(election.step(2.0, WALL), ReadLease):
            election.record_read(server.lease, 2.0, 0.0)
    assert election.step(2.0, WALL) == SleepUntil(4.0)


def test_a_renewal_whose_answer_was_lost_counts_from_when_it_was_sent() -> None:
    server = leader()
    election = server.election
    action = election.step(2.0, WALL + dt.timedelta(seconds=2))
    assert isinstance(action, UpdateLease)
    server.store(action.body)  # it was done
    election.record_failure(7.0, 0.0)
    assert election.step(7.0, WALL) == ReadLease()
    election.record_read(server.lease, 8.0, 0.0)
    assert election.leads_until == 12.0
    assert isinstance(election.step(8.0, WALL), UpdateLease), "and is renewed once more"


def test_a_takeover_whose_response_was_lost_is_written_again_if_it_is_too_old() -> None:
    server = candidate()
    election = server.election
    election.step(0.0, WALL)
    election.record_read(None, 0.0, 0.0)
    action = election.step(0.0, WALL)
    assert isinstance(action, CreateLease)
    election.record_failure(5.0, 0.0)
    server.store(action.body)
    election.step(5.0, WALL)
    election.record_read(server.lease, 11.0, 0.0)
    assert not election.leads(11.0)
    assert election.phase == "seeking"
    server.run(11.0)
    assert election.leads(11.0)
    assert election.fencing == Fencing(0, "a")
    assert election.leads_until == 21.0


def test_the_leadership_ends_at_the_renew_deadline_without_an_answer() -> None:
    server = leader()
    server.election.step(2.0, WALL)
    server.election.record_failure(2.0, 0.0)
    server.election.step(2.0, WALL)
    server.election.record_failure(7.0, 0.0)
    assert server.election.step(7.0, WALL) == SleepUntil(9.0)
    assert server.election.leads(9.999)
    assert not server.election.leads(10.0)
    assert server.election.step(10.0, WALL) == LeaseLost("it was not renewed for 10 s")
    server.lease = None
    assert isinstance(server.step(99.0), LeaseLost)


def test_a_leader_that_sees_another_has_lost() -> None:
    server = leader()
    server.election.step(2.0, WALL)
    server.election.record_failure(2.0, 0.0)
    server.lease = lease_of("b", version=500)
    server.step(2.0)
    assert server.step(2.0) == LeaseLost("b holds it")
    assert server.election.fencing is None


def test_a_leader_whose_lease_another_program_emptied_has_lost() -> None:
    server = leader()
    server.election.step(2.0, WALL)
    server.election.record_failure(2.0, 0.0)
    server.lease = lease_of("", version=500)
    assert server.run(2.0) == LeaseLost("another program released it")


def test_a_renewal_may_take_half_the_renew_deadline_or_the_remaining_time() -> None:
    server = leader()
    assert server.election.request_timeout(0.0) == 5.0
    assert server.election.request_timeout(8.0) == 2.0
    assert server.election.request_timeout(11.0) == 0.0


@pytest.mark.parametrize(("asked", "until"), [(0.0, 4.0), (3.0, 5.0), (60.0, 6.0)])
def test_a_leader_waits_as_long_as_the_server_asks_but_tries_once_more(
    asked: float, until: float
) -> None:
    election = leader().election
    election.step(2.0, WALL)
    election.record_failure(2.0, 0.0, minimum=asked)
    if not asked:
        election.step(2.0, WALL)
        election.record_failure(2.0, 0.0)
    assert election.step(2.0, WALL) == SleepUntil(until)


def test_a_candidate_waits_as_long_as_the_server_asks_within_reason() -> None:
    election = candidate().election
    election.step(0.0, WALL)
    election.record_failure(0.0, 0.0, minimum=60.0)
    assert election.step(0.0, WALL) == SleepUntil(60.0)
    election.step(60.0, WALL)
    election.record_failure(60.0, 0.0, minimum=1e9)
    assert election.step(60.0, WALL) == SleepUntil(360.0)


def test_a_write_that_a_webhook_changed_is_recognised_as_the_own_one() -> None:
    server = candidate()
    server.step(0.0)
    action = server.election.step(0.0, WALL)
    assert isinstance(action, CreateLease)
    body = action.body | {"spec": action.body["spec"] | {"renewTime": "2026-01-01T00:00:00Z"}}
    server.store(body)
    assert server.lease is not None
    server.election.record_write(server.lease, 0.0, 0.0)
    assert server.election.leads(0.0)
    server.election.step(2.0, WALL)
    server.election.record_failure(2.0, 0.0)
    server.step(2.0)
    assert server.election.leads(2.0), "seen again, it is still ours"


# -- giving it up -------------------------------------------------------------------------------


@pytest.mark.client_go(135)
def test_a_release_reads_the_lease_first_and_writes_only_if_it_is_ours() -> None:
    server = leader()
    server.election.release(5.0)
    assert server.step(5.0) == ReadLease()
    assert isinstance(server.step(5.0), UpdateLease)
    assert server.step(5.0) == ElectionEnded(released=True)
    assert (server.record.holder, server.record.duration, server.record.transitions) == ("", 1, 0)


@pytest.mark.parametrize("found", [lease_of("b", version=500), None])
def test_a_lease_of_another_holder_or_a_deleted_one_is_not_released(
    found: dict[str, Any] | None,
) -> None:
    server = leader()
    server.election.release(5.0)
    server.lease = found
    assert server.step(5.0) == ReadLease()
    assert server.step(5.0) == ElectionEnded(released=False)


def test_a_candidate_without_writes_has_nothing_to_release() -> None:
    server = candidate()
    server.lease = lease_of("b")
    server.run(0.0)
    server.election.release(1.0)
    assert server.step(1.0) == ElectionEnded(released=False)


def test_a_candidate_with_an_uncertain_write_reads_the_lease() -> None:
    server = candidate()
    server.step(0.0)
    action = server.election.step(0.0, WALL)
    assert isinstance(action, CreateLease)
    server.store(action.body)
    server.election.release(1.0)  # it was cancelled as it waited for the answer
    assert server.run(1.0) == ElectionEnded(released=True)


def test_a_release_whose_answer_was_lost_is_recognised() -> None:
    server = leader()
    server.election.release(5.0)
    server.step(5.0)
    action = server.election.step(5.0, WALL)
    assert isinstance(action, UpdateLease)
    server.store(action.body)
    server.election.record_failure(6.0, 0.0)
    assert server.run(6.0) == ElectionEnded(released=True)


def test_a_release_is_tried_until_the_lease_has_expired() -> None:
    server = leader()
    server.election.release(8.0)
    for now in (8.0, 10.0, 12.0, 14.0):
        assert server.election.step(now, WALL) == ReadLease()
        server.election.record_failure(now, 0.0)
    assert server.election.step(14.0, WALL) == SleepUntil(15.0), "then the lease is over anyway"
    assert server.election.step(15.0, WALL) == ElectionEnded(released=False)


def test_after_a_loss_nothing_is_written() -> None:
    server = leader()
    server.election.check_deadline(10.0)
    server.election.release(10.0)
    assert isinstance(server.step(10.0), LeaseLost)


def test_a_new_term_of_the_same_candidate_is_a_new_term() -> None:
    server = leader()
    server.election.check_deadline(10.0)
    assert not server.election.leads(10.0)
    server.election.seek(10.0)
    server.run(10.0)
    assert server.election.fencing == Fencing(1, "a"), (
        "at once: the candidate knows that no other leads"
    )


def test_the_transitions_of_a_deleted_lease_are_continued() -> None:
    server = candidate()
    server.lease = lease_of("b")
    server.run(0.0)
    server.lease = None
    server.run(2.0)
    assert server.election.fencing == Fencing(5, "a")


# -- uncertain writes -----------------------------------------------------------------------------


def test_a_creation_that_takes_effect_late_is_ours() -> None:
    """The Lease was read as missing after the creation was sent: it may still be under way."""
    server = candidate()
    election = server.election
    server.step(0.0)
    first = election.step(0.0, WALL)
    assert isinstance(first, CreateLease)
    election.record_failure(1.0, 0.0)
    assert election.step(1.0, WALL) == ReadLease()
    election.record_read(None, 1.0, 0.0)
    assert isinstance(election.step(1.0, WALL + dt.timedelta(seconds=1)), CreateLease)
    server.store(first.body)
    election.record_failure(1.5, 0.0)
    assert election.step(3.5, WALL) == ReadLease()
    election.record_read(server.lease, 3.5, 0.0)
    assert election.leads(3.5)
    assert election.leads_until == 10.0
    assert election.step(3.5, WALL) == SleepUntil(5.5), "it is renewed after the retry period"


def test_a_takeover_that_is_read_when_its_renew_deadline_has_passed_is_written_again() -> None:
    server = candidate()
    server.step(0.0)
    action = server.election.step(0.0, WALL)
    assert isinstance(action, CreateLease)
    server.store(action.body)
    assert server.lease is not None
    server.election.record_write(server.lease, 10.0, 0.0)
    assert (server.election.phase, server.election.leads(10.0)) == ("seeking", False)
    assert isinstance(server.step(10.0), UpdateLease), "at once"
    assert server.election.leads_until == 20.0
    assert server.election.fencing == Fencing(0, "a")


def test_a_leader_whose_lease_was_deleted_creates_it_again_in_the_same_term() -> None:
    server = leader()
    acquired = server.record.acquired
    server.election.step(2.0, WALL)
    server.election.record_failure(2.0, 0.0)
    server.lease = None
    assert server.step(2.0) == ReadLease()
    assert isinstance(server.step(2.0), CreateLease)
    assert server.election.fencing == Fencing(0, "a")
    assert (server.record.transitions, server.record.acquired) == (0, acquired)
    assert server.election.leads_until == 12.0


def test_a_renewal_states_our_duration_although_a_webhook_has_changed_it() -> None:
    server = candidate()
    server.step(0.0)
    action = server.election.step(0.0, WALL)
    assert isinstance(action, CreateLease)
    changed = {"leaseDurationSeconds": 60, "renewTime": "2026-01-01T00:00:00Z"}
    server.store(action.body | {"spec": action.body["spec"] | changed})
    assert server.lease is not None
    server.election.record_write(server.lease, 0.0, 0.0)
    assert server.election.leads(0.0)
    server.step(2.0)
    assert server.record.duration == 15


# -- when it is over ------------------------------------------------------------------------------


def test_the_lease_expires_its_duration_after_the_last_successful_write_was_sent() -> None:
    election = candidate().election
    assert election.renewed_at is None
    assert election.takeover_at == float("-inf"), "another may lead already"

    server = leader()
    election = server.election
    action = election.step(2.0, WALL)
    assert isinstance(action, UpdateLease)
    assert (election.renewed_at, election.takeover_at) == (0.0, 15.0), "not answered yet"
    server.store(action.body)
    assert server.lease is not None
    election.record_write(server.lease, 5.0, 0.0)
    assert (election.renewed_at, election.takeover_at) == (2.0, 17.0)


def test_a_renewal_that_states_something_new_is_due_at_once() -> None:
    server = leader()
    server.election.hasten(0.5)
    assert isinstance(server.step(0.5), UpdateLease)
    assert server.step(0.5) == SleepUntil(2.5)
    server.election.hasten(3.0)
    assert isinstance(server.step(2.5), UpdateLease), "it is not put off"


def test_a_request_that_failed_is_not_repeated_earlier_than_it_would_have_been() -> None:
    election = leader().election
    election.step(2.0, WALL)
    election.record_failure(2.0, 0.0)
    assert election.step(2.0, WALL) == ReadLease()
    election.record_failure(3.0, 0.0)
    election.hasten(3.5)
    assert election.step(3.5, WALL) == SleepUntil(5.0)


def test_a_candidate_does_not_ask_earlier_because_it_has_something_to_state() -> None:
    server = candidate()
    server.lease = lease_of("b")
    server.run(0.0)
    server.election.hasten(1.0)
    assert server.step(1.0) == SleepUntil(2.0)


def test_a_request_of_a_release_ends_when_the_lease_has_expired() -> None:
    server = leader()
    assert candidate().election.request_timeout(0.0) == 5.0
    server.election.release(8.0)
    assert server.election.request_timeout(8.0) == 5.0
    assert server.election.request_timeout(12.0) == 3.0
    assert server.election.request_timeout(16.0) == 0.0


def test_a_release_is_given_up_after_the_renew_deadline_at_the_latest() -> None:
    server = leader()
    server.election.release(1.0)
    for now in (1.0, 3.0, 5.0, 7.0, 9.0):
        assert server.election.step(now, WALL) == ReadLease()
        server.election.record_failure(now, 0.0)
    assert server.election.step(10.9, WALL) == SleepUntil(11.0)
    assert server.election.step(11.0, WALL) == ElectionEnded(released=False)


# -- numbers ------------------------------------------------------------------------------------


def test_the_duration_is_written_rounded_up() -> None:
    server = candidate(lease_duration=4.2, renew_deadline=3, retry_period=1)
    server.run(0.0)
    assert server.record.duration == 5


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ({"lease_duration": 10.0}, r"lease_duration \(10 s\) .* renew_deadline \(10 s\)"),
        ({"renew_deadline": 2.4}, r"renew_deadline \(2.4 s\) .* 1.2 times retry_period \(2 s\)"),
        ({"retry_period": 0.0}, "retry_period must be above 0"),
        ({"lease_duration": float("nan")}, "lease_duration must be above 0"),
        ({"renew_deadline": -1.0}, "renew_deadline must be above 0 and finite, not -1 s"),
    ],
)
def test_the_error_for_invalid_times_names_them(times: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ElectionTimes(**times)


def test_a_candidate_needs_an_identity() -> None:
    with pytest.raises(ValueError, match="identity is empty"):
        Election(KEY, identity="", times=ElectionTimes())


def test_the_state_shows_in_the_repr() -> None:
    assert repr(leader().election) == "<Election of web/controller by a leading leader='a'>"
    idle = Election(KEY, identity="a", times=ElectionTimes())
    assert idle.step(0.0, WALL) == ElectionEnded(False)
    assert (idle.lost_reason, idle.leader, idle.fencing, idle.leads(0.0)) == ("", "", None, False)


# -- any order ----------------------------------------------------------------------------------

WHAT = st.sampled_from(["done", "done", "done, no answer", "rejected"])
TURN = st.tuples(st.integers(0, 1), st.floats(0.0, 6.0), st.floats(0.0, 4.0), WHAT)


@given(st.lists(TURN, max_size=60))
def test_at_most_one_candidate_leads_and_no_term_is_counted_twice(
    turns: list[tuple[int, float, float, str]],
) -> None:
    """Turn by turn: who, after how long, how long its request takes, and what becomes of it."""
    cluster, now, terms = Cluster(), 0.0, list[Fencing]()
    both = [candidate("a").election, candidate("b").election]
    for who, pause, takes, what in turns:
        now += pause
        election = both[who]
        if election.phase == "lost":
            election.seek(now)
        action = election.step(now, FAR_AWAY + dt.timedelta(seconds=who * 7777 + now))
        if isinstance(action, ReadLease | CreateLease | UpdateLease):
            answer = None if what == "rejected" else done(cluster, action)
            now += min(takes, election.request_timeout(now))
            if what == "done":
                tell(election, action, answer, now)
            else:
                election.record_failure(now, 0.5)
        leading = [each for each in both if each.leads(now)]
        assert len(leading) < 2
        for each in leading:
            assert each.fencing is not None
            if not terms or each.fencing != terms[-1]:
                assert not terms or each.fencing > terms[-1]
                terms.append(each.fencing)


def done(cluster: Cluster, action: ReadLease | CreateLease | UpdateLease) -> dict[str, Any] | None:
    try:
        match action:
            case ReadLease():
                return cluster.get("leases", KEY.name, namespace=KEY.namespace)
            case CreateLease(body):
                return cluster.create("leases", body, namespace=KEY.namespace)
            case UpdateLease(body):
                return cluster.update("leases", body, namespace=KEY.namespace)
    except (NotFound, Conflict):
        return None


def tell(
    election: Election,
    action: ReadLease | CreateLease | UpdateLease,
    answer: dict[str, Any] | None,
    now: float,
) -> None:
    if isinstance(action, ReadLease):
        election.record_read(answer, now, 0.5)
    elif answer is None:
        election.record_failure(now, 0.5)
    else:
        election.record_write(answer, now, 0.5)
