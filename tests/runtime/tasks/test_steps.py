"""A coroutine whose steps pass through another object is the same to its task and to debuggers."""

from __future__ import annotations

import asyncio
import gc
import inspect
import weakref

import pytest

from aioinformer._runtime.tasks.steps import CoroutineSteps


async def work(events: list[str]) -> str:
    events.append("began")
    try:
        await asyncio.sleep(0)
        await asyncio.sleep(3600)
    except asyncio.CancelledError as error:
        events.append(f"cancelled {error}")
        raise
    finally:
        events.append("ended")
    return "never"


async def answer() -> int:
    await asyncio.sleep(0)
    return 42


async def test_a_task_receives_the_result() -> None:
    assert await asyncio.create_task(CoroutineSteps(answer())) == 42


async def test_it_can_be_awaited_in_a_task() -> None:
    assert await CoroutineSteps(answer()) == 42


async def test_an_exception_of_an_awaited_future_is_raised_in_the_coroutine() -> None:
    future = asyncio.get_running_loop().create_future()

    async def waits() -> str:
        try:
            await future
        except ValueError as error:
            return str(error)
        return ""

    task = asyncio.create_task(CoroutineSteps(waits()))
    await asyncio.sleep(0)
    future.set_exception(ValueError("broken"))
    assert await task == "broken"


async def test_a_cancellation_reaches_the_coroutine_with_its_message() -> None:
    events: list[str] = []
    task = asyncio.create_task(CoroutineSteps(work(events)))
    await asyncio.sleep(0)
    task.cancel("enough")
    with pytest.raises(asyncio.CancelledError):
        await task
    assert events == ["began", "cancelled enough", "ended"]
    assert task.cancelled()


async def test_a_task_that_is_cancelled_before_its_first_step_runs_nothing() -> None:
    events: list[str] = []
    task = asyncio.create_task(CoroutineSteps(work(events)))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert events == []


async def test_an_abandoned_coroutine_is_closed() -> None:
    events: list[str] = []
    steps = CoroutineSteps(work(events))
    steps.send()
    steps.close()
    assert events == ["began", "ended"]


async def test_a_failed_coroutine_is_freed_without_garbage_collection() -> None:
    class Held:
        """An object in a frame of the coroutine."""

    held: list[weakref.ref[Held]] = []

    async def fails() -> None:
        local = Held()
        held.append(weakref.ref(local))
        await asyncio.get_running_loop().create_future()

    task = asyncio.create_task(CoroutineSteps(fails()))
    await asyncio.sleep(0)
    gc.collect()
    gc.disable()
    try:
        task.cancel()
        await asyncio.wait([task])
        del task
        await asyncio.sleep(0)
        assert held[0]() is None
    finally:
        gc.enable()


async def test_a_debugger_sees_the_coroutine() -> None:
    task = asyncio.create_task(CoroutineSteps(work([])))
    await asyncio.sleep(0)

    (frame,) = task.get_stack()
    assert frame.f_code is work.__code__
    assert "coro=<work() running at" in repr(task)
    steps = task.get_coro()
    assert isinstance(steps, CoroutineSteps)
    assert inspect.getcoroutinestate(steps) == inspect.CORO_SUSPENDED
    assert steps.cr_await is not None
    assert repr(steps).startswith("<CoroutineSteps of <coroutine object work at")
    task.cancel()
