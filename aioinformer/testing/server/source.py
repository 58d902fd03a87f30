"""A ``Cluster`` in the place of a client: lists, watches and writes without sockets.

For informers under simulated time, and for tests that shouldn't need a port. Time is the event
loop's unless another clock is given. Faults are those of ``Faults``, as far as they can be told
without a socket: what breaks a connection there is a ``TransportError`` here.

Requests of writers to a ``Cluster``, without sockets: what ``ClusterSource.writer`` sends with.

Faults concern them as they do requests over HTTP, verb by verb: what is refused or answered with an
error was not done, what breaks in the answer was. Time is the event loop's, or that of another
clock.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

from aioinformer._client.api.resource_writer import ObjectWriter
from aioinformer._client.api.scheduler import Lane, Stream, Traffic, Turn
from aioinformer._client.http.request import Timeouts
from aioinformer._core.listwatch.requests import ListRequest, LookupRequest, Request, WatchRequest
from aioinformer._core.objects.resources import Resource, built_in
from aioinformer._core.writing.write_requests import WriteRequest, Writes
from aioinformer.errors import FetchError, RequestTimedOut
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.faults.exchange import Exchange
from aioinformer.testing.faults.faults import Faults
from aioinformer.testing.server import queries
from aioinformer.testing.server.clock import Clock, LoopClock
from aioinformer.testing.server.objects import WRITES, Asked, answer
from aioinformer.testing.server.request_driver import Passage, chunks_of
from aioinformer.testing.wire import discovery
from aioinformer.testing.wire.urls import Target

__all__ = ["ClusterListWatcher", "ClusterSender", "ClusterSource"]


SECONDS = Timeouts().silence
"""What a request may take, by the event loop's time: as long as a client waits for a first byte."""


@dataclass(frozen=True, slots=True)
class ClusterSender:
    """Sends the requests of writers to a cluster."""

    cluster: Cluster
    faults: Faults
    clock: Clock

    async def send(self, request: WriteRequest) -> bytes:
        """Send one; the body of the answer, if it was done.

        Raises:
            ServerError: it was refused.
            TransportError: there is no answer, or not all of it. Whether it was done is unknown.
        """
        try:
            async with asyncio.timeout(SECONDS):
                return await self._answer(request)
        except TimeoutError as error:
            said = f"{request.method} {request.path}: no answer in {SECONDS:g} s"
            raise RequestTimedOut(said, phase="write") from error
        except FetchError as error:
            error.phase = "write"
            raise

    async def _answer(self, request: WriteRequest) -> bytes:
        cluster = self.cluster
        target = Target.parse(request.path, cluster.resources, cluster.with_status)
        verb = WRITES.get(request.method, "get")
        with Exchange(self.faults, verb, target.resource, target.namespace) as exchange:
            passage = Passage(exchange, self.clock)
            await passage.admit()
            asked = Asked(request.method, target, request.query, request.content_type, request.body)
            done = answer(cluster, asked).raw
            return b"".join([chunk async for chunk in passage.carry(chunks_of(done))])


@dataclass(frozen=True, slots=True)
class ClusterSource:
    """Gives informers a cluster to list and watch: ``SharedInformerFactory(ClusterSource(c))``."""

    cluster: Cluster
    faults: Faults = field(default_factory=Faults)
    """What goes wrong, for all that come from here."""
    clock: Clock = field(default_factory=LoopClock)
    traffic: Traffic = field(default_factory=Traffic)
    """How those who come from here take turns, as with a client. By the event loop's time."""

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
            resource: of what, as a ``Resource`` or the name of a built-in one; it need not be
                served yet.
            namespace: where; ``None`` for everywhere.
            labels: a label selector.
            fields: a field selector.
        """
        lane = self.traffic.lane()
        return ClusterListWatcher(
            self.cluster, resource, namespace, labels, fields, self.faults, self.clock, lane
        )

    def writer(self, resource: str | Resource, *, namespace: str | None = None) -> ObjectWriter:
        """What reads and writes single objects of a resource: a ``ResourceWriter``.

        A request without an answer fails after 75 s of the event loop's, as a client's does.

        Args:
            resource: of what, as a ``Resource`` or the name of a built-in one; it need not be
                served yet.
            namespace: where; by default each key and object says it.

        Raises:
            UnknownResource: no built-in resource has that name.
            ValueError: a namespace for a cluster-scoped resource, or one that is no DNS label.
        """
        sender = ClusterSender(self.cluster, self.faults, self.clock)
        return ObjectWriter(Writes(built_in(resource), namespace), sender.send)


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
    lane: Lane = field(default_factory=lambda: Traffic().lane())
    """Where its requests wait for their turn; by default nobody else is there."""
    watch_lists: bool = True
    """Whether it may be asked for a WatchList; what the cluster says to that is its features'."""

    @asynccontextmanager
    async def list(self, request: ListRequest) -> AsyncGenerator[Stream]:
        """The bytes of a page.

        Raises:
            ServerError: on entering, what the server answers instead; its phase is ``list``.
            TransportError: there is no answer, or not all of it.
        """
        query = request.query() | self._selectors()
        async with self._passage("list", request) as (turn, passage):
            await self._begin(passage, query)
            body = queries.list_page(self.cluster, self.resource, self.namespace, query)
            async with aclosing(passage.carry(chunks_of(body))) as chunks:
                yield turn.answered(chunks)

    @asynccontextmanager
    async def watch(self, request: WatchRequest) -> AsyncGenerator[Stream]:
        """The bytes of a stream of events, until it ends or the context is left.

        Raises:
            ServerError: on entering, what the server answers instead; its phase is ``watch``.
            TransportError: there is no answer, or it breaks off.
        """
        query = request.query() | self._selectors()
        async with self._passage("watch", request) as (turn, passage):
            await self._begin(passage, query)
            watch = queries.start_watch(
                self.cluster, self.resource, self.namespace, query, now=self.clock.now
            )
            try:
                async with aclosing(passage.carry(passage.lines(watch))) as lines:
                    yield turn.answered(lines)
            finally:
                watch.close()

    async def served(self) -> Resource | None:
        """The resource as the cluster serves it now, when it is its turn; in another version, if
        it has only that.

        ``None`` if it has neither. Faults concern it as a ``get`` of no resource, as they do the
        discovery documents of ``ApiServer``.

        Raises:
            ServerError: what the server answers instead; its phase is ``discovery``.
            TransportError: there is no answer.
        """
        async with self.lane.turn(LookupRequest()):
            with Exchange(self.faults, "get", None) as exchange:
                try:
                    await Passage(exchange, self.clock).admit()
                except FetchError as error:
                    error.phase = "discovery"
                    raise
        return discovery.served(self.cluster.resources, self.resource)

    def of(self, resource: Resource) -> ClusterListWatcher:
        """The same of the resource in another version."""
        return replace(self, resource=resource)

    @asynccontextmanager
    async def _passage(
        self, verb: Literal["list", "watch"], request: Request
    ) -> AsyncGenerator[tuple[Turn, Passage]]:
        async with self.lane.turn(request) as turn:
            with Exchange(self.faults, verb, self.resource, self.namespace) as exchange:
                try:
                    yield turn, Passage(exchange, self.clock)
                except FetchError as error:
                    error.phase = verb
                    raise

    async def _begin(self, passage: Passage, query: Mapping[str, str]) -> None:
        await passage.admit()
        await passage.fresh(self.cluster, queries.wanted_version(query))

    def _selectors(self) -> dict[str, str]:
        selectors = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {name: text for name, text in selectors.items() if text}
