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


async def test_nothing_is_due_at_first(clock: Clock) -> None:
    assert not TimeSlice().expired


async def test_it_is_due_after_its_budget_of_work(clock: Clock) -> None:
    pace = TimeSlice()

    clock.work(SLICE_SECONDS)

    assert pace.expired


async def test_breathing_lets_others_have_a_turn_when_it_is_due(clock: Clock) -> None:
    pace, turns = TimeSlice(), list[str]()
    asyncio.get_running_loop().call_soon(turns.append, "other")

    clock.work(SLICE_SECONDS)
    await pace.maybe_yield()

    assert turns == ["other"]
    assert not pace.expired


async def test_breathing_costs_no_turn_of_the_loop_before_it_is_due(clock: Clock) -> None:
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


async def test_who_was_suspended_anyway_starts_anew(clock: Clock) -> None:
    pace = TimeSlice()
    clock.work(SLICE_SECONDS)

    pace.reset()

    assert not pace.expired


def test_the_budget_and_a_step_stay_within_the_promise_of_ten_milliseconds() -> None:
    assert SLICE_SECONDS * 2 < 0.010
    assert ITEMS_PER_STEP > 0
