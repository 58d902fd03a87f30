"""Exceptions of aiohttp and of the system as errors of this library."""

from __future__ import annotations

from aiohttp import ClientPayloadError
from yarl import URL

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
