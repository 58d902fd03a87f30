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
    status = Status(403, "Forbidden", 'pods is forbidden: User "a b" cannot update')
    text = hint_for_write_error(status, path, "PUT")
    assert "'pods/$(rm)' -n web --as='a b'" in text


def denial(words: str, *, group: str = "", scope: str = 'in the namespace "web"') -> str:
    """Return the end of the sentence in which RBAC denies a request."""
    verb, resource = words.split(" ")
    return f'User "ada" cannot {verb} resource "{resource}" in API group "{group}" {scope}'


CLUSTER = "at the cluster scope"
AUTHENTICATION = "authentication.k8s.io"
BLOCKING = (
    "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set "
    "finalizers on: , <nil>"
)


@pytest.mark.parametrize(
    ("message", "right", "command"),
    [
        pytest.param(
            denial("create pods"),
            "create on pods",
            "create pods/web-0 -n web --as=ada",
            id="an apply that creates",
        ),
        pytest.param("", "create on pods", "create pods/web-0 -n web", id="an older server"),
        pytest.param(
            "cannot set an ownerRef on a resource you can't delete: , <nil>",
            "delete on pods",
            "delete pods/web-0 -n web",
            id="a new owner",
        ),
        pytest.param(
            denial("impersonate userextras/scopes", group=AUTHENTICATION, scope=CLUSTER),
            f"impersonate on userextras.{AUTHENTICATION}/scopes",
            f"impersonate userextras.{AUTHENTICATION}/view --subresource=scopes --as=ada",
            id="an extra value",
        ),
        pytest.param(
            denial("impersonate-on:user-info:patch pods"),
            "impersonate-on:user-info:patch on pods, or impersonate on the user, and on each "
            "group and extra value",
            "impersonate-on:user-info:patch pods/web-0 -n web --as=ada",
            id="a user",
        ),
    ],
)
def test_the_hint_for_a_forbidden_write_names_the_right_that_the_server_looked_for(
    message: str, right: str, command: str
) -> None:
    status = Status(403, "Forbidden", f'x "view" is forbidden: {message}', {"name": "view"})
    assert hint_for_write_error(status, POD, "PATCH") == (
        f"a Role or ClusterRole must allow {right}: check with `kubectl auth can-i {command}`"
    )


def test_the_hint_for_an_owner_whose_deletion_is_to_wait_names_its_finalizers() -> None:
    status = Status(403, "Forbidden", f'pods "web-0" is forbidden: {BLOCKING}')
    assert hint_for_write_error(status, POD, "PATCH") == (
        "a Role or ClusterRole must allow update on <resource>/finalizers, with the resource of "
        "the owner; or pass block_owner_deletion=False"
    )


@pytest.mark.parametrize(
    "sentence",
    [
        'pods "web-0" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true',
        'pods "web-0" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2',
        'pods "web-0" is forbidden: unable to create new content in namespace web because it is '
        "being terminated",
        'admission webhook "a.example.com" denied the request: no owner',
        "the server's sentence may quote the Secret and is not shown",
    ],
)
def test_a_write_that_admission_denies_gets_no_advice_on_roles(sentence: str) -> None:
    status = Status(403, "Forbidden", sentence)
    assert hint_for_write_error(status, POD, "POST") == ""


def test_the_hint_for_an_anonymous_write_is_that_of_a_read() -> None:
    status = Status(403, "Forbidden", 'pods is forbidden: User "system:anonymous" cannot create')
    assert hint_for_write_error(status, POD, "POST").startswith("the request was anonymous: ")


@pytest.mark.parametrize(
    ("status", "path", "text"),
    [
        (Status(404, "NotFound"), POD, "pods are a part of Kubernetes: is the server's URL right"),
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
    ("method", "status", "text"),
    [
        (
            "POST",
            Status(500, "", "resourceVersion should not be set on objects to be created"),
            "remove metadata.resourceVersion, which a copy of an existing object has",
        ),
        (
            "PUT",
            Status(422, "Invalid", "metadata.resourceVersion: must be specified for an update"),
            "change a copy of the object as it was read, or use patch, which needs no version",
        ),
        ("POST", Status(422, "Invalid", "must be specified for an update"), ""),
        ("PATCH", Status(500, "", "resourceVersion should not be set on objects"), ""),
    ],
)
def test_the_hint_for_a_version_in_a_body_says_what_to_write(
    method: Method, status: Status, text: str
) -> None:
    assert hint_for_write_error(status, POD, method) == text


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
