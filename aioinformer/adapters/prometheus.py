"""What informers tell, as Prometheus metrics; queues and controllers are in ``prometheus_work``.

    metrics = PrometheusMetrics()
    async with SharedInformerFactory(client, metrics=metrics) as informers: ...
    prometheus_client.start_http_server(9090)

Counters and histograms are told by the event loop; gauges are read when Prometheus asks, in
whatever thread it does (``start_http_server`` serves in one of its own). What is told for every
chunk and for every event is counted in plain numbers that belong to the thread of the loop, and
collected at the scrape: a tenth of a microsecond rather than half of one, and no lock.

Needs ``prometheus_client`` (the extra ``prometheus``). Its multi-process mode is not supported:
there nothing can be read at the scrape. Who sets it up is warned; a port for each process does.

What work queues and controllers tell, as Prometheus metrics; ``PrometheusMetrics`` has it.

The names are client-go's ``workqueue_...`` and controller-runtime's ``controller_runtime_...``
with a prefix of ours, so that a dashboard of theirs needs no more than a rename, and so are the
units. A queue counts for itself, so what goes up and down, the adds and the retries are read when
Prometheus asks; keys and runs are told as they are done, which is seldom next to what they do.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from itertools import accumulate

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from aioinformer._core.controllers.queue_items import QueueStatistics, ReadQueue
from aioinformer._core.instrumentation import Levels, Metrics, ReadLevels
from aioinformer._core.listwatch.requests import Verb
from aioinformer.adapters._totals import (
    HANDLER_SECONDS,
    INFORMER_GAUGES,
    QUEUE_COUNTERS,
    QUEUE_GAUGES,
    REQUEST_SECONDS,
    WAIT_SECONDS,
    WORK_SECONDS,
    ActiveInformers,
    ActiveQueues,
    HandlerTotals,
    LabelPair,
    ReceivedTotals,
    ThreadCounts,
    ThreadLocalCounts,
    sum_counts,
)

__all__ = ["PrometheusMetrics", "WorkMetrics"]


class WorkMetrics:
    """The part of ``PrometheusMetrics`` that is about queues and controllers."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register everything."""
        self._queues = ActiveQueues()
        registry.register(_QueueCollector(self._queues))
        self._queue_duration = Histogram(
            "aioinformer_workqueue_queue_duration_seconds",
            "How long a key waited in line.",
            ["queue"],
            registry=registry,
            buckets=WAIT_SECONDS,
        )
        self._work_duration = Histogram(
            "aioinformer_workqueue_work_duration_seconds",
            "How long a key was worked on.",
            ["queue"],
            registry=registry,
            buckets=WORK_SECONDS,
        )
        self._reconcile_results = Counter(
            "aioinformer_reconcile",
            "Reconciles that ended, by result.",
            ["controller", "result"],
            registry=registry,
        )
        self._reconcile_seconds = Histogram(
            "aioinformer_reconcile_time_seconds",
            "How long reconciles took.",
            ["controller"],
            registry=registry,
            buckets=WORK_SECONDS,
        )

        self._leader = Gauge(
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
        self._queue_duration.labels(queue).observe(waited)
        self._work_duration.labels(queue).observe(seconds)

    def reconciled(self, controller: str, result: str, seconds: float) -> None:
        """A reconcile ended."""
        self._reconcile_results.labels(controller, result).inc()
        self._reconcile_seconds.labels(controller).observe(seconds)

    def leadership(self, lease: str, leads: bool) -> None:
        """A candidate leads, or doesn't."""
        self._leader.labels(lease).set(leads)

    def __repr__(self) -> str:
        return f"<WorkMetrics of {len(self._queues)} queues>"


class _QueueCollector:
    """What is collected when Prometheus asks."""

    def __init__(self, queues: ActiveQueues) -> None:
        self._queues = queues

    def describe(self) -> Iterator[Metric]:
        """The names, for a registry that refuses doubles. Nothing is read."""
        yield from _queue_gauges({})
        yield from _queue_counters({})

    def collect(self) -> Iterator[Metric]:
        """All that there is."""
        queues, counts = self._queues.read()
        yield from _queue_gauges(queues)
        yield from _queue_counters(counts)


def _queue_gauges(queues: Mapping[str, list[QueueStatistics]]) -> Iterator[Metric]:
    depth = GaugeMetricFamily(
        "aioinformer_workqueue_depth", "Keys that wait in line.", labels=["queue", "priority"]
    )
    for queue, all_ in queues.items():
        depth.add_metric([queue, "normal"], sum(each.normal for each in all_))
        depth.add_metric([queue, "low"], sum(each.low for each in all_))
    yield depth
    for name, gauge in QUEUE_GAUGES.items():
        family = GaugeMetricFamily(f"aioinformer_workqueue_{name}", gauge.help, labels=["queue"])
        for queue, all_ in queues.items():
            family.add_metric([queue], gauge.aggregate(all_))
        yield family


def _queue_counters(counts: Mapping[tuple[str, str], int]) -> Iterator[Metric]:
    for name, (text, _) in QUEUE_COUNTERS.items():
        counter = CounterMetricFamily(f"aioinformer_workqueue_{name}", text, labels=["queue"])
        for (counted, queue), count in counts.items():
            if counted == name:
                counter.add_metric([queue], count)
        yield counter


log = logging.getLogger("aioinformer.metrics")

MULTIPROCESS_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""What turns on the mode in which prometheus_client adds up the files of several processes."""


class PrometheusMetrics(Metrics):
    """Shows what informers tell as ``aioinformer_...``. Make one for each registry, and share it
    among all factories and loops of the process.

    The labels are ``informer`` (resource and scope), ``verb``, ``cause``, ``phase``, ``error``,
    ``listener``, ``queue``, ``priority``, ``controller`` and ``result``; all from small, fixed
    sets, as ``Metrics`` promises. Series of what has ended stay, as counters do; gauges vanish.

    Args:
        registry: where to register; the process's by default.

    Raises:
        ValueError: the registry has these metrics already.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        chosen = REGISTRY if registry is None else registry
        if MULTIPROCESS_VARIABLE in os.environ:
            log.warning(
                "$%s is set: levels, received bytes and handler times can't be shared between "
                "processes and will be missing; let each process serve its own metrics",
                MULTIPROCESS_VARIABLE,
            )
        by_verb = ["informer", "verb"]
        self._informers = ActiveInformers()
        self._all_counts: list[ThreadCounts] = []
        self._counts = ThreadLocalCounts(self._all_counts)
        chosen.register(_InformerCollector(self._informers, self._all_counts))
        self._work_metrics = WorkMetrics(chosen)
        self._requests_started = Counter(
            "aioinformer_requests", "Lists, watches and probes asked for.", by_verb, registry=chosen
        )
        self._requests_ended = Counter(
            "aioinformer_requests_ended",
            "Requests that ended, by cause.",
            [*by_verb, "cause"],
            registry=chosen,
        )
        self._request_seconds = Histogram(
            "aioinformer_request_seconds",
            "How long requests took, from the wait for their turn to the end of their answers.",
            by_verb,
            registry=chosen,
            buckets=REQUEST_SECONDS,
        )
        self._failures = Counter(
            "aioinformer_failures",
            "Abnormal ends, by phase and exception class.",
            ["informer", "phase", "error"],
            registry=chosen,
        )
        self._handler_errors = Counter(
            "aioinformer_handler_errors",
            "Handlers that raised, ran out of time or were ended.",
            ["informer", "listener", "error"],
            registry=chosen,
        )

    def request_started(self, informer: str, verb: Verb) -> None:
        """A request is asked for."""
        self._requests_started.labels(informer, verb).inc()

    def request_ended(self, informer: str, verb: Verb, cause: str, seconds: float) -> None:
        """A request ended."""
        self._requests_ended.labels(informer, verb, cause).inc()
        self._request_seconds.labels(informer, verb).observe(seconds)

    def failed(self, informer: str, phase: str, error: str) -> None:
        """Something ended abnormally."""
        self._failures.labels(informer, phase, error).inc()

    def informer_started(self, informer: str, levels: ReadLevels) -> None:
        """Levels may be read from now on."""
        self._informers.add(informer, levels)

    def informer_ended(self, informer: str, levels: ReadLevels) -> None:
        """Levels are read no more."""
        self._informers.remove(informer, levels)

    def handler_failed(self, informer: str, listener: str, error: str) -> None:
        """A handler raised, ran out of time or was ended."""
        self._handler_errors.labels(informer, listener, error).inc()

    def queue_started(self, queue: str, read: ReadQueue) -> None:
        """A queue's numbers may be read from now on."""
        self._work_metrics.queue_started(queue, read)

    def queue_ended(self, queue: str, read: ReadQueue) -> None:
        """They are read no more."""
        self._work_metrics.queue_ended(queue, read)

    def worked(self, queue: str, waited: float, seconds: float) -> None:
        """A key was done."""
        self._work_metrics.worked(queue, waited, seconds)

    def reconciled(self, controller: str, result: str, seconds: float) -> None:
        """A reconcile ended."""
        self._work_metrics.reconciled(controller, result, seconds)

    def leadership(self, lease: str, leads: bool) -> None:
        """A candidate leads, or doesn't."""
        self._work_metrics.leadership(lease, leads)

    def received(self, informer: str, verb: Verb, size: int, events: int) -> None:
        """A chunk was read."""
        self._counts.add_received(informer, verb, size, events)

    def handled(self, informer: str, listener: str, seconds: float, calls: int) -> None:
        """A handler returned or raised; of several calls, each counts with their mean."""
        self._counts.add_handled(informer, listener, seconds, calls)

    def __repr__(self) -> str:
        threads = len(self._all_counts)
        return f"<PrometheusMetrics of {len(self._informers)} informers, told in {threads} threads>"


# -- read when somebody looks --------------------------------------------------------------------


class _InformerCollector:
    """What is collected when Prometheus asks."""

    def __init__(self, levels: ActiveInformers, everyone: list[ThreadCounts]) -> None:
        self._informers = levels
        self._all_counts = everyone

    def describe(self) -> Iterator[Metric]:
        """The names, for a registry that refuses doubles. Nothing is read."""
        yield from _informer_gauges({})
        yield from _received_counters({})
        yield from _handler_histogram({})

    def collect(self) -> Iterator[Metric]:
        """All that there is."""
        yield from _informer_gauges(self._informers.read())
        threads = self._all_counts.copy()
        yield from _received_counters(
            sum_counts((each.received for each in threads), ReceivedTotals)
        )
        yield from _handler_histogram(sum_counts((each.handled for each in threads), HandlerTotals))


def _informer_gauges(levels: Mapping[str, list[Levels]]) -> Iterator[Metric]:
    for name, gauge in INFORMER_GAUGES.items():
        family = GaugeMetricFamily(f"aioinformer_{name}", gauge.help, labels=["informer"])
        for informer, found in levels.items():
            family.add_metric([informer], gauge.aggregate(found))
        yield family


def _received_counters(received: Mapping[LabelPair, ReceivedTotals]) -> Iterator[Metric]:
    labels = ["informer", "verb"]
    size = CounterMetricFamily(
        "aioinformer_received_bytes", "Bytes of answers read, decompressed.", labels=labels
    )
    events = CounterMetricFamily(
        "aioinformer_received_events", "Objects and events read.", labels=labels
    )
    for key, tally in received.items():
        size.add_metric(key, tally.size)
        events.add_metric(key, tally.events)
    yield from (size, events)


def _handler_histogram(handled: Mapping[LabelPair, HandlerTotals]) -> Iterator[Metric]:
    labels = ["informer", "listener"]
    seconds = HistogramMetricFamily(
        "aioinformer_handler_seconds", "How long handlers took for an event.", labels=labels
    )
    for key, tally in handled.items():
        counts = accumulate(tally.counts)
        seconds.add_metric(key, list(zip(_BUCKET_EDGES, counts, strict=True)), tally.seconds)
    yield seconds


_BUCKET_EDGES = [*map(str, HANDLER_SECONDS), "+Inf"]
