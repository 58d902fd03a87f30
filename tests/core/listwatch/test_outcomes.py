"""The classification of every end of a request."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from aioinformer._core.codec.status_decoder import decode_status
from aioinformer._core.listwatch.outcomes import Outcome, RequestEnd, classify, lacks_watchlist
from aioinformer.errors import (
    ConnectionFailed,
    ConnectionLost,
    FetchError,
    LineTooLong,
    ProtocolError,
    RequestTimedOut,
    Status,
    server_error,
)
from tests.client.recordings import read_recording
from tests.core.builders import make_server_error

TOO_LARGE = "Too large resource version: 9, current: 8"

ANSWERS = [
    (400, "BadRequest", Outcome.BAD_REQUEST),
    (401, "Unauthorized", Outcome.UNAUTHORIZED),
    (403, "Forbidden", Outcome.ACCESS_DENIED),
    (404, "NotFound", Outcome.NOT_FOUND),
    (405, "MethodNotAllowed", Outcome.METHOD_NOT_ALLOWED),
    (409, "Conflict", Outcome.BAD_REQUEST),
    (410, "Expired", Outcome.EXPIRED),
    (410, "Gone", Outcome.EXPIRED),
    (410, "", Outcome.EXPIRED),
    (500, "Expired", Outcome.EXPIRED),
    (422, "Invalid", Outcome.BAD_REQUEST),
    (429, "TooManyRequests", Outcome.THROTTLED),
    (302, "", Outcome.BAD_REQUEST),
    (500, "InternalError", Outcome.SERVER_ERROR),
    (503, "ServiceUnavailable", Outcome.UNAVAILABLE),
    (504, "Timeout", Outcome.SERVER_ERROR),
]

IN_STREAM = [
    (410, "Expired", Outcome.EXPIRED),
    (410, "Gone", Outcome.EXPIRED),
    (410, "", Outcome.EXPIRED),
    (429, "TooManyRequests", Outcome.THROTTLED),
    (503, "ServiceUnavailable", Outcome.UNAVAILABLE),
    (401, "Unauthorized", Outcome.UNAUTHORIZED),
    (403, "Forbidden", Outcome.ACCESS_DENIED),
    (404, "NotFound", Outcome.NOT_FOUND),
    (405, "MethodNotAllowed", Outcome.ERROR_EVENT),
    (500, "InternalError", Outcome.ERROR_EVENT),
    (504, "Timeout", Outcome.ERROR_EVENT),
    (400, "BadRequest", Outcome.ERROR_EVENT),
]


@pytest.mark.parametrize(("code", "reason", "outcome"), ANSWERS)
def test_the_status_of_a_response_is_classified(code: int, reason: str, outcome: Outcome) -> None:
    assert classify(make_server_error(code, reason)) is outcome


@pytest.mark.client_go(15, 30)
@pytest.mark.parametrize(("code", "reason", "outcome"), IN_STREAM)
def test_the_status_of_an_error_event_is_classified(
    code: int, reason: str, outcome: Outcome
) -> None:
    """After an error that isn't about versions, load or rights, it is unknown what was missed."""
    assert classify(make_server_error(code, reason, phase="watch"), opened=True) is outcome


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (ConnectionFailed("refused"), Outcome.UNREACHABLE),
        (ConnectionLost("reset"), Outcome.UNREACHABLE),
        (RequestTimedOut("silence"), Outcome.UNREACHABLE),
        (ProtocolError("no JSON"), Outcome.PROTOCOL_ERROR),
        (LineTooLong("long"), Outcome.PROTOCOL_ERROR),
        (FetchError("anything else"), Outcome.BAD_REQUEST),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_failure_without_a_response_is_classified(error: FetchError, outcome: Outcome) -> None:
    assert classify(error) is outcome


