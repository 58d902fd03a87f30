"""A ``Cluster`` in the place of a client: lists and watches without sockets.

For informers under simulated time, and for tests that shouldn't need a port. Time is the event
loop's. What the network does to a connection has no place here; that is ``server``'s.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

from aioinformer._core.cursor import ListRequest, WatchRequest
from aioinformer._core.resources import Resource
from aioinformer.testing import queries, statuses
from aioinformer.testing.cluster import Cluster
from aioinformer.testing.watches import Watch

__all__ = ["ClusterListWatcher", "ClusterSource", "chunks_of", "lines_of"]

CHUNK = 64 * 1024
"""Bytes of a list at a time: an HTTP client reads about as much."""


@dataclass(frozen=True, slots=True)
class ClusterSource:
    """Gives informers a cluster to list and watch: ``SharedInformerFactory(ClusterSource(c))``."""

    cluster: Cluster

    def lister_watcher(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        labels: str = "",
        fields: str = "",
    ) -> ClusterListWatcher:
        """What lists and watches one selection of a resource.

        Args:
            resource: of what; it need not be served yet.
            namespace: where; ``None`` for everywhere.
            labels: a label selector.
            fields: a field selector.
        """
        return ClusterListWatcher(self.cluster, resource, namespace, labels, fields)


@dataclass(frozen=True, slots=True)
class ClusterListWatcher:
    """Lists and watches one selection of a resource."""

    cluster: Cluster
    resource: Resource
    namespace: str | None = None
    labels: str = ""
    fields: str = ""

    @asynccontextmanager
    async def list(self, request: ListRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        """The bytes of a page.

        Raises:
            ServerError: on entering, what the server answers instead; its phase is ``list``.
        """
        query = request.query() | self._selectors()
        with statuses.during("list"):
            body = queries.list_page(self.cluster, self.resource, self.namespace, query)
        async with aclosing(chunks_of(body)) as chunks:
            yield chunks

    @asynccontextmanager
    async def watch(self, request: WatchRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        """The bytes of a stream of events, until it ends or the context is left.

        Raises:
            ServerError: on entering, what the server answers instead; its phase is ``watch``.
        """
        now = asyncio.get_running_loop().time()
        query = request.query() | self._selectors()
        watch = queries.start_watch(self.cluster, self.resource, self.namespace, query, now=now)
        try:
            async with aclosing(lines_of(watch)) as lines:
                yield lines
        finally:
            watch.close()

    def _selectors(self) -> dict[str, str]:
        selectors = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {name: text for name, text in selectors.items() if text}


async def chunks_of(body: bytes) -> AsyncGenerator[bytes]:
    """A body in the pieces in which it is sent."""
    for start in range(0, len(body), CHUNK):
        yield body[start : start + CHUNK]
        await asyncio.sleep(0)  # a list of any size leaves the loop to others


async def lines_of(watch: Watch) -> AsyncGenerator[bytes]:
    """The lines of a watch as they come, until it ends. The caller closes the watch."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    watch.on_ready = ready.set
    while not watch.ended:
        ready.clear()
        lines = watch.take(loop.time())
        for line in lines:
            yield line
        if not lines and not watch.ended:
            await _until(ready, watch.next_deadline)


async def _until(ready: asyncio.Event, deadline: float) -> None:
    try:
        async with asyncio.timeout_at(deadline):
            await ready.wait()
    except TimeoutError:
        return  # something is due
