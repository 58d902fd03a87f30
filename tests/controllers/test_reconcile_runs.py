"""One run of a reconciler, to its end."""

from __future__ import annotations

import asyncio
import functools
import threading
from typing import Any

import pytest

from aioinformer import Controller, ObjectKey, Priority, ReconcileContext, Result
from aioinformer.controllers.options import ControllerOptions
from aioinformer.controllers.reconcile_runs import ReconcileRuns, compile_functions
from aioinformer.errors import HandlerCancelled, ReconcileTimeout, ShutdownIncomplete
from tests.controllers.reconcilers import (
    FOOS,
    foo_informer,
    key,
    loop_time,
    make_cluster,
    run_simulated,
)

A = key("a")
CONTEXT = ReconcileContext(controller="it", reasons=(), retries=0, priority=Priority.NORMAL)


async def waits(key: ObjectKey, ctx: ReconcileContext) -> None:
    await asyncio.sleep(100)


def test_the_runs_under_way_have_keys_and_durations() -> None:
    async def main() -> None:
        runs = ReconcileRuns(waits, ControllerOptions(name="it"))
        task = asyncio.create_task(runs.run(A, CONTEXT))
        await asyncio.sleep(10)
        assert (runs.keys, runs.durations(loop_time())) == ((A,), {A: 10.0})
        assert repr(runs) == "<ReconcileRuns of it: 1 under way>"
        await task
        assert runs.keys == ()

    run_simulated(main)


def test_the_result_of_the_reconciler_is_returned() -> None:
    async def answers(key: ObjectKey, ctx: ReconcileContext) -> Result:
        return Result(requeue_after=5)

    async def main() -> Result | None:
        return await ReconcileRuns(answers, ControllerOptions(name="it")).run(A, CONTEXT)

    assert run_simulated(main) == Result(requeue_after=5)


def test_a_cancelled_run_finishes_its_cleanup_despite_further_cancellations() -> None:
    """The waiting task may be cancelled any number of times, as under an elector."""
    cleaned = list[float]()

    async def careful(key: ObjectKey, ctx: ReconcileContext) -> None:
        try:
            await asyncio.sleep(100)
        finally:
            await asyncio.sleep(5)
            cleaned.append(loop_time())

    async def main() -> None:
        task = asyncio.create_task(
            ReconcileRuns(careful, ControllerOptions(name="it", timeout=50)).run(A, CONTEXT)
        )
        for _ in range(4):
            await asyncio.sleep(1)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run_simulated(main)
    assert cleaned == [6.0]


class Odd(BaseException):
    """No Exception."""


async def is_odd(key: ObjectKey, ctx: ReconcileContext) -> None:
    raise Odd


def test_a_base_exception_is_wrapped_in_an_exception() -> None:
    async def main() -> None:
        with pytest.raises(HandlerCancelled, match="it raised Odd itself") as caught:
            await ReconcileRuns(is_odd, ControllerOptions(name="it")).run(A, CONTEXT)
        assert isinstance(caught.value.__cause__, Odd)

    run_simulated(main)


def test_an_error_of_a_late_run_is_the_cause_of_the_timeout() -> None:
    async def clumsy(key: ObjectKey, ctx: ReconcileContext) -> None:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            raise ValueError("while cleaning up") from None

    async def main() -> None:
        with pytest.raises(ReconcileTimeout, match="took longer than 5 s") as caught:
            await ReconcileRuns(clumsy, ControllerOptions(name="it", timeout=5)).run(A, CONTEXT)
        assert isinstance(caught.value.__cause__, ValueError)

    run_simulated(main)


def test_a_run_that_returns_after_its_timeout_raises_reconcile_timeout() -> None:
    async def finishes(key: ObjectKey, ctx: ReconcileContext) -> Result | None:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            return None
        return None

    async def main() -> None:
        with pytest.raises(ReconcileTimeout) as caught:
            await ReconcileRuns(finishes, ControllerOptions(name="it", timeout=5)).run(A, CONTEXT)
        assert caught.value.__cause__ is None

    run_simulated(main)


# -- functions of the program --------------------------------------------------------------------


def plain(key: ObjectKey, ctx: ReconcileContext) -> Result | None:
    return Result(requeue_after=1)


class AsyncObject:
    async def __call__(self, key: ObjectKey, ctx: ReconcileContext) -> None:
        pass


