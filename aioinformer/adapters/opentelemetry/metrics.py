"""What informers, queues and controllers tell, as OpenTelemetry metrics.

A name is the one that the Prometheus adapter has, without ``_total`` and without its unit, behind
``aioinformer.``: ``aioinformer_received_bytes_total`` is ``aioinformer.received`` in ``By``. What
translates OpenTelemetry to Prometheus puts these back, so that the same dashboard and the same
alerts serve both.

To tell the SDK of one number takes several microseconds, more than an event does. So what comes
with every chunk and every call is counted in plain numbers and read when the SDK collects. A
histogram can't be read like that: the one of handlers has every call while they are few, and a
sample of them when they are many; of calls that were told of together, their mean.
``handler_calls`` and ``handler_time`` have all of them.

What work queues, controllers and candidates tell, as OpenTelemetry metrics;
``OpenTelemetryMetrics`` has it.

What a queue counts for itself is read when the SDK collects; keys and runs are told as they are
done, which is seldom next to what they do.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from math import isfinite
from time import monotonic

from opentelemetry.metrics import (
    CallbackOptions,
    Meter,
    MeterProvider,
    Observation,
    get_meter_provider,
)

from aioinformer._core.controllers.queue_items import ReadQueue
from aioinformer._core.instrumentation import Metrics, ReadLevels
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
    InformerGauge,
    QueueGauge,
    ReceivedTotals,
    ThreadCounts,
    ThreadLocalCounts,
    sum_counts,
)

__all__ = ["SCOPE", "OpenTelemetryMetrics", "WorkInstruments"]


class WorkInstruments:
    """The part of ``OpenTelemetryMetrics`` that is about queues, controllers and leadership."""

    def __init__(self, meter: Meter) -> None:
        """Make the instruments."""
        self._queues = ActiveQueues()
        self._leaders: dict[str, bool] = {}
        self._create_queue_instruments(meter)
        self._queue_duration = meter.create_histogram(
            "aioinformer.workqueue_queue_duration",
            "s",
            "How long a key waited in line.",
            explicit_bucket_boundaries_advisory=WAIT_SECONDS,
        )
        self._work_duration = meter.create_histogram(
            "aioinformer.workqueue_work_duration",
            "s",
            "How long a key was worked on.",
            explicit_bucket_boundaries_advisory=WORK_SECONDS,
        )
        self._reconcile_results = meter.create_counter(
            "aioinformer.reconcile", "{reconcile}", "Reconciles that ended, by result."
        )
        self._reconcile_seconds = meter.create_histogram(
            "aioinformer.reconcile_time",
            "s",
            "How long reconciles took.",
            explicit_bucket_boundaries_advisory=WORK_SECONDS,
        )

    def queue_started(self, queue: str, read: ReadQueue) -> None:
        """A queue's numbers may be read from now on."""
        self._queues.add(queue, read)

    def queue_ended(self, queue: str, read: ReadQueue) -> None:
        """They are read for the last time."""
        self._queues.remove(queue, read)

    def worked(self, queue: str, waited: float, seconds: float) -> None:
        """A key was done."""
        self._queue_duration.record(waited, {"queue": queue})
        self._work_duration.record(seconds, {"queue": queue})

    def reconciled(self, controller: str, result: str, seconds: float) -> None:
        """A reconcile ended."""
        self._reconcile_results.add(1, {"controller": controller, "result": result})
        self._reconcile_seconds.record(seconds, {"controller": controller})

    def leadership(self, lease: str, leads: bool) -> None:
        """A candidate leads, or doesn't."""
        self._leaders[lease] = leads

    # -- read when the SDK collects ------------------------------------------------------------

    def _create_queue_instruments(self, meter: Meter) -> None:
        meter.create_observable_up_down_counter(
            "aioinformer.workqueue_depth",
            [self._observe_depths],
            "{key}",
            "Keys that wait in line.",
        )
        for name, gauge in QUEUE_GAUGES.items():
            meter.create_observable_up_down_counter(
                f"aioinformer.workqueue_{name.removesuffix('_seconds')}",
                [_QueueGaugeCallback(self._queues, gauge)],
                gauge.unit,
                gauge.help,
            )
        for name, (text, _) in QUEUE_COUNTERS.items():
            meter.create_observable_counter(
                f"aioinformer.workqueue_{name}",
                [_QueueCounterCallback(self._queues, name)],
                "{key}",
                text,
            )
        meter.create_observable_gauge(
            "aioinformer.leader",
            [self._observe_leadership],
            "",
            "Whether this process leads under a Lease: 1 or 0.",
        )

    def _observe_depths(self, _: CallbackOptions) -> Iterator[Observation]:
        for queue, all_ in self._queues.read()[0].items():
            yield Observation(
                sum(each.normal for each in all_), {"queue": queue, "priority": "normal"}
            )
            yield Observation(sum(each.low for each in all_), {"queue": queue, "priority": "low"})

    def _observe_leadership(self, _: CallbackOptions) -> Iterator[Observation]:
        for lease, leads in self._leaders.copy().items():
            yield Observation(int(leads), {"lease": lease})

    def __repr__(self) -> str:
        return f"<WorkInstruments of {len(self._queues)} queues>"


