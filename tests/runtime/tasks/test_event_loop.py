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


def test_the_running_loop_and_task_raise_usage_error_outside_of_a_loop() -> None:
    for ask in (running_loop, running_task):
        with pytest.raises(UsageError, match="must be called in the event loop"):
            ask()


async def test_running_task_raises_usage_error_in_a_callback() -> None:
    raised: list[UsageError] = []

    def callback() -> None:
        try:
            running_task()
        except UsageError as error:
            raised.append(error)

    asyncio.get_running_loop().call_soon(callback)
    await asyncio.sleep(0)

    assert "not from a callback" in str(raised[0])


async def test_check_loop_rejects_the_use_in_another_loop() -> None:
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


def test_the_clock_of_a_loop_with_its_own_time_uses_that_time() -> None:
    class LateLoop(asyncio.SelectorEventLoop):
        def time(self) -> float:
            return super().time() + 1000

    async def difference() -> float:
        return loop_clock()() - time.monotonic()

    with asyncio.Runner(loop_factory=LateLoop) as runner:
        assert runner.run(difference()) == pytest.approx(1000, abs=100)


async def test_the_clock_of_a_loop_with_a_replaced_time_method_uses_that_method(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: 7.0)
    assert loop_clock()() == 7.0
