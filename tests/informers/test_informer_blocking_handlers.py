"""Handlers that held the event loop are reported: in the log, statistics, health and metrics."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from aioinformer import Event, SharedInformer
from aioinformer.metrics import Metrics
from aioinformer.testing import ClusterSource
from aioinformer.testing.simulation import run
from tests.runtime.informers import (
    cluster_with_pods,
    label_pod,
    pod_informer,
    running_informer,
)
from tests.runtime.scripted_source import PODS, wait_until
from tests.runtime.tasks.test_blocking_stacks import count_threads, wait_until_ended

HELD = 0.3
"""Seconds for which the handlers hold the loop."""


def hold_loop() -> None:
    time.sleep(HELD)


class BlockedCalls(Metrics):
    def __init__(self) -> None:
        self.calls: list[tuple[str, str, float]] = []

    def handler_blocked(self, informer: str, listener: str, seconds: float) -> None:
        self.calls.append((informer, listener, seconds))


def informer_with(**options: Any) -> SharedInformer:
    source = ClusterSource(cluster_with_pods("a"))
    return SharedInformer(source.lister_watcher(PODS), **options)


async def holds_before_it_waits(event: Event) -> None:
    hold_loop()
    await asyncio.sleep(0)


async def holds_after_it_has_waited(event: Event) -> None:
    await asyncio.sleep(0.01)
    hold_loop()
    await asyncio.sleep(0)


async def holds_and_never_waits(event: Event) -> None:
    hold_loop()


def holds_and_is_plain(event: Event) -> None:
    hold_loop()


@pytest.mark.parametrize(
    ("handler", "concurrency"),
    [
        (holds_before_it_waits, 1),
        (holds_after_it_has_waited, 1),
        (holds_after_it_has_waited, 2),
        (holds_and_never_waits, 2),
        (holds_and_is_plain, 1),
        (holds_and_is_plain, 2),
    ],
)
async def test_a_handler_that_held_the_loop_is_reported_with_its_name_and_duration(
    handler: Callable[[Event], Awaitable[None] | None],
    concurrency: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    metrics = BlockedCalls()
    pods = informer_with(metrics=metrics)
    registration = pods.add_handler(handler, concurrency=concurrency)
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
    (report,) = caplog.records
    assert (report.name, report.levelno) == ("aioinformer.handlers", logging.WARNING)
    assert report.getMessage().startswith(
        f"handler {registration.name} held the event loop for {seconds:.2f} s, while nothing"
    )


async def test_a_plain_handler_that_held_the_loop_at_a_change_is_reported() -> None:
    def handler(event: Event) -> None:
        if event.obj.labels:
            hold_loop()

    cluster = cluster_with_pods("a")
    pods = pod_informer(cluster)
    registration = pods.add_handler(handler)
    quick = pods.add_handler(lambda _: None)
    async with running_informer(pods):
        await registration.wait_synced(timeout=30)
        assert registration.statistics().blocking_calls == 0
        label_pod(cluster, "a", "1")
        await wait_until(lambda: registration.statistics().blocking_calls == 1)

    assert quick.statistics().blocking_calls == 0


async def test_a_handler_that_awaits_for_long_is_not_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def handler(event: Event) -> None:
        await asyncio.sleep(HELD)

    pods = pod_informer(cluster_with_pods("a"))
    registration = pods.add_handler(handler)
    async with running_informer(pods):
        await registration.wait_synced(timeout=30)

    assert registration.statistics().blocking_calls == 0
    assert caplog.records == []


async def test_a_handler_that_runs_in_a_thread_may_block(caplog: pytest.LogCaptureFixture) -> None:
    def handler(event: Event) -> None:
        hold_loop()

    pods = pod_informer(cluster_with_pods("a"))
    registration = pods.add_handler(handler, run_in_thread=True)
    async with running_informer(pods):
        await registration.wait_synced(timeout=30)

    assert registration.statistics().blocking_calls == 0
    assert caplog.records == []


@pytest.mark.parametrize("handler", [holds_after_it_has_waited, holds_and_is_plain])
async def test_the_report_can_be_switched_off(
    handler: Callable[[Event], Awaitable[None] | None], caplog: pytest.LogCaptureFixture
) -> None:
    pods = informer_with(report_blocking=False)
    registration = pods.add_handler(handler)
    async with running_informer(pods):
        await registration.wait_synced(timeout=30)

    assert registration.statistics().blocking_calls == 0
    assert caplog.records == []


# -- the stack -----------------------------------------------------------------------------------


async def test_an_informer_starts_no_thread_by_default() -> None:
    wait_until_ended()
    before = threading.enumerate()
    pods = pod_informer(cluster_with_pods("a"))
    async with running_informer(pods):
        registration = pods.add_handler(holds_before_it_waits)
        await registration.wait_synced(timeout=30)
        assert threading.enumerate() == before


async def test_the_stack_of_a_handler_that_holds_the_loop_is_logged_on_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def handler(event: Event) -> None:
        while not stacks():  # a busy machine may not notice the first call
            hold_loop()
            hold_loop()
            await asyncio.sleep(0)

    def stacks() -> list[str]:
        return [each.getMessage() for each in caplog.records if each.name.endswith(".blocking")]

    pods = informer_with(report_blocking="stack")
    registration = pods.add_handler(handler)
    async with running_informer(pods):
        await registration.wait_synced(timeout=30)
        assert registration.statistics().blocking_calls >= 1

    (text,) = stacks()
    assert text.startswith("the event loop has been held for more than 0.25 s")
    line = hold_loop.__code__.co_firstlineno + 1
    assert f'{__file__}", line {line}, in hold_loop\n    time.sleep(HELD)' in text
    assert "_runtime" not in text, "the frames of the library would hide those of the program"


async def test_the_thread_ends_with_the_last_informer_of_the_loop() -> None:
    wait_until_ended()
    first, second = informer_with(report_blocking="stack"), informer_with(report_blocking="stack")
    async with running_informer(first):
        async with running_informer(second):
            assert count_threads() == 1
        assert count_threads() == 1
    await wait_until(lambda: count_threads() == 0)


def test_no_handler_is_reported_in_virtual_time(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        pods = informer_with(report_blocking="stack")
        registration = pods.add_handler(handler)
        async with running_informer(pods):
            await registration.wait_synced(timeout=30)

    async def handler(event: Event) -> None:
        assert count_threads() == 0
        hold_loop()

    wait_until_ended()
    run(main(), seed=0)

    assert caplog.records == []


@pytest.mark.parametrize("given", ["stacks", 1])
def test_another_value_of_the_option_is_an_error_that_names_the_values(given: object) -> None:
    with pytest.raises(ValueError, match='report_blocking must be True, False or "stack", not'):
        informer_with(report_blocking=given)
