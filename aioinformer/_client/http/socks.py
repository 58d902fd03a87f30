"""``SocksConnector``: connections through a SOCKS5 proxy, with python-socks (the extra ``socks``).

As in Go, the proxy looks up the server's name. The library aiohttp-socks is not used: it ignores
the name in ``tls-server-name``, looks up the proxy in the program's threads, and opens sockets that
do not detect a lost peer. As that library does, this module overrides a private method of aiohttp.
"""

from __future__ import annotations

import asyncio
import math
import socket
from collections.abc import Callable
from typing import Any, cast

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler

from aioinformer._client.auth.proxies import Proxy
from aioinformer._client.http.resolver import opened_addresses


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
    def __init__(
        self,
        proxy: Proxy,
        *,
        resolver: AbstractResolver,
        prepare_socket: Callable[[socket.socket], None],
        **options: Any,
    ) -> None:
        """Create the connector. ``resolver`` looks up the proxy; see ``TCPConnector``."""
        super().__init__(resolver=ProxyLooksUp(), **options)  # pyright: ignore[reportUnknownMemberType]
        self._proxy = proxy
        self._proxy_resolver = resolver
        self._prepare_socket = prepare_socket

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
            self._prepare_socket(opened)
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
