"""REST endpoints that read the cache: no request to the API server, and the server's own bytes.

``async def`` endpoints run in the event loop and use ``scan``, which yields to the loop every few
milliseconds. ``def`` endpoints run in FastAPI's threads, where listers can be read as well.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter, HTTPException, Query, Response

from aioinformer import KubeObject, Lister
from examples.fastapi_app.dependencies import Contents, Informer, Pods, contents

__all__ = ["router"]

router = APIRouter(prefix="/api")

MAX_LIMIT = 1000
"""The most objects in one response: 3 MB of typical pods."""

Labels = Annotated[str | None, Query(description="a label selector, such as app in (shop, cart)")]
Fields = Annotated[str | None, Query(description="a field selector, such as status.phase=Running")]
Limit = Annotated[int, Query(ge=0, le=MAX_LIMIT)]


@router.get("/counts/{resource}")
def count(
    informer: Informer, labels: Labels = None, fields: Fields = None, namespace: str | None = None
) -> dict[str, int]:
    """Count objects, in a thread because a selector visits all of them.

    A field selector reads the content of objects. Secrets can't be counted by a field selector,
    since counting would allow a client to guess their content.
    """
    lister = contents(informer) if fields else informer.lister
    return {"count": lister.count(labels=labels, fields=fields, namespace=namespace)}


@router.get("/on-node/{node}")
async def on_node(node: str, pods: Pods) -> list[str]:
    """Return the pods of a node from an index, which is quick enough for the event loop."""
    return [str(key) for key in pods.index_keys("node", node)]


@router.get("/{resource}")
async def several(
    lister: Contents,
    labels: Labels = None,
    fields: Fields = None,
    namespace: str | None = None,
    limit: Limit = 100,
) -> Response:
    """Return the objects that match the selectors, in the server's JSON."""
    version, found = lister.resource_version, list[KubeObject]()
    async for obj in lister.scan(labels=labels, fields=fields, namespace=namespace):
        if len(found) == limit:
            break
        found.append(obj)
    items = b",".join([obj.raw for obj in found])
    head = msgspec.json.encode(version)
    body = b'{"resourceVersion":' + head + b',"items":[' + items + b"]}"
    return Response(body, media_type="application/json")


@router.get("/{resource}/{name}")
def cluster_scoped(informer: Informer, lister: Contents, name: str) -> Response:
    """Return one cluster-scoped object in the server's JSON."""
    if informer.resource.namespaced:
        path = f"/api/{informer.resource.plural}/NAMESPACE/{name}"
        raise HTTPException(404, detail=f"the object has a namespace; request {path}")
    return _one(lister, name, None)


@router.get("/{resource}/{namespace}/{name}")
def namespaced(lister: Contents, namespace: str, name: str) -> Response:
    """Return one namespaced object in the server's JSON."""
    return _one(lister, name, namespace)


def _one(lister: Lister, name: str, namespace: str | None) -> Response:
    obj = lister.get(name, namespace=namespace)
    if obj is None:
        where = f" in the namespace {namespace!r}" if namespace else ""
        raise HTTPException(404, detail=f"there is no object {name!r}{where}")
    return Response(obj.raw, media_type="application/json")
