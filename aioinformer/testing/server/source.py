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
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

from aioinformer._client.api.resource_writer import ClientWriter
from aioinformer._client.api.scheduler import ReflectorLane, RequestScheduler
from aioinformer._client.http.request import Timeouts
from aioinformer._core.listwatch.requests import (
    DiscoveryRequest,
    ListRequest,
    Request,
    WatchRequest,
)
from aioinformer._core.objects.resources import Resource, resolve_built_in
from aioinformer._core.writing.write_requests import WriteRequest, WriteRequestBuilder
from aioinformer.errors import FetchError, RequestTimedOut
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.faults.exchange import FaultedRequest
from aioinformer.testing.faults.faults import Faults
from aioinformer.testing.server import queries
from aioinformer.testing.server.clock import Clock, LoopClock
from aioinformer.testing.server.objects import WRITE_VERBS, ObjectRequest, handle_request
from aioinformer.testing.server.request_driver import RequestDriver, split_chunks
from aioinformer.testing.wire import discovery
from aioinformer.testing.wire.urls import ResourcePath

__all__ = ["ClusterListerWatcher", "ClusterSender", "ClusterSource"]


REQUEST_TIMEOUT = Timeouts().silence
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
            async with asyncio.timeout(REQUEST_TIMEOUT):
                return await self._process(request)
        except TimeoutError as error:
            said = f"{request.method} {request.path}: no answer in {REQUEST_TIMEOUT:g} s"
            raise RequestTimedOut(said, phase="write") from error
        except FetchError as error:
            error.phase = "write"
            raise

    async def _process(self, request: WriteRequest) -> bytes:
        cluster = self.cluster
        target = ResourcePath.parse(request.path, cluster.resources, cluster.with_status)
        verb = WRITE_VERBS.get(request.method, "get")
        with FaultedRequest(self.faults, verb, target.resource, target.namespace) as exchange:
            passage = RequestDriver(exchange, self.clock)
            await passage.start_response()
            asked = ObjectRequest(
                request.method, target, request.query, request.content_type, request.body
            )
            done = handle_request(cluster, asked).raw
            return b"".join([chunk async for chunk in passage.transfer(split_chunks(done))])


@dataclass(frozen=True, slots=True)
class ClusterSource:
    """Gives informers a cluster to list and watch: ``SharedInformerFactory(ClusterSource(c))``."""

    cluster: Cluster
    faults: Faults = field(default_factory=Faults)
    """What goes wrong, for all that come from here."""
    clock: Clock = field(default_factory=LoopClock)
    traffic: RequestScheduler = field(default_factory=RequestScheduler)
    """How those who come from here take turns, as with a client. By the event loop's time."""

    def lister_watcher(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        labels: str = "",
        fields: str = "",
    ) -> ClusterListerWatcher:
        """What lists and watches one selection of a resource.

        Args:
            resource: of what, as a ``Resource`` or the name of a built-in one; it need not be
                served yet.
            namespace: where; ``None`` for everywhere.
            labels: a label selector.
            fields: a field selector.
        """
        lane = self.traffic.create_lane()
        return ClusterListerWatcher(
            self.cluster, resource, namespace, labels, fields, self.faults, self.clock, lane
        )

    def api(self, resource: str | Resource, *, namespace: str | None = None) -> ClientWriter:
        """Return a ``ResourceWriter``, which reads and writes single objects of a resource.

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
        return ClientWriter(WriteRequestBuilder(resolve_built_in(resource), namespace), sender.send)

    writer = api
    """Alias of ``api``."""


@dataclass(frozen=True, slots=True)
class ClusterListerWatcher:
    """Lists and watches one selection of a resource."""

    cluster: Cluster
    resource: Resource
    namespace: str | None = None
    labels: str = ""
    fields: str = ""
    faults: Faults = field(default_factory=Faults)
    clock: Clock = field(default_factory=LoopClock)
    lane: ReflectorLane = field(default_factory=lambda: RequestScheduler().create_lane())
    """Where its requests wait for their turn; by default nobody else is there."""
    watch_lists: bool = True
    """Whether it may be asked for a WatchList; what the cluster says to that is its features'."""

    @asynccontextmanager
    async def list(self, request: ListRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        """The bytes of a page.

        Raises:
            ServerError: on entering, what the server answers instead; its phase is ``list``.
            TransportError: there is no answer, or not all of it.
        """
        query = request.query() | self._selector_params()
        async with self._drive_request("list", request) as passage:
            await self._start_response(passage, query)
            body = queries.list_page(self.cluster, self.resource, self.namespace, query)
            async with aclosing(passage.transfer(split_chunks(body))) as chunks:
                self.lane.record_response()
                yield chunks

    @asynccontextmanager
    async def watch(self, request: WatchRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        """The bytes of a stream of events, until it ends or the context is left.

        Raises:
            ServerError: on entering, what the server answers instead; its phase is ``watch``.
            TransportError: there is no answer, or it breaks off.
        """
        query = request.query() | self._selector_params()
        async with self._drive_request("watch", request) as passage:
            await self._start_response(passage, query)
            watch = queries.start_watch(
                self.cluster, self.resource, self.namespace, query, now=self.clock.now
            )
            try:
                async with aclosing(passage.transfer(passage.watch_lines(watch))) as lines:
                    self.lane.record_response()
                    yield lines
            finally:
                watch.close()

    def release_list_slot(self) -> None:
        """Let another informer begin: the initial list of the open WatchList is complete."""
        self.lane.release_list_slot()

    async def discover(self) -> Resource | None:
        """The resource as the cluster serves it now, when it is its turn; in another version, if
        it has only that.

        ``None`` if it has neither. Faults concern it as a ``get`` of no resource, as they do the
        discovery documents of ``ApiServer``.

        Raises:
            ServerError: what the server answers instead; its phase is ``discovery``.
            TransportError: there is no answer.
        """
        async with self.lane.acquire(DiscoveryRequest()):
            with FaultedRequest(self.faults, "get", None) as exchange:
                try:
                    await RequestDriver(exchange, self.clock).start_response()
                except FetchError as error:
                    error.phase = "discovery"
                    raise
        return discovery.find_served(self.cluster.resources, self.resource)

    def with_resource(self, resource: Resource) -> ClusterListerWatcher:
        """The same of the resource in another version."""
        return replace(self, resource=resource)

    @asynccontextmanager
    async def _drive_request(
        self, verb: Literal["list", "watch"], request: Request
    ) -> AsyncGenerator[RequestDriver]:
        async with self.lane.acquire(request):
            with FaultedRequest(self.faults, verb, self.resource, self.namespace) as exchange:
                try:
                    yield RequestDriver(exchange, self.clock)
                except FetchError as error:
                    error.phase = verb
                    raise

    async def _start_response(self, driver: RequestDriver, query: Mapping[str, str]) -> None:
        await driver.start_response()
        await driver.wait_for_version(self.cluster, queries.required_version(query))

    def _selector_params(self) -> dict[str, str]:
        selectors = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {name: text for name, text in selectors.items() if text}
