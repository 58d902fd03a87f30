"""The hints. ``test_beginner_errors`` produces the common failures with real servers."""

from __future__ import annotations

import errno
import ssl

import pytest

from aioinformer._client.auth.redaction import REDACTED
from aioinformer._client.http.hints import (
    describe_certificate_error,
    describe_tls_error,
    hint_for_network_error,
    hint_for_read_error,
    requires_tls,
)
from aioinformer._core.codec.status_decoder import decode_status
from aioinformer.errors import Phase, Status
from tests.client.recordings import read_recording

PODS = "/api/v1/namespaces/web/pods"


def forbidden(user: str) -> Status:
    return Status(403, "Forbidden", f'pods is forbidden: User "{user}" cannot list resource "pods"')


def recorded_status(name: str) -> Status:
    return decode_status(read_recording(name).body)


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
def test_the_hint_for_a_forbidden_read_names_a_command_that_checks_it(
    path: str, phase: Phase, command: str
) -> None:
    assert f"check with `{command}`" in hint_for_read_error(forbidden("shop"), path, phase)


@pytest.mark.parametrize(
    ("user", "path", "options"),
    [
        ("shop; rm -rf ~", "/api/v1/namespaces/$(x)/pods", "-n '$(x)' --as='shop; rm -rf ~'"),
        (REDACTED, PODS, "-n web"),
    ],
)
def test_names_in_a_hint_are_quoted_for_the_shell_or_left_out(
    user: str, path: str, options: str
) -> None:
    advice = hint_for_read_error(forbidden(user), path, "list")
    assert advice.endswith(f"can-i list pods {options}`")


def test_the_hint_for_an_anonymous_request_differs_from_that_for_a_401() -> None:
    for name in ("25-list-forbidden", "40-watch-forbidden"):
        advice = hint_for_read_error(recorded_status(name), PODS, "list")
        assert advice.startswith("the request was anonymous: ")
    assert hint_for_read_error(recorded_status("24-list-unauthorized"), PODS, "list").endswith(
        "log in again, or get a fresh kubeconfig"
    )


@pytest.mark.parametrize(
    ("path", "command"),
    [
        ("/apis/example.com/v1/widgets", "`kubectl api-resources --api-group=example.com`"),
        ("/api/v1/podz", "`kubectl api-resources`"),
    ],
)
def test_a_resource_that_is_not_there_may_not_be_installed(path: str, command: str) -> None:
    assert f"{command} lists what the server has" in hint_for_read_error(Status(404), path, "list")


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
def test_a_built_in_resource_that_is_not_there_suggests_a_wrong_url(
    path: str, text: str, phase: Phase
) -> None:
    assert hint_for_read_error(Status(404), path, phase) == text


def test_selectors_are_suspected_of_a_bad_request() -> None:
    advised = {
        name: hint_for_read_error(recorded_status(name), PODS, "list")
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


def test_the_hint_for_too_many_requests_names_flow_schemas_and_the_audit_log() -> None:
    hint = hint_for_read_error(Status(429, "TooManyRequests"), "/api/v1/pods", "list")

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
def test_an_error_that_says_nothing_of_a_remedy_gets_no_hint(status: Status, path: str) -> None:
    assert hint_for_read_error(status, path, "list") == ""


def test_the_page_of_nginx_that_requires_https_is_recognized() -> None:
    page = "<html><head><title>400 The plain HTTP request was sent to HTTPS port</title></head>"

    assert requires_tls(Status(400, "", page))
    assert not requires_tls(Status(400, "BadRequest", "unable to parse requirement"))


# -- connections -------------------------------------------------------------------------------


def verification(code: int, message: str) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code, error.verify_message = code, message
    return error


def alert(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, "handshake")
    error.reason = reason
    return error


CERTIFICATE = "the server's certificate was not accepted: "


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            hint_for_network_error(OSError(errno.ENETUNREACH, "")),
            "is this machine on the right network, or VPN?",
        ),
        (hint_for_network_error(OSError(errno.EPIPE, "")), ""),
        (
            describe_certificate_error(verification(9, "certificate is not yet valid")),
            f"{CERTIFICATE}certificate is not yet valid; is the clock of this machine right?",
        ),
        (
            describe_certificate_error(verification(26, "unsuitable certificate purpose")),
            f"{CERTIFICATE}unsuitable certificate purpose",
        ),
        (
            describe_certificate_error(ssl.SSLCertVerificationError(1, "odd")),
            f"{CERTIFICATE}odd",
        ),
        (
            describe_tls_error(alert("TLSV1_ALERT_PROTOCOL_VERSION")),
            "the TLS handshake failed: protocol version",
        ),
        (describe_tls_error(OSError("odd")), "the TLS handshake failed: odd"),
    ],
)
def test_an_error_of_a_connection_has_a_remedy_or_the_text_of_openssl(
    text: str, wanted: str
) -> None:
    assert text == wanted
