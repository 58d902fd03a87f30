"""Reconcilers that hold the event loop are reported: in the log, in health and in metrics."""

from __future__ import annotations

import asyncio
import time

import pytest

from aioinformer import Controller, ObjectKey, ReconcileContext
from aioinformer.metrics import Metrics
from tests.runtime.informers import cluster_with_pods, pod_informer, running_informer
from tests.runtime.scripted_source import wait_until


def hold_loop() -> None:
    time.sleep(0.4)


class BlockedRuns(Metrics):
    def __init__(self) -> None:
        self.runs: list[tuple[str, float]] = []

    def reconcile_blocked(self, controller: str, seconds: float) -> None:
        self.runs.append((controller, seconds))


async def test_a_reconciler_that_holds_the_loop_is_reported_with_its_name_and_stack(
    caplog: pytest.LogCaptureFixture,
) -> None:
    metrics = BlockedRuns()

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
        while not controller.health.blocking_runs:  # a busy machine may not notice the first time
            hold_loop()
            await asyncio.sleep(0)

    async with (
        running_informer(pod_informer(cluster_with_pods("a"))) as pods,
        Controller(pods, reconcile, name="shop", metrics=metrics) as controller,
    ):
        await wait_until(lambda: controller.health.runs > 0)
        await wait_until(lambda: len(metrics.runs) > 0)

        assert controller.health.blocking_runs == 1
        assert "runs held the event loop 1 time" in str(controller.health)

    ((name, seconds),) = metrics.runs
    assert name == "shop"
    assert seconds > 0.25
    (text,) = caplog.messages
    assert text.startswith("controller shop: a run has held the event loop for more than 0.25 s")
    line = hold_loop.__code__.co_firstlineno + 1
    assert f'{__file__}", line {line}, in hold_loop\n    time.sleep(0.4)' in text


async def test_a_reconciler_that_awaits_is_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
        await asyncio.to_thread(hold_loop)

    async with (
        running_informer(pod_informer(cluster_with_pods("a"))) as pods,
        Controller(pods, reconcile) as controller,
    ):
        await wait_until(lambda: controller.health.runs > 0)

    assert controller.health.blocking_runs == 0
    assert caplog.messages == []
