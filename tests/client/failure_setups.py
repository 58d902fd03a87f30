"""Real servers, files and certificates that cause the common errors of beginners."""

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
from tests.client.kubeconfigs import encode_base64, make_kubeconfig, write_kubeconfig
from tests.client.servers import free_address, http_server
from tests.client.transports import pong

CANARY = "canary-88b0"
"""The token in every kubeconfig of this module. No error may contain it."""

NOT_BEFORE = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
NOT_AFTER = dt.datetime(2020, 4, 1, tzinfo=dt.UTC)
"""The validity of the expired certificates."""

UNKNOWN_HOST = "no-such-host.invalid"


@dataclass(frozen=True, slots=True)
class FailureSetup:
    """The resources from which a failure is built."""

    folder: Path
    certificates: Certificates

    def kubeconfig(self, server: str, **more: Any) -> str:
        """Write a kubeconfig for a server that trusts the authority of the certificates."""
        trust = encode_base64(self.certificates.authority_pem)
        cluster: Mapping[str, Any] = {"server": server, "certificate-authority-data": trust}
        return str(
            write_kubeconfig(
                self.folder, make_kubeconfig(cluster=cluster, user={"token": CANARY} | more)
            )
        )


@dataclass(frozen=True, slots=True)
class FailureContext:
    """The kubeconfig and address of a failure, which its message may name."""

    file: str
    address: str = ""
    """The server's address; for an unknown host, the text of the system's error."""


@asynccontextmanager
async def working_server(stage: FailureSetup) -> AsyncGenerator[FailureContext]:
    """Run a working server and write its kubeconfig."""
    async with ApiServer(token=CANARY) as server:
        yield FailureContext(stage.kubeconfig(server.url), server.url.removeprefix("http://"))


@asynccontextmanager
async def no_file(stage: FailureSetup) -> AsyncGenerator[FailureContext]:
    yield FailureContext(str(stage.folder / "config"))


@asynccontextmanager
async def no_plugin(stage: FailureSetup) -> AsyncGenerator[FailureContext]:
    exec_ = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "kubectl-shop-login",
        "installHint": "brew install shop-login",
        "interactiveMode": "Never",
    }
    config = make_kubeconfig(user={"exec": exec_})
    yield FailureContext(str(write_kubeconfig(stage.folder, config)))


@asynccontextmanager
async def nobody_listens(stage: FailureSetup) -> AsyncGenerator[FailureContext]:
    address = await free_address()
    yield FailureContext(stage.kubeconfig(f"https://{address}"), address)


@asynccontextmanager
async def no_such_host(stage: FailureSetup) -> AsyncGenerator[FailureContext]:
    reason = ""
    try:
        await asyncio.get_running_loop().getaddrinfo(UNKNOWN_HOST, 6443)
    except socket.gaierror as error:  # the text differs without any network
        reason = str(error.strerror)
    yield FailureContext(stage.kubeconfig(f"https://{UNKNOWN_HOST}:6443"), reason)


@asynccontextmanager
async def tls_server(
    stage: FailureSetup, tls: ssl.SSLContext | None
) -> AsyncGenerator[FailureContext]:
    async with http_server(pong, tls=tls) as server:
        address = server.partition("://")[2]
        yield FailureContext(stage.kubeconfig(f"https://{address}"), address)


def expired_server_certificate(stage: FailureSetup) -> AbstractAsyncContextManager[FailureContext]:
    authority = stage.certificates.authority
    leaf = authority.issue_cert("127.0.0.1", not_before=NOT_BEFORE, not_after=NOT_AFTER)
    return tls_server(stage, stage.certificates.server_context(leaf))


def unknown_server_authority(stage: FailureSetup) -> AbstractAsyncContextManager[FailureContext]:
    leaf = trustme.CA().issue_cert("127.0.0.1")
    return tls_server(stage, stage.certificates.server_context(leaf))


def wrong_server_name(stage: FailureSetup) -> AbstractAsyncContextManager[FailureContext]:
    leaf = stage.certificates.authority.issue_cert("kubernetes.example")
    return tls_server(stage, stage.certificates.server_context(leaf))


