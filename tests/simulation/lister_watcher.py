"""``FaultyListerWatcher``: lists and watches for one informer over a ``Network``.

It asks the cluster as ``ClusterSource`` does, applies the network's faults to the bytes, and gives
up when a client would. The chunks of a stream arrive in the order of its events; the places of the
cuts mean nothing.
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

HTML_PAGE = b"<html><body>Your session has expired. Please log in again.</body></html>\n"
"""A page that a proxy sends in place of an answer."""

_Lines: TypeAlias = list[bytes]
"""An alias, since ``list`` is a method of the class that needs it."""


@dataclass(frozen=True, slots=True)
class FaultyListerWatcher:
    """Lists and watches one selection for one informer; a ``ListerWatcher``."""

    network: Network
    name: str
    resource: Resource
    namespace: str | None = None
    labels: str = ""
    watch_lists: bool = True

    @asynccontextmanager
    async def list(self, request: ListRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        """Open a page; yields its bytes."""
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
        """Open a stream of events; yields its bytes."""
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
        """Return the resource as the discovery documents have it; ``None`` if they don't."""
        with self._carry(DiscoveryRequest(), {}) as connection:
            await self.network.admit(connection)
            if connection.html_page:
                raise ProtocolError("the answer is no document", phase="discovery")
            if self.network.current("absent", self.name):
                return None
            if discovery.find_served(self.network.cluster.resources, self._stored) is None:
                return None
            return self.network.version(self.name, self.resource)

    def with_resource(self, resource: Resource) -> FaultyListerWatcher:
        """Return a lister-watcher of the resource in another version."""
        return replace(self, resource=resource)

    @property
    def _stored(self) -> Resource:
        """The resource in the only version that the cluster has."""
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
        if connection.html_page:
            yield HTML_PAGE
            return
        async with aclosing(self._send(connection, body)) as pieces:
            async for piece in pieces:
                yield piece

    # -- watches ------------------------------------------------------------------------------

    async def _stream(self, connection: Connection, watch: Watch) -> AsyncGenerator[bytes]:
        """Yield events as they come, until the server or the network ends the watch."""
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
        """Return the lines that the server sends now."""
        if connection.html_page:
            connection.ends = True
            return [HTML_PAGE]
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
        """Yield bytes in pieces, as far as they arrive.

        Raises:
            ConnectionLost: the connection broke.
            RequestTimedOut: the connection fell silent.
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
        """Return if bytes still arrive; a silent connection is waited for.

        Raises:
            ConnectionLost: the connection is broken.
            RequestTimedOut: the connection is silent, and the client has waited long enough.
        """
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
    """A network in the place of a client; a factory's ``Source``."""

    network: Network
    name: str

    def lister_watcher(
        self, resource: Resource, *, namespace: str | None, labels: str, fields: str
    ) -> FaultyListerWatcher:
        """Return the lister-watcher of one informer. Field selectors are ignored."""
        return FaultyListerWatcher(self.network, self.name, resource, namespace, labels)


_NEVER = float("inf")


def _bookmark(version: int) -> bytes:
    metadata = b'{"metadata":{"resourceVersion":"%d"}}' % version
    return b'{"type":"BOOKMARK","object":%s}\n' % metadata


def _outdated(query: dict[str, str], versions: int) -> dict[str, str]:
    """Return the query for a state so many versions older, if the query names a version."""
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
        return  # something else is due
