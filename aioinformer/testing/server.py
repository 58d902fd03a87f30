"""``ApiServer``: a ``Cluster`` behind HTTP on a loopback port.

For everything that speaks HTTP to Kubernetes: this library's client, kubernetes_asyncio, kubectl.
It can be stopped and started again on its port, and its connections can be broken, as happens to
a real one; the objects stay. Nobody but this machine reaches it.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
from aiohttp import web

from aioinformer.errors import NotRunning
from aioinformer.testing.cluster import Cluster
from aioinformer.testing.handlers import application

__all__ = ["ApiServer"]

HOST = "127.0.0.1"

SHUTDOWN_SECONDS = 2.0
"""How long handlers may take to end. Their connections are gone by then, so they end at once."""
ACCEPTING_STEPS = 5
"""Turns of the loop in which asyncio makes a transport for a connection that it has accepted:
a callback and a task that waits for two more callbacks."""


class ApiServer:
    """An API server for tests.

    ::

        async with ApiServer() as server:
            server.cluster.create("pods", {"metadata": {"name": "web-0"}})
            ...  # use server.url, or server.kubeconfig(tmp_path / "config")
    """

    def __init__(
        self,
        cluster: Cluster | None = None,
        *,
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        token: str | None = None,
    ) -> None:
        """Make a server that isn't running yet.

        Args:
            cluster: what it serves; an empty one by default.
            port: where; 0 for a free one, which is kept over restarts.
            tls: serve HTTPS with this context, which has a certificate for 127.0.0.1.
            token: the bearer token that every request must show; none is needed by default.
        """
        self.cluster = cluster if cluster is not None else Cluster()
        self._port = port
        self._tls = tls
        self._token = token
        self._runner: web.AppRunner | None = None
        self._listening: socket.socket | None = None

    @property
    def running(self) -> bool:
        """Whether it can be reached."""
        return self._runner is not None

    @property
    def url(self) -> str:
        """Its address, without a slash at the end.

        Raises:
            NotRunning: it has no port yet: it was made without one and never started.
        """
        if not self._port:
            raise NotRunning("the server has no port before its first start")
        return f"{'https' if self._tls else 'http'}://{HOST}:{self._port}"

    async def start(self) -> None:
        """Listen. On the port of before, if it ran before; nothing if it runs.

        Raises:
            OSError: the port is taken.
        """
        if self._runner is not None:
            return
        runner = web.AppRunner(
            application(self.cluster, token=self._token),
            access_log=None,
            handler_cancellation=True,  # a watch ends when its client goes
            shutdown_timeout=SHUTDOWN_SECONDS,
        )
        await runner.setup()
        try:
            listening = socket.create_server((HOST, self._port))
        except OSError:
            await runner.cleanup()
            raise
        await web.SockSite(runner, listening, ssl_context=self._tls).start()
        self._runner, self._listening = runner, listening
        self._port = runner.addresses[0][1]

    async def stop(self) -> None:
        """Stop as a crash does: break every connection, refuse new ones. The objects stay."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await self._stop_accepting()
            _abort(runner)
            await runner.cleanup()

    async def _stop_accepting(self) -> None:
        """Let connections that are being accepted come into being, so that they can be broken.

        asyncio forgets one that it has accepted but not made a transport for when its server is
        closed: the client would wait on it for ever.
        """
        if self._listening is not None:
            asyncio.get_running_loop().remove_reader(self._listening)
        for _ in range(ACCEPTING_STEPS):
            await asyncio.sleep(0)

    def drop_connections(self) -> None:
        """Break every connection in the middle of whatever it is doing, and go on serving."""
        if self._runner is not None:
            _abort(self._runner)

    def kubeconfig(self, path: Path, *, certificate_authority: Path | None = None) -> Path:
        """Write a kubeconfig for this server, readable by its owner alone.

        Args:
            path: the file to write.
            certificate_authority: what signed the server's certificate; without it, clients of
                an HTTPS server are told to trust any.

        Returns:
            The path.

        Raises:
            NotRunning: it has no port yet.
        """
        cluster: dict[str, Any] = {"server": self.url}
        if certificate_authority is not None:
            cluster["certificate-authority"] = str(certificate_authority)
        elif self._tls is not None:
            cluster["insecure-skip-tls-verify"] = True
        user = {"token": self._token} if self._token is not None else {}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "test", "user": user}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "current-context": "test",
        }
        path.touch(mode=0o600)
        path.write_bytes(msgspec.json.format(msgspec.json.encode(config)))  # JSON is YAML
        return path

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    def __repr__(self) -> str:
        where = self.url if self._port else "no port yet"
        return f"<ApiServer {where} {'running' if self.running else 'stopped'} {self.cluster!r}>"


def _abort(runner: web.AppRunner) -> None:
    server = runner.server
    for connection in server.connections if server is not None else ():
        if connection.transport is not None:
            connection.transport.abort()
