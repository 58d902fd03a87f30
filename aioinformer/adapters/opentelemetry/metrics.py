"""OpenTelemetry metrics of informers, work queues, controllers and leader elections.

An instrument has the name of the Prometheus adapter's metric without ``_total`` and without its
unit, and the prefix ``aioinformer.``: ``aioinformer_received_bytes_total`` is
``aioinformer.received`` in ``By``. An exporter that translates OpenTelemetry to Prometheus adds
both again, so that the same dashboard and the same alerts work with either adapter.

Recording one number in the SDK takes several microseconds, which is more than an event takes. So
the numbers of every chunk and every call are counted as plain integers and read when the SDK
collects. A histogram can't be read like that. The histogram of handlers receives every call while
there are few, and a sample when there are many; of calls that are reported together it receives
the mean. ``handler_calls`` and ``handler_time`` include all calls.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import isfinite
from time import monotonic
from typing import TypeAlias

from opentelemetry.metrics import (
    CallbackOptions,
    Histogram,
    Meter,
    MeterProvider,
    Observation,
    get_meter_provider,
)

from aioinformer._core.instrumentation import (
    Levels,
    Metrics,
    QueueStatistics,
    ReadLevels,
    ReadQueue,
)
from aioinformer._core.listwatch.requests import Verb
from aioinformer._core.quantities import quantity
from aioinformer.adapters._totals import (
    BLOCKING_CALLS,
    BLOCKING_RUNS,
    HANDLER_SECONDS,
    INFORMER_GAUGES,
    OTHER_SHARD_OBJECTS,
    QUEUE_COUNTERS,
    QUEUE_GAUGES,
    REQUEST_SECONDS,
    UNOWNED_SECONDS,
    WAIT_SECONDS,
    WORK_SECONDS,
    ActiveInformers,
    ActiveQueues,
    GaugeSpec,
    HandlerTotals,
    LabelPair,
    ReceivedTotals,
    ThreadCounts,
    ThreadLocalCounts,
    sum_counts,
)

__all__ = ["SCOPE", "OpenTelemetryMetrics"]

SCOPE = "aioinformer"
"""The name of the instrumentation scope, and the prefix of every instrument's name."""

NON_ADDITIVE_GAUGES = frozenset({"resource_version", "freshness_seconds"})
"""Gauges whose sum over informers means nothing. The other gauges are up-down counters, which a
backend may add up."""

MAX_SAMPLES_PER_SECOND = 100
"""Calls of one handler that are recorded in its histogram in a second, before only a sample is
recorded. They take about a millisecond."""

ReadObservations: TypeAlias = Callable[[], Iterable[Observation]]


