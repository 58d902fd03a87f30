"""The public state of a controller, and the reports of its failures.

``ReconcileErrors`` reports each failure once to the log, the metrics and the program's hook. A
failed request is logged in one line, since conflicts are frequent. Other errors are logged with a
traceback, at most once a second: a reconciler with a bug fails for each of 10,000 keys.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from operator import itemgetter
from typing import Any, Literal, TypeAlias

from aioinformer._core.instrumentation import QueueStatistics
from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.quantities import quantity
from aioinformer._informers.informer import SharedInformer
from aioinformer._runtime.reporting.error_hook import FailureLog, LogThrottle, call_hook
from aioinformer._runtime.reporting.error_texts import describe_error, lasting_text
from aioinformer._runtime.reporting.problem import Problem
from aioinformer._runtime.reporting.safe_metrics import wrap_metrics
from aioinformer._runtime.tasks.blocking import describe_blocking
from aioinformer.controllers.options import ControllerOptions, RecordsEvents
from aioinformer.controllers.state.reconcile import FailingKey
from aioinformer.errors import FetchError, PermanentError, ReconcileTimeout, TemporaryError

ControllerState: TypeAlias = Literal["new", "syncing", "running", "stopping", "stopped", "failed"]
"""``syncing``: the controller waits until its triggers have received all cached objects.
``failed``: an informer or a worker has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerHealth:
    """The state of a controller at one moment."""

    state: ControllerState
    error: BaseException | None
    """The error that ended the controller, if it failed."""
    waiting_for: tuple[str, ...]
    """The informers whose cached objects the triggers have not all received yet."""
    running: Mapping[ObjectKey, float]
    """The keys that are being reconciled, and for how many seconds."""
    waiting: int
    """Keys that are to be reconciled, now or later. After a stop: keys that were not reconciled."""
    runs: int
    """Runs that have ended, with any result."""
    failed_runs: int
    failing: tuple[FailingKey, ...]
    """The keys whose last run failed, in the order of their first failure, at most a hundred."""
    failing_keys: int
    """The number of all keys whose last run failed."""
    queue: QueueStatistics
    delayed: int = 0
    """Of the waiting keys, those that wait for their time alone, by a requeue or a retry."""
    blocking_runs: int = 0
    """Times that a run has held the event loop for more than 250 ms
    (``InformerOptions.report_blocking``)."""

    def __str__(self) -> str:
        waiting = quantity(self.waiting - self.delayed, "key")
        delayed = f", {self.delayed} delayed" if self.delayed else ""
        parts = [f"{self.state}, {quantity(self.runs, 'run')}, {waiting} waiting{delayed}"]
        if self.running:
            key, seconds = max(self.running.items(), key=itemgetter(1))
            others = f" and {len(self.running) - 1} more" if len(self.running) > 1 else ""
            parts.append(f"{key} has been running for {seconds:.1f} s{others}")
        if self.error is not None:
            parts.append(f"{type(self.error).__name__}: {self.error}")
        if self.waiting_for and self.state == "syncing":
            parts.append(f"waiting for {', '.join(self.waiting_for)}")
        if self.failing_keys:
            failing = quantity(self.failing_keys, "key")
            parts.append(f"{failing} failing, such as {self.failing[0]}")
        if self.blocking_runs:
            parts.append(f"runs held the event loop {quantity(self.blocking_runs, 'time')}")
        return "; ".join(parts)


log = logging.getLogger("aioinformer.controller")

BLOCKING_WARNING_INTERVAL = 10.0
"""Seconds between two warnings that runs of one controller hold the event loop: every run may do
so, for the same reason."""


class ReconcileErrors:
    """Reports the failures of one controller, and counts its runs for metrics."""

    def __init__(self, informer: str, options: ControllerOptions) -> None:
        """Start with no failure; ``informer`` is the name of the controller's informer."""
        self.count = 0
        self.blocking_runs = 0
        self._name = options.name
        self._informer = informer
        self._metrics = wrap_metrics(options.metrics)
        self._on_error = options.on_error
        self._hook_failures = FailureLog(log)
        self._traceback_throttle = LogThrottle()
        self._blocking_throttle = LogThrottle(BLOCKING_WARNING_INTERVAL)

    def record_run(self, result: str, seconds: float) -> None:
        """Report the result and the duration of a run to the metrics."""
        self._metrics.reconciled(self._name, result, seconds)

    def report_failure(
        self, key: ObjectKey, error: Exception, *, failures: int, delay: float
    ) -> None:
        """Report a failed run, the ``failures``-th in a row; ``delay`` is the seconds to the retry,
        or infinite.
        """
        self.count += 1
        plain = isinstance(error, FetchError | ReconcileTimeout | PermanentError | TemporaryError)
        log.log(
            logging.WARNING if plain else logging.ERROR,
            "controller %s: %s failed (%d in a row), %s: %s",
            self._name,
            key,
            failures,
            "not retried before it changes" if delay == inf else f"retried in {delay:.3g} s",
            describe_error(error),
            exc_info=None if plain or not self._traceback_throttle.allows() else error,
        )
        self._call_hook(
            Problem(
                informer=self._informer,
                phase="reconcile",
                cause=self._name,
                error=error,
                retry_in=None if delay == inf else delay,
                key=key,
            )
        )

    def report_blocking(self, seconds: float) -> None:
        """Report a step of a run that has held the event loop."""
        self.blocking_runs += 1
        if self._blocking_throttle.allows():
            log.warning("controller %s: a run %s", self._name, describe_blocking(seconds))
        self._metrics.reconcile_blocked(self._name, seconds)

    def report_trigger_failure(self, informer: str, error: Exception) -> None:
        """Report an error of ``to_keys`` to the hook; the handler reports it to the log."""
        self._call_hook(Problem(informer=informer, phase="trigger", cause=self._name, error=error))

    def _call_hook(self, problem: Problem) -> None:
        call_hook(self._on_error, self._hook_failures, problem)

    def __repr__(self) -> str:
        return f"<ReconcileErrors of {self._name}: {self.count}>"


@dataclass(frozen=True, slots=True)
class WarningEvents:
    """Records Kubernetes Events on the objects of a controller that can't be reconciled."""

    informer: SharedInformer[Any]
    recorder: RecordsEvents | None

    def record(
        self,
        key: ObjectKey,
        reason: str,
        error: Exception,
        *,
        action: str,
        obj: KubeObject | None = None,
    ) -> None:
        """Record a Warning on ``obj`` or the cached object, if there is one and a recorder."""
        obj = obj or self.informer.stored(key)
        if self.recorder is not None and obj is not None:
            self.recorder.record(obj, "Warning", reason, lasting_text(error), action=action)
