"""Requests through a SOCKS5 proxy: a small real one."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from traceback import TracebackException
from typing import Any

import pytest
from aiohttp import web
from yarl import URL

from aioinformer import Client
from aioinformer.errors import ConnectionFailed, RequestTimedOut
from tests.client.accelerated_time import in_accelerated_time
from tests.client.conftest import Certificates
from tests.client.kubeconfigs import encode_base64, make_kubeconfig, write_kubeconfig
from tests.client.servers import (
    ConnectionHandler,
    free_address,
    http_server,
    start_response,
    tcp_server,
)
from tests.client.transports import (
    CANARY,
    PONG,
    SHORT_TIMEOUTS,
    Verb,
    client_of,
    error_texts,
    pong,
    proxied_client,
    read,
    read_error,
    system_sockets,
    wait_closed,
    watching,
)

NAME = "kubernetes.example"
LOGIN = ("me", CANARY)


@dataclass
class SocksProxy:
    """A proxy that knows one name, for 127.0.0.1."""

    login: tuple[str, str] | None = None
    code: int = 0
    """Its answer to each request; 0 to connect."""
    bound: bytes = b"\x01\x7f\x00\x00\x01"
    requests: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        version, count = await reader.readexactly(2)
        methods = await reader.readexactly(count)
        assert version == 5
        method = 0 if self.login is None else 2
        writer.write(bytes([5, method if method in methods else 0xFF]))
        if self.login is not None and method in methods:
            assert await reader.readexactly(1) == b"\x01"
            given = (await read_word(reader), await read_word(reader))
            writer.write(bytes([1, given != self.login]))
        _, _, _, kind = await reader.readexactly(4)
        if kind == 3:
            host = await read_word(reader)
        else:
            family, length = (socket.AF_INET, 4) if kind == 1 else (socket.AF_INET6, 16)
            host = socket.inet_ntop(family, await reader.readexactly(length))
        port = int.from_bytes(await reader.readexactly(2), "big")
        self.requests.append((host, port))
        writer.write(bytes([5, self.code, 0]) + self.bound + b"\x00\x01")
        if self.code:
            return
        onward_reader, onward_writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            async with asyncio.TaskGroup() as both_ways:
                both_ways.create_task(pump(reader, onward_writer))
                both_ways.create_task(pump(onward_reader, writer))
        finally:
            onward_writer.transport.abort()


async def read_word(reader: asyncio.StreamReader) -> str:
    (length,) = await reader.readexactly(1)
    return (await reader.readexactly(length)).decode()


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.transport.abort()


@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
@pytest.mark.parametrize("login", [None, LOGIN], ids=["no login", "login"])
@pytest.mark.parametrize("host", [NAME, "127.0.0.1", "[::1]"])
@pytest.mark.parametrize("verb", ["list", "watch"])
async def test_a_request_goes_through_the_proxy_which_looks_up_the_name(
    scheme: str, login: tuple[str, str] | None, host: str, verb: Verb, certificates: Certificates
) -> None:
    leaf = certificates.authority.issue_cert(NAME, "127.0.0.1", "::1")
    it = SocksProxy(login)
    user = f"{login[0]}:{login[1]}@" if login else ""
    async with (
        http_server(pong, tls=certificates.server_context(leaf)) as server,
        tcp_server(it.talk) as address,
        proxied_client(
            f"{scheme}://{user}{address}",
            server.replace("127.0.0.1", host),
            certificates=certificates,
        ) as client,
    ):
        assert await read(client, verb) == PONG
    assert it.requests == [(host.strip("[]"), URL(server).port)]


@pytest.mark.parametrize("bound", [b"\x03\x05proxy", b"\x04" + bytes(16)], ids=["name", "IPv6"])
async def test_a_server_without_tls_is_reached(bound: bytes) -> None:
    it = SocksProxy(bound=bound)
    async with (
        http_server(pong) as server,
        tcp_server(it.talk) as address,
        proxied_client(f"socks5://{address}", server.replace("127.0.0.1", NAME)) as client,
    ):
        for _ in range(3):
            assert await read(client) == PONG
    assert len(it.requests) == 1, "the connection is kept"


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_the_connection_to_the_proxy_is_probed() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = await start_response(request, b"event\n")
        await asyncio.Event().wait()
        return response

    async with (
        http_server(answer) as server,
        tcp_server(SocksProxy().talk) as address,
        proxied_client(f"socks5://{address}", server) as client,
        watching(client) as body,
    ):
        await anext(body)
        there = f":{int(address.rpartition(':')[2]):04X}"
        timers = [
            line[5][:3] for line in system_sockets() if line[2].endswith(there) and line[3] == "01"
        ]
    assert timers == ["02:"]


async def test_the_certificate_is_checked_behind_the_proxy(certificates: Certificates) -> None:
    it = SocksProxy()
    async with (
        http_server(pong, tls=certificates.server_context()) as server,
        tcp_server(it.talk) as address,
    ):
        named = server.replace("127.0.0.1", NAME)
        proxy = f"socks5://{address}"
        async with proxied_client(proxy, named, certificates=certificates) as client:
            error = await read_error(client)
        assert "the server's certificate was not accepted: Hostname mismatch" in str(error)
        async with proxied_client(
            proxy, named, certificates=certificates, tls_server_name="127.0.0.1"
        ) as client:
            assert await read(client) == PONG


async def not_socks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    await wait_closed(reader)


async def closing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)


async def no_method(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"\x05\xff")
    await wait_closed(reader)


CAN_NOT_CONNECT = f"it can't connect to {NAME}: "
HINT = (
    ": does it speak SOCKS5, and has its URL the right user and password, if it requires them "
    "(socks5://user:password@...)?"
)
FAILURES: dict[str, tuple[ConnectionHandler, str]] = {
    "forbidden": (
        SocksProxy(code=2).talk,
        f"{CAN_NOT_CONNECT}Connection not allowed by ruleset",
    ),
    "refused": (
        SocksProxy(code=5).talk,
        f"{CAN_NOT_CONNECT}Connection refused by destination host",
    ),
    "general": (SocksProxy(code=1).talk, f"{CAN_NOT_CONNECT}General SOCKS server failure"),
    "malformed": (SocksProxy(bound=b"\x03\x01\xff").talk, f"{CAN_NOT_CONNECT}a name is malformed"),
    "another login": (
        SocksProxy(("me", "another")).talk,
        f"Username and password authentication failure{HINT}",
    ),
    "an HTTP server": (not_socks, f"Unexpected SOCKS version number: 72{HINT}"),
    "closed": (closing, f"Connection closed unexpectedly{HINT}"),
    "no known login": (
        no_method,
        f"No acceptable authentication methods were offered{HINT}",
    ),
}


@pytest.mark.parametrize(("talk", "fault"), FAILURES.values(), ids=FAILURES)
async def test_the_error_of_the_proxy_names_it_and_the_reason(
    talk: ConnectionHandler, fault: str
) -> None:
    async with (
        tcp_server(talk) as address,
        proxied_client(f"socks5://me:{CANARY}@{address}", f"http://{NAME}") as client,
    ):
        error = await read_error(client)

    assert type(error) is ConnectionFailed
    assert str(error).startswith(f"{NAME}:80: the proxy {address} failed: {fault} (")
    assert not any(CANARY in text for text in error_texts(error))
    shown = TracebackException.from_exception(error, capture_locals=True).format()
    assert not any(CANARY in each for each in shown if "test_socks.py" not in each)


async def test_an_unreachable_proxy_is_named() -> None:
    address = await free_address()
    async with proxied_client(f"socks5://{address}", f"http://{NAME}") as client:
        error = await read_error(client)

    assert type(error) is ConnectionFailed
    assert f"the proxy {address} can't be reached: Connection refused" in str(error)


@in_accelerated_time
async def test_a_silent_proxy_is_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await wait_closed(reader)

    async with tcp_server(talk) as address:
        monkeypatch.setenv("HTTP_PROXY", f"socks5://{address}")
        async with client_of(f"http://{NAME}", timeouts=SHORT_TIMEOUTS) as client:
            error = await read_error(client)

    assert type(error) is RequestTimedOut
    assert f"; the request went through the proxy {address}" in str(error)


async def test_a_kubeconfig_and_the_environment_may_name_the_proxy(
    tmp_path: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = SocksProxy()
    leaf = certificates.authority.issue_cert(NAME)
    async with (
        http_server(pong, tls=certificates.server_context(leaf)) as server,
        tcp_server(it.talk) as address,
    ):
        cluster = {
            "server": server.replace("127.0.0.1", NAME),
            "certificate-authority-data": encode_base64(certificates.authority_pem),
        }
        proxy = f"socks5://{address}"
        own = make_kubeconfig(cluster={**cluster, "proxy-url": proxy})
        async with Client.connect(kubeconfig=write_kubeconfig(tmp_path, own)) as client:
            assert await client.get_raw("/version") == PONG
        monkeypatch.setenv("HTTPS_PROXY", proxy)
        path = write_kubeconfig(tmp_path, make_kubeconfig(cluster=cluster))
        async with Client.connect(kubeconfig=path) as client:
            assert await client.get_raw("/version") == PONG
    assert [host for host, _ in it.requests] == [NAME, NAME]


async def test_a_proxy_with_several_addresses_is_reached_at_another_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ask_system = socket.getaddrinfo

    def look_up(host: str, port: int, *args: Any, **options: Any) -> Sequence[Any]:
        assert host == "proxy.example"
        return [
            found
            for address in ("127.0.0.2", "127.0.0.1")
            for found in ask_system(address, port, *args, **options)
        ]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    it = SocksProxy()
    async with http_server(pong) as server, tcp_server(it.talk) as address:
        port = address.rpartition(":")[2]
        async with proxied_client(
            f"socks5://proxy.example:{port}", server.replace("127.0.0.1", NAME)
        ) as client:
            assert await read(client) == PONG


async def test_the_login_of_the_proxy_is_not_sent_to_the_server() -> None:
    heads = list[bytes]()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        await wait_closed(reader)

    it = SocksProxy(LOGIN)
    async with tcp_server(talk) as server, tcp_server(it.talk) as address:
        proxy = f"socks5://me:{CANARY}@{address}"
        async with proxied_client(proxy, f"http://{server}") as client:
            await read(client)
    assert b"Authorization" not in heads[0]
