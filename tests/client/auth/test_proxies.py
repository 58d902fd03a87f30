"""Proxies, from URLs and from the environment."""

from __future__ import annotations

import asyncio
import sys

import pytest
from yarl import URL

from aioinformer import Client
from aioinformer._client.auth.proxies import Proxy, find_environment_proxy, parse_proxy_url
from aioinformer.errors import ConfigurationError, ConnectionFailed, ConnectionLost
from tests.client.kubeconfigs import CANARY, error_chain_text
from tests.client.servers import free_address, http_server, tcp_server
from tests.client.transports import PONG, pong

PROXY = "http://proxy.example:3128"


def test_the_password_of_a_proxy_is_removed_from_its_url() -> None:
    proxy = parse_proxy_url("http://user:pa%3Ass@proxy.example:3128")

    assert str(proxy.url) == "http://proxy.example:3128"
    assert proxy.authorization == "Basic dXNlcjpwYTpzcw=="  # user:pa:ss


def test_a_proxy_without_a_user_needs_no_header() -> None:
    assert parse_proxy_url("http://proxy.example:3128") == Proxy(URL("http://proxy.example:3128"))


@pytest.mark.parametrize(
    "text", ["socks4://proxy:1080", "proxy:3128", "http://[bad", "socks5:", "http://xn--a"]
)
def test_a_proxy_that_is_no_http_proxy_is_rejected(text: str) -> None:
    with pytest.raises(ConfigurationError, match="a proxy is a URL such as"):
        parse_proxy_url(text)


