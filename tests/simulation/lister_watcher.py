"""One informer's line through the network: a ``ListerWatcher`` over a ``Network``.

Asks the cluster as ``ClusterSource`` does, and lets everything pass through what the network does
to it, and gives up when a client would. The chunks of a stream come in the order of its events;
where they are cut means nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import TypeAlias

from aioinformer._core.listwatch.requests import (
    AnyRequest,
    DiscoveryRequest,
    ListRequest,
    WatchRequest,
)
from aioinformer._core.objects.resources import Resource
from aioinformer.errors import ConnectionLost, ProtocolError, RequestTimedOut
from aioinformer.testing.cluster.watches import Watch
from aioinformer.testing.server import queries
from aioinformer.testing.wire import discovery, statuses
from aioinformer.testing.wire.encoding import encode_error_event
from tests.simulation.network import (
    CHUNK_LINES,
    GRACE,
    SILENCE,
    Connection,
    Network,
    is_bookmark,
    phase_of,
)
from tests.simulation.records import Request

GARBAGE = b"<html><body>Your session has expired. Please log in again.</body></html>\n"
"""What proxies say."""

_Lines: TypeAlias = list[bytes]
"""Inside a ListerWatcher ``list`` is the method."""


@dataclass(frozen=True, slots=True)
class FaultyListerWatcher:
    """Lists and watches one selection for one informer: a ``ListerWatcher``."""

    network: Network
    name: str
    resource: Resource
    namespace: str | None = None
    labels: str = ""
    watch_lists: bool = True

    @asynccontextmanager
    async def list(self, request: ListRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        """The bytes of a page."""
        query = self._query(request)
        with self._carry(request, query) as connection:
            await self.network.admit(connection)
            if fault := self.network.hits("stale_list", self.name):
                query = _outdated(query, fault.amount)
            with statuses.error_phase("list"):
                body = queries.list_page(self.network.cluster, self._stored, self.namespace, query)
            async with aclosing(self._body(connection, body)) as chunks:
                yield chunks

    @asynccontextmanager
    async def watch(self, request: WatchRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        """The bytes of a stream of events."""
        query = self._query(request)
        with self._carry(request, query) as connection:
            await self.network.admit(connection)
            now = self.network.history.clock()
            watch = queries.start_watch(
                self.network.cluster, self._stored, self.namespace, query, now=now
            )
            watch.on_ready = connection.wake.set
            try:
                async with aclosing(self._stream(connection, watch)) as chunks:
                    yield chunks
            finally:
                watch.close()

    async def discover(self) -> Resource | None:
        """What the discovery documents say of the resource."""
        with self._carry(DiscoveryRequest(), {}) as connection:
            await self.network.admit(connection)
            if connection.garbage:
                raise ProtocolError("the answer is no document", phase="discovery")
            if self.network.current("absent", self.name):
                return None
            if discovery.find_served(self.network.cluster.resources, self._stored) is None:
                return None
            return self.network.version(self.name, self.resource)

    def with_resource(self, resource: Resource) -> FaultyListerWatcher:
        """The same of the resource in another version."""
        return replace(self, resource=resource)

    @property
    def _stored(self) -> Resource:
        """What the cluster knows it as, which knows one version only."""
        return replace(self.resource, version="v1")

    def _query(self, request: ListRequest | WatchRequest) -> dict[str, str]:
        return request.query() | ({"labelSelector": self.labels} if self.labels else {})

    @contextmanager
    def _carry(self, asked: AnyRequest, query: dict[str, str]) -> Generator[Connection]:
        text = "&".join(f"{name}={value}" for name, value in query.items())
        request = self.network.history.add(Request, self.name, asked.verb, text)
        if isinstance(asked, WatchRequest):
            request.length, request.since = asked.timeout, int(asked.resource_version or 0)
        with self.network.carry(request, self.resource) as connection:
            yield connection

    # -- lists --------------------------------------------------------------------------------

    async def _body(self, connection: Connection, body: bytes) -> AsyncGenerator[bytes]:
        if connection.garbage:
            yield GARBAGE
            return
        async with aclosing(self._send(connection, body)) as pieces:
            async for piece in pieces:
                yield piece

    # -- watches ------------------------------------------------------------------------------

    async def _stream(self, connection: Connection, watch: Watch) -> AsyncGenerator[bytes]:
        """Events as they come, until the server or the network ends it."""
        clock = self.network.history.clock
        while True:
            connection.wake.clear()
            await self._check(connection)
            if connection.due(clock()):
                return
            lines = self._take(connection, watch)
            for start in range(0, len(lines), CHUNK_LINES):
                data = b"".join(lines[start : start + CHUNK_LINES])
                async with aclosing(self._send(connection, data)) as pieces:
                    async for piece in pieces:
                        yield piece
            if lines:
                continue
            if watch.ended:
                return
            await _until(connection.wake, min(watch.next_deadline, connection.ends_at or _NEVER))

    def _take(self, connection: Connection, watch: Watch) -> _Lines:
        """What the server sends now."""
        if connection.garbage:
            connection.ends = True
            return [GARBAGE]
        if connection.error is not None:
            connection.ends = True
            return [encode_error_event(statuses.status_document(connection.error))]
        taken = watch.take(self.network.history.clock())
        lines = self.network.lines(connection, taken)
        connection.request.changes += sum(1 for line in lines if not is_bookmark(line))
        if connection.empty and not lines:
            connection.ends = True
            connection.wake.set()
            version = self.network.cluster.resource_version
            return [_bookmark(version)] if version > connection.request.since else []
        return lines

    # -- bytes --------------------------------------------------------------------------------

    async def _send(self, connection: Connection, data: bytes) -> AsyncGenerator[bytes]:
        """Bytes in pieces, as far as they get.

        Raises:
            ConnectionLost: not to the end.
            RequestTimedOut: not to the end, and nobody said so.
        """
        history, request = self.network.history, connection.request
        if connection.corrupt:
            connection.corrupt = False
            data = self.network.corrupted(data)
        connection.announce(data)
        for piece in self.network.pieces(connection, data):
            through = connection.spend(piece, *history.stamp())
            if through:
                yield through
                request.last_read = history.clock()
            await self._check(connection)
            await self.network.delay(self.name)

    async def _check(self, connection: Connection) -> None:
        """Return if something still gets through."""
        history, request = self.network.history, connection.request
        phase = phase_of(request)
        while connection.silent:
            now = history.clock()
            if request.silent_since is None:
                request.silent_since = now
            until = request.answered + request.length + GRACE
            if phase == "list":
                until = request.last_read + SILENCE
            if now >= until:
                raise RequestTimedOut("nothing came in time", phase=phase)
            connection.wake.clear()
            await _until(connection.wake, until)
        if connection.broken:
            raise ConnectionLost("connection reset", phase=phase)

    def __repr__(self) -> str:
        return f"<Line {self.name} to {self.resource}>"


@dataclass(frozen=True, slots=True)
class FaultySource:
    """A network in the place of a client: a factory's ``Source``."""

    network: Network
    name: str

    def lister_watcher(
        self, resource: Resource, *, namespace: str | None, labels: str, fields: str
    ) -> FaultyListerWatcher:
        """What lists and watches for one informer. Fields are not selected."""
        return FaultyListerWatcher(self.network, self.name, resource, namespace, labels)


_NEVER = float("inf")


def _bookmark(version: int) -> bytes:
    metadata = b'{"metadata":{"resourceVersion":"%d"}}' % version
    return b'{"type":"BOOKMARK","object":%s}\n' % metadata


def _outdated(query: dict[str, str], versions: int) -> dict[str, str]:
    """What asks for a state that is so many versions older, if it asks for one at all."""
    asked = query.get("resourceVersion", "0")
    if int(asked) <= versions:
        return query
    older = {"resourceVersion": str(int(asked) - versions), "resourceVersionMatch": "Exact"}
    return query | older


async def _until(wake: asyncio.Event, deadline: float) -> None:
    try:
        async with asyncio.timeout_at(deadline):
            await wake.wait()
    except TimeoutError:
        return  # something is due
