"""Exceptions of aiohttp and of the system as errors of this library."""

from __future__ import annotations

from aiohttp import ClientPayloadError, ConnectionTimeoutError
from yarl import URL

from aioinformer._client.auth.proxies import Proxy
from aioinformer._client.http.error_mapping import map_request_error, map_response_error
from aioinformer._client.http.request import ApiRequest
from aioinformer.errors import ConnectionLost, RequestTimedOut

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
