"""Small servers for the tests of the client: HTTP servers, and TCP servers for invalid HTTP."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

from aiohttp import web

from tests.client.recordings import Recording

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]
ConnectionHandler: TypeAlias = Callable[
    [asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]
]


@asynccontextmanager
async def http_server(
    handler: Handler,
    *,
    tls: ssl.SSLContext | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
) -> AsyncGenerator[str]:
    """Run an HTTP server that passes every request to ``handler``, and yield its URL."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    # A handler ends when its client closes the connection, as in kube-apiserver.
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01, handler_cancellation=True)
    await runner.setup()
    if tls is not None:
        asyncio.get_running_loop().set_exception_handler(_expect_failed_handshakes)
    try:
        await web.TCPSite(runner, host, port, ssl_context=tls).start()
        yield f"{'https' if tls else 'http'}://{host}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def _expect_failed_handshakes(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    # asyncio reports an error here if a client doesn't trust this server and closes the connection.
    if context.get("message") != "Error on transport creation for incoming connection":
        loop.default_exception_handler(context)


@asynccontextmanager
async def tcp_server(
    handler: ConnectionHandler,
    *,
    tls: ssl.SSLContext | None = None,
    host: str = "127.0.0.1",
) -> AsyncGenerator[str]:
    """Run a TCP server that passes every connection to ``talk``, and yield its address."""
    talks: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.set_name("talk")
        talks.add(task)
        try:
            await handler(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client or the test has ended
        finally:
            writer.transport.abort()

    server = await asyncio.start_server(accept, host, 0, ssl=tls)
    try:
        yield f"{host}:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in talks:
            task.cancel()
        await asyncio.gather(*talks)
        await server.wait_closed()


async def free_address() -> str:
    """Return an address on which no server listens."""

    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None: ...

    async with tcp_server(never) as address:
        return address


def replay_response(recording: Recording) -> web.Response:
    """Return a recording as a response."""
    return web.Response(
        status=recording.status, headers=dict(recording.headers), body=recording.body
    )


async def start_response(request: web.Request, *chunks: bytes) -> web.StreamResponse:
    """Start a response and send these chunks. The response ends when the handler returns."""
    response = web.StreamResponse()
    await response.prepare(request)
    for chunk in chunks:
        await response.write(chunk)
    return response
