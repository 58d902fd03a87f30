"""The counters and histograms that both adapters, Prometheus and OpenTelemetry, record.

Rare events (requests, errors, processed keys) are recorded in instruments of the metrics system
when they happen, in the event loop. All else is kept in ``Totals`` until a scrape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from aioinformer._core.instrumentation import Metrics, ReadLevels, ReadQueue
from aioinformer._core.listwatch.reflector_requests import Verb
from aioinformer.adapters._totals import Totals


@dataclass(frozen=True, slots=True)
class CounterSpec:
    name: str
    """Without a prefix. Prometheus adds ``_total``."""
    unit: str
    """The unit in OpenTelemetry's notation."""
    help: str
    labels: Sequence[str]


@dataclass(frozen=True, slots=True)
class HistogramSpec:
    """A histogram of seconds."""

    name: str
    """Without a prefix, with the unit."""
    help: str
    labels: Sequence[str]
    edges: Sequence[float]


BY_VERB = ("informer", "verb")

REQUESTS_STARTED = CounterSpec(
    "requests", "{request}", "Lists, watches and probes that were requested.", BY_VERB
)
REQUESTS_ENDED = CounterSpec(
    "requests_ended", "{request}", "Requests that ended, by cause.", (*BY_VERB, "cause")
)
FAILURES = CounterSpec(
    "failures",
    "{failure}",
    "Abnormal ends, by phase and exception class.",
    ("informer", "phase", "error"),
)
HANDLER_ERRORS = CounterSpec(
    "handler_errors",
    "{error}",
    "Handlers that raised, ran out of time or were ended.",
    ("informer", "listener", "error"),
)
OTHER_SHARD_OBJECTS = CounterSpec(
    "other_shard_objects",
    "{object}",
    "Objects and events of other shards that have arrived and were dropped.",
    ("informer",),
)
BLOCKING_CALLS = CounterSpec(
    "handler_blocking_calls",
    "{call}",
    "Calls of handlers that have held the event loop for more than 250 ms.",
    ("informer", "listener"),
)
RECONCILES = CounterSpec(
    "reconcile", "{reconcile}", "Reconciles that ended, by result.", ("controller", "result")
)
BLOCKING_RUNS = CounterSpec(
    "reconcile_blocking_runs",
    "{run}",
    "Runs of reconcilers that have held the event loop for more than 250 ms.",
    ("controller",),
)
SHARD_MOVES = CounterSpec(
    "shard_moves", "{shard}", "Changes of shards on this process.", ("group", "kind")
)

COUNTERS = (
    *(REQUESTS_STARTED, REQUESTS_ENDED, FAILURES, HANDLER_ERRORS, OTHER_SHARD_OBJECTS),
    *(BLOCKING_CALLS, RECONCILES, BLOCKING_RUNS, SHARD_MOVES),
)

WORK_EDGES = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0)
"""Bucket edges, from a lookup in the cache to a call of another service's API."""

REQUEST_SECONDS = HistogramSpec(
    "request_seconds",
    "How long requests took, from the wait for their turn to the end of their answers.",
    BY_VERB,
    # From a list out of the server's cache to a watch of five to ten minutes.
    (0.01, 0.05, 0.25, 1.0, 5.0, 30.0, 120.0, 330.0, 660.0),
)
QUEUE_DURATION = HistogramSpec(
    "workqueue_queue_duration_seconds",
    "How long a key waited in the queue.",
    ("queue",),
    # The range goes from a queue with idle workers to a queue that holds an initial list.
    (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0, 300.0),
)
WORK_DURATION = HistogramSpec(
    "workqueue_work_duration_seconds", "How long a key was processed.", ("queue",), WORK_EDGES
)
RECONCILE_SECONDS = HistogramSpec(
    "reconcile_time_seconds", "How long reconciles took.", ("controller",), WORK_EDGES
)
SHARD_UNOWNED = HistogramSpec(
    "shard_unowned_time_seconds",
    "How long shards that this process acquired had no owner.",
    ("group",),
    # 2 s after a member left, 20 s after a member died.
    (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0),
)

HISTOGRAMS = (REQUEST_SECONDS, QUEUE_DURATION, WORK_DURATION, RECONCILE_SECONDS, SHARD_UNOWNED)


class Instruments(Protocol):
    """The counters and histograms of a metrics system, which the adapter makes."""

    def count(self, counter: CounterSpec, *labels: str, amount: int = 1) -> None: ...

    def time(self, histogram: HistogramSpec, seconds: float, *labels: str) -> None: ...


class RecordingMetrics(Metrics):
    """``Metrics`` that are recorded in instruments, or kept until a scrape."""

    def __init__(self, instruments: Instruments, totals: Totals) -> None:
        self._instruments = instruments
        self._totals = totals
        self._counts = totals.counts

    # -- informers -----------------------------------------------------------------------------

    def informer_started(self, informer: str, levels: ReadLevels) -> None:
        self._totals.informers.add(informer, levels)

    def informer_ended(self, informer: str, levels: ReadLevels) -> None:
        self._totals.informers.remove(informer, levels)

    def request_started(self, informer: str, verb: Verb) -> None:
        self._instruments.count(REQUESTS_STARTED, informer, verb)

    def request_ended(self, informer: str, verb: Verb, cause: str, seconds: float) -> None:
        self._instruments.count(REQUESTS_ENDED, informer, verb, cause)
        self._instruments.time(REQUEST_SECONDS, seconds, informer, verb)

    def received(self, informer: str, verb: Verb, size: int, events: int) -> None:
        self._counts.add_received(informer, verb, size, events)

    def failed(self, informer: str, phase: str, error: str) -> None:
        self._instruments.count(FAILURES, informer, phase, error)

    def other_shards(self, informer: str, count: int) -> None:
        self._instruments.count(OTHER_SHARD_OBJECTS, informer, amount=count)

    def handled(self, informer: str, listener: str, seconds: float, calls: int) -> None:
        self._counts.add_handled(informer, listener, seconds, calls)

    def handler_failed(self, informer: str, listener: str, error: str) -> None:
        self._instruments.count(HANDLER_ERRORS, informer, listener, error)

    def handler_blocked(self, informer: str, listener: str, seconds: float) -> None:
        self._instruments.count(BLOCKING_CALLS, informer, listener)

    # -- queues, controllers and groups --------------------------------------------------------

    def queue_started(self, queue: str, read: ReadQueue) -> None:
        self._totals.queues.add(queue, read)

    def queue_ended(self, queue: str, read: ReadQueue) -> None:
        self._totals.queues.remove(queue, read)

    def worked(self, queue: str, waited: float, seconds: float) -> None:
        self._instruments.time(QUEUE_DURATION, waited, queue)
        self._instruments.time(WORK_DURATION, seconds, queue)

    def reconciled(self, controller: str, result: str, seconds: float) -> None:
        self._instruments.count(RECONCILES, controller, result)
        self._instruments.time(RECONCILE_SECONDS, seconds, controller)

    def reconcile_blocked(self, controller: str, seconds: float) -> None:
        self._instruments.count(BLOCKING_RUNS, controller)

    def leadership(self, lease: str, leads: bool) -> None:
        self._totals.leaders[lease] = leads

    def shards_held(self, group: str, shards: int) -> None:
        self._totals.shards[group] = shards

    def shard_moved(self, group: str, kind: str) -> None:
        self._instruments.count(SHARD_MOVES, group, kind)

    def shard_unowned(self, group: str, seconds: float) -> None:
        self._instruments.time(SHARD_UNOWNED, seconds, group)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._totals}>"
