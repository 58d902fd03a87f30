"""Leaving an answer: at its end, before it, by cancellation, by closing."""

from __future__ import annotations

import asyncio
import gc
import sys
from typing import cast

import anyio
import pytest
from aiohttp import web
from yarl import URL

from aioinformer._client.auth.credentials import Credentials
from aioinformer._client.auth.token_refresh import RefreshingAuthorization, TokenGrant
from aioinformer._client.http.request import ApiRequest, Timeouts
from aioinformer._client.http.transport import Transport
from aioinformer.errors import (
    NotRunning,
)
from tests.client.conftest import Certificates
from tests.client.servers import http_server, start_response, tcp_server
from tests.client.transports import (
    LIST,
    WATCH,
    is_established,
    read,
    running_transport,
    wait_closed,
)


@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
async def test_leaving_a_watch_closes_its_connection(
    secure: bool, certificates: Certificates
) -> None:
    hung_up = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
        await wait_closed(reader)
        hung_up.set()

    tls = certificates.server_context() if secure else None
    async with tcp_server(talk, tls=tls) as address:
        scheme, trust = ("https", certificates.client_context()) if secure else ("http", None)
        async with running_transport(f"{scheme}://{address}", tls=trust) as transport:
            async with transport.request(WATCH) as body:
                assert await anext(body) == b"one"
            async with asyncio.timeout(30):
                await hung_up.wait()
    gc.collect()  # an unclosed transport would warn here, and fail


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
async def test_leaving_a_watch_does_not_wait_for_the_server_to_close_the_connection(
    secure: bool, certificates: Certificates
) -> None:
    """Asyncio gives a peer 30 s to end TLS in due form; one that is gone never does."""
    ports: list[int] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ports.extend(writer.get_extra_info(name)[1] for name in ("peername", "sockname"))
        await reader.readuntil(b"\r\n\r\n")
        cast("asyncio.ReadTransport", writer.transport).pause_reading()
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
        await asyncio.Event().wait()

    tls = certificates.server_context() if secure else None
    async with tcp_server(talk, tls=tls) as address:
        scheme, trust = ("https", certificates.client_context()) if secure else ("http", None)
        async with running_transport(f"{scheme}://{address}", tls=trust) as transport:
            async with transport.request(WATCH) as body:
                assert await anext(body) == b"one"
                assert is_established(*ports)
            assert not is_established(*ports)


async def test_the_exception_of_the_reader_passes_through() -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text="all")

    async with http_server(answer) as server, running_transport(server) as transport:
        with pytest.raises(ZeroDivisionError):
            async with transport.request(LIST):
                raise ZeroDivisionError


@pytest.mark.parametrize("call", [LIST, WATCH], ids=["list", "watch"])
@pytest.mark.parametrize("after", ["nothing", "half a head", "a head", "a chunk"])
async def test_a_cancellation_at_any_point_leaves_no_socket_and_no_task(
    call: ApiRequest, after: str
) -> None:
    message = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n"
    message = {
        "nothing": b"",
        "half a head": message[:10],
        "a head": message[:45],
        "a chunk": message,
    }[after]
    requests, hung_up = asyncio.Event(), asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(message)
        await writer.drain()
        requests.set()
        await wait_closed(reader)
        hung_up.set()

    async with tcp_server(talk) as address, running_transport(f"http://{address}") as transport:
        before = asyncio.all_tasks()
        reading = asyncio.create_task(read(transport, call))
        await requests.wait()
        await asyncio.sleep(0.005)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert reading not in asyncio.all_tasks()
        assert {task.get_name() for task in asyncio.all_tasks() - before} <= {"talk"}
        async with asyncio.timeout(30):
            await hung_up.wait()


async def test_a_cancellation_during_the_tls_handshake_leaves_no_socket(
    certificates: Certificates,
) -> None:
    connected, hung_up = asyncio.Event(), asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        connected.set()
        await wait_closed(reader)
        hung_up.set()

    async with tcp_server(talk) as address:
        trust = certificates.client_context()
        async with running_transport(f"https://{address}", tls=trust) as transport:
            reading = asyncio.create_task(read(transport))
            await connected.wait()
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
            async with asyncio.timeout(30):
                await hung_up.wait()


async def test_closing_the_transport_ends_what_is_being_read() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = await start_response(request, b"event\n")
        await asyncio.Event().wait()
        return response

    async with http_server(answer) as server, running_transport(server) as transport:
        started = asyncio.Event()

        async def watch() -> None:
            async with transport.request(WATCH) as body:
                async for _ in body:
                    started.set()

        watching = asyncio.create_task(watch())
        await started.wait()
        await transport.close()
        with pytest.raises(NotRunning, match="the client was closed"):
            await watching


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


@pytest.mark.parametrize("call", [LIST, WATCH], ids=["list", "watch"])
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
        running_transport(server, authorization=token) as transport,
    ):
        waiting = asyncio.create_task(read(transport, call))
        await token.requests.wait()
        await transport.close()
        token.go_on.set()
        with pytest.raises(NotRunning, match="closed before the request was sent"):
            await waiting

    assert requests == []


async def test_a_cancelled_scope_of_anyio_leaves_no_session_open() -> None:
    """It cancels again at each await: closing the one session must not keep the other open."""

    async def answer(request: web.Request) -> web.StreamResponse:
        return await start_response(request, b"{}\n")

    left: Transport | None = None
    async with http_server(answer) as server:
        with anyio.CancelScope() as scope:
            async with running_transport(server) as left:
                for call in (LIST, WATCH):
                    await read(left, call)  # a connection to close in each of the sessions
                scope.cancel()
        assert scope.cancelled_caught
        assert left is not None
        assert repr(left).endswith("closed>")
        await asyncio.sleep(0)
        del left
        gc.collect()  # an unclosed session would warn here, and fail
