"""Tests of the clock that a test advances, and of the event loop's clock."""

from __future__ import annotations

import asyncio

import pytest

from aioinformer.testing import LoopClock, ManualClock


async def test_a_wait_ends_at_its_deadline() -> None:
    clock, ready = ManualClock(10.0), asyncio.Event()
    waiting = asyncio.create_task(clock.until(ready, 15.0))
    await asyncio.sleep(0)
    assert clock.waiting == 1
    clock.advance(4.9)
    await asyncio.sleep(0)
    assert not waiting.done()
    clock.advance(0.1)
    await waiting
    assert (clock.now, clock.waiting) == (15.0, 0)


async def test_a_wait_ends_when_the_event_is_set_first() -> None:
    for clock in (ManualClock(), LoopClock()):
        ready = asyncio.Event()
        waiting = asyncio.create_task(clock.until(ready, clock.now + 1000.0))
        await asyncio.sleep(0)
        ready.set()
        await waiting


async def test_a_deadline_of_the_past_is_not_waited_for() -> None:
    for clock in (ManualClock(), LoopClock()):
        await clock.until(asyncio.Event(), clock.now)


async def test_a_cancelled_wait_leaves_nothing_behind() -> None:
    clock = ManualClock()
    waiting = asyncio.create_task(clock.until(asyncio.Event(), float("inf")))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert repr(clock) == "<ManualClock 0 s 0 waiting>"


def test_time_does_not_go_back() -> None:
    with pytest.raises(ValueError, match="go back"):
        ManualClock().advance(-1)
