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

from aioinformer import Client, SharedInformerFactory
from aioinformer._client.http.request import ApiRequest, Timeouts
from aioinformer._client.http.resolver import AVOIDANCE
from aioinformer.errors import ConnectionFailed, FetchError, NotRunning
from tests.client.accelerated_time import in_accelerated_time
from tests.client.conftest import Certificates
from tests.client.servers import Handler, http_server, start_response, tcp_server
from tests.client.transports import (
    LIST,
    SHORT_TIMEOUTS,
    WATCH,
    pong,
    read,
    read_error,
    running_transport,
    wait_closed,
)

NAME = "kubernetes.example"
WRITE = ApiRequest("write", "/api/v1/pods/web-0", method="PUT", body=b"{}")


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


@pytest.mark.parametrize("call", [LIST, WATCH, WRITE], ids=["list", "watch", "write"])
async def test_a_name_is_looked_up_while_the_threads_of_the_program_are_busy(
    call: ApiRequest, names: dict[str, list[str]]
) -> None:
    names[NAME] = ["127.0.0.1"]
    finish = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        asyncio.get_running_loop().set_default_executor(pool)
        busy = asyncio.create_task(asyncio.to_thread(finish.wait))
        try:
            async with (
                http_server(pong) as server,
                running_transport(
                    server.replace("127.0.0.1", NAME), timeouts=Timeouts(connect=5)
                ) as transport,
            ):
                assert await read(transport, call) == b"pong"
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
        running_transport(server.replace("127.0.0.1", NAME)) as transport,
    ):
        await asyncio.gather(*(read(transport, each) for each in [LIST, WATCH] * 20))
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
        async with running_transport(f"http://{NAME}") as transport:
            request = asyncio.create_task(read(transport))
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
        running_transport(server.replace("127.0.0.1", NAME)) as transport,
    ):
        with pytest.raises(ConnectionFailed):
            await read(transport)
        names[NAME] = ["127.0.0.1"]
        assert await read(transport) == b"pong"


@pytest.mark.parametrize("name", [f"{'a' * 64}.example", "a..example", ".example"])
async def test_a_name_that_no_system_can_look_up_is_not_known(name: str) -> None:
    async with running_transport(f"http://{name}") as transport:
        error = await read_error(transport)
    assert type(error) is ConnectionFailed
    assert "the name is not known: a part of it is empty or too long" in str(error)


# -- several addresses -------------------------------------------------------------------------


async def pong_once(request: web.Request) -> web.Response:
    response = web.Response(text="pong")
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
    ("fault", "call"),
    [
        (fault, call)
        for fault in (*HTTP_FAULTS, *TCP_FAULTS)
        for call in (LIST, WATCH, WRITE)
        # The reflector judges how long a watch may be silent.
        if (fault, call) != ("silent in the body", WATCH)
    ],
    ids=lambda each: each if isinstance(each, str) else each.phase,
)
@in_accelerated_time
async def test_another_address_is_used_after_a_failure(
    fault: str, call: ApiRequest, names: dict[str, list[str]]
) -> None:
    async with (
        two_addresses(names, fault) as server,
        running_transport(server, timeouts=SHORT_TIMEOUTS) as transport,
    ):
        with pytest.raises(FetchError):
            await read(transport, call)
        for _ in range(2):
            assert await read(transport, call) == b"pong"
            await asyncio.sleep(25)


@in_accelerated_time
async def test_another_address_is_used_after_a_time_limit_of_the_caller(
    names: dict[str, list[str]],
) -> None:
    async with (
        two_addresses(names, "silent") as server,
        running_transport(server) as transport,
    ):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await read(transport, WRITE)
        assert await read(transport, WRITE) == b"pong"


@in_accelerated_time
async def test_a_failed_address_is_the_first_again_after_some_minutes(
    names: dict[str, list[str]],
) -> None:
    async with two_addresses(names, "503") as server, running_transport(server) as transport:
        for wait in (AVOIDANCE - 1, 1):
            with pytest.raises(FetchError):
                await read(transport)
            await asyncio.sleep(wait)
            assert await read(transport) == b"pong"
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
    async with (
        two_addresses(names, "silent", tls=certificates.server_context()) as server,
        running_transport(
            server,
            tls=certificates.client_context(),
            tls_server_name="127.0.0.1",
            timeouts=SHORT_TIMEOUTS,
        ) as transport,
    ):
        with pytest.raises(FetchError):
            await read(transport, WRITE)
        assert await read(transport, WRITE) == b"pong"


@in_accelerated_time
async def test_the_first_address_is_used_again_when_the_other_fails(
    names: dict[str, list[str]],
) -> None:
    async with (
        two_addresses(names, "silent", good=unavailable) as server,
        running_transport(server, timeouts=SHORT_TIMEOUTS) as transport,
    ):
        errors = list[str]()
        for _ in range(4):
            with pytest.raises(FetchError) as caught:
                await read(transport)
            errors.append(type(caught.value).__name__)
        assert errors == ["RequestTimedOut", "ServerFailure"] * 2


async def test_an_open_connection_to_the_only_address_is_used_after_an_error() -> None:
    peers = set[object]()

    async def answer(request: web.Request) -> web.Response:
        peers.add(request.get_extra_info("peername"))
        return web.Response(status=503)

    async with http_server(answer) as server, running_transport(server) as transport:
        for _ in range(3):
            with pytest.raises(FetchError):
                await read(transport)
    assert len(peers) == 1


async def test_an_open_connection_that_answers_503_is_not_used_again_if_there_is_another_address(
    names: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = False

    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=503 if broken else 200, text="first")

    monkeypatch.setitem(HTTP_FAULTS, "later", answer)
    async with two_addresses(names, "later") as server, running_transport(server) as transport:
        assert await read(transport) == b"first"
        broken = True
        for _ in range(2):  # the open connection, then a new one
            with pytest.raises(FetchError):
                await read(transport)
        assert await read(transport) == b"pong"
