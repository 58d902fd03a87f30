"""What a controller says about itself: for readiness probes, dashboards and people.

A snapshot; times are seconds relative to it.

What goes wrong in a controller, told once to everybody: the log, metrics, the program's hook.

A request that failed is one line: the error says what was asked and what the server answered, and
a conflict is everyday life. For the rest there is a traceback, once a second at most: a reconciler
with a mistake in it fails for each of 10,000 keys.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from aioinformer._core.controllers.queue_items import QueueStatistics
from aioinformer._core.controllers.reconcile import FailingKey
from aioinformer._core.objects.kube_object import ObjectKey
from aioinformer._runtime.controllers.options import ControllerOptions
from aioinformer._runtime.reporting.error_hook import LogThrottle, Problem, call_hook
from aioinformer._runtime.reporting.health import describe_error
from aioinformer._runtime.reporting.safe_metrics import wrap_metrics
from aioinformer.errors import FetchError, ReconcileTimeout

__all__ = ["ControllerHealth", "ControllerState", "ReconcileErrors"]


ControllerState: TypeAlias = Literal["new", "syncing", "running", "stopping", "stopped", "failed"]
"""``syncing``: it waits until its triggers have heard of everything that is cached. ``report_failure``: an
informer or a worker of its own has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerHealth:
    """A controller at one moment."""

    state: ControllerState
    error: BaseException | None
    """What ended it, if it failed."""
    waiting_for: tuple[str, ...]
    """The triggers that it waits for before it starts to work."""
    running: Mapping[ObjectKey, float]
    """The keys that are being reconciled, and for how many seconds."""
    waiting: int
    """Keys that are to be reconciled, now or later. Of a controller that has stopped: what was left
    undone."""
    runs: int
    """Runs that have ended, one way or the other."""
    failed_runs: int
    """Those of them that failed."""
    failing: tuple[FailingKey, ...]
    """The keys whose last run failed, those first that have failed for longest, a hundred at most.
    """
    failing_keys: int
    """How many keys there are of that kind."""
    queue: QueueStatistics
    """The numbers of its work queue."""

    def __str__(self) -> str:
        parts = [f"{self.state}, {self.runs} runs, {self.waiting} keys waiting"]
        if self.error is not None:
            parts.append(f"{type(self.error).__name__}: {self.error}")
        if self.waiting_for and self.state == "syncing":
            parts.append(f"waiting for {', '.join(self.waiting_for)}")
        if self.failing_keys:
            parts.append(f"{self.failing_keys} keys failing, such as {self.failing[0]}")
        return "; ".join(parts)


log = logging.getLogger("aioinformer.controller")


class ReconcileErrors:
    """Tells of one controller's failures, and counts its runs for metrics."""

    def __init__(self, informer: str, options: ControllerOptions) -> None:
        """Start with no failure; ``informer`` is the name of the controller's informer."""
        self.count = 0
        """Runs that have failed."""
        self._name = options.name
        self._informer = informer
        self._metrics = wrap_metrics(options.metrics)
        self._on_error = options.on_error
        self._traceback_throttle = LogThrottle()

    def record_run(self, result: str, seconds: float) -> None:
        """A run has ended so, and took so long."""
        self._metrics.reconciled(self._name, result, seconds)

    def report_failure(
        self, key: ObjectKey, error: Exception, *, failures: int, delay: float
    ) -> None:
        """A run failed, for the ``failures``-th time in a row, and is tried again."""
        self.count += 1
        plain = isinstance(error, FetchError | ReconcileTimeout)
        log.log(
            logging.WARNING if plain else logging.ERROR,
            "controller %s: %s failed (%d in a row), tried again in %.3g s: %s",
            self._name,
            key,
            failures,
            delay,
            describe_error(error),
            exc_info=None if plain or not self._traceback_throttle.allows() else error,
        )
        self._call_hook(
            Problem(
                informer=self._informer,
                phase="reconcile",
                cause=self._name,
                error=error,
                retry_in=delay,
                key=key,
            )
        )

    def report_trigger_failure(self, informer: str, error: Exception) -> None:
        """A ``to_keys`` raised; the log and the informer's own hook are told by the handler."""
        self._call_hook(Problem(informer=informer, phase="trigger", cause=self._name, error=error))

    def _call_hook(self, problem: Problem) -> None:
        call_hook(self._on_error, log, problem)

    def __repr__(self) -> str:
        return f"<ReconcileErrors of {self._name}: {self.count}>"
