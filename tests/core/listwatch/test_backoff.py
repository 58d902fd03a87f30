"""The waits after failures."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioinformer._core.listwatch.backoff import Backoff, BackoffPolicy
from tests.core import strategies

EXACT = BackoffPolicy(factor=2.0, maximum=30.0, jitter=0.0)


@pytest.mark.client_go(14)
def test_waits_double_from_the_first_to_the_maximum() -> None:
    """client-go's reflector: 0.8 s to 30 s."""
    backoff = Backoff(EXACT)

    assert [backoff.next(0.0, 0.5) for _ in range(8)] == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30]
    assert backoff.failures == 8


def test_each_wait_is_about_half_as_long_as_the_outage_so_far_and_twenty_seconds_at_most() -> None:
    """An API that returns after 47 s is read within another 20 s; client-go waits 51 s by then."""
    backoff, now = Backoff(BackoffPolicy(jitter=0.0)), 0.0
    for _ in range(100):
        delay = backoff.next(now, 0.0)
        assert delay <= 0.5 * now + 0.81
        assert delay <= 20.0
        now += delay

    assert now / 100 > 18.0, "three a minute"


def test_a_wait_is_lengthened_by_up_to_its_own_length() -> None:
    assert Backoff().next(0.0, 0.0) == 0.8
    assert Backoff().next(0.0, 0.5) == pytest.approx(1.2)
    assert Backoff().next(0.0, 0.999) == pytest.approx(1.6, rel=0.01)


def test_the_maximum_is_lengthened_too() -> None:
    """20 to 40 s; client-go: up to 60 s. A fixed maximum would bring a thousand clients in step."""
    backoff = Backoff()
    for _ in range(10):
        backoff.next(0.0, 0.0)

    assert backoff.next(0.0, 0.5) == pytest.approx(30.0)


def test_after_a_quiet_time_the_next_failure_counts_as_the_first() -> None:
    backoff = Backoff(EXACT)
    backoff.next(0.0, 0.0)
    ended = backoff.next(0.8, 0.0) + 0.8

    assert not backoff.is_first(ended + 119.9)
    assert backoff.is_first(ended + 120.0)
    assert backoff.next(ended + 120.0, 0.0) == 0.8
    assert backoff.failures == 1


def test_the_quiet_time_begins_when_the_wait_ends() -> None:
    """client-go measures from the last reset, and restarts a continuous outage every 2 minutes."""
    backoff = Backoff(BackoffPolicy(initial=100.0, maximum=100.0, jitter=0.0))
    backoff.next(0.0, 0.0)

    assert not backoff.is_first(150.0)
    assert backoff.is_first(220.0)


def test_a_continuous_outage_is_never_forgotten() -> None:
    backoff, now, waits = Backoff(EXACT), 0.0, list[float]()
    for _ in range(100):
        waits.append(backoff.next(now, 0.0))
        now += waits[-1]

    assert waits[6:] == [30.0] * 94


def test_days_of_outage_do_not_overflow() -> None:
    backoff = Backoff(BackoffPolicy(factor=10.0, maximum=30.0, jitter=0.0))
    waits = [backoff.next(0.0, 0.0) for _ in range(2000)]

    assert waits[-1] == 30.0


def test_a_skip_counts_as_a_failure_without_a_wait() -> None:
    backoff = Backoff(EXACT)

    assert backoff.is_first(0.0)
    assert backoff.skip(0.0) == 0.0
    assert not backoff.is_first(1.0)
    assert backoff.next(1.0, 0.0) == 1.6
    assert backoff.failures == 2


def test_a_skip_after_a_quiet_time_starts_over() -> None:
    backoff = Backoff(EXACT)
    for _ in range(5):
        backoff.next(0.0, 0.0)
    backoff.skip(1000.0)

    assert backoff.failures == 1


def test_a_skip_in_the_middle_of_an_outage_is_one_more() -> None:
    backoff = Backoff(EXACT)
    backoff.next(0.0, 0.0)
    backoff.skip(1.0)

    assert backoff.failures == 2
    assert backoff.next(1.0, 0.0) == 3.2


@given(st.lists(st.tuples(strategies.seconds, strategies.unit_floats), max_size=40))
@settings(deadline=None)
def test_waits_never_shrink_while_failures_follow_each_other(
    failures: list[tuple[float, float]],
) -> None:
    backoff, now, bare = Backoff(), 0.0, 0.0
    for pause, jitter in failures:
        wait = backoff.next(now, jitter)
        assert bare <= wait / (1 + jitter) * 1.0001
        assert 0.8 <= wait <= 60.0
        bare = wait / (1 + jitter)
        now += wait + pause


@pytest.mark.parametrize(
    "wrong",
    [
        {"initial": 0.0},
        {"initial": -1.0},
        {"initial": 31.0},
        {"factor": 0.5},
        {"jitter": -0.1},
        {"reset_after": -1.0},
    ],
    ids=str,
)
def test_invalid_numbers_are_rejected(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        BackoffPolicy(**wrong)


def test_a_too_long_retry_after_is_limited() -> None:
    assert Backoff(BackoffPolicy(jitter=0.0)).next(0.0, 0.0, minimum=1e9) == 300.0


def test_a_failure_of_another_kind_during_a_long_outage_waits_long() -> None:
    """Waits that the server asked for don't grow the count. Three requests a minute are enough."""
    backoff, now = Backoff(EXACT), 0.0
    while now < EXACT.reset_after + 20.0:
        now += backoff.pause(now, 0.0, requested=1.0)

    assert backoff.next(now, 0.0) == 20.0
    backoff.record_answer()
    assert backoff.next(now, 0.0) == 1.6, "a server that could not be reached is back"
    later = now + 2 * EXACT.reset_after
    assert backoff.next(later, 0.0) == 0.8, "another outage"


# -- waits that the server asks for ---------------------------------------------------------------


def test_a_pause_keeps_the_count_of_an_outage_and_forgets_that_of_an_earlier_one() -> None:
    backoff = Backoff(EXACT)
    for _ in range(3):
        backoff.next(0.0, 0.0)

    backoff.pause(10.0, 0.0, requested=1.0)
    assert backoff.failures == 3
    backoff.pause(1_000.0, 0.0, requested=1.0)
    assert backoff.failures == 1


def test_a_short_pause_does_not_lengthen_the_waits_after_other_failures() -> None:
    backoff = Backoff(BackoffPolicy(initial=0.1, factor=2.0, jitter=0.0))
    backoff.pause(0.0, 0.0, requested=1.0)

    assert backoff.next(10.0, 0.0) == pytest.approx(0.2)


def test_a_response_ends_the_long_waits_that_the_server_requested() -> None:
    backoff = Backoff(BackoffPolicy(initial=0.1, factor=2.0, jitter=0.0))
    now = 0.0
    while now < 150.0:
        now += backoff.pause(now, 0.0, requested=1.0)
    backoff.record_answer()

    assert backoff.next(now, 0.0) == pytest.approx(0.2)
