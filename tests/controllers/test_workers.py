"""The workers of a controller: the result of a run decides when its key runs again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from aioinformer import (
    Controller,
    ItemExponential,
    KubeObject,
    Metrics,
    ObjectKey,
    Priority,
    Reason,
    ReconcileContext,
    Result,
    SharedInformer,
)
from aioinformer.controllers.health import ReconcileErrors, WarningEvents
from aioinformer.controllers.options import ControllerOptions
from aioinformer.controllers.own_writes import OwnWrites
from aioinformer.controllers.reconcile_runs import ReconcileRuns
from aioinformer.controllers.run_writes import WriteTarget
from aioinformer.controllers.workers import Workers
from aioinformer.errors import PermanentError, TemporaryError
from aioinformer.testing import Cluster
from tests.controllers.reconcilers import (
    FOOS,
    RecordingReconciler,
    foo_informer,
    key,
    make_cluster,
    run_simulated,
    running_factory,
)

A = key("a")
ADDED = Reason("added", "foos")


class RecordedResults(Metrics):
    """The results of runs and their durations."""

    def __init__(self) -> None:
        self.results = list[tuple[str, float]]()

    def reconciled(self, controller: str, result: str, seconds: float) -> None:
        self.results.append((result, seconds))


class Setup:
    """The workers of a controller of foos, without triggers."""

    def __init__(
        self, informer: SharedInformer[KubeObject], runs: RecordingReconciler, **options: Any
    ) -> None:
        self.metrics = RecordedResults()
        given = ControllerOptions(
            name="foo", backoff=ItemExponential(1.0, 1000.0), metrics=self.metrics, **options
        )
        own_writes = OwnWrites("foo")
        self.workers = Workers(
            ReconcileRuns(runs, given),
            ReconcileErrors("foos", given),
            WarningEvents(informer, None),
            WriteTarget(given, informer, own_writes),
            given,
        )

    def request(self, key: ObjectKey = A, reason: Reason = ADDED) -> None:
        self.workers.enqueue(key, reason, Priority.NORMAL)

    @property
    def results(self) -> list[str]:
        return [result for result, _ in self.metrics.results]


@asynccontextmanager
async def working(
    runs: RecordingReconciler, cluster: Cluster | None = None, *, count: int = 1, **options: Any
) -> AsyncGenerator[Setup]:
    """Run workers for a cluster with the foo ``a``."""
    async with foo_informer(cluster or make_cluster("a")) as informer:
        await informer.wait_synced(timeout=10)
        setup = Setup(informer, runs, **options)
        tasks = [asyncio.create_task(setup.workers.work()) for _ in range(count)]
        try:
            yield setup
        finally:
            setup.workers.halt()
            await asyncio.wait(tasks)


@pytest.mark.parametrize(
    ("result", "name", "again"),
    [
        (None, "success", None),
        (Result(requeue_after=7), "requeue_after", 7.0),
        (Result(requeue=True), "requeue", 1.0),
        (ValueError("a bug"), "error", 1.0),
        (TemporaryError("busy"), "temporary_error", 1.0),
        (TemporaryError("busy", requeue_after=5), "temporary_error", 5.0),
        (PermanentError("wrong spec"), "permanent_error", None),
    ],
    ids=["none", "after", "requeue", "error", "temporary", "delay", "permanent"],
)
def test_the_result_of_a_run_decides_when_the_key_runs_again(
    result: Result | Exception | None, name: str, again: float | None
) -> None:
    runs = RecordingReconciler(results=[result])

    async def main() -> list[str]:
        async with working(runs) as setup:
            setup.request()
            await asyncio.sleep(100)
            assert setup.workers.runs == len(runs.runs)
            return setup.results

    assert run_simulated(main) == ([name] if again is None else [name, "success"])
    waits = [after - before for before, after in zip(runs.times, runs.times[1:], strict=False)]
    assert waits == ([] if again is None else [again])


def test_a_run_that_takes_too_long_has_a_result_of_its_own() -> None:
    runs = RecordingReconciler(duration=50)

    async def main() -> None:
        async with working(runs, timeout=3) as setup:
            setup.request()
            await asyncio.sleep(3.5)
            assert setup.metrics.results == [("timeout", 3.0)]
            assert setup.workers.failures.failures(A) == 1

    run_simulated(main)


def test_a_delay_of_the_program_is_no_failure_of_the_backoff() -> None:
    """Neither a run that was asked for nor a time that an error names lets the backoff grow."""
    runs = RecordingReconciler(
        results=[
            ValueError("1 s"),
            TemporaryError("busy", requeue_after=5),
            ValueError("2 s"),
            Result(requeue_after=3),
            ValueError("1 s again"),
        ]
    )

    async def main() -> None:
        async with working(runs) as setup:
            setup.request()
            await asyncio.sleep(30)

    run_simulated(main)
    waits = [after - before for before, after in zip(runs.times, runs.times[1:], strict=False)]
    assert waits == [1, 5, 2, 3, 1]


@pytest.mark.parametrize(
    ("reason", "runs_again"),
    [
        (Reason("resync", "foos"), False),
        (Reason("requeue"), False),
        (Reason("retry"), False),
        (Reason("updated", "foos"), True),
        (Reason("request"), True),
    ],
    ids=str,
)
def test_a_repetition_starts_no_run_after_a_permanent_error(
    reason: Reason, *, runs_again: bool
) -> None:
    runs = RecordingReconciler(results=[PermanentError("wrong spec")])

    async def main() -> None:
        async with working(runs) as setup:
            setup.request()
            await asyncio.sleep(1)
            assert setup.workers.failures.is_permanent(A)
            setup.request(reason=reason)
            await asyncio.sleep(1)
            assert (len(runs.runs) == 2) is runs_again
            assert setup.workers.failures.is_permanent(A) is not runs_again
            assert len(setup.workers.queue) == 0

    run_simulated(main)


def test_a_change_among_repetitions_starts_a_run_after_a_permanent_error() -> None:
    runs = RecordingReconciler(results=[PermanentError("wrong spec")])

    async def main() -> None:
        async with working(runs) as setup:
            setup.request()
            await asyncio.sleep(1)
            setup.request(reason=Reason("resync", "foos"))
            setup.request(reason=Reason("updated", "foos"))
            await asyncio.sleep(1)

    run_simulated(main)
    assert runs.causes == [["added"], ["resync", "updated"]]


def test_the_failures_of_an_absent_object_are_forgotten_with_the_last_request() -> None:
    absent = key("gone")
    runs = RecordingReconciler(results=[ValueError("a bug"), PermanentError("never")])

    async def main() -> None:
        async with working(runs) as setup:
            setup.request(absent)
            await asyncio.sleep(0.5)
            # The retry is still to come, and with it the failures before it.
            assert setup.workers.failures.failures(absent) == 1
            await asyncio.sleep(1)
            assert runs.contexts[1].retries == 1
            assert setup.workers.failures.failures(absent) == 0
            assert setup.workers.queue.retries(absent) == 0

    run_simulated(main)


def test_workers_that_are_halted_start_no_run_and_end() -> None:
    runs = RecordingReconciler(duration=5)

    async def main() -> None:
        async with working(runs, make_cluster("a", "b")) as setup:
            setup.request(A)
            setup.request(key("b"))
            await asyncio.sleep(1)
            before = setup.workers.halted
            setup.workers.halt()
            assert (before, setup.workers.halted) == (False, True)
            setup.request(key("b"))
        assert runs.ended == ["a"]

    run_simulated(main)


def test_a_key_of_a_cancelled_worker_can_be_taken_by_another() -> None:
    runs = RecordingReconciler(duration=5)

    async def main() -> None:
        async with foo_informer(make_cluster("a")) as informer:
            await informer.wait_synced(timeout=10)
            setup = Setup(informer, runs)
            first = asyncio.create_task(setup.workers.work())
            setup.request()
            await asyncio.sleep(1)
            first.cancel()
            await asyncio.wait({first})
            second = asyncio.create_task(setup.workers.work())
            setup.request()
            await asyncio.sleep(10)
            setup.workers.halt()
            await second
        assert (runs.cancelled, runs.ended, setup.workers.runs) == (["a"], ["a", "a"], 1)

    run_simulated(main)


def test_two_workers_never_run_one_key_at_once_and_reasons_during_a_run_start_the_next() -> None:
    runs = RecordingReconciler(duration=2)

    async def main() -> None:
        async with working(runs, count=2) as setup:
            setup.request()
            await asyncio.sleep(1)
            setup.request(reason=Reason("updated", "foos"))
            await asyncio.sleep(10)

    run_simulated(main)
    assert runs.max_active_runs == 1
    assert runs.causes == [["added"], ["updated"]]


def test_without_a_group_every_affected_key_runs() -> None:
    runs = RecordingReconciler()

    async def main() -> None:
        async with working(runs) as setup:
            setup.workers.enqueue_affected(A, Reason("updated", "bars"), Priority.LOW)
            await asyncio.sleep(1)

    run_simulated(main)
    assert [context.priority for context in runs.contexts] == [Priority.LOW]


def test_workers_show_their_runs_and_their_queue() -> None:
    async def main() -> None:
        async with working(RecordingReconciler()) as setup:
            setup.request()
            await asyncio.sleep(1)
            workers = setup.workers
            assert repr(workers) == f"<Workers of foo runs=1 {workers.queue!r}>"

    run_simulated(main)


def test_a_key_that_failed_is_said_to_succeed_again(caplog: pytest.LogCaptureFixture) -> None:
    runs: list[ObjectKey] = []

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
        runs.append(key)
        if len(runs) < 4:
            raise ValueError("not yet")

    async def main() -> None:
        async with (
            running_factory(make_cluster("a")) as informers,
            Controller(informers.informer(FOOS), reconcile, name="c"),
        ):
            await asyncio.sleep(60)

    caplog.set_level(logging.INFO, logger="aioinformer.controller")
    run_simulated(main)
    found = [each for each in caplog.messages if "succeeds again" in each]
    assert len(found) == 1
    assert found[0].startswith("controller c: default/a succeeds again after 3 failures, 0.0 s")
