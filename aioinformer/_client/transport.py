"""Sessions, requests and open answers: bytes between the API server and the rest.

One session carries lists and single requests, another one the watches: a watch holds its
connection for minutes, and behind a shared limit the next request would wait for ever. An
answer is handed out as an open ``Body`` whose chunks are read as they arrive; a body that is left
before its end takes its connection with it. What the bytes mean is ``wire``'s work, what failed
is told by ``statuses`` and ``refusals``, and nothing is tried again here: that is the cursor's to
decide.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import TypeAlias

import aiohttp
from yarl import URL

from aioinformer._client.credentials import Credentials
from aioinformer._client.masking import Mask
from aioinformer._client.refusals import refusal
from aioinformer._client.statuses import FAILURES, failure, interruption, without_headers
from aioinformer.errors import NotRunning, Phase, RequestTimedOut

__all__ = ["JSON", "Body", "Call", "Timeouts", "Transport", "open_socket"]

JSON = "application/json"

READ_BUFFER = 64 * 1024
"""Bytes that aiohttp buffers before it stops reading (it holds up to twice that). Lines are cut
by ``wire``, so one event need not fit; a larger buffer makes longer turns of the loop."""

REQUESTS_AT_ONCE = 100
"""Lists and single requests under way together, and so their connections. A semaphore rather
than the connector's limit: waiting for a turn is not part of the time allowed for connecting."""


def _agent() -> str:
    try:
        return f"aioinformer/{version('aioinformer')}"
    except PackageNotFoundError:  # run from a source tree
        return "aioinformer/0"


AGENT = _agent()
"""``User-Agent``. A server indents its answers for a browser, curl or wget: recording 44."""


# -- sockets -----------------------------------------------------------------------------------

