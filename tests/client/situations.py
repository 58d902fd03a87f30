"""Servers, files and certificates as beginners meet them, set up for real."""

from __future__ import annotations

import asyncio
import datetime as dt
import socket
import ssl
import threading
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trustme

from aioinformer.testing import ApiServer
from tests.client.conftest import Certificates
from tests.client.exchanges import pong
from tests.client.kubeconfigs import document, encoded, written
from tests.client.servers import free_address, serving

CANARY = "canary-88b0"
"""Every kubeconfig here has it for a token. No error may."""

SINCE = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
UNTIL = dt.datetime(2020, 4, 1, tzinfo=dt.UTC)
"""When certificates that have expired were valid."""

UNKNOWN_HOST = "no-such-host.invalid"


@dataclass(frozen=True, slots=True)
class Stage:
    """Where a mistake is made."""

    folder: Path
    certificates: Certificates

    def kubeconfig(self, server: str, **more: Any) -> str:
        """A kubeconfig file for a server, whose authority is the certificates'."""
        trust = encoded(self.certificates.authority_pem)
        cluster: Mapping[str, Any] = {"server": server, "certificate-authority-data": trust}
        return str(written(self.folder, document(cluster=cluster, user={"token": CANARY} | more)))


@dataclass(frozen=True, slots=True)
class Situation:
    """What there is then, and what a text may name of it."""

    file: str
    address: str = ""
    """The server's; of a host that is not known, what the system says of it."""


@asynccontextmanager
async def working(stage: Stage) -> AsyncGenerator[Situation]:
    """A server that works, and its kubeconfig."""
    async with ApiServer(token=CANARY) as server:
        yield Situation(stage.kubeconfig(server.url), server.url.removeprefix("http://"))


@asynccontextmanager
async def no_file(stage: Stage) -> AsyncGenerator[Situation]:
    yield Situation(str(stage.folder / "config"))


@asynccontextmanager
async def no_plugin(stage: Stage) -> AsyncGenerator[Situation]:
    exec_ = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "kubectl-shop-login",
        "installHint": "brew install shop-login",
        "interactiveMode": "Never",
    }
    config = document(user={"exec": exec_})
    yield Situation(str(written(stage.folder, config)))


@asynccontextmanager
async def nobody_listens(stage: Stage) -> AsyncGenerator[Situation]:
    address = await free_address()
    yield Situation(stage.kubeconfig(f"https://{address}"), address)


@asynccontextmanager
async def no_such_host(stage: Stage) -> AsyncGenerator[Situation]:
    reason = ""
    try:
        await asyncio.get_running_loop().getaddrinfo(UNKNOWN_HOST, 6443)
    except socket.gaierror as error:  # without any network it is another one
        reason = str(error.strerror)
    yield Situation(stage.kubeconfig(f"https://{UNKNOWN_HOST}:6443"), reason)


@asynccontextmanager
async def tls_server(stage: Stage, tls: ssl.SSLContext | None) -> AsyncGenerator[Situation]:
    async with serving(pong, tls=tls) as server:
        address = server.partition("://")[2]
        yield Situation(stage.kubeconfig(f"https://{address}"), address)


def expired(stage: Stage) -> AbstractAsyncContextManager[Situation]:
    authority = stage.certificates.authority
    leaf = authority.issue_cert("127.0.0.1", not_before=SINCE, not_after=UNTIL)
    return tls_server(stage, stage.certificates.server_context(leaf))


def other_authority(stage: Stage) -> AbstractAsyncContextManager[Situation]:
    leaf = trustme.CA().issue_cert("127.0.0.1")
    return tls_server(stage, stage.certificates.server_context(leaf))


def other_name(stage: Stage) -> AbstractAsyncContextManager[Situation]:
    leaf = stage.certificates.authority.issue_cert("kubernetes.example")
    return tls_server(stage, stage.certificates.server_context(leaf))


@asynccontextmanager
async def mutual(stage: Stage, user: trustme.LeafCert | None) -> AsyncGenerator[Situation]:
    """A server that wants a client certificate of its authority; the kubeconfig has ``user``."""
    tls = stage.certificates.server_context()
    tls.verify_mode = ssl.CERT_REQUIRED
    tls.load_verify_locations(cadata=stage.certificates.authority_pem.decode())
    pair: dict[str, str] = {}
    if user is not None:
        pair["client-certificate-data"] = encoded(user.cert_chain_pems[0].bytes())
        pair["client-key-data"] = encoded(user.private_key_pem.bytes())
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=handshakes, args=(listening, tls))
        thread.start()
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        try:
            yield Situation(stage.kubeconfig(f"https://{address}", **pair), address)
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            await asyncio.to_thread(thread.join)


def handshakes(listening: socket.socket, tls: ssl.SSLContext) -> None:
    """Shake hands until nobody listens. In a thread: asyncio's servers send no alert when they
    don't like a certificate, other ones do.
    """
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        with tls.wrap_socket(connection, True, do_handshake_on_connect=False) as wrapped:
            with suppress(OSError):
                wrapped.do_handshake()
            with suppress(OSError):  # until the client has read the alert, and hangs up
                while socket.socket.recv(wrapped, 4096):
                    pass


def no_certificate(stage: Stage) -> AbstractAsyncContextManager[Situation]:
    return mutual(stage, None)


def expired_certificate(stage: Stage) -> AbstractAsyncContextManager[Situation]:
    authority = stage.certificates.authority
    return mutual(stage, authority.issue_cert("user@example", not_before=SINCE, not_after=UNTIL))


def foreign_certificate(stage: Stage) -> AbstractAsyncContextManager[Situation]:
    return mutual(stage, trustme.CA().issue_cert("user@example.com"))


def https_to_http(stage: Stage) -> AbstractAsyncContextManager[Situation]:
    return tls_server(stage, None)


@asynccontextmanager
async def http_to_https(stage: Stage) -> AsyncGenerator[Situation]:
    """Go's HTTP server says so in the clear, and kube-apiserver is one."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        said = b"Client sent an HTTP request to an HTTPS server.\n"
        writer.write(b"HTTP/1.0 400 Bad Request\r\n\r\n" + said)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield Situation(stage.kubeconfig(f"http://{address}"), address)


@asynccontextmanager
async def wrong_token(stage: Stage) -> AsyncGenerator[Situation]:
    async with ApiServer(token="another") as server:
        yield Situation(stage.kubeconfig(server.url), server.url.removeprefix("http://"))


@asynccontextmanager
async def forbidden(stage: Stage) -> AsyncGenerator[Situation]:
    """Somebody is logged in, and may not do this (recording 25 with another user)."""
    said = (
        'pods is forbidden: User "system:serviceaccount:web:shop" cannot list resource "pods" '
        'in API group "" in the namespace "web"'
    )
    async with ApiServer(token=CANARY) as server:
        server.faults.status(403, reason="Forbidden", message=said, resource="pods")
        yield Situation(stage.kubeconfig(server.url), server.url.removeprefix("http://"))


@asynccontextmanager
async def anonymous(stage: Stage) -> AsyncGenerator[Situation]:
    async with ApiServer() as server:
        server.faults.forbid(resource="pods")
        yield Situation(stage.kubeconfig(server.url), server.url.removeprefix("http://"))


@asynccontextmanager
async def locked(stage: Stage) -> AsyncGenerator[Situation]:
    async with ApiServer() as server:
        server.faults.forbid()
        yield Situation(stage.kubeconfig(server.url), server.url.removeprefix("http://"))
