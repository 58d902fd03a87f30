"""What to do about a failure: the half of an error's text that a newcomer needs most.

Pure: what happened in, half a sentence out. ``statuses`` and ``refusals`` say what happened, to
which host or path; here is why that may be, and what to try. Wherever there is a command that
shows more, it is named. What is advised follows from codes, from the words in which API servers
refuse (recordings 21 to 26 and 40), and from OpenSSL's.

What to do about a write that the server refused: for ``refusals``, as ``advice`` is for reads.

Pure: what the server says and what was asked in, half a sentence out. What is advised follows from
codes, reasons and the words of the API machinery (``apierrors``).
"""

from __future__ import annotations

import errno
import re
import shlex
import ssl
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from aioinformer._client.auth.redaction import REDACTED
from aioinformer._core.writing.write_requests import Method
from aioinformer.errors import Phase, Status

__all__ = [
    "OBJECT_PATH",
    "describe_certificate_error",
    "describe_tls_error",
    "find_denied_user",
    "hint_for_network_error",
    "hint_for_other_server",
    "hint_for_read_error",
    "hint_for_write_error",
    "iter_causes",
    "requires_tls",
]


# -- the network -------------------------------------------------------------------------------

UNREACHABLE_ERRNOS = (errno.EHOSTUNREACH, errno.ENETUNREACH)


def hint_for_network_error(error: OSError) -> str:
    """What to do about a connection that didn't come about, by the system's error number."""
    if error.errno == errno.ECONNREFUSED:
        return "nothing listens there: is the API server running, and are host and port right?"
    if error.errno in UNREACHABLE_ERRNOS:
        return "is this machine on the right network, or VPN?"
    return ""


# -- TLS ---------------------------------------------------------------------------------------

NOT_TLS_REASONS = (
    "WRONG_VERSION_NUMBER",
    "HTTP_REQUEST",
    "RECORD_LAYER_FAILURE",
    "PACKET_LENGTH_TOO_LONG",
)
"""How OpenSSL, by version, calls bytes that are not TLS at all."""

NOT_YET_VALID, EXPIRED = 9, 10
UNTRUSTED_ISSUER = (2, 18, 19, 20, 21)
"""X509_V_ERR_...: no issuer at hand, or a self-signed certificate that isn't among the trusted."""
NAME_MISMATCH = (62, 64)
"""X509_V_ERR_HOSTNAME_MISMATCH and _IP_ADDRESS_MISMATCH."""


def describe_certificate_error(error: Exception) -> str:
    """What is wrong with a server's certificate, and what to do."""
    # One that OpenSSL didn't make has neither.
    code: int = getattr(error, "verify_code", 0)
    check: str = getattr(error, "verify_message", "") or str(error)
    said = f"its certificate was not accepted: {check.rstrip('.')}"
    if code == EXPIRED:
        return f"{said}; renew it on the server, unless the clock of this machine is wrong"
    if code == NOT_YET_VALID:
        return f"{said}; is the clock of this machine right?"
    if code in UNTRUSTED_ISSUER:
        return (
            f"{said}; it is of another authority than those trusted here: is this the right "
            f"server, and certificate-authority its own? A fresh kubeconfig has both"
        )
    if code in NAME_MISMATCH:
        return f"{said}; use a name that it is valid for, or tell tls-server-name that name"
    return said


def describe_tls_error(error: OSError) -> str:
    """What is wrong with a handshake, and what to do."""
    name = (error.reason if isinstance(error, ssl.SSLError) else None) or str(error)
    if name in NOT_TLS_REASONS:
        return "it answers in plain HTTP, not TLS: is the server's URL meant to be http://?"
    alert = name.partition("_ALERT_")[2].replace("_", " ").lower()
    if alert == "certificate required":
        return "it wants a client certificate, and there is none: get a fresh kubeconfig"
    if alert == "certificate expired":
        return "the client's certificate has expired: renew it, or get a fresh kubeconfig"
    if "certificate" in alert or alert == "unknown ca":
        return f"it doesn't accept the client's certificate ({alert}): get a fresh kubeconfig"
    return f"the TLS handshake failed: {alert or name}"


def requires_tls(status: Status) -> bool:
    """Whether a server says that it wants HTTPS, in the words of Go or nginx."""
    wants = ("HTTP request to an HTTPS server", "plain HTTP request was sent to HTTPS port")
    return status.code == 400 and any(each in status.message for each in wants)


