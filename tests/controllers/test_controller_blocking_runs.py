"""Reconcilers that held the event loop are reported: in the log, in health and in metrics."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from aioinformer import Controller, ObjectKey, ReconcileContext, SharedInformer
from aioinformer.metrics import Metrics
from aioinformer.testing import ClusterSource
from tests.runtime.informers import cluster_with_pods, pod_informer, running_informer
from tests.runtime.scripted_source import PODS, wait_until

HELD = 0.3
"""Seconds for which the reconcilers hold the loop."""


class BlockedRuns(Metrics):
    def __init__(self) -> None:
        self.runs: list[tuple[str, float]] = []

    def reconcile_blocked(self, controller: str, seconds: float) -> None:
        self.runs.append((controller, seconds))


def hold_loop() -> None:
    time.sleep(HELD)


async def holds_before_it_waits(key: ObjectKey, ctx: ReconcileContext) -> None:
    hold_loop()
    await asyncio.sleep(0)


async def holds_after_it_has_waited(key: ObjectKey, ctx: ReconcileContext) -> None:
    await asyncio.sleep(0.01)
    hold_loop()
    await asyncio.sleep(0)


Reconcile = Callable[[ObjectKey, ReconcileContext], Awaitable[None]]


@pytest.mark.parametrize("reconcile", [holds_before_it_waits, holds_after_it_has_waited])
async def test_a_reconciler_that_held_the_loop_is_reported_with_its_name_and_duration(
    reconcile: Reconcile, caplog: pytest.LogCaptureFixture
) -> None:
    metrics = BlockedRuns()
    async with (
        running_informer(pod_informer(cluster_with_pods("a"))) as pods,
        Controller(pods, reconcile, name="shop", metrics=metrics) as controller,
    ):
        await wait_until(lambda: controller.health.runs > 0)

        assert controller.health.blocking_runs == 1
        assert "runs held the event loop 1 time" in str(controller.health)

    ((name, seconds),) = metrics.runs
    assert name == "shop"
    assert seconds > 0.25
    (text,) = caplog.messages
    assert text.startswith(f"controller shop: a run held the event loop for {seconds:.2f} s")


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


async def test_the_option_of_the_informer_switches_the_report_of_its_reconcilers_off(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = ClusterSource(cluster_with_pods("a")).lister_watcher(PODS)
    async with (
        running_informer(SharedInformer(source, report_blocking=False)) as pods,
        Controller(pods, holds_before_it_waits) as controller,
    ):
        await wait_until(lambda: controller.health.runs > 0)

    assert controller.health.blocking_runs == 0
    assert caplog.messages == []
