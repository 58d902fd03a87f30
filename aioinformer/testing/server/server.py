"""``ApiServer``: a ``Cluster`` behind HTTP on a loopback port.

For everything that speaks HTTP to Kubernetes: this library's client, kubernetes_asyncio, kubectl.
It can be stopped and started again on its port, and its connections can be broken, as happens to
a real one; the objects stay. What else may go wrong is switched on in its ``faults``. Nobody but
this machine reaches it.

Where connections come in: a listening socket that can be shut and opened again on its port.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
from aiohttp import web

from aioinformer.errors import NotRunning
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.cluster.storage import Snapshot
from aioinformer.testing.faults.faults import Faults
from aioinformer.testing.server.clock import Clock, LoopClock
from aioinformer.testing.server.handlers import make_application

__all__ = ["ApiServer", "ListeningSocket"]


HOST = "127.0.0.1"

ACCEPT_LOOP_TURNS = 5
"""Turns of the loop in which asyncio makes a transport for a connection that it has accepted:
a callback and a task that waits for two more callbacks."""


class ListeningSocket:
    """Lets connections in to an HTTP server, on the loopback."""

    def __init__(self, server: web.Server, tls: ssl.SSLContext | None) -> None:
        """Make a door that was never open."""
        self.port = 0
        """Where it is; 0 before it is open for the first time."""
        self._server = server
        self._tls = tls
        self._socket: socket.socket | None = None
        self._asyncio_server: asyncio.AbstractServer | None = None
        self._resume_task: asyncio.Task[None] | None = None

    async def listen(self, port: int) -> None:
        """Listen on a port; on a free one if it is 0.

        Raises:
            OSError: the port is taken.
        """
        self._socket = socket.create_server((HOST, port))
        self.port = self._socket.getsockname()[1]
        await self._start_serving(self._socket)

    async def _start_serving(self, listening: socket.socket) -> None:
        self._asyncio_server = await asyncio.get_running_loop().create_server(
            self._server, sock=listening, ssl=self._tls, start_serving=False
        )
        await self._asyncio_server.start_serving()

    def stop_accepting(self) -> None:
        """Refuse connections from now on. Those that are open stay."""
        if self._resume_task is not None:
            self._resume_task.cancel()
            self._resume_task = None
        listening, self._socket = self._socket, None
        accepting, self._asyncio_server = self._asyncio_server, None
        if listening is None:
            return
        asyncio.get_running_loop().remove_reader(listening)
        with contextlib.suppress(OSError):  # some systems don't know this of a listening socket
            listening.shutdown(socket.SHUT_RDWR)
        _close_after_turns(accepting or listening, ACCEPT_LOOP_TURNS)

    def resume_accepting(self) -> None:
        """Let connections in again: the operating system does at once, the loop in its turn."""
        if self._socket is None:
            self._socket = socket.create_server((HOST, self.port))
            self._resume_task = asyncio.create_task(self._start_serving(self._socket))

    async def close(self) -> None:
        """Shut it for good; return when every connection that was coming in has come."""
        self.stop_accepting()
        for _ in range(ACCEPT_LOOP_TURNS + 1):
            await asyncio.sleep(0)

    def __repr__(self) -> str:
        return f"<ListeningSocket {HOST}:{self.port} {'shut' if self._socket is None else 'open'}>"


def _close_after_turns(closing: asyncio.AbstractServer | socket.socket, turns: int) -> None:
    """Let connections that are coming in come into being first.

    asyncio forgets one that it has accepted but not made a transport for when its server is
    closed: the client would wait on it for ever.
    """
    if turns:
        asyncio.get_running_loop().call_soon(_close_after_turns, closing, turns - 1)
    else:
        closing.close()


SHUTDOWN_TIMEOUT = 2.0
"""How long handlers may take to end. Their connections are gone by then, so they end at once."""


class ApiServer:
    """An API server for tests.

    ::

        async with ApiServer() as server:
            server.cluster.create("pods", {"metadata": {"name": "web-0"}})
            ...  # use server.url, or server.kubeconfig(tmp_path / "config")
            with server.faults.status(503, verb="list"):
                ...  # see what your program does
    """

    def __init__(
        self,
        cluster: Cluster | None = None,
        *,
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        token: str | None = None,
        faults: Faults | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Make a server that isn't running yet.

        Args:
            cluster: what it serves; by default an empty one, which stamps objects with the real
                time (a ``Cluster()`` that the program makes doesn't, and is the same each time).
            port: where; 0 for a free one, which is kept over restarts.
            tls: serve HTTPS with this context, which has a certificate for 127.0.0.1.
            token: the bearer token that every request must show; none is needed by default.
            faults: what goes wrong; nothing at first.
            clock: its time; the event loop's by default. With a ``ManualClock`` minutes pass when
                a test says so.
        """
        self.cluster = cluster if cluster is not None else Cluster(clock=_now)
        self.faults = faults if faults is not None else Faults()
        """What goes wrong, and how to make it so."""
        self._clock: Clock = clock if clock is not None else LoopClock()
        self._port = port
        self._tls = tls
        self._token = token
        self._runner: web.AppRunner | None = None
        self._listening_socket: ListeningSocket | None = None
        self._stop_observing: Callable[[], None] | None = None

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
        requests = make_application(
            self.cluster, faults=self.faults, clock=self._clock, token=self._token
        )
        runner = web.AppRunner(
            requests,
            access_log=None,
            handler_cancellation=True,  # a watch ends when its client goes
            shutdown_timeout=SHUTDOWN_TIMEOUT,
        )
        await runner.setup()
        server = runner.server
        if server is None:
            raise NotRunning("aiohttp made no server")
        door = ListeningSocket(server, self._tls)
        try:
            await door.listen(self._port)
        except OSError:
            await runner.cleanup()
            raise
        self._runner, self._listening_socket, self._port = runner, door, door.port
        self._stop_observing = self.faults.observe(self._apply_refusal)
        self._apply_refusal()

    def _apply_refusal(self) -> None:
        """Refuse connections, or don't, as the faults say."""
        if self._listening_socket is not None:
            (
                self._listening_socket.stop_accepting
                if self.faults.refusing
                else self._listening_socket.resume_accepting
            )()

    async def stop(self) -> None:
        """Stop as a crash does: break every connection, refuse new ones. The objects stay."""
        runner, self._runner = self._runner, None
        if self._stop_observing is not None:
            self._stop_observing()
            self._stop_observing = None
        door, self._listening_socket = self._listening_socket, None
        if door is not None:
            await door.close()
        if runner is not None:
            _abort_connections(runner)
            await runner.cleanup()

    async def restart(self, *, state: Snapshot | None = None, lose_data: bool = False) -> None:
        """Crash and come back on the same port, as a process that is started again.

        It has forgotten what happened before: watches from older versions are answered with 410.

        Args:
            state: come back with this one, as from a backup: objects *and* resourceVersion go
                back to what they were.
            lose_data: come back with nothing at all.
        """
        await self.stop()
        if state is not None or lose_data:
            self.cluster.restore(state)
        self.cluster.empty_watch_cache()
        await self.start()

    def drop_connections(self) -> None:
        """Break every connection in the middle of whatever it is doing, and go on serving."""
        if self._runner is not None:
            _abort_connections(self._runner)

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


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


def _abort_connections(runner: web.AppRunner) -> None:
    server = runner.server
    for connection in server.connections if server is not None else ():
        if connection.transport is not None:
            connection.transport.abort()
