"""Leaving an answer: at its end, before it, by cancellation, by closing."""

from __future__ import annotations

import asyncio
import gc
import sys
from typing import cast

import anyio
import pytest
from aiohttp import web

from aioinformer import Client
from aioinformer.errors import NotRunning
from tests.client.conftest import Certificates
from tests.client.servers import http_server, start_response, tcp_server
from tests.client.transports import (
    Verb,
    client_of,
    is_established,
    read,
    wait_closed,
    watching,
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
        async with client_of(f"{scheme}://{address}", tls=trust) as client:
            async with watching(client) as body:
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
        async with client_of(f"{scheme}://{address}", tls=trust) as client:
            async with watching(client) as body:
                assert await anext(body) == b"one"
                assert is_established(*ports)
            assert not is_established(*ports)


async def test_the_exception_of_the_reader_passes_through() -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text="all")

    async with http_server(answer) as server, client_of(server) as client:
        with pytest.raises(ZeroDivisionError):
            async with watching(client):
                raise ZeroDivisionError


@pytest.mark.parametrize("verb", ["list", "watch"])
@pytest.mark.parametrize("after", ["nothing", "half a head", "a head", "a chunk"])
async def test_a_cancellation_at_any_point_leaves_no_socket_and_no_task(
    verb: Verb, after: str
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

    async with tcp_server(talk) as address, client_of(f"http://{address}") as client:
        before = asyncio.all_tasks()
        reading = asyncio.create_task(read(client, verb))
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
        async with client_of(f"https://{address}", tls=trust) as client:
            reading = asyncio.create_task(read(client))
            await connected.wait()
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
            async with asyncio.timeout(30):
                await hung_up.wait()


async def test_closing_the_client_ends_what_is_being_read() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = await start_response(request, b"event\n")
        await asyncio.Event().wait()
        return response

    async with http_server(answer) as server, client_of(server) as client:
        started = asyncio.Event()

        async def watch() -> None:
            async with watching(client) as body:
                async for _ in body:
                    started.set()

        task = asyncio.create_task(watch())
        await started.wait()
        await client.__aexit__(None, None, None)
        with pytest.raises(NotRunning, match="the client was closed"):
            await task


VERBS: tuple[Verb, ...] = ("list", "watch")


async def test_a_cancelled_scope_of_anyio_leaves_no_session_open() -> None:
    """It cancels again at each await: closing the one session must not keep the other open."""

    async def answer(request: web.Request) -> web.StreamResponse:
        return await start_response(request, b"{}\n")

    left: Client | None = None
    async with http_server(answer) as server:
        with anyio.CancelScope() as scope:
            async with client_of(server) as left:
                for verb in VERBS:
                    await read(left, verb)  # a connection to close in each of the sessions
                scope.cancel()
        assert scope.cancelled_caught
        assert left is not None
        assert repr(left).endswith(" closed>")
        await asyncio.sleep(0)
        del left
        gc.collect()  # an unclosed session would warn here, and fail
