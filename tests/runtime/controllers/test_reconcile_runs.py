"""One run of a reconciler, to its end."""

from __future__ import annotations

import asyncio

import pytest

from aioinformer import ObjectKey, Priority, ReconcileContext, Result
from aioinformer._runtime.controllers.options import ControllerOptions
from aioinformer._runtime.controllers.reconcile_runs import ReconcileRuns
from aioinformer.errors import HandlerCancelled, ReconcileTimeout
from tests.runtime.controllers.reconcilers import key, loop_time, run_simulated

A = key("a")
CONTEXT = ReconcileContext(controller="it", reasons=(), retries=0, priority=Priority.NORMAL)


async def waits(key: ObjectKey, ctx: ReconcileContext) -> None:
    await asyncio.sleep(100)


def test_a_run_is_known_while_it_goes_on() -> None:
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


def test_cleaning_up_is_waited_for_and_not_broken_off() -> None:
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


def test_a_run_that_finishes_although_it_is_late_is_late() -> None:
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
