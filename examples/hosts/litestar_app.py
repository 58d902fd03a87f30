"""A service on Litestar: lifespan, listers by dependency injection, mounted probes and events.

pip install litestar uvicorn
python examples/hosts/litestar_app.py [PORT]

    curl localhost:8080/pods/default
    curl localhost:8080/readyz
    curl -N localhost:8080/events
"""

import sys
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager

import uvicorn
from litestar import Litestar, asgi, get
from litestar.datastructures import State
from litestar.di import NamedDependency, Provide
from litestar.exceptions import NotFoundException
from litestar.params import FromPath
from litestar.response import Response

from aioinformer import Client, SharedInformer, SharedInformerFactory
from aioinformer.adapters.asgi import EventFeed, Probe, closing_on_signals, ready
from aioinformer.errors import NotSynced


@asynccontextmanager
async def lifespan(app: Litestar) -> AsyncGenerator[None]:
    """Run the informers as long as the application."""
    async with Client.connect() as client, SharedInformerFactory(client) as informers:
        app.state.pods = informers.informer("pods")
        with closing_on_signals(feed):  # the server waits for responses, which must end first
            yield


async def provide_pods(state: State) -> SharedInformer:
    """Provide the informer to handlers with a parameter ``pods``."""
    pods: SharedInformer = state.pods
    return pods


def watched() -> Iterable[SharedInformer]:
    """Return the informers for probes and events, at each request: the lifespan creates them."""
    return [app.state.pods]


Pods = NamedDependency[SharedInformer]


@get("/pods/{namespace:str}")
async def names(pods: Pods, namespace: FromPath[str]) -> list[str]:
    """Return the pods of a namespace, in the event loop."""
    return sorted(pod.name for pod in pods.lister.list(namespace=namespace))


@get("/pods/{namespace:str}/{name:str}", media_type="application/json", sync_to_thread=True)
def one(pods: Pods, namespace: FromPath[str], name: FromPath[str]) -> bytes:
    """Return one pod in the server's JSON, in a thread, where listers can be read as well."""
    pod = pods.lister.get(f"{namespace}/{name}")
    if pod is None:
        raise NotFoundException(f"there is no pod {namespace}/{name}")
    return pod.raw


def unsynced(_: object, error: NotSynced) -> Response[str]:
    """Respond to a read before the initial list is complete; the error reports the progress."""
    return Response(str(error), status_code=503, headers={"Retry-After": "1"})


feed = EventFeed(watched)
app = Litestar(
    [
        names,
        one,
        asgi("/readyz", copy_scope=True)(Probe(watched, ready)),
        asgi("/events", copy_scope=True)(feed),
    ],
    lifespan=[lifespan],
    dependencies={"pods": Provide(provide_pods)},
    exception_handlers={NotSynced: unsynced},
    logging_config=None,  # Litestar's own would configure the logging of the whole program
)


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8080
    uvicorn.run(app, port=port, log_level="warning")
