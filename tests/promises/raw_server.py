"""A server of bytes: the test determines the bytes, their segments, and the end of the connection.

``ApiServer`` answers like an API server; this server determines what reaches a client.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import zlib
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, TypeVar

from yarl import URL

from aioinformer import Client, SharedInformer, SharedInformerFactory
from tests.client.servers import tcp_server
from tests.promises.conftest import FAST_BACKOFF

T = TypeVar("T")

Ending: TypeAlias = Literal["end", "break off", "reset", "silence"]
"""``end`` properly and keep the connection; ``break off`` with a FIN; ``reset`` with an RST."""


@dataclass(frozen=True, slots=True)
class RawResponse:
    """A response, as it is written to the socket."""

    pieces: Sequence[bytes | asyncio.Event]
    """The segments; the server waits for an event."""
    ending: Ending = "end"


def chunk(data: bytes) -> bytes:
    """Return a chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


LAST_CHUNK = chunk(b"")


def ok_response(
    *pieces: bytes | asyncio.Event, ending: Ending = "end", encoding: str = "identity"
) -> RawResponse:
    """Return a 200 response with these chunks and this ending."""
    head = (
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        f"Content-Encoding: {encoding}\r\nTransfer-Encoding: chunked\r\n\r\n"
    ).encode()
    body = [chunk(piece) if isinstance(piece, bytes) else piece for piece in pieces]
    return RawResponse([head, *body, *([LAST_CHUNK] if ending == "end" else [])], ending)


def error_response(code: int, *headers: str) -> RawResponse:
    """Return a response with a status code and no body."""
    lines = [f"HTTP/1.1 {code} No", "Content-Length: 0", *headers, "", ""]
    return RawResponse(["\r\n".join(lines).encode()])


def gzip_member(data: bytes) -> bytes:
    """Return a gzip member as Go writes it for each flush: synced, then finished."""
    packer = zlib.compressobj(1, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    return packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH) + packer.flush()


async def _read_head(reader: asyncio.StreamReader) -> str:
    try:
        return (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return ""  # the client has closed the connection


@dataclass(slots=True, eq=False)
class RawServer:
    """A server with a sequence of responses, after which it sends nothing."""

    responses: deque[RawResponse]
    request_targets: list[str] = field(default_factory=list[str])
    """The request targets so far."""
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])

    async def handle_connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Serve one connection."""
        while head := await _read_head(reader):
            line, *headers = head.splitlines()
            self.request_targets.append(line.split()[1])
            pairs = (header.partition(": ") for header in headers if header)
            self.headers.append({name: value for name, _, value in pairs})
            if not self.responses:
                await asyncio.Event().wait()
            if await self._send(self.responses.popleft(), writer) != "end":
                return

    async def _send(self, response: RawResponse, writer: asyncio.StreamWriter) -> Ending:
        for piece in response.pieces:
            if isinstance(piece, asyncio.Event):
                await piece.wait()
                continue
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)  # the client reads the data so far
        match response.ending:
            case "silence":
                await asyncio.Event().wait()
            case "reset":
                opened: socket.socket = writer.get_extra_info("socket")
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            case "break off":
                writer.write_eof()
            case "end":
                pass
        return response.ending


@dataclass(slots=True, eq=False)
class RawServerInformer:
    """A raw server, and an informer of pods that reads it."""

    server: RawServer
    pods: SharedInformer

    @property
    def request_summaries(self) -> list[str]:
        """The requests in a short form: ``list 0``, ``stream``, ``watch 10``, ``probe``."""
        return [_summarize(target) for target in self.server.request_targets]

    @property
    def cached_versions(self) -> dict[str, str]:
        """The resourceVersions of the cached pods, by name."""
        return {pod.name: pod.resource_version for pod in self.pods.lister.unsynced.list()}


def _summarize(target: str) -> str:
    query = URL(target).query
    version = query.get("resourceVersion", "")
    if "watch" not in query:
        return f"list {version}".strip()
    return f"{'stream' if 'sendInitialEvents' in query else 'watch'} {version}".strip()


@asynccontextmanager
async def running_raw_server(
    *responses: RawResponse, token: str | None = None
) -> AsyncGenerator[RawServerInformer]:
    """Run an informer of a raw server with these responses."""
    server = RawServer(deque(responses))
    async with (
        tcp_server(server.handle_connection) as address,
        Client(f"http://{address}", token=token) as client,
        SharedInformerFactory(client, backoff=FAST_BACKOFF) as informers,
    ):
        yield RawServerInformer(server, informers.informer("pods"))
