"""Metrics that raise."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer import Updated, WorkQueue
from aioinformer._core.instrumentation import Metrics, ReadLevels, ReadQueue
from aioinformer._core.listwatch.reflector_requests import Verb
from aioinformer._informers.informer import SharedInformer
from aioinformer._runtime.reporting.reporter import InformerReporter
from aioinformer._runtime.reporting.safe_metrics import SafeMetrics, wrap_metrics
from aioinformer.testing import ClusterSource
from tests.runtime.informers import cluster_with_pods, label_pod, running_informer
from tests.runtime.scripted_source import PODS, wait_until


class BrokenMetrics(Metrics):
    """Raises from every method."""

    def __init__(self) -> None:
        self.called: list[str] = []

    def _fail(self, method: str) -> None:
        self.called.append(method)
        raise ValueError(f"no {method}")

    def request_started(self, informer: str, verb: Verb) -> None:
        self._fail("request_started")

    def request_ended(self, informer: str, verb: Verb, cause: str, seconds: float) -> None:
        self._fail("request_ended")

    def received(self, informer: str, verb: Verb, size: int, events: int) -> None:
        self._fail("received")

    def failed(self, informer: str, phase: str, error: str) -> None:
        self._fail("failed")

    def handled(self, informer: str, listener: str, seconds: float, calls: int) -> None:
        self._fail("handled")

    def handler_failed(self, informer: str, listener: str, error: str) -> None:
        self._fail("handler_failed")

    def informer_started(self, informer: str, levels: ReadLevels) -> None:
        self._fail("informer_started")

    def informer_ended(self, informer: str, levels: ReadLevels) -> None:
        self._fail("informer_ended")

    def queue_started(self, queue: str, read: ReadQueue) -> None:
        self._fail("queue_started")

    def queue_ended(self, queue: str, read: ReadQueue) -> None:
        self._fail("queue_ended")

    def worked(self, queue: str, waited: float, seconds: float) -> None:
        self._fail("worked")

    def reconciled(self, controller: str, result: str, seconds: float) -> None:
        self._fail("reconciled")

    def leadership(self, lease: str, leads: bool) -> None:
        self._fail("leadership")


async def test_an_informer_continues_although_its_metrics_raise(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster, metrics, seen = cluster_with_pods("a"), BrokenMetrics(), list[object]()

    def handler(event: object) -> None:
        seen.append(event)
        raise KeyError("mine")

    source = ClusterSource(cluster).lister_watcher(PODS)
    pods = SharedInformer(source, metrics=metrics)
    pods.add_handler(handler)
    async with running_informer(pods):
        label_pod(cluster, "a", "1")
        await wait_until(lambda: any(isinstance(event, Updated) for event in seen))
        assert pods.health.state == "watching"

    assert {"informer_started", "received", "handled", "handler_failed"} <= set(metrics.called)
    assert metrics.called[-1] == "informer_ended"
    messages = [each.getMessage() for each in caplog.records if each.name == "aioinformer.metrics"]
    assert messages == [
        "BrokenMetrics raised: metrics are incomplete; further errors from it are not logged"
    ]


def test_the_exceptions_of_each_method_of_the_metrics_are_suppressed() -> None:
    broken = BrokenMetrics()
    metrics: Metrics = wrap_metrics(broken)

    metrics.request_started("pods", "list")
    metrics.request_ended("pods", "list", "complete", 1.0)
    metrics.received("pods", "list", 1, 1)
    metrics.failed("pods", "list", "ValueError")
    metrics.reconciled("pods", "success", 0.1)

    assert broken.called == ["request_started", "request_ended", "received", "failed", "reconciled"]
    assert repr(metrics) == f"<SafeMetrics {broken!r}>"


async def test_a_queue_continues_although_its_metrics_raise() -> None:
    broken = BrokenMetrics()
    queue = WorkQueue[str](name="pods", metrics=broken)
    queue.add("a")
    async with queue.work() as key:
        assert key == "a"
    assert await queue.drain(0)
    assert broken.called == ["queue_started", "worked", "queue_ended"]


def test_wrap_metrics_wraps_only_given_metrics() -> None:
    assert type(wrap_metrics(None)) is Metrics
    assert isinstance(InformerReporter("pods", metrics=BrokenMetrics()).metrics, SafeMetrics)


def test_a_method_that_the_metrics_lack_is_ignored() -> None:
    """For example metrics that were written for an older version, without the base class."""

    class OneMethod:
        def __init__(self) -> None:
            self.called: list[str] = []

        def failed(self, informer: str, phase: str, error: str) -> None:
            self.called.append(f"{informer} {phase} {error}")

    old: Any = OneMethod()
    metrics = wrap_metrics(old)
    metrics.failed("pods", "list", "ValueError")
    metrics.leadership("web/lease", True)
    assert old.called == ["pods list ValueError"]
