"""What work queues and controllers tell, as Prometheus metrics; ``PrometheusMetrics`` has it.

The names are client-go's ``workqueue_...`` and controller-runtime's ``controller_runtime_...``
with a prefix of ours, so that a dashboard of theirs needs no more than a rename, and so are the
units. A queue counts for itself, so what goes up and down, the adds and the retries are read when
Prometheus asks; keys and runs are told as they are done, which is seldom next to what they do.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from aioinformer._core.work_statistics import QueueStatistics, ReadQueue

__all__ = ["WorkMetrics"]

WAIT_SECONDS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0, 300.0)
"""From a queue whose workers are idle to one that holds an initial list."""

WORK_SECONDS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0)
"""From a look into the cache to a call of somebody else's API."""

GAUGES: Mapping[str, tuple[str, Callable[[list[QueueStatistics]], float]]] = {
    "delayed": (
        "Keys whose time has not come yet.",
        lambda all_: sum(each.delayed for each in all_),
    ),
    "processing": (
        "Keys that are being worked on.",
        lambda all_: sum(each.processing for each in all_),
    ),
    "unfinished_work_seconds": (
        "Seconds that the work under way has taken by now, added up.",
        lambda all_: sum(each.unfinished_seconds for each in all_),
    ),
    "longest_running_processor_seconds": (
        "Seconds that the longest work under way has taken by now.",
        lambda all_: max(each.running_longest for each in all_),
    ),
}
"""Name, help, and what several queues of one name amount to."""

COUNTERS: Mapping[str, tuple[str, Callable[[QueueStatistics], int]]] = {
    "adds": ("Runs asked for; of adds to a key that waits already, the first.", lambda s: s.adds),
    "retries": ("Rate-limited adds.", lambda s: s.retries),
}
"""The same, of a single queue."""


class WorkMetrics:
    """The part of ``PrometheusMetrics`` that is about queues and controllers."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register everything."""
        self._queues = _Queues()
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
            "aioinformer_reconcile_seconds",
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


@dataclass(frozen=True, slots=True)
class _State:
    """The queues in use, and the last counts of those that have ended."""

    reads: tuple[tuple[str, ReadQueue], ...] = ()
    ended: tuple[tuple[str, str, int], ...] = ()


class _Queues:
    """Written by event loops, read by whoever scrapes: as a record that is replaced, never
    changed. A counter must not fall when a queue ends, so its last count stays.
    """

    def __init__(self) -> None:
        self._state = _State()
        self._writing = threading.Lock()

    def add(self, queue: str, read: ReadQueue) -> None:
        with self._writing:
            self._state = _State((*self._state.reads, (queue, read)), self._state.ended)

    def remove(self, queue: str, read: ReadQueue) -> None:
        with self._writing:
            reads = list(self._state.reads)
            reads.remove((queue, read))
            counts = _counts(self._state.ended, {queue: [read()]})
            ended = tuple((*labels, count) for labels, count in counts.items())
            self._state = _State(tuple(reads), ended)

    def read(self) -> tuple[dict[str, list[QueueStatistics]], dict[tuple[str, str], int]]:
        """Queues in use by name; and counts by name of the counter and of the queue."""
        state = self._state
        found: dict[str, list[QueueStatistics]] = {}
        for queue, read in state.reads:
            found.setdefault(queue, []).append(read())
        return found, _counts(state.ended, found)

    def __len__(self) -> int:
        return len(self._state.reads)


def _counts(
    ended: tuple[tuple[str, str, int], ...], queues: Mapping[str, list[QueueStatistics]]
) -> dict[tuple[str, str], int]:
    counts = {(counter, queue): count for counter, queue, count in ended}
    for queue, all_ in queues.items():
        for counter, (_, count) in COUNTERS.items():
            known = counts.get((counter, queue), 0)
            counts[counter, queue] = known + sum(count(each) for each in all_)
    return counts


class _Scrape:
    """What is collected when Prometheus asks."""

    def __init__(self, queues: _Queues) -> None:
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
    for name, (text, amount) in GAUGES.items():
        gauge = GaugeMetricFamily(f"aioinformer_workqueue_{name}", text, labels=["queue"])
        for queue, all_ in queues.items():
            gauge.add_metric([queue], amount(all_))
        yield gauge


def _counters(counts: Mapping[tuple[str, str], int]) -> Iterator[Metric]:
    for name, (text, _) in COUNTERS.items():
        counter = CounterMetricFamily(f"aioinformer_workqueue_{name}", text, labels=["queue"])
        for (counted, queue), count in counts.items():
            if counted == name:
                counter.add_metric([queue], count)
        yield counter
