"""Names of servers: they are looked up beside the program's threads, and one of several works."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from aioinformer import Client, SharedInformerFactory, Timeouts
from aioinformer.errors import ConnectionFailed, FetchError, NotRunning
from tests.client.accelerated_time import in_accelerated_time
from tests.client.conftest import Certificates
from tests.client.servers import Handler, http_server, start_response, tcp_server
from tests.client.transports import (
    PONG,
    SHORT_TIMEOUTS,
    Verb,
    client_of,
    pong,
    read,
    read_error,
    wait_closed,
)

NAME = "kubernetes.example"
VERBS: tuple[Verb, ...] = ("list", "watch", "write")
AVOIDANCE = 300.0
"""Seconds for which other addresses precede one that has failed."""


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Let this machine know more names; their addresses are tried in this order."""
    known = dict[str, list[str]]()
    ask_system = socket.getaddrinfo

    def look_up(host: str, port: int, *args: Any, **options: Any) -> Sequence[Any]:
        if known.get(host) == []:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [
            found
            for address in known.get(host, [host])
            for found in ask_system(address, port, *args, **options)
        ]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return known


# -- threads -----------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", VERBS)
async def test_a_name_is_looked_up_while_the_threads_of_the_program_are_busy(
    verb: Verb, names: dict[str, list[str]]
) -> None:
    names[NAME] = ["127.0.0.1"]
    finish = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        asyncio.get_running_loop().set_default_executor(pool)
        busy = asyncio.create_task(asyncio.to_thread(finish.wait))
        try:
            async with (
                http_server(pong) as server,
                client_of(
                    server.replace("127.0.0.1", NAME), timeouts=Timeouts(connect=5)
                ) as client,
            ):
                assert await read(client, verb) == PONG
        finally:
            finish.set()
            await busy


