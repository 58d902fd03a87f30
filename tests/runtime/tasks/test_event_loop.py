"""The running loop and task, and the errors where there is none."""

from __future__ import annotations

import asyncio

import pytest

from aioinformer._runtime.tasks.event_loop import check_loop, running_loop, running_task
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
