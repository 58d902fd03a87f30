"""What endpoints ask for, by type: ``async def endpoint(pods: Pods) -> ...``.

They are ``async`` for one reason: FastAPI would call them in threads otherwise, and they only look
something up. A lister that is read before its first full state raises ``NotSynced``; the
application answers 503 to that, so that no endpoint has to think of it.
"""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import Depends, HTTPException, Path, Request

from aioinformer import LiveLister, SharedInformer
from examples.fastapi_app.live import Live

__all__ = ["Contents", "Informer", "Pods", "Running", "contents"]


async def running(request: Request) -> Live:
    """What the lifespan made."""
    return cast("Live", request.app.state.live)


Running = Annotated[Live, Depends(running)]


async def informer(
    live: Running, resource: Annotated[str, Path(description="a plural name, such as pods")]
) -> SharedInformer:
    """The informer of the resource that the path names."""
    found = live.informers.get(resource)
    if found is None:
        known = ", ".join(live.informers)
        raise HTTPException(404, detail=f"{resource!r} is not watched here; there are {known}")
    return found


Informer = Annotated[SharedInformer, Depends(informer)]


def contents(informer: SharedInformer) -> LiveLister:
    """Its lister, for who shows or searches what is in objects: of Secrets, nobody may see that."""
    if informer.resource.kind == "Secret" and not informer.resource.group:
        raise HTTPException(403, detail="what is in a Secret is not shown here")
    return informer.lister


async def reader(informer: Informer) -> LiveLister:
    """The lister of the resource that the path names."""
    return contents(informer)


Contents = Annotated[LiveLister, Depends(reader)]


async def pods(live: Running) -> LiveLister:
    """The lister of pods, by name: what most services would inject."""
    return (await informer(live, "pods")).lister


Pods = Annotated[LiveLister, Depends(pods)]
