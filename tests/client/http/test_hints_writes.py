"""The hints for rejected writes."""

from __future__ import annotations

import re
from typing import Any

import pytest
from aiohttp import web

from aioinformer import Client, Resource
from aioinformer.errors import ServerError, Status
from tests.client.servers import http_server

POD = "/api/v1/namespaces/web/pods/web-0"
FOO = "/apis/example.com/v1/namespaces/web/foos/a"

OBJECT = re.compile(
    r"(?P<prefix>.*)/(?:api|apis/(?P<group>[^/]+))/v1(?:/namespaces/(?P<namespace>[^/]+))?"
    r"/(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?(?:/(?P<subresource>[^/]+))?"
)


async def write(client: Client, found: re.Match[str], method: str) -> object:
    """Send a request for the object, or the collection, of a path."""
    namespace, name = found["namespace"], found["name"] or "a"
    kind = found["plural"][:-1].title()
    resource = Resource(found["group"] or "", "v1", found["plural"], kind, bool(namespace))
    api = client.api(resource, namespace=namespace)
    obj = {"metadata": {"name": name}}
    match method:
        case "GET":
            return await api.get(name)
        case "POST":
            return await api.create(obj)
        case "PUT":
            return await api.update(obj, subresource=found["subresource"] or "")
        case "PATCH":
            return await api.patch(name, {})
        case _:
            return await api.delete(name)


async def hint_of(status: Status, path: str, method: str) -> str:
    """Return the hint of a rejected write: what follows the sentence of the server."""
    message = status.message or "Forbidden"
    body = {"kind": "Status", "code": status.code, "reason": status.reason, "message": message}

    async def answer(request: web.Request) -> web.Response:
        return web.json_response(body | {"details": dict(status.details)}, status=status.code)

    found = OBJECT.fullmatch(path)
    assert found is not None
    async with http_server(answer) as server, Client(f"{server}{found['prefix']}") as client:
        with pytest.raises(ServerError) as caught:
            await write(client, found, method)
    return str(caught.value).partition(f": {message.strip()}")[2].removeprefix("; ")


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
async def test_a_forbidden_write_names_the_command_that_checks_permissions(
    path: str, method: str, command: str
) -> None:
    text = await hint_of(Status(403, "Forbidden"), path, method)
    assert f"`kubectl auth can-i {command}`" in text


async def test_names_are_quoted_for_a_shell() -> None:
    path = "/api/v1/namespaces/web/pods/$(rm)"
    status = Status(403, "Forbidden", 'pods is forbidden: User "a b" cannot update')
    text = await hint_of(status, path, "PUT")
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
async def test_the_hint_for_a_forbidden_write_names_the_right_that_the_server_looked_for(
    message: str, right: str, command: str
) -> None:
    status = Status(403, "Forbidden", f'x "view" is forbidden: {message}', {"name": "view"})
    assert await hint_of(status, POD, "PATCH") == (
        f"a Role or ClusterRole must allow {right}: check with `kubectl auth can-i {command}`"
    )


async def test_the_hint_for_an_owner_whose_deletion_is_to_wait_names_its_finalizers() -> None:
    status = Status(403, "Forbidden", f'pods "web-0" is forbidden: {BLOCKING}')
    assert await hint_of(status, POD, "PATCH") == (
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
async def test_a_write_that_admission_denies_gets_no_advice_on_roles(sentence: str) -> None:
    status = Status(403, "Forbidden", sentence)
    assert await hint_of(status, POD, "POST") == ""


async def test_the_hint_for_an_anonymous_write_is_that_of_a_read() -> None:
    status = Status(403, "Forbidden", 'pods is forbidden: User "system:anonymous" cannot create')
    assert (await hint_of(status, POD, "POST")).startswith("the request was anonymous: ")


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
async def test_the_hint_for_a_rejected_write_names_a_remedy(
    status: Status, path: str, text: str
) -> None:
    assert text in await hint_of(status, path, "PUT")


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
async def test_the_hint_for_a_version_in_a_body_says_what_to_write(
    method: str, status: Status, text: str
) -> None:
    assert await hint_of(status, POD, method) == text


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
async def test_a_status_without_a_known_remedy_gets_no_hint(status: Status) -> None:
    assert await hint_of(status, POD, "PUT") in ("", "5")


async def test_the_hint_lists_a_few_causes_that_the_message_does_not_contain() -> None:
    causes: list[dict[str, Any]] = [{"field": "a", "message": "bad"}]
    causes += [{"field": f"f{n}", "message": f"m{n}"} for n in range(8)]
    status = Status(422, "Invalid", "it is invalid: a: bad", {"causes": causes})
    text = await hint_of(status, POD, "PUT")
    assert text == "f0: m0, f1: m1, f2: m2, f3: m3, f4: m4, and 3 more"
