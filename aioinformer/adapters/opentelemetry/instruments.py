"""OpenTelemetry metrics of informers, work queues, controllers and leader elections.

An instrument has the name of the Prometheus adapter's metric without ``_total`` and without its
unit, and the prefix ``aioinformer.``: ``aioinformer_received_bytes_total`` is
``aioinformer.received`` in ``By``. An exporter that translates OpenTelemetry to Prometheus adds
both again, so that the same dashboard and the same alerts work with either adapter.

Recording one number in the SDK takes several microseconds, more than an event, so the numbers of
every chunk and call are counted as plain integers and read when the SDK collects. A histogram can't
be read like that: the one of handlers receives every call while there are few, and a sample when
there are many; of calls that are reported together it receives the mean. ``handler_calls`` and
``handler_time`` include all calls.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
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
    GaugeSpec,
    LabelPair,
    Totals,
)

SCOPE = "aioinformer"
"""The name of the instrumentation scope, and the prefix of every instrument's name."""

NON_ADDITIVE_GAUGES = frozenset({"resource_version", "freshness_seconds"})
"""Gauges whose sum over informers means nothing. The others are up-down counters."""

MAX_SAMPLES_PER_SECOND = 100
"""Calls of one handler that are recorded in its histogram in a second, before only a sample is
recorded. Recording 100 calls takes about a millisecond."""

ReadObservations: TypeAlias = Callable[[], Iterable[Observation]]


