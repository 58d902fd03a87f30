"""Metrics: the protocol that informers, work queues and controllers report numbers to.

``aioinformer.adapters.prometheus`` and ``aioinformer.adapters.opentelemetry`` implement the
protocol. A program implements ``Metrics`` itself to export the numbers in another way.
"""

from aioinformer._core.instrumentation import Levels, Metrics, NoMetrics

__all__ = ["Levels", "Metrics", "NoMetrics"]
