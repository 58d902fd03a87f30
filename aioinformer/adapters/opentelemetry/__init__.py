"""What informers and controllers do, for OpenTelemetry: metrics and spans.

    telemetry = {"metrics": OpenTelemetryMetrics(), "tracing": OpenTelemetryTracing()}
    async with SharedInformerFactory(client, **telemetry) as informers: ...

Needs ``opentelemetry-api`` (the extra ``opentelemetry``), and nothing else: which SDK collects,
samples and exports is the program's choice. Without one, both do nothing.
"""

from aioinformer.adapters.opentelemetry.metrics import OpenTelemetryMetrics as OpenTelemetryMetrics
from aioinformer.adapters.opentelemetry.tracing import OpenTelemetryTracing as OpenTelemetryTracing
from aioinformer.adapters.opentelemetry.tracing import trace_headers as trace_headers

__all__ = ["OpenTelemetryMetrics", "OpenTelemetryTracing", "trace_headers"]
