"""Servers that are not API servers: web sites, login pages, or no server at all."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from aiohttp import web

from tests.client.discovery_servers import CORE, VERSIONS
from tests.client.failure_setups import FailureContext, FailureSetup
from tests.client.kubeconfigs import encode_base64, make_kubeconfig, write_kubeconfig
from tests.client.servers import Handler, free_address, http_server, tcp_server

PAGE = "<html>nothing here</html>"
NO_PEM = "canary-88b0, and no certificate"


@asynccontextmanager
async def non_api_server(stage: FailureSetup, handler: Handler) -> AsyncGenerator[FailureContext]:
    """Run a server with this handler and write its kubeconfig."""
    async with http_server(handler) as server:
        yield FailureContext(stage.kubeconfig(server), server.removeprefix("http://"))


def web_site(stage: FailureSetup) -> AbstractAsyncContextManager[FailureContext]:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=404, text=PAGE, content_type="text/html")

    return non_api_server(stage, answer)


def web_service(stage: FailureSetup) -> AbstractAsyncContextManager[FailureContext]:
    async def answer(request: web.Request) -> web.Response:
        raise web.HTTPNotFound

    return non_api_server(stage, answer)


def go_service(stage: FailureSetup) -> AbstractAsyncContextManager[FailureContext]:
    """Answer with the text of Go's library, as an API server for unknown paths."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=404, text="404 page not found\n")

    return non_api_server(stage, answer)


def login_page(stage: FailureSetup) -> AbstractAsyncContextManager[FailureContext]:
    """Run a server that answers every request with 200 and a login page."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(text="<html>Who are you?</html>", content_type="text/html")

    return non_api_server(stage, answer)


def redirect_to_login(stage: FailureSetup) -> AbstractAsyncContextManager[FailureContext]:
    async def answer(request: web.Request) -> web.Response:
        raise web.HTTPFound("https://login.example/?next=/api")

    return non_api_server(stage, answer)


def unrelated_json(stage: FailureSetup) -> AbstractAsyncContextManager[FailureContext]:
    async def answer(request: web.Request) -> web.Response:
        return web.json_response({"status": "UP"})

    return non_api_server(stage, answer)


def html_list(stage: FailureSetup) -> AbstractAsyncContextManager[FailureContext]:
    """Run a proxy whose session has expired meanwhile."""
    documents: Mapping[str, bytes] = {"/api": VERSIONS, "/api/v1": CORE}

    async def answer(request: web.Request) -> web.Response:
        if request.path in documents:
            return web.Response(body=documents[request.path], content_type="application/json")
        if request.path == "/apis":
            return web.json_response({"kind": "APIGroupList", "groups": []})
        return web.Response(text=PAGE, content_type="text/html")

    return non_api_server(stage, answer)


@asynccontextmanager
async def oversized_headers(stage: FailureSetup) -> AsyncGenerator[FailureContext]:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nSet-Cookie: %b\r\n\r\n" % (b"a" * 2_000_000))
        await writer.drain()
        await reader.read()

    async with tcp_server(talk) as address:
        yield FailureContext(stage.kubeconfig(f"http://{address}"), address)


def kubeconfig_for(stage: FailureSetup, **cluster: str) -> str:
    return str(write_kubeconfig(stage.folder, make_kubeconfig(cluster=cluster, user={})))


@asynccontextmanager
async def unreachable_proxy(stage: FailureSetup) -> AsyncGenerator[FailureContext]:
    address = await free_address()
    settings = {"server": "https://10.0.0.1", "proxy-url": f"http://{address}"}
    yield FailureContext(kubeconfig_for(stage, **settings), address)


@asynccontextmanager
async def invalid_port(stage: FailureSetup) -> AsyncGenerator[FailureContext]:
    yield FailureContext(kubeconfig_for(stage, server="https://127.0.0.1:99999"))


@asynccontextmanager
async def invalid_pem(stage: FailureSetup) -> AsyncGenerator[FailureContext]:
    """Set ``address`` to the text of OpenSSL, which differs by version."""
    settings = {
        "server": "https://10.0.0.1",
        "certificate-authority-data": encode_base64(NO_PEM.encode()),
    }
    message = ""
    try:
        ssl.create_default_context(cadata=NO_PEM)
    except ssl.SSLError as error:
        message = str(error.reason or error.strerror)
    yield FailureContext(kubeconfig_for(stage, **settings), message)
