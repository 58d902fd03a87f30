"""Delays of failed keys: the numbers are those of client-go's own tests and defaults."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan

import pytest

from aioinformer.controllers.state.rate_limiters import (
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


def test_the_default_delays_are_those_of_client_go() -> None:
    delays = waits(ItemExponential(), 20)
    assert delays[:3] == [0.005, 0.01, 0.02]
    assert delays[17] == 0.005 * 2**17  # 655 s
    assert delays[18:] == [1000.0, 1000.0]


@pytest.mark.client_go(132)
@pytest.mark.parametrize("base", [0.005, 1e-300, 999.0])
def test_ten_thousand_failures_wait_for_the_maximum_without_an_overflow(base: float) -> None:
    limiter = limits(ItemExponential(base=base))
    assert waits(limiter, 10_000)[-1] == 1000.0
    assert limiter.retries("a") == 10_000


@pytest.mark.parametrize(("base", "cap"), [(0.0, 1), (-1.0, 1), (2.0, 1), (1.0, inf), (nan, 1)])
def test_an_exponential_limiter_rejects_invalid_numbers(base: float, cap: float) -> None:
    message = rf"^base must be above 0 and at most cap, not {base:g} and {cap:g}$"
    with pytest.raises(ValueError, match=message):
        ItemExponential(base, cap)


def test_a_delay_that_begins_at_its_maximum_stays_there() -> None:
    assert waits(ItemExponential(0.5, 0.5), 3) == [0.5, 0.5, 0.5]


# -- fast and slow -------------------------------------------------------------------------------


def test_the_first_attempts_are_fast_and_the_rest_are_slow() -> None:
    limiter = limits(FastSlow(0.005, 10.0, 3))
    assert waits(limiter, 5) == [0.005, 0.005, 0.005, 10.0, 10.0]
    assert waits(limiter, 1, key="b") == [0.005]
    limiter.forget("a")
    assert waits(limiter, 1) == [0.005]
    assert limiter.retries("a") == 1


def test_the_delays_and_the_fast_attempts_may_be_zero() -> None:
    assert waits(FastSlow(0.0, 3.0, 1), 2) == [0.0, 3.0]
    assert waits(FastSlow(3.0, 0.0, 1), 2) == [3.0, 0.0]
    assert waits(FastSlow(0.5, 3.0, 0), 1) == [3.0]


@pytest.mark.parametrize(
    "numbers",
    [(-1.0, 1.0, 3), (inf, 1.0, 3), (1.0, -1.0, 3), (1.0, inf, 3), (1.0, 1.0, -1)],
)
def test_a_fast_slow_limiter_rejects_invalid_numbers(numbers: tuple[float, float, int]) -> None:
    message = "^fast, slow and attempts must be 0 or more, and finite$"
    with pytest.raises(ValueError, match=message):
        FastSlow(*numbers)


# -- the bucket ----------------------------------------------------------------------------------


def test_a_burst_of_a_hundred_comes_at_once_and_then_ten_a_second() -> None:
    limiter = limits(TokenBucket())
    assert waits(limiter, 100) == [0.0] * 100
    assert waits(limiter, 3) == pytest.approx([0.1, 0.2, 0.3])


def test_the_delays_of_a_bucket_become_shorter_as_time_passes() -> None:
    limiter = limits(TokenBucket(rate=10, burst=1))
    assert waits(limiter, 2, now=50.0) == pytest.approx([0.0, 0.1])
    assert waits(limiter, 1, now=50.05) == pytest.approx([0.15])
    assert waits(limiter, 1, now=60.0) == [0.0]


def test_a_quiet_time_fills_the_bucket_up_to_its_burst_and_not_beyond() -> None:
    limiter = limits(TokenBucket(rate=10, burst=3))
    waits(limiter, 10)
    assert waits(limiter, 4, now=1000.0) == pytest.approx([0.0, 0.0, 0.0, 0.1])


def test_a_bucket_counts_no_keys() -> None:
    limiter = limits(TokenBucket(rate=10, burst=1))
    waits(limiter, 3)
    limiter.forget("a")
    assert limiter.retries("a") == 0
    assert waits(limiter, 1, key="b") == pytest.approx([0.3])


@pytest.mark.parametrize(("rate", "burst"), [(0.0, 1), (-1.0, 1), (inf, 1), (nan, 1), (1.0, 0)])
def test_a_bucket_rejects_invalid_numbers(rate: float, burst: int) -> None:
    message = f"^rate must be above 0 and burst at least 1, not {rate:g}, {burst}$"
    with pytest.raises(ValueError, match=message):
        TokenBucket(rate, burst)


def test_a_bucket_may_give_less_than_one_retry_a_second() -> None:
    assert waits(TokenBucket(rate=0.5, burst=1), 3) == [0.0, 2.0, 4.0]


# -- several -------------------------------------------------------------------------------------


@pytest.mark.client_go(132)
def test_max_of_returns_the_longest_delay_and_each_limiter_counts_the_failure() -> None:
    slow, fast = ItemExponential(base=1.0), FastSlow(3.0, 0.0, 1)
    limiter = limits(MaxOf(slow, fast))
    assert waits(limiter, 3) == [3.0, 2.0, 4.0]
    assert [each.retries("a") for each in (slow, fast, limiter)] == [3, 3, 3]
    limiter.forget("a")
    assert [each.retries("a") for each in (slow, fast, limiter)] == [0, 0, 0]


def test_max_of_returns_the_highest_number_of_retries() -> None:
    bucket, own = TokenBucket(), ItemExponential()
    limiter = MaxOf(bucket, own)
    waits(limiter, 2)
    assert limiter.retries("a") == 2


def test_max_of_without_a_limiter_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"^MaxOf needs at least one limiter$"):
        MaxOf()


def test_the_default_limiter_is_that_of_client_go_for_controllers() -> None:
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
def test_the_reprs_show_the_settings_and_the_number_of_keys(
    make: Callable[[], RateLimiter[str]], shown: str
) -> None:
    limiter = make()
    limiter.when("a", 0.0)
    assert repr(limiter) == shown
