"""A proxy between a client and the real API server, which disturbs what the server sends.

The proxy forwards TCP, or, with certificates, ends the client's TLS and opens TLS to the server, so
that it sees HTTP. An ``Effect`` forwards the bytes of one direction: from the server to the client.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

import trustme

__all__ = ["CorruptGzip", "Drip", "HalfOpen", "PassOn", "ResetAfter", "TcpProxy", "run_proxy"]

GZIP_MAGIC = b"\x1f\x8b\x08"


class Effect(Protocol):
    """The way in which bytes reach the client."""

    async def send(self, data: bytes, client: asyncio.StreamWriter) -> None:
        """Forward ``data``, which is not empty. Raise ``ConnectionError`` to end a connection."""
        ...


class PassOn:
    """Forward the bytes unchanged."""

    async def send(self, data: bytes, client: asyncio.StreamWriter) -> None:
        client.write(data)
        await client.drain()


class HalfOpen:
    """Forward nothing, and close nothing: the peer has vanished, and the kernel answers for it."""

    async def send(self, data: bytes, client: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()


@dataclass(slots=True)
class Drip:
    """Forward a few bytes at a time."""

    size: int
    every: float
    """Seconds."""

    async def send(self, data: bytes, client: asyncio.StreamWriter) -> None:
        for start in range(0, len(data), self.size):
            client.write(data[start : start + self.size])
            await client.drain()
            await asyncio.sleep(self.every)


@dataclass(slots=True)
class ResetAfter:
    """Forward so many bytes and then send a TCP reset."""

    left: int

    async def send(self, data: bytes, client: asyncio.StreamWriter) -> None:
        client.write(data[: self.left])
        await client.drain()
        self.left -= len(data)
        if self.left <= 0:
            reset(client)
            raise ConnectionResetError("as ordered")


@dataclass(slots=True)
class CorruptGzip:
    """Damage compressed bodies, some bytes behind their beginnings."""

    times: int
    damaged: int = 0

    async def send(self, data: bytes, client: asyncio.StreamWriter) -> None:
        begin = data.find(GZIP_MAGIC)
        if begin >= 0 and self.damaged < self.times:
            self.damaged += 1
            at = begin + (len(data) - begin) // 2
            data = data[:at] + bytes(byte ^ 0xFF for byte in data[at : at + 8]) + data[at + 8 :]
        client.write(data)
        await client.drain()


def reset(writer: asyncio.StreamWriter) -> None:
    """Close a connection with a reset, without sending what waits in buffers."""
    found: socket.socket = writer.get_extra_info("socket")
    found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@dataclass(eq=False, slots=True)
class Connection:
    """A client's connection. ``effect`` may be changed at any time."""

    client: asyncio.StreamWriter
    effect: Effect


@dataclass(eq=False)
class TcpProxy:
    """The connections of a proxy, and the effect of the next ones."""

    host: str
    port: int
    authority: trustme.CA | None
    """Issues the certificate of the proxy; ``None`` to forward TLS unread."""
    upstream: ssl.SSLContext | None
    effect: Effect = field(default_factory=PassOn)
    """Of connections that are made from now on."""
    connections: list[Connection] = field(default_factory=list[Connection])
    url: str = ""
    refusing: bool = False
    """True if each connection is reset at once."""

    def refuse(self) -> None:
        """Reset the connections that exist, and each new one until ``accept``."""
        self.refusing = True
        self.reset_connections()

    def accept(self) -> None:
        """Accept connections again."""
        self.refusing = False

    def affect_connections(self, effect: Effect) -> None:
        """Disturb the connections that exist; later ones are not concerned."""
        for each in self.connections:
            each.effect = effect

    def reset_connections(self) -> None:
        """Reset the connections that exist."""
        for each in tuple(self.connections):
            reset(each.client)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one connection until one of its ends is closed."""
        connection = Connection(writer, self.effect)
        if self.refusing:
            reset(writer)
            return
        try:
            server_reader, server = await asyncio.open_connection(
                self.host, self.port, ssl=self.upstream
            )
        except OSError:
            reset(writer)
            return
        self.connections.append(connection)
        pumps = [
            asyncio.create_task(_pump_requests(reader, server)),
            asyncio.create_task(_pump_answers(server_reader, connection)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.connections.remove(connection)
            for each in pumps:
                each.cancel()
            await asyncio.wait(pumps)
            writer.transport.abort()
            server.transport.abort()


async def _pump_requests(reader: asyncio.StreamReader, server: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            server.write(data)
            await server.drain()
    except OSError:
        pass  # the connection has ended


async def _pump_answers(reader: asyncio.StreamReader, connection: Connection) -> None:
    try:
        while data := await reader.read(65536):
            await connection.effect.send(data, connection.client)
    except OSError:
        pass  # the connection has ended


@asynccontextmanager
async def run_proxy(
    url: str, *, authority: trustme.CA | None = None, upstream: ssl.SSLContext | None = None
) -> AsyncGenerator[TcpProxy]:
    """Run a proxy of the server with this URL, on a free port.

    Args:
        url: the URL of the server, with a port.
        authority: issues the certificate of the proxy; ``None`` to forward TLS unread.
        upstream: verifies the server, if the proxy has an authority.
    """
    host, _, port = url.removeprefix("https://").partition(":")
    proxy = TcpProxy(host, int(port), authority, upstream)
    serving: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        try:
            await proxy.serve(reader, writer)
        except asyncio.CancelledError:
            pass  # the test has ended; asyncio would log the cancellation
        finally:
            serving.discard(task)
            writer.transport.abort()

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=_make_context(authority))
    try:
        proxy.url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield proxy
    finally:
        server.close()
        for task in tuple(serving):
            task.cancel()
        await asyncio.gather(*serving)
        await server.wait_closed()


def _make_context(authority: trustme.CA | None) -> ssl.SSLContext | None:
    if authority is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.tempfile() as path:
        context.load_cert_chain(path)
    return context
