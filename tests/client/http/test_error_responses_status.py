"""The ``Status`` of an error response."""

from __future__ import annotations

import datetime as dt
from email.utils import format_datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioinformer._client.http.error_responses import build_status
from aioinformer.errors import Status
from tests.client.recordings import read_recording


def status_recorded(name: str) -> Status:
    recording = read_recording(name)
    return build_status(recording.status, recording.headers, recording.body)


def test_the_text_for_a_removed_resource_becomes_the_message() -> None:
    assert status_recorded("53-cr-list-after-crd-is-deleted") == Status(
        404, "", "404 page not found"
    )


def test_only_the_size_and_the_content_type_of_a_page_are_shown() -> None:
    page = b"<html>\n<body>\r\n\t<h1>Bad Gateway</h1>" + b"x" * 5000

    assert build_status(502, {"Content-Type": "text/html; charset=utf-8"}, page).message == (
        f"Bad Gateway; the body is no Status: {len(page)} bytes of text/html"
    )
    assert build_status(502, {}, page, complete=False).message == (
        f"Bad Gateway; the body is no Status: more than {len(page)} bytes of no known content type"
    )


@pytest.mark.parametrize("media", ["", "hunter2", "text/html\x1b[2J", "x" * 200])
def test_a_content_type_of_another_form_is_not_shown(media: str) -> None:
    message = build_status(500, {"Content-Type": media}, b"no").message

    assert message.endswith("the body is no Status: 2 bytes of no known content type")


def test_a_well_known_sentence_in_a_page_is_shown() -> None:
    page = b"<html>400 The plain HTTP request was sent to HTTPS port hunter2</html>"

    assert build_status(400, {}, page).message == "The plain HTTP request was sent to HTTPS port"


def test_an_empty_body_is_explained_by_the_code() -> None:
    assert build_status(503, {}, b"").message == "Service Unavailable"
    assert build_status(599, {}, b"").message == "no body"


@pytest.mark.parametrize(
    "body",
    [b'{"kind": "Pod"}', b'{"kind": "Status", "code": "x"}', b"[1, 2]", b'{"kind": "Status"'],
    ids=["another kind", "a code that is no number", "no object", "broken off"],
)
def test_json_that_is_no_status_is_not_shown(body: bytes) -> None:
    """It may be a Secret."""
    assert build_status(500, {"Content-Type": "application/json"}, body) == Status(
        500,
        "",
        f"Internal Server Error; the body is no Status: {len(body)} bytes of application/json",
    )


def test_a_status_without_code_and_message_has_those_of_the_answer() -> None:
    body = b'{"kind":"Status","details":null}'

    assert build_status(409, {}, body) == Status(409, message="Conflict")


def test_the_wait_of_the_header_wins_over_that_of_the_details() -> None:
    body = b'{"kind":"Status","code":429,"details":{"retryAfterSeconds":7}}'

    assert build_status(429, {"Retry-After": "3"}, body).retry_after == 3.0
    assert build_status(429, {}, body).retry_after == 7.0


def test_a_wait_may_be_given_as_a_date() -> None:
    date = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=100)

    waits = build_status(503, {"Retry-After": format_datetime(date, usegmt=True)}, b"").retry_after

    assert waits is not None
    assert 95 < waits <= 100


def test_a_date_in_the_past_is_no_wait() -> None:
    long_ago = "Wed, 21 Oct 2015 07:28:00 GMT"

    assert build_status(503, {"Retry-After": long_ago}, b"").retry_after == 0.0


@pytest.mark.parametrize("header", ["soon", "inf", "nan", "-5", "1e99"])
def test_a_wait_that_is_no_number_of_seconds_is_ignored(header: str) -> None:
    assert build_status(503, {"Retry-After": header}, b"").retry_after is None


@pytest.mark.parametrize(
    ("location", "where"),
    [
        ("https://login.example.com/?token=canary", "to login.example.com"),
        ("/elsewhere", "elsewhere on the same host"),
        ("http://[broken", "elsewhere on the same host"),
    ],
    ids=["host", "path", "nonsense"],
)
def test_a_redirection_names_the_host_alone(location: str, where: str) -> None:
    status = build_status(302, {"Location": location}, b"<html>")

    assert status.message == (
        f"redirected {where}, which is not followed: credentials are not sent there"
    )


@pytest.mark.parametrize(
    "header",
    ["9" * 400, "Wed, 21 Oct 99999999999999 07:28:00 GMT", "Wed, 21 Oct 2015 07:28:00 +99999999"],
    ids=["400 digits", "a year beyond all calendars", "an offset of years"],
)
def test_a_retry_after_that_is_too_large_is_ignored(header: str) -> None:
    body = b'{"kind":"Status","code":429,"details":{"retryAfterSeconds":7}}'

    assert build_status(503, {"Retry-After": header}, b"").retry_after is None
    assert build_status(429, {"Retry-After": header}, body).retry_after == 7.0


@given(st.text() | st.integers().map(str) | st.from_regex(r"\w{3}, \d+ Oct \d+ \d+:\d\d [+-]\d+"))
@settings(deadline=None)
def test_any_wait_is_a_finite_number_or_none(header: str) -> None:
    waits = build_status(503, {"Retry-After": header}, b"").retry_after

    assert waits is None or 0 <= waits < float("inf")


@given(st.binary() | st.binary().map(lambda rest: b'{"kind":"Status","details":' + rest))
@settings(deadline=None)
def test_every_body_becomes_a_status(body: bytes) -> None:
    assert build_status(500, {}, body).message
