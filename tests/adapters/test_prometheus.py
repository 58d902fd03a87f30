"""Prometheus metrics of informers."""

from __future__ import annotations

import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from math import inf
from pathlib import Path

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry, generate_latest, start_http_server

from aioinformer import Event, SharedInformerFactory
from aioinformer._core.instrumentation import Levels
from aioinformer.adapters._totals import (
    HANDLER_SECONDS,
    INFORMER_GAUGES,
    QUEUE_COUNTERS,
    QUEUE_GAUGES,
)
from aioinformer.adapters.prometheus import PrometheusMetrics
from aioinformer.errors import UsageError
from aioinformer.testing import Cluster, ClusterSource
from tests.adapters.sample_metrics import SAMPLE_GAUGES, fast_thread_switching, record_every_metric

PODS, NODES = "pods/web", "nodes"


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def _restless() -> Iterator[None]:
    with fast_thread_switching():
        yield


@pytest.fixture
def metrics(registry: CollectorRegistry) -> PrometheusMetrics:
    return PrometheusMetrics(registry)


def sample(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(f"aioinformer_{name}", labels)


# -- requests ----------------------------------------------------------------------------------


def test_requests_are_counted_as_they_start_and_by_how_they_end(
    registry: CollectorRegistry, metrics: PrometheusMetrics
) -> None:
    for cause, seconds in (("complete", 0.2), ("complete", 0.4), ("unreachable", 0.001)):
        metrics.request_started(PODS, "list")
        metrics.request_ended(PODS, "list", cause, seconds)
    metrics.request_started(PODS, "watch")
    assert sample(registry, "requests_total", informer=PODS, verb="list") == 3
    assert sample(registry, "requests_total", informer=PODS, verb="watch") == 1
    ended = {"informer": PODS, "verb": "list", "cause": "complete"}
    assert sample(registry, "requests_ended_total", **ended) == 2
    assert sample(registry, "requests_ended_total", **ended | {"cause": "unreachable"}) == 1
    lasted = {"informer": PODS, "verb": "list"}
    assert sample(registry, "request_seconds_sum", **lasted) == pytest.approx(0.601)
    assert sample(registry, "request_seconds_bucket", **lasted, le="0.25") == 2


def test_failures_are_counted_by_phase_and_class(
    registry: CollectorRegistry, metrics: PrometheusMetrics
) -> None:
    metrics.failed(PODS, "watch", "ConnectionLost")
    metrics.failed(PODS, "watch", "ConnectionLost")
    labels = {"informer": PODS, "phase": "watch", "error": "ConnectionLost"}
    assert sample(registry, "failures_total", **labels) == 2


def test_bytes_and_events_add_up(registry: CollectorRegistry, metrics: PrometheusMetrics) -> None:
    for size, events in ((4096, 3), (100, 0)):
        metrics.received(PODS, "watch", size, events)
    metrics.received(NODES, "watchlist", 7, 1)
    watched = {"informer": PODS, "verb": "watch"}
    assert sample(registry, "received_bytes_total", **watched) == 4196
    assert sample(registry, "received_events_total", **watched) == 3
    streamed = {"informer": NODES, "verb": "watchlist"}
    assert sample(registry, "received_bytes_total", **streamed) == 7


# -- handlers ----------------------------------------------------------------------------------


def test_handlers_are_timed_in_buckets_that_add_up(
    registry: CollectorRegistry, metrics: PrometheusMetrics
) -> None:
    for seconds in (0.0001, 0.0002, 0.02, 3.0, 60.0):
        metrics.handled(PODS, "print", seconds, 1)
    labels = {"informer": PODS, "listener": "print"}
    counts = [
        sample(registry, "handler_seconds_bucket", **labels, le=le)
        for le in (*map(str, HANDLER_SECONDS), "+Inf")
    ]
    assert counts == [1, 2, 2, 3, 3, 3, 3, 4, 5]  # a bucket holds what is at its edge
    assert sample(registry, "handler_seconds_count", **labels) == 5
    assert sample(registry, "handler_seconds_sum", **labels) == pytest.approx(63.0203)


def test_calls_that_are_reported_together_count_with_their_mean(
    registry: CollectorRegistry, metrics: PrometheusMetrics
) -> None:
    metrics.handled(PODS, "print", 0.064, 64)
    labels = {"informer": PODS, "listener": "print"}
    assert sample(registry, "handler_seconds_bucket", **labels, le="0.001") == 64
    assert sample(registry, "handler_seconds_count", **labels) == 64


def test_handlers_that_fail_are_counted_by_what_they_raised(
    registry: CollectorRegistry, metrics: PrometheusMetrics
) -> None:
    metrics.handler_failed(PODS, "print", "ValueError")
    labels = {"informer": PODS, "listener": "print", "error": "ValueError"}
    assert sample(registry, "handler_errors_total", **labels) == 1


def test_calls_and_runs_that_block_the_event_loop_are_counted(
    registry: CollectorRegistry, metrics: PrometheusMetrics
) -> None:
    metrics.handler_blocked(PODS, "print", 0.4)
    metrics.reconcile_blocked("shop", 0.4)
    metrics.reconcile_blocked("shop", 0.4)
    labels = {"informer": PODS, "listener": "print"}
    assert sample(registry, "handler_blocking_calls_total", **labels) == 1
    assert sample(registry, "reconcile_blocking_runs_total", controller="shop") == 2


async def test_no_label_names_an_object_or_a_selector(
    registry: CollectorRegistry, metrics: PrometheusMetrics
) -> None:
    async def clumsy(event: Event) -> None:
        raise ValueError("secret-name")

    cluster = Cluster()
    cluster.create("pods", {"metadata": {"name": "secret-name"}})
    async with SharedInformerFactory(ClusterSource(cluster), metrics=metrics) as informers:
        pods = informers.informer("pods", fields={"metadata.name": "secret-name"})
        await pods.add_handler(clumsy, name="clumsy").wait_synced(timeout=30)
        shown = generate_latest(registry).decode()
    assert 'listener="clumsy of pods (selected)"' in shown
    assert "secret-name" not in shown


# -- levels ------------------------------------------------------------------------------------


def test_levels_are_read_at_the_scrape_and_vanish_with_the_informer(
    registry: CollectorRegistry, metrics: PrometheusMetrics
) -> None:
    standing = SAMPLE_GAUGES

    def levels() -> Levels:
        return standing

    metrics.informer_started(PODS, levels)
    assert sample(registry, "objects", informer=PODS) == 100
    standing = replace(SAMPLE_GAUGES, objects=101)
    assert sample(registry, "objects", informer=PODS) == 101
    metrics.informer_ended(PODS, levels)
    assert sample(registry, "objects", informer=PODS) is None
    assert sample(registry, "informers", informer=PODS) is None


def test_several_informers_of_one_label_are_added_and_the_stalest_counts(
    registry: CollectorRegistry, metrics: PrometheusMetrics
) -> None:
    stale = replace(SAMPLE_GAUGES, resource_version=12, freshness_seconds=inf, synced=False)
    metrics.informer_started(PODS, lambda: SAMPLE_GAUGES)
    metrics.informer_started(PODS, lambda: stale)
    metrics.informer_started(NODES, lambda: SAMPLE_GAUGES)
    assert {name: sample(registry, name, informer=PODS) for name in INFORMER_GAUGES} == {
        "informers": 2,
        "informers_synced": 1,
        "resource_version": 12,
        "freshness_seconds": inf,
        "queue_entries": 4,
        "queue_bytes": 13200,
        "objects": 200,
        "json_bytes": 460_000,
        "objects_rejected": 2,
        "events_pending": 14,
        "listeners_blocking": 2,
    }
    assert sample(registry, "freshness_seconds", informer=NODES) == 3.5


def test_informer_ended_removes_the_reader_that_is_equal(
    registry: CollectorRegistry, metrics: PrometheusMetrics
) -> None:
    """Each look at a method makes a new bound one."""

    class Informer:
        def levels(self) -> Levels:
            return SAMPLE_GAUGES

    one, other = Informer(), Informer()
    metrics.informer_started(PODS, one.levels)
    metrics.informer_started(PODS, other.levels)
    metrics.informer_ended(PODS, one.levels)
    assert sample(registry, "informers", informer=PODS) == 1


def test_levels_that_cannot_be_read_fail_the_scrape(
    registry: CollectorRegistry, metrics: PrometheusMetrics
) -> None:
    def levels() -> Levels:
        raise RuntimeError("a bug")

    metrics.informer_started(PODS, levels)
    with pytest.raises(RuntimeError, match="a bug"):
        generate_latest(registry)


# -- registries --------------------------------------------------------------------------------


def test_everything_has_a_prefix_a_help_and_a_fixed_set_of_labels(
    registry: CollectorRegistry,
) -> None:
    record_every_metric(PrometheusMetrics(registry), PODS)
    families = list(registry.collect())
    assert (
        len(families)
        == 6 + 3 + 1 + 3 + len(INFORMER_GAUGES) + len(QUEUE_GAUGES) + len(QUEUE_COUNTERS) + 7
    )
    for family in families:
        assert family.name.startswith("aioinformer_")
        assert family.documentation.endswith(".")
        for each in family.samples:
            known = {"informer", "verb", "cause", "phase", "error", "listener", "le"}
            known |= {"queue", "priority", "controller", "result", "lease", "group", "kind"}
            assert set(each.labels) <= known


def test_a_registry_rejects_a_second_instance(registry: CollectorRegistry) -> None:
    PrometheusMetrics(registry)
    with pytest.raises(ValueError, match=r"pass registry=CollectorRegistry\(\)") as caught:
        PrometheusMetrics(registry)
    assert len(str(caught.value)) < 200


def test_the_state_shows_in_the_repr(metrics: PrometheusMetrics) -> None:
    metrics.informer_started(PODS, lambda: SAMPLE_GAUGES)
    assert repr(metrics) == "<PrometheusMetrics of 1 informer and 0 queues, fed from 1 thread>"


# -- threads -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("_restless")
def test_loops_in_several_threads_lose_no_count_during_scrapes(
    registry: CollectorRegistry, metrics: PrometheusMetrics
) -> None:
    together = threading.Barrier(4)

    def count() -> None:
        together.wait()
        for number in range(20_000):
            metrics.received(f"pods/{number // 10}", "watch", 3, 1)
            metrics.handled(f"pods/{number // 10}", "print", 0.01, 1)

    with ThreadPoolExecutor(4) as threads:
        counting = [threads.submit(count) for _ in range(4)]
        while not all(each.done() for each in counting):
            generate_latest(registry)
        for each in counting:
            each.result()
    samples = [each for family in registry.collect() for each in family.samples]
    totals = dict.fromkeys(("received_bytes_total", "handler_seconds_count"), 0.0)
    for name in totals:
        named = [each.value for each in samples if each.name == f"aioinformer_{name}"]
        assert len(named) == 2000
        totals[name] = sum(named)
    assert totals == {"received_bytes_total": 240_000, "handler_seconds_count": 80_000}


def test_a_scrape_over_http_is_served_and_leaves_nothing_behind(
    registry: CollectorRegistry, metrics: PrometheusMetrics
) -> None:
    """Each scrape is a thread of its own."""
    metrics.received(PODS, "watch", 3, 1)
    metrics.informer_started(PODS, lambda: SAMPLE_GAUGES)
    before = repr(metrics)
    server, thread = start_http_server(0, addr="127.0.0.1", registry=registry)
    try:
        texts = [_scraped(server.server_port) for _ in range(3)]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert 'aioinformer_received_bytes_total{informer="pods/web",verb="watch"} 3.0' in texts[-1]
    assert 'aioinformer_freshness_seconds{informer="pods/web"} 3.5' in texts[-1]
    assert repr(metrics) == before


def _scraped(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        text: bytes = answer.read()
        return text.decode()


def test_the_error_for_the_multiprocess_mode_names_an_alternative(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    registry = CollectorRegistry()
    with pytest.raises(UsageError, match="run one worker in each pod"):
        PrometheusMetrics(registry)
    monkeypatch.undo()
    PrometheusMetrics(registry)  # nothing was registered before


def test_without_the_package_the_error_names_the_extra() -> None:
    program = "import sys; sys.modules['prometheus_client'] = None; import aioinformer.adapters"
    command = [sys.executable, "-c", f"{program}.prometheus"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "pip install 'aioinformer[prometheus]'" in ended.stderr