@pytest.mark.parametrize("text", ["http://fd00::1:3128", "http://me:secret@::1", "fd00::1:3128"])
def test_the_error_for_an_ipv6_address_without_brackets_shows_how_it_is_written(text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_proxy_url(text)
    assert str(caught.value) == (
        "a proxy is a URL such as http://10.0.0.1:3128 or socks5://10.0.0.1:1080: an IPv6 address "
        "is written in brackets, as in http://[fd00::1]:3128"
    )


def test_the_login_of_a_socks_proxy_is_removed_from_its_url() -> None:
    proxy = parse_proxy_url(f"socks5://me:{CANARY}@proxy")

    assert (str(proxy.url), proxy.login) == ("socks5://proxy:1080", ("me", CANARY))
    assert CANARY not in repr(proxy)


@pytest.mark.parametrize("login", ["me", f"me:{CANARY * 30}", f"me:{CANARY}%C3%A9"])
def test_a_login_that_socks_can_not_send_is_rejected(login: str) -> None:
    with pytest.raises(ConfigurationError, match="have 1 to 255 ASCII characters") as caught:
        parse_proxy_url(f"socks5://{login}@proxy")
    assert CANARY not in error_chain_text(caught.value)


def test_a_socks_proxy_requires_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "python_socks", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'aioinformer\[socks\]'"):
        parse_proxy_url("socks5://proxy")


# -- the environment ---------------------------------------------------------------------------


def found(server: str, **environment: str) -> str:
    """Return the URL of the proxy of a server; empty for none."""
    proxy = find_environment_proxy(URL(server), environment)
    return str(proxy.url) if proxy else ""


def test_the_scheme_of_the_server_chooses_the_variable() -> None:
    both = {"HTTPS_PROXY": "http://a:1", "HTTP_PROXY": "http://b:1"}
    assert found("https://example.com", **both) == "http://a:1"
    assert found("http://example.com", **both) == "http://b:1"
    assert found("https://example.com", HTTP_PROXY="http://b:1") == ""
    assert found("https://example.com", HTTPS_PROXY="", https_proxy="http://a:1") == "http://a:1"
    assert found("https://example.com", https_proxy="http://c:1", **both) == "http://a:1"


def test_a_proxy_without_a_scheme_is_an_http_proxy_and_its_password_is_not_in_its_url() -> None:
    proxy = find_environment_proxy(
        URL("https://example.com"), {"https_proxy": f"me:{CANARY}@proxy.example:3128"}
    )

    assert proxy is not None
    assert str(proxy.url) == PROXY
    assert proxy.authorization.startswith("Basic ")
    assert proxy.description == "the proxy proxy.example:3128 (from $https_proxy)"
    assert CANARY not in repr(proxy)


@pytest.mark.parametrize("text", [f"socks4://me:{CANARY}@a:1", f"http://me:{CANARY}@[bad"])
def test_a_variable_that_names_no_http_proxy_is_an_error_where_a_proxy_is_needed(text: str) -> None:
    with pytest.raises(
        ConfigurationError, match=r"^\$HTTPS_PROXY can't be used for a\.b: "
    ) as caught:
        found("https://a.b", HTTPS_PROXY=text)
    assert CANARY not in error_chain_text(caught.value)
    assert found("https://a.b", HTTPS_PROXY=text, NO_PROXY="a.b") == ""


def test_a_cgi_program_takes_no_proxy_from_the_headers_of_its_request() -> None:
    cgi = {"REQUEST_METHOD": "GET", "HTTP_PROXY": PROXY}
    assert found("http://example.com", **cgi) == ""
    assert found("http://example.com", http_proxy="http://a:1", **cgi) == "http://a:1"


@pytest.mark.parametrize(
    "server",
    ["localhost", "localhost:6443", "127.0.0.1", "127.0.0.2:6443", "[::1]", "[::ffff:127.0.0.1]"],
)
def test_a_loopback_server_has_no_proxy(server: str) -> None:
    assert found(f"https://{server}", HTTPS_PROXY=PROXY) == ""


# The rows of Go's own test of the package httpproxy, and some more.
NO_PROXY = (
    "foobar.com, .barbaz.net, *.wild.example, 192.168.1.1, 192.168.1.2:81, 192.168.1.3:443, "
    "10.0.0.0/30, 2001:db8::52:0:1, [2001:db8::52:0:2]:443, [2001:db8::52:0:3]:81, "
    "2002:db8:a::45/64, ported.example:6443, :80, 10.1.0.0/x"
)


@pytest.mark.parametrize(
    ("server", "needed"),
    [
        ("[::2]", True),
        ("barbaz.net", True),
        ("www.barbaz.net", False),
        ("foobar.com", False),
        ("FOOBAR.com", False),
        ("www.foobar.com:6443", False),
        ("foofoobar.com", True),
        ("baz.com", True),
        ("wild.example", True),
        ("a.wild.example", False),
        ("localhost.net", True),
        ("local.localhost", True),
        ("192.168.1.1", False),
        ("192.168.1.2", True),
        ("192.168.1.3", False),
        ("192.168.1.4", True),
        ("10.0.0.2", False),
        ("10.0.0.4", True),
        ("10.1.0.1", True),
        ("[2001:db8::52:0:1]", False),
        ("[2001:db8::52:0:2]", False),
        ("[2001:db8::52:0:2]:6443", True),
        ("[2001:db8::52:0:3]", True),
        ("[2002:db8:a::123]", False),
        ("[fe80::424b:c8be:1643:a1b6]", True),
        ("ported.example", True),
        ("ported.example:6443", False),
        ("a.ported.example:6443", False),
    ],
)
@pytest.mark.parametrize("variable", ["NO_PROXY", "no_proxy"])
def test_no_proxy_names_the_servers_without_proxy(server: str, needed: bool, variable: str) -> None:
    environment = {"HTTPS_PROXY": PROXY, variable: NO_PROXY}
    assert bool(found(f"https://{server}", **environment)) is needed
    assert found(f"https://{server}", HTTPS_PROXY=PROXY, NO_PROXY="x.example,*") == ""


async def test_a_client_sends_its_requests_through_the_proxy_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with http_server(pong) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy)
        async with Client("http://kubernetes.example") as client:
            assert await client.get_raw("/version") == PONG


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
