"""Explicit servers, and what never changes."""

from __future__ import annotations

import ssl
from typing import Any

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
    assert str(caught.value).endswith(": pass token.strip()")


def test_a_token_of_bytes_is_rejected_without_being_shown() -> None:
    token: Any = b"abc"
    with pytest.raises(TypeError, match=r"token must be a str, not bytes$"):
        ExplicitServer(SERVER, token)


NO_SERVER = "a server is a URL such as https://10.0.0.1:6443, not "
NO_PORT = "is not a number from 1 to 65535"
LOGIN = (
    "contains a user or password: remove them, and give credentials in a kubeconfig, or as token="
)
QUERY = (
    "contains a query or a fragment (the part after '?' or '#'), which would not be sent: remove "
    "it; a token is not a part of the URL"
)
INVALID_SERVERS = {
    "": f"{NO_SERVER}''",
    "10.0.0.1:6443": f"{NO_SERVER}'10.0.0.1:6443'",
    "ftp://host": f"{NO_SERVER}'ftp://host'",
    "https://": f"{NO_SERVER}'https://'",
    "unix:///run/api": f"{NO_SERVER}'unix:///run/api'",
    "http://[bad": f"{NO_SERVER}'http://[bad'",
    "http://xn--a": f"{NO_SERVER}'http://xn--a'",
    f"ftp://admin:{CANARY}@host.example": f"{NO_SERVER}the given URL of host.example",
    f"ftp://host.example?token={CANARY}": f"{NO_SERVER}the given URL of host.example",
    f"http://admin:{CANARY}@[bad": f"{NO_SERVER}the given text",
    f"admin:{CANARY}@host": f"{NO_SERVER}the given text",
    "https://host:123456": f"the port of 'https://host:123456' {NO_PORT}",
    "https://host:port": f"the port of 'https://host:port' {NO_PORT}",
    "https://10.0.0.1:6443:1": f"the port of 'https://10.0.0.1:6443:1' {NO_PORT}",
    f"https://me:{CANARY}@a:99999": f"the port of the given text {NO_PORT}",
    f"https://admin:{CANARY}@host.example": f"the URL of server host.example {LOGIN}",
    f"https://host:1/?access_token={CANARY}": f"the URL of server host {QUERY}",
    f"https://host#{CANARY}": f"the URL of server host {QUERY}",
}


@pytest.mark.parametrize(("text", "fault"), INVALID_SERVERS.items())
def test_the_error_for_an_invalid_server_names_the_fault_and_shows_no_secret(
    text: str, fault: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Client(text)
    assert str(caught.value) == fault
    assert CANARY not in error_chain_text(caught.value)


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
