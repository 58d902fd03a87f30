"""The request rate that all informers of a client share."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer._core.listwatch.rate_limit import Bucket, Limits, ServerLimiter
from aioinformer.errors import (
    ConnectionFailed,
    ConnectionLost,
    FetchError,
    ProtocolError,
    RequestTimedOut,
    Status,
    server_error,
)


def refused(code: int, retry_after: float | None = None) -> FetchError:
    return server_error(Status(code, retry_after=retry_after))


def taken(bucket: Bucket, arrivals: list[float]) -> list[float]:
    """Return the times at which requests that arrive at these times get their tokens."""
    now, moments = 0.0, list[float]()
    for arrival in arrivals:
        now = max(now, arrival, bucket.ready_at)
        bucket.take(now)
        moments.append(now)
    return moments


# -- the bucket --------------------------------------------------------------------------------


def test_a_full_bucket_gives_its_burst_at_once_and_then_its_rate() -> None:
    moments = taken(Bucket(20.0, 5), [0.0] * 8)
    assert moments == pytest.approx([0, 0, 0, 0, 0, 0.05, 0.1, 0.15])


def test_a_bucket_that_rests_fills_up_to_its_burst_and_no_further() -> None:
    bucket = Bucket(20.0, 5)
    taken(bucket, [0.0] * 5)
    assert taken(bucket, [100.0] * 6) == pytest.approx([100.0] * 5 + [100.05])


@given(
    rate=st.floats(0.1, 1000),
    burst=st.integers(1, 20),
    gaps=st.lists(st.floats(0, 2) | st.just(0.0), min_size=1, max_size=80),
    start=st.floats(0, 1e7),
)
def test_no_second_sees_more_than_the_rate_and_the_burst(
    rate: float, burst: int, gaps: list[float], start: float
) -> None:
    arrivals = [start := start + gap for gap in gaps]
    moments = taken(Bucket(rate, burst), arrivals)
    for first in moments:
        within = sum(1 for moment in moments if first <= moment < first + 1)
        assert within <= burst + rate + 1  # a token that is due at the very edge


@given(now=st.floats(0, 1e9), rate=st.floats(0.1, 1000), takes=st.integers(5, 300))
def test_a_token_is_available_at_the_announced_time(now: float, rate: float, takes: int) -> None:
    """A wait that leaves a fraction for which the clock doesn't move would spin for ever."""
    bucket = Bucket(rate, 5)
    taken(bucket, [now] * takes)
    slept = now
    for _ in range(3):  # rounding may cost a second look, and not a third
        if bucket.ready_at > slept:
            slept += bucket.ready_at - slept
    assert bucket.ready_at <= slept


# -- trouble -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        ConnectionFailed("refused"),
        ConnectionLost("reset"),
        RequestTimedOut("silent"),
        refused(429),
        refused(500),
        refused(503),
    ],
    ids=lambda error: str(error),
)
def test_a_server_is_failing_from_a_failure_until_a_success(
    error: FetchError,
) -> None:
    rates = ServerLimiter(Limits())
    rates.record_failure(error, 0.0)
    before = rates.failing
    rates.record_success()
    assert (before, rates.failing) == (True, False)
    assert rates.failures == 1


@pytest.mark.parametrize("code", [400, 401, 403, 404, 410, 422])
def test_a_deliberate_rejection_neither_starts_nor_ends_the_failing_state(code: int) -> None:
    rates = ServerLimiter(Limits())
    rates.record_failure(refused(code), 0.0)
    before = rates.failing
    rates.record_failure(refused(500), 0.0)
    rates.record_failure(refused(code), 0.0)
    assert (before, rates.failing) == (False, True)


def test_a_malformed_response_does_not_start_the_failing_state() -> None:
    rates = ServerLimiter(Limits())
    rates.record_failure(ProtocolError("not JSON"), 0.0)
    assert not rates.failing


# -- the gate ----------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [429, 503])
def test_a_retry_after_blocks_requests(code: int) -> None:
    rates = ServerLimiter(Limits())
    rates.record_failure(refused(code, 7.0), 100.0)
    assert rates.blocked_until == 107.0
    assert rates.ready_at == 107.0


def test_a_retry_after_blocks_requests_for_half_a_minute_at_most() -> None:
    rates = ServerLimiter(Limits())
    rates.record_failure(refused(429, 86400.0), 100.0)
    assert rates.blocked_until == 130.0


def test_a_short_retry_after_does_not_end_a_longer_one() -> None:
    rates = ServerLimiter(Limits())
    rates.record_failure(refused(429, 20.0), 100.0)
    rates.record_failure(refused(429, 1.0), 101.0)
    assert rates.blocked_until == 120.0


def test_a_success_does_not_end_a_retry_after() -> None:
    """It was on its way when the server began to refuse."""
    rates = ServerLimiter(Limits())
    rates.record_failure(refused(429, 20.0), 100.0)
    rates.record_success()
    assert rates.blocked_until == 120.0


@pytest.mark.parametrize(
    "error",
    [
        refused(429),
        refused(429, 0.0),
        refused(429, -5.0),
        refused(429, float("nan")),
        refused(504, 1.0),
        refused(403, 60.0),
    ],
    ids=["none", "0", "-5", "nan", "504", "403"],
)
def test_other_errors_do_not_block_requests(error: FetchError) -> None:
    rates = ServerLimiter(Limits())
    rates.record_failure(error, 100.0)
    assert rates.blocked_until < 100.0


# -- the numbers -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "limits",
    [
        {"lists": 0},
        {"burst": 0},
        {"restarts": 0.0},
        {"restarts": float("nan")},
        {"retry_after": -1.0},
        {"retry_after": float("nan")},
        {"slot_timeout": 0.0},
    ],
    ids=str,
)
def test_limits_that_permit_no_request_are_rejected(limits: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must"):
        Limits(**limits)


def test_the_state_shows_in_the_repr() -> None:
    rates = ServerLimiter(Limits())
    rates.record_failure(refused(429, 7.0), 100.0)
    assert repr(rates) == (
        "<ServerLimiter failing failures=1 blocked until 107.000 "
        "<Bucket 20/s burst=5 ready at -inf>>"
    )


def test_failures_are_counted_and_a_wait_below_a_second_is_kept() -> None:
    limiter = ServerLimiter(Limits())
    for _ in range(3):
        limiter.record_failure(refused(429, 0.5), 100.0)
    assert limiter.failures == 3
    assert limiter.blocked_until == 100.5


def test_the_least_limits_are_accepted() -> None:
    limits = Limits(lists=1, burst=1, restarts=0.5, retry_after=0, slot_timeout=0.5)
    assert (limits.lists, limits.burst, limits.retry_after) == (1, 1, 0)
