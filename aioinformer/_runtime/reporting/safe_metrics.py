"""Metrics that never raise."""

from __future__ import annotations

import logging

from aioinformer._core.instrumentation import Metrics
from aioinformer._runtime.reporting.safe_call import SafeCall, check_instrumentation

log = logging.getLogger("aioinformer.metrics")


def wrap_metrics(metrics: Metrics | None) -> Metrics:
    """Return metrics that never raise: the program's, wrapped, or metrics that record nothing.

    Raises:
        TypeError: ``metrics`` is a class, or has no method of ``Metrics``.
    """
    check_instrumentation("metrics", metrics, Metrics)
    return Metrics() if metrics is None else SafeMetrics(metrics)


class SafeMetrics(Metrics):
    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        message = "%s raised: metrics are incomplete; further errors from it are not logged"
        SafeCall(log, message, type(metrics).__qualname__).wrap(metrics, Metrics, self)

    def __repr__(self) -> str:
        return f"<SafeMetrics {self._metrics!r}>"
