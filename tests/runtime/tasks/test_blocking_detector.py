"""The thread that reports tasks which hold the event loop."""

from __future__ import annotations

import asyncio
import inspect
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

import pytest
import uvloop

from aioinformer._runtime.tasks import blocking_detector
from aioinformer._runtime.tasks.blocking_detector import (
    BLOCKING_REPORTER,
    HeldTime,
    describe_blocking,
    detect_blocking,
    format_stack,
    scheduler_of,
)
from aioinformer.testing.simulation import run
from tests.runtime.scripted_source import wait_until

THREAD_NAME = "aioinformer blocking detector"


class RecordedReports:
    def __init__(self) -> None:
        self.stacks: list[str] = []
        self.threads: set[int] = set()
        self.recorded: list[float] = []

    def report_blocking(self, stack: str) -> None:
        self.stacks.append(stack)
        self.threads.add(threading.get_ident())

    def record_blocking(self, seconds: float) -> None:
        self.recorded.append(seconds)
        asyncio.get_running_loop()  # raises outside of a loop


@contextmanager
def reported_to(reports: RecordedReports) -> Generator[None]:
    """Make the tasks that are created in the block belong to one reporter."""
    token = BLOCKING_REPORTER.set(reports)
    try:
        yield
    finally:
        BLOCKING_REPORTER.reset(token)


def hold_loop(seconds: float = 0.4) -> None:
    time.sleep(seconds)


async def hold_until_reported(reports: RecordedReports) -> None:
    """Hold the loop, more than once if this machine is too busy to look at it."""
    while not reports.stacks:
        hold_loop()
        await asyncio.sleep(0)


async def check_report() -> None:
    reports = RecordedReports()
    with detect_blocking():
        with reported_to(reports):
            task = asyncio.create_task(hold_until_reported(reports))
        await task
        await wait_until(lambda: len(reports.recorded) > 0)
    assert threading.get_ident() not in reports.threads
    assert reports.recorded[0] > 0.25
    assert "time.sleep(seconds)" in reports.stacks[0]


async def test_a_task_that_holds_the_loop_is_reported_with_its_stack() -> None:
    await check_report()


def test_a_task_is_reported_on_uvloop_as_well() -> None:
    uvloop.run(check_report())


async def test_a_task_that_the_reported_task_starts_belongs_to_the_same_reporter() -> None:
    reports = RecordedReports()

    async def start_child() -> None:
        await asyncio.gather(hold_until_reported(reports), asyncio.sleep(0))

    with detect_blocking(), reported_to(reports):
        await asyncio.create_task(start_child())

    assert len(reports.stacks) == 1


async def test_short_steps_are_not_reported_however_many_they_are() -> None:
    reports, steps = RecordedReports(), list[float]()

    async def take_short_steps() -> None:
        for _ in range(8):
            began = time.monotonic()
            hold_loop(0.05)
            steps.append(time.monotonic() - began)
            await asyncio.sleep(0)

    with detect_blocking(), reported_to(reports):
        await asyncio.gather(*(asyncio.create_task(take_short_steps()) for _ in range(3)))

    # A machine that stalls makes a step long, and such a step may be reported.
    assert len(reports.stacks) <= sum(seconds > 0.2 for seconds in steps)


async def test_a_task_without_a_reporter_is_not_reported() -> None:
    reports = RecordedReports()
    with detect_blocking():
        hold_loop()
        await asyncio.sleep(0)
    assert reports.stacks == []


# -- the thread ----------------------------------------------------------------------------------


def count_detectors() -> int:
    return sum(each.name == THREAD_NAME for each in threading.enumerate())


def wait_until_ended() -> None:
    """Wait for the threads of earlier tests, which end by themselves."""
    deadline = time.monotonic() + 10
    while count_detectors() and time.monotonic() < deadline:
        hold_loop(0.01)
    assert count_detectors() == 0


async def test_all_blocks_of_a_loop_share_one_thread_which_ends_with_the_last_of_them() -> None:
    wait_until_ended()
    with detect_blocking():
        with detect_blocking():
            assert count_detectors() == 1
        assert count_detectors() == 1
    await wait_until(lambda: count_detectors() == 0)


def test_a_loop_that_was_closed_inside_of_a_block_ends_the_thread() -> None:
    left = detect_blocking()

    async def enter() -> None:
        left.__enter__()
        BLOCKING_REPORTER.set(RecordedReports())
        hold_loop(0.1)

    asyncio.run(enter())
    left.__exit__(None, None, None)
    wait_until_ended()


def test_a_simulated_loop_has_no_thread() -> None:
    async def main() -> None:
        with detect_blocking():
            assert count_detectors() == 0

    wait_until_ended()
    run(main(), seed=0)


async def test_a_failed_start_of_the_thread_is_logged_as_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with detect_blocking():
        pass
    (message,) = caplog.messages
    assert message == (
        "handlers that block the event loop will not be reported: can't start new thread"
    )


# -- time ----------------------------------------------------------------------------------------


def scheduler(*readings: tuple[float, float] | None) -> Callable[[], tuple[float, float] | None]:
    return iter(readings).__next__


def test_time_in_a_call_that_sleeps_counts() -> None:
    held = HeldTime(10.0, scheduler((1.0, 0.0), (1.0, 0.0), (1.0, 0.0)))
    held.update(10.1)
    held.update(10.3)
    assert held.seconds == pytest.approx(0.3)


def test_time_that_a_starved_process_waits_for_a_cpu_does_not_count() -> None:
    held = HeldTime(10.0, scheduler((1.0, 0.0), (1.06, 0.44), (1.06, 0.44)))
    held.update(10.5)
    assert held.seconds == pytest.approx(0.06)
    held.update(10.6)
    assert held.seconds == pytest.approx(0.16)


def test_a_long_c_function_counts_although_the_detector_can_not_run_meanwhile() -> None:
    held = HeldTime(10.0, scheduler((1.0, 0.0), (6.0, 0.0)))
    held.update(15.0)
    assert held.seconds == pytest.approx(5.0)


def test_a_process_that_was_stopped_for_long_has_not_held_the_loop_for_all_of_that_time() -> None:
    held = HeldTime(10.0, scheduler((1.0, 0.0), (1.0, 0.0)))
    held.update(1000.0)
    assert held.seconds == pytest.approx(1.0)


def test_the_number_of_checks_is_used_if_the_kernel_reports_no_times() -> None:
    held = HeldTime(10.0, scheduler(None, None, None))
    held.update(10.05)
    held.update(20.0)
    assert held.seconds == pytest.approx(0.15)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells these times")
def test_the_time_of_a_thread_is_read_from_the_kernel() -> None:
    read = scheduler_of(threading.get_native_id())
    before = read()
    began = time.thread_time()
    while time.thread_time() - began < 0.05:
        pass
    after = read()
    assert before is not None
    assert after is not None
    assert after[0] - before[0] > 0.03
    assert scheduler_of(0)() is None


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
    text = describe_blocking(stack)
    assert text.startswith("has held the event loop for more than 0.25 s")
    assert text.endswith(stack.rstrip())


def test_the_interval_permits_several_looks_before_a_report() -> None:
    assert blocking_detector.INTERVAL * 4 < blocking_detector.BLOCKING_LIMIT
