"""The thread that logs the stack of code which holds the event loop."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
import time

import pytest
import uvloop

from aioinformer._runtime.tasks.blocking_stacks import INTERVAL, format_stack, log_stacks
from aioinformer.testing.simulation import run
from tests.runtime.scripted_source import wait_until

THREAD_NAME = "aioinformer blocking stacks"


def hold_loop(seconds: float = 0.6) -> None:
    time.sleep(seconds)


async def hold_until_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Hold the loop, more than once if this machine is too busy to look at it."""
    while not caplog.records:
        hold_loop()
        await asyncio.sleep(0)


async def check_stack(caplog: pytest.LogCaptureFixture) -> None:
    with log_stacks():
        await asyncio.create_task(hold_until_logged(caplog))
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("aioinformer.blocking", logging.WARNING)
    assert record.thread != threading.get_ident()
    text = record.getMessage()
    assert text.startswith(
        "the event loop has been held for more than 0.25 s, while nothing else runs, in\n"
    )
    assert text.endswith("in hold_loop\n    time.sleep(seconds)")


async def test_the_stack_of_code_that_holds_the_loop_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    await check_stack(caplog)


def test_it_is_logged_on_uvloop_as_well(caplog: pytest.LogCaptureFixture) -> None:
    uvloop.run(check_stack(caplog))


async def test_short_steps_are_not_logged_however_many_they_are(
    caplog: pytest.LogCaptureFixture,
) -> None:
    longest, began = 0.0, time.monotonic()
    with log_stacks():
        for _ in range(10):
            hold_loop(0.05)
            await asyncio.sleep(0)
            longest, began = max(longest, time.monotonic() - began), time.monotonic()

    # A machine that stalls makes a step long, and such a step may be logged.
    assert caplog.records == [] or longest > 0.2


def test_a_loop_that_does_not_run_is_not_held(caplog: pytest.LogCaptureFixture) -> None:
    stacks = log_stacks()

    async def enter() -> None:
        stacks.__enter__()

    async def leave() -> None:
        stacks.__exit__(None, None, None)

    with asyncio.Runner() as runner:
        runner.run(enter())
        hold_loop()
        runner.run(leave())
    wait_until_ended()

    assert caplog.records == []


# -- the thread ----------------------------------------------------------------------------------


def count_threads() -> int:
    return sum(each.name == THREAD_NAME for each in threading.enumerate())


def wait_until_ended() -> None:
    """Wait for the threads of earlier tests, which end by themselves."""
    deadline = time.monotonic() + 10
    while count_threads() and time.monotonic() < deadline:
        hold_loop(0.01)
    assert count_threads() == 0


async def test_all_blocks_of_a_loop_share_one_thread_which_ends_with_the_last_of_them() -> None:
    wait_until_ended()
    with log_stacks():
        with log_stacks():
            assert count_threads() == 1
        assert count_threads() == 1
    await wait_until(lambda: count_threads() == 0)


def test_a_loop_that_was_closed_inside_of_a_block_ends_the_thread() -> None:
    left = log_stacks()

    async def enter() -> None:
        left.__enter__()

    asyncio.run(enter())
    hold_loop(2 * INTERVAL)
    left.__exit__(None, None, None)
    wait_until_ended()


def test_a_simulated_loop_has_no_thread() -> None:
    async def main() -> None:
        with log_stacks():
            assert count_threads() == 0

    wait_until_ended()
    run(main(), seed=0)


async def test_a_failed_start_of_the_thread_is_logged_as_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with log_stacks():
        pass
    (message,) = caplog.messages
    assert message == (
        "no stack of code that blocks the event loop will be logged: can't start new thread"
    )


# -- the text ------------------------------------------------------------------------------------


async def test_a_stack_begins_with_the_code_of_the_program() -> None:
    async def outer() -> str:
        return inner()

    def inner() -> str:
        frame = inspect.currentframe()
        assert frame is not None
        return format_stack(frame)

    stack = await asyncio.create_task(outer())

    lines = [each for each in stack.splitlines() if each.startswith("  File ")]
    assert [each.rsplit(" ", 1)[1] for each in lines] == ["outer", "inner"]
    assert "return inner()" in stack