class OpenTelemetryMetrics(Metrics):
    """``Metrics`` as OpenTelemetry instruments, named ``aioinformer....``.

    Make one for each meter provider, and share it among all factories and event loops of the
    process.

    The attributes are those of the Prometheus adapter: ``informer`` (resource and scope), ``verb``,
    ``cause``, ``phase``, ``error``, ``listener``, ``queue``, ``priority``, ``controller``,
    ``result`` and ``lease``. The values of each are a small, fixed set, as ``Metrics`` promises.
    The freshness of an informer without a first proof of freshness is infinite and isn't observed.

    Args:
        meter_provider: makes the instruments; the process's provider by default, which may be set
            later.
    """

    def __init__(self, meter_provider: MeterProvider | None = None) -> None:
        meter = (meter_provider or get_meter_provider()).get_meter(SCOPE)
        self._informers = ActiveInformers()
        self._queues = ActiveQueues()
        self._leaders: dict[str, bool] = {}
        self._shards: dict[str, int] = {}
        self._all_counts: list[ThreadCounts] = []
        self._counts = ThreadLocalCounts(self._all_counts)
        self._samplers = _ThreadSamplers()
        self._create_informer_instruments(meter)
        self._create_request_instruments(meter)
        self._create_queue_instruments(meter)
        self._create_group_instruments(meter)

    # -- informers -----------------------------------------------------------------------------

    def _create_request_instruments(self, meter: Meter) -> None:
        self._requests_started = meter.create_counter(
            f"{SCOPE}.requests", "{request}", "Lists, watches and probes that were requested."
        )
        self._requests_ended = meter.create_counter(
            f"{SCOPE}.requests_ended", "{request}", "Requests that ended, by cause."
        )
        self._request_seconds = _histogram(
            meter,
            "request",
            "How long requests took, from the wait for their turn to the end of their answers.",
            REQUEST_SECONDS,
        )
        self._failures = meter.create_counter(
            f"{SCOPE}.failures", "{failure}", "Abnormal ends, by phase and exception class."
        )
        self._handler_errors = meter.create_counter(
            f"{SCOPE}.handler_errors",
            "{error}",
            "Handlers that raised, ran out of time or were ended.",
        )
        self._other_shards = meter.create_counter(
            f"{SCOPE}.other_shard_objects", "{object}", OTHER_SHARD_OBJECTS
        )
        self._blocking_calls = meter.create_counter(
            f"{SCOPE}.handler_blocking_calls", "{call}", BLOCKING_CALLS
        )
        self._handler_seconds = _histogram(
            meter,
            "handler",
            "How long handlers took for an event; a sample of them when they are many.",
            HANDLER_SECONDS,
        )

    def _create_informer_instruments(self, meter: Meter) -> None:
        for name, gauge in INFORMER_GAUGES.items():
            create = (
                meter.create_observable_gauge
                if name in NON_ADDITIVE_GAUGES
                else meter.create_observable_up_down_counter
            )
            read = _callback(partial(self._observe_informers, gauge))
            create(f"{SCOPE}.{_strip_unit(name)}", [read], gauge.unit, gauge.help)
        for name, unit, text, read_totals in (
            (
                "received",
                "By",
                "Bytes of answers read, decompressed.",
                self._observe_received_bytes,
            ),
            (
                "received_events",
                "{event}",
                "Objects and events read.",
                self._observe_received_events,
            ),
            ("handler_calls", "{call}", "Calls of handlers.", self._observe_handler_calls),
            ("handler_time", "s", "Time that handlers took, added up.", self._observe_handler_time),
        ):
            meter.create_observable_counter(f"{SCOPE}.{name}", [_callback(read_totals)], unit, text)

    def informer_started(self, informer: str, levels: ReadLevels) -> None:
        """Read the informer's levels at each collection from now on."""
        self._informers.add(informer, levels)

    def informer_ended(self, informer: str, levels: ReadLevels) -> None:
        """Stop reading the informer's levels."""
        self._informers.remove(informer, levels)

    def request_started(self, informer: str, verb: Verb) -> None:
        """Count a request."""
        self._requests_started.add(1, {"informer": informer, "verb": verb})

    def request_ended(self, informer: str, verb: Verb, cause: str, seconds: float) -> None:
        """Count and time a request that ended."""
        self._requests_ended.add(1, {"informer": informer, "verb": verb, "cause": cause})
        self._request_seconds.record(seconds, {"informer": informer, "verb": verb})

    def received(self, informer: str, verb: Verb, size: int, events: int) -> None:
        """Count a chunk."""
        self._counts.add_received(informer, verb, size, events)

    def failed(self, informer: str, phase: str, error: str) -> None:
        """Count an abnormal end."""
        self._failures.add(1, {"informer": informer, "phase": phase, "error": error})

    def other_shards(self, informer: str, count: int) -> None:
        """Count objects of other shards."""
        self._other_shards.add(count, {"informer": informer})

    def handled(self, informer: str, listener: str, seconds: float, calls: int) -> None:
        """Count calls of a handler, and record them in its histogram while there are few."""
        self._counts.add_handled(informer, listener, seconds, calls)
        if self._samplers.should_record(informer, listener):
            attributes = {"informer": informer, "listener": listener}
            self._handler_seconds.record(seconds / calls, attributes)

    def handler_failed(self, informer: str, listener: str, error: str) -> None:
        """Count a call that raised, ran out of time or was ended."""
        attributes = {"informer": informer, "listener": listener, "error": error}
        self._handler_errors.add(1, attributes)

    def handler_blocked(self, informer: str, listener: str, seconds: float) -> None:
        """Count a call that has held the event loop."""
        self._blocking_calls.add(1, {"informer": informer, "listener": listener})

    # -- queues and controllers ----------------------------------------------------------------

    def _create_queue_instruments(self, meter: Meter) -> None:
        self._queue_duration = _histogram(
            meter, "workqueue_queue_duration", "How long a key waited in the queue.", WAIT_SECONDS
        )
        self._work_duration = _histogram(
            meter, "workqueue_work_duration", "How long a key was processed.", WORK_SECONDS
        )
        self._reconcile_results = meter.create_counter(
            f"{SCOPE}.reconcile", "{reconcile}", "Reconciles that ended, by result."
        )
        self._reconcile_seconds = _histogram(
            meter, "reconcile_time", "How long reconciles took.", WORK_SECONDS
        )
        self._blocking_runs = meter.create_counter(
            f"{SCOPE}.reconcile_blocking_runs", "{run}", BLOCKING_RUNS
        )
        meter.create_observable_up_down_counter(
            f"{SCOPE}.workqueue_depth",
            [_callback(self._observe_depths)],
            "{key}",
            "Keys that wait in the queue.",
        )
        for name, gauge in QUEUE_GAUGES.items():
            meter.create_observable_up_down_counter(
                f"{SCOPE}.workqueue_{_strip_unit(name)}",
                [_callback(partial(self._observe_queues, gauge))],
                gauge.unit,
                gauge.help,
            )
        for name, (text, _) in QUEUE_COUNTERS.items():
            meter.create_observable_counter(
                f"{SCOPE}.workqueue_{name}",
                [_callback(partial(self._observe_queue_counts, name))],
                "{key}",
                text,
            )
        meter.create_observable_gauge(
            f"{SCOPE}.leader",
            [_callback(self._observe_leadership)],
            "",
            "1 if this process leads under a Lease, else 0.",
        )

    def _create_group_instruments(self, meter: Meter) -> None:
        meter.create_observable_up_down_counter(
            f"{SCOPE}.shards_held",
            [_callback(self._observe_shards)],
            "{shard}",
            "Shards of a group on which this process works.",
        )
        self._shard_moves = meter.create_counter(
            f"{SCOPE}.shard_moves", "{shard}", "Changes of shards on this process."
        )
        self._shard_unowned = _histogram(
            meter,
            "shard_unowned_time",
            "How long shards that this process acquired had no owner.",
            UNOWNED_SECONDS,
        )

    def queue_started(self, queue: str, read: ReadQueue) -> None:
        """Read the queue's statistics at each collection from now on."""
        self._queues.add(queue, read)

    def queue_ended(self, queue: str, read: ReadQueue) -> None:
        """Read the queue's counts for the last time."""
        self._queues.remove(queue, read)

    def worked(self, queue: str, waited: float, seconds: float) -> None:
        """Time a key that was processed."""
        self._queue_duration.record(waited, {"queue": queue})
        self._work_duration.record(seconds, {"queue": queue})

    def reconciled(self, controller: str, result: str, seconds: float) -> None:
        """Count and time a reconcile."""
        self._reconcile_results.add(1, {"controller": controller, "result": result})
        self._reconcile_seconds.record(seconds, {"controller": controller})

    def reconcile_blocked(self, controller: str, seconds: float) -> None:
        """Count a reconcile that has held the event loop."""
        self._blocking_runs.add(1, {"controller": controller})

    def leadership(self, lease: str, leads: bool) -> None:
        """Show if this process leads."""
        self._leaders[lease] = leads

    def shards_held(self, group: str, shards: int) -> None:
        """Show the number of shards on which this process works."""
        self._shards[group] = shards

    def shard_moved(self, group: str, kind: str) -> None:
        """Count a change of one shard."""
        self._shard_moves.add(1, {"group": group, "kind": kind})

    def shard_unowned(self, group: str, seconds: float) -> None:
        """Time a shard without an owner."""
        self._shard_unowned.record(seconds, {"group": group})

    # -- read when the SDK collects, perhaps in a thread of its own ------------------------------

    def _observe_informers(self, gauge: GaugeSpec[Levels]) -> Iterator[Observation]:
        for informer, levels in self._informers.read().items():
            amount = gauge.aggregate(levels)
            if isfinite(amount):
                yield Observation(amount, {"informer": informer})

    def _observe_received_bytes(self) -> Iterator[Observation]:
        for (informer, verb), totals in self._sum_received().items():
            yield Observation(totals.size, {"informer": informer, "verb": verb})

    def _observe_received_events(self) -> Iterator[Observation]:
        for (informer, verb), totals in self._sum_received().items():
            yield Observation(totals.events, {"informer": informer, "verb": verb})

    def _observe_handler_calls(self) -> Iterator[Observation]:
        for (informer, listener), totals in self._sum_handled().items():
            yield Observation(sum(totals.counts), {"informer": informer, "listener": listener})

    def _observe_handler_time(self) -> Iterator[Observation]:
        for (informer, listener), totals in self._sum_handled().items():
            yield Observation(totals.seconds, {"informer": informer, "listener": listener})

    def _sum_received(self) -> Mapping[LabelPair, ReceivedTotals]:
        return sum_counts((each.received for each in self._all_counts.copy()), ReceivedTotals)

    def _sum_handled(self) -> Mapping[LabelPair, HandlerTotals]:
        return sum_counts((each.handled for each in self._all_counts.copy()), HandlerTotals)

    def _observe_depths(self) -> Iterator[Observation]:
        for queue, all_ in self._queues.read()[0].items():
            normal, low = sum(each.normal for each in all_), sum(each.low for each in all_)
            yield Observation(normal, {"queue": queue, "priority": "normal"})
            yield Observation(low, {"queue": queue, "priority": "low"})

    def _observe_queues(self, gauge: GaugeSpec[QueueStatistics]) -> Iterator[Observation]:
        for queue, all_ in self._queues.read()[0].items():
            yield Observation(gauge.aggregate(all_), {"queue": queue})

    def _observe_queue_counts(self, name: str) -> Iterator[Observation]:
        for (counter, queue), count in self._queues.read()[1].items():
            if counter == name:
                yield Observation(count, {"queue": queue})

    def _observe_leadership(self) -> Iterator[Observation]:
        for lease, leads in self._leaders.copy().items():
            yield Observation(int(leads), {"lease": lease})

    def _observe_shards(self) -> Iterator[Observation]:
        for group, shards in self._shards.copy().items():
            yield Observation(shards, {"group": group})

    def __repr__(self) -> str:
        return (
            f"<OpenTelemetryMetrics of {quantity(len(self._informers), 'informer')} and "
            f"{quantity(len(self._queues), 'queue')}, "
            f"fed from {quantity(len(self._all_counts), 'thread')}>"
        )