@asynccontextmanager
async def mutual_tls_server(
    stage: FailureSetup, user: trustme.LeafCert | None
) -> AsyncGenerator[FailureContext]:
    """Run a server that requires a client certificate; the kubeconfig contains ``user``."""
    tls = stage.certificates.server_context()
    tls.verify_mode = ssl.CERT_REQUIRED
    tls.load_verify_locations(cadata=stage.certificates.authority_pem.decode())
    pair: dict[str, str] = {}
    if user is not None:
        pair["client-certificate-data"] = encode_base64(user.cert_chain_pems[0].bytes())
        pair["client-key-data"] = encode_base64(user.private_key_pem.bytes())
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=accept_handshakes, args=(listening, tls))
        thread.start()
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        try:
            yield FailureContext(stage.kubeconfig(f"https://{address}", **pair), address)
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            await asyncio.to_thread(thread.join)


def accept_handshakes(listening: socket.socket, tls: ssl.SSLContext) -> None:
    """Accept TLS handshakes until the socket is closed.

    This runs in a thread, because a server of asyncio sends no alert when it rejects a certificate,
    and other servers do.
    """
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        with tls.wrap_socket(connection, True, do_handshake_on_connect=False) as wrapped:
            with suppress(OSError):
                wrapped.do_handshake()
            with suppress(OSError):  # until the client has read the alert and closes the connection
                while socket.socket.recv(wrapped, 4096):
                    pass


def no_client_certificate(stage: FailureSetup) -> AbstractAsyncContextManager[FailureContext]:
    return mutual_tls_server(stage, None)


def expired_client_certificate(stage: FailureSetup) -> AbstractAsyncContextManager[FailureContext]:
    authority = stage.certificates.authority
    return mutual_tls_server(
        stage, authority.issue_cert("user@example", not_before=NOT_BEFORE, not_after=NOT_AFTER)
    )


def unknown_client_authority(stage: FailureSetup) -> AbstractAsyncContextManager[FailureContext]:
    return mutual_tls_server(stage, trustme.CA().issue_cert("user@example.com"))


def https_to_http(stage: FailureSetup) -> AbstractAsyncContextManager[FailureContext]:
    return tls_server(stage, None)


@asynccontextmanager
async def http_to_https(stage: FailureSetup) -> AsyncGenerator[FailureContext]:
    """Go's HTTP server, which kube-apiserver uses, answers in plain HTTP."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        text = b"Client sent an HTTP request to an HTTPS server.\n"
        writer.write(b"HTTP/1.0 400 Bad Request\r\n\r\n" + text)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield FailureContext(stage.kubeconfig(f"http://{address}"), address)


@asynccontextmanager
async def wrong_token(stage: FailureSetup) -> AsyncGenerator[FailureContext]:
    async with ApiServer(token="another") as server:
        yield FailureContext(stage.kubeconfig(server.url), server.url.removeprefix("http://"))


@asynccontextmanager
async def forbidden(stage: FailureSetup) -> AsyncGenerator[FailureContext]:
    """Deny an authenticated user the request."""
    text = (
        'pods is forbidden: User "system:serviceaccount:web:shop" cannot list resource "pods" '
        'in API group "" in the namespace "web"'
    )
    async with ApiServer(token=CANARY) as server:
        server.faults.status(403, reason="Forbidden", message=text, resource="pods")
        yield FailureContext(stage.kubeconfig(server.url), server.url.removeprefix("http://"))


@asynccontextmanager
async def anonymous(stage: FailureSetup) -> AsyncGenerator[FailureContext]:
    async with ApiServer() as server:
        server.faults.forbid(resource="pods")
        yield FailureContext(stage.kubeconfig(server.url), server.url.removeprefix("http://"))


@asynccontextmanager
async def everything_forbidden(stage: FailureSetup) -> AsyncGenerator[FailureContext]:
    async with ApiServer() as server:
        server.faults.forbid()
        yield FailureContext(stage.kubeconfig(server.url), server.url.removeprefix("http://"))