class OpenTelemetryMetrics(RecordingMetrics):
    """``Metrics`` as OpenTelemetry instruments, named ``aioinformer....``.

    Make one for each meter provider, and share it among all factories and loops of the process.

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
        totals = Totals()
        super().__init__(_MeterInstruments(meter), totals)
        self._samplers = _ThreadSamplers()
        self._handler_seconds = _histogram(
            meter,
            "handler",
            "How long handlers took for an event; a sample of them when they are many.",
            HANDLER_SECONDS,
        )
        _Observations(totals).create_instruments(meter)

    def handled(self, informer: str, listener: str, seconds: float, calls: int) -> None:
        """Count calls of a handler, and record them in its histogram while there are few."""
        super().handled(informer, listener, seconds, calls)
        if self._samplers.should_record(informer, listener):
            attributes = {"informer": informer, "listener": listener}
            self._handler_seconds.record(seconds / calls, attributes)


class _MeterInstruments:
    def __init__(self, meter: Meter) -> None:
        self._counters = {
            each.name: meter.create_counter(f"{SCOPE}.{each.name}", each.unit, each.help)
            for each in COUNTERS
        }
        self._histograms = {
            each.name: _histogram(meter, _strip_unit(each.name), each.help, each.edges)
            for each in HISTOGRAMS
        }

    def count(self, counter: CounterSpec, *labels: str, amount: int = 1) -> None:
        attributes = dict(zip(counter.labels, labels, strict=True))
        self._counters[counter.name].add(amount, attributes)

    def time(self, histogram: HistogramSpec, seconds: float, *labels: str) -> None:
        attributes = dict(zip(histogram.labels, labels, strict=True))
        self._histograms[histogram.name].record(seconds, attributes)


class _Observations:
    """The numbers that are read when the SDK collects, perhaps in a thread of its own."""

    def __init__(self, totals: Totals) -> None:
        self._totals = totals

    def create_instruments(self, meter: Meter) -> None:
        for name, gauge in INFORMER_GAUGES.items():
            create = (
                meter.create_observable_gauge
                if name in NON_ADDITIVE_GAUGES
                else meter.create_observable_up_down_counter
            )
            read = _callback(partial(self._observe_informers, gauge))
            create(f"{SCOPE}.{_strip_unit(name)}", [read], gauge.unit, gauge.help)
        create_level = meter.create_observable_up_down_counter
        for name, queue_gauge in QUEUE_GAUGES.items():
            read = _callback(partial(self._observe_queues, queue_gauge))
            full_name = f"{SCOPE}.workqueue_{_strip_unit(name)}"
            create_level(full_name, [read], queue_gauge.unit, queue_gauge.help)
        for name, unit, text, observe in (
            ("workqueue_depth", "{key}", QUEUE_DEPTH, self._observe_depths),
            ("shards_held", "{shard}", HELD_SHARDS, self._observe_shards),
        ):
            create_level(f"{SCOPE}.{name}", [_callback(observe)], unit, text)
        leader = _callback(self._observe_leadership)
        meter.create_observable_gauge(f"{SCOPE}.leader", [leader], "", LEADERSHIP)
        self._create_counters(meter)

    def _create_counters(self, meter: Meter) -> None:
        counters: list[tuple[str, str, str, ReadObservations]] = [
            ("received", "By", RECEIVED_BYTES, self._observe_received_bytes),
            ("received_events", "{event}", RECEIVED_EVENTS, self._observe_received_events),
            ("handler_calls", "{call}", "Calls of handlers.", self._observe_handler_calls),
            ("handler_time", "s", "Time that handlers took, added up.", self._observe_handler_time),
            *(
                (f"workqueue_{name}", "{key}", text, partial(self._observe_queue_counts, name))
                for name, (text, _) in QUEUE_COUNTERS.items()
            ),
        ]
        for name, unit, text, observe in counters:
            meter.create_observable_counter(f"{SCOPE}.{name}", [_callback(observe)], unit, text)

    def _observe_informers(self, gauge: GaugeSpec[Levels]) -> Iterator[Observation]:
        for informer, levels in self._totals.informers.read().items():
            amount = gauge.aggregate(levels)
            if isfinite(amount):
                yield Observation(amount, {"informer": informer})

    def _observe_received_bytes(self) -> Iterator[Observation]:
        for (informer, verb), received in self._totals.received().items():
            yield Observation(received.size, {"informer": informer, "verb": verb})

    def _observe_received_events(self) -> Iterator[Observation]:
        for (informer, verb), received in self._totals.received().items():
            yield Observation(received.events, {"informer": informer, "verb": verb})

    def _observe_handler_calls(self) -> Iterator[Observation]:
        for (informer, listener), handled in self._totals.handled().items():
            yield Observation(sum(handled.counts), {"informer": informer, "listener": listener})

    def _observe_handler_time(self) -> Iterator[Observation]:
        for (informer, listener), handled in self._totals.handled().items():
            yield Observation(handled.seconds, {"informer": informer, "listener": listener})

    def _observe_depths(self) -> Iterator[Observation]:
        for queue, all_ in self._totals.queues.read()[0].items():
            normal, low = sum(each.normal for each in all_), sum(each.low for each in all_)
            yield Observation(normal, {"queue": queue, "priority": "normal"})
            yield Observation(low, {"queue": queue, "priority": "low"})

    def _observe_queues(self, gauge: GaugeSpec[QueueStatistics]) -> Iterator[Observation]:
        for queue, all_ in self._totals.queues.read()[0].items():
            yield Observation(gauge.aggregate(all_), {"queue": queue})

    def _observe_queue_counts(self, name: str) -> Iterator[Observation]:
        for (counter, queue), count in self._totals.queues.read()[1].items():
            if counter == name:
                yield Observation(count, {"queue": queue})

    def _observe_leadership(self) -> Iterator[Observation]:
        for lease, leads in self._totals.leaders.copy().items():
            yield Observation(int(leads), {"lease": lease})

    def _observe_shards(self) -> Iterator[Observation]:
        for group, shards in self._totals.shards.copy().items():
            yield Observation(shards, {"group": group})


def _callback(read: ReadObservations) -> Callable[[CallbackOptions], Iterable[Observation]]:
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
    def __init__(self) -> None:
        self._samplers: dict[LabelPair, _CallSampler] = {}

    def should_record(self, informer: str, listener: str) -> bool:
        key = informer, listener
        sampler = self._samplers.get(key)
        if sampler is None:
            sampler = self._samplers[key] = _CallSampler()
        return sampler.should_record()
