"""A source without sockets that refuses some namespaces, as a server does without a Role there."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aioinformer import ListerWatcher, ListRequest, Resource, WatchRequest
from aioinformer.errors import Status, server_error
from aioinformer.testing import Cluster, ClusterSource, Faults

Request = ListRequest | WatchRequest


@dataclass(slots=True)
class RefusingSource:
    """A ``Source`` of a cluster with the requests that were sent, by namespace."""

    cluster: Cluster
    refused: set[str] = field(default_factory=set[str])
    """The namespaces that are refused; ``""`` for requests of all namespaces."""
    requests: list[tuple[str, Request]] = field(default_factory=list[tuple[str, Request]])

    def lister_watcher(
        self, resource: Resource, *, namespace: str | None, labels: str, fields: str
    ) -> RefusingListerWatcher:
        faults = self.faults.setdefault(namespace or "", Faults())
        source = ClusterSource(self.cluster, faults).lister_watcher(
            resource, namespace=namespace, labels=labels, fields=fields
        )
        return RefusingListerWatcher(self, source, namespace or "")

    faults: dict[str, Faults] = field(default_factory=dict[str, Faults])
    """The faults of each namespace."""

    def end_watches(self, namespace: str) -> None:
        """Break the connection of the open watch of a namespace."""
        self.faults[namespace].reset(under_way=True)

    def sent(self, namespace: str) -> list[Request]:
        return [request for where, request in self.requests if where == namespace]


@dataclass(frozen=True, slots=True)
class RefusingListerWatcher:
    owner: RefusingSource
    source: ListerWatcher
    namespace: str

    @property
    def resource(self) -> Resource:
        return self.source.resource

    @property
    def watch_lists(self) -> bool:
        return True

    def check(self, request: Request) -> None:
        self.owner.requests.append((self.namespace, request))
        if self.namespace in self.owner.refused:
            message = f'{self.resource} is forbidden in the namespace "{self.namespace}"'
            status = Status(403, "Forbidden", message)
            raise server_error(
                status, phase="list" if isinstance(request, ListRequest) else "watch"
            )

    @asynccontextmanager
    async def list(self, request: ListRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        self.check(request)
        async with self.source.list(request) as chunks:
            yield chunks

    @asynccontextmanager
    async def watch(self, request: WatchRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        self.check(request)
        async with self.source.watch(request) as chunks:
            yield chunks
