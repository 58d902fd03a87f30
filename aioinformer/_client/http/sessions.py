"""``Sessions``: the connections of one TLS context.

A ``Sessions`` holds two sessions of aiohttp: one for lists and single requests, one for watches,
which have another read timeout and hold a connection for minutes. When certificates change, new
requests get new ``Sessions``. The old ones close when their last response has been read to its end,
so that a live watch is not cut.
"""

from __future__ import annotations

import asyncio
import math
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler

from aioinformer._client.auth.proxies import Proxy
from aioinformer._client.http.request import Timeouts
from aioinformer._client.http.resolver import Address, Resolver, opened_addresses

READ_BUFFER = 64 * 1024
"""Bytes that aiohttp buffers before it stops reading (it holds up to twice as many). An event may
be larger, since the decoder assembles lines. A larger buffer would make longer steps of the loop.
"""

MAX_HEAD_LINE = 1024 * 1024
"""Bytes of the longest line in the head of a response: proxies add policies and cookies."""

MAX_HEADERS = 512
"""The number of header lines of a response."""

_KEEPALIVE_OPTIONS: tuple[tuple[str, int], ...] = (
    ("TCP_KEEPIDLE", 30),  # idle seconds before the first probe, as in client-go
    ("TCP_KEEPALIVE", 30),  # the same option on macOS
    ("TCP_KEEPINTVL", 10),  # seconds between probes
    ("TCP_KEEPCNT", 3),  # unanswered probes: the connection is dead after 30 + 3 * 10 s
    ("TCP_USER_TIMEOUT", 60_000),  # milliseconds that sent bytes may stay unacknowledged
)
"""Options that let the system probe idle connections. asyncio never probes a connection, and
HTTP/1.1 has no ping. Without probes, a load balancer that forgets a connection would leave a watch
idle until its own timeout."""


def open_socket(address: Address) -> socket.socket:
    """Return a TCP socket that detects a lost peer within a minute if the system supports it."""
    family, kind, protocol, _, (host, *_) = address
    opened_addresses.get([]).append(str(host))
    opened = socket.socket(family, kind, protocol)
    try:
        keep_alive(opened)
    except OSError:
        opened.close()
        raise
    return opened


def keep_alive(opened: socket.socket) -> None:
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE_OPTIONS:
        if (option := getattr(socket, name, None)) is not None:
            opened.setsockopt(socket.IPPROTO_TCP, option, value)


class Sessions:
    """The sessions of one TLS context. Must be created inside a running loop."""

    def __init__(
        self,
        tls: ssl.SSLContext | None,
        resolver: Resolver,
        timeouts: Timeouts,
        proxy: Proxy | None = None,
    ) -> None:
        """Create the sessions without opening a connection.

        A SOCKS5 ``proxy`` is used for all connections; an HTTP proxy is that of a request.
        """
        self.tls = tls
        create = partial(_create_session, tls, resolver, proxy, timeouts.connect)
        self.requests = create(timeouts.read)
        self.watches = create(None)
        self._users = 0
        self._closing = False

    def acquire(self) -> None:
        self._users += 1

    async def release(self) -> None:
        """Unregister a user. The last user of sessions that are to be closed closes them."""
        self._users -= 1
        await self._close_if_unused()

    async def close_when_unused(self) -> None:
        self._closing = True
        await self._close_if_unused()

    async def _close_if_unused(self) -> None:
        if self._closing and not self._users:
            await self.close()

    async def close(self) -> None:
        """Close all connections and sockets. A cancellation ends the waiting only."""
        try:
            await self.requests.close()
        finally:
            await self.watches.close()

    @property
    def closed(self) -> bool:
        return self.requests.closed and self.watches.closed

    def __repr__(self) -> str:
        state = "closed" if self.closed else "closing" if self._closing else "open"
        return f"<Sessions {state}, {self._users} in use>"


