"""A transport to a server of the tests, with helpers for requests and sockets."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType

import pytest
from aiohttp import web
from yarl import URL

from aioinformer._client.auth.credentials import (
    Authorization,
    Credentials,
    FixedAuthorization,
    FixedTls,
    Tls,
)
from aioinformer._client.auth.proxies import Proxy
from aioinformer._client.http.request import ApiRequest, Timeouts
from aioinformer._client.http.transport import Transport
from aioinformer.errors import (
    FetchError,
)

CANARY = "canary-3f9a"
NO_HEADERS: Mapping[str, str] = MappingProxyType({})
LIST = ApiRequest("list", "/api/v1/pods", {"limit": "500"})
WATCH = ApiRequest("watch", "/api/v1/pods", {"watch": "true"}, watch_timeout=300)
SHORT_TIMEOUTS = Timeouts(connect=10, read=10, watch_start=10, grace=10)
"""For tests in accelerated time."""


@asynccontextmanager
async def running_transport(
    server: str,
    *,
    tls: ssl.SSLContext | Tls | None = None,
    timeouts: Timeouts | None = None,
    tls_server_name: str | None = None,
    proxy: str | None = None,
    proxy_authorization: str = "",
    authorization: Authorization | None = None,
    headers: Mapping[str, str] = NO_HEADERS,
    compression: bool = True,
) -> AsyncGenerator[Transport]:
    credentials = Credentials(
        URL(server),
        authorization or FixedAuthorization(f"Bearer {CANARY}"),
        FixedTls(tls) if isinstance(tls, ssl.SSLContext) else tls,
        tls_server_name,
        Proxy(URL(proxy), proxy_authorization) if proxy else None,
        compression=compression,
    )
    transport = Transport(
        credentials,
        headers=headers,
        timeouts=timeouts or Timeouts(),
        send_credentials_unencrypted=True,
    )
    try:
        yield transport
    finally:
        await transport.close()


async def read(transport: Transport, call: ApiRequest = LIST) -> bytes:
    async with transport.request(call) as body:
        return b"".join([chunk async for chunk in body])


async def read_error(transport: Transport, call: ApiRequest = LIST) -> FetchError:
    with pytest.raises(FetchError) as caught:
        await read(transport, call)
    return caught.value


def system_sockets() -> list[list[str]]:
    return [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]


def is_established(here: int, there: int) -> bool:
    """Return True if a socket of one port is connected to another port."""
    return any(
        line[1].endswith(f":{here:04X}") and line[2].endswith(f":{there:04X}") and line[3] == "01"
        for line in system_sockets()
    )


async def wait_closed(reader: asyncio.StreamReader) -> None:
    """Wait until the peer has closed or broken the connection."""
    try:
        await reader.read()
    except ConnectionError:
        return


def error_texts(error: BaseException | None) -> list[str]:
    """Return the text and the repr of an exception and of its causes."""
    message: list[str] = []
    while error is not None:
        message += [str(error), repr(error), repr(vars(error))]
        error = error.__cause__ or error.__context__
    return message


async def pong(request: web.Request) -> web.Response:
    return web.Response(text="pong")
