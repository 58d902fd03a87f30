"""Prometheus metrics of informers, work queues, controllers and leader elections.

    metrics = PrometheusMetrics()
    async with SharedInformerFactory(client, metrics=metrics) as informers: ...
    prometheus_client.start_http_server(9090)

Rare events (requests, errors, processed keys) are recorded in counters and histograms of
prometheus_client when they happen. Frequent ones (chunks, calls of handlers) are counted in plain
numbers and collected at the scrape: a count takes 0.1 µs instead of 0.5 µs, and no lock. Gauges,
and the counts that a work queue keeps itself, are read at the scrape too, in its thread.

The names for queues and controllers are client-go's ``workqueue_...`` and controller-runtime's
``controller_runtime_...`` with the prefix ``aioinformer_`` and the same units. A dashboard for
these needs only a rename.

Needs ``prometheus_client`` (the extra ``prometheus``). Its multiprocess mode is rejected, because
that mode adds up files that the processes write at each change, and nothing can be read at the
scrape there. Each process has its own caches, so scrape each process: run one worker in each pod,
or serve one port for each process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import accumulate

try:
    from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
        Metric,
    )
    from prometheus_client.exposition import choose_encoder
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "PrometheusMetrics needs prometheus_client: pip install 'aioinformer[prometheus]'",
        name=error.name,
    ) from error

from aioinformer._core.instrumentation import Levels, QueueStatistics
from aioinformer.adapters._recording import (
    COUNTERS,
    HISTOGRAMS,
    CounterSpec,
    HistogramSpec,
    RecordingMetrics,
)
from aioinformer.adapters._totals import (
    HANDLER_SECONDS,
    HELD_SHARDS,
    INFORMER_GAUGES,
    LEADERSHIP,
    QUEUE_COUNTERS,
    QUEUE_DEPTH,
    QUEUE_GAUGES,
    RECEIVED_BYTES,
    RECEIVED_EVENTS,
    HandlerTotals,
    LabelPair,
    ReceivedTotals,
    Totals,
)
from aioinformer.errors import UsageError

__all__ = ["PrometheusMetrics"]

PREFIX = "aioinformer_"

MULTIPROCESS_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""The variable that switches on prometheus_client's multiprocess mode."""


