"""Requests and their answers, on real sockets."""

from __future__ import annotations

import asyncio
import gzip
import sys

import pytest
from aiohttp import web
from yarl import URL

from aioinformer import Timeouts
from tests.client.servers import http_server, start_response
from tests.client.transports import (
    CANARY,
    Verb,
    client_of,
    read,
    system_sockets,
    watching,
)

# -- what is sent ------------------------------------------------------------------------------


async def headers_of(verb: Verb) -> dict[str, str]:
    seen: dict[str, str] = {}

    async def answer(request: web.Request) -> web.Response:
        seen.update(request.headers)
        return web.Response()

    async with http_server(answer) as server, client_of(server) as client:
        await read(client, verb)
    return seen


async def test_a_request_has_the_authorization_accept_and_user_agent_headers() -> None:
    headers = await headers_of("list")

    assert headers["Authorization"] == f"Bearer {CANARY}"
    assert headers["Accept"] == "application/json"
    assert " aioinformer/" in headers["User-Agent"]


async def test_lists_may_be_compressed_and_watches_may_not() -> None:
    assert (await headers_of("list"))["Accept-Encoding"] == "gzip"
    assert (await headers_of("watch"))["Accept-Encoding"] == "identity"


async def test_a_path_in_the_server_url_is_the_beginning_of_every_path() -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=str(request.rel_url))

    async with (
        http_server(answer) as server,
        client_of(f"{server}/k8s/clusters/c-1") as client,
    ):
        assert await read(client) == b"/k8s/clusters/c-1/api/v1/pods?limit=500"


async def test_a_query_is_encoded_so_that_the_server_reads_it_unchanged() -> None:
    query = {"labelSelector": "app in (a, b),x!=y", "continue": "a+b/c=="}

    async def answer(request: web.Request) -> web.Response:
        assert dict(request.query) == query
        return web.Response()

    async with http_server(answer) as server, client_of(server) as client:
        await client.get_raw("/api/v1/pods", query)


async def test_cookies_are_not_kept() -> None:
    """Those of a name, that is: aiohttp never keeps the cookies of an address."""

    async def answer(request: web.Request) -> web.Response:
        assert not request.cookies
        response = web.Response()
        response.set_cookie("sticky", "backend-1")
        return response

    async with (
        http_server(answer) as server,
        client_of(server.replace("127.0.0.1", "localhost")) as client,
    ):
        await read(client)
        await read(client)


# -- what is received --------------------------------------------------------------------------


async def test_chunks_are_delivered_as_they_are_received() -> None:
    handed = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        response = await start_response(request, b"one")
        await handed.wait()
        await response.write(b"two")
        return response

    async with (
        http_server(answer) as server,
        client_of(server) as client,
        watching(client) as body,
    ):
        assert await anext(body) == b"one"
        handed.set()
        assert [chunk async for chunk in body] == [b"two"]


async def test_a_compressed_list_is_decompressed() -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(
            body=gzip.compress(b"item " * 50_000), headers={"Content-Encoding": "gzip"}
        )

    async with http_server(answer) as server, client_of(server) as client:
        assert await read(client) == b"item " * 50_000


async def test_a_line_longer_than_the_buffer_is_received_completely() -> None:
    line = b"x" * (40 * 64 * 1024) + b"\n"

    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=line)

    async with http_server(answer) as server, client_of(server) as client:
        assert await read(client) == line


async def test_a_list_read_to_its_end_gives_its_connection_to_the_next() -> None:
    peers: set[object] = set()

    async def answer(request: web.Request) -> web.Response:
        assert request.transport is not None
        peers.add(request.transport.get_extra_info("peername"))
        return web.Response(text="all")

    async with http_server(answer) as server, client_of(server) as client:
        await read(client)
        await read(client)

    assert len(peers) == 1


async def test_one_transport_keeps_150_watches_open() -> None:
    """Aiohttp's default limit of 100 connections would let the 101st wait for ever."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = await start_response(request, b"event\n")
        await asyncio.Event().wait()
        return response

    slow = Timeouts(connect=50)  # 150 connections at once take seconds on a busy machine
    async with (
        http_server(answer) as server,
        client_of(server, timeouts=slow) as client,
    ):
        all_open = asyncio.Barrier(151)

        async def watch() -> None:
            async with watching(client) as body:
                await anext(body)
                await all_open.wait()

        async with asyncio.TaskGroup() as group:
            for _ in range(150):
                group.create_task(watch())
            await all_open.wait()


async def test_lists_beyond_the_limit_wait_for_their_turn() -> None:
    open_now = most = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        await asyncio.sleep(0.01)
        open_now -= 1
        return web.Response()

    async with http_server(answer) as server, client_of(server) as client:
        await asyncio.gather(*(read(client) for _ in range(130)))

    assert most <= 100


# -- sockets -----------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_the_connection_of_a_watch_is_probed() -> None:
    """``/proc/net/tcp`` shows the timer of each socket; 2 is that of keepalive."""
    ports: list[int] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        ports.append(request.transport.get_extra_info("peername")[1])
        response = await start_response(request, b"event\n")
        await asyncio.Event().wait()
        return response

    async with (
        http_server(answer) as server,
        client_of(server) as client,
        watching(client) as body,
    ):
        await anext(body)
        table = system_sockets()

    here, there = (f":{port:04X}" for port in (ports[0], URL(server).port or 0))
    (found,) = (line for line in table if line[1].endswith(here) and line[2].endswith(there))
    assert found[5].startswith("02:")
