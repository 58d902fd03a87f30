"""A server's Status, read from a body."""

from __future__ import annotations

import msgspec
import pytest

from aioinformer._core.statuses import read_status
from aioinformer.errors import Expired, Status, server_error
from tests.client.recordings import recorded
from tests.core.builders import encode


def test_code_reason_message_and_details_are_read() -> None:
    status = read_status(recorded("25-list-forbidden").body, code=500)

    assert (status.code, status.reason) == (403, "Forbidden")
    assert status.message.startswith("pods is forbidden")
    assert status.details == {"kind": "pods"}
    assert (status.retry_after, status.continue_token) == (None, "")


def test_a_too_large_version_says_for_how_long_to_wait() -> None:
    status = read_status(recorded("20-list-too-large-resource-version").body)

    assert status.code == 504
    assert status.retry_after == 1.0
    assert status.details["causes"][0]["reason"] == "ResourceVersionTooLarge"


def test_an_expired_list_has_a_fresh_token_for_the_rest() -> None:
    status = read_status(recorded("62-list-expired-continue").body)

    assert status.reason == "Expired"
    assert status.continue_token.startswith("eyJ2")


@pytest.mark.parametrize("code", [410, 500])
def test_a_body_without_a_code_has_the_one_assumed(code: int) -> None:
    assert read_status(b'{"kind":"Status"}', code=code) == Status(code)


def test_a_code_in_the_body_wins() -> None:
    assert read_status(b'{"code":410}', code=200).code == 410


@pytest.mark.parametrize("sent", ['"soon"', "null", "[]", "0"])
def test_a_wait_that_is_no_number_or_none_at_all_is_none(sent: str) -> None:
    status = read_status(b'{"details":{"retryAfterSeconds":%s}}' % sent.encode())

    assert status.retry_after is None


def test_a_body_with_null_parts_is_read() -> None:
    status = read_status(encode({"code": 409, "details": None, "metadata": None}))

    assert status == Status(409)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"404 page not found",
        b"[]",
        b'"text"',
        b'{"code":"x"}',
        b'{"kind":"Pod","metadata":{"name":"web-0"}}',
    ],
)
def test_what_is_no_status_is_an_error(body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        read_status(body)


def test_an_expired_status_becomes_expired() -> None:
    assert isinstance(server_error(read_status(b'{"reason":"Gone"}')), Expired)
