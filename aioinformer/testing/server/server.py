"""``ApiServer``: a ``Cluster`` behind HTTP on a loopback port.

The server is for everything that speaks HTTP to Kubernetes: this library's client,
kubernetes_asyncio, kubectl. A test can stop the server, start it again on its port, and break its
connections; the objects stay. Other faults are switched on in ``ApiServer.faults``. The server
listens on the loopback interface alone, so no other machine reaches it.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import errno
import os
import socket
import ssl
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import mkstemp
from typing import Any, Self

import msgspec
from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import RawRequestMessage

from aioinformer.errors import NotRunning
from aioinformer.testing.access.access import Access, AuthorizationMode
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.cluster.storage import Snapshot
from aioinformer.testing.faults.faults import Faults
from aioinformer.testing.server.clock import Clock, LoopClock
from aioinformer.testing.server.foreign_pages import parse_accepted_hosts
from aioinformer.testing.server.objects import BODY_LIMIT
from aioinformer.testing.server.request_router import RequestRouter

HOST = "127.0.0.1"

ACCEPT_LOOP_TURNS = 5
"""Turns of the loop after which asyncio has made the transport of a connection that it accepted: a
callback, and a task that waits for two more callbacks."""

SHUTDOWN_TIMEOUT = 2.0
"""Seconds that handlers have to end. Their connections are broken before, so they end at once."""


class ListeningSocket:
    """A listening socket on the loopback that can stop and resume accepting connections."""

    def __init__(self, server: web.Server, tls: ssl.SSLContext | None) -> None:
        self.port = 0
        """0 before the first ``listen``."""
        self._server = server
        self._tls = tls
        self._socket: socket.socket | None = None
        self._asyncio_server: asyncio.AbstractServer | None = None
        self._resume_task: asyncio.Task[None] | None = None

    async def listen(self, port: int) -> None:
        """Listen on a port, on a free one if it is 0; raise ``OSError`` if the port is taken."""
        self._socket = socket.create_server((HOST, port))
        self.port = self._socket.getsockname()[1]
        await self._start_serving(self._socket)

    async def _start_serving(self, listening: socket.socket) -> None:
        self._asyncio_server = await asyncio.get_running_loop().create_server(
            self._server, sock=listening, ssl=self._tls, start_serving=False
        )
        await self._asyncio_server.start_serving()

    def stop_accepting(self) -> None:
        """Refuse new connections. Open connections stay."""
        if self._resume_task is not None:
            self._resume_task.cancel()
            self._resume_task = None
        listening, self._socket = self._socket, None
        accepting, self._asyncio_server = self._asyncio_server, None
        if listening is None:
            return
        asyncio.get_running_loop().remove_reader(listening)
        with contextlib.suppress(OSError):  # some systems can't shut down a listening socket
            listening.shutdown(socket.SHUT_RDWR)
        _close_after_turns(accepting or listening, ACCEPT_LOOP_TURNS)

    def resume_accepting(self) -> None:
        """Accept connections again: the system does at once, the event loop at its next turn."""
        if self._socket is None:
            self._socket = socket.create_server((HOST, self.port))
            self._resume_task = asyncio.create_task(self._start_serving(self._socket))

    async def close(self) -> None:
        """Stop accepting; return when all connections that were accepted have their transports."""
        self.stop_accepting()
        for _ in range(ACCEPT_LOOP_TURNS + 1):
            await asyncio.sleep(0)

    def __repr__(self) -> str:
        return (
            f"<ListeningSocket {HOST}:{self.port} {'closed' if self._socket is None else 'open'}>"
        )


def _close_after_turns(closing: asyncio.AbstractServer | socket.socket, turns: int) -> None:
    """Close after some turns of the loop, in which asyncio makes the transports of new connections.

    Without the turns asyncio drops such connections, and their clients would wait for ever.
    """
    if turns:
        asyncio.get_running_loop().call_soon(_close_after_turns, closing, turns - 1)
    else:
        closing.close()


class ApiServer:
    """An API server for tests.

    ::

        async with ApiServer() as server:
            server.cluster.create("pods", {"metadata": {"name": "web-0"}})
            ...  # use server.url, or server.kubeconfig(tmp_path / "config")
            with server.faults.status(503, verb="watch_list") as fault:
                ...  # check your program
            assert fault.hits > 0
    """

    def __init__(
        self,
        cluster: Cluster | None = None,
        *,
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        token: str | None = None,
        authorization: AuthorizationMode = "AlwaysAllow",
        accept_hosts: Iterable[str] = (),
        faults: Faults | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Make a server that is not running yet.

        Args:
            cluster: the cluster to serve; by default an empty one that stamps objects with the real
                time. (A ``Cluster()`` of the program doesn't, and is the same in each run.)
            port: the port; 0 for a free one, which the server keeps over restarts.
            tls: serve HTTPS with this context, which has a certificate for 127.0.0.1.
            token: the bearer token of the administrator. With it every request needs a token, this
                one or that of a user of ``access``.
            authorization: ``AlwaysAllow`` or ``RBAC``; see ``Access``.
            accept_hosts: names and addresses by which clients may reach the server, besides
                ``localhost`` and those of the loopback: of a proxy, or of a web page that sends
                requests. Requests for other hosts, and of pages of other hosts, are answered with
                403, because any web page can send them from a browser of this machine.
            faults: the switches for faults; new ones by default.
            clock: the time of the server; the event loop's by default. With a ``ManualClock`` a
                test advances the time.

        Raises:
            ValueError: a text of ``accept_hosts`` is neither a name nor an address.
        """
        self.cluster = cluster if cluster is not None else Cluster(clock=_now)
        self.faults = faults if faults is not None else Faults()
        self.access = Access(token=token, authorization=authorization)
        """``server.access.add_user("ada", token="t", rules=[...])`` adds a user."""
        self._accepted_hosts = parse_accepted_hosts(accept_hosts)
        self._clock: Clock = clock if clock is not None else LoopClock()
        self._port = port
        self._tls = tls
        self._runner: web.ServerRunner | None = None
        self._listening_socket: ListeningSocket | None = None
        self._stop_observing: Callable[[], None] | None = None

    @property
    def running(self) -> bool:
        """True if the server is running."""
        return self._runner is not None

    @property
    def url(self) -> str:
        """The address, without a slash at the end; ``NotRunning`` if it never had a port."""
        if not self._port:
            raise NotRunning("the server has no port before its first start")
        return f"{'https' if self._tls else 'http'}://{HOST}:{self._port}"

    async def start(self) -> None:
        """Listen, on the port of an earlier start; do nothing if running.

        Raises:
            OSError: the port is taken.
        """
        if self._runner is not None:
            return
        runner = self._make_runner()
        await runner.setup()
        if runner.server is None:
            raise NotRunning("aiohttp made no server")
        listening = ListeningSocket(runner.server, self._tls)
        try:
            await listening.listen(self._port)
        except OSError:
            await runner.cleanup()
            raise
        self._runner, self._listening_socket, self._port = runner, listening, listening.port
        self._stop_observing = self.faults.observe(self._apply_refusal)
        self._apply_refusal()

    def _make_runner(self) -> web.ServerRunner:
        router = RequestRouter(
            self.cluster, self.faults, self._clock, self.access, self._accepted_hosts
        )
        # An application's routes, middlewares and signals would cost each request a fifth more.
        server = web.Server(
            router.handle,
            request_factory=_make_request,
            access_log=None,
            handler_cancellation=True,  # a watch ends when its client disconnects
        )
        return web.ServerRunner(server, shutdown_timeout=SHUTDOWN_TIMEOUT)

    def _apply_refusal(self) -> None:
        listening = self._listening_socket
        if listening is None:
            return
        if self.faults.refusing:
            listening.stop_accepting()
        else:
            listening.resume_accepting()

    async def stop(self) -> None:
        """Stop like a crash: break every connection, refuse new ones. The objects stay."""
        runner, self._runner = self._runner, None
        if self._stop_observing is not None:
            self._stop_observing()
            self._stop_observing = None
        listening, self._listening_socket = self._listening_socket, None
        if listening is not None:
            await listening.close()
        if runner is not None:
            _abort_connections(runner)
            await runner.cleanup()

    async def restart(self, *, state: Snapshot | None = None, lose_data: bool = False) -> None:
        """Stop like a crash and start again on the same port, as a new process.

        The new process has no history: watches from older versions are answered with 410. With
        ``state``, as from a backup, objects *and* resourceVersion are those of the snapshot; with
        ``lose_data`` the cluster is empty.
        """
        await self.stop()
        if state is not None or lose_data:
            self.cluster.restore(state)
        self.cluster.empty_watch_cache()
        await self.start()

    def drop_connections(self) -> None:
        """Break every connection at once, also in the middle of an answer, and go on serving."""
        if self._runner is not None:
            _abort_connections(self._runner)

    def kubeconfig(
        self,
        path: str | Path,
        *,
        user: str = "",
        certificate_authority: str | Path | None = None,
    ) -> Path:
        """Write a kubeconfig for this server, readable by the owner alone; return its path.

        Clients in Go, kubectl too, send a token over HTTPS alone: for these, make the server with
        ``tls``.

        Args:
            path: the file to write.
            user: the user of ``access`` whose token the file has; by default the administrator, if
                the server has an administrator's token.
            certificate_authority: the certificate that signed the server's. Without it, the
                kubeconfig of an HTTPS server tells clients to trust any certificate.

        Raises:
            NotRunning: the server has no port yet.
            OSError: the file can't be written, or the path is that of a folder or device.
            ValueError: no user of ``access`` has this name.
        """
        path = Path(path)
        token = self.access.token_of(user) if user else self.access.admin_token
        cluster: dict[str, Any] = {"server": self.url}
        if certificate_authority is not None:
            cluster["certificate-authority"] = str(certificate_authority)
        elif self._tls is not None:
            cluster["insecure-skip-tls-verify"] = True
        credentials = {"token": token} if token is not None else {}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "test", "user": credentials}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "current-context": "test",
        }
        _replace_file(path, msgspec.json.format(msgspec.json.encode(config)))  # JSON is YAML
        return path

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, exc_type: object, *_: object) -> None:
        await self.stop()
        if exc_type is None:
            self.faults.warn_of_unused()

    def __repr__(self) -> str:
        where = self.url if self._port else "no port yet"
        return f"<ApiServer {where} {'running' if self.running else 'stopped'} {self.cluster!r}>"


def _replace_file(path: Path, content: bytes) -> None:
    """Write a new file that only this user can read, and rename it: no link is followed."""
    if path.exists() and not path.is_file():
        raise FileExistsError(errno.EEXIST, "it exists and is not a file", str(path))
    descriptor, name = mkstemp(prefix=f".{path.name}-", dir=path.parent)  # 0600
    new = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        new.replace(path)
    except BaseException:
        new.unlink()
        raise


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


def _make_request(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: web.RequestHandler,
    writer: AbstractStreamWriter,
    task: asyncio.Task[None],
) -> web.BaseRequest:
    """Return a request whose body can be as long as a server reads."""
    return web.BaseRequest(
        message,
        payload,
        protocol,
        writer,
        task,
        asyncio.get_running_loop(),
        client_max_size=BODY_LIMIT,
    )


def _abort_connections(runner: web.ServerRunner) -> None:
    server = runner.server
    for connection in server.connections if server is not None else ():
        if connection.transport is not None:
            connection.transport.abort()