def _callback(read: ReadObservations) -> Callable[[CallbackOptions], Iterable[Observation]]:
    """Return ``read`` as a callback of the SDK, whose options are not needed."""
    return lambda _: read()


def _histogram(meter: Meter, name: str, text: str, edges: Sequence[float]) -> Histogram:
    return meter.create_histogram(
        f"{SCOPE}.{name}", "s", text, explicit_bucket_boundaries_advisory=edges
    )


def _strip_unit(name: str) -> str:
    """Return the name without its unit, which the instrument has in a field of its own."""
    return name.removesuffix("_seconds").removesuffix("_bytes")


class _CallSampler:
    """The choice of which calls of one handler are recorded.

    One call in N is recorded, where N is the number of hundreds of calls in the last second or,
    if that is more, in the current one. A call's duration plays no part in the choice.
    """

    __slots__ = ("_calls_to_skip", "_count", "_stride", "_window_end")

    def __init__(self) -> None:
        self._count = self._calls_to_skip = self._stride = 0
        self._window_end = 0.0

    def should_record(self) -> bool:
        self._count += 1
        self._calls_to_skip -= 1
        if self._calls_to_skip > 0:
            return False
        now = monotonic()
        if now >= self._window_end:
            self._stride, self._count = self._count // MAX_SAMPLES_PER_SECOND, 0
            self._window_end = now + 1.0
        self._calls_to_skip = max(self._stride, self._count // MAX_SAMPLES_PER_SECOND)
        return True


class _ThreadSamplers(threading.local):
    """The samplers of the handlers whose event loop runs in this thread."""

    def __init__(self) -> None:
        self._samplers: dict[LabelPair, _CallSampler] = {}

    def should_record(self, informer: str, listener: str) -> bool:
        key = informer, listener
        sampler = self._samplers.get(key)
        if sampler is None:
            sampler = self._samplers[key] = _CallSampler()
        return sampler.should_record()