_KEEPALIVE: tuple[tuple[str, int], ...] = (
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
        for name, value in _KEEPALIVE:
            if (option := getattr(socket, name, None)) is not None:
                opened.setsockopt(socket.IPPROTO_TCP, option, value)
    except OSError:
        opened.close()
        raise
    return opened


# -- requests ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long to wait for what, in seconds."""

    connect: float = 10.0
    """For a connection: name, TCP, proxy and TLS together. And, before that, for a token to be
    renewed: a file system that hangs must not leave an informer waiting for ever."""
    silence: float = 75.0
    """Without a byte of a list or single request, the first one included. kube-apiserver gives
    such requests 60 s (``--request-timeout``); its own answer shall come first."""
    watch_start: float = 90.0
    """For the head of a watch. A server sends it at once (recording 37), but some proxies hold
    it back until the first byte of the body. On a quiet resource that is a bookmark, one a
    minute: so a minute, and half of one for lateness."""
    grace: float = 30.0
    """What a watch may last beyond the time that the server was asked to end it after."""


@dataclass(frozen=True, slots=True)
class Call:
    """One GET."""

    phase: Phase
    path: str
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    accept: str = JSON
    watch: int | None = None
    """For a watch: the seconds after which the server was asked to end it."""

    def __post_init__(self) -> None:
        # A URL library resolves dots, and the request would reach what nobody meant to ask for.
        if not self.path.startswith("/") or not {".", ".."}.isdisjoint(self.path.split("/")):
            raise ValueError(f"a path begins with '/' and has no '.' or '..', not {self.path!r}")


class Body:
    """An open answer: its chunks, decompressed, as they arrive.

    Iterate it once, in one task. A chunk is whatever has arrived, cut anywhere.

    Raises, while iterating:
        ConnectionLost: it broke off.
        RequestTimedOut: nothing came for too long, or a watch outlived its deadline.
        ProtocolError: what came is not well-formed HTTP.
        NotRunning: the client was closed meanwhile.
    """

    __slots__ = ("_call", "_read", "_response")

    def __init__(self, response: aiohttp.ClientResponse, call: Call) -> None:
        self._response = response
        self._call = call
        self._read = response.content.readany

    def __aiter__(self) -> Body:
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = await self._read()
        except FAILURES as error:
            raise interruption(error, self._response.url, phase=self._call.phase) from error
        if not chunk:
            raise StopAsyncIteration
        return chunk

    def interrupt(self, error: Exception) -> None:
        """Let the reader fail with ``error``, unless the end has arrived already."""
        if not self._response.content.is_eof():
            self._response.content.set_exception(error)

    async def aclose(self) -> None:
        """Drop the connection, unless the answer has ended; return when the socket is closed."""
        connection = self._response.connection
        if connection is None or (protocol := connection.protocol) is None:
            self._response.close()
            return
        closed = protocol.closed
        # Not close(): over TLS that waits for the server's farewell, up to 30 s.
        protocol.abort()
        self._response.close()
        if closed is not None:
            await asyncio.gather(closed, return_exceptions=True)

    def __repr__(self) -> str:
        return f"<Body of {self._call.phase} {self._call.path}>"


class Transport:
    """Sends requests with one set of credentials. Made inside a running loop; close it."""

    def __init__(
        self, credentials: Credentials, *, headers: Mapping[str, str], timeouts: Timeouts
    ) -> None:
        self._credentials = credentials
        self._headers = {"User-Agent": AGENT, **headers}
        self._timeouts = timeouts
        self._turns = asyncio.Semaphore(REQUESTS_AT_ONCE)
        self._open: set[Body] = set()
        self._requests = self._session(sock_read=timeouts.silence)
        self._watches = self._session(sock_read=None)

    def _session(self, *, sock_read: float | None) -> aiohttp.ClientSession:
        tls = self._credentials.tls
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, ssl=True if tls is None else tls, socket_factory=open_socket
            ),
            # aiohttp's default ends everything after 300 s, a watch in the middle of its life.
            timeout=aiohttp.ClientTimeout(
                total=None, connect=self._timeouts.connect, sock_read=sock_read
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=READ_BUFFER,
            trust_env=False,
        )

    # -- asking --------------------------------------------------------------------------------

    @asynccontextmanager
    async def request(self, call: Call) -> AsyncGenerator[Body]:
        """Send a GET; the body of its answer, open until the context is left.

        Raises:
            ServerError: any answer but 200, redirects included.
            TransportError: no answer.
            ProtocolError: the answer is not HTTP.
        """
        if call.watch is None:
            async with self._turns, self._body(call) as body:
                yield body
            return
        async with self._body(call) as body:
            late = RequestTimedOut(
                f"GET {self._url(call).with_query(None)}: the watch outlived its "
                f"{call.watch} s by {self._timeouts.grace:g} s and was ended",
                phase=call.phase,
            )
            remains = call.watch + self._timeouts.grace
            alarm = asyncio.get_running_loop().call_later(remains, body.interrupt, late)
            try:
                yield body
            finally:
                alarm.cancel()

    @asynccontextmanager
    async def _body(self, call: Call) -> AsyncGenerator[Body]:
        authorization = await self._authorization()
        url = self._url(call)
        allowed = None if call.watch is None else self._timeouts.watch_start
        try:
            async with asyncio.timeout(allowed):
                response = await self._send(url, call, authorization)
        except FAILURES as error:
            proxy = self._credentials.proxy
            raise failure(error, url, phase=call.phase, proxy=proxy) from without_headers(error)
        body = Body(response, call)
        self._open.add(body)
        try:
            if response.status != 200:
                raise await refusal(response, phase=call.phase, mask=self._mask(response))
            yield body
        finally:
            self._open.discard(body)
            await body.aclose()

    async def _authorization(self) -> str:
        allowed = self._timeouts.connect
        try:
            async with asyncio.timeout(allowed):
                return await self._credentials.authorization.header()
        except TimeoutError as error:
            server = self._credentials.server
            said = f"{server}: the credentials were not renewed in {allowed:g} s"
            raise RequestTimedOut(said, phase="credentials") from error

    def _mask(self, response: aiohttp.ClientResponse) -> Mask:
        """Hides every header that went out with the request, those for the proxy included."""
        sent = response.request_info.headers.items()
        return Mask([*sent, ("Proxy-Authorization", self._credentials.proxy_authorization)])

    async def _send(self, url: URL, call: Call, authorization: str) -> aiohttp.ClientResponse:
        credentials = self._credentials
        session = self._requests if call.watch is None else self._watches
        if session.closed:  # while this request waited for its turn or its token
            raise NotRunning("the client was closed before the request was sent")
        headers = {
            **self._headers,
            "Accept": call.accept,
            "Accept-Encoding": "gzip" if call.watch is None else "identity",
        }
        if authorization:
            headers["Authorization"] = authorization
        proxy_headers = None
        if credentials.proxy and credentials.proxy_authorization:
            proxy_headers = {"Proxy-Authorization": credentials.proxy_authorization}
            if url.scheme == "http":  # no tunnel: the proxy reads the request itself
                headers.update(proxy_headers)
        return await session.get(
            url,
            headers=headers,
            allow_redirects=False,
            proxy=credentials.proxy,
            proxy_headers=proxy_headers,
            server_hostname=credentials.tls_server_name,
        )

    def _url(self, call: Call) -> URL:
        server = self._credentials.server
        return server.with_path(server.path.rstrip("/") + call.path).with_query(call.query)

    # -- closing -------------------------------------------------------------------------------

    async def close(self) -> None:
        """End what is open, close all connections, and wait until their sockets are closed."""
        for body in tuple(self._open):
            body.interrupt(NotRunning("the client was closed while an answer was being read"))
        await self._requests.close()
        await self._watches.close()
