"""What work queues, controllers and candidates tell, as OpenTelemetry metrics;
``OpenTelemetryMetrics`` has it.

What a queue counts for itself is read when the SDK collects; keys and runs are told as they are
done, which is seldom next to what they do.
"""

from __future__ import annotations

from collections.abc import Iterator

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from aioinformer._core.work.statistics import ReadQueue
from aioinformer.adapters.counting_work import (
    COUNTERS,
    GAUGES,
    WAIT_SECONDS,
    WORK_SECONDS,
    QueueGauge,
    Queues,
)

__all__ = ["WorkInstruments"]


class WorkInstruments:
    """The part of ``OpenTelemetryMetrics`` that is about queues, controllers and leadership."""

    def __init__(self, meter: Meter) -> None:
        """Make the instruments."""
        self._queues = Queues()
        self._leads: dict[str, bool] = {}
        self._observe(meter)
        self._waited = meter.create_histogram(
            "aioinformer.workqueue_queue_duration",
            "s",
            "How long a key waited in line.",
            explicit_bucket_boundaries_advisory=WAIT_SECONDS,
        )
        self._worked = meter.create_histogram(
            "aioinformer.workqueue_work_duration",
            "s",
            "How long a key was worked on.",
            explicit_bucket_boundaries_advisory=WORK_SECONDS,
        )
        self._results = meter.create_counter(
            "aioinformer.reconcile", "{reconcile}", "Reconciles that ended, by result."
        )
        self._reconciled = meter.create_histogram(
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
        self._waited.record(waited, {"queue": queue})
        self._worked.record(seconds, {"queue": queue})

    def reconciled(self, controller: str, result: str, seconds: float) -> None:
        """A reconcile ended."""
        self._results.add(1, {"controller": controller, "result": result})
        self._reconciled.record(seconds, {"controller": controller})

    def leadership(self, lease: str, leads: bool) -> None:
        """A candidate leads, or doesn't."""
        self._leads[lease] = leads

    # -- read when the SDK collects ------------------------------------------------------------

    def _observe(self, meter: Meter) -> None:
        meter.create_observable_up_down_counter(
            "aioinformer.workqueue_depth", [self._depths], "{key}", "Keys that wait in line."
        )
        for name, gauge in GAUGES.items():
            meter.create_observable_up_down_counter(
                f"aioinformer.workqueue_{name.removesuffix('_seconds')}",
                [_Reading(self._queues, gauge)],
                gauge.unit,
                gauge.help,
            )
        for name, (text, _) in COUNTERS.items():
            meter.create_observable_counter(
                f"aioinformer.workqueue_{name}", [_Count(self._queues, name)], "{key}", text
            )
        meter.create_observable_gauge(
            "aioinformer.leader",
            [self._leading],
            "",
            "Whether this process leads under a Lease: 1 or 0.",
        )

    def _depths(self, _: CallbackOptions) -> Iterator[Observation]:
        for queue, all_ in self._queues.read()[0].items():
            yield Observation(
                sum(each.normal for each in all_), {"queue": queue, "priority": "normal"}
            )
            yield Observation(sum(each.low for each in all_), {"queue": queue, "priority": "low"})

    def _leading(self, _: CallbackOptions) -> Iterator[Observation]:
        for lease, leads in self._leads.copy().items():
            yield Observation(int(leads), {"lease": lease})

    def __repr__(self) -> str:
        return f"<WorkInstruments of {len(self._queues)} queues>"


class _Reading:
    """Reads one gauge of all queues in use."""

    def __init__(self, queues: Queues, gauge: QueueGauge) -> None:
        self._queues = queues
        self._gauge = gauge

    def __call__(self, _: CallbackOptions) -> Iterator[Observation]:
        for queue, all_ in self._queues.read()[0].items():
            yield Observation(self._gauge.amount(all_), {"queue": queue})


class _Count:
    """Reads one count of all queues, those that have ended included."""

    def __init__(self, queues: Queues, name: str) -> None:
        self._queues = queues
        self._name = name

    def __call__(self, _: CallbackOptions) -> Iterator[Observation]:
        for (counter, queue), count in self._queues.read()[1].items():
            if counter == self._name:
                yield Observation(count, {"queue": queue})
