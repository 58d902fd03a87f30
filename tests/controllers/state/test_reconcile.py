"""Reasons of a key, from the event to the run."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from aioinformer import Added, Deleted, Event, ObjectKey, Priority, Reason, Result, Updated
from aioinformer.controllers.state.reconcile import PendingReconciles, cause_of
from tests.runtime.scripted_source import pod

A, B = ObjectKey("web", "a"), ObjectKey("web", "b")
OLD, NEW = pod("a", 1), pod("a", 2)
UPDATED = Reason("updated", "pods")
INITIAL = Reason("initial", "pods")
RETRY = Reason("retry")


@pytest.mark.parametrize(
    ("event", "cause"),
    [
        pytest.param(Added(OLD), "added", id="added"),
        pytest.param(Added(OLD, initial=True), "initial", id="initial"),
        pytest.param(Updated(OLD, NEW), "updated", id="updated"),
        pytest.param(Updated(NEW, NEW, resync=True), "resync", id="resync"),
        pytest.param(Deleted(NEW), "deleted", id="deleted"),
    ],
)
def test_every_event_is_a_cause(event: Event, cause: str) -> None:
    assert cause_of(event) == cause


def test_reasons_of_one_key_are_merged_and_taken_once() -> None:
    pending = PendingReconciles()
    pending.add(A, INITIAL, Priority.LOW)
    pending.add(A, UPDATED, Priority.NORMAL)
    pending.add(A, UPDATED, Priority.NORMAL)
    pending.add(B, INITIAL, Priority.LOW)

    assert pending.take(A, 0.0) == ((INITIAL, UPDATED), Priority.NORMAL)
    assert pending.take(B, 0.0) == ((INITIAL,), Priority.LOW)
    assert pending.take(A, 0.0) == ((), Priority.LOW)
    assert len(pending) == 0


def test_a_scheduled_reason_counts_only_from_its_time_on() -> None:
    pending = PendingReconciles()
    pending.schedule(A, RETRY, Priority.NORMAL, 10.0)
    pending.add(A, UPDATED, Priority.NORMAL)

    assert pending.take(A, 5.0)[0] == (UPDATED,)
    assert pending.counts == (0, 1)
    assert pending.take(A, 10.0)[0] == (RETRY,)
    assert len(pending) == 0


def test_the_earliest_of_several_scheduled_times_counts() -> None:
    pending = PendingReconciles()
    for due in (30.0, 10.0, 20.0):
        pending.schedule(A, RETRY, Priority.NORMAL, due)
    pending.add(A, UPDATED, Priority.NORMAL)

    assert set(pending.take(A, 10.0)[0]) == {RETRY, UPDATED}
    assert len(pending) == 0


def test_a_timer_that_fires_slightly_early_still_takes_the_scheduled_reason() -> None:
    pending = PendingReconciles()
    pending.schedule(A, RETRY, Priority.LOW, 10.0)

    assert pending.take(A, 9.999_999) == ((RETRY,), Priority.LOW)
    assert len(pending) == 0


def test_a_key_with_waiting_and_scheduled_reasons_counts_once() -> None:
    pending = PendingReconciles()
    pending.schedule(A, RETRY, Priority.LOW, 10.0)
    pending.add(A, UPDATED, Priority.LOW)
    pending.add(B, UPDATED, Priority.LOW)

    assert (len(pending), pending.counts) == (2, (2, 1))
    assert repr(pending) == "<PendingReconciles waiting=2 scheduled=1>"


def test_a_key_is_pending_until_its_last_reason_is_taken() -> None:
    pending = PendingReconciles()
    pending.schedule(A, RETRY, Priority.LOW, 10.0)
    pending.add(A, UPDATED, Priority.LOW)

    assert (A in pending, B in pending) == (True, False)
    pending.take(A, 1.0)
    assert A in pending, "the retry is to come"
    pending.take(A, 10.0)
    assert A not in pending


@pytest.mark.parametrize("after", [-1.0, float("inf"), float("nan")])
def test_a_requeue_after_an_invalid_time_is_rejected(after: float) -> None:
    with pytest.raises(ValueError, match="requeue_after must be seconds"):
        Result(requeue_after=after)


def test_a_time_may_be_a_timedelta() -> None:
    assert Result(requeue_after=timedelta(minutes=2)) == Result(requeue_after=120)
    assert Result(requeue_after=timedelta(minutes=2)).requeue_after == 120.0
    with pytest.raises(ValueError, match="requeue_after must be seconds"):
        Result(requeue_after=timedelta(seconds=-1))


@pytest.mark.parametrize("after", ["30s", True, [30], "30"])
def test_a_time_of_another_type_is_rejected(after: Any) -> None:
    with pytest.raises(TypeError, match="must be seconds or a timedelta, not"):
        Result(requeue_after=after)


def test_a_time_without_the_name_of_the_argument_is_rejected_with_the_correction() -> None:
    wrong: Any = (30,)
    with pytest.raises(TypeError, match=r"write Result\(requeue_after=30\)"):
        Result(*wrong)


def test_requeue_is_true_or_false() -> None:
    seconds: Any = 30
    with pytest.raises(TypeError, match="requeue must be True or False, not 30"):
        Result(requeue=seconds)


def test_a_result_has_only_one_kind_of_requeue() -> None:
    message = r"^requeue=True waits by the backoff; give either requeue or requeue_after$"
    with pytest.raises(ValueError, match=message):
        Result(requeue=True, requeue_after=1)


def test_scheduled_reasons_are_merged() -> None:
    pending = PendingReconciles()
    pending.schedule(A, RETRY, Priority.LOW, 10.0)
    assert (len(pending), pending.delayed, pending.counts) == (1, 1, (0, 1))
    pending.schedule(A, UPDATED, Priority.NORMAL, 20.0)
    pending.schedule(B, INITIAL, Priority.LOW, 20.0)
    assert (len(pending), pending.delayed, pending.counts) == (2, 2, (0, 2))

    assert pending.take(A, 10.0) == ((RETRY, UPDATED), Priority.NORMAL)
    assert pending.take(B, 20.0) == ((INITIAL,), Priority.LOW)


def test_waiting_and_scheduled_reasons_are_taken_together_once_both_are_due() -> None:
    pending = PendingReconciles()
    pending.add(A, INITIAL, Priority.LOW)
    pending.schedule(A, RETRY, Priority.NORMAL, 10.0)
    assert (len(pending), pending.delayed) == (1, 0)

    assert pending.take(A, 10.0) == ((INITIAL, RETRY), Priority.NORMAL)
    assert pending.take(A, 20.0) == ((), Priority.LOW)


def test_the_priority_is_that_of_the_reasons_of_this_run() -> None:
    pending = PendingReconciles()
    pending.add(A, UPDATED, Priority.NORMAL)
    pending.add(B, UPDATED, Priority.LOW)

    assert pending.take(B, 0.0) == ((UPDATED,), Priority.LOW)
    assert pending.take(A, 0.0) == ((UPDATED,), Priority.NORMAL)


def test_seventy_reasons_remain_distinct_for_each_key() -> None:
    pending = PendingReconciles()
    reasons = [Reason("added", f"informer-{number}") for number in range(70)]
    for reason in reasons[::2]:
        pending.add(A, reason, Priority.LOW)
    for reason in reasons[1::2]:
        pending.add(B, reason, Priority.NORMAL)

    assert set(pending.take(A, 0.0)[0]) == set(reasons[::2])
    assert pending.take(B, 0.0) == (tuple(reasons[1::2]), Priority.NORMAL)


def test_a_result_requests_another_run_only_by_its_arguments() -> None:
    assert (Result().requeue_after, Result().requeue) == (None, False)
    assert (Result(requeue=True).requeue_after, Result(requeue=True).requeue) == (None, True)
    assert (Result(requeue_after=0).requeue_after, Result(requeue_after=0).requeue) == (0.0, False)
