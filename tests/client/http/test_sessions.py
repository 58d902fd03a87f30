"""Connections that share a context, and close when the last one who uses them is done."""

from __future__ import annotations

import ssl

from aiohttp import web

from aioinformer._client.http.request import Timeouts
from aioinformer._client.http.resolver import Resolver
from aioinformer._client.http.sessions import Sessions
from tests.client.conftest import Certificates
from tests.client.servers import http_server, start_response
from tests.client.transports import LIST, WATCH, read, running_transport


def opened() -> Sessions:
    return Sessions(None, Resolver(), Timeouts(connect=1, read=1))


async def test_unused_retired_sessions_close_at_once() -> None:
    sessions = opened()
    assert repr(sessions) == "<Sessions open, 0 in use>"

    await sessions.close_when_unused()

    assert sessions.closed
    assert repr(sessions) == "<Sessions closed, 0 in use>"


async def test_retired_sessions_close_when_the_last_user_releases_them() -> None:
    sessions = opened()
    sessions.acquire()
    sessions.acquire()

    await sessions.close_when_unused()
    assert repr(sessions) == "<Sessions closing, 2 in use>"
    await sessions.release()
    assert not sessions.closed
    await sessions.release()
    assert sessions.closed


async def test_sessions_stay_open_while_they_are_unused() -> None:
    sessions = opened()
    sessions.acquire()
    await sessions.release()

    assert not sessions.closed
    await sessions.close()


class Turning:
    """A ``Tls`` that the test turns."""

    def __init__(self, *contexts: ssl.SSLContext) -> None:
        self.contexts = list(contexts)

    async def context(self, *, failed: ssl.SSLContext | None = None) -> ssl.SSLContext:
        return self.contexts[0]

    async def aclose(self) -> None: ...


async def test_a_new_context_means_new_connections_and_the_old_ones_end_with_their_stream(
    certificates: Certificates,
) -> None:
    peers: list[object] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        peers.append(request.get_extra_info("peername"))
        if "watch" not in request.query:
            return web.Response()
        return await start_response(request, b"one")

    tls = Turning(certificates.client_context(), certificates.client_context())
    async with (
        http_server(answer, tls=certificates.server_context()) as server,
        running_transport(server, tls=tls) as transport,
    ):
        await read(transport, LIST)
        await read(transport, LIST)
        async with transport.request(WATCH) as body:
            del tls.contexts[0]
            await read(transport, LIST)
            await read(transport, LIST)
            assert [chunk async for chunk in body] == [b"one"]

    first, again, watch, renewed, renewed_again = peers
    assert first == again
    assert renewed == renewed_again
    assert len({first, watch, renewed}) == 3