class _QueueGaugeCallback:
    """Reads one gauge of all queues in use."""

    def __init__(self, queues: ActiveQueues, gauge: QueueGauge) -> None:
        self._queues = queues
        self._gauge = gauge

    def __call__(self, _: CallbackOptions) -> Iterator[Observation]:
        for queue, all_ in self._queues.read()[0].items():
            yield Observation(self._gauge.aggregate(all_), {"queue": queue})


class _QueueCounterCallback:
    """Reads one count of all queues, those that have ended included."""

    def __init__(self, queues: ActiveQueues, name: str) -> None:
        self._queues = queues
        self._name = name

    def __call__(self, _: CallbackOptions) -> Iterator[Observation]:
        for (counter, queue), count in self._queues.read()[1].items():
            if counter == self._name:
                yield Observation(count, {"queue": queue})


SCOPE = "aioinformer"
"""The instrumentation scope, and what every name begins with."""

NON_ADDITIVE_GAUGES = frozenset({"resource_version", "freshness_seconds"})
"""Gauges that mean nothing when they are added up; the others are up-down counters."""


MAX_SAMPLES_PER_SECOND = 100
"""Calls of a handler that go into its histogram in a second before it becomes a sample: about a
millisecond's work."""


class OpenTelemetryMetrics(Metrics):
    """Shows what informers tell as ``aioinformer....``. Make one for each meter provider, and
    share it among all factories and loops of the process.

    Attributes are those of the Prometheus adapter: ``informer`` (resource and scope), ``verb``,
    ``cause``, ``phase``, ``error``, ``listener``, ``queue``, ``priority``, ``controller``,
    ``result`` and ``lease``; all from small, fixed sets, as ``Metrics`` promises. The freshness of
    an informer that has had no proof yet is no number, and isn't observed.

    Args:
        meter_provider: what makes the instruments; the process's by default, which may be set
            later.
    """

    def __init__(self, meter_provider: MeterProvider | None = None) -> None:
        meter = (meter_provider or get_meter_provider()).get_meter(SCOPE)
        self._informers = ActiveInformers()
        self._all_counts: list[ThreadCounts] = []
        self._counts = ThreadLocalCounts(self._all_counts)
        self._samplers = _ThreadSamplers()
        self._work_instruments = WorkInstruments(meter)
        self._create_informer_instruments(meter)
        self._requests_started = meter.create_counter(
            "aioinformer.requests", "{request}", "Lists, watches and probes asked for."
        )
        self._requests_ended = meter.create_counter(
            "aioinformer.requests_ended", "{request}", "Requests that ended, by cause."
        )
        self._request_seconds = meter.create_histogram(
            "aioinformer.request",
            "s",
            "How long requests took, from the wait for their turn to the end of their answers.",
            explicit_bucket_boundaries_advisory=REQUEST_SECONDS,
        )
        self._failures = meter.create_counter(
            "aioinformer.failures", "{failure}", "Abnormal ends, by phase and exception class."
        )
        self._handler_errors = meter.create_counter(
            "aioinformer.handler_errors",
            "{error}",
            "Handlers that raised, ran out of time or were ended.",
        )
        self._handler_seconds = meter.create_histogram(
            "aioinformer.handler",
            "s",
            "How long handlers took for an event; a sample of them when they are many.",
            explicit_bucket_boundaries_advisory=HANDLER_SECONDS,
        )

    # -- told as it happens --------------------------------------------------------------------

    def request_started(self, informer: str, verb: Verb) -> None:
        """A request is asked for."""
        self._requests_started.add(1, {"informer": informer, "verb": verb})

    def request_ended(self, informer: str, verb: Verb, cause: str, seconds: float) -> None:
        """A request ended."""
        self._requests_ended.add(1, {"informer": informer, "verb": verb, "cause": cause})
        self._request_seconds.record(seconds, {"informer": informer, "verb": verb})

    def received(self, informer: str, verb: Verb, size: int, events: int) -> None:
        """A chunk was read."""
        self._counts.add_received(informer, verb, size, events)

    def failed(self, informer: str, phase: str, error: str) -> None:
        """Something ended abnormally."""
        self._failures.add(1, {"informer": informer, "phase": phase, "error": error})

    def handled(self, informer: str, listener: str, seconds: float, calls: int) -> None:
        """A handler returned or raised."""
        self._counts.add_handled(informer, listener, seconds, calls)
        if self._samplers.should_record(informer, listener):
            attributes = {"informer": informer, "listener": listener}
            self._handler_seconds.record(seconds / calls, attributes)

    def handler_failed(self, informer: str, listener: str, error: str) -> None:
        """A handler raised, ran out of time or was ended."""
        attributes = {"informer": informer, "listener": listener, "error": error}
        self._handler_errors.add(1, attributes)

    def informer_started(self, informer: str, levels: ReadLevels) -> None:
        """Levels may be read from now on."""
        self._informers.add(informer, levels)

    def informer_ended(self, informer: str, levels: ReadLevels) -> None:
        """Levels are read no more."""
        self._informers.remove(informer, levels)

    def queue_started(self, queue: str, read: ReadQueue) -> None:
        """A queue's numbers may be read from now on."""
        self._work_instruments.queue_started(queue, read)

    def queue_ended(self, queue: str, read: ReadQueue) -> None:
        """They are read no more."""
        self._work_instruments.queue_ended(queue, read)

    def worked(self, queue: str, waited: float, seconds: float) -> None:
        """A key was done."""
        self._work_instruments.worked(queue, waited, seconds)

    def reconciled(self, controller: str, result: str, seconds: float) -> None:
        """A reconcile ended."""
        self._work_instruments.reconciled(controller, result, seconds)

    def leadership(self, lease: str, leads: bool) -> None:
        """A candidate leads, or doesn't."""
        self._work_instruments.leadership(lease, leads)

    # -- read when the SDK collects, in a thread of its own perhaps -----------------------------

    def _create_informer_instruments(self, meter: Meter) -> None:
        for name, gauge in INFORMER_GAUGES.items():
            make = (
                meter.create_observable_gauge
                if name in NON_ADDITIVE_GAUGES
                else meter.create_observable_up_down_counter
            )
            read = _InformerGaugeCallback(self._informers, gauge)
            make(f"aioinformer.{_strip_unit(name)}", [read], gauge.unit, gauge.help)
        for name, unit, text, read_counts in (
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
            meter.create_observable_counter(f"aioinformer.{name}", [read_counts], unit, text)

    def _observe_received_bytes(self, _: CallbackOptions) -> Iterator[Observation]:
        for (informer, verb), tally in self._sum_received().items():
            yield Observation(tally.size, {"informer": informer, "verb": verb})

    def _observe_received_events(self, _: CallbackOptions) -> Iterator[Observation]:
        for (informer, verb), tally in self._sum_received().items():
            yield Observation(tally.events, {"informer": informer, "verb": verb})

    def _observe_handler_calls(self, _: CallbackOptions) -> Iterator[Observation]:
        for (informer, listener), tally in self._sum_handled().items():
            attributes = {"informer": informer, "listener": listener}
            yield Observation(sum(tally.counts), attributes)

    def _observe_handler_time(self, _: CallbackOptions) -> Iterator[Observation]:
        for (informer, listener), tally in self._sum_handled().items():
            yield Observation(tally.seconds, {"informer": informer, "listener": listener})

    def _sum_received(self) -> Mapping[tuple[str, str], ReceivedTotals]:
        return sum_counts((each.received for each in self._all_counts.copy()), ReceivedTotals)

    def _sum_handled(self) -> Mapping[tuple[str, str], HandlerTotals]:
        return sum_counts((each.handled for each in self._all_counts.copy()), HandlerTotals)

    def __repr__(self) -> str:
        threads = len(self._all_counts)
        return (
            f"<OpenTelemetryMetrics of {len(self._informers)} informers, told in {threads} threads>"
        )


class _CallSampler:
    """Which of the calls of one handler to record: one in so many as there were hundreds of them
    in the last second, or are in this one. How long they took plays no part in it.
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
    """Those of the handlers whose loop runs in this thread."""

    def __init__(self) -> None:
        self._samplers: dict[tuple[str, str], _CallSampler] = {}

    def should_record(self, informer: str, listener: str) -> bool:
        key = informer, listener
        sample = self._samplers.get(key)
        if sample is None:
            sample = self._samplers[key] = _CallSampler()
        return sample.should_record()


class _InformerGaugeCallback:
    """Reads one gauge of all informers at work."""

    def __init__(self, levels: ActiveInformers, gauge: InformerGauge) -> None:
        self._informers = levels
        self._gauge = gauge

    def __call__(self, _: CallbackOptions) -> Iterator[Observation]:
        for informer, found in self._informers.read().items():
            amount = self._gauge.aggregate(found)
            if isfinite(amount):
                yield Observation(amount, {"informer": informer})


def _strip_unit(name: str) -> str:
    """The name without its unit, which the instrument has."""
    return name.removesuffix("_seconds").removesuffix("_bytes")
