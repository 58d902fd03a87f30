"""Tracing: the protocols through which informers and controllers make spans.

``aioinformer.adapters.opentelemetry`` implements the protocols. A program implements ``Tracing``
itself to connect another tracing library.
"""

from aioinformer._core.instrumentation import InformerTrace, Span, Tracing

__all__ = ["InformerTrace", "Span", "Tracing"]
