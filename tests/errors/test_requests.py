"""The exception for a server's Status, and its text."""

from __future__ import annotations

import pytest

from aioinformer.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
    ResourceMoved,
    ServerError,
    ServerFailure,
    ServerRewound,
    Status,
    TooManyRequests,
    Unauthorized,
    server_error,
)


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (400, "BadRequest", BadRequest),
        (401, "Unauthorized", Unauthorized),
        (403, "Forbidden", Forbidden),
        (404, "NotFound", NotFound),
        (409, "Conflict", Conflict),
        (409, "AlreadyExists", AlreadyExists),
        (410, "Gone", Expired),
        (422, "Invalid", Invalid),
        (429, "TooManyRequests", TooManyRequests),
        (499, "", ServerError),
        (500, "InternalError", ServerFailure),
        (599, "", ServerFailure),
        # An ERROR event of a watch may have either form (apierrors.IsResourceExpired, IsGone).
        (410, "", Expired),
        (200, "Expired", Expired),
        (500, "Gone", Expired),
    ],
)
def test_a_status_becomes_the_exception_of_its_reason_or_else_of_its_code(
    code: int, reason: str, expected: type[ServerError]
) -> None:
    assert type(server_error(Status(code, reason))) is expected


def test_the_text_names_the_target_the_status_and_the_advice() -> None:
    error = server_error(
        Status(403, "Forbidden", "pods is forbidden"),
        phase="list",
        target="list pods",
        advice="ask for rights",
    )

    assert str(error) == "list pods: 403 Forbidden: pods is forbidden; ask for rights"
    assert (error.phase, error.target, error.advice) == ("list", "list pods", "ask for rights")


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (Status(502), "502"),
        (Status(502, message="bad gateway"), "502: bad gateway"),
        (Status(410, "Gone"), "410 Gone"),
    ],
)
def test_the_text_leaves_out_what_the_server_did_not_say(status: Status, text: str) -> None:
    assert str(server_error(status)) == text


def test_a_resource_that_moved_and_a_server_that_went_back_name_the_version() -> None:
    moved, rewound = ResourceMoved("foos", "v2"), ServerRewound("pods", "17")

    assert (moved.version, moved.phase) == ("v2", "discovery")
    assert str(moved).endswith("they are read in version v2 from now on")
    assert (rewound.resource_version, rewound.phase) == ("17", "list")
    assert "listed again at version 17" in str(rewound)
