"""Metrics that can do no harm.

A ``Metrics`` is a program's code, called in the middle of the informer's work. What it raises must
not end an informer, and says little the thousandth time: the first is logged, and that is all.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from aioinformer._core.instrumentation import Metrics, NoMetrics, ReadLevels
from aioinformer._core.listwatch.requests import Verb

if TYPE_CHECKING:  # few programs have queues, and all of them import this
    from aioinformer._core.controllers.queue_items import ReadQueue

__all__ = ["SafeMetrics", "wrap_metrics"]

log = logging.getLogger("aioinformer.metrics")


def wrap_metrics(metrics: Metrics | None) -> Metrics:
    """Metrics that don't raise: those of a program, or the silence in their place."""
    return NoMetrics() if metrics is None else SafeMetrics(metrics)


class SafeMetrics:
    """Passes on what it is told, and goes on when that raises."""

    def __init__(self, metrics: Metrics) -> None:
        """Nothing has gone wrong yet."""
        self._metrics = metrics
        self._logged = False

    def request_started(self, informer: str, verb: Verb) -> None:
        """Pass it on."""
        try:
            self._metrics.request_started(informer, verb)
        except Exception:  # noqa: BLE001 - a program's code; it is logged there
            self._log_failure()

    def request_ended(self, informer: str, verb: Verb, cause: str, seconds: float) -> None:
        """Pass it on."""
        try:
            self._metrics.request_ended(informer, verb, cause, seconds)
        except Exception:  # noqa: BLE001 - as above
            self._log_failure()

    def received(self, informer: str, verb: Verb, size: int, events: int) -> None:
        """Pass it on."""
        try:
            self._metrics.received(informer, verb, size, events)
        except Exception:  # noqa: BLE001 - as above
            self._log_failure()

    def failed(self, informer: str, phase: str, error: str) -> None:
        """Pass it on."""
        try:
            self._metrics.failed(informer, phase, error)
        except Exception:  # noqa: BLE001 - as above
            self._log_failure()

    def handled(self, informer: str, listener: str, seconds: float, calls: int) -> None:
        """Pass it on."""
        try:
            self._metrics.handled(informer, listener, seconds, calls)
        except Exception:  # noqa: BLE001 - as above
            self._log_failure()

    def handler_failed(self, informer: str, listener: str, error: str) -> None:
        """Pass it on."""
        try:
            self._metrics.handler_failed(informer, listener, error)
        except Exception:  # noqa: BLE001 - as above
            self._log_failure()

    def informer_started(self, informer: str, levels: ReadLevels) -> None:
        """Pass it on."""
        try:
            self._metrics.informer_started(informer, levels)
        except Exception:  # noqa: BLE001 - as above
            self._log_failure()

    def informer_ended(self, informer: str, levels: ReadLevels) -> None:
        """Pass it on."""
        try:
            self._metrics.informer_ended(informer, levels)
        except Exception:  # noqa: BLE001 - as above
            self._log_failure()

    def queue_started(self, queue: str, read: ReadQueue) -> None:
        """Pass it on."""
        try:
            self._metrics.queue_started(queue, read)
        except Exception:  # noqa: BLE001 - as above
            self._log_failure()

    def queue_ended(self, queue: str, read: ReadQueue) -> None:
        """Pass it on."""
        try:
            self._metrics.queue_ended(queue, read)
        except Exception:  # noqa: BLE001 - as above
            self._log_failure()

    def worked(self, queue: str, waited: float, seconds: float) -> None:
        """Pass it on."""
        try:
            self._metrics.worked(queue, waited, seconds)
        except Exception:  # noqa: BLE001 - as above
            self._log_failure()

    def reconciled(self, controller: str, result: str, seconds: float) -> None:
        """Pass it on."""
        try:
            self._metrics.reconciled(controller, result, seconds)
        except Exception:  # noqa: BLE001 - as above
            self._log_failure()

    def leadership(self, lease: str, leads: bool) -> None:
        """Pass it on."""
        try:
            self._metrics.leadership(lease, leads)
        except Exception:  # noqa: BLE001 - as above
            self._log_failure()

    def _log_failure(self) -> None:
        if not self._logged:
            self._logged = True
            name = type(self._metrics).__qualname__
            log.exception("%s raised; numbers are missing from now on, and no more is said", name)

    def __repr__(self) -> str:
        return f"<SafeMetrics {self._metrics!r}>"
