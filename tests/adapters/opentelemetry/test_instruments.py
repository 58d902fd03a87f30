"""OpenTelemetry metrics of informers, queues and controllers."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import inf

import pytest
from msgspec.structs import replace
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.metrics import (
    CallbackOptions,
    CallbackT,
    NoOpMeter,
    NoOpMeterProvider,
    ObservableGauge,
)
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    HistogramDataPoint,
    InMemoryMetricReader,
    Metric,
    NumberDataPoint,
)
from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.registry import Collector

from aioinformer import WorkQueue
from aioinformer._core.instrumentation import Levels
from aioinformer.adapters._recording import REQUEST_SECONDS
from aioinformer.adapters._totals import HANDLER_SECONDS
from aioinformer.adapters.opentelemetry import OpenTelemetryMetrics
from aioinformer.adapters.prometheus import PrometheusMetrics
from aioinformer.controllers.state.queue_items import Priority
from tests.adapters.sample_metrics import SAMPLE_GAUGES, fast_thread_switching, record_every_metric

PODS = "pods in web"


class Collected:
    """The metrics that an SDK with a reader in memory collects."""

    def __init__(self) -> None:
        self.reader = InMemoryMetricReader()
        self.provider = MeterProvider(metric_readers=[self.reader], shutdown_on_exit=False)
        self.metrics = OpenTelemetryMetrics(self.provider)

    def all(self) -> dict[str, Metric]:
        data = self.reader.get_metrics_data()
        found = [
            metric
            for resource in (data.resource_metrics if data is not None else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
        ]
        assert len({each.name for each in found}) == len(found)
        return {each.name.removeprefix("aioinformer."): each for each in found}

    def points(self, name: str) -> dict[tuple[object, ...], float]:
        """Values by the attributes' values, in the order of their names."""
        metric = self.all().get(name)
        found: dict[tuple[object, ...], float] = {}
        for point in () if metric is None else metric.data.data_points:
            assert isinstance(point, NumberDataPoint)
            attributes = dict(point.attributes or {})
            found[tuple(attributes[each] for each in sorted(attributes))] = point.value
        return found

    def histogram(self, name: str) -> HistogramDataPoint:
        (point,) = self.all()[name].data.data_points
        assert isinstance(point, HistogramDataPoint)
        return point


@pytest.fixture(name="collected")
def an_sdk() -> Iterator[Collected]:
    collected = Collected()
    yield collected
    collected.provider.shutdown()


@pytest.fixture
def _restless() -> Iterator[None]:
    with fast_thread_switching():
        yield


# -- numbers -----------------------------------------------------------------------------------


def test_requests_are_counted_and_timed_in_the_buckets_of_the_library(collected: Collected) -> None:
    metrics = collected.metrics
    for cause, seconds in (("complete", 0.2), ("complete", 0.4), ("unreachable", 0.001)):
        metrics.request_started(PODS, "list")
        metrics.request_ended(PODS, "list", cause, seconds)
    assert collected.points("requests") == {(PODS, "list"): 3}
    assert collected.points("requests_ended") == {
        ("complete", PODS, "list"): 2,
        ("unreachable", PODS, "list"): 1,
    }
    lasted = collected.histogram("request")
    assert lasted.explicit_bounds == REQUEST_SECONDS.edges
    assert lasted.count == 3
    assert lasted.sum == pytest.approx(0.601)
    assert lasted.bucket_counts[:4] == (1, 0, 1, 1)


def test_failures_are_counted_by_phase_and_class(collected: Collected) -> None:
    collected.metrics.failed(PODS, "watch", "ConnectionLost")
    collected.metrics.failed(PODS, "watch", "ConnectionLost")
    collected.metrics.handler_failed(PODS, "print", "ValueError")
    assert collected.points("failures") == {("ConnectionLost", PODS, "watch"): 2}
    assert collected.points("handler_errors") == {("ValueError", PODS, "print"): 1}


def test_calls_and_runs_that_block_the_event_loop_are_counted(collected: Collected) -> None:
    collected.metrics.handler_blocked(PODS, "print", 0.4)
    collected.metrics.reconcile_blocked("shop", 0.4)
    assert collected.points("handler_blocking_calls") == {(PODS, "print"): 1}
    assert collected.points("reconcile_blocking_runs") == {("shop",): 1}


def test_bytes_and_events_add_up(collected: Collected) -> None:
    for size, events in ((4096, 3), (100, 0)):
        collected.metrics.received(PODS, "watch", size, events)
    collected.metrics.received("nodes", "watchlist", 7, 1)
    sizes = {(PODS, "watch"): 4196, ("nodes", "watchlist"): 7}
    assert collected.points("received") == sizes
    assert collected.points("received_events") == {(PODS, "watch"): 3, ("nodes", "watchlist"): 1}


