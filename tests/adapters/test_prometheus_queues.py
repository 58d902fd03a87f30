"""Prometheus metrics of work queues and controllers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry

from aioinformer import WorkQueue
from aioinformer.adapters.prometheus import PrometheusMetrics
from aioinformer.controllers.state.queue_items import Priority


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def metrics(registry: CollectorRegistry) -> PrometheusMetrics:
    return PrometheusMetrics(registry)


def sample(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(f"aioinformer_{name}", labels)


async def test_a_scrape_reads_the_queue_with_the_metric_names_of_client_go(
    registry: CollectorRegistry, metrics: PrometheusMetrics
) -> None:
    queue = WorkQueue[str](name="pods", metrics=metrics)
    for key in ("a", "b", "b", "c"):
        queue.add(key)
    queue.add("d", priority=Priority.LOW)
    queue.add_after("e", 3600)
    queue.add_rate_limited("f")
    await queue.get()

    assert sample(registry, "workqueue_depth", queue="pods", priority="normal") == 2
    assert sample(registry, "workqueue_depth", queue="pods", priority="low") == 1
    assert sample(registry, "workqueue_delayed", queue="pods") == 2
    assert sample(registry, "workqueue_processing", queue="pods") == 1
    assert sample(registry, "workqueue_adds_total", queue="pods") == 4
    assert sample(registry, "workqueue_retries_total", queue="pods") == 1
    longest = sample(registry, "workqueue_longest_running_processor_seconds", queue="pods")
    assert longest is not None
    assert 0 <= longest < 60
    assert (sample(registry, "workqueue_unfinished_work_seconds", queue="pods") or 0) >= longest
    queue.shut_down()


async def test_keys_are_timed_as_they_are_done(
    registry: CollectorRegistry, metrics: PrometheusMetrics
) -> None:
    queue = WorkQueue[str](name="pods", metrics=metrics)
    queue.add("a")
    key = await queue.get()
    assert sample(registry, "workqueue_work_duration_seconds_count", queue="pods") is None
    queue.done(key)
    assert sample(registry, "workqueue_work_duration_seconds_count", queue="pods") == 1
    assert sample(registry, "workqueue_queue_duration_seconds_count", queue="pods") == 1
    queue.shut_down()


async def test_counts_outlive_their_queue_and_gauges_do_not(
    registry: CollectorRegistry, metrics: PrometheusMetrics
) -> None:
    first, second = (WorkQueue[str](name="pods", metrics=metrics) for _ in range(2))
    for queue in (first, second):
        queue.add("a")
        async with queue.work():
            pass
    assert sample(registry, "workqueue_adds_total", queue="pods") == 2
    first.shut_down()
    assert sample(registry, "workqueue_adds_total", queue="pods") == 2
    second.shut_down()
    second.shut_down()
    assert sample(registry, "workqueue_adds_total", queue="pods") == 2
    assert sample(registry, "workqueue_depth", queue="pods", priority="normal") is None


async def test_a_queue_that_still_works_is_shown_after_its_shutdown(
    registry: CollectorRegistry, metrics: PrometheusMetrics
) -> None:
    queue = WorkQueue[str](name="pods", metrics=metrics)
    queue.add("a")
    async with queue.work():
        queue.shut_down()
        assert sample(registry, "workqueue_processing", queue="pods") == 1
    assert sample(registry, "workqueue_processing", queue="pods") is None


def test_reconciles_are_counted_by_result(
    registry: CollectorRegistry, metrics: PrometheusMetrics
) -> None:
    for result in ("success", "error", "error"):
        metrics.reconciled("foo", result, 0.02)
    assert sample(registry, "reconcile_total", controller="foo", result="error") == 2
    assert sample(registry, "reconcile_time_seconds_count", controller="foo") == 3


def test_leadership_is_a_gauge(registry: CollectorRegistry, metrics: PrometheusMetrics) -> None:
    metrics.leadership("web/controller", False)
    assert sample(registry, "leader", lease="web/controller") == 0
    metrics.leadership("web/controller", True)
    assert sample(registry, "leader", lease="web/controller") == 1


def test_the_shards_of_a_group_are_counted(
    registry: CollectorRegistry, metrics: PrometheusMetrics
) -> None:
    metrics.shards_held("shop", 16)
    for kind in ("acquired", "acquired", "lost"):
        metrics.shard_moved("shop", kind)
    metrics.shard_unowned("shop", 0.3)

    assert sample(registry, "shards_held", group="shop") == 16
    assert sample(registry, "shard_moves_total", group="shop", kind="acquired") == 2
    assert sample(registry, "shard_unowned_time_seconds_sum", group="shop") == 0.3


async def test_no_metric_names_a_key(
    registry: CollectorRegistry, metrics: PrometheusMetrics
) -> None:
    queue = WorkQueue[str](name="pods", metrics=metrics)
    queue.add("web-of-secrets")
    async with queue.work():
        shown: Iterator[str] = (
            value
            for family in registry.collect()
            for each in family.samples
            for value in each.labels.values()
        )
        assert "web-of-secrets" not in set(shown)
    queue.shut_down()


async def test_the_repr_shows_the_number_of_queues() -> None:
    metrics = PrometheusMetrics(CollectorRegistry())
    assert " and 0 queues, " in repr(metrics)
    metrics.queue_started("pods", WorkQueue[str]().statistics)
    assert " and 1 queue, " in repr(metrics)
