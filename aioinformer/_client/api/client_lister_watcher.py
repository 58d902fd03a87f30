"""``ClientListerWatcher``: the runtime's ``ListerWatcher`` over a client.

The runtime decides what to request; a ``ReflectorLane`` of the client's scheduler decides when the
request is sent.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from aioinformer._client.api.request_scheduler import ReflectorLane
from aioinformer._client.http.request import JSON, ApiRequest
from aioinformer._client.http.transport import ResponseStream
from aioinformer._core.codec.metadata_form import METADATA_ACCEPT, METADATA_LIST_ACCEPT
from aioinformer._core.listwatch.reflector_requests import (
    DiscoveryRequest,
    ListRequest,
    WatchRequest,
)
from aioinformer._core.objects.resources import Resource
from aioinformer._runtime.reflector.lister_watcher import ClusterIdentity


class RequestSender(Protocol):
    """The part of a ``Client`` that is used."""

    def request(self, call: ApiRequest) -> AbstractAsyncContextManager[ResponseStream]: ...

    async def cluster_identity(self) -> ClusterIdentity: ...

    async def served(self, resource: Resource) -> Resource | None: ...


@dataclass(frozen=True, slots=True, repr=False)
class ClientListerWatcher:
    """A lister and watcher of one resource in one scope."""

    client: RequestSender
    resource: Resource
    namespace: str | None
    """The namespace; ``None`` for all."""
    selectors: Mapping[str, str]
    """``labelSelector`` and ``fieldSelector``, those that are set, and other list options."""
    lane: ReflectorLane
    """The place where requests wait for their turn among those of the client's other informers."""
    watch_lists: bool = True
    """True if WatchLists may be requested. A server that has none answers with an error."""
    metadata_only: bool = False

    @property
    def path(self) -> str:
        return self.resource.path(self.namespace)

    @property
    def selection(self) -> Mapping[str, str]:
        """The namespace, the selectors and the other options that select the objects."""
        metadata = {"metadata only": "True"} if self.metadata_only else {}
        return {"namespace": self.namespace or "", **self.selectors, **metadata}

    async def cluster_identity(self) -> ClusterIdentity:
        return await self.client.cluster_identity()

    @asynccontextmanager
    async def list(self, request: ListRequest) -> AsyncGenerator[ResponseStream]:
        """Request one page when it is this reader's turn, and open the response.

        Raises:
            FetchError: any response but 200, or none (phase ``list``).
            NotRunning: the client is not open.
        """
        accept = METADATA_LIST_ACCEPT if self.metadata_only else JSON
        call = ApiRequest("list", self.path, {**request.query(), **self.selectors}, accept)
        async with self.lane.acquire(request), self.client.request(call) as body:
            self.lane.record_response()
            yield body

    @asynccontextmanager
    async def watch(self, request: WatchRequest) -> AsyncGenerator[ResponseStream]:
        """Request a stream of changes when it is this reader's turn; leaving closes the connection.

        Raises:
            FetchError: any response but 200, or none (phase ``watch``).
            NotRunning: the client is not open.
        """
        query = {**request.query(), **self.selectors}
        accept = METADATA_ACCEPT if self.metadata_only else JSON
        call = ApiRequest("watch", self.path, query, accept, watch_timeout=request.timeout)
        async with self.lane.acquire(request), self.client.request(call) as body:
            self.lane.record_response()
            yield body

    def release_list_slot(self) -> None:
        """Let another informer begin: the initial list of the open WatchList is complete."""
        self.lane.release_list_slot()

    @property
    def answers(self) -> int:
        """The number of answers to all informers so far."""
        return self.lane.answers

    async def wait_for_answer(self, timeout: float, *, success: bool = False) -> bool:
        """Wait until the server answers any informer of the client, or ``timeout`` seconds."""
        return await self.lane.wait_for_answer(timeout, success=success)

    async def wait_for_credentials(self, timeout: float) -> bool:
        """Wait until the client has other credentials, or ``timeout`` seconds."""
        return await self.lane.wait_for_credentials(timeout)

    async def discover(self) -> Resource | None:
        """Read ``Client.served`` when it is this reader's turn; raise what it raises."""
        async with self.lane.acquire(DiscoveryRequest()):
            return await self.client.served(self.resource)

    def with_resource(self, resource: Resource) -> ClientListerWatcher:
        return replace(self, resource=resource)

    def with_metadata_only(self) -> ClientListerWatcher:
        return replace(self, metadata_only=True)

    def with_list_options(self, options: Mapping[str, str]) -> ClientListerWatcher:
        """Return a copy that adds these query parameters to each list and watch."""
        return replace(self, selectors={**options, **self.selectors})

    def __repr__(self) -> str:
        scope = f" in {self.namespace}" if self.namespace else ""
        chosen = "".join(f", {name}={text}" for name, text in self.selectors.items())
        return f"<ClientListerWatcher of {self.resource}{scope}{chosen}>"