def test_calls_reported_together_are_all_counted_and_their_mean_is_in_the_histogram(
    collected: Collected,
) -> None:
    collected.metrics.handled(PODS, "print", 0.064, 64)
    collected.metrics.handled(PODS, "print", 0.3, 1)
    assert collected.points("handler_calls") == {(PODS, "print"): 65}
    assert collected.points("handler_time") == {(PODS, "print"): pytest.approx(0.364)}
    taken = collected.histogram("handler")
    assert taken.explicit_bounds == HANDLER_SECONDS
    assert taken.bucket_counts == (0, 1, 0, 0, 0, 1, 0, 0, 0)


def test_the_histogram_of_a_busy_handler_is_a_sample_and_its_counters_are_not(
    collected: Collected,
) -> None:
    for number in range(20_000):
        collected.metrics.handled(PODS, "print", 3.0 if number % 10 == 0 else 0.01, 1)
        if number == 99:
            assert collected.histogram("handler").count == 100, "few calls are all in it"
    taken = collected.histogram("handler")
    assert 300 < taken.count < 3000
    assert 0.05 < taken.bucket_counts[7] / taken.count < 0.2, "one in ten was slow"
    assert collected.points("handler_calls") == {(PODS, "print"): 20_000}


# -- levels ------------------------------------------------------------------------------------


def test_levels_are_read_when_the_sdk_collects_and_vanish_with_the_informer(
    collected: Collected,
) -> None:
    standing = SAMPLE_GAUGES

    def levels() -> Levels:
        return standing

    collected.metrics.informer_started(PODS, levels)
    assert collected.points("objects") == {(PODS,): 100}
    standing = replace(SAMPLE_GAUGES, objects=101)
    assert collected.points("objects") == {(PODS,): 101}
    collected.metrics.informer_ended(PODS, levels)
    assert collected.points("objects") == {}


def test_several_informers_of_one_label_are_added_and_the_stalest_counts(
    collected: Collected,
) -> None:
    older = replace(SAMPLE_GAUGES, resource_version=12, freshness_seconds=60.0, synced=False)
    collected.metrics.informer_started(PODS, lambda: SAMPLE_GAUGES)
    collected.metrics.informer_started(PODS, lambda: older)
    names = {
        "informers": 2,
        "informers_synced": 1,
        "resource_version": 12,
        "freshness": 60.0,
        "queue_entries": 4,
        "queue": 13200,
        "objects": 200,
        "objects_rejected": 2,
        "events_pending": 14,
        "listeners_blocking": 2,
    }
    assert {name: collected.points(name) for name in names} == {
        name: {(PODS,): amount} for name, amount in names.items()
    }


class Observing(NoOpMeterProvider, NoOpMeter):
    """Keeps what observable gauges are read with: some SDKs drop infinity, not all."""

    def __init__(self) -> None:
        NoOpMeter.__init__(self, "observing")
        self.callbacks: dict[str, Sequence[CallbackT]] = {}

    def get_meter(self, *_: object, **__: object) -> NoOpMeter:
        return self

    def create_observable_gauge(
        self,
        name: str,
        callbacks: Sequence[CallbackT] | None = None,
        unit: str = "",
        description: str = "",
    ) -> ObservableGauge:
        self.callbacks[name] = callbacks or ()
        return super().create_observable_gauge(name, callbacks, unit, description)


def test_no_freshness_is_observed_before_the_first_proof() -> None:
    """Not every backend takes infinity; that an informer isn't synced is seen elsewhere."""
    provider = Observing()
    metrics = OpenTelemetryMetrics(provider)
    standing = replace(SAMPLE_GAUGES, freshness_seconds=inf, synced=False)
    metrics.informer_started(PODS, lambda: standing)
    (read,) = provider.callbacks["aioinformer.freshness"]
    assert callable(read)
    assert list(read(CallbackOptions())) == []
    standing = SAMPLE_GAUGES
    assert [each.value for each in read(CallbackOptions())] == [3.5]


# -- queues, controllers, candidates -----------------------------------------------------------


