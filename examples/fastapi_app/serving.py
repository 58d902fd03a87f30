"""The server: uvicorn, which ends event streams before it waits for responses to end."""

from __future__ import annotations

import socket

import uvicorn
from fastapi import FastAPI

from aioinformer.adapters.asgi import EventFeed

__all__ = ["Server"]

PATIENCE = 3
"""Seconds that ending waits for clients that read nothing any more."""


class Server(uvicorn.Server):
    """Serves the application until SIGINT or SIGTERM."""

    def __init__(self, app: FastAPI, *, host: str, port: int, log_level: str = "info") -> None:
        """Serve there; ``port`` 0 is a free one."""
        super().__init__(
            uvicorn.Config(
                app,
                host=host,
                port=port,
                log_level=log_level,
                access_log=False,
                timeout_graceful_shutdown=PATIENCE,
            )
        )
        self._feed: EventFeed = app.state.feed

    @property
    def url(self) -> str:
        """Where it is; known once it has started."""
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        return f"http://{host}:{port}"

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End what would not end by itself, then the rest."""
        self._feed.close()
        await super().shutdown(sockets)
