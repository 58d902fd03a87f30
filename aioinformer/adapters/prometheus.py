"""What informers tell, as Prometheus metrics; queues and controllers are in ``prometheus_work``.

    metrics = PrometheusMetrics()
    async with SharedInformerFactory(client, metrics=metrics) as informers: ...
    prometheus_client.start_http_server(9090)

Counters and histograms are told by the event loop; gauges are read when Prometheus asks, in
whatever thread it does (``start_http_server`` serves in one of its own). What is told for every
chunk and for every event is counted in plain numbers that belong to the thread of the loop, and
collected at the scrape: a tenth of a microsecond rather than half of one, and no lock.

Needs ``prometheus_client`` (the extra ``prometheus``). Its multi-process mode is
not supported: there gauges can't be read at the scrape.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TypeAlias, TypeVar

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from aioinformer._core.metrics import Levels, ReadLevels
from aioinformer._core.requests import Verb
from aioinformer._core.work_statistics import ReadQueue
from aioinformer.adapters.prometheus_work import WorkMetrics

__all__ = ["PrometheusMetrics"]

REQUEST_SECONDS = (0.01, 0.05, 0.25, 1.0, 5.0, 30.0, 120.0, 330.0, 660.0)
"""From a list out of the server's cache to the watch that lasts its five to ten minutes."""

HANDLER_SECONDS = (0.0001, 0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0)
"""From a handler that only notes something to one that talks to other servers."""

GAUGES: Mapping[str, tuple[str, Callable[[list[Levels]], float]]] = {
    "informers": ("Informers at work.", len),
    "informers_synced": (
        "Informers whose cache has held a full state.",
        lambda all_: sum(each.synced for each in all_),
    ),
    "resource_version": (
        "Up to where the cache has applied everything; of several, the one furthest behind.",
        lambda all_: min(each.resource_version for each in all_),
    ),
    "freshness_seconds": (
        "Seconds since the last proof that the cache is up to date; of several, the longest.",
        lambda all_: max(each.freshness_seconds for each in all_),
    ),
    "queue_entries": (
        "Deltas received and not applied yet.",
        lambda all_: sum(each.queue_entries for each in all_),
    ),
    "queue_bytes": (
        "Bytes of the deltas received and not applied yet.",
        lambda all_: sum(each.queue_bytes for each in all_),
    ),
    "objects": ("Cached objects.", lambda all_: sum(each.objects for each in all_)),
    "objects_rejected": (
        "Objects whose newest version was rejected.",
        lambda all_: sum(each.rejected for each in all_),
    ),
    "events_pending": (
        "Live events that wait for listeners.",
        lambda all_: sum(each.pending for each in all_),
    ),
}
"""Name, help, and what several informers with the same label amount to."""


