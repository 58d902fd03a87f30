"""A task that owns a task group, for something that is entered and left."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from aioinformer._runtime.tasks.supervisor import Supervisor
from aioinformer.errors import NotRunning, ShutdownIncomplete, UsageError
from tests.runtime.scripted_source import wait_until, yield_to_loop


def nothing() -> None:
    """Start no tasks."""


def nobody() -> tuple[str, ...]:
    return ()


async def leave(supervisor: Supervisor, error: BaseException | None = None) -> None:
    await supervisor.leave(error, timeout=30, running_names=nobody)


@asynccontextmanager
async def entered(supervisor: Supervisor) -> AsyncGenerator[Supervisor]:
    """Enter and leave as the factory's ``async with`` does."""
    await supervisor.enter(nothing)
    try:
        yield supervisor
    except BaseException as error:
        await leave(supervisor, error)
        raise
    else:
        await leave(supervisor)


async def within(supervisor: Supervisor, body: Callable[[], Awaitable[None]]) -> None:
    async with entered(supervisor):
        await body()


async def for_ever() -> None:
    await asyncio.get_running_loop().create_future()


async def fail(error: BaseException) -> None:
    raise error


# -- entering and leaving ---------------------------------------------------------------------


async def test_a_supervisor_is_new_then_running_then_ended() -> None:
    supervisor = Supervisor("work")
    states: list[str] = [supervisor.state]

    async with entered(supervisor):
        states.append(supervisor.state)
        assert supervisor.running
    states.append(supervisor.state)

    assert states == ["new", "running", "ended"]
    assert repr(supervisor) == "<Supervisor work ended tasks=0>"


async def test_the_start_function_of_a_supervisor_is_called_on_entering() -> None:
    supervisor, begun = Supervisor("work"), list[asyncio.Task[None]]()

    await supervisor.enter(lambda: begun.append(supervisor.spawn(for_ever(), name="child")))
    assert repr(supervisor) == "<Supervisor work running tasks=1>"
    await leave(supervisor)

    assert begun[0].cancelled()


async def test_a_supervisor_may_be_entered_and_left_in_different_tasks() -> None:
    supervisor = Supervisor("work")

    await asyncio.create_task(supervisor.enter(nothing))
    child = supervisor.spawn(for_ever(), name="child")
    await asyncio.create_task(leave(supervisor))

    assert child.cancelled()


async def test_a_supervisor_can_be_entered_only_once() -> None:
    supervisor = Supervisor("work")
    async with entered(supervisor):
        with pytest.raises(UsageError, match="the work runs once"):
            await supervisor.enter(nothing)
        assert supervisor.running


async def test_the_end_of_a_supervisor_waits_for_its_tasks() -> None:
    supervisor, log = Supervisor("work"), list[str]()

    async def tidy() -> None:
        try:
            await for_ever()
        finally:
            await yield_to_loop()
            log.append("tidied")

    async with entered(supervisor):
        supervisor.spawn(tidy(), name="tidy")
        await yield_to_loop()

    assert log == ["tidied"]


async def test_shutdown_incomplete_contains_the_names_of_running_tasks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    supervisor, finish = Supervisor("work"), asyncio.Event()
    await supervisor.enter(nothing)
    child = supervisor.spawn(_deaf(finish), name="deaf child")
    await yield_to_loop()

    with pytest.raises(ShutdownIncomplete, match=r"0\.001 s after .*: a handler") as caught:
        await supervisor.leave(None, timeout=0.001, running_names=lambda: ("a handler",))

    assert caught.value.left == ("a handler",)
    assert "a handler" in caplog.text
    finish.set()
    await asyncio.wait({child})
    await yield_to_loop()


async def test_shutdown_incomplete_contains_the_task_name_if_there_is_no_other_name() -> None:
    supervisor, finish = Supervisor("work"), asyncio.Event()
    await supervisor.enter(nothing)
    child = supervisor.spawn(_deaf(finish), name="deaf child")
    await yield_to_loop()

    with pytest.raises(ShutdownIncomplete) as caught:
        await supervisor.leave(None, timeout=0.001, running_names=nobody)

    assert caught.value.left == ("deaf child",)
    finish.set()
    await asyncio.wait({child})
    await yield_to_loop()


async def _deaf(finish: asyncio.Event) -> None:
    while not finish.is_set():
        with suppress(asyncio.CancelledError):
            await finish.wait()


# -- failures ---------------------------------------------------------------------------------


async def test_a_failure_cancels_the_body_and_is_raised_unchanged() -> None:
    supervisor, cause = Supervisor("work"), OSError("the cause")
    error = RuntimeError("a bug")
    error.__cause__ = cause

    async def body() -> None:
        supervisor.spawn(fail(error), name="child")
        await for_ever()

    with pytest.raises(RuntimeError, match="a bug") as caught:
        await within(supervisor, body)

    assert caught.value is error
    assert caught.value.__cause__ is cause


async def test_the_task_of_the_body_can_continue_after_a_failure() -> None:
    supervisor = Supervisor("work")

    with suppress(RuntimeError):
        async with entered(supervisor):
            supervisor.spawn(fail(RuntimeError()), name="child")
            await for_ever()

    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(0)


async def test_a_failure_ends_the_other_tasks() -> None:
    supervisor = Supervisor("work")

    others: list[asyncio.Task[None]] = []

    with suppress(RuntimeError):
        async with entered(supervisor):
            others.append(supervisor.spawn(for_ever(), name="other"))
            supervisor.spawn(fail(RuntimeError()), name="child")
            await for_ever()

    assert others[0].cancelled()


