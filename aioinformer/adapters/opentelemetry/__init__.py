"""OpenTelemetry metrics and spans of informers and controllers.

    telemetry = {"metrics": OpenTelemetryMetrics(), "tracing": OpenTelemetryTracing()}
    async with SharedInformerFactory(client, **telemetry) as informers: ...

Needs only ``opentelemetry-api`` (the extra ``opentelemetry``). The program chooses the SDK that
collects, samples and exports. Without an SDK, both classes do nothing.

Example::

    from aioinformer.adapters.opentelemetry import (
        OpenTelemetryMetrics, OpenTelemetryTracing, trace_headers
    )

    shop = Client("https://cluster.example.com", token="secret", headers=trace_headers)
    metrics, tracing = OpenTelemetryMetrics(), OpenTelemetryTracing(handlers=True)
    factory = SharedInformerFactory(shop, metrics=metrics, tracing=tracing)
"""

from aioinformer.adapters.opentelemetry.instruments import (
    OpenTelemetryMetrics as OpenTelemetryMetrics,
)
from aioinformer.adapters.opentelemetry.spans import OpenTelemetryTracing as OpenTelemetryTracing
from aioinformer.adapters.opentelemetry.spans import trace_headers as trace_headers

__all__ = ["OpenTelemetryMetrics", "OpenTelemetryTracing", "trace_headers"]
