"""What work queues and controllers tell, as Prometheus metrics; ``PrometheusMetrics`` has it.

The names are client-go's ``workqueue_...`` and controller-runtime's ``controller_runtime_...``
with a prefix of ours, so that a dashboard of theirs needs no more than a rename, and so are the
units. A queue counts for itself, so what goes up and down, the adds and the retries are read when
Prometheus asks; keys and runs are told as they are done, which is seldom next to what they do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from aioinformer._core.work.statistics import QueueStatistics, ReadQueue
from aioinformer.adapters.counting_work import (
    COUNTERS,
    GAUGES,
    WAIT_SECONDS,
    WORK_SECONDS,
    Queues,
)

__all__ = ["WorkMetrics"]


class WorkMetrics:
    """The part of ``PrometheusMetrics`` that is about queues and controllers."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register everything."""
        self._queues = Queues()
        registry.register(_Scrape(self._queues))
        self._waited = Histogram(
            "aioinformer_workqueue_queue_duration_seconds",
            "How long a key waited in line.",
            ["queue"],
            registry=registry,
            buckets=WAIT_SECONDS,
        )
        self._worked = Histogram(
            "aioinformer_workqueue_work_duration_seconds",
            "How long a key was worked on.",
            ["queue"],
            registry=registry,
            buckets=WORK_SECONDS,
        )
        self._results = Counter(
            "aioinformer_reconcile",
            "Reconciles that ended, by result.",
            ["controller", "result"],
            registry=registry,
        )
        self._reconciled = Histogram(
            "aioinformer_reconcile_time_seconds",
            "How long reconciles took.",
            ["controller"],
            registry=registry,
            buckets=WORK_SECONDS,
        )

        self._leads = Gauge(
            "aioinformer_leader",
            "Whether this process leads under a Lease: 1 or 0.",
            ["lease"],
            registry=registry,
        )

    def queue_started(self, queue: str, read: ReadQueue) -> None:
        """A queue's numbers may be read from now on."""
        self._queues.add(queue, read)

    def queue_ended(self, queue: str, read: ReadQueue) -> None:
        """They are read for the last time."""
        self._queues.remove(queue, read)

    def worked(self, queue: str, waited: float, seconds: float) -> None:
        """A key was done."""
        self._waited.labels(queue).observe(waited)
        self._worked.labels(queue).observe(seconds)

    def reconciled(self, controller: str, result: str, seconds: float) -> None:
        """A reconcile ended."""
        self._results.labels(controller, result).inc()
        self._reconciled.labels(controller).observe(seconds)

    def leadership(self, lease: str, leads: bool) -> None:
        """A candidate leads, or doesn't."""
        self._leads.labels(lease).set(leads)

    def __repr__(self) -> str:
        return f"<WorkMetrics of {len(self._queues)} queues>"


class _Scrape:
    """What is collected when Prometheus asks."""

    def __init__(self, queues: Queues) -> None:
        self._queues = queues

    def describe(self) -> Iterator[Metric]:
        """The names, for a registry that refuses doubles. Nothing is read."""
        yield from _gauges({})
        yield from _counters({})

    def collect(self) -> Iterator[Metric]:
        """All that there is."""
        queues, counts = self._queues.read()
        yield from _gauges(queues)
        yield from _counters(counts)


def _gauges(queues: Mapping[str, list[QueueStatistics]]) -> Iterator[Metric]:
    depth = GaugeMetricFamily(
        "aioinformer_workqueue_depth", "Keys that wait in line.", labels=["queue", "priority"]
    )
    for queue, all_ in queues.items():
        depth.add_metric([queue, "normal"], sum(each.normal for each in all_))
        depth.add_metric([queue, "low"], sum(each.low for each in all_))
    yield depth
    for name, gauge in GAUGES.items():
        family = GaugeMetricFamily(f"aioinformer_workqueue_{name}", gauge.help, labels=["queue"])
        for queue, all_ in queues.items():
            family.add_metric([queue], gauge.amount(all_))
        yield family


def _counters(counts: Mapping[tuple[str, str], int]) -> Iterator[Metric]:
    for name, (text, _) in COUNTERS.items():
        counter = CounterMetricFamily(f"aioinformer_workqueue_{name}", text, labels=["queue"])
        for (counted, queue), count in counts.items():
            if counted == name:
                counter.add_metric([queue], count)
        yield counter