def _create_session(
    tls: ssl.SSLContext | None,
    resolver: Resolver,
    proxy: Proxy | None,
    connect: float,
    sock_read: float | None,
) -> aiohttp.ClientSession:
    create: Callable[..., aiohttp.TCPConnector]
    if proxy is not None and proxy.is_socks:
        create = partial(SocksConnector, proxy)
    else:
        create = partial(aiohttp.TCPConnector, socket_factory=open_socket)
    return aiohttp.ClientSession(
        connector=create(
            resolver=resolver,
            limit=0,  # ``Transport`` has its own limits
            ssl=True if tls is None else tls,
            use_dns_cache=False,  # it would alternate between the addresses
        ),
        # aiohttp's default total of 300 s would end a watch in the middle of its life.
        timeout=aiohttp.ClientTimeout(total=None, connect=connect, sock_read=sock_read),
        cookie_jar=aiohttp.DummyCookieJar(),
        read_bufsize=READ_BUFFER,
        max_line_size=MAX_HEAD_LINE,
        max_field_size=MAX_HEAD_LINE,
        max_headers=MAX_HEADERS,
        trust_env=False,  # it would read .netrc, too; ``proxies`` reads the environment
    )


# -- SOCKS5 ------------------------------------------------------------------------------------


class SocksError(aiohttp.ClientConnectionError):
    """The proxy was reached and did not connect to the server; the text says why."""


class ProxyLooksUp(AbstractResolver):
    """A resolver that leaves the name to the proxy."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        return [ResolveResult(hostname=host, host=host, port=port, family=family, proto=0, flags=0)]

    async def close(self) -> None: ...


class SocksConnector(aiohttp.TCPConnector):
    """Connections through a SOCKS5 proxy, with python-socks. As in Go, the proxy looks up the name.

    The library aiohttp-socks is not used: it ignores the name in ``tls-server-name``, looks up the
    proxy in the program's threads, and opens sockets that do not detect a lost peer. As that
    library does, this class overrides a private method of aiohttp.
    """

    def __init__(
        self,
        proxy: Proxy,
        *,
        resolver: AbstractResolver,
        **options: Any,
    ) -> None:
        """Create the connector. ``resolver`` looks up the proxy; see ``TCPConnector``."""
        super().__init__(resolver=ProxyLooksUp(), **options)  # pyright: ignore[reportUnknownMemberType]
        self._proxy = proxy
        self._proxy_resolver = resolver

    async def _wrap_create_connection(
        self,
        *args: Any,
        addr_infos: list[Any],
        req: aiohttp.ClientRequest,
        timeout: aiohttp.ClientTimeout,
        client_error: type[Exception] = aiohttp.ClientConnectorError,
        **kwargs: Any,
    ) -> tuple[asyncio.Transport, ResponseHandler]:
        try:
            opened = await self._connect_to(*cast("tuple[str, int]", addr_infos[0][4][:2]))
        except OSError as error:
            raise client_error(req.connection_key, error) from error
        try:
            keep_alive(opened)
            return await self._wrap_existing_connection(
                *args, sock=opened, req=req, timeout=timeout, client_error=client_error, **kwargs
            )
        except BaseException:
            opened.close()
            raise

    async def _connect_to(self, host: str, port: int) -> socket.socket:
        """Return a socket that the first address of the proxy that accepts has connected."""
        from python_socks import ProxyConnectionError, ProxyError, ProxyType
        from python_socks.async_.asyncio import Proxy as SocksProxy

        url, login = self._proxy.url, self._proxy.login or (None, None)
        failure = OSError("its name has no address")
        for found in await self._proxy_resolver.resolve(url.raw_host or "", url.port or 0):
            opened_addresses.get([]).append(found["host"])
            proxy = SocksProxy(ProxyType.SOCKS5, found["host"], found["port"], *login)
            try:
                # aiohttp limits the time. The network interface of an address is this machine's.
                return await proxy.connect(host.partition("%")[0], port, timeout=math.inf)
            except ProxyConnectionError as error:
                failure = error
            except UnicodeError as error:
                raise SocksError(f"it can't connect to {host}: a name is malformed") from error
            except ProxyError as error:
                if error.error_code is not None:
                    raise SocksError(f"it can't connect to {host}: {error}") from error
                raise SocksError(
                    f"{error}: does it speak SOCKS5, and has its URL the right user and password, "
                    f"if it requires them (socks5://user:password@...)?"
                ) from error
        raise failure