# -- answers -----------------------------------------------------------------------------------

COLLECTION_PATH = re.compile(
    r"/(?:api/[^/]+|apis/(?P<group>[^/]+)/[^/]+)(?:/namespaces/(?P<namespace>[^/]+))?/(?P<plural>[^/]+)$"
)
"""The end of the path of a list or a watch; a proxy may have put something before it."""

DENIED_USER = re.compile(r'User "([^"]+)" cannot ')
"""In what RBAC says (recording 25)."""

ANONYMOUS_USER = "system:anonymous"
"""Who asks without credentials, or with none that the server can use."""

UNSUPPORTED_FIELD_MESSAGES = (
    "field label not supported",
    "is not a known field selector",
    "supported fields",
)
"""In what the server says of a field that it can't select by (recording 22)."""

INVALID_SELECTOR_MESSAGES = ("unable to parse requirement", "invalid selector", "field selector")
"""In what the server says of a selector that it can't read (recording 21)."""

LOGIN_HINT = (
    "the token or client certificate is missing, wrong or has expired: log in again, or get a "
    "fresh kubeconfig"
)


def hint_for_read_error(status: Status, path: str, phase: Phase) -> str:
    """What to do about an answer other than 200; empty if there is nothing to say.

    Args:
        status: what the server says.
        path: what was asked for.
        phase: for what.
    """
    match status.code:
        case 400 if any(each in status.message for each in UNSUPPORTED_FIELD_MESSAGES):
            return (
                "servers select by metadata.name, metadata.namespace and few other fields: "
                "leave the rest to a filter"
            )
        case 400 if any(each in status.message for each in INVALID_SELECTOR_MESSAGES):
            return "look at the label and field selectors"
        case 401:
            return LOGIN_HINT
        case 403 if status.reason:  # else it isn't the API server who says so
            return _hint_for_forbidden_read(status, path, phase)
        case 404 if phase in ("list", "watch"):
            return _hint_for_missing_resource(path)
        case _:
            return ""


def hint_for_other_server(host: str, content_type: str, origin: str) -> str:
    """What to do about a server that answers as no API server does.

    Args:
        host: it, with its port.
        content_type: the Content-Type of its answer, if that is a page for people.
        origin: which file and context named it, if one did.
    """
    answers = f" answers with a page ({content_type}), and" if content_type else ""
    check = f"`server:` in {origin}" if origin else "its URL"
    return f"{host}{answers} doesn't look like a Kubernetes API server: is {check} right?"


def _hint_for_forbidden_read(status: Status, path: str, phase: Phase) -> str:
    user = find_denied_user(status)
    if user == ANONYMOUS_USER:
        return f"nobody is logged in: {LOGIN_HINT}"
    verb = phase if phase in ("list", "watch") else "get"
    asked, scope = _kubectl_arguments(path)
    given = f" --as={shlex.quote(user)}" if user else ""
    check = f"check with `kubectl auth can-i {verb} {asked}{scope}{given}`"
    if phase == "discovery":
        return f"the ClusterRole system:discovery allows it: {check}"
    return f"a Role or ClusterRole must allow list and watch: {check}"


def _hint_for_missing_resource(path: str) -> str:
    found = COLLECTION_PATH.search(path)
    group = found["group"] if found else None
    option = f" --api-group={shlex.quote(group)}" if group else ""
    return (
        "no such resource, perhaps not yet: is its CustomResourceDefinition installed? "
        f"`kubectl api-resources{option}` lists what there is"
    )


def _kubectl_arguments(path: str) -> tuple[str, str]:
    """What was asked for, and where, as kubectl wants it: ``deployments.apps``, ``-n web``."""
    found = COLLECTION_PATH.search(path)
    if found is None:
        return shlex.quote(path), ""
    group, namespace = found["group"], found["namespace"]
    asked = f"{found['plural']}.{group}" if group else found["plural"]
    return shlex.quote(asked), f" -n {shlex.quote(namespace)}" if namespace else " -A"


def find_denied_user(status: Status) -> str:
    """Who was refused, unless that is hidden."""
    found = DENIED_USER.search(status.message)
    return found[1] if found and REDACTED not in found[1] else ""


