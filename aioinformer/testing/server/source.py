"""A ``Cluster`` in the place of a client: lists, watches and writes without sockets.

Time is the event loop's, real or simulated, unless another clock is given. Faults concern requests
as over HTTP, as far as a fault is visible without a socket: a broken connection is a
``TransportError``. A write that is refused or answered with an error was not done; a write whose
answer broke was done.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

from aioinformer._client.api.request_scheduler import ReflectorLane, RequestScheduler
from aioinformer._client.api.resource_api import ResourceApi
from aioinformer._client.http.request import Timeouts
from aioinformer._core.listwatch.reflector_requests import (
    DiscoveryRequest,
    ListRequest,
    Request,
    WatchRequest,
)
from aioinformer._core.objects.resources import Resource, resolve_built_in
from aioinformer._core.writing.write_requests import WriteRequest, WriteRequestBuilder
from aioinformer._runtime.reflector.lister_watcher import ClusterIdentity
from aioinformer.errors import FetchError, ProtocolError, RequestTimedOut, UnknownResource
from aioinformer.testing.access.rights import check_access
from aioinformer.testing.access.users import RequestAttributes, User
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.faults.effects import RespondWithBody
from aioinformer.testing.faults.exchange import FaultedRequest
from aioinformer.testing.faults.faults import Faults
from aioinformer.testing.server import queries
from aioinformer.testing.server.clock import Clock, LoopClock
from aioinformer.testing.server.object_requests import ObjectRequest
from aioinformer.testing.server.objects import handle_request, object_verb, request_attributes
from aioinformer.testing.server.request_driver import RequestDriver, split_chunks
from aioinformer.testing.wire import discovery_documents as discovery
from aioinformer.testing.wire.tables import ObjectForm
from aioinformer.testing.wire.urls import ResourcePath

TIMEOUTS = Timeouts()
"""The time limits of lists and watches: those of a client by default."""
REQUEST_TIMEOUT = TIMEOUTS.read
"""Seconds that a write can take, by the event loop's time: as a client waits for the first byte."""


@dataclass(frozen=True, slots=True)
class ClusterSource:
    """A cluster that informers list and watch: ``SharedInformerFactory(ClusterSource(c))``."""

    cluster: Cluster
    faults: Faults = field(default_factory=Faults)
    """The faults that concern all requests of this source."""
    clock: Clock = field(default_factory=LoopClock)
    traffic: RequestScheduler = field(default_factory=RequestScheduler)
    """The limits that all requests share, as with a client, by the event loop's time."""
    user: User | None = None
    """Sends all requests of this source; ``None`` for a user without limits."""

    @property
    def origin(self) -> object:
        """The cluster, by which a controller knows the informers that show its writes."""
        return self.cluster

    def check_access(self, attributes: RequestAttributes) -> None:
        """Raise ``Forbidden`` if the user may not send a request."""
        if self.user is not None:
            check_access(self.cluster, self.user, attributes)

    def lister_watcher(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        labels: str = "",
        fields: str = "",
    ) -> ClusterListerWatcher:
        """Return the lister-watcher of one selection. The resource need not be served yet."""
        lane = self.traffic.create_lane()
        return ClusterListerWatcher(self, resource, namespace, labels, fields, lane)

    async def resource(self, name: str) -> Resource:
        """Return the resource that the cluster serves under a name, as ``Client.resource`` does.

        Faults don't concern this request, and of several groups with such a resource the first
        counts.

        Raises:
            UnknownResource: the cluster serves no resource of that name.
        """
        found = next(
            (each for each in self.cluster.resources if name.lower() in each.names()), None
        )
        if found is None:
            raise UnknownResource(f"the cluster serves no resource called {name!r}")
        return found

    def api(self, resource: str | Resource, *, namespace: str | None = None) -> ResourceApi:
        """Return the reads and writes of a resource, as ``Client.api`` does.

        ``resource`` is a ``Resource``, which need not be served yet, or the name of a built-in one;
        the ``namespace`` is by default that of each key or object. A request without an answer
        fails after 75 s of the event loop's time, as a client's does.

        Raises:
            UnknownResource: no built-in resource has that name.
            ValueError: a namespace for a cluster-scoped resource, or one that is not a DNS label.
        """
        builder = WriteRequestBuilder(resolve_built_in(resource), namespace)
        return ResourceApi(builder, ClusterSender(self))


