"""Proxies, from URLs and from the environment."""

from __future__ import annotations

import asyncio
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from aioinformer import Client
from aioinformer.errors import ConfigurationError, ConnectionFailed, ConnectionLost
from tests.client.kubeconfigs import (
    CANARY,
    error_chain_text,
    load_error,
    make_kubeconfig,
    write_kubeconfig,
)
from tests.client.servers import free_address, http_server, tcp_server
from tests.client.transports import PONG, pong


async def error_of(folder: Path, proxy: str) -> str:
    """Return the error of a kubeconfig with this proxy."""
    return await load_error(write_kubeconfig(folder, make_kubeconfig(cluster={"proxy-url": proxy})))


@pytest.mark.parametrize(
    "text", ["socks4://proxy:1080", "proxy:3128", "http://[bad", "socks5:", "http://xn--a"]
)
async def test_a_proxy_that_is_no_http_proxy_is_rejected(tmp_path: Path, text: str) -> None:
    assert "a proxy is a URL such as" in await error_of(tmp_path, text)


@pytest.mark.parametrize("text", ["http://fd00::1:3128", "http://me:secret@::1", "fd00::1:3128"])
async def test_the_error_for_an_ipv6_address_without_brackets_shows_how_it_is_written(
    tmp_path: Path, text: str
) -> None:
    assert (await error_of(tmp_path, text)).endswith(
        ": a proxy is a URL such as http://10.0.0.1:3128 or socks5://10.0.0.1:1080: an IPv6 "
        "address is written in brackets, as in http://[fd00::1]:3128"
    )


@pytest.mark.parametrize("login", ["me", f"me:{CANARY * 30}", f"me:{CANARY}%C3%A9"])
async def test_a_login_that_socks_can_not_send_is_rejected(tmp_path: Path, login: str) -> None:
    text = await error_of(tmp_path, f"socks5://{login}@proxy")

    assert "have 1 to 255 ASCII characters" in text


async def test_a_socks_proxy_requires_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "python_socks", None)

    assert "pip install 'aioinformer[socks]'" in await error_of(tmp_path, "socks5://proxy")


# -- the environment ---------------------------------------------------------------------------


async def test_a_client_sends_its_requests_through_the_proxy_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with http_server(pong) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy)
        async with Client("http://kubernetes.example") as client:
            assert await client.get_raw("/version") == PONG


@pytest.mark.parametrize(
    ("host", "proxied"),
    [
        ("barbaz.net", True),
        ("www.barbaz.net", False),
        ("foobar.com", False),
        ("foofoobar.com", True),
        ("wild.example", True),
        ("a.wild.example", False),
        ("10.0.0.4", True),
        ("[fe80::1]", True),
    ],
)
async def test_servers_without_proxy_are_named_in_the_environment(
    host: str, proxied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask_system = socket.getaddrinfo

    def look_up(host: str, *args: Any, **options: Any) -> Any:
        return ask_system("127.0.0.1", *args, **options)

    async def proxy(request: web.Request) -> web.Response:
        return web.Response(text="proxy")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    names = "foobar.com, .barbaz.net, *.wild.example, 10.0.0.0/30, 2001:db8::1, [2001:db8::2]:443"
    monkeypatch.setenv("NO_PROXY", f"{names}, ported.example:6443, 10.1.0.0/x")
    async with http_server(pong) as server, http_server(proxy) as url:
        monkeypatch.setenv("HTTP_PROXY", url.removeprefix("http://"))
        async with Client(server.replace("127.0.0.1", host)) as client:
            assert (await client.get_raw("/version") == b"proxy") is proxied


async def test_a_variable_that_names_no_proxy_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"socks4://me:{CANARY}@a:1")
    with pytest.raises(
        ConfigurationError, match=r"^\$HTTP_PROXY can't be used for a\.b: "
    ) as caught:
        await Client("http://a.b").__aenter__()
    assert CANARY not in error_chain_text(caught.value)
    monkeypatch.setenv("REQUEST_METHOD", "GET")  # a CGI program: a header may set the variable
    async with Client("http://a.b"):
        pass


async def test_the_error_for_an_unreachable_proxy_names_its_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address = await free_address()
    monkeypatch.setenv("HTTPS_PROXY", f"http://me:{CANARY}@{address}")
    async with Client("https://kubernetes.example") as client:
        with pytest.raises(ConnectionFailed) as caught:
            await client.get_raw("/version")

    assert str(caught.value) == (
        f"kubernetes.example:443: the proxy {address} (from $HTTPS_PROXY) can't be reached: "
        "Connection refused; is it running, and is its URL right? A server that needs no proxy is "
        "named in $NO_PROXY"
    )
    assert CANARY not in error_chain_text(caught.value)


async def test_the_error_for_a_request_through_a_proxy_of_the_environment_names_the_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")

    async with tcp_server(close) as address:
        monkeypatch.setenv("http_proxy", f"http://{address}")
        async with Client("http://kubernetes.example") as client:
            with pytest.raises(ConnectionLost) as caught:
                await client.get_raw("/version")

    assert str(caught.value).endswith(
        f"; the request went through the proxy {address} (from $http_proxy)"
    )
