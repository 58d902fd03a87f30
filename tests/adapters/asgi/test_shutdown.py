"""The end of event feeds at the signal that ends a server."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
import time
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import httpx
import pytest

from aioinformer.adapters.asgi import EventFeed, closing_on_signals
from aioinformer.testing import ApiServer
from tests.processes import send_signal, start_process
from tests.promises.conftest import wait_until

STREAMS = 20

SignalHandler = Callable[[int, FrameType | None], object]

APP = """
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.routing import Route

from aioinformer import Client, SharedInformerFactory
from aioinformer.adapters.asgi import EventFeed, Probe, closing_on_signals, ready


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    async with Client.connect() as client, SharedInformerFactory(client) as informers:
        app.state.informers = informers
        informers.informer("pods")
        with closing_on_signals(feed):
            yield


feed = EventFeed(lambda: app.state.informers)
probe = Probe(lambda: app.state.informers, ready)
app = Starlette(routes=[Route("/events", feed), Route("/readyz", probe)], lifespan=lifespan)
"""


@contextmanager
def handled(number: signal.Signals, handler: SignalHandler | signal.Handlers) -> Generator[None]:
    """Set the handler of a signal until the block ends, as a server does."""
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


def recording(calls: list[int]) -> SignalHandler:
    def handler(number: int, _: FrameType | None) -> None:
        calls.append(number)

    return handler


@pytest.fixture
def feed() -> EventFeed:
    return EventFeed(list)


def closed(feed: EventFeed) -> bool:
    return "closed" in repr(feed)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_closes_the_feeds_and_reaches_the_handler_of_the_server(
    feed: EventFeed, number: signal.Signals
) -> None:
    calls: list[int] = []
    another = EventFeed(list)
    with handled(number, recording(calls)), closing_on_signals(feed, another):
        signal.raise_signal(number)
        assert calls == [number]
        await wait_until(lambda: closed(feed) and closed(another))


async def test_the_handlers_of_the_server_are_restored(feed: EventFeed) -> None:
    server = recording([])
    with handled(signal.SIGTERM, server):
        with closing_on_signals(feed):
            assert signal.getsignal(signal.SIGTERM) is not server
        assert signal.getsignal(signal.SIGTERM) is server
    assert not closed(feed)


@pytest.mark.parametrize("action", [signal.SIG_DFL, signal.SIG_IGN])
async def test_a_signal_that_the_server_does_not_handle_keeps_its_action(
    feed: EventFeed, action: signal.Handlers
) -> None:
    with handled(signal.SIGTERM, action), closing_on_signals(feed):
        assert signal.getsignal(signal.SIGTERM) is action


def test_a_handler_that_was_installed_later_stays_and_a_closed_loop_is_no_error(
    feed: EventFeed,
) -> None:
    calls: list[int] = []

    async def lifespan() -> None:
        with closing_on_signals(feed):
            chained = signal.getsignal(signal.SIGTERM)
            assert callable(chained)
            signal.signal(signal.SIGTERM, lambda number, frame: chained(number, frame))

    with handled(signal.SIGTERM, recording(calls)):
        asyncio.run(lifespan())
        signal.raise_signal(signal.SIGTERM)
    assert calls == [signal.SIGTERM]


def test_outside_the_main_thread_no_signal_handler_is_replaced(
    feed: EventFeed,
) -> None:
    found: list[object] = []

    async def lifespan() -> None:
        with closing_on_signals(feed):
            found.append(signal.getsignal(signal.SIGTERM))

    server = recording([])
    with handled(signal.SIGTERM, server):
        thread = threading.Thread(target=asyncio.run, args=(lifespan(),))
        thread.start()
        thread.join()
    assert found == [server]


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


async def is_ready(http: httpx.AsyncClient) -> bool:
    try:
        return (await http.get("/readyz")).status_code == 200
    except httpx.TransportError:
        return False


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    while not await condition():  # noqa: ASYNC110 - the condition is about another process
        await asyncio.sleep(0.05)


async def read_to_end(http: httpx.AsyncClient, synced: list[int]) -> None:
    """Read a stream until the server ends it; an incomplete response raises."""
    async with http.stream("GET", "/events") as response:
        lines = response.aiter_lines()
        while await anext(lines) != "event: synced":
            pass
        synced.append(1)
        async for _ in lines:
            pass


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param([], id="one process"),
        pytest.param(["--workers", "2"], id="two workers", marks=pytest.mark.clients),
        pytest.param(["--reload"], id="reload", marks=pytest.mark.clients),
    ],
)
async def test_streams_end_cleanly_when_uvicorn_receives_sigterm(
    tmp_path: Path, arguments: list[str]
) -> None:
    (tmp_path / "app.py").write_text(APP)
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "app:app", f"--port={port}", *arguments]
    limits = httpx.Limits(max_connections=None)
    async with (
        ApiServer() as server,
        httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}", timeout=30, limits=limits, trust_env=False
        ) as http,
    ):
        env = os.environ | {"KUBECONFIG": str(server.kubeconfig(tmp_path / "config"))}
        process = await start_process(*command, cwd=tmp_path, env=env, stdout=PIPE, stderr=STDOUT)
        try:
            async with asyncio.timeout(40):
                await eventually(lambda: is_ready(http))
                synced: list[int] = []
                async with asyncio.TaskGroup() as clients:
                    for _ in range(STREAMS):
                        clients.create_task(read_to_end(http, synced))
                    await wait_until(lambda: len(synced) == STREAMS, timeout=30)
                    began = time.monotonic()
                    send_signal(process, signal.SIGTERM)
                output, _ = await process.communicate()
                took = time.monotonic() - began
        finally:
            send_signal(process, signal.SIGKILL)
            await process.wait()
    assert b"Traceback" not in output
    assert took < 20  # 0.3 s on an idle machine; without the context manager, it never ends
