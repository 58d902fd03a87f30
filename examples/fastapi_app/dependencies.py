"""Dependencies of endpoints, declared by type: ``async def endpoint(pods: Pods) -> ...``.

The dependencies are ``async`` because FastAPI would call other functions in threads, and these
functions only look something up. Reading a lister before the initial list is complete raises
``NotSynced``. The application responds with 503 to that error, so no endpoint has to handle it.
"""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import Depends, HTTPException, Path, Request

from aioinformer import Lister, SharedInformer
from examples.fastapi_app.live import Live

__all__ = ["Contents", "Informer", "Pods", "Running", "contents"]


async def running(request: Request) -> Live:
    """Return the parts that the lifespan started."""
    return cast("Live", request.app.state.live)


Running = Annotated[Live, Depends(running)]


async def informer(
    live: Running, resource: Annotated[str, Path(description="a plural name, such as pods")]
) -> SharedInformer:
    """Return the informer of the resource that the path names."""
    found = live.informers.get(resource)
    if found is None:
        known = ", ".join(live.informers)
        raise HTTPException(
            404, detail=f"{resource!r} is not watched here; the watched resources are {known}"
        )
    return found


Informer = Annotated[SharedInformer, Depends(informer)]


def contents(informer: SharedInformer) -> Lister:
    """Return the lister for an endpoint that shows or searches contents; Secrets are rejected."""
    if informer.resource.kind == "Secret" and not informer.resource.group:
        raise HTTPException(403, detail="the content of a Secret is not shown here")
    return informer.lister


async def reader(informer: Informer) -> Lister:
    """Return the lister of the resource that the path names."""
    return contents(informer)


Contents = Annotated[Lister, Depends(reader)]


async def pods(live: Running) -> Lister:
    """Return the lister of pods: the form that most services need."""
    return (await informer(live, "pods")).lister


Pods = Annotated[Lister, Depends(pods)]
