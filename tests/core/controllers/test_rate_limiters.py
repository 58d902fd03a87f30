"""Delays of failed keys: the numbers are those of client-go's own tests and defaults."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan

import pytest

from aioinformer._core.controllers.rate_limiters import (
    FastSlow,
    ItemExponential,
    MaxOf,
    RateLimiter,
    TokenBucket,
    default_limiter,
)


def limits(limiter: RateLimiter[str]) -> RateLimiter[str]:
    """``limiter``: type checkers see here that it is one."""
    return limiter


def waits(
    limiter: RateLimiter[str], times: int, *, key: str = "a", now: float = 0.0
) -> list[float]:
    return [limiter.when(key, now) for _ in range(times)]


# -- exponential ---------------------------------------------------------------------------------


def test_a_wait_doubles_with_each_failure_of_a_key() -> None:
    limiter = limits(ItemExponential(base=0.001, cap=1.0))
    assert waits(limiter, 5) == [0.001, 0.002, 0.004, 0.008, 0.016]
    assert limiter.retries("a") == 5
    assert waits(limiter, 2, key="b") == [0.001, 0.002]


def test_a_key_that_is_forgotten_starts_again() -> None:
    limiter = limits(ItemExponential(base=0.001, cap=1.0))
    waits(limiter, 5)
    limiter.forget("a")
    limiter.forget("never seen")
    assert limiter.retries("a") == 0
    assert waits(limiter, 1) == [0.001]


def test_the_defaults_are_client_gos_5_ms_to_1000_s() -> None:
    delays = waits(ItemExponential(), 20)
    assert delays[:3] == [0.005, 0.01, 0.02]
    assert delays[17] == 0.005 * 2**17  # 655 s
    assert delays[18:] == [1000.0, 1000.0]


@pytest.mark.client_go(132)
@pytest.mark.parametrize("base", [0.005, 1e-300, 999.0])
def test_ten_thousand_failures_wait_the_cap_and_overflow_nothing(base: float) -> None:
    limiter = limits(ItemExponential(base=base))
    assert waits(limiter, 10_000)[-1] == 1000.0
    assert limiter.retries("a") == 10_000


@pytest.mark.parametrize(("base", "cap"), [(0.0, 1), (-1.0, 1), (2.0, 1), (1.0, inf), (nan, 1)])
def test_an_exponential_limiter_needs_numbers_that_can_be(base: float, cap: float) -> None:
    with pytest.raises(ValueError, match="base must be above 0 and at most cap"):
        ItemExponential(base, cap)


# -- fast and slow -------------------------------------------------------------------------------


def test_the_first_attempts_are_fast_and_the_rest_are_slow() -> None:
    limiter = limits(FastSlow(0.005, 10.0, 3))
    assert waits(limiter, 5) == [0.005, 0.005, 0.005, 10.0, 10.0]
    assert waits(limiter, 1, key="b") == [0.005]
    limiter.forget("a")
    assert waits(limiter, 1) == [0.005]
    assert limiter.retries("a") == 1


@pytest.mark.parametrize("numbers", [(-1.0, 1.0, 3), (1.0, inf, 3), (1.0, 1.0, -1)])
def test_a_fast_slow_limiter_needs_numbers_that_can_be(numbers: tuple[float, float, int]) -> None:
    with pytest.raises(ValueError, match="must be 0 or more"):
        FastSlow(*numbers)


# -- the bucket ----------------------------------------------------------------------------------


def test_a_burst_of_a_hundred_comes_at_once_and_then_ten_a_second() -> None:
    limiter = limits(TokenBucket())
    assert waits(limiter, 100) == [0.0] * 100
    assert waits(limiter, 3) == pytest.approx([0.1, 0.2, 0.3])


def test_places_in_line_come_nearer_as_time_goes_by() -> None:
    limiter = limits(TokenBucket(rate=10, burst=1))
    assert waits(limiter, 2, now=50.0) == pytest.approx([0.0, 0.1])
    assert waits(limiter, 1, now=50.05) == pytest.approx([0.15])
    assert waits(limiter, 1, now=60.0) == [0.0]


def test_a_quiet_time_fills_the_bucket_up_to_its_burst_and_not_beyond() -> None:
    limiter = limits(TokenBucket(rate=10, burst=3))
    waits(limiter, 10)
    assert waits(limiter, 4, now=1000.0) == pytest.approx([0.0, 0.0, 0.0, 0.1])


def test_a_bucket_knows_no_key() -> None:
    limiter = limits(TokenBucket(rate=10, burst=1))
    waits(limiter, 3)
    limiter.forget("a")
    assert limiter.retries("a") == 0
    assert waits(limiter, 1, key="b") == pytest.approx([0.3])


@pytest.mark.parametrize(("rate", "burst"), [(0.0, 1), (-1.0, 1), (inf, 1), (nan, 1), (1.0, 0)])
def test_a_bucket_rejects_numbers_that_let_no_key_through(rate: float, burst: int) -> None:
    with pytest.raises(ValueError, match="rate must be above 0"):
        TokenBucket(rate, burst)


# -- several -------------------------------------------------------------------------------------


@pytest.mark.client_go(132)
def test_of_several_limiters_the_longest_delay_counts_and_each_counts_the_failure() -> None:
    slow, fast = ItemExponential(base=1.0), FastSlow(3.0, 0.0, 1)
    limiter = limits(MaxOf(slow, fast))
    assert waits(limiter, 3) == [3.0, 2.0, 4.0]
    assert [each.retries("a") for each in (slow, fast, limiter)] == [3, 3, 3]
    limiter.forget("a")
    assert [each.retries("a") for each in (slow, fast, limiter)] == [0, 0, 0]


def test_the_most_retries_of_several_limiters_count() -> None:
    bucket, own = TokenBucket(), ItemExponential()
    limiter = MaxOf(bucket, own)
    waits(limiter, 2)
    assert limiter.retries("a") == 2


def test_no_limiter_at_all_is_not_several() -> None:
    with pytest.raises(ValueError, match="MaxOf needs at least one limiter"):
        MaxOf()


def test_the_default_is_client_gos_for_controllers() -> None:
    """Keys that fail alone wait by themselves; 101 that fail together share the bucket."""
    limiter = limits(default_limiter())
    assert waits(limiter, 4) == [0.005, 0.01, 0.02, 0.04]
    for number in range(96):
        assert limiter.when(f"key-{number}", 0.0) == 0.005
    assert limiter.when("one too many", 0.0) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("make", "shown"),
    [
        (ItemExponential, "<ItemExponential 0.005-1000 s keys=1>"),
        (lambda: FastSlow(1.0, 2.0, 3), "<FastSlow 3 x 1 s, then 2 s keys=1>"),
        (lambda: TokenBucket(10, 1), "<TokenBucket <Bucket 10/s burst=1 ready at 0.100>>"),
        (lambda: MaxOf(FastSlow(1.0, 2.0, 3)), "<MaxOf <FastSlow 3 x 1 s, then 2 s keys=1>>"),
    ],
)
def test_their_reprs_say_what_they_hold(make: Callable[[], RateLimiter[str]], shown: str) -> None:
    limiter = make()
    limiter.when("a", 0.0)
    assert repr(limiter) == shown
