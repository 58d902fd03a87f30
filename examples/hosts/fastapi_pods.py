"""A service on FastAPI: pods as JSON, live events, a readiness probe, and metrics.

pip install 'aioinformer[fastapi]'
uvicorn examples.hosts.fastapi_pods:app

    curl localhost:8000/pods/default?labels=app%3Dshop
    curl -N localhost:8000/events
    curl localhost:8000/readyz
    curl localhost:8000/metrics
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.routing import Route

from aioinformer import Client, Lister, SharedInformer, SharedInformerFactory
from aioinformer.adapters.asgi import EventFeed, MetricsEndpoint, Probe, closing_on_signals, ready
from aioinformer.adapters.prometheus import PrometheusMetrics
from aioinformer.errors import InvalidSelector, NotSynced


class Metadata(BaseModel):
    """The metadata that the service shows."""

    name: str
    labels: dict[str, str] = {}


class Pod(BaseModel):
    """A pod as the service shows it; other fields of the pod are left out."""

    metadata: Metadata


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
    """Run the informers as long as the application."""
    async with Client.connect() as client, SharedInformerFactory(client, metrics=metrics) as kube:
        app.state.pods = kube.informer("pods")
        with closing_on_signals(feed):  # or the server waits for open streams at its end
            yield


async def lister(request: Request) -> Lister:
    """Provide the cache to endpoints with a parameter ``pods: Pods``."""
    pods: SharedInformer = request.app.state.pods
    return pods.lister


Pods = Annotated[Lister, Depends(lister)]
app = FastAPI(lifespan=lifespan)
metrics = PrometheusMetrics()
feed = EventFeed(lambda: [app.state.pods])  # sends names and labels only
is_ready = Probe(lambda: [app.state.pods], ready, details=False)  # the reasons are in the log
scrape = MetricsEndpoint(metrics.exposition)
app.router.routes += [Route("/events", feed), Route("/readyz", is_ready), Route("/metrics", scrape)]


@app.get("/pods/{namespace}")
async def list_pods(pods: Pods, namespace: str, labels: str = "") -> list[Pod]:
    """List pods from the cache."""
    return [Pod.model_validate(pod) for pod in pods.list(namespace=namespace, labels=labels)]


@app.exception_handler(NotSynced)
async def not_synced(request: Request, error: Exception) -> JSONResponse:
    """Respond to a read before the initial list is complete. The error's text is for developers."""
    return JSONResponse({"detail": "the pods are being read"}, 503, {"Retry-After": "1"})


@app.exception_handler(InvalidSelector)
async def invalid_selector(request: Request, error: Exception) -> JSONResponse:
    """Respond to a selector that doesn't parse. The error's text marks the place."""
    return JSONResponse({"detail": str(error)}, 400)
