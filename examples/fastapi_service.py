"""A FastAPI service that answers from an informer's cache.

    pip install '.[fastapi]'
    uvicorn --app-dir examples fastapi_service:app

The informers live as long as the service: they start in its lifespan and are gone when it ends.
Reads come from memory; ``def`` endpoints may read too, since a lister is safe in any thread.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI, HTTPException, Request, Response

from aioinformer import Client, KubeObject, Lister, SharedInformer, SharedInformerFactory


def node(pod: KubeObject) -> str | None:
    """Index function: the node that a pod runs on, once it is scheduled."""
    name: str | None = pod["spec"].get("nodeName")
    return name


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
    async with (
        Client.connect() as client,
        SharedInformerFactory(client) as informers,
    ):
        app.state.pods = informers.informer("pods", indexers={"node": node})
        yield  # ready or not: /readyz says which


app = FastAPI(lifespan=lifespan)


def informer(request: Request) -> SharedInformer:
    pods: SharedInformer = request.app.state.pods
    return pods


def lister(pods: Annotated[SharedInformer, Depends(informer)]) -> Lister:
    if not pods.synced:
        raise HTTPException(503, detail=str(pods.health))
    return pods.lister


@app.get("/readyz")
async def ready(pods: Annotated[SharedInformer, Depends(informer)], response: Response) -> str:
    if not pods.synced:
        response.status_code = 503
    return str(pods.health)


@app.get("/nodes/{name}/pods")
async def on_node(name: str, pods: Annotated[Lister, Depends(lister)]) -> list[str]:
    return sorted(str(pod.key) for pod in pods.by_index("node", name))


@app.get("/pods/{namespace}/{name}")
def one(namespace: str, name: str, pods: Annotated[Lister, Depends(lister)]) -> Response:
    pod = pods.get(name, namespace=namespace)
    if pod is None:
        raise HTTPException(404, detail=f"no pod {namespace}/{name}")
    return Response(pod.raw, media_type="application/json")  # the server's own bytes
