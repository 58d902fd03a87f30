"""The server and the token that a program gives."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer import Client
from aioinformer.errors import ConfigurationError
from tests.client.kubeconfigs import CANARY, error_chain_text

SERVER = "https://10.0.0.1:6443"


@pytest.mark.parametrize("token", ["abc\n", "abc def", "a\r\nX-Evil: 1", "abc\0"])
def test_a_token_of_several_words_is_rejected_without_being_shown(token: str) -> None:
    with pytest.raises(ValueError, match="a token is one word") as caught:
        Client(SERVER, token=token)
    assert "abc" not in str(caught.value)
    assert str(caught.value).endswith(": pass token.strip()")


def test_a_token_of_bytes_is_rejected_without_being_shown() -> None:
    token: Any = b"abc"
    with pytest.raises(TypeError, match=r"token must be a str, not bytes$"):
        Client(SERVER, token=token)


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
        Client(text)
    assert str(caught.value) == (
        f"a server is a URL such as https://10.0.0.1:6443, not {text!r}: an IPv6 address is "
        "written in brackets, as in https://[fd00::1]:6443"
    )
