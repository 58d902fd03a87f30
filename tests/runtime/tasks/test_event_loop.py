"""The running loop and task, and the errors where there is none."""

from __future__ import annotations

import asyncio
import time

import pytest

from aioinformer._runtime.tasks.event_loop import (
    check_loop,
    loop_clock,
    running_loop,
    running_task,
)
from aioinformer.errors import UsageError


async def test_the_loop_and_the_task_are_those_that_run() -> None:
    assert running_loop() is asyncio.get_running_loop()
    assert running_task() is asyncio.current_task()


def test_outside_of_a_loop_there_is_neither() -> None:
    for ask in (running_loop, running_task):
        with pytest.raises(UsageError, match="must be called in the event loop"):
            ask()


async def test_a_callback_is_no_task() -> None:
    raised: list[UsageError] = []

    def callback() -> None:
        try:
            running_task()
        except UsageError as error:
            raised.append(error)

    asyncio.get_running_loop().call_soon(callback)
    await asyncio.sleep(0)

    assert "not from a callback" in str(raised[0])


async def test_what_runs_in_another_loop_is_used_from_there() -> None:
    check_loop(None, "it")
    check_loop(asyncio.get_running_loop(), "it")

    other = asyncio.new_event_loop()
    try:
        with pytest.raises(UsageError, match="it runs in another event loop"):
            check_loop(other, "it")
    finally:
        other.close()


def test_the_clock_of_asyncios_own_loops_is_the_monotonic_clock() -> None:
    async def clock() -> object:
        return loop_clock()

    with asyncio.Runner() as runner:
        assert runner.run(clock()) is time.monotonic


def test_a_loop_with_a_time_of_its_own_keeps_that_time() -> None:
    class LateLoop(asyncio.SelectorEventLoop):
        def time(self) -> float:
            return super().time() + 1000

    async def difference() -> float:
        return loop_clock()() - time.monotonic()

    with asyncio.Runner(loop_factory=LateLoop) as runner:
        assert runner.run(difference()) == pytest.approx(1000, abs=100)


async def test_a_time_that_was_put_into_a_loop_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: 7.0)
    assert loop_clock()() == 7.0
