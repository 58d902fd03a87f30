"""Probes, metrics and server-sent events for any ASGI application: FastAPI, Starlette, Litestar.

    from aioinformer.adapters.asgi import EventFeed, MetricsEndpoint, Probe, alive, ready

    feed = EventFeed(lambda: informers)  # a factory is iterable; called for each request
    routes = [
        Route("/events", feed),
        Route("/healthz", Probe(lambda: informers, alive)),
        Route("/readyz", Probe(lambda: informers, ready)),
        Route("/metrics", MetricsEndpoint(metrics.exposition)),
    ]

These are plain ASGI applications: no web framework is imported. The program chooses what is sent of
an object (``encode=``): by default metadata only, so that no Secret's content is sent by accident.
The program also decides who may connect.

**Slow clients.** Each client has its own streams and so its own mailboxes. While the client's
socket is full, events are merged there by object: beyond ``limit``, at most two events for each
object are pending. Other clients don't wait.

**Reconnecting.** A client receives ``reset``, ``added`` for each cached object, ``synced``, and
then live events, and all of this again when it reconnects. On ``synced`` it removes the objects
that it did not receive. There are no event ids, and ``Last-Event-ID`` is ignored, since a cache has
no history from which a client could resume.

**Shutdown.** A server waits for open responses before it ends a lifespan, and event streams don't
end by themselves. Enter ``closing_on_signals(feed)`` in the lifespan: SIGINT and SIGTERM then end
the streams first. Where a server receives no signal, call ``EventFeed.close()`` before its
shutdown. A client whose socket is full keeps uvicorn waiting even then, unless uvicorn has a
``timeout_graceful_shutdown``.

Example::

    import json

    from aioinformer.adapters.asgi import Closeable, Encode, EventFeed, closing_on_signals

    phase = field("status.phase")

    def row(informer, obj: KubeObject) -> bytes:
        return json.dumps([obj.namespace, obj.name, phase(obj)]).encode()

    encode: Encode = row
    assert b"Running" in encode(pods, pods.lister["web/web-0"])
    feed = EventFeed(lambda: [pods], encode=encode)
    ends_on_sigterm: Closeable = feed
    with closing_on_signals(ends_on_sigterm):
        ...  # the lifespan of the application
"""

from aioinformer._runtime.reporting.readiness import FRESH as FRESH
from aioinformer._runtime.reporting.readiness import alive as alive
from aioinformer._runtime.reporting.readiness import ready as ready
from aioinformer.adapters.asgi.feed import EventFeed as EventFeed
from aioinformer.adapters.asgi.metrics_endpoint import Expose as Expose
from aioinformer.adapters.asgi.metrics_endpoint import MetricsEndpoint as MetricsEndpoint
from aioinformer.adapters.asgi.probes import Probe as Probe
from aioinformer.adapters.asgi.shutdown import Closeable as Closeable
from aioinformer.adapters.asgi.shutdown import closing_on_signals as closing_on_signals
from aioinformer.adapters.asgi.sse import Encode as Encode
from aioinformer.adapters.asgi.sse import metadata as metadata

__all__ = [
    "FRESH",
    "Closeable",
    "Encode",
    "EventFeed",
    "Expose",
    "MetricsEndpoint",
    "Probe",
    "alive",
    "closing_on_signals",
    "metadata",
    "ready",
]
