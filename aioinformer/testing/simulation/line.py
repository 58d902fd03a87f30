"""One informer's line through the network: a ``ListerWatcher`` over a ``Network``.

Asks the cluster as ``ClusterSource`` does, and lets everything pass through what the network does
to it. The chunks of a stream come in the order of its events; where they are cut means nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from aioinformer._core.requests import ListRequest, WatchRequest
from aioinformer._core.resources import Resource
from aioinformer.errors import ConnectionLost, RequestTimedOut, Status
from aioinformer.testing import queries, statuses
from aioinformer.testing.encoding import error_line
from aioinformer.testing.simulation.history import Request, RequestKind
from aioinformer.testing.simulation.network import (
    CHUNK_LINES,
    REASONS,
    Connection,
    Network,
    is_bookmark,
)
from aioinformer.testing.watches import Watch

__all__ = ["Entrance", "Line"]

_Lines: TypeAlias = list[bytes]
"""Inside a ListerWatcher ``list`` is the method."""


@dataclass(frozen=True, slots=True)
class Line:
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
        with self._carry("list", query) as connection:
            await self.network.admit(connection)
            with statuses.during("list"):
                body = queries.list_page(self.network.cluster, self.resource, self.namespace, query)
            async with aclosing(self._send(connection, body)) as chunks:
                yield chunks

    @asynccontextmanager
    async def watch(self, request: WatchRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        """The bytes of a stream of events."""
        query = self._query(request)
        with self._carry("watch", query) as connection:
            await self.network.admit(connection)
            now = self.network.history.clock()
            watch = queries.start_watch(
                self.network.cluster, self.resource, self.namespace, query, now=now
            )
            watch.on_ready = connection.wake.set
            try:
                async with aclosing(self._stream(connection, watch)) as chunks:
                    yield chunks
            finally:
                watch.close()

    def _query(self, request: ListRequest | WatchRequest) -> dict[str, str]:
        return request.query() | ({"labelSelector": self.labels} if self.labels else {})

    @contextmanager
    def _carry(self, kind: RequestKind, query: dict[str, str]) -> Generator[Connection]:
        order, now = self.network.history.stamp()
        text = "&".join(f"{name}={value}" for name, value in query.items())
        with self.network.carry(Request(order, now, self.name, kind, text)) as connection:
            yield connection

    async def _stream(self, connection: Connection, watch: Watch) -> AsyncGenerator[bytes]:
        """Events as they come, until the server or the network ends it."""
        while True:
            connection.wake.clear()
            if connection.silent_until is not None:
                await self._hang(connection.silent_until)
            if connection.broken:
                raise ConnectionLost("connection reset", phase="watch")
            if connection.ends:
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
            await _until(connection.wake, watch.next_deadline)

    def _take(self, connection: Connection, watch: Watch) -> _Lines:
        """What the server sends now."""
        if code := connection.error_code:
            connection.ends = True
            reason = REASONS.get(code, "InternalError")
            return [error_line(statuses.document(Status(code, reason, "made up")))]
        lines = self.network.lines(connection, watch.take(self.network.history.clock()))
        connection.request.changes += sum(1 for line in lines if not is_bookmark(line))
        if connection.curt and not lines:
            connection.ends = True
            return [_bookmark(self.network.cluster.resource_version)]
        return lines

    async def _hang(self, until: float) -> None:
        await asyncio.sleep(max(0.0, until - self.network.history.clock()))
        raise RequestTimedOut("nothing came in time", phase="watch")

    async def _send(self, connection: Connection, data: bytes) -> AsyncGenerator[bytes]:
        """Bytes in pieces, as far as they get.

        Raises:
            ConnectionLost: not to the end.
        """
        if connection.corrupt:
            connection.corrupt = False
            data = self.network.corrupted(data)
        for piece in self.network.pieces(connection, data):
            through = connection.spend(piece)
            if through:
                yield through
            if connection.broken:
                raise ConnectionLost("connection reset", phase=connection.request.kind)
            await self.network.delay(self.name)

    def __repr__(self) -> str:
        return f"<Line {self.name} to {self.resource}>"


@dataclass(frozen=True, slots=True)
class Entrance:
    """A network in the place of a client: a factory's ``Source``."""

    network: Network
    name: str

    def lister_watcher(
        self, resource: Resource, *, namespace: str | None, labels: str, fields: str
    ) -> Line:
        """What lists and watches for one informer. Fields are not selected."""
        return Line(self.network, self.name, resource, namespace, labels)


def _bookmark(version: int) -> bytes:
    metadata = b'{"metadata":{"resourceVersion":"%d"}}' % version
    return b'{"type":"BOOKMARK","object":%s}\n' % metadata


async def _until(wake: asyncio.Event, deadline: float) -> None:
    try:
        async with asyncio.timeout_at(deadline):
            await wake.wait()
    except TimeoutError:
        return  # something is due
