"""Giving way every few milliseconds."""

from __future__ import annotations

import asyncio

import pytest

from aioinformer._runtime.tasks.event_loop import (
    ITEMS_PER_STEP,
    SLICE_SECONDS,
    STAGING_SLICE_SECONDS,
    TimeSlice,
)


class Clock:
    """The time of the running loop, which passes only by ``work``."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def work(self, seconds: float) -> None:
        """Let time pass, as a task does that computes."""
        self.now += seconds


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Return the clock of the running loop."""
    clock = Clock()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", clock)
    return clock


async def test_a_new_time_slice_is_not_expired(clock: Clock) -> None:
    assert not TimeSlice().expired


async def test_a_time_slice_expires_after_its_budget(clock: Clock) -> None:
    pace = TimeSlice()

    clock.work(SLICE_SECONDS)

    assert pace.expired


async def test_maybe_yield_yields_to_the_loop_when_the_time_slice_is_expired(clock: Clock) -> None:
    pace, turns = TimeSlice(), list[str]()
    asyncio.get_running_loop().call_soon(turns.append, "other")

    clock.work(SLICE_SECONDS)
    await pace.maybe_yield()

    assert turns == ["other"]
    assert not pace.expired


async def test_maybe_yield_does_not_yield_before_the_time_slice_is_expired(clock: Clock) -> None:
    pace, turns = TimeSlice(), list[str]()
    asyncio.get_running_loop().call_soon(turns.append, "other")

    await pace.maybe_yield()

    assert turns == []


async def test_a_smaller_budget_yields_sooner(clock: Clock) -> None:
    pace, turns = TimeSlice(), list[str]()
    asyncio.get_running_loop().call_soon(turns.append, "other")
    clock.work(STAGING_SLICE_SECONDS)

    await pace.maybe_yield(2 * STAGING_SLICE_SECONDS)
    assert turns == []
    await pace.maybe_yield(STAGING_SLICE_SECONDS)

    assert turns == ["other"]
    assert STAGING_SLICE_SECONDS < SLICE_SECONDS


async def test_reset_starts_a_new_time_slice(clock: Clock) -> None:
    pace = TimeSlice()
    clock.work(SLICE_SECONDS)

    pace.reset()

    assert not pace.expired


def test_the_budget_and_a_step_stay_within_the_promise_of_ten_milliseconds() -> None:
    assert SLICE_SECONDS * 2 < 0.010
    assert ITEMS_PER_STEP > 0
