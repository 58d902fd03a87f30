"""Probes and Server-Sent Events for any ASGI application: FastAPI, Starlette, Litestar, Quart.

    from aioinformer.adapters.asgi import EventFeed, Probe, alive, ready

    feed = EventFeed(lambda: informers)  # a factory is iterable; asked for each request
    routes = [
        Route("/events", feed),
        Route("/healthz", Probe(lambda: informers, alive)),
        Route("/readyz", Probe(lambda: informers, ready)),
    ]

All of them are plain ASGI applications: no web framework is imported, nothing is needed beyond the
server that runs the program. What is sent of an object is the program's choice (``encode=``); by
default nothing but metadata, so that no Secret's content leaves by accident. Who may connect is
the program's business too.

**Slow clients.** Each client has streams, so mailboxes, of its own. While its socket takes no
more, what changes is merged there by object: beyond ``limit`` at most two events an object wait
for it, and nobody else does. What is encoded is encoded once for all clients.

**Coming back.** A client gets ``reset``, ``added`` for each cached object, ``synced``, and then
what changes. One that comes back gets the same again, and drops on ``synced`` what it wasn't told
of. There are no ids, and ``Last-Event-ID`` is not used: a cache has no history to resume from.

**The end.** Servers wait for open responses before they end a lifespan, so ``EventFeed.close()``
must come before that: in the server's own shutdown, for example. A client that has stalled keeps
uvicorn waiting even then, unless it has a ``timeout_graceful_shutdown``.

    probes      what Kubernetes' probes ask
    feed        all clients of some informers
    client      one of them
    frames      objects as text, each encoded once
    messages    the little of ASGI that is spoken here
"""

from aioinformer.adapters.asgi.feed import EventFeed as EventFeed
from aioinformer.adapters.asgi.probes import FRESH as FRESH
from aioinformer.adapters.asgi.probes import Probe as Probe
from aioinformer.adapters.asgi.probes import alive as alive
from aioinformer.adapters.asgi.probes import ready as ready
from aioinformer.adapters.asgi.sse import Encode as Encode
from aioinformer.adapters.asgi.sse import metadata as metadata

__all__ = ["FRESH", "Encode", "EventFeed", "Probe", "alive", "metadata", "ready"]
