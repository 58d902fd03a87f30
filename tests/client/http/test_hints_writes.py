"""The hints for rejected writes."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer._client.http.hints import hint_for_write_error
from aioinformer._core.writing.write_requests import Method
from aioinformer.errors import Status

POD = "/api/v1/namespaces/web/pods/web-0"
FOO = "/apis/example.com/v1/namespaces/web/foos/a"


@pytest.mark.parametrize(
    ("path", "method", "command"),
    [
        (POD, "GET", "get pods/web-0 -n web"),
        ("/api/v1/namespaces/web/pods", "POST", "create pods -n web"),
        (POD, "PUT", "update pods/web-0 -n web"),
        (f"{FOO}/status", "PUT", "update foos.example.com/a -n web --subresource=status"),
        ("/api/v1/nodes/n", "DELETE", "delete nodes/n"),
        ("/api/v1/namespaces/web", "PATCH", "patch namespaces/web"),
        ("/k8s/clusters/c/api/v1/nodes/n", "PATCH", "patch nodes/n"),
    ],
)
def test_a_forbidden_write_names_the_command_that_checks_permissions(
    path: str, method: Method, command: str
) -> None:
    text = hint_for_write_error(Status(403, "Forbidden"), path, method)
    assert f"`kubectl auth can-i {command}`" in text


def test_names_are_quoted_for_a_shell() -> None:
    path = "/api/v1/namespaces/web/pods/$(rm)"
    text = hint_for_write_error(Status(403, "Forbidden"), path, "PUT", "a b")
    assert "'pods/$(rm)' -n web --as='a b'" in text


@pytest.mark.parametrize(
    ("status", "path", "text"),
    [
        (Status(404, "NotFound", details={"kind": "namespaces", "name": "web"}), POD, "namespace"),
        (Status(404, "NotFound", details={"name": "a"}), f"{FOO}/status", "'status'? A Custom"),
        (Status(404, "NotFound"), FOO, "kubectl api-resources --api-group=example.com"),
        (Status(405, "MethodNotAllowed"), POD, "doesn't support update"),
        (Status(409, "AlreadyExists"), POD, "or use apply, which creates or patches"),
        (
            Status(409, "Conflict", "the UID in the precondition"),
            POD,
            "with that uid no longer exists",
        ),
        (Status(409, "Conflict", "the object has been modified"), POD, "retry_on_conflict"),
        (
            Status(409, "Conflict", details={"causes": [{"reason": "FieldManagerConflict"}]}),
            POD,
            "force=True",
        ),
    ],
)
def test_the_hint_for_a_rejected_write_names_a_remedy(status: Status, path: str, text: str) -> None:
    assert text in hint_for_write_error(status, path, "PUT")


@pytest.mark.parametrize(
    "status",
    [
        Status(404, "NotFound", 'pods "a" not found', {"name": "a", "kind": "pods"}),
        Status(403, "", "<html>blocked</html>"),
        Status(500, "InternalError"),
        Status(422, "Invalid", details={"causes": [{"message": 5}, "x", {"field": "a"}]}),
        Status(422, "Invalid", details={"causes": "none"}),
    ],
)
def test_a_status_without_a_known_remedy_gets_no_hint(status: Status) -> None:
    assert hint_for_write_error(status, POD, "PUT") in ("", "5")


def test_the_hint_lists_a_few_causes_that_the_message_does_not_contain() -> None:
    causes: list[dict[str, Any]] = [{"field": "a", "message": "bad"}]
    causes += [{"field": f"f{n}", "message": f"m{n}"} for n in range(8)]
    status = Status(422, "Invalid", "it is invalid: a: bad", {"causes": causes})
    text = hint_for_write_error(status, POD, "PUT")
    assert text == "f0: m0, f1: m1, f2: m2, f3: m3, f4: m4, and 3 more"