OBJECT_PATH = re.compile(
    r"/(?:api/[^/]+|apis/(?P<group>[^/]+)/[^/]+)"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/[^/]+))?"
    r"/(?P<plural>[^/]+)(?:/(?P<name>[^/]+)(?:/(?P<part>[^/]+))?)?$"
)
"""The end of the path of an object, of a part of one, or of the collection that one is created in;
a proxy may have put something before it."""

RBAC_VERBS: Mapping[Method, str] = {
    "GET": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
"""What RBAC calls them."""

APPLY_CONFLICT_REASON = "FieldManagerConflict"
"""The reason of a cause that names a field of another manager's."""

MAX_CAUSES = 5
"""Causes that are told beyond those in the server's sentence."""


def hint_for_write_error(status: Status, path: str, method: Method, user: str = "") -> str:
    """What to do about it; empty if there is nothing to say.

    Args:
        status: what the server says.
        path: what was asked for.
        method: how.
        user: who asked, as the server calls them, if that may be told.
    """
    parts = [_describe_other_causes(status), _hint_for_write_status(status, path, method, user)]
    return "; ".join(part for part in parts if part)


def _hint_for_write_status(status: Status, path: str, method: Method, user: str) -> str:
    match status.code:
        case 403 if status.reason:  # else it isn't the API server who says so
            return _hint_for_forbidden_write(path, method, user)
        case 404:
            return _hint_for_missing_object(status, path)
        case 405:
            return f"objects of this resource can't be asked to {RBAC_VERBS[method]}"
        case 409 if status.reason == "AlreadyExists":
            return "read or patch the one that is there, or apply, which does either"
        case 409:
            return _hint_for_conflict(status)
        case _:
            return ""


def _hint_for_conflict(status: Status) -> str:
    if any(cause.get("reason") == APPLY_CONFLICT_REASON for cause in iter_causes(status)):
        return "leave those fields out, or take them over with force=True"
    if "UID" in status.message:
        return "the one that was meant is gone: read again which one there is"
    return "read the object again and repeat the change: retry_on_conflict does"


def _hint_for_forbidden_write(path: str, method: Method, user: str) -> str:
    found = OBJECT_PATH.search(path)
    if found is None:
        return ""
    asked = f"{found['plural']}.{found['group']}" if found["group"] else found["plural"]
    named = shlex.quote(f"{asked}/{found['name']}" if found["name"] else asked)
    options = {"-n ": found["namespace"], "--subresource=": found["part"], "--as=": user}
    given = "".join(f" {name}{shlex.quote(text)}" for name, text in options.items() if text)
    verb = RBAC_VERBS[method]
    what = f"{asked}/{found['part']}" if found["part"] else asked
    return (
        f"a Role or ClusterRole must allow {verb} on {what}: check with "
        f"`kubectl auth can-i {verb} {named}{given}`"
    )


def _hint_for_missing_object(status: Status, path: str) -> str:
    found = OBJECT_PATH.search(path)
    if found is None:
        return ""
    if status.details.get("kind") == "namespaces" and found["plural"] != "namespaces":
        return "create the namespace first"
    if found["part"]:
        return (
            f"is the object there, and does the resource have the subresource {found['part']!r}? "
            "A CustomResourceDefinition must declare it"
        )
    if status.details.get("name"):
        return ""  # no such object, as the server says
    option = f" --api-group={shlex.quote(found['group'])}" if found["group"] else ""
    return (
        "no such resource, perhaps not yet: is its CustomResourceDefinition installed? "
        f"`kubectl api-resources{option}` lists what there is"
    )


def _describe_other_causes(status: Status) -> str:
    """The causes that the server's sentence leaves out."""
    told = [
        f"{cause['field']}: {cause['message']}" if cause.get("field") else str(cause["message"])
        for cause in iter_causes(status)
        if cause.get("message") and str(cause["message"]) not in status.message
    ]
    more = f", and {len(told) - MAX_CAUSES} more" if len(told) > MAX_CAUSES else ""
    return ", ".join(told[:MAX_CAUSES]) + more


def iter_causes(status: Status) -> Iterator[dict[str, Any]]:
    """Those in the details that have the form of causes; a server may send anything."""
    sent: Any = status.details.get("causes")
    for cause in cast("Iterable[Any]", sent) if isinstance(sent, list) else ():
        if isinstance(cause, dict):
            yield cast("dict[str, Any]", cause)