class PrometheusMetrics(RecordingMetrics):
    """``Metrics`` that Prometheus can scrape, named ``aioinformer_...``.

    Make one for each registry, and share it among all factories and event loops of the process.

    The labels are ``informer`` (resource and scope), ``verb``, ``cause``, ``phase``, ``error``,
    ``listener``, ``queue``, ``priority``, ``controller``, ``result`` and ``lease``. The values of
    each are a small, fixed set, as ``Metrics`` promises. When an informer or queue ends, its
    counters stay and its gauges vanish.

    Args:
        registry: the registry to register with; the process's by default.

    Raises:
        ValueError: the registry has these metrics already.
        UsageError: ``$PROMETHEUS_MULTIPROC_DIR`` is set.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        chosen = REGISTRY if registry is None else registry
        if MULTIPROCESS_VARIABLE in os.environ:
            raise UsageError(
                f"${MULTIPROCESS_VARIABLE} is set, which switches on the multiprocess mode of "
                "prometheus_client; PrometheusMetrics does not support that mode, in which gauges, "
                "received bytes and handler times would be missing; unset the variable, and run "
                "one worker in each pod, or let each process serve its own metrics with "
                "prometheus_client.start_http_server(port)"
            )
        self._registry = chosen
        totals = Totals()
        try:
            chosen.register(_Collector(totals))
        except ValueError:  # its text has the name of each metric
            raise ValueError(
                "the registry has the metrics of another PrometheusMetrics: share that one among "
                "all factories, or pass registry=CollectorRegistry(), as for each app of a test"
            ) from None
        super().__init__(_PrometheusInstruments(chosen), totals)

    def exposition(self, accept: str = "") -> tuple[bytes, str]:
        """Return the metrics of the registry and their content type, for a server of the program's
        own.

        ``accept``, the ``Accept`` header of the scrape, chooses between Prometheus' text format and
        OpenMetrics. An ``Operator`` with a ``port`` serves them as ``/metrics``.
        """
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type


class _PrometheusInstruments:
    def __init__(self, registry: CollectorRegistry) -> None:
        self._counters = {
            each.name: Counter(PREFIX + each.name, each.help, each.labels, registry=registry)
            for each in COUNTERS
        }
        self._histograms = {
            each.name: Histogram(
                *(PREFIX + each.name, each.help, each.labels), registry=registry, buckets=each.edges
            )
            for each in HISTOGRAMS
        }

    def count(self, counter: CounterSpec, *labels: str, amount: int = 1) -> None:
        self._counters[counter.name].labels(*labels).inc(amount)

    def time(self, histogram: HistogramSpec, seconds: float, *labels: str) -> None:
        self._histograms[histogram.name].labels(*labels).observe(seconds)


# -- read at the scrape --------------------------------------------------------------------------


class _Collector:
    def __init__(self, totals: Totals) -> None:
        self._totals = totals

    def describe(self) -> Iterator[Metric]:
        """Yield the names, for a registry that rejects duplicates. Nothing is read."""
        yield from _informer_metrics({}, {}, {})
        yield from _queue_metrics({}, {})
        yield from _group_metrics({}, {})

    def collect(self) -> Iterator[Metric]:
        totals = self._totals
        yield from _informer_metrics(totals.informers.read(), totals.received(), totals.handled())
        yield from _queue_metrics(*totals.queues.read())
        yield from _group_metrics(totals.leaders.copy(), totals.shards.copy())


def _informer_metrics(
    levels: Mapping[str, list[Levels]],
    received: Mapping[LabelPair, ReceivedTotals],
    handled: Mapping[LabelPair, HandlerTotals],
) -> Iterator[Metric]:
    for name, gauge in INFORMER_GAUGES.items():
        family = GaugeMetricFamily(PREFIX + name, gauge.help, labels=["informer"])
        for informer, found in levels.items():
            family.add_metric([informer], gauge.aggregate(found))
        yield family
    by_verb = ["informer", "verb"]
    size = CounterMetricFamily(f"{PREFIX}received_bytes", RECEIVED_BYTES, labels=by_verb)
    events = CounterMetricFamily(f"{PREFIX}received_events", RECEIVED_EVENTS, labels=by_verb)
    for key, totals in received.items():
        size.add_metric(key, totals.size)
        events.add_metric(key, totals.events)
    yield from (size, events)
    seconds = HistogramMetricFamily(
        f"{PREFIX}handler_seconds",
        "How long handlers took for an event.",
        labels=["informer", "listener"],
    )
    for key, calls in handled.items():
        counts = accumulate(calls.counts)  # a bucket of Prometheus includes those below it
        seconds.add_metric(key, list(zip(_BUCKET_EDGES, counts, strict=True)), calls.seconds)
    yield seconds


_BUCKET_EDGES = [*map(str, HANDLER_SECONDS), "+Inf"]


def _queue_metrics(
    queues: Mapping[str, list[QueueStatistics]], counts: Mapping[tuple[str, str], int]
) -> Iterator[Metric]:
    depth = GaugeMetricFamily(f"{PREFIX}workqueue_depth", QUEUE_DEPTH, labels=["queue", "priority"])
    for queue, all_ in queues.items():
        depth.add_metric([queue, "normal"], sum(each.normal for each in all_))
        depth.add_metric([queue, "low"], sum(each.low for each in all_))
    yield depth
    for name, gauge in QUEUE_GAUGES.items():
        family = GaugeMetricFamily(f"{PREFIX}workqueue_{name}", gauge.help, labels=["queue"])
        for queue, all_ in queues.items():
            family.add_metric([queue], gauge.aggregate(all_))
        yield family
    for name, (text, _) in QUEUE_COUNTERS.items():
        counter = CounterMetricFamily(f"{PREFIX}workqueue_{name}", text, labels=["queue"])
        for (counted, queue), count in counts.items():
            if counted == name:
                counter.add_metric([queue], count)
        yield counter


def _group_metrics(leaders: Mapping[str, bool], shards: Mapping[str, int]) -> Iterator[Metric]:
    leader = GaugeMetricFamily(f"{PREFIX}leader", LEADERSHIP, labels=["lease"])
    for lease, leads in leaders.items():
        leader.add_metric([lease], leads)
    held = GaugeMetricFamily(f"{PREFIX}shards_held", HELD_SHARDS, labels=["group"])
    for group, number in shards.items():
        held.add_metric([group], number)
    yield from (leader, held)
