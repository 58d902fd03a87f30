"""Exceptions of aiohttp and of the system as errors of this library."""

from __future__ import annotations

import errno
import ssl

import pytest
from aiohttp import ClientPayloadError, ConnectionTimeoutError
from yarl import URL

from aioinformer._client.auth.proxies import Proxy
from aioinformer._client.http.error_mapping import map_request_error, map_response_error
from aioinformer._client.http.hints import (
    describe_certificate_error,
    describe_tls_error,
    hint_for_network_error,
    requires_tls,
)
from aioinformer._client.http.request import ApiRequest
from aioinformer.errors import ConnectionLost, RequestTimedOut, Status

URL_WITH_TOKEN = URL("https://10.0.0.1:6443/api/v1/pods?continue=secret-token")
LIST = ApiRequest("list", "/api/v1/pods")
WATCH = ApiRequest("watch", "/api/v1/pods")


def test_an_error_names_the_path_and_never_the_query() -> None:
    errors = [
        map_request_error(TimeoutError(), URL_WITH_TOKEN, LIST),
        map_request_error(OSError(104, "Connection reset by peer"), URL_WITH_TOKEN, LIST),
        map_response_error(ClientPayloadError("cut"), URL_WITH_TOKEN, LIST),
        map_response_error(TimeoutError(), URL_WITH_TOKEN, LIST),
    ]

    assert all("GET https://10.0.0.1:6443/api/v1/pods:" in str(error) for error in errors)
    assert not any("secret-token" in str(error) for error in errors)


def test_a_response_that_ends_early_is_a_lost_connection() -> None:
    lost = map_response_error(ClientPayloadError("cut"), URL_WITH_TOKEN, WATCH)

    assert type(lost) is ConnectionLost
    assert lost.phase == "watch"


def test_a_response_without_further_data_is_a_timeout() -> None:
    assert type(map_response_error(TimeoutError(), URL_WITH_TOKEN, WATCH)) is RequestTimedOut


def test_an_ipv6_address_is_in_brackets_before_its_port() -> None:
    error = map_request_error(
        ConnectionTimeoutError(), URL("https://[fd00::1]:6443/api/v1/pods"), LIST
    )

    assert str(error).startswith("[fd00::1]:6443: no connection in the time allowed")
    assert Proxy(URL("http://[fd00::2]:3128")).description == "the proxy [fd00::2]:3128"


def test_the_page_of_nginx_that_requires_https_is_recognized() -> None:
    page = "<html><head><title>400 The plain HTTP request was sent to HTTPS port</title></head>"

    assert requires_tls(Status(400, "", page))
    assert not requires_tls(Status(400, "BadRequest", "unable to parse requirement"))


# -- connections -------------------------------------------------------------------------------


def verification(code: int, message: str) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code, error.verify_message = code, message
    return error


def alert(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, "handshake")
    error.reason = reason
    return error


CERTIFICATE = "the server's certificate was not accepted: "


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            hint_for_network_error(OSError(errno.ENETUNREACH, "")),
            "is this machine on the right network, or VPN?",
        ),
        (hint_for_network_error(OSError(errno.EPIPE, "")), ""),
        (
            describe_certificate_error(verification(9, "certificate is not yet valid")),
            f"{CERTIFICATE}certificate is not yet valid; is the clock of this machine right?",
        ),
        (
            describe_certificate_error(verification(26, "unsuitable certificate purpose")),
            f"{CERTIFICATE}unsuitable certificate purpose",
        ),
        (
            describe_certificate_error(ssl.SSLCertVerificationError(1, "odd")),
            f"{CERTIFICATE}odd",
        ),
        (
            describe_tls_error(alert("TLSV1_ALERT_PROTOCOL_VERSION")),
            "the TLS handshake failed: protocol version",
        ),
        (describe_tls_error(OSError("odd")), "the TLS handshake failed: odd"),
    ],
)
def test_an_error_of_a_connection_has_a_remedy_or_the_text_of_openssl(
    text: str, wanted: str
) -> None:
    assert text == wanted