async def test_requests_that_begin_together_share_one_look_up(
    names: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    names[NAME] = ["127.0.0.1"]
    threads = list[str]()
    start = threading.Thread.start

    def count(thread: threading.Thread) -> None:
        threads.append(thread.name)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", count)
    async with (
        http_server(pong) as server,
        client_of(server.replace("127.0.0.1", NAME)) as client,
    ):
        await asyncio.gather(*(read(client, each) for each in VERBS * 15))
    assert len(threads) == 1


async def test_a_client_is_closed_while_a_name_is_looked_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, finish = threading.Event(), threading.Event()

    def hang(*args: Any, **options: Any) -> Sequence[Any]:
        asked.set()
        finish.wait()
        raise socket.gaierror(socket.EAI_AGAIN, "no answer")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    try:
        async with client_of(f"http://{NAME}") as client:
            request = asyncio.create_task(read(client))
            await asyncio.to_thread(asked.wait)
        with pytest.raises(NotRunning, match="closed"):
            await request
    finally:
        finish.set()


async def test_a_name_that_is_not_known_is_looked_up_again_by_the_next_request(
    names: dict[str, list[str]],
) -> None:
    names[NAME] = []
    async with (
        http_server(pong) as server,
        client_of(server.replace("127.0.0.1", NAME)) as client,
    ):
        with pytest.raises(ConnectionFailed):
            await read(client)
        names[NAME] = ["127.0.0.1"]
        assert await read(client) == PONG


@pytest.mark.parametrize("name", [f"{'a' * 64}.example", "a..example", ".example"])
async def test_a_name_that_no_system_can_look_up_is_not_known(name: str) -> None:
    async with client_of(f"http://{name}") as client:
        error = await read_error(client)
    assert type(error) is ConnectionFailed
    assert "the name is not known: a part of it is empty or too long" in str(error)


# -- several addresses -------------------------------------------------------------------------


async def pong_once(request: web.Request) -> web.Response:
    response = web.Response(body=PONG)
    response.force_close()
    return response


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await wait_closed(reader)


async def closing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")


async def unavailable(request: web.Request) -> web.Response:
    return web.Response(status=503)


async def failing_inside(request: web.Request) -> web.Response:
    return web.Response(status=500, text="x" * 100_000)


async def silent_in_the_body(request: web.Request) -> web.StreamResponse:
    response = await start_response(request, b"half")
    await asyncio.Event().wait()
    return response


HTTP_FAULTS: dict[str, Handler] = {
    "503": unavailable,
    "500": failing_inside,
    "silent in the body": silent_in_the_body,
}
TCP_FAULTS = {"silent": silent, "closing": closing}


@asynccontextmanager
async def two_addresses(
    names: dict[str, list[str]], fault: str, good: Handler = pong_once, tls: Any = None
) -> AsyncGenerator[str]:
    """Run a server that has this fault, and one that works, as the addresses of one name."""
    async with AsyncExitStack() as stack:
        if fault in HTTP_FAULTS:
            server = http_server(HTTP_FAULTS[fault], host="127.0.0.2", tls=tls)
        else:
            server = tcp_server(TCP_FAULTS[fault], host="127.0.0.2")
        port = int((await stack.enter_async_context(server)).rpartition(":")[2])
        await stack.enter_async_context(http_server(good, port=port, tls=tls))
        names[NAME] = ["127.0.0.2", "127.0.0.1"]
        yield f"{'https' if tls else 'http'}://{NAME}:{port}"


@pytest.mark.parametrize(
    ("fault", "verb"),
    [
        (fault, verb)
        for fault in (*HTTP_FAULTS, *TCP_FAULTS)
        for verb in VERBS
        # The reflector judges how long a watch may be silent.
        if (fault, verb) != ("silent in the body", "watch")
    ],
)
@in_accelerated_time
async def test_another_address_is_used_after_a_failure(
    fault: str, verb: Verb, names: dict[str, list[str]]
) -> None:
    async with (
        two_addresses(names, fault) as server,
        client_of(server, timeouts=SHORT_TIMEOUTS) as client,
    ):
        with pytest.raises(FetchError):
            await read(client, verb)
        for _ in range(2):
            assert await read(client, verb) == PONG
            await asyncio.sleep(25)


@in_accelerated_time
async def test_another_address_is_used_after_a_time_limit_of_the_caller(
    names: dict[str, list[str]],
) -> None:
    async with (
        two_addresses(names, "silent") as server,
        client_of(server) as client,
    ):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await read(client, "write")
        assert await read(client, "write") == PONG


@in_accelerated_time
async def test_a_failed_address_is_the_first_again_after_some_minutes(
    names: dict[str, list[str]],
) -> None:
    async with two_addresses(names, "503") as server, client_of(server) as client:
        for wait in (AVOIDANCE - 1, 1):
            with pytest.raises(FetchError):
                await read(client)
            await asyncio.sleep(wait)
            assert await read(client) == PONG
            await asyncio.sleep(AVOIDANCE - wait)


@pytest.mark.parametrize(("fault", "seconds"), [("503", 10), ("closing", 10), ("silent", 200)])
@in_accelerated_time
async def test_an_informer_syncs_from_the_address_that_works(
    fault: str, seconds: float, names: dict[str, list[str]]
) -> None:
    async def serve(request: web.Request) -> web.StreamResponse:
        if "watch" in request.query:
            await asyncio.Event().wait()
        return web.json_response(
            {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": []}
        )

    async with (
        two_addresses(names, fault, good=serve) as server,
        Client(server) as client,
        SharedInformerFactory(client) as informers,
    ):
        informers.informer("pods", watch_list=False)
        await informers.wait_synced(seconds)


@in_accelerated_time
async def test_another_address_is_used_after_a_stalled_handshake(
    names: dict[str, list[str]], certificates: Certificates
) -> None:
    leaf = certificates.authority.issue_cert(NAME)
    async with (
        two_addresses(names, "silent", tls=certificates.server_context(leaf)) as server,
        client_of(
            server,
            tls=certificates.client_context(),
            timeouts=SHORT_TIMEOUTS,
        ) as client,
    ):
        with pytest.raises(FetchError):
            await read(client, "write")
        assert await read(client, "write") == PONG


@in_accelerated_time
async def test_the_first_address_is_used_again_when_the_other_fails(
    names: dict[str, list[str]],
) -> None:
    async with (
        two_addresses(names, "silent", good=unavailable) as server,
        client_of(server, timeouts=SHORT_TIMEOUTS) as client,
    ):
        errors = list[str]()
        for _ in range(4):
            with pytest.raises(FetchError) as caught:
                await read(client)
            errors.append(type(caught.value).__name__)
        assert errors == ["RequestTimedOut", "ServerFailure"] * 2


async def test_an_open_connection_to_the_only_address_is_used_after_an_error() -> None:
    peers = set[object]()

    async def answer(request: web.Request) -> web.Response:
        peers.add(request.get_extra_info("peername"))
        return web.Response(status=503)

    async with http_server(answer) as server, client_of(server) as client:
        for _ in range(3):
            with pytest.raises(FetchError):
                await read(client)
    assert len(peers) == 1


async def test_an_open_connection_that_answers_503_is_not_used_again_if_there_is_another_address(
    names: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = False

    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=503 if broken else 200, text="first")

    monkeypatch.setitem(HTTP_FAULTS, "later", answer)
    async with two_addresses(names, "later") as server, client_of(server) as client:
        assert await read(client) == b"first"
        broken = True
        for _ in range(2):  # the open connection, then a new one
            with pytest.raises(FetchError):
                await read(client)
        assert await read(client) == PONG
