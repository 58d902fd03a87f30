"""The hints. ``test_beginner_errors`` produces the common failures with real servers."""

from __future__ import annotations

import msgspec
import pytest

from aioinformer.errors import Phase, Status
from tests.client.recordings import read_recording
from tests.client.transports import rejected_with

PODS = "/api/v1/namespaces/web/pods"


def forbidden(user: str) -> Status:
    return Status(403, "Forbidden", f'pods is forbidden: User "{user}" cannot list resource "pods"')


def recorded_status(name: str) -> Status:
    found = msgspec.json.decode(read_recording(name).body)
    return Status(found["code"], found["reason"], found["message"])


async def hint_of(status: Status, path: str, phase: Phase = "list") -> str:
    """Return the hint of a rejected read: what follows the sentence of the server."""
    message = status.message or "no"
    error = await rejected_with(Status(status.code, status.reason, message), path, phase)
    return str(error).partition(f": {message}")[2].removeprefix("; ")


# -- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "phase", "command"),
    [
        (PODS, "list", "kubectl auth can-i list pods -n web --as=shop"),
        (PODS, "watch", "kubectl auth can-i watch pods -n web --as=shop"),
        ("/api/v1/pods", "list", "kubectl auth can-i list pods -A --as=shop"),
        ("/api/v1/namespaces", "list", "kubectl auth can-i list namespaces -A --as=shop"),
        (
            "/apis/apps/v1/namespaces/web/deployments",
            "list",
            "kubectl auth can-i list deployments.apps -n web --as=shop",
        ),
        (
            "/k8s/clusters/c-1/apis/example.com/v1/widgets",
            "watch",
            "kubectl auth can-i watch widgets.example.com -A --as=shop",
        ),
        ("/apis", "discovery", "kubectl auth can-i get /apis --as=shop"),
        (
            "/apis/example.com/v1",
            "discovery",
            "kubectl auth can-i get /apis/example.com/v1 --as=shop",
        ),
    ],
)
async def test_the_hint_for_a_forbidden_read_names_a_command_that_checks_it(
    path: str, phase: Phase, command: str
) -> None:
    assert f"check with `{command}`" in await hint_of(forbidden("shop"), path, phase)


@pytest.mark.parametrize(
    ("user", "path", "options"),
    [
        ("shop; rm -rf ~", "/api/v1/namespaces/$(x)/pods", "-n '$(x)' --as='shop; rm -rf ~'"),
        ("[credential]", PODS, "-n web"),
    ],
)
async def test_names_in_a_hint_are_quoted_for_the_shell_or_left_out(
    user: str, path: str, options: str
) -> None:
    advice = await hint_of(forbidden(user), path)
    assert advice.endswith(f"can-i list pods {options}`")


async def test_the_hint_for_an_anonymous_request_differs_from_that_for_a_401() -> None:
    for name in ("25-list-forbidden", "40-watch-forbidden"):
        advice = await hint_of(recorded_status(name), PODS)
        assert advice.startswith("the request was anonymous: ")
    assert (await hint_of(recorded_status("24-list-unauthorized"), PODS)).endswith(
        "log in again, or get a fresh kubeconfig"
    )


@pytest.mark.parametrize(
    ("path", "command"),
    [
        ("/apis/example.com/v1/widgets", "`kubectl api-resources --api-group=example.com`"),
        ("/api/v1/podz", "`kubectl api-resources`"),
    ],
)
async def test_a_resource_that_is_not_there_may_not_be_installed(path: str, command: str) -> None:
    assert f"{command} lists what the server has" in await hint_of(Status(404), path)


PODS_MISSING = (
    "pods are a part of Kubernetes: is the server's URL right (it must end before /api/v1), and "
    "does the server have v1? `kubectl api-resources` lists what the server has"
)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/foo/api/v1/namespaces/web/pods", PODS_MISSING),
        ("/api/v1/api/v1/pods", PODS_MISSING),
        ("/apis/apps/v1/api/v1/namespaces/web/pods", PODS_MISSING),
        (
            "/apis/apps/v1/deployments",
            "deployments are a part of Kubernetes: is the server's URL right (it must end before "
            "/apis/apps/v1), and does the server have apps/v1? `kubectl api-resources "
            "--api-group=apps` lists what the server has",
        ),
    ],
)
@pytest.mark.parametrize("phase", ["list", "watch"])
async def test_a_built_in_resource_that_is_not_there_suggests_a_wrong_url(
    path: str, text: str, phase: Phase
) -> None:
    assert await hint_of(Status(404), path, phase) == text


async def test_selectors_are_suspected_of_a_bad_request() -> None:
    advised = {
        name: await hint_of(recorded_status(name), PODS)
        for name in (
            "21-list-bad-label-selector",
            "22-list-bad-field-selector",
            "23-list-bad-continue",
        )
    }

    assert advised == {
        "21-list-bad-label-selector": "check the label and field selectors",
        "22-list-bad-field-selector": (
            "servers select by metadata.name, metadata.namespace and few other fields: use a "
            "filter for the other ones"
        ),
        "23-list-bad-continue": "",
    }


async def test_the_hint_for_too_many_requests_names_flow_schemas_and_the_audit_log() -> None:
    hint = await hint_of(Status(429, "TooManyRequests"), "/api/v1/pods")

    assert "API Priority and Fairness" in hint
    assert "User-Agent in its audit log" in hint
    assert "`kubectl get flowschemas,prioritylevelconfigurations`" in hint


@pytest.mark.parametrize(
    ("status", "path"),
    [
        (Status(403, "", "<html>blocked</html>"), PODS),  # of a proxy: no role is missing
        (Status(404), "/version"),
        (Status(404), f"{PODS}/web-0"),
        (Status(404), "/api/v1/nodes/a"),
        (Status(429, "TooManyRequests", "storage is (re)initializing"), PODS),
        (Status(500, "x"), PODS),
        (Status(503, "x"), PODS),
    ],
)
async def test_an_error_without_a_remedy_gets_no_hint(status: Status, path: str) -> None:
    assert not await hint_of(status, path)
