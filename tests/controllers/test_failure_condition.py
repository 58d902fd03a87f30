"""The condition that a controller writes when a run of an object has failed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec import Struct

from aioinformer import Controller, Result, SharedInformerFactory
from aioinformer.errors import InformerError, PermanentError, UsageError
from aioinformer.testing import Cluster, ClusterSource, Faults
from tests.controllers.reconcilers import (
    BACKOFF,
    BARS,
    DOUBLING_LIMITER,
    FOOS,
    RecordingReconciler,
    body_with_owner,
    create_foo,
    key,
    make_cluster,
    run_simulated,
    update_foo,
)

FINALIZER = "example.com/cleanup"


def make_status_cluster(*names: str) -> Cluster:
    """Return a cluster whose foos have a status subresource."""
    cluster = Cluster()
    cluster.add_resource(FOOS, status=True)
    cluster.add_resource(BARS)
    for name in names:
        create_foo(cluster, name)
    return cluster


def condition_of(cluster: Cluster, name: str = "a") -> dict[str, Any]:
    (found,) = cluster.get(FOOS, name)["status"]["conditions"]
    return dict(found)


@asynccontextmanager
async def running(
    cluster: Cluster, runs: Any, *, faults: Faults | None = None, **keywords: Any
) -> AsyncGenerator[Controller]:
    source = ClusterSource(cluster, faults or Faults())
    async with SharedInformerFactory(source, backoff=BACKOFF) as informers:
        foos, bars = informers.informer(FOOS), informers.informer(BARS)
        controller = Controller(
            foos, runs, name="it", failure_condition="Reconciled", **keywords
        ).owns(bars)
        async with controller:
            yield controller


def test_a_failure_and_the_success_after_it_are_shown_in_the_status() -> None:
    cluster = make_status_cluster("a")
    runs = RecordingReconciler(results=[PermanentError("spec.size is missing")])

    async def main() -> None:
        async with running(cluster, runs) as controller:
            await cluster.settled(controller)
            failed = condition_of(cluster)
            assert (failed["status"], failed["reason"]) == ("False", "PermanentError")
            assert failed["message"] == "PermanentError: spec.size is missing"
            assert failed["observedGeneration"] == 1
            update_foo(cluster, "a", size=1)
            await cluster.settled(controller)
            shown = condition_of(cluster)
            assert (shown["status"], shown["reason"]) == ("True", "ReconcileSucceeded")
            assert (shown["message"], shown["observedGeneration"]) == ("", 2)
            assert shown["lastTransitionTime"] >= failed["lastTransitionTime"]

    run_simulated(main)


def test_the_event_of_the_condition_starts_no_second_failing_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = make_status_cluster("a")
    runs = RecordingReconciler(results=[PermanentError("never")] * 9)

    async def main() -> None:
        async with running(cluster, runs) as controller:
            await cluster.settled(controller)
            assert runs.names == ["a"]
            cluster.create(BARS, body_with_owner("child", "a"))
            await cluster.settled(controller)
            assert runs.names == ["a", "a"], "a change of a child is a reason"
            cluster.merge_patch(FOOS, "a", {"metadata": {"labels": {"x": "y"}}})
            await cluster.settled(controller)
            assert runs.names == ["a", "a", "a"], "a change of another program is a reason"

    run_simulated(main)
    assert caplog.text.count("not retried before it changes") == 3


def test_a_write_of_another_program_during_the_failing_run_is_reconciled() -> None:
    cluster = make_status_cluster("a")
    runs = RecordingReconciler(duration=2, results=[PermanentError("old"), None])

    async def main() -> None:
        async with running(cluster, runs) as controller:
            await asyncio.sleep(1)
            cluster.merge_patch(FOOS, "a", {"metadata": {"labels": {"x": "y"}}})
            await asyncio.sleep(10)
            assert len(runs.names) >= 2
            assert controller.health.failing == ()

    run_simulated(main)
    assert condition_of(cluster)["status"] == "True"


def test_successful_runs_without_a_condition_send_no_request() -> None:
    cluster = make_status_cluster("a")
    runs = RecordingReconciler()

    async def main() -> None:
        async with running(cluster, runs) as controller:
            await cluster.settled(controller)
            version, count = cluster.resource_version, len(runs.names)
            for _ in range(5):
                controller.trigger(key("a"))
                await cluster.settled(controller)
            assert len(runs.names) == count + 5
            assert cluster.resource_version == version

    run_simulated(main)


class NumberedError(InformerError):
    """An error of a program, whose text differs each time."""


@pytest.mark.parametrize("make_error", [NumberedError, PermanentError])
def test_an_error_that_differs_each_time_changes_the_object_once_a_minute(
    make_error: Callable[[str], Exception],
) -> None:
    cluster = make_status_cluster("a")
    runs = RecordingReconciler(results=[make_error(f"request {n}") for n in range(2000)])

    async def main() -> None:
        async with running(cluster, runs, backoff=DOUBLING_LIMITER) as controller:
            await asyncio.sleep(1)
            version = cluster.resource_version
            for _ in range(30):
                controller.trigger(key("a"))
                await asyncio.sleep(0.5)
            assert cluster.resource_version == version
            await asyncio.sleep(600)
            assert cluster.resource_version <= version + 11
            assert len(runs.names) < 60

    run_simulated(main)


def test_texts_of_other_exceptions_are_not_shown() -> None:
    cluster = make_status_cluster("a")
    runs = RecordingReconciler(results=[ConnectionError("https://me:hunter2@db.example.com")] * 99)

    async def main() -> None:
        async with running(cluster, runs, backoff=DOUBLING_LIMITER):
            await asyncio.sleep(1)

    run_simulated(main)
    shown = condition_of(cluster)
    assert (shown["status"], shown["reason"]) == ("False", "ReconcileFailed")
    assert shown["message"].startswith("ConnectionError: the log of the controller has")


def test_a_run_that_takes_too_long_is_shown() -> None:
    cluster = make_status_cluster("a")

    async def main() -> None:
        runs = RecordingReconciler(duration=100)
        async with running(cluster, runs, timeout=5, backoff=DOUBLING_LIMITER, shutdown_timeout=0):
            await asyncio.sleep(5.5)
            assert "ReconcileTimeout" in condition_of(cluster)["message"]

    run_simulated(main)


def test_a_failing_cleanup_is_shown_until_the_object_is_removed() -> None:
    cluster = make_status_cluster("a")
    runs = RecordingReconciler()
    cleaned = RecordingReconciler(
        results=[
            PermanentError("the bucket is not empty"),
            ValueError("secret"),
            Result(requeue_after=5),
        ]
    )

    async def main() -> None:
        async with running(
            cluster, runs, finalizer=FINALIZER, cleanup=cleaned, backoff=DOUBLING_LIMITER
        ):
            await asyncio.sleep(1)
            assert condition_of(cluster)["status"] == "True"
            cluster.delete(FOOS, "a")
            await asyncio.sleep(0.5)
            shown = condition_of(cluster)
            assert (shown["status"], shown["reason"]) == ("False", "CleanupFailed")
            assert shown["message"] == "PermanentError: the bucket is not empty"
            await asyncio.sleep(60)
            assert cluster.list(FOOS).count(b'"Foo"') == 0
            assert len(cleaned.names) == 4

    run_simulated(main)


def test_a_resource_without_a_status_subresource_is_logged_once_and_not_retried(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster, runs = make_cluster("a", "b"), RecordingReconciler()

    async def main() -> None:
        async with running(cluster, runs) as controller:
            await cluster.settled(controller)
            update_foo(cluster, "a", size=1)
            await cluster.settled(controller)
            assert controller.health.failing == ()

    run_simulated(main)
    assert sorted(runs.names) == ["a", "a", "b"]
    assert [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING] == [
        "controller it: the server answers 404 for the status of foos.samples.example.com, so the "
        "condition Reconciled is not written: does the resource have a status subresource?"
    ]


@pytest.mark.parametrize(
    ("answers", "seconds", "written"),
    [
        (1, 0, "at once"),
        (4, 0, "later"),
        (2, 40, "later"),
        (8, 40, "never"),  # two confirmed answers, with 20 s between them
    ],
)
def test_a_404_of_a_proxy_for_a_status_does_not_end_the_conditions(
    answers: int, seconds: float, written: str, caplog: pytest.LogCaptureFixture
) -> None:
    cluster, runs, faults = make_status_cluster("a"), RecordingReconciler(), Faults()

    async def main() -> None:
        fault = faults.status(404, verb="patch", times=answers)
        async with running(cluster, runs, faults=faults) as controller:
            await cluster.settled(controller)
            assert ("status" in cluster.get(FOOS, "a")) == (written == "at once")
            await asyncio.sleep(seconds)
            for size in range(2):
                update_foo(cluster, "a", size=size)
                await cluster.settled(controller)
            if written == "never":
                hits = fault.hits
                update_foo(cluster, "a", size=5)
                await cluster.settled(controller)
                assert fault.hits == hits == 4, "no further write is sent"
            else:
                assert condition_of(cluster)["status"] == "True"

    run_simulated(main)
    warnings = [each for each in caplog.messages if "answers 404 for the status" in each]
    assert len(warnings) == (0 if written == "at once" else 1)


@pytest.mark.parametrize("result", [None, PermanentError("never")])
def test_a_condition_that_could_not_be_written_is_written_by_a_retry(
    result: Exception | None,
) -> None:
    cluster, faults = make_status_cluster("a"), Faults()
    runs = RecordingReconciler(results=[result, result])

    async def main() -> None:
        with faults.status(500, verb="patch", times=1):
            async with running(cluster, runs, faults=faults) as controller:
                await cluster.settled(controller)
                assert len(runs.names) >= 2
                assert condition_of(cluster)["status"] == ("True" if result is None else "False")

    run_simulated(main)


async def test_a_condition_needs_json_a_client_and_a_type() -> None:
    class Foo(Struct):
        """A model without a status."""

    runs: Any = RecordingReconciler()
    source = ClusterSource(make_status_cluster())
    informers = SharedInformerFactory(source)
    with pytest.raises(
        UsageError, match=r"failure_condition= reads status.* use convert= in place of model="
    ):
        Controller(informers.informer(FOOS, model=Foo), runs, failure_condition="Ready")
    with pytest.raises(ValueError, match="a word such as 'Reconciled'"):
        Controller(informers.informer(FOOS), runs, failure_condition="not ready")
    wrong: Any = 5
    with pytest.raises(TypeError, match="a type such as 'Reconciled'"):
        Controller(informers.informer(FOOS), runs, failure_condition=wrong)


def test_the_condition_of_another_program_stays() -> None:
    cluster = make_status_cluster("a")
    theirs = {"type": "Theirs", "status": "True", "reason": "Fine", "message": ""}
    cluster.merge_patch(FOOS, "a", {"status": {"conditions": [theirs], "size": 1}})

    async def main() -> None:
        async with running(cluster, RecordingReconciler()) as controller:
            await cluster.settled(controller)

    run_simulated(main)
    status = cluster.get(FOOS, "a")["status"]
    assert [each["type"] for each in status["conditions"]] == ["Theirs", "Reconciled"]
    assert status["size"] == 1
