"""Explicit servers, and what never changes."""

from __future__ import annotations

import ssl

import pytest
from yarl import URL

from aioinformer import Client
from aioinformer._client.auth.authenticator import Authenticator
from aioinformer._client.auth.credentials import (
    Credentials,
    ExplicitServer,
    FixedAuthorization,
    FixedTls,
    create_ssl_context,
    parse_server_url,
)
from aioinformer._client.auth.proxies import Proxy
from aioinformer.errors import ConfigurationError
from tests.client.conftest import Certificates
from tests.client.kubeconfigs import CANARY, error_chain_text

SERVER = URL("https://10.0.0.1:6443")


async def test_an_explicit_token_is_a_bearer_token() -> None:
    credentials = await ExplicitServer(SERVER, "abc").load()

    assert await credentials.authorization.header() == "Bearer abc"
    assert await credentials.authorization.header(rejected="Bearer abc") == "Bearer abc"


async def test_no_token_is_no_header() -> None:
    credentials = await ExplicitServer(SERVER).load()

    assert await credentials.authorization.header() == ""


async def test_https_without_a_context_trusts_the_authorities_of_the_system() -> None:
    tls = (await ExplicitServer(SERVER).load()).tls

    assert tls is not None
    context = await tls.context()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert await tls.context(failed=context) is context


async def test_an_explicit_server_has_the_proxy_of_the_environment() -> None:
    environment = {"HTTPS_PROXY": "http://proxy.example:3128"}

    proxy = (await ExplicitServer(SERVER, environment=environment).load()).proxy

    assert proxy == Proxy(URL("http://proxy.example:3128"), variable="HTTPS_PROXY")


async def test_plain_http_needs_no_certificates() -> None:
    assert (await ExplicitServer(URL("http://10.0.0.1"), "abc").load()).tls is None


@pytest.mark.parametrize("token", ["abc\n", "abc def", "a\r\nX-Evil: 1", "abc\0"])
def test_a_token_of_several_words_is_rejected_without_being_shown(token: str) -> None:
    with pytest.raises(ValueError, match="a token is one word") as caught:
        ExplicitServer(SERVER, token)
    assert "abc" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "10.0.0.1:6443",
        "ftp://host",
        "https://",
        "unix:///run/api",
        "http://[bad",
        "http://xn--a",
    ],
)
def test_a_server_that_is_no_http_url_is_a_configuration_error(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"a server is a URL such as https://10\.0\.0\.1"):
        parse_server_url(text)


@pytest.mark.parametrize(
    "address", ["fd00::1", "fd00::1:6443", "::1:6443", "::ffff:10.0.0.1:443", "fe80::1%eth0:1"]
)
@pytest.mark.parametrize("form", ["https://{}", "http://{}/k8s", "{}", "https://[{}"])
def test_the_error_for_an_ipv6_address_without_brackets_shows_how_it_is_written(
    address: str, form: str
) -> None:
    text = form.format(address)
    with pytest.raises(ConfigurationError) as caught:
        parse_server_url(text)
    assert str(caught.value) == (
        f"a server is a URL such as https://10.0.0.1:6443, not {text!r}: an IPv6 address is "
        "written in brackets, as in https://[fd00::1]:6443"
    )


@pytest.mark.parametrize(
    "text", ["https://host:123456", "https://host:port", "https://10.0.0.1:6443:1"]
)
def test_the_error_for_another_url_says_nothing_of_ipv6(text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_server_url(text)
    assert "IPv6" not in str(caught.value)


def test_the_error_quotes_an_invalid_server_url() -> None:
    with pytest.raises(ConfigurationError, match=r"6443, not '10\.0\.0\.1:6443'$"):
        parse_server_url("10.0.0.1:6443")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ftp://admin:canary@host.example", "not the given URL of host.example"),
        ("ftp://host.example?token=canary", "not the given URL of host.example"),
        ("http://admin:canary@[bad", "not the given text"),
        ("admin:canary@host", "not the given text"),
    ],
)
def test_the_error_does_not_quote_an_invalid_server_url_that_contains_a_secret(
    text: str, shown: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_server_url(text)
    assert str(caught.value).endswith(shown)
    assert "canary" not in str(caught.value)


def test_a_password_in_a_server_url_is_rejected_without_being_shown() -> None:
    with pytest.raises(ConfigurationError, match=r"server host\.example contains a user") as caught:
        parse_server_url("https://admin:canary@host.example")
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("text", ["https://host:1/?access_token=canary", "https://host#canary"])
def test_a_query_in_a_server_url_is_rejected_without_being_shown(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"server host contains a query") as caught:
        Client(text)
    assert "canary" not in error_chain_text(caught.value)


async def test_no_repr_shows_the_query_of_a_server_that_another_source_names() -> None:
    class Source:
        async def load(self) -> Credentials:
            return Credentials(SERVER.with_query(token=CANARY), FixedAuthorization())

    credentials = await Source().load()
    async with Client.of(Source()) as client:
        shown = [repr(client), client.server]
    shown += [repr(credentials), repr(Authenticator(credentials, timeout=1))]
    assert CANARY not in "".join(shown)
    assert credentials.server == SERVER


def test_a_slash_at_the_end_of_a_server_url_is_removed() -> None:
    assert str(parse_server_url("https://host/k8s/")) == "https://host/k8s"


@pytest.mark.parametrize("port", ["99999", "x"])
def test_an_invalid_port_is_named(port: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^the port of 'https://a:\w+' is not a number"):
        parse_server_url(f"https://a:{port}")


def test_the_error_for_an_invalid_port_shows_no_password() -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_server_url(f"https://me:{CANARY}@a:99999")

    assert CANARY not in error_chain_text(caught.value)


def test_the_description_of_credentials_has_the_server_and_the_origin() -> None:
    fixed = FixedAuthorization()

    assert Credentials(SERVER, fixed).description == str(SERVER).rstrip("/")
    assert CANARY not in Credentials(SERVER.with_query(token=CANARY), fixed).description
    assert Credentials(SERVER, fixed, origin="config").description.endswith(" (config)")


def test_no_repr_shows_a_secret() -> None:
    fixed = FixedAuthorization("Bearer canary")
    shown = [
        fixed,
        ExplicitServer(SERVER, "canary"),
        Credentials(SERVER, fixed, proxy=Proxy(URL("http://proxy"), "Basic canary")),
    ]

    assert not any("canary" in repr(each) for each in shown)
    assert "10.0.0.1" in repr(shown[-1])


async def test_closing_fixed_credentials_has_no_effect() -> None:
    tls = FixedTls(create_ssl_context())
    credentials = Credentials(SERVER, FixedAuthorization("Bearer abc"), tls)

    await credentials.aclose()

    assert await credentials.authorization.header() == "Bearer abc"
    assert await tls.context() is tls.value


def test_a_clusters_own_certificate_is_not_checked_more_strictly_than_by_kubectl(
    certificates: Certificates,
) -> None:
    context = create_ssl_context(certificates.authority_pem)

    assert not context.verify_flags & ssl.VERIFY_X509_STRICT
    assert len(context.get_ca_certs()) == 1


@pytest.mark.parametrize("authority", [b"", "§".encode(), b"nonsense"])
def test_an_authority_without_certificates_is_an_error(authority: bytes) -> None:
    with pytest.raises(ValueError, match="no certificate that can be used"):
        create_ssl_context(authority)
