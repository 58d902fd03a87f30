"""Where connections come in: a listening socket that can be shut and opened again on its port."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl

from aiohttp import web

__all__ = ["Door"]

HOST = "127.0.0.1"

ACCEPTING_STEPS = 5
"""Turns of the loop in which asyncio makes a transport for a connection that it has accepted:
a callback and a task that waits for two more callbacks."""


class Door:
    """Lets connections in to an HTTP server, on the loopback."""

    def __init__(self, server: web.Server, tls: ssl.SSLContext | None) -> None:
        """Make a door that was never open."""
        self.port = 0
        """Where it is; 0 before it is open for the first time."""
        self._server = server
        self._tls = tls
        self._listening: socket.socket | None = None
        self._accepting: asyncio.AbstractServer | None = None
        self._opening: asyncio.Task[None] | None = None

    async def open(self, port: int) -> None:
        """Listen on a port; on a free one if it is 0.

        Raises:
            OSError: the port is taken.
        """
        self._listening = socket.create_server((HOST, port))
        self.port = self._listening.getsockname()[1]
        await self._accept(self._listening)

    async def _accept(self, listening: socket.socket) -> None:
        self._accepting = await asyncio.get_running_loop().create_server(
            self._server, sock=listening, ssl=self._tls, start_serving=False
        )
        await self._accepting.start_serving()

    def shut(self) -> None:
        """Refuse connections from now on. Those that are open stay."""
        if self._opening is not None:
            self._opening.cancel()
            self._opening = None
        listening, self._listening = self._listening, None
        accepting, self._accepting = self._accepting, None
        if listening is None:
            return
        asyncio.get_running_loop().remove_reader(listening)
        with contextlib.suppress(OSError):  # some systems don't know this of a listening socket
            listening.shutdown(socket.SHUT_RDWR)
        _close_later(accepting or listening, ACCEPTING_STEPS)

    def reopen(self) -> None:
        """Let connections in again: the operating system does at once, the loop in its turn."""
        if self._listening is None:
            self._listening = socket.create_server((HOST, self.port))
            self._opening = asyncio.create_task(self._accept(self._listening))

    async def close(self) -> None:
        """Shut it for good; return when every connection that was coming in has come."""
        self.shut()
        for _ in range(ACCEPTING_STEPS + 1):
            await asyncio.sleep(0)

    def __repr__(self) -> str:
        return f"<Door {HOST}:{self.port} {'shut' if self._listening is None else 'open'}>"


def _close_later(closing: asyncio.AbstractServer | socket.socket, steps: int) -> None:
    """Let connections that are coming in come into being first.

    asyncio forgets one that it has accepted but not made a transport for when its server is
    closed: the client would wait on it for ever.
    """
    if steps:
        asyncio.get_running_loop().call_soon(_close_later, closing, steps - 1)
    else:
        closing.close()
