"""What fits other libraries to this one, each imported only by who imports its adapter.

A program that has a ready-made ``ApiClient`` of kubernetes_asyncio, or of ``kubernetes.aio``,
uses its settings here too, however it came by them:

    from aioinformer.adapters.kubernetes_asyncio import client_of

    async with client_of(api) as client, SharedInformerFactory(client) as informers: ...

The ready-made client stays the program's: it is neither used for requests nor closed. Ours opens
connections of its own, with watches apart from the rest, and reads the certificates' files again
as they rotate.

    kubernetes_asyncio    kubernetes_asyncio.client.ApiClient
    kubernetes_aio        kubernetes.aio.client.ApiClient, of kubernetes 36 and later
    generated             what those two have in common
    ready_made            the small protocol that any other client can be fitted to
    asgi                  probes and server-sent events for FastAPI and other ASGI applications
    pydantic              models of pydantic, for ``convert=``
    prometheus            what informers tell, as Prometheus metrics
    prometheus_work       the same of work queues and controllers
    opentelemetry         the same as OpenTelemetry metrics, and what they do as spans
    counting              what the two have in common; counting_work: of queues
"""