@functools.wraps(waits)
def decorated(*arguments: Any) -> Any:
    return waits(*arguments)


def test_a_plain_function_needs_run_in_thread() -> None:
    with pytest.raises(TypeError, match=r"plain is a plain function.*write 'async def', or pass"):
        compile_functions(plain, ControllerOptions(name="it"))
    compile_functions(plain, ControllerOptions(name="it", run_in_thread=True))


@pytest.mark.parametrize("function", [waits, AsyncObject(), functools.partial(waits), decorated])
def test_an_async_function_of_any_form_runs_in_the_loop(function: Any) -> None:
    compile_functions(function, ControllerOptions(name="it"))
    with pytest.raises(TypeError, match="is async; run_in_thread=True is for plain functions"):
        compile_functions(function, ControllerOptions(name="it", run_in_thread=True))


async def test_a_plain_function_runs_in_as_many_threads_as_may_run_at_once() -> None:
    cluster, threads = make_cluster(*"abcdef"), set[str]()
    meeting = threading.Barrier(3, timeout=20)  # passed by three calls at a time
    done = asyncio.Event()
    loop, count = asyncio.get_running_loop(), list[str]()

    async with foo_informer(cluster) as foos:

        def reconcile(key: ObjectKey, ctx: ReconcileContext) -> Result | None:
            assert foos.lister[key].key == key
            threads.add(threading.current_thread().name)
            meeting.wait()
            count.append(key.name)
            if len(count) == 6:
                loop.call_soon_threadsafe(done.set)
            return None

        async with Controller(foos, reconcile, run_in_thread=True, concurrency=3, name="it"):
            async with asyncio.timeout(20):
                await done.wait()
    assert sorted(count) == [*"abcdef"]
    assert threads == {"it_0", "it_1", "it_2"}


async def test_a_run_in_a_thread_is_retried_after_an_error_and_can_requeue() -> None:
    cluster, calls, done = make_cluster("a"), list[int](), asyncio.Event()
    loop = asyncio.get_running_loop()

    def reconcile(key: ObjectKey, ctx: ReconcileContext) -> Result | None:
        calls.append(ctx.retries)
        if len(calls) == 1:
            raise ValueError("no")
        if len(calls) == 2:
            return Result(requeue_after=0)
        loop.call_soon_threadsafe(done.set)
        return None

    async with (
        foo_informer(cluster) as foos,
        Controller(foos, reconcile, run_in_thread=True) as controller,
        asyncio.timeout(20),
    ):
        await done.wait()
        assert controller.health.failed_runs == 1
    assert calls == [0, 1, 0]


async def test_a_thread_reads_its_object_and_writes_through_the_loop() -> None:
    cluster, done, loop = make_cluster("a"), asyncio.Event(), asyncio.get_running_loop()
    cluster.add_resource(FOOS, status=True)

    def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
        assert ctx.obj is not None
        assert ctx.obj.key == ctx.key == key
        write = ctx.patch_status({"phase": "Ready"})
        asyncio.run_coroutine_threadsafe(write, loop).result(20)
        loop.call_soon_threadsafe(done.set)

    async with foo_informer(cluster) as foos, Controller(foos, reconcile, run_in_thread=True):
        async with asyncio.timeout(20):
            await done.wait()
    assert cluster.get(FOOS, "a", namespace="default")["status"] == {"phase": "Ready"}


async def test_run_waits_for_a_thread_beyond_the_timeout_and_async_with_does_not() -> None:
    cluster, release, entered = make_cluster("a"), threading.Event(), threading.Event()

    def hang(key: ObjectKey, ctx: ReconcileContext) -> None:
        entered.set()
        release.wait(30)

    async with foo_informer(cluster) as foos:
        left = Controller(foos, hang, run_in_thread=True, shutdown_timeout=0.0)
        with pytest.raises(ShutdownIncomplete, match="default/a"):
            async with left:
                await asyncio.to_thread(entered.wait)
        entered.clear()
        controller = Controller(foos, hang, run_in_thread=True, shutdown_timeout=0.0)
        task = asyncio.create_task(controller.run())
        await asyncio.to_thread(entered.wait)
        controller.stop()
        await asyncio.wait({task}, timeout=1.5)
        assert not task.done()
        release.set()
        with pytest.raises(ShutdownIncomplete):
            await task
