"""The steps of a task are timed, and those that held the event loop are reported."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest
import uvloop

from aioinformer._runtime.tasks.blocking import describe_blocking, time_steps
from aioinformer.testing.simulation import run


class Clock:
    """A clock that work advances."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


async def hold(clock: Clock, *seconds: float) -> str:
    """Take one step for each number, which takes that time."""
    for each in seconds:
        clock.now += each
        await asyncio.sleep(0)
    return "done"


@pytest.mark.parametrize("seconds", [(0.3, 0.1), (0.1, 0.3), (0.1, 0.1, 0.3)])
async def test_a_step_that_held_the_loop_is_reported_whichever_it_is(
    seconds: tuple[float, ...],
) -> None:
    clock, reports = Clock(), list[float]()
    assert await asyncio.create_task(time_steps(hold(clock, *seconds), reports.append, clock))
    assert reports == [pytest.approx(0.3)]


async def test_short_steps_are_not_reported_however_many_they_are() -> None:
    clock, reports = Clock(), list[float]()
    await asyncio.create_task(time_steps(hold(clock, *[0.2] * 10), reports.append, clock))
    assert reports == []


async def test_the_time_between_two_steps_does_not_count() -> None:
    clock, reports = Clock(), list[float]()
    task = asyncio.create_task(time_steps(hold(clock, 0.1), reports.append, clock))
    await asyncio.sleep(0)
    clock.now += 10
    await task
    assert reports == []


async def test_a_step_that_raises_is_reported_as_well() -> None:
    clock, reports = Clock(), list[float]()

    async def fail() -> None:
        clock.now += 0.5
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await asyncio.create_task(time_steps(fail(), reports.append, clock))
    assert reports == [pytest.approx(0.5)]


async def test_a_step_that_begins_with_an_exception_is_timed() -> None:
    clock, reports = Clock(), list[float]()

    async def clean_up() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            clock.now += 0.5

    task = asyncio.create_task(time_steps(clean_up(), reports.append, clock))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert reports == [pytest.approx(0.5)]


async def test_without_a_report_no_step_is_timed() -> None:
    work = hold(Clock(), 1.0)
    assert time_steps(work, None, Clock()) is work
    await work


def test_the_report_says_how_long_and_what_to_do() -> None:
    assert describe_blocking(0.4137).startswith(
        "held the event loop for 0.41 s, while nothing else ran: await an async function or"
    )


class Broken(Exception):
    """An exception that can be referred to weakly."""


@pytest.mark.parametrize("run_loop", [asyncio.run, uvloop.run, partial(run, seed=0)])
def test_an_exception_of_a_timed_step_is_freed_without_garbage_collection(
    run_loop: Callable[[Coroutine[Any, Any, None]], None],
) -> None:
    freed = list[weakref.ref[Broken]]()

    async def fail() -> None:
        await asyncio.sleep(0)
        error = Broken()
        freed.append(weakref.ref(error))
        try:
            raise error
        finally:
            del error

    async def main() -> None:
        task = asyncio.create_task(time_steps(fail(), lambda _: None, Clock()))
        await asyncio.wait([task])
        task.exception()  # retrieved
        del task
        await asyncio.sleep(0)
        assert freed[0]() is None

    gc.disable()
    try:
        run_loop(main())
    finally:
        gc.enable()