class PrometheusMetrics:
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
        by_verb = ["informer", "verb"]
        self._levels = _LevelsByInformer()
        self._everyone: list[_Counted] = []
        self._tallies = _Tallies(self._everyone)
        chosen.register(_Scrape(self._levels, self._everyone))
        self._work = WorkMetrics(chosen)
        self._started = Counter(
            "aioinformer_requests", "Lists, watches and probes asked for.", by_verb, registry=chosen
        )
        self._ended = Counter(
            "aioinformer_requests_ended",
            "Requests that ended, by cause.",
            [*by_verb, "cause"],
            registry=chosen,
        )
        self._seconds = Histogram(
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
        self._started.labels(informer, verb).inc()

    def request_ended(self, informer: str, verb: Verb, cause: str, seconds: float) -> None:
        """A request ended."""
        self._ended.labels(informer, verb, cause).inc()
        self._seconds.labels(informer, verb).observe(seconds)

    def failed(self, informer: str, phase: str, error: str) -> None:
        """Something ended abnormally."""
        self._failures.labels(informer, phase, error).inc()

    def informer_started(self, informer: str, levels: ReadLevels) -> None:
        """Levels may be read from now on."""
        self._levels.add(informer, levels)

    def informer_ended(self, informer: str, levels: ReadLevels) -> None:
        """Levels are read no more."""
        self._levels.remove(informer, levels)

    def handler_failed(self, informer: str, listener: str, error: str) -> None:
        """A handler raised, ran out of time or was ended."""
        self._handler_errors.labels(informer, listener, error).inc()

    def queue_started(self, queue: str, read: ReadQueue) -> None:
        """A queue's numbers may be read from now on."""
        self._work.queue_started(queue, read)

    def queue_ended(self, queue: str, read: ReadQueue) -> None:
        """They are read no more."""
        self._work.queue_ended(queue, read)

    def worked(self, queue: str, waited: float, seconds: float) -> None:
        """A key was done."""
        self._work.worked(queue, waited, seconds)

    def reconciled(self, controller: str, result: str, seconds: float) -> None:
        """A reconcile ended."""
        self._work.reconciled(controller, result, seconds)

    def leadership(self, lease: str, leads: bool) -> None:
        """A candidate leads, or doesn't."""
        self._work.leadership(lease, leads)

    def received(self, informer: str, verb: Verb, size: int, events: int) -> None:
        """A chunk was read."""
        key = informer, verb
        received = self._tallies.received
        tally = received.get(key)
        if tally is None:
            tally = received[key] = _Received()
        tally.size += size
        tally.events += events

    def handled(self, informer: str, listener: str, seconds: float, calls: int) -> None:
        """A handler returned or raised; of several calls, each counts with their mean."""
        key = informer, listener
        handled = self._tallies.handled
        tally = handled.get(key)
        if tally is None:
            tally = handled[key] = _Handled()
        tally.counts[bisect_left(HANDLER_SECONDS, seconds / calls)] += calls
        tally.seconds += seconds

    def __repr__(self) -> str:
        threads = len(self._everyone)
        return f"<PrometheusMetrics of {len(self._levels)} informers, told in {threads} threads>"


# -- counted without a lock ----------------------------------------------------------------------


@dataclass(slots=True)
class _Received:
    size: int = 0
    events: int = 0

    def add(self, other: _Received) -> None:
        self.size += other.size
        self.events += other.events


@dataclass(slots=True)
class _Handled:
    counts: list[int] = field(default_factory=lambda: [0] * (len(HANDLER_SECONDS) + 1))
    seconds: float = 0.0

    def add(self, other: _Handled) -> None:
        self.counts = [sum(pair) for pair in zip(self.counts, other.counts, strict=True)]
        self.seconds += other.seconds


_T = TypeVar("_T", _Received, _Handled)
_Key: TypeAlias = tuple[str, str]
"""Informer and verb, or informer and listener."""


class _Counted:
    """What one thread has counted. It alone writes; others copy the dicts, which is one step of
    the interpreter, and read the numbers.
    """

    def __init__(self) -> None:
        self.received: dict[_Key, _Received] = {}
        self.handled: dict[_Key, _Handled] = {}


class _Tallies(threading.local):
    """The counts of the current thread: a number that two threads add to without a lock loses
    some. Touching it makes a thread one of those who count, so a scrape doesn't.
    """

    def __init__(self, everyone: list[_Counted]) -> None:
        # Called once in each thread, with the same list.
        mine = _Counted()
        everyone.append(mine)
        self.received = mine.received
        self.handled = mine.handled


def _summed(parts: Iterable[dict[_Key, _T]], empty: Callable[[], _T]) -> dict[_Key, _T]:
    sums: dict[_Key, _T] = {}
    for part in parts:
        for key, tally in part.items():
            sums.setdefault(key, empty()).add(tally)
    return sums


# -- read when somebody looks --------------------------------------------------------------------


class _LevelsByInformer:
    """The informers at work. Written by event loops, read by whoever scrapes: as a tuple that is
    replaced, never changed.
    """

    def __init__(self) -> None:
        self._entries: tuple[tuple[str, ReadLevels], ...] = ()
        self._writing = threading.Lock()

    def add(self, informer: str, levels: ReadLevels) -> None:
        with self._writing:
            self._entries += ((informer, levels),)

    def remove(self, informer: str, levels: ReadLevels) -> None:
        with self._writing:
            entries = list(self._entries)
            entries.remove((informer, levels))
            self._entries = tuple(entries)

    def read(self) -> dict[str, list[Levels]]:
        """How those at work stand, by label."""
        found: dict[str, list[Levels]] = {}
        for informer, levels in self._entries:
            found.setdefault(informer, []).append(levels())
        return found

    def __len__(self) -> int:
        return len(self._entries)


class _Scrape:
    """What is collected when Prometheus asks."""

    def __init__(self, levels: _LevelsByInformer, everyone: list[_Counted]) -> None:
        self._levels = levels
        self._everyone = everyone

    def describe(self) -> Iterator[Metric]:
        """The names, for a registry that refuses doubles. Nothing is read."""
        yield from _gauges({})
        yield from _received({})
        yield from _handled({})

    def collect(self) -> Iterator[Metric]:
        """All that there is."""
        yield from _gauges(self._levels.read())
        threads = self._everyone.copy()
        yield from _received(_summed((each.received.copy() for each in threads), _Received))
        yield from _handled(_summed((each.handled.copy() for each in threads), _Handled))


def _gauges(levels: Mapping[str, list[Levels]]) -> Iterator[Metric]:
    for name, (text, amount) in GAUGES.items():
        gauge = GaugeMetricFamily(f"aioinformer_{name}", text, labels=["informer"])
        for informer, found in levels.items():
            gauge.add_metric([informer], amount(found))
        yield gauge


def _received(received: Mapping[_Key, _Received]) -> Iterator[Metric]:
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


def _handled(handled: Mapping[_Key, _Handled]) -> Iterator[Metric]:
    labels = ["informer", "listener"]
    seconds = HistogramMetricFamily(
        "aioinformer_handler_seconds", "How long handlers took for an event.", labels=labels
    )
    for key, tally in handled.items():
        counts = accumulate(tally.counts)
        seconds.add_metric(key, list(zip(_EDGES, counts, strict=True)), tally.seconds)
    yield seconds


_EDGES = [*map(str, HANDLER_SECONDS), "+Inf"]
