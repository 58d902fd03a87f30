"""Connections that share a context and close when the last one who uses them is done, and requests
that wait for credentials.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from traceback import format_exception

import pytest
from aiohttp import web
from yarl import URL

from aioinformer._client.auth.credentials import Authorization, Credentials, FixedAuthorization, Tls
from aioinformer._client.auth.token_refresh import RefreshingAuthorization, TokenGrant
from aioinformer._client.http.request import ApiRequest, Timeouts
from aioinformer._client.http.resolver import Resolver
from aioinformer._client.http.sessions import Sessions, open_socket
from aioinformer._client.http.transport import Transport
from aioinformer.errors import FetchError, NotRunning, RequestTimedOut
from tests.client.accelerated_time import in_accelerated_time
from tests.client.conftest import Certificates
from tests.client.servers import http_server, start_response
from tests.client.transports import SHORT_TIMEOUTS

LIST = ApiRequest("list", "/api/v1/pods")
WATCH = ApiRequest("watch", "/api/v1/pods", {"watch": "true"}, watch_timeout=300)


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


async def read(transport: Transport, call: ApiRequest = LIST) -> bytes:
    async with transport.request(call) as body:
        return b"".join([chunk async for chunk in body])


async def read_error(transport: Transport, call: ApiRequest) -> FetchError:
    with pytest.raises(FetchError) as caught:
        await read(transport, call)
    return caught.value


@asynccontextmanager
async def running_transport(
    server: str,
    authorization: Authorization | None = None,
    *,
    tls: Tls | None = None,
    timeouts: Timeouts | None = None,
) -> AsyncGenerator[Transport]:
    credentials = Credentials(URL(server), authorization or FixedAuthorization(), tls)
    transport = Transport(credentials, headers={}, timeouts=timeouts or Timeouts())
    try:
        yield transport
    finally:
        await transport.close()


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
        await read(transport)
        await read(transport)
        async with transport.request(WATCH) as body:
            del tls.contexts[0]
            await read(transport)
            await read(transport)
            assert [chunk async for chunk in body] == [b"one"]

    first, again, watch, renewed, renewed_again = peers
    assert first == again
    assert renewed == renewed_again
    assert len({first, watch, renewed}) == 3


def test_a_socket_has_keepalive_and_a_user_timeout() -> None:
    opened = open_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 0)))
    with opened:
        assert opened.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        if sys.platform == "linux":
            tcp = socket.IPPROTO_TCP
            assert opened.getsockopt(tcp, socket.TCP_KEEPIDLE) == 30
            assert opened.getsockopt(tcp, socket.TCP_KEEPINTVL) == 10
            assert opened.getsockopt(tcp, socket.TCP_KEEPCNT) == 3
            assert opened.getsockopt(tcp, socket.TCP_USER_TIMEOUT) == 60_000


# -- requests that wait for credentials --------------------------------------------------------

both = pytest.mark.parametrize("call", [LIST, WATCH], ids=["list", "watch"])


@both
@in_accelerated_time
async def test_credentials_that_are_never_renewed_are_a_timeout(call: ApiRequest) -> None:
    """A token on a file system that hangs: the informer must not list for ever."""

    async def renew() -> TokenGrant:
        await asyncio.Event().wait()
        return TokenGrant()

    hanging = RefreshingAuthorization(renew)
    async with running_transport("http://10.0.0.1", hanging, timeouts=SHORT_TIMEOUTS) as transport:
        first, second = await asyncio.gather(
            read_error(transport, call), read_error(transport, call)
        )

    assert type(first) is type(second) is RequestTimedOut
    assert first.phase == "credentials"
    assert str(first) == "http://10.0.0.1: the credentials were not refreshed in 10 s"
    assert "CancelledError" not in "".join(format_exception(first))


async def test_a_request_that_waits_for_credentials_is_not_sent_by_a_closed_transport() -> None:
    renewing, let = asyncio.Event(), asyncio.Event()

    async def renew() -> TokenGrant:
        renewing.set()
        await let.wait()
        return TokenGrant("Bearer late")

    credentials = Credentials(URL("http://127.0.0.1:1"), RefreshingAuthorization(renew))
    transport = Transport(credentials, headers={}, timeouts=Timeouts())
    reading = asyncio.create_task(read(transport))
    await renewing.wait()

    await transport.close()
    let.set()

    with pytest.raises(NotRunning, match="closed before the request was sent"):
        await reading


class Slow:
    """A source of tokens that takes its time."""

    def __init__(self) -> None:
        self.requests, self.go_on = asyncio.Event(), asyncio.Event()

    async def header(self, *, rejected: str | None = None) -> str:
        self.requests.set()
        await self.go_on.wait()
        return "Bearer late"

    async def aclose(self) -> None:
        """Continue the refresh, because not every source can be cancelled."""


@both
async def test_a_request_that_waits_for_a_token_is_not_sent_by_a_closed_transport(
    call: ApiRequest,
) -> None:
    """New connections would be opened, which nobody closes any more."""
    requests: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        requests.append(request.path)
        return web.Response(text="all")

    token = Slow()
    async with (
        http_server(answer) as server,
        running_transport(server, token) as transport,
    ):
        waiting = asyncio.create_task(read(transport, call))
        await token.requests.wait()
        await transport.close()
        token.go_on.set()
        with pytest.raises(NotRunning, match="closed before the request was sent"):
            await waiting

    assert requests == []
