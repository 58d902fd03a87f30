"""The FastAPI example on a port, and clients of its events: quick ones, and one that stalls."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI

from aioinformer.testing import ApiServer
from examples.fastapi_app.__main__ import SHUTDOWN_SECONDS
from examples.fastapi_app.app import create_app
from examples.fastapi_app.live import Live
from examples.fastapi_app.settings import Settings
from tests.promises.conftest import FAST_BACKOFF, wait_until

__all__ = [
    "EventStreamReader",
    "Service",
    "make_settings",
    "reading_events",
    "running_service",
    "stalled_client",
]


def make_settings(server: ApiServer, folder: Path, *resources: str) -> Settings:
    """Return the settings that show an API server."""
    return Settings(
        cluster=True,
        kubeconfig=str(server.kubeconfig(folder / "kubeconfig")),
        resources=resources or ("pods", "nodes"),
        backoff=FAST_BACKOFF,
    )


class Service:
    """The application, as it is served."""

    def __init__(self, app: FastAPI, server: uvicorn.Server) -> None:
        self.app = app
        self.server = server

    @property
    def url(self) -> str:
        host, port = self.server.servers[0].sockets[0].getsockname()[:2]
        return f"http://{host}:{port}"

    @property
    def live(self) -> Live:
        """The parts that the lifespan started."""
        live: Live = self.app.state.live
        return live

    @property
    def clients(self) -> int:
        """The number of clients of the event stream."""
        clients: int = self.app.state.feed.clients
        return clients

    def begin_shutdown(self) -> None:
        """Close the event feed and let the server end, as the handler of a signal does."""
        self.app.state.feed.close()
        self.server.should_exit = True

    async def wait_synced(self) -> None:
        for informer in self.live.informers.values():
            await informer.wait_synced(30)


@asynccontextmanager
async def running_service(
    settings: Settings, *, port: int = 0, shutdown_seconds: int = SHUTDOWN_SECONDS
) -> AsyncGenerator[Service]:
    """Serve the application on a port, a free one by default, until the block ends."""
    app = create_app(settings)
    server = uvicorn.Server(
        uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=shutdown_seconds)
    )
    service = Service(app, server)
    running = asyncio.create_task(server.serve([make_listening_socket(port)]), name="uvicorn")
    try:
        # To fill a large embedded cluster takes some time.
        await wait_until(lambda: server.started or running.done(), timeout=100)
        yield service
    finally:
        service.begin_shutdown()
        await running


def make_listening_socket(number: int) -> socket.socket:
    """Return a socket whose connections have small send buffers.

    The kernel's default are megabytes, which a test would need long to fill.
    """
    port = socket.socket()
    port.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16 * 1024)
    port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    port.bind(("127.0.0.1", number))
    return port


class EventStreamReader:
    """The messages of an event stream, read like a page reads them."""

    def __init__(self) -> None:
        self.events: list[tuple[str, Any]] = []

    def object_names(self, event: str) -> list[str]:
        """Return the names of objects in the messages of a kind."""
        return [data["name"] for name, data in self.events if name == event]

    async def read(self, lines: AsyncIterator[str]) -> None:
        event = ""
        async for line in lines:
            if line.startswith("event: "):
                event = line.removeprefix("event: ")
            elif line.startswith("data: "):
                self.events.append((event, json.loads(line.removeprefix("data: "))))


@asynccontextmanager
async def reading_events(service: Service) -> AsyncGenerator[EventStreamReader]:
    """Read the event stream like a page, from ``synced`` until the block ends."""
    page = EventStreamReader()
    async with (
        httpx.AsyncClient(base_url=service.url, timeout=10) as http,
        http.stream("GET", "/events") as response,
    ):
        assert response.headers["content-type"].startswith("text/event-stream")
        reading = asyncio.create_task(page.read(response.aiter_lines()), name="page")
        try:
            await wait_until(lambda: ("synced", {}) in page.events)
            yield page
        finally:
            reading.cancel()
            await asyncio.wait({reading})


@asynccontextmanager
async def stalled_client(service: Service) -> AsyncGenerator[None]:
    """Open the event stream and read nothing until the block ends."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.setblocking(False)
    host, port = service.url.removeprefix("http://").split(":")
    try:
        loop = asyncio.get_running_loop()
        await loop.sock_connect(client, (host, int(port)))
        await loop.sock_sendall(client, b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        before = service.clients
        await wait_until(lambda: service.clients > before)
        yield
    finally:
        client.close()
