"""``SocksConnector``: connections through a SOCKS5 proxy (RFC 1928, RFC 1929).

As in Go, the proxy looks up the server's name. The library aiohttp-socks is not used: it ignores
the name in ``tls-server-name``, looks up the proxy in the program's threads, and opens sockets that
do not detect a lost peer. As that library does, this module overrides a private method of aiohttp.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable
from typing import Any, cast

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler

from aioinformer._client.auth.proxies import Proxy
from aioinformer._client.http.resolver import Address

REFUSALS = {
    2: "the rules of the proxy forbid it",
    3: "the network is unreachable",
    4: "the host is unreachable, or its name is not known there",
    5: "connection refused",
    6: "the time to live expired",
    8: "it does not support this kind of address",
}
"""The answers of a proxy that can't connect."""

NO_LOGIN, LOGIN, NO_METHOD = 0x00, 0x02, 0xFF


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
        socket_factory: Callable[[Address], socket.socket],
        **options: Any,
    ) -> None:
        """Create the connector. ``resolver`` looks up the proxy; see ``TCPConnector``."""
        super().__init__(resolver=ProxyLooksUp(), **options)  # pyright: ignore[reportUnknownMemberType]
        self._proxy = proxy
        self._proxy_resolver = resolver
        self._create_socket = socket_factory

    async def _wrap_create_connection(
        self,
        *args: Any,
        addr_infos: list[Any],
        req: aiohttp.ClientRequest,
        timeout: aiohttp.ClientTimeout,
        client_error: type[Exception] = aiohttp.ClientConnectorError,
        **kwargs: Any,
    ) -> tuple[asyncio.Transport, ResponseHandler]:
        host, port = cast("tuple[str, int]", addr_infos[0][4][:2])
        try:
            opened = await self._open_socket()
        except OSError as error:
            raise client_error(req.connection_key, error) from error
        try:
            await _request_connection(opened, self._proxy, host, port)
            return await self._wrap_existing_connection(
                *args, sock=opened, req=req, timeout=timeout, client_error=client_error, **kwargs
            )
        except OSError as error:
            opened.close()
            if isinstance(error, aiohttp.ClientError):
                raise
            raise SocksError(error.strerror or str(error)) from error
        except BaseException:
            opened.close()
            raise

    async def _open_socket(self) -> socket.socket:
        """Connect to the first address of the proxy that accepts; raise the last ``OSError``."""
        failure: OSError = OSError("its name has no address")
        url, loop = self._proxy.url, asyncio.get_running_loop()
        for found in await self._proxy_resolver.resolve(url.host or "", url.port or 0):
            place = (found["host"], found["port"])
            family = socket.AddressFamily(found["family"])
            opened = self._create_socket((family, socket.SOCK_STREAM, found["proto"], "", place))
            opened.setblocking(False)
            try:
                await loop.sock_connect(opened, place)
            except OSError as error:
                opened.close()
                failure = error
            except BaseException:
                opened.close()
                raise
            else:
                return opened
        raise failure


async def _request_connection(opened: socket.socket, proxy: Proxy, host: str, port: int) -> None:
    """Let the proxy connect to a server; raise ``SocksError`` if it does not."""
    loop = asyncio.get_running_loop()

    async def exchange(data: bytes, length: int) -> bytes:
        if data:
            await loop.sock_sendall(opened, data)
        received = b""
        while len(received) < length:
            if not (chunk := await loop.sock_recv(opened, length - len(received))):
                raise SocksError("it closed the connection: does it speak SOCKS5?")
            received += chunk
        return received

    methods = bytes([NO_LOGIN]) if proxy.login is None else bytes([NO_LOGIN, LOGIN])
    version, method = await exchange(bytes([5, len(methods)]) + methods, 2)
    if version != 5:
        raise SocksError("it does not speak SOCKS5: is it a proxy of another kind?")
    if method == LOGIN and proxy.login is not None:
        words = [bytes([len(word)]) + word for word in map(str.encode, proxy.login)]
        if (await exchange(b"\x01" + b"".join(words), 2))[1] != 0:
            raise SocksError("it rejects the user or the password in its URL")
    elif method != NO_LOGIN:
        needed = method == NO_METHOD and proxy.login is None
        raise SocksError(
            "it requires a user and a password: write them into its URL, socks5://user:password@..."
            if needed
            else "it supports no login that is known here"
        )
    request = b"\x05\x01\x00" + _encode_host(host) + port.to_bytes(2, "big")
    _, code, _, kind = await exchange(request, 4)
    if code != 0:
        raise SocksError(f"it can't connect to {host}: {REFUSALS.get(code, f'failure {code}')}")
    # The address from which the proxy connects: of IPv4, of IPv6, or a name behind its length.
    length = {1: 4, 4: 16}.get(kind) or (await exchange(b"", 1))[0]
    await exchange(b"", length + 2)


def _encode_host(host: str) -> bytes:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        name = host.encode()  # yarl has encoded international names
        return b"\x03" + bytes([len(name)]) + name
    return (b"\x01" if address.version == 4 else b"\x04") + address.packed
