"""Giving way every few milliseconds."""

from __future__ import annotations

import asyncio

from aioinformer._runtime.tasks.event_loop import (
    ITEMS_PER_STEP,
    SLICE_SECONDS,
    STAGING_SLICE_SECONDS,
    TimeSlice,
)
from tests.runtime.loop_clock import LoopClock


async def test_a_new_time_slice_is_not_expired(loop_clock: LoopClock) -> None:
    assert not TimeSlice().expired


async def test_a_time_slice_expires_after_its_budget(loop_clock: LoopClock) -> None:
    pace = TimeSlice()

    loop_clock.work(SLICE_SECONDS)

    assert pace.expired


async def test_maybe_yield_yields_to_the_loop_when_the_time_slice_is_expired(
    loop_clock: LoopClock,
) -> None:
    pace, turns = TimeSlice(), list[str]()
    asyncio.get_running_loop().call_soon(turns.append, "other")

    loop_clock.work(SLICE_SECONDS)
    await pace.maybe_yield()

    assert turns == ["other"]
    assert not pace.expired


async def test_maybe_yield_does_not_yield_before_the_time_slice_is_expired(
    loop_clock: LoopClock,
) -> None:
    pace, turns = TimeSlice(), list[str]()
    asyncio.get_running_loop().call_soon(turns.append, "other")

    await pace.maybe_yield()

    assert turns == []


async def test_a_smaller_budget_yields_sooner(loop_clock: LoopClock) -> None:
    pace, turns = TimeSlice(), list[str]()
    asyncio.get_running_loop().call_soon(turns.append, "other")
    loop_clock.work(STAGING_SLICE_SECONDS)

    await pace.maybe_yield(2 * STAGING_SLICE_SECONDS)
    assert turns == []
    await pace.maybe_yield(STAGING_SLICE_SECONDS)

    assert turns == ["other"]
    assert STAGING_SLICE_SECONDS < SLICE_SECONDS


async def test_reset_starts_a_new_time_slice(loop_clock: LoopClock) -> None:
    pace = TimeSlice()
    loop_clock.work(SLICE_SECONDS)

    pace.reset()

    assert not pace.expired


def test_the_budget_and_a_step_stay_within_the_promise_of_ten_milliseconds() -> None:
    assert SLICE_SECONDS * 2 < 0.010
    assert ITEMS_PER_STEP > 0
