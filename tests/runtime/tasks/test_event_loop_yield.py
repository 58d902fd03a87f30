"""Giving way every few milliseconds."""

from __future__ import annotations

import asyncio
import time

from aioinformer._runtime.tasks.event_loop import BUDGET, STAGING, STEP, Pace


def work(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


async def test_nothing_is_due_at_first() -> None:
    assert not Pace().due


async def test_it_is_due_after_its_budget_of_work() -> None:
    pace = Pace()

    work(BUDGET)

    assert pace.due


async def test_breathing_lets_others_have_a_turn_when_it_is_due() -> None:
    pace, turns = Pace(), list[str]()
    asyncio.get_running_loop().call_soon(turns.append, "other")

    work(BUDGET)
    await pace.breathe()

    assert turns == ["other"]
    assert not pace.due


async def test_breathing_costs_no_turn_of_the_loop_before_it_is_due() -> None:
    pace, turns = Pace(), list[str]()
    asyncio.get_running_loop().call_soon(turns.append, "other")

    await pace.breathe()

    assert turns == []


async def test_work_with_large_steps_gives_way_sooner() -> None:
    pace, turns = Pace(), list[str]()
    asyncio.get_running_loop().call_soon(turns.append, "other")
    work(STAGING)

    await pace.breathe()
    assert turns == []
    await pace.breathe(STAGING)

    assert turns == ["other"]
    assert STAGING < BUDGET


async def test_who_was_suspended_anyway_starts_anew() -> None:
    pace = Pace()
    work(BUDGET)

    pace.rested()

    assert not pace.due


def test_the_budget_and_a_step_stay_within_the_promise_of_ten_milliseconds() -> None:
    assert BUDGET * 2 < 0.010
    assert STEP > 0
