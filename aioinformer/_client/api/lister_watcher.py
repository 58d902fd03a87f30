"""``ClientListerWatcher``: one resource in one scope, listed and watched.

It is all that the runtime knows of a client: the runtime's ``ListerWatcher``. When its requests
go out is decided by a ``ReflectorLane`` of the client's ``traffic``; what is asked next, by the runtime.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from aioinformer._client.api.scheduler import ReflectorLane, ScheduledStream
from aioinformer._client.http.transport import ApiRequest, ResponseStream
from aioinformer._core.listwatch.requests import DiscoveryRequest, ListRequest, WatchRequest
from aioinformer._core.objects.resources import Resource

__all__ = ["ClientListerWatcher"]


class RequestSender(Protocol):
    """The part of a ``Client`` that is used."""

    def request(self, call: ApiRequest) -> AbstractAsyncContextManager[ResponseStream]:
        """Send a GET; its open answer."""
        ...

    async def served(self, resource: Resource) -> Resource | None:
        """The resource as the server serves it now."""
        ...


@dataclass(frozen=True, slots=True, repr=False)
class ClientListerWatcher:
    """Lists and watches one resource in one scope: the runtime's ``ListerWatcher``."""

    client: RequestSender
    resource: Resource
    """What is read."""
    namespace: str | None
    """Where; ``None`` for everywhere."""
    selectors: Mapping[str, str]
    """``labelSelector`` and ``fieldSelector``, those that are set."""
    lane: ReflectorLane
    """Where its requests wait for their turn among those of the client's other readers."""
    watch_lists: bool = True
    """Whether it may be asked for a WatchList; a server that has none says so."""

    @property
    def path(self) -> str:
        """The URL path of the collection."""
        return self.resource.path(self.namespace)

    @asynccontextmanager
    async def list(self, request: ListRequest) -> AsyncGenerator[ScheduledStream]:
        """One page, as an open answer, when it is its turn.

        Raises:
            FetchError: any answer but 200, or none (phase ``list``).
            NotRunning: the client is not open.
        """
        query = {**request.query(), **self.selectors}
        call = ApiRequest("list", self.path, query)
        async with self.lane.acquire(request) as turn, self.client.request(call) as body:
            yield turn.open_stream(body)

    @asynccontextmanager
    async def watch(self, request: WatchRequest) -> AsyncGenerator[ScheduledStream]:
        """A stream of changes, as an open answer, when it is its turn. Leaving it drops its
        connection.

        Raises:
            FetchError: any answer but 200, or none (phase ``watch``).
            NotRunning: the client is not open.
        """
        query = {**request.query(), **self.selectors}
        call = ApiRequest("watch", self.path, query, watch_timeout=request.timeout)
        async with self.lane.acquire(request) as turn, self.client.request(call) as body:
            yield turn.open_stream(body)

    async def discover(self) -> Resource | None:
        """What is read, as the server serves it now, when it is its turn. See ``Client.served``.

        Raises:
            FetchError: it can't be known (phase ``discovery``).
            NotRunning: the client is not open.
        """
        async with self.lane.acquire(DiscoveryRequest()):
            return await self.client.served(self.resource)

    def with_resource(self, resource: Resource) -> ClientListerWatcher:
        """The same of the resource in another version."""
        return replace(self, resource=resource)

    def __repr__(self) -> str:
        scope = f" in {self.namespace}" if self.namespace else ""
        chosen = "".join(f", {name}={text}" for name, text in self.selectors.items())
        return f"<ClientListerWatcher of {self.resource}{scope}{chosen}>"
