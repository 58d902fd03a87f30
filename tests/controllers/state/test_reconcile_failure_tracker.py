"""Keys that fail, and their failures."""

from __future__ import annotations

from math import inf

from aioinformer import FailingKey, ObjectKey
from aioinformer.controllers.state.reconcile import MAX_ERROR_LENGTH, FailureTracker

A, B, C = (ObjectKey("web", name) for name in "abc")


def test_a_failing_key_is_stored_with_its_count_and_times() -> None:
    failing = FailureTracker()
    assert failing.record_failure(A, "Conflict: no", now=10.0, due=11.0) == 1
    assert failing.record_failure(A, "Invalid: no", now=12.0, due=16.0) == 2

    assert failing.get(A, 14.0) == FailingKey(
        key=A, error="Invalid: no", failures=2, since=4.0, retry_in=2.0
    )
    assert failing.failures(A) == 2


def test_the_remaining_time_of_an_attempt_that_is_due_is_zero() -> None:
    failing = FailureTracker()
    failing.record_failure(A, "no", now=0.0, due=1.0)
    found = failing.get(A, 5.0)
    assert found is not None
    assert found.retry_in == 0.0
    assert str(found) == "web/a failed 1 time in 5.0 s, next attempt in 0.0 s: no"


def test_a_key_that_succeeds_is_forgotten() -> None:
    failing = FailureTracker()
    failing.record_failure(A, "no", now=0.0, due=1.0)
    failing.record_success(A)
    failing.record_success(B)

    assert (len(failing), failing.failures(A), failing.get(A, 0.0)) == (0, 0, None)
    assert failing.record_failure(A, "no", now=2.0, due=3.0) == 1


def test_the_keys_that_have_failed_for_longest_are_first() -> None:
    failing = FailureTracker()
    for moment, key in enumerate((C, A, B, C)):
        failing.record_failure(key, "no", now=float(moment), due=9.0)

    assert [each.key for each in failing.longest_failing(2, 9.0)] == [C, A]
    assert len(failing) == 3


def test_a_long_error_is_cut() -> None:
    failing = FailureTracker()
    failing.record_failure(A, "x" * 10_000, now=0.0, due=1.0)
    found = failing.get(A, 0.0)
    assert found is not None
    assert len(found.error) == MAX_ERROR_LENGTH


def test_an_error_is_stored_as_one_line() -> None:
    failing = FailureTracker()
    failing.record_failure(A, "ValueError: one\ntwo\x1b[2J", now=0.0, due=1.0)
    found = failing.get(A, 0.0)
    assert found is not None
    assert found.error == "ValueError: one two [2J"


def test_a_permanent_failure_has_no_next_attempt() -> None:
    failing = FailureTracker()
    failing.record_failure(A, "PermanentError: no", now=0.0, due=inf)
    failing.record_failure(B, "no", now=0.0, due=1.0)

    assert (failing.is_permanent(A), failing.is_permanent(B)) == (True, False)
    found = failing.get(A, 5.0)
    assert found is not None
    assert (found.permanent, found.retry_in) == (True, inf)
    assert str(found) == (
        "web/a failed 1 time in 5.0 s, no attempt before the object changes: PermanentError: no"
    )
    failing.record_success(A)
    assert not failing.is_permanent(A)


def test_a_failing_key_has_the_number_of_its_failures() -> None:
    failing = FailureTracker()
    assert not failing.is_permanent(A)
    failing.record_failure(A, "no", now=0.0, due=1.5)
    failing.record_failure(A, "no", now=1.0, due=2.5)
    found = failing.get(A, 1.0)

    assert found is not None
    assert (found.failures, found.permanent) == (2, False)
    assert str(found) == "web/a failed 2 times in 1.0 s, next attempt in 1.5 s: no"
    assert repr(failing) == "<FailureTracker 1 key>"


def test_an_error_of_the_greatest_length_is_whole_and_a_longer_one_ends_with_dots() -> None:
    failing = FailureTracker()
    failing.record_failure(A, "x" * 497, now=0.0, due=1.0)
    failing.record_failure(B, "x" * 498, now=0.0, due=1.0)

    assert [each.error for each in failing.longest_failing(2, 0.0)] == [
        "x" * 497,
        "x" * 497 + "...",
    ]
