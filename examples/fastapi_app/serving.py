"""The server: uvicorn, which closes event streams before it waits for responses to end."""

from __future__ import annotations

import socket

import uvicorn
from fastapi import FastAPI

from aioinformer.adapters.asgi import EventFeed

__all__ = ["Server"]

SHUTDOWN_SECONDS = 3
"""Seconds for which the shutdown waits for clients that have stopped reading."""


class Server(uvicorn.Server):
    """A server that runs the application until SIGINT or SIGTERM."""

    def __init__(self, app: FastAPI, *, host: str, port: int, log_level: str = "info") -> None:
        """Serve on ``host`` and ``port``; port 0 takes a free one."""
        super().__init__(
            uvicorn.Config(
                app,
                host=host,
                port=port,
                log_level=log_level,
                access_log=False,
                timeout_graceful_shutdown=SHUTDOWN_SECONDS,
            )
        )
        self._feed: EventFeed = app.state.feed

    @property
    def url(self) -> str:
        """The URL of the server after its start."""
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        return f"http://{host}:{port}"

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the event streams, which don't end by themselves, then shut down."""
        self._feed.close()
        await super().shutdown(sockets)
