"""TLS and proxies between the client and its server."""

from __future__ import annotations

import asyncio
import gc
import ssl
from typing import Any

import pytest
from aiohttp import web

from aioinformer import Client
from aioinformer.errors import ConnectionFailed, ConnectionLost, FetchError, ProtocolError
from tests.client.conftest import Certificates
from tests.client.kubeconfigs import encode_base64
from tests.client.servers import free_address, http_server, tcp_server
from tests.client.transports import (
    CANARY,
    PONG,
    Verb,
    client_of,
    error_texts,
    pong,
    proxied_client,
    read,
    read_error,
    watching,
)

# -- TLS ---------------------------------------------------------------------------------------


async def test_a_trusted_server_is_connected_to(certificates: Certificates) -> None:
    async with (
        http_server(pong, tls=certificates.server_context()) as server,
        client_of(server, tls=certificates.client_context()) as client,
    ):
        assert await read(client) == PONG


async def test_the_error_for_an_untrusted_certificate_names_the_failed_check(
    certificates: Certificates,
) -> None:
    async with (
        http_server(pong, tls=certificates.server_context()) as server,
        client_of(server, tls=ssl.create_default_context()) as client,
    ):
        error = await read_error(client)

    assert type(error) is ConnectionFailed
    assert "the server's certificate was not accepted: " in str(error)
    assert "certificate" in str(error).partition("accepted: ")[2]


async def test_the_error_for_a_certificate_of_another_name_states_the_mismatch(
    certificates: Certificates,
) -> None:
    other = certificates.authority.issue_cert("kubernetes.example")
    async with (
        http_server(pong, tls=certificates.server_context(other)) as server,
        client_of(server, tls=certificates.client_context()) as client,
    ):
        assert "not valid for '127.0.0.1'" in str(await read_error(client))


@pytest.mark.parametrize(
    ("names", "options"),
    [
        (["kubernetes.example"], {}),
        (["localhost"], {}),
        (["127.0.0.2"], {}),
        (["10.0.0.1", "::1"], {}),
        (["*.0.0.1"], {}),
        ([], {"common_name": "127.0.0.1"}),
        (["user@example.com"], {"common_name": "127.0.0.1"}),
    ],
    ids=["host", "localhost", "address", "addresses", "wildcard", "common name", "person"],
)
async def test_no_request_is_sent_to_a_server_with_a_certificate_of_another_name(
    names: list[str], options: dict[str, Any], certificates: Certificates
) -> None:
    received: list[web.Request] = []

    async def steal(request: web.Request) -> web.Response:
        received.append(request)
        return web.Response(body=PONG)

    other = certificates.authority.issue_cert(*names, **options)
    async with (
        http_server(steal, tls=certificates.server_context(other)) as server,
        Client(server, token="canary", ssl=certificates.client_context()) as client,
    ):
        with pytest.raises(ConnectionFailed, match=r"not valid for '127\.0\.0\.1'"):
            await client.get_raw("/version")
    assert not received


async def test_the_error_for_tls_to_a_plain_http_port_suggests_http(
    certificates: Certificates,
) -> None:
    async with http_server(pong) as server:
        https = server.replace("http://", "https://")
        async with client_of(https, tls=certificates.client_context()) as client:
            error = await read_error(client)

    assert type(error) is ConnectionFailed
    assert "plain HTTP, not TLS: should the server's URL begin with http://?" in str(error)


async def test_the_error_for_plain_http_to_a_tls_port_suggests_https(
    certificates: Certificates,
) -> None:
    async with (
        http_server(pong, tls=certificates.server_context()) as server,
        client_of(server.replace("https://", "http://")) as client,
    ):
        error = await read_error(client)

    assert "should the server's URL begin with https://?" in str(error)


@pytest.mark.parametrize("verb", ["list", "write"])
@pytest.mark.parametrize("fault", [b"", b"no HTTP\r\n\r\n"], ids=["closed", "not HTTP"])
async def test_a_server_that_has_answered_is_not_suspected_of_tls(verb: Verb, fault: bytes) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readuntil(b"\r\n\r\n") and answer:
            writer.write(answer)
        writer.write(fault)
        await writer.drain()

    async with tcp_server(talk) as address, client_of(f"http://{address}") as client:
        await read(client)
        answer = b""
        error = await read_error(client, verb)

    assert isinstance(error, ConnectionLost | ProtocolError)
    assert "https" not in str(error)


# -- proxies -----------------------------------------------------------------------------------


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(2**16):
        writer.write(data)
    writer.write_eof()


async def test_a_proxy_carries_tls_through_a_tunnel(certificates: Certificates) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).split()
        assert head[0] == b"CONNECT"
        host, _, port = head[1].decode().partition(":")
        onward_reader, onward_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        try:
            async with asyncio.TaskGroup() as both_ways:
                both_ways.create_task(pump(reader, onward_writer))
                both_ways.create_task(pump(onward_reader, writer))
        finally:
            onward_writer.transport.abort()

    async with (
        http_server(pong, tls=certificates.server_context()) as server,
        tcp_server(talk) as address,
        proxied_client(f"http://{address}", server, certificates=certificates) as client,
    ):
        assert await read(client) == PONG
        async with watching(client):
            pass
    gc.collect()


@pytest.mark.parametrize(
    ("answer", "kind", "text"),
    [
        (
            b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n",
            ConnectionFailed,
            "the proxy {} answered 407",
        ),
        (
            b"",
            ConnectionLost,
            "the server closed the connection without a response; the request went through the "
            "proxy {}",
        ),
    ],
)
async def test_a_proxy_that_opens_no_tunnel_is_named(
    answer: bytes, kind: type[FetchError], text: str, certificates: Certificates
) -> None:
    heads: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)

    async with (
        tcp_server(talk) as address,
        proxied_client(
            f"http://me:{CANARY}@{address}",
            "https://kubernetes.example",
            certificates=certificates,
        ) as client,
    ):
        error = await read_error(client)

    assert type(error) is kind
    assert text.format(address) in str(error)
    login = encode_base64(f"me:{CANARY}".encode())
    assert f"Proxy-Authorization: Basic {login}".encode() in heads[0]
    assert not any(each in text for text in error_texts(error) for each in (CANARY, login))


async def test_an_unreachable_proxy_is_named() -> None:
    hint = (
        "is it running, and is its URL right (`proxy-url:` in a kubeconfig, else the proxy of the "
        "client that was given)?"
    )
    address = await free_address()
    faults = {address: f"Connection refused; {hint}", "no-such-proxy.invalid:3128": ""}
    for proxy, fault in faults.items():
        async with proxied_client(f"http://{proxy}", "http://kubernetes.example") as client:
            error = await read_error(client)
        assert type(error) is ConnectionFailed
        start = f"kubernetes.example:80: the proxy {proxy} can't be reached: "
        assert str(error).startswith(f"{start}{fault}")
        assert hint in str(error)
