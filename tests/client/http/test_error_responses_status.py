"""The ``Status`` of an error response."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from email.utils import format_datetime

import pytest

from aioinformer.errors import Status
from tests.client.recordings import read_recording
from tests.client.transports import rejected


async def build_status(code: int, headers: Mapping[str, str], body: bytes) -> Status:
    """Return the status of the error of such a response."""
    media = {"Content-Type": ""} | dict(headers)
    return (await rejected("/", status=code, headers=media, body=body)).status


async def test_the_text_for_a_removed_resource_becomes_the_message() -> None:
    found = read_recording("53-cr-list-after-crd-is-deleted")

    assert await build_status(found.status, found.headers, found.body) == Status(
        404, "", "404 page not found"
    )


async def test_only_the_size_and_the_content_type_of_a_page_are_shown() -> None:
    page = b"<html>\n<body>\r\n\t<h1>Bad Gateway</h1>" + b"x" * 5000

    assert (
        await build_status(502, {"Content-Type": "text/html; charset=utf-8"}, page)
    ).message == (f"Bad Gateway; the body is no Status: {len(page)} bytes of text/html")
    assert (await build_status(502, {}, page * 20)).message == (
        "Bad Gateway; the body is no Status: more than 65536 bytes of no known content type"
    )


@pytest.mark.parametrize("media", ["", "hunter2", "text/html\x85[2J", "x" * 200])
async def test_a_content_type_of_another_form_is_not_shown(media: str) -> None:
    message = (await build_status(500, {"Content-Type": media}, b"no")).message

    assert message.endswith("the body is no Status: 2 bytes of no known content type")


async def test_an_empty_body_is_explained_by_the_code() -> None:
    assert (await build_status(503, {}, b"")).message == "Service Unavailable"
    assert (await build_status(599, {}, b"")).message == "no body"


@pytest.mark.parametrize(
    "body",
    [b'{"kind": "Pod"}', b'{"kind": "Status", "code": "x"}', b"[1, 2]", b'{"kind": "Status"'],
    ids=["another kind", "a code that is no number", "no object", "broken off"],
)
async def test_json_that_is_no_status_is_not_shown(body: bytes) -> None:
    """It may be a Secret."""
    assert await build_status(500, {"Content-Type": "application/json"}, body) == Status(
        500,
        "",
        f"Internal Server Error; the body is no Status: {len(body)} bytes of application/json",
    )


async def test_a_status_without_code_and_message_has_those_of_the_answer() -> None:
    body = b'{"kind":"Status","details":null}'

    assert await build_status(409, {}, body) == Status(409, message="Conflict")


async def test_the_wait_of_the_header_wins_over_that_of_the_details() -> None:
    body = b'{"kind":"Status","code":429,"details":{"retryAfterSeconds":7}}'

    assert (await build_status(429, {"Retry-After": "3"}, body)).retry_after == 3.0
    assert (await build_status(429, {}, body)).retry_after == 7.0


async def test_a_wait_may_be_given_as_a_date() -> None:
    date = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=100)

    waits = (
        await build_status(503, {"Retry-After": format_datetime(date, usegmt=True)}, b"")
    ).retry_after

    assert waits is not None
    assert 95 < waits <= 100


async def test_a_date_in_the_past_is_no_wait() -> None:
    long_ago = "Wed, 21 Oct 2015 07:28:00 GMT"

    assert (await build_status(503, {"Retry-After": long_ago}, b"")).retry_after == 0.0


@pytest.mark.parametrize("header", ["soon", "inf", "nan", "-5", "1e99"])
async def test_a_wait_that_is_no_number_of_seconds_is_ignored(header: str) -> None:
    assert (await build_status(503, {"Retry-After": header}, b"")).retry_after is None


@pytest.mark.parametrize(
    ("location", "where"),
    [
        ("https://login.example.com/?token=canary", "to login.example.com"),
        ("/elsewhere", "elsewhere on the same host"),
        ("http://[broken", "elsewhere on the same host"),
    ],
    ids=["host", "path", "nonsense"],
)
async def test_a_redirection_names_the_host_alone(location: str, where: str) -> None:
    status = await build_status(302, {"Location": location}, b"<html>")

    assert status.message == (
        f"redirected {where}, which is not followed: credentials are not sent there"
    )


@pytest.mark.parametrize(
    "header",
    ["9" * 400, "Wed, 21 Oct 99999999999999 07:28:00 GMT", "Wed, 21 Oct 2015 07:28:00 +99999999"],
    ids=["400 digits", "a year beyond all calendars", "an offset of years"],
)
async def test_a_retry_after_that_is_too_large_is_ignored(header: str) -> None:
    body = b'{"kind":"Status","code":429,"details":{"retryAfterSeconds":7}}'

    assert (await build_status(503, {"Retry-After": header}, b"")).retry_after is None
    assert (await build_status(429, {"Retry-After": header}, body)).retry_after == 7.0