async def test_a_failure_is_raised_although_the_body_swallows_its_cancellation() -> None:
    supervisor = Supervisor("work")

    async def body() -> None:
        supervisor.spawn(fail(RuntimeError("a bug")), name="child")
        with suppress(asyncio.CancelledError):
            await for_ever()

    with pytest.raises(RuntimeError, match="a bug"):
        await within(supervisor, body)


async def test_the_error_of_the_body_has_priority_over_a_failure() -> None:
    supervisor = Supervisor("work")

    async def body() -> None:
        supervisor.spawn(fail(RuntimeError("a bug")), name="child")
        try:
            await for_ever()
        except asyncio.CancelledError:
            raise ValueError("mine") from None

    with pytest.raises(ValueError, match="mine"):
        await within(supervisor, body)


async def test_a_failure_has_priority_over_not_running_of_the_body() -> None:
    supervisor = Supervisor("work")

    async def body() -> None:
        supervisor.spawn(fail(RuntimeError("a bug")), name="child")
        raise NotRunning("the child has ended")

    with pytest.raises(RuntimeError, match="a bug"):
        await within(supervisor, body)


async def test_a_failure_is_raised_although_the_body_ends_at_the_same_time() -> None:
    """The tasks have ended, but nobody has been told yet."""
    supervisor, ended = Supervisor("work"), asyncio.Event()

    async def dying() -> None:
        try:
            await yield_to_loop(2)
        finally:
            ended.set()
        raise RuntimeError("a bug")

    async def body() -> None:
        supervisor.spawn(dying(), name="child")
        await ended.wait()

    with pytest.raises(RuntimeError, match="a bug"):
        await within(supervisor, body)


async def test_a_cancellation_from_outside_has_priority_over_a_failure() -> None:
    supervisor, inside = Supervisor("work"), asyncio.Event()

    async def body() -> None:
        async with entered(supervisor):
            inside.set()
            await for_ever()

    task = asyncio.create_task(body())
    await inside.wait()
    supervisor.spawn(fail(RuntimeError("a bug")), name="child")
    await wait_until(lambda: task.cancelling() > 0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_failure_while_leaving_is_raised() -> None:
    supervisor = Supervisor("work")

    async def clumsy() -> None:
        try:
            await for_ever()
        except asyncio.CancelledError:
            raise RuntimeError("while tidying up") from None

    async def body() -> None:
        supervisor.spawn(clumsy(), name="child")
        await yield_to_loop()

    with pytest.raises(RuntimeError, match="while tidying up"):
        await within(supervisor, body)


async def test_a_reported_failure_ends_the_body_before_the_tasks_have_ended(
    caplog: pytest.LogCaptureFixture,
) -> None:
    supervisor, finish, mine = Supervisor("work"), asyncio.Event(), RuntimeError("mine")
    children: list[asyncio.Task[None]] = []

    async def body() -> None:
        children.append(supervisor.spawn(_deaf(finish), name="deaf child"))
        await yield_to_loop()
        asyncio.get_running_loop().call_soon(supervisor.fail, mine)
        await for_ever()

    async def enter_and_leave() -> None:
        await supervisor.enter(nothing)
        try:
            await body()
        except BaseException as error:
            await supervisor.leave(error, timeout=0.001, running_names=nobody)
            raise

    with pytest.raises(RuntimeError, match="mine") as caught:
        await enter_and_leave()

    assert caught.value is mine
    assert "still running 0.001 s after being asked to end: deaf child" in caplog.text
    finish.set()
    await asyncio.wait(children)
    await yield_to_loop()


async def test_the_first_reported_failure_is_raised() -> None:
    supervisor, first = Supervisor("work"), RuntimeError("first")

    async def body() -> None:
        supervisor.spawn(fail(ValueError("second")), name="child")
        supervisor.fail(first)
        supervisor.fail(RuntimeError("third"))
        await for_ever()

    with pytest.raises(RuntimeError, match="first"):
        await within(supervisor, body)

    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_task_that_is_cancelled_alone_is_no_failure() -> None:
    supervisor = Supervisor("work")

    async with entered(supervisor):
        child = supervisor.spawn(for_ever(), name="child")
        child.cancel()
        await yield_to_loop()
        assert supervisor.running


# -- wrong use --------------------------------------------------------------------------------


async def test_a_supervisor_that_was_not_entered_is_usable_but_starts_no_task() -> None:
    supervisor = Supervisor("work")
    supervisor.check_usable()

    with pytest.raises(NotRunning, match="the work doesn't run"):
        supervisor.spawn(for_ever(), name="child")


async def test_a_supervisor_is_not_usable_after_its_end() -> None:
    supervisor = Supervisor("work")
    async with entered(supervisor):
        supervisor.check_usable()

    with pytest.raises(NotRunning, match="the work has ended; make another one"):
        supervisor.check_usable()


async def test_a_supervisor_is_not_usable_from_a_thread() -> None:
    supervisor, errors = Supervisor("work"), list[str]()

    def use() -> None:
        try:
            supervisor.check_usable()
        except UsageError as error:
            errors.append(str(error))

    async def use_in_another_loop() -> None:
        use()

    async with entered(supervisor):
        for target in (use, lambda: asyncio.run(use_in_another_loop())):
            thread = threading.Thread(target=target)
            thread.start()
            await asyncio.to_thread(thread.join)

    in_thread, in_loop = errors
    assert in_thread.startswith("this must be called in the event loop, not from a thread")
    assert in_loop.startswith("the work runs in another event loop; use it from there")
    assert all("run_coroutine_threadsafe()" in error for error in errors)
