"""Hints: the half sentence of an error text that says why a request failed and what to try.

The functions are pure. The callers describe what happened to which host or path; the hint adds the
probable reason, the remedy, and a command that shows more if there is one. The hints are derived
from status codes and reasons, from the sentences with which API servers reject requests
(``apierrors`` of the API machinery), and from OpenSSL's names of errors.
"""

from __future__ import annotations

import errno
import re
import shlex
import ssl
from collections.abc import Mapping

from aioinformer._client.auth.redaction import REDACTED
from aioinformer._core.writing.write_requests import Method
from aioinformer.errors import Phase, Status
from aioinformer.errors.texts import one_line

# -- connections -------------------------------------------------------------------------------

UNREACHABLE_ERRNOS = (errno.EHOSTUNREACH, errno.ENETUNREACH)

NOT_TLS_REASONS = (
    "WRONG_VERSION_NUMBER",
    "HTTP_REQUEST",
    "RECORD_LAYER_FAILURE",
    "PACKET_LENGTH_TOO_LONG",
)
"""OpenSSL's reasons, which differ by version, for received bytes that are not TLS at all."""

NOT_YET_VALID, EXPIRED = 9, 10
UNTRUSTED_ISSUER = (2, 18, 19, 20, 21)
"""X509_V_ERR_...: the issuer was not found, or a self-signed certificate is not trusted."""
NAME_MISMATCH = (62, 64)
"""X509_V_ERR_HOSTNAME_MISMATCH and _IP_ADDRESS_MISMATCH."""


def hint_for_network_error(error: OSError) -> str:
    """Return the hint for a connection that could not be opened; empty if there is none."""
    if error.errno == errno.ECONNREFUSED:
        return "nothing listens there: is the API server running, and are host and port right?"
    if error.errno in UNREACHABLE_ERRNOS:
        return "is this machine on the right network, or VPN?"
    return ""


def describe_certificate_error(error: Exception) -> str:
    # Only errors that OpenSSL made have these two attributes.
    code: int = getattr(error, "verify_code", 0)
    fault: str = getattr(error, "verify_message", "") or str(error)
    text = f"the server's certificate was not accepted: {fault.rstrip('.')}"
    if code == EXPIRED:
        return f"{text}; renew it on the server, or set the clock of this machine if it is wrong"
    if code == NOT_YET_VALID:
        return f"{text}; is the clock of this machine right?"
    if code in UNTRUSTED_ISSUER:
        return (
            f"{text}; its issuer is not a trusted authority: is this the right server, and is "
            f"certificate-authority that of the server? A fresh kubeconfig has the right values"
        )
    if code in NAME_MISMATCH:
        return f"{text}; use a name from the certificate, or set tls-server-name to such a name"
    return text


def describe_tls_error(error: OSError) -> str:
    name = (error.reason if isinstance(error, ssl.SSLError) else None) or str(error)
    if name in NOT_TLS_REASONS:
        return (
            "the server answers in plain HTTP, not TLS: should the server's URL begin with http://?"
        )
    alert = name.partition("_ALERT_")[2].replace("_", " ").lower()
    if alert == "certificate required":
        return "the server requires a client certificate, and none is set: get a fresh kubeconfig"
    if alert == "certificate expired":
        return "the client's certificate has expired: renew it, or get a fresh kubeconfig"
    if "certificate" in alert or alert == "unknown ca":
        return (
            f"the server doesn't accept the client's certificate ({alert}): get a fresh kubeconfig"
        )
    return f"the TLS handshake failed: {alert or name}"


def requires_tls(status: Status) -> bool:
    """Return True if the server says, in the words of Go or nginx, that it requires HTTPS."""
    sentences = ("HTTP request to an HTTPS server", "plain HTTP request was sent to HTTPS port")
    return status.code == 400 and any(each in status.message for each in sentences)


# -- paths and kubectl's options ---------------------------------------------------------------

