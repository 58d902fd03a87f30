"""Adapters between aioinformer and other libraries. Each needs its library, and nothing else
imports it.

    from aioinformer.adapters.kubernetes_asyncio import client_of

    async with client_of(api) as client, SharedInformerFactory(client) as informers: ...

The ``ApiClient`` stays the program's: it is neither used for requests nor closed. aioinformer opens
its own connections, separate ones for watches, and reads certificate files again when they change.

    kubernetes_asyncio    settings and models of kubernetes_asyncio.client.ApiClient
    kubernetes_aio        settings and models of kubernetes.aio.client.ApiClient (kubernetes >= 36)
    _client_settings      the part that the two share, and ExternalClient for other libraries
    asgi                  probes and server-sent events for FastAPI and other ASGI applications
    pydantic              models of pydantic, for ``convert=``
    prometheus            metrics for Prometheus
    opentelemetry         metrics and spans for OpenTelemetry
    _recording            the calls, counters and histograms that the two metric adapters share
    _totals               the numbers of these adapters that are read at a scrape
"""
