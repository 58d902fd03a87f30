"""Connections that share one TLS context: two sessions, opened and closed together.

One carries lists and single requests, the other one the watches: a watch holds its connection for
minutes, and behind a shared limit the next request would wait for ever. When certificates change,
new requests get new ``Sessions``; the old ones are retired, and close when their last answer has
been read to its end: a live stream is not cut.
"""

from __future__ import annotations

import socket
import ssl
from typing import TypeAlias

import aiohttp

__all__ = ["READ_BUFFER", "Sessions", "open_socket"]

READ_BUFFER = 64 * 1024
"""Bytes that aiohttp buffers before it stops reading (it holds up to twice that). Lines are cut
by ``wire``, so one event need not fit; a larger buffer makes longer turns of the loop."""

_KEEPALIVE_OPTIONS: tuple[tuple[str, int], ...] = (
    ("TCP_KEEPIDLE", 30),  # seconds of silence before the first probe (client-go's)
    ("TCP_KEEPALIVE", 30),  # the same on macOS
    ("TCP_KEEPINTVL", 10),  # seconds between probes
    ("TCP_KEEPCNT", 3),  # probes without an answer: dead after 30 + 3 * 10 s
    ("TCP_USER_TIMEOUT", 60_000),  # milliseconds that sent bytes may stay unacknowledged
)
"""asyncio never probes a connection, and HTTP/1.1 has no ping: without these a load balancer that
forgets a connection leaves a watch silent until its own timeout."""


Address: TypeAlias = tuple[
    int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[object, ...]
]
"""One answer of ``getaddrinfo``: family, kind, protocol, canonical name, address."""


def open_socket(address: Address) -> socket.socket:
    """A TCP socket that notices within a minute that its peer is gone, where the OS can."""
    family, kind, protocol, _, _ = address
    opened = socket.socket(family, kind, protocol)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE_OPTIONS:
            if (option := getattr(socket, name, None)) is not None:
                opened.setsockopt(socket.IPPROTO_TCP, option, value)
    except OSError:
        opened.close()
        raise
    return opened


class Sessions:
    """The sessions of one TLS context. Made inside a running loop."""

    def __init__(self, tls: ssl.SSLContext | None, *, connect: float, read_timeout: float) -> None:
        """Open them; no connection is made yet.

        Args:
            tls: the context; ``None`` for plain HTTP.
            connect: the seconds that a connection may take.
            read_timeout: the seconds without a byte after which a request other than a watch fails.
        """
        self.tls = tls
        self.requests = _create_session(tls, connect=connect, sock_read=read_timeout)
        self.watches = _create_session(tls, connect=connect, sock_read=None)
        self._users = 0
        self._retired = False

    def acquire(self) -> None:
        """Take part in using them; ``release`` ends it."""
        self._users += 1

    async def release(self) -> None:
        """End one's part; the last one out of retired sessions closes them."""
        self._users -= 1
        await self._close_if_unused()

    async def close_when_unused(self) -> None:
        """Close them as soon as nobody uses them."""
        self._retired = True
        await self._close_if_unused()

    async def _close_if_unused(self) -> None:
        if self._retired and not self._users:
            await self.close()

    async def close(self) -> None:
        """Close all connections, and wait until their sockets are closed. A cancellation ends the
        waiting, not the closing.
        """
        try:
            await self.requests.close()
        finally:
            await self.watches.close()

    @property
    def closed(self) -> bool:
        """Whether they are closed."""
        return self.requests.closed and self.watches.closed

    def __repr__(self) -> str:
        state = "closed" if self.closed else "retired" if self._retired else "open"
        return f"<Sessions {state}, {self._users} in use>"


def _create_session(
    tls: ssl.SSLContext | None, *, connect: float, sock_read: float | None
) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            limit=0, ssl=True if tls is None else tls, socket_factory=open_socket
        ),
        # aiohttp's default ends everything after 300 s, a watch in the middle of its life.
        timeout=aiohttp.ClientTimeout(total=None, connect=connect, sock_read=sock_read),
        cookie_jar=aiohttp.DummyCookieJar(),
        read_bufsize=READ_BUFFER,
        trust_env=False,
    )