OBJECT_PATH = re.compile(
    r"/(?:api/v1|apis/(?P<group>[^/]+)/[^/]+)"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/[^/]+))?"
    r"/(?P<plural>[^/]+)(?:/(?P<name>[^/]+)(?:/(?P<subresource>[^/]+))?)?$"
)
"""The end of the path of an object, of its subresource, or of a collection (then without a name).
A proxy may have a prefix before it."""


def _resource_name(path: re.Match[str]) -> str:
    return f"{path['plural']}.{path['group']}" if path["group"] else path["plural"]


def _options(values: Mapping[str, str | None]) -> str:
    return "".join(f" {name}{shlex.quote(value)}" for name, value in values.items() if value)


def _can_i_command(verb: str, target: str, options: str) -> str:
    return f"check with `kubectl auth can-i {verb} {shlex.quote(target)}{options}`"


def _missing_resource_hint(group: str | None) -> str:
    option = f" --api-group={shlex.quote(group)}" if group else ""
    return (
        "no such resource, or not yet: is its CustomResourceDefinition installed? "
        f"`kubectl api-resources{option}` lists what the server has"
    )


# -- reads -------------------------------------------------------------------------------------

DENIED_USER = re.compile(r'User "([^"]+)" cannot ')
"""The user in the sentence of an RBAC rejection."""

ANONYMOUS_USER = "system:anonymous"
"""The user of requests without credentials that the server can use."""

UNSUPPORTED_FIELD_MESSAGES = (
    "field label not supported",
    "is not a known field selector",
    "supported fields",
)
"""Parts of the server's sentence for a field that it can't select by."""

INVALID_SELECTOR_MESSAGES = ("unable to parse requirement", "invalid selector", "field selector")
"""Parts of the server's sentence for a selector that doesn't parse."""

LOGIN_HINT = (
    "the token or client certificate is missing, wrong or has expired: log in again, or get a "
    "fresh kubeconfig"
)


INITIALIZING_MESSAGE = "initializing"
"""A part of the message of a 429 with which a server that has just started, or whose custom
resource has changed, asks for more time: "storage is (re)initializing"."""

OVERLOAD_HINT = (
    "the server limits its load, and informers try again: the User-Agent in its audit log names "
    "the clients that send too much, and a FlowSchema (API Priority and Fairness) can give this "
    "program's user a share of its own: `kubectl get flowschemas,prioritylevelconfigurations`"
)


def hint_for_read_error(status: Status, path: str, phase: Phase) -> str:
    """Return the hint for the error response to a read; empty if there is none."""
    match status.code:
        case 400 if any(each in status.message for each in UNSUPPORTED_FIELD_MESSAGES):
            return (
                "servers select by metadata.name, metadata.namespace and few other fields: use a "
                "filter for the other ones"
            )
        case 400 if any(each in status.message for each in INVALID_SELECTOR_MESSAGES):
            return "check the label and field selectors"
        case 401:
            return LOGIN_HINT
        case 403 if status.reason:  # without a reason, a proxy has rejected the request
            return _hint_for_forbidden_read(status, path, phase)
        case 404 if phase in ("list", "watch"):
            return _hint_for_missing_collection(path)
        case 429 if INITIALIZING_MESSAGE not in status.message:
            return OVERLOAD_HINT
        case _:
            return ""


def _hint_for_missing_collection(path: str) -> str:
    """Return the hint for a 404; empty unless the path is that of a collection of objects.

    The absence of any other path, such as ``/version``, says nothing about a resource.
    """
    found = OBJECT_PATH.search(path)
    return "" if found is None or found["name"] else _missing_resource_hint(found["group"])


def hint_for_other_server(host: str, content_type: str, origin: str) -> str:
    """Return the hint for a response that no API server would send.

    ``content_type`` is that of a page for people, else empty; ``origin`` the file and context that
    name the server, if any.
    """
    page = f" answers with a page ({content_type}), and" if content_type else ""
    setting = f"`server:` in {origin}" if origin else "its URL"
    return f"{host}{page} doesn't look like a Kubernetes API server: is {setting} right?"


