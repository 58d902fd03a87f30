"""The proxy that the environment names for a server, and the login in the URL of a proxy."""

from __future__ import annotations

import pytest
from yarl import URL

from aioinformer._client.auth.proxies import Proxy, find_environment_proxy, parse_proxy_url
from aioinformer.errors import ConfigurationError
from tests.client.kubeconfigs import CANARY, error_chain_text

PROXY = "http://proxy.example:3128"


def test_a_proxy_without_a_user_needs_no_header() -> None:
    assert parse_proxy_url("http://proxy.example:3128") == Proxy(URL("http://proxy.example:3128"))


def test_the_login_of_a_socks_proxy_is_removed_from_its_url() -> None:
    proxy = parse_proxy_url(f"socks5://me:{CANARY}@proxy")

    assert (str(proxy.url), proxy.login) == ("socks5://proxy:1080", ("me", CANARY))
    assert CANARY not in repr(proxy)


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
