"""A client of a server of the tests, with helpers for its requests and sockets."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import msgspec
import pytest
from aiohttp import web

from aioinformer import Client, Resource, Timeouts, WatchRequest
from aioinformer.errors import FetchError, Phase, ServerError, Status
from tests.client.conftest import Certificates
from tests.client.kubeconfigs import connect, encode_base64, make_kubeconfig, write_kubeconfig
from tests.client.servers import http_server

CANARY = "canary-3f9a"
NO_HEADERS: Mapping[str, str] = MappingProxyType({})
PODS = Resource("", "v1", "pods", "Pod")
WEB_0 = {"metadata": {"name": "web-0"}}
PONG = b'{"metadata":{"name":"web-0"}}'
SHORT_TIMEOUTS = Timeouts(connect=10, read=10, watch_start=10, grace=10)
"""For tests in accelerated time."""

Verb: TypeAlias = Literal["list", "watch", "write"]


def client_of(
    server: str,
    *,
    tls: ssl.SSLContext | None = None,
    timeouts: Timeouts | None = None,
    token: str = CANARY,
    headers: Mapping[str, str] = NO_HEADERS,
) -> Client:
    """Return a client that sends its token to any server."""
    return Client(
        server,
        ssl=tls,
        timeouts=timeouts,
        token=token,
        headers=headers,
        send_credentials_unencrypted=True,
    )


@asynccontextmanager
async def proxied_client(
    proxy: str,
    server: str,
    *,
    certificates: Certificates | None = None,
    tls_server_name: str | None = None,
) -> AsyncGenerator[Client]:
    """Run a client whose kubeconfig names a proxy."""
    cluster = {"server": server, "proxy-url": proxy}
    if certificates is not None:
        cluster["certificate-authority-data"] = encode_base64(certificates.authority_pem)
    if tls_server_name is not None:
        cluster["tls-server-name"] = tls_server_name
    with TemporaryDirectory() as folder:
        path = write_kubeconfig(Path(folder), make_kubeconfig(cluster=cluster))
        async with connect(path) as client:
            yield client


def watching(
    client: Client, *, timeout: int = 300
) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
    """Watch pods as an informer does."""
    return client.lister_watcher(PODS).watch(WatchRequest("", timeout))


async def read(client: Client, verb: Verb = "list") -> bytes:
    """Send a request and return the body of the response."""
    if verb == "write":
        return (await client.api(PODS, namespace="web").update(WEB_0)).raw
    if verb == "list":
        return await client.get_raw("/api/v1/pods", {"limit": "500"})
    async with watching(client) as body:
        return b"".join([chunk async for chunk in body])


async def read_error(client: Client, verb: Verb = "list") -> FetchError:
    with pytest.raises(FetchError) as caught:
        await read(client, verb)
    return caught.value


async def rejected(path: str, phase: Phase = "list", **response: Any) -> ServerError:
    """Return the error of a GET to which a server sends this ``web.Response``."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(**response)

    async with http_server(answer) as server, Client(server) as client:
        with pytest.raises(ServerError) as caught:
            await client.get_raw(path, phase=phase)
    return caught.value


async def rejected_with(status: Status, path: str, phase: Phase = "list") -> ServerError:
    """Return the error of a GET to which a server sends a Status."""
    body = {"kind": "Status", "code": status.code, "reason": status.reason}
    body |= {"message": status.message, "details": dict(status.details)}
    return await rejected(path, phase, status=status.code, body=msgspec.json.encode(body))


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
    return web.Response(body=PONG)
