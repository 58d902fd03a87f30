"""What a kubeconfig may point to that is no API server: web sites, login pages, nothing at all."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from aiohttp import web

from tests.client.kubeconfigs import document, encoded, written
from tests.client.servers import Handler, free_address, serving, talking
from tests.client.servings import CORE, VERSIONS
from tests.client.situations import Situation, Stage

PAGE = "<html>nothing here</html>"
NO_PEM = "canary-88b0, and no certificate"


@asynccontextmanager
async def stranger(stage: Stage, handler: Handler) -> AsyncGenerator[Situation]:
    """A kubeconfig for a server that answers so."""
    async with serving(handler) as server:
        yield Situation(stage.kubeconfig(server), server.removeprefix("http://"))


def web_site(stage: Stage) -> AbstractAsyncContextManager[Situation]:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=404, text=PAGE, content_type="text/html")

    return stranger(stage, answer)


def web_service(stage: Stage) -> AbstractAsyncContextManager[Situation]:
    async def answer(request: web.Request) -> web.Response:
        raise web.HTTPNotFound

    return stranger(stage, answer)


def go_service(stage: Stage) -> AbstractAsyncContextManager[Situation]:
    """Its library says the same as an API server of custom resources alone (recording 53)."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=404, text="404 page not found\n")

    return stranger(stage, answer)


def login_page(stage: Stage) -> AbstractAsyncContextManager[Situation]:
    """It answers 200 to whatever is asked."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(text="<html>Who are you?</html>", content_type="text/html")

    return stranger(stage, answer)


def to_login(stage: Stage) -> AbstractAsyncContextManager[Situation]:
    async def answer(request: web.Request) -> web.Response:
        raise web.HTTPFound("https://login.example/?next=/api")

    return stranger(stage, answer)


def other_json(stage: Stage) -> AbstractAsyncContextManager[Situation]:
    async def answer(request: web.Request) -> web.Response:
        return web.json_response({"status": "UP"})

    return stranger(stage, answer)


def list_as_page(stage: Stage) -> AbstractAsyncContextManager[Situation]:
    """A proxy whose session has ended in the meantime."""
    documents: Mapping[str, bytes] = {"/api": VERSIONS, "/api/v1": CORE}

    async def answer(request: web.Request) -> web.Response:
        if request.path in documents:
            return web.Response(body=documents[request.path], content_type="application/json")
        if request.path == "/apis":
            return web.json_response({"kind": "APIGroupList", "groups": []})
        return web.Response(text=PAGE, content_type="text/html")

    return stranger(stage, answer)


@asynccontextmanager
async def long_head(stage: Stage) -> AsyncGenerator[Situation]:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nSet-Cookie: %b\r\n\r\n" % (b"a" * 20_000))
        await writer.drain()
        await reader.read()

    async with talking(talk) as address:
        yield Situation(stage.kubeconfig(f"http://{address}"), address)


def configured(stage: Stage, **cluster: str) -> str:
    return str(written(stage.folder, document(cluster=cluster, user={})))


@asynccontextmanager
async def proxy_off(stage: Stage) -> AsyncGenerator[Situation]:
    address = await free_address()
    settings = {"server": "https://10.0.0.1", "proxy-url": f"http://{address}"}
    yield Situation(configured(stage, **settings), address)


@asynccontextmanager
async def no_port(stage: Stage) -> AsyncGenerator[Situation]:
    yield Situation(configured(stage, server="https://127.0.0.1:99999"))


@asynccontextmanager
async def no_pem(stage: Stage) -> AsyncGenerator[Situation]:
    """Its address is what OpenSSL says, which differs by version."""
    settings = {
        "server": "https://10.0.0.1",
        "certificate-authority-data": encoded(NO_PEM.encode()),
    }
    said = ""
    try:
        ssl.create_default_context(cadata=NO_PEM)
    except ssl.SSLError as error:
        said = str(error.reason or error.strerror)
    yield Situation(configured(stage, **settings), said)