@pytest.mark.parametrize("error", [ConnectionLost("reset"), RequestTimedOut("silence")], ids=repr)
def test_a_connection_that_fails_during_a_response_is_classified_as_lost(
    error: FetchError,
) -> None:
    assert classify(error, opened=True) is Outcome.CONNECTION_LOST


@pytest.mark.client_go(25)
@pytest.mark.parametrize("opened", [False, True], ids=["answer", "event"])
@pytest.mark.parametrize(
    ("code", "reason", "details", "message"),
    [
        (504, "Timeout", {"causes": [{"reason": "ResourceVersionTooLarge"}]}, ""),
        (504, "Timeout", {"causes": [{"message": "Too large resource version"}]}, ""),
        (504, "Timeout", {}, TOO_LARGE),
        (500, "", {"causes": [{"reason": "Other"}, {"reason": "ResourceVersionTooLarge"}]}, ""),
    ],
    ids=["cause", "message of a cause", "message", "second cause"],
)
def test_a_too_large_version_is_recognized_in_the_form_of_each_server_generation(
    code: int, reason: str, details: dict[str, Any], message: str, *, opened: bool
) -> None:
    """client-go's isTooLargeResourceVersionError: three generations of servers."""
    error = make_server_error(code, reason, details=details, message=message)

    assert classify(error, opened=opened) is Outcome.VERSION_TOO_LARGE


def test_the_message_alone_is_not_taken_for_a_too_large_version() -> None:
    error = make_server_error(500, "InternalError", message=TOO_LARGE)

    assert classify(error) is Outcome.SERVER_ERROR


def test_causes_that_are_null_are_ignored() -> None:
    assert (
        classify(make_server_error(504, "Timeout", details={"causes": None}))
        is Outcome.SERVER_ERROR
    )


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("20-list-too-large-resource-version", Outcome.VERSION_TOO_LARGE),
        ("25-list-forbidden", Outcome.ACCESS_DENIED),
        ("62-list-expired-continue", Outcome.EXPIRED),
    ],
)
def test_a_recorded_response_is_classified(name: str, outcome: Outcome) -> None:
    recording = read_recording(name)

    error = server_error(decode_status(recording.body, code=recording.status))

    assert classify(error) is outcome


@pytest.mark.parametrize(
    "causes", [["x", None], 5, True, "x", {"reason": "ResourceVersionTooLarge"}, [{"message": 5}]]
)
def test_causes_of_another_type_are_ignored(causes: object) -> None:
    error = server_error(Status(504, "Timeout", details={"causes": causes}))
    assert classify(error) is Outcome.SERVER_ERROR


@pytest.mark.parametrize(
    ("error", "lacks"),
    [
        (make_server_error(422, "Invalid"), True),
        (make_server_error(500, "", message="etcd: RequestWatchProgress is disabled"), True),
        (make_server_error(500, "InternalError", message="etcd is down"), False),
        (make_server_error(400, "BadRequest"), False),
        (ConnectionLost("RequestWatchProgress is disabled"), False),
    ],
    ids=["422", "storage", "500", "400", "connection"],
)
def test_two_kinds_of_errors_show_that_a_server_has_no_watchlist(
    error: FetchError, lacks: bool
) -> None:
    assert lacks_watchlist(error) is lacks


def test_the_recorded_error_of_a_storage_without_watchlists_shows_it() -> None:
    recording = read_recording("43-watch-list-storage-cannot-serve-it")
    status = decode_status(msgspec.json.encode(msgspec.json.decode(recording.body)["object"]))
    assert lacks_watchlist(server_error(status))


def test_the_end_of_a_request_has_the_wait_that_the_server_requested() -> None:
    busy = server_error(Status(429, "TooManyRequests", retry_after=7.0))
    assert RequestEnd(Outcome.THROTTLED, busy).retry_after == 7.0
    assert RequestEnd(Outcome.UNREACHABLE, ConnectionFailed("refused")).retry_after is None
    assert RequestEnd(Outcome.ENDED).retry_after is None
