"""A service on Litestar: a lifespan, listers by dependency injection, probes and events mounted.

pip install litestar uvicorn
python examples/hosts/litestar_app.py [PORT]

    curl localhost:8080/pods/default
    curl localhost:8080/readyz
    curl -N localhost:8080/events
"""

import socket
import sys
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager

import uvicorn
from litestar import Litestar, asgi, get
from litestar.datastructures import State
from litestar.di import Provide
from litestar.exceptions import NotFoundException, ServiceUnavailableException

from aioinformer import Client, SharedInformer, SharedInformerFactory
from aioinformer.adapters.asgi import EventFeed, Probe, ready
from aioinformer.errors import NotSynced


@asynccontextmanager
async def lifespan(app: Litestar) -> AsyncGenerator[None]:
    """The informers live as long as the application."""
    async with Client.connect() as client, SharedInformerFactory(client) as informers:
        app.state.pods = informers.informer("pods")
        yield


async def provide_pods(state: State) -> SharedInformer:
    """For handlers that have a parameter ``pods``."""
    pods: SharedInformer = state.pods
    return pods


def watched() -> Iterable[SharedInformer]:
    """What probes and events are about; asked for each request, since the lifespan makes them."""
    return [app.state.pods]


@get("/pods/{namespace:str}")
async def names(pods: SharedInformer, namespace: str) -> list[str]:
    """The pods of a namespace, in the event loop."""
    return sorted(pod.name for pod in read(pods).lister.list(namespace=namespace))


@get("/pods/{namespace:str}/{name:str}", media_type="application/json", sync_to_thread=True)
def one(pods: SharedInformer, namespace: str, name: str) -> bytes:
    """One pod as the server sent it. In a thread, where listers may be read as well."""
    pod = read(pods).lister.get(f"{namespace}/{name}")
    if pod is None:
        raise NotFoundException(f"there is no pod {namespace}/{name}")
    return pod.raw


def read(pods: SharedInformer) -> SharedInformer:
    """The informer, if it may be read from."""
    if not pods.synced:
        raise ServiceUnavailableException(str(NotSynced(str(pods.health))))
    return pods


feed = EventFeed(watched)
app = Litestar(
    [names, one, asgi("/readyz")(Probe(watched, ready)), asgi("/events")(feed)],
    lifespan=[lifespan],
    dependencies={"pods": Provide(provide_pods)},
)


class Server(uvicorn.Server):
    """uvicorn, which waits for open responses before it ends the lifespan: streams go first."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End what would not end by itself, then the rest."""
        feed.close()
        await super().shutdown(sockets)


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8080
    Server(uvicorn.Config(app, port=port, log_level="warning")).run()
