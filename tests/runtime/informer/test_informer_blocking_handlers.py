"""Handlers that hold the event loop are reported: in the log, in statistics, health and metrics."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable

import pytest

from aioinformer import Added, Event, Registration, SharedInformer
from aioinformer.metrics import Metrics
from aioinformer.testing import ClusterSource
from aioinformer.testing.simulation import run
from tests.runtime.informers import cluster_with_pods, pod_informer, running_informer
from tests.runtime.scripted_source import PODS, wait_until
from tests.runtime.tasks.test_blocking_detector import (
    THREAD_NAME,
    count_detectors,
    wait_until_ended,
)


def hold_loop(seconds: float = 0.4) -> None:
    time.sleep(seconds)


class BlockedCalls(Metrics):
    def __init__(self) -> None:
        self.calls: list[tuple[str, str, float]] = []

    def handler_blocked(self, informer: str, listener: str, seconds: float) -> None:
        self.calls.append((informer, listener, seconds))


def informer_with_metrics(metrics: Metrics) -> SharedInformer:
    source = ClusterSource(cluster_with_pods("a"))
    return SharedInformer(source.lister_watcher(PODS), metrics=metrics)


async def blocks_in_its_own_code(event: Event) -> None:
    while not REPORTED[0].blocking_calls:  # a busy machine may not notice the first call
        hold_loop()
        await asyncio.sleep(0)


async def blocks_in_a_task(event: Event) -> None:
    await asyncio.gather(blocks_in_its_own_code(event))


def blocks_and_is_plain(event: Event) -> None:
    hold_loop(1.1)  # longer than the other warning of plain functions waits


REPORTED: list[Registration] = []


@pytest.mark.parametrize("concurrency", [1, 2])
@pytest.mark.parametrize("handler", [blocks_in_its_own_code, blocks_in_a_task, blocks_and_is_plain])
async def test_a_handler_that_holds_the_loop_is_reported_with_its_name_and_stack(
    handler: Callable[[Event], Awaitable[None] | None],
    concurrency: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    metrics = BlockedCalls()
    pods = informer_with_metrics(metrics)
    registration = pods.add_handler(handler, concurrency=concurrency)
    REPORTED[:] = [registration]
    async with running_informer(pods):
        await registration.wait_synced(timeout=30)
        await wait_until(lambda: len(metrics.calls) > 0)

        assert registration.statistics().blocking_calls == 1
        assert pods.health.blocking_calls == 1
        assert pods.health.blocking_handlers == (registration.name,)
        assert f"1 call of {registration.name} held the event loop" in str(pods.health)

    ((informer, listener, seconds),) = metrics.calls
    assert (informer, listener) == ("pods", registration.name)
    assert seconds > 0.25
    reports = [each for each in caplog.records if "has held the event loop" in each.getMessage()]
    (report,) = reports
    assert (report.name, report.levelno) == ("aioinformer.handlers", logging.WARNING)
    text = report.getMessage()
    assert text.startswith(f"handler {registration.name} has held the event loop for more than")
    line = hold_loop.__code__.co_firstlineno + 1
    assert f'{__file__}", line {line}, in hold_loop\n    time.sleep(seconds)' in text
    assert "_runtime" not in text, "the frames of the library would hide those of the program"


async def test_a_quick_handler_is_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    steps: list[float] = []

    async def handler(event: Event) -> None:
        for _ in range(2):
            began = time.monotonic()
            hold_loop(0.05)
            steps.append(time.monotonic() - began)
            await asyncio.sleep(0)

    cluster = cluster_with_pods("a", "b", "c", "d", "e")
    pods = pod_informer(cluster)
    registration = pods.add_handler(handler)
    async with running_informer(pods):
        await registration.wait_synced(timeout=30)

    assert registration.statistics().delivered == 5
    # A machine that stalls makes a step long, and such a step may be reported.
    long = sum(seconds > 0.2 for seconds in steps)
    assert registration.statistics().blocking_calls <= long
    assert len(caplog.records) <= long


async def test_a_handler_that_runs_in_a_thread_may_block(caplog: pytest.LogCaptureFixture) -> None:
    def handler(event: Event) -> None:
        hold_loop()

    pods = pod_informer(cluster_with_pods("a"))
    registration = pods.add_handler(handler, run_in_thread=True)
    async with running_informer(pods):
        await registration.wait_synced(timeout=30)

    assert registration.statistics().blocking_calls == 0
    assert caplog.records == []


async def test_the_report_can_be_switched_off(caplog: pytest.LogCaptureFixture) -> None:
    async def handler(event: Event) -> None:
        hold_loop()

    wait_until_ended()
    source = ClusterSource(cluster_with_pods("a")).lister_watcher(PODS)
    silent = SharedInformer(source, report_blocking=False)
    registration = silent.add_handler(handler)
    async with running_informer(silent):
        assert count_detectors() == 0
        await registration.wait_synced(timeout=30)

    # Another informer of the loop has the thread watch, but not for this handler.
    source = ClusterSource(cluster_with_pods("a")).lister_watcher(PODS)
    silent = SharedInformer(source, report_blocking=False)
    registration = silent.add_handler(handler)
    async with running_informer(pod_informer(cluster_with_pods("b"))), running_informer(silent):
        assert count_detectors() == 1
        await registration.wait_synced(timeout=30)

    assert registration.statistics().blocking_calls == 0
    assert caplog.records == []


async def test_the_thread_ends_with_the_last_informer_of_the_loop() -> None:
    wait_until_ended()
    first, second = pod_informer(cluster_with_pods("a")), pod_informer(cluster_with_pods("b"))
    async with running_informer(first):
        async with running_informer(second):
            assert count_detectors() == 1
        assert count_detectors() == 1
    await wait_until(lambda: count_detectors() == 0)


def test_no_handler_is_reported_in_virtual_time(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        pods = pod_informer(cluster_with_pods("a"))
        registration = pods.add_handler(handler)
        async with running_informer(pods):
            await registration.wait_synced(timeout=30)

    async def handler(event: Event) -> None:
        if isinstance(event, Added):
            assert all(each.name != THREAD_NAME for each in threading.enumerate())
            hold_loop()

    wait_until_ended()
    run(main(), seed=0)

    assert caplog.records == []
