"""A ``Cluster`` in the place of a client: lists and watches without sockets.

For informers under simulated time, and for tests that shouldn't need a port. Time is the event
loop's unless another clock is given. Faults are those of ``Faults``, as far as they can be told
without a socket: what breaks a connection there is a ``TransportError`` here.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Literal

from aioinformer._core.cursor import ListRequest, WatchRequest
from aioinformer._core.resources import Resource
from aioinformer.errors import FetchError
from aioinformer.testing import queries
from aioinformer.testing.clock import Clock, LoopClock
from aioinformer.testing.cluster import Cluster
from aioinformer.testing.exchange import Exchange
from aioinformer.testing.faults import Faults
from aioinformer.testing.passage import Passage, chunks_of

__all__ = ["ClusterListWatcher", "ClusterSource"]


@dataclass(frozen=True, slots=True)
class ClusterSource:
    """Gives informers a cluster to list and watch: ``SharedInformerFactory(ClusterSource(c))``."""

    cluster: Cluster
    faults: Faults = field(default_factory=Faults)
    """What goes wrong, for all that come from here."""
    clock: Clock = field(default_factory=LoopClock)

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
        return ClusterListWatcher(
            self.cluster, resource, namespace, labels, fields, self.faults, self.clock
        )


@dataclass(frozen=True, slots=True)
class ClusterListWatcher:
    """Lists and watches one selection of a resource."""

    cluster: Cluster
    resource: Resource
    namespace: str | None = None
    labels: str = ""
    fields: str = ""
    faults: Faults = field(default_factory=Faults)
    clock: Clock = field(default_factory=LoopClock)

    @asynccontextmanager
    async def list(self, request: ListRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        """The bytes of a page.

        Raises:
            ServerError: on entering, what the server answers instead; its phase is ``list``.
            TransportError: there is no answer, or not all of it.
        """
        query = request.query() | self._selectors()
        with self._passage("list") as passage:
            await self._begin(passage, query)
            body = queries.list_page(self.cluster, self.resource, self.namespace, query)
            async with aclosing(passage.carry(chunks_of(body))) as chunks:
                yield chunks

    @asynccontextmanager
    async def watch(self, request: WatchRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        """The bytes of a stream of events, until it ends or the context is left.

        Raises:
            ServerError: on entering, what the server answers instead; its phase is ``watch``.
            TransportError: there is no answer, or it breaks off.
        """
        query = request.query() | self._selectors()
        with self._passage("watch") as passage:
            await self._begin(passage, query)
            watch = queries.start_watch(
                self.cluster, self.resource, self.namespace, query, now=self.clock.now
            )
            try:
                async with aclosing(passage.carry(passage.lines(watch))) as lines:
                    yield lines
            finally:
                watch.close()

    @contextmanager
    def _passage(self, verb: Literal["list", "watch"]) -> Generator[Passage]:
        with Exchange(self.faults, verb, self.resource, self.namespace) as exchange:
            try:
                yield Passage(exchange, self.clock)
            except FetchError as error:
                error.phase = verb
                raise

    async def _begin(self, passage: Passage, query: Mapping[str, str]) -> None:
        await passage.admit()
        await passage.fresh(self.cluster, queries.wanted_version(query))

    def _selectors(self) -> dict[str, str]:
        selectors = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {name: text for name, text in selectors.items() if text}