@dataclass(frozen=True, slots=True)
class ClusterSender:
    source: ClusterSource

    async def send(self, request: WriteRequest) -> bytes:
        """Send a request; return the body of the answer if the request was done.

        Raises:
            ServerError: the server answered with an error.
            TransportError: the answer is missing or incomplete. The request may have been done.
        """
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT):
                return await self._process(request)
        except TimeoutError:
            message = f"{request.method} {request.path}: no answer in {REQUEST_TIMEOUT:g} s"
            raise RequestTimedOut(message, phase="write") from None
        except FetchError as error:
            error.phase = "write"
            raise

    @asynccontextmanager
    async def open(self, request: WriteRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        """Send a GET and yield its whole answer as one chunk."""

        async def chunks() -> AsyncGenerator[bytes]:
            yield answer

        answer = await self.send(request)
        async with aclosing(chunks()) as body:
            yield body

    async def _process(self, request: WriteRequest) -> bytes:
        source, cluster = self.source, self.source.cluster
        path = ResourcePath.parse(request.path, cluster.served)
        verb = object_verb(request.method, path)
        with FaultedRequest(
            source.faults, verb, path.resource, path.namespace, name=path.name
        ) as faulted:
            driver = RequestDriver(faulted, source.clock)
            if (foreign := await driver.start_response()) is not None:
                return foreign.body
            source.check_access(request_attributes(verb, path))
            object_request = ObjectRequest(
                request.method, path, request.query, request.content_type, request.body, source.user
            )
            answer = handle_request(cluster, object_request).raw
            return b"".join([chunk async for chunk in driver.transfer(split_chunks(answer))])


@dataclass(frozen=True, slots=True)
class ClusterListerWatcher:
    """The lists and watches of one selection of a resource."""

    source: ClusterSource
    resource: Resource
    namespace: str | None = None
    labels: str = ""
    fields: str = ""
    lane: ReflectorLane = field(default_factory=lambda: RequestScheduler().create_lane())
    """The requests wait here for their turn; by default no other request is there."""
    watch_lists: bool = True
    """True if the reflector can ask for a WatchList. The cluster's features decide the answer."""
    form: ObjectForm = "whole"
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    """Further query parameters of each request."""

    @property
    def selection(self) -> Mapping[str, str]:
        """The namespace, the selectors and the other options that select the objects."""
        parts = {"namespace": self.namespace or "", "labels": self.labels, "fields": self.fields}
        return {**parts, "form": self.form, **self.options}

    async def cluster_identity(self) -> ClusterIdentity:
        """Return the identity of the cluster. Clusters with equal seeds have equal identities."""
        return ClusterIdentity(uid=hashlib.sha256(self.source.cluster.signing_key).hexdigest())

    @asynccontextmanager
    async def list(self, request: ListRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        """Yield the bytes of a page.

        Raises:
            ServerError: the server answers with an error; raised on entering, with phase ``list``.
            TransportError: the answer is missing or incomplete.
        """
        query = {**request.query(), **self.selectors}
        async with self._drive_request("list", request) as driver:
            foreign = await self._start_response(driver, query)
            body = self._page(driver, query) if foreign is None else foreign.body
            async with aclosing(self._read_body(driver, body)) as chunks:
                self.lane.record_response()
                yield chunks

    def _page(self, driver: RequestDriver, query: Mapping[str, str]) -> bytes:
        faulted = driver.request
        understood, cluster = faulted.list_query(query), self.source.cluster
        page = queries.list_page(cluster, self.resource, self.namespace, understood, form=self.form)
        return faulted.list_body(page)

    async def _read_body(self, driver: RequestDriver, body: bytes) -> AsyncGenerator[bytes]:
        """Yield a whole body; the client gives up if no byte comes for some time."""
        clock = self.source.clock
        driver.client_deadline = clock.now + TIMEOUTS.read
        async with aclosing(driver.transfer(split_chunks(body))) as chunks:
            async for chunk in chunks:
                yield chunk
                driver.client_deadline = clock.now + TIMEOUTS.read

    @asynccontextmanager
    async def watch(self, request: WatchRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        """Yield the bytes of a stream of events. Leaving the context ends the stream.

        Raises:
            ServerError: the server answers with an error; raised on entering, with phase ``watch``.
            TransportError: the answer is missing or breaks off.
        """
        query = {**request.query(), **self.selectors}
        async with self._drive_request("watch", request) as driver:
            foreign = await self._start_response(driver, query)
            if foreign is not None:
                async with aclosing(self._read_body(driver, foreign.body)) as chunks:
                    yield chunks
                return
            now = self.source.clock.now
            driver.client_deadline = now + request.timeout + TIMEOUTS.grace
            watch = queries.start_watch(
                self.source.cluster, self.resource, self.namespace, query, now=now, form=self.form
            )
            try:
                async with aclosing(driver.transfer(driver.watch_lines(watch))) as lines:
                    self.lane.record_response()
                    yield lines
            finally:
                watch.close()

    def release_list_slot(self) -> None:
        """Let another informer begin: the initial list of the open WatchList is complete."""
        self.lane.release_list_slot()

    @property
    def answers(self) -> int:
        """The number of answers to all informers so far."""
        return self.lane.answers

    async def wait_for_answer(self, timeout: float, *, success: bool = False) -> bool:
        """Wait until the cluster answers any informer of the source, or ``timeout`` seconds."""
        return await self.lane.wait_for_answer(timeout, success=success)

    async def discover(self) -> Resource | None:
        """Return the resource as it is served now, in another version if need be, or ``None``.

        Faults concern this request as a ``get`` of no resource, as with the documents of
        ``ApiServer``.

        Raises:
            ServerError: the server answers with an error; its phase is ``discovery``.
            TransportError: the answer is missing.
        """
        async with self.lane.acquire(DiscoveryRequest()):
            with FaultedRequest(self.source.faults, "get", None) as faulted:
                driver = RequestDriver(faulted, self.source.clock)
                driver.client_deadline = self.source.clock.now + TIMEOUTS.read
                try:
                    if await driver.start_response() is not None:
                        raise ProtocolError("the answer is no discovery document")
                except FetchError as error:
                    error.phase = "discovery"
                    raise
        return discovery.find_served(self.source.cluster.resources, self.resource)

    def with_resource(self, resource: Resource) -> ClusterListerWatcher:
        return replace(self, resource=resource)

    def with_metadata_only(self) -> ClusterListerWatcher:
        return replace(self, form="metadata")

    def with_list_options(self, options: Mapping[str, str]) -> ClusterListerWatcher:
        return replace(self, options={**self.options, **options})

    @asynccontextmanager
    async def _drive_request(
        self, verb: Literal["list", "watch"], request: Request
    ) -> AsyncGenerator[RequestDriver]:
        source = self.source
        concerned = "watch_list" if isinstance(request, WatchRequest) and request.initial else verb
        async with self.lane.acquire(request):
            with FaultedRequest(source.faults, concerned, self.resource, self.namespace) as faulted:
                try:
                    yield RequestDriver(faulted, source.clock)
                except FetchError as error:
                    error.phase = verb
                    raise

    async def _start_response(
        self, driver: RequestDriver, query: Mapping[str, str]
    ) -> RespondWithBody | None:
        """Wait until the answer can begin; return it if it is not the server's own."""
        is_watch = queries.is_watch(query)
        limit = TIMEOUTS.watch_start if is_watch else TIMEOUTS.read
        driver.client_deadline = self.source.clock.now + limit
        foreign = await driver.start_response()
        if foreign is None:
            attributes = RequestAttributes(
                verb="watch" if is_watch else "list",
                resource=self.resource,
                namespace=self.namespace or "",
                name=queries.selected_name(query),
            )
            self.source.check_access(attributes)
            await driver.wait_for_version(self.source.cluster, queries.required_version(query))
        return foreign

    @property
    def selectors(self) -> Mapping[str, str]:
        """The query parameters that select the objects."""
        selectors = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {**self.options, **{name: text for name, text in selectors.items() if text}}
