"""A server's Status, read from a body."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer._core.codec.status_decoder import decode_status, quote_kind
from aioinformer._core.listwatch.outcomes import Outcome, classify
from aioinformer.errors import Expired, Status, server_error
from aioinformer.errors.texts import MAX_TEXT_LENGTH, one_line
from tests.client.recordings import read_recording
from tests.core.builders import encode


def test_code_reason_message_and_details_are_read() -> None:
    status = decode_status(read_recording("25-list-forbidden").body, code=500)

    assert (status.code, status.reason) == (403, "Forbidden")
    assert status.message.startswith("pods is forbidden")
    assert status.details == {"kind": "pods"}
    assert (status.retry_after, status.continue_token) == (None, "")


def test_a_too_large_version_has_the_requested_wait() -> None:
    status = decode_status(read_recording("20-list-too-large-resource-version").body)

    assert status.code == 504
    assert status.retry_after == 1.0
    assert status.details["causes"][0]["reason"] == "ResourceVersionTooLarge"


def test_an_expired_list_has_a_fresh_token_for_the_rest() -> None:
    status = decode_status(read_recording("62-list-expired-continue").body)

    assert status.reason == "Expired"
    assert status.continue_token.startswith("eyJ2")


@pytest.mark.parametrize("code", [410, 500])
def test_a_body_without_a_code_has_the_one_assumed(code: int) -> None:
    assert decode_status(b'{"kind":"Status"}', code=code) == Status(code)


@pytest.mark.parametrize("sent", ['"soon"', "null", "[]", "0"])
def test_a_wait_that_is_zero_or_no_number_is_none(sent: str) -> None:
    status = decode_status(b'{"details":{"retryAfterSeconds":%s}}' % sent.encode())

    assert status.retry_after is None


def test_a_body_with_null_parts_is_read() -> None:
    status = decode_status(encode({"code": 409, "details": None, "metadata": None}))

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
def test_a_body_that_is_no_status_is_an_error(body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_status(body)


def test_an_expired_status_becomes_expired() -> None:
    assert isinstance(server_error(decode_status(b'{"reason":"Gone"}')), Expired)


@pytest.mark.parametrize("sent", ["-5", "true", "1.5", "9" * 25, "9" * 400])
def test_a_wait_that_is_no_valid_int32_is_none(sent: str) -> None:
    """An int32 in Kubernetes. 400 digits are an int in Python, and no float."""
    status = decode_status(b'{"details":{"retryAfterSeconds":%s}}' % sent.encode())

    assert status.retry_after is None


@pytest.mark.parametrize("details", ["5", "true", "[]", '"x"'])
def test_details_of_another_shape_do_not_hide_the_rest(details: str) -> None:
    status = decode_status(b'{"kind":"Status","reason":"Expired","details":%s}' % details.encode())

    assert (status.reason, status.details) == ("Expired", {})


@pytest.mark.parametrize("code", [-1, 0, 1000, 10**300])
def test_an_impossible_code_is_replaced_by_the_given_one(code: int) -> None:
    assert (
        decode_status(json.dumps({"kind": "Status", "code": code}).encode(), code=503).code == 503
    )


def test_a_text_of_the_greatest_length_is_whole_and_a_longer_one_ends_in_dots() -> None:
    assert one_line("x" * MAX_TEXT_LENGTH) == "x" * MAX_TEXT_LENGTH
    assert one_line("x" * (MAX_TEXT_LENGTH + 1)) == "x" * MAX_TEXT_LENGTH + "..."


def test_a_body_nested_too_deeply_is_no_status() -> None:
    with pytest.raises(msgspec.DecodeError, match=r"^the body is nested too deeply$"):
        decode_status(b'{"details":{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}}")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
waits = json_values | st.integers(10**20, 10**400)
causes = json_values | st.lists(
    json_values
    | st.fixed_dictionaries({}, optional={"reason": json_values, "message": json_values})
)
any_details = json_values | st.fixed_dictionaries(
    {}, optional={"causes": causes, "retryAfterSeconds": waits, "kind": json_values}
)
sent_statuses = st.fixed_dictionaries(
    {"kind": st.just("Status")},
    optional={
        "code": json_values | st.sampled_from([410, 429, 504]) | st.integers(10**20, 10**400),
        "reason": json_values | st.sampled_from(["Expired", "Timeout"]),
        "message": json_values,
        "details": any_details,
        "metadata": json_values | st.fixed_dictionaries({"continue": json_values}),
    },
)


@given(sent_statuses)
def test_any_body_is_decoded_to_a_valid_status_or_rejected(
    sent: dict[str, object],
) -> None:
    """Only a ``FetchError`` is expected of a request: another exception would end the informer."""
    body = json.dumps(sent).encode()
    try:
        status = decode_status(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return

    error = server_error(status)

    assert str(error)
    assert status.retry_after is None or 0 < status.retry_after < 2**31
    assert isinstance(classify(error), Outcome)
    assert isinstance(classify(error, opened=True), Outcome)


# -- what may be shown of it ---------------------------------------------------------------------


def test_the_texts_of_a_status_are_one_short_printable_line() -> None:
    message = "no\n\x1b[2Jsuch\tpod " + "x" * 100_000
    body = json.dumps({"kind": "Status", "code": 404, "reason": "Not\nFound", "message": message})

    status = decode_status(body.encode())

    assert status.reason == "Not Found"
    assert status.message.startswith("no [2Jsuch pod xxx")
    assert len(status.message) < 1100
    assert str(status).isprintable()


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("", ""),
        ("Pod", "Pod"),
        ("X" * 63, "X" * 63),
        ("X" * 64, "kind of 64 characters"),
        ("pa55-word", "kind of 9 characters"),
        ("!", "kind of 1 character"),
    ],
)
def test_a_text_that_cannot_be_a_kind_is_not_quoted(kind: str, shown: str) -> None:
    """It may be a part of a Secret."""
    assert quote_kind(kind) == shown
