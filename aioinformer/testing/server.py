"""``ApiServer``: a ``Cluster`` behind HTTP on a loopback port.

For everything that speaks HTTP to Kubernetes: this library's client, kubernetes_asyncio, kubectl.
It can be stopped and started again on its port, and its connections can be broken, as happens to
a real one; the objects stay. What else may go wrong is switched on in its ``faults``. Nobody but
this machine reaches it.
"""

from __future__ import annotations

import datetime as dt
import ssl
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
from aiohttp import web

from aioinformer.errors import NotRunning
from aioinformer.testing.clock import Clock, LoopClock
from aioinformer.testing.cluster import Cluster
from aioinformer.testing.door import HOST, Door
from aioinformer.testing.faults import Faults
from aioinformer.testing.handlers import application
from aioinformer.testing.storage import Snapshot

__all__ = ["ApiServer"]

SHUTDOWN_SECONDS = 2.0
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
        self._door: Door | None = None
        self._unobserve: Callable[[], None] | None = None

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
        requests = application(
            self.cluster, faults=self.faults, clock=self._clock, token=self._token
        )
        runner = web.AppRunner(
            requests,
            access_log=None,
            handler_cancellation=True,  # a watch ends when its client goes
            shutdown_timeout=SHUTDOWN_SECONDS,
        )
        await runner.setup()
        server = runner.server
        if server is None:
            raise NotRunning("aiohttp made no server")
        door = Door(server, self._tls)
        try:
            await door.open(self._port)
        except OSError:
            await runner.cleanup()
            raise
        self._runner, self._door, self._port = runner, door, door.port
        self._unobserve = self.faults.observe(self._answer_the_door)
        self._answer_the_door()

    def _answer_the_door(self) -> None:
        """Refuse connections, or don't, as the faults say."""
        if self._door is not None:
            (self._door.shut if self.faults.refusing else self._door.reopen)()

    async def stop(self) -> None:
        """Stop as a crash does: break every connection, refuse new ones. The objects stay."""
        runner, self._runner = self._runner, None
        if self._unobserve is not None:
            self._unobserve()
            self._unobserve = None
        door, self._door = self._door, None
        if door is not None:
            await door.close()
        if runner is not None:
            _abort(runner)
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


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


def _abort(runner: web.AppRunner) -> None:
    server = runner.server
    for connection in server.connections if server is not None else ():
        if connection.transport is not None:
            connection.transport.abort()