def _hint_for_forbidden_read(status: Status, path: str, phase: Phase) -> str:
    user = find_denied_user(status)
    if user == ANONYMOUS_USER:
        return f"the request was anonymous: {LOGIN_HINT}"
    verb = phase if phase in ("list", "watch") else "get"
    found = OBJECT_PATH.search(path)
    if found is None or found["name"]:  # not a collection: kubectl takes the path itself
        target, scope = path, ""
    else:
        target = _resource_name(found)
        scope = _options({"-n ": found["namespace"]}) or " -A"
    check = _can_i_command(verb, target, scope + _options({"--as=": user}))
    if phase == "discovery":
        return f"the ClusterRole system:discovery allows it: {check}"
    return f"a Role or ClusterRole must allow list and watch: {check}"


def find_denied_user(status: Status) -> str:
    """Return the user that the server denied the request; empty if unknown or redacted."""
    found = DENIED_USER.search(status.message)
    return found[1] if found and REDACTED not in found[1] else ""


# -- writes ------------------------------------------------------------------------------------

RBAC_VERBS: Mapping[Method, str] = {
    "GET": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}

MAX_CAUSE_LENGTH = 300
"""Characters shown of a cause."""

MAX_CAUSES = 5
"""Number of causes shown in addition to those in the server's sentence."""


def hint_for_write_error(status: Status, path: str, method: Method, user: str = "") -> str:
    """Return the hint for the error response to a write; empty if there is none.

    ``user`` is the server's name for the user who sent the request, if known and not secret.
    """
    parts = [_describe_other_causes(status), _hint_for_write_status(status, path, method, user)]
    return "; ".join(part for part in parts if part)


def _hint_for_write_status(status: Status, path: str, method: Method, user: str) -> str:
    match status.code:
        case 403 if status.reason:  # without a reason, a proxy has rejected the request
            return _hint_for_forbidden_write(path, method, user)
        case 404:
            return _hint_for_missing_object(status, path)
        case 405:
            return f"this resource doesn't support {RBAC_VERBS[method]}"
        case 409 if status.reason == "AlreadyExists":
            return "get or patch the existing object, or use apply, which creates or patches"
        case 409:
            return _hint_for_conflict(status)
        case _:
            return ""


def _hint_for_conflict(status: Status) -> str:
    if status.is_apply_conflict:
        return "omit those fields, or take their ownership with force=True, which is the default"
    if "UID" in status.message:
        return "the object with that uid no longer exists: read the current object"
    return "read the object again and repeat the change, as retry_on_conflict does"


def _hint_for_forbidden_write(path: str, method: Method, user: str) -> str:
    found = OBJECT_PATH.search(path)
    if found is None:
        return ""
    verb, resource = RBAC_VERBS[method], _resource_name(found)
    target = f"{resource}/{found['name']}" if found["name"] else resource
    rule = f"{resource}/{found['subresource']}" if found["subresource"] else resource
    options = {"-n ": found["namespace"], "--subresource=": found["subresource"], "--as=": user}
    check = _can_i_command(verb, target, _options(options))
    return f"a Role or ClusterRole must allow {verb} on {rule}: {check}"


def _hint_for_missing_object(status: Status, path: str) -> str:
    found = OBJECT_PATH.search(path)
    if found is None:
        return ""
    if status.details.get("kind") == "namespaces" and found["plural"] != "namespaces":
        return "create the namespace first"
    if found["subresource"]:
        return (
            f"does the object exist, and has the resource the subresource {found['subresource']!r}?"
            " A CustomResourceDefinition must declare it"
        )
    if status.details.get("name"):
        return ""  # the server's sentence already says that the object doesn't exist
    return _missing_resource_hint(found["group"])


def _describe_other_causes(status: Status) -> str:
    """List the causes that the server's sentence doesn't contain."""
    causes = [
        f"{cause['field']}: {cause['message']}" if cause.get("field") else str(cause["message"])
        for cause in status.causes
        if cause.get("message") and one_line(str(cause["message"])) not in status.message
    ]
    more = f", and {len(causes) - MAX_CAUSES} more" if len(causes) > MAX_CAUSES else ""
    return ", ".join(one_line(each, MAX_CAUSE_LENGTH) for each in causes[:MAX_CAUSES]) + more