async def test_queues_are_read_at_each_collection_and_their_counts_outlive_them(
    collected: Collected,
) -> None:
    queue = WorkQueue[str](name="pods", metrics=collected.metrics)
    for key in ("a", "b", "b", "c"):
        queue.add(key)
    queue.add("d", priority=Priority.LOW)
    queue.add_rate_limited("e")
    key = await queue.get()
    assert collected.points("workqueue_depth") == {("normal", "pods"): 2, ("low", "pods"): 1}
    assert collected.points("workqueue_delayed") == {("pods",): 1}
    assert collected.points("workqueue_processing") == {("pods",): 1}
    assert collected.points("workqueue_longest_running_processor")[("pods",)] >= 0
    queue.done(key)
    assert collected.histogram("workqueue_work_duration").count == 1
    assert collected.histogram("workqueue_queue_duration").count == 1
    queue.shut_down()
    while queue.statistics().depth:
        async with queue.work():
            pass
    assert collected.points("workqueue_depth") == {}
    assert collected.points("workqueue_adds") == {("pods",): 4}
    assert collected.points("workqueue_retries") == {("pods",): 1}


def test_reconciles_are_counted_by_result_and_timed(collected: Collected) -> None:
    for result in ("success", "success", "error"):
        collected.metrics.reconciled("shop", result, 0.01)
    assert collected.points("reconcile") == {("shop", "success"): 2, ("shop", "error"): 1}
    assert collected.histogram("reconcile_time").count == 3


def test_leadership_is_observed(collected: Collected) -> None:
    collected.metrics.leadership("web/operator", False)
    assert collected.points("leader") == {("web/operator",): 0}
    collected.metrics.leadership("web/operator", True)
    assert collected.points("leader") == {("web/operator",): 1}


def test_the_shards_of_a_group_are_counted(collected: Collected) -> None:
    collected.metrics.shards_held("shop", 16)
    for kind in ("acquired", "acquired", "lost"):
        collected.metrics.shard_moved("shop", kind)
    collected.metrics.shard_unowned("shop", 0.3)

    assert collected.points("shards_held") == {("shop",): 16}
    assert collected.points("shard_moves") == {("shop", "acquired"): 2, ("shop", "lost"): 1}
    assert collected.histogram("shard_unowned_time").count == 1


# -- names, units, providers -------------------------------------------------------------------


def test_names_and_units_follow_the_conventions(collected: Collected) -> None:
    record_every_metric(collected.metrics, PODS)
    for name, metric in collected.all().items():
        assert metric.name == f"aioinformer.{name}"
        unit = metric.unit or ""
        assert unit in ("", "s", "By") or unit.startswith("{")
        assert not name.endswith(("_total", "_seconds", "_bytes"))
        assert (metric.description or "").endswith(".")


def test_translated_metrics_have_the_names_and_labels_of_the_prometheus_adapter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So one dashboard serves both."""
    reader = PrometheusMetricReader(disable_target_info=True, scope_info_enabled=False)
    collector: Collector = reader._collector  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]
    REGISTRY.unregister(collector)
    theirs, ours = CollectorRegistry(), CollectorRegistry()
    theirs.register(collector)
    provider = MeterProvider(metric_readers=[reader], shutdown_on_exit=False)
    record_every_metric(OpenTelemetryMetrics(provider), PODS)
    record_every_metric(PrometheusMetrics(ours), PODS)
    translated = series(theirs)
    only = {name for name, _ in translated} - {name for name, _ in series(ours)}
    assert only == {"aioinformer_handler_calls_total", "aioinformer_handler_time_seconds_total"}
    assert {each for each in translated if each[0] not in only} == series(ours)
    # The reader looks for its collector in the registry of the process as it ends.
    monkeypatch.setattr(REGISTRY, "unregister", theirs.unregister)
    provider.shutdown()


def series(registry: CollectorRegistry) -> set[tuple[str, frozenset[str]]]:
    """Names and labels."""
    return {
        (sample.name, frozenset(sample.labels))
        for family in registry.collect()
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def test_without_an_sdk_nothing_happens() -> None:
    metrics = OpenTelemetryMetrics(NoOpMeterProvider())
    record_every_metric(metrics, PODS)
    assert repr(metrics) == "<OpenTelemetryMetrics of 1 informer and 1 queue, fed from 1 thread>"


# -- threads -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("_restless")
def test_loops_in_several_threads_lose_no_count_while_the_sdk_collects(
    collected: Collected,
) -> None:
    together = threading.Barrier(4)

    def count() -> None:
        together.wait()
        for number in range(5_000):
            collected.metrics.received(f"pods in {number // 10}", "watch", 3, 1)
            if number % 10 == 0:
                collected.metrics.handled(PODS, "print", 0.01, 1)

    with ThreadPoolExecutor(4) as threads:
        counting = [threads.submit(count) for _ in range(4)]
        while not all(each.done() for each in counting):
            collected.all()
        for each in counting:
            each.result()
    assert sum(collected.points("received").values()) == 60_000
    assert collected.points("handler_calls") == {(PODS, "print"): 2000}
