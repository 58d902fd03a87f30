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
from aioinformer._core.objects.resources import BUILT_IN
from aioinformer._core.writing.write_requests import OWNER_FINALIZERS, Method
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
    r"^.*/(?P<root>api/v1|apis/(?P<group>[^/]+)/[^/]+)"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/[^/]+))?"
    r"/(?P<plural>[^/]+)(?:/(?P<name>[^/]+)(?:/(?P<subresource>[^/]+))?)?$"
)
"""The end of the path of an object, of its subresource, or of a collection (then without a name).
A prefix may be before it: of a proxy, or of a wrong URL that has ``/api/v1`` already."""


def _resource_name(path: re.Match[str]) -> str:
    return f"{path['plural']}.{path['group']}" if path["group"] else path["plural"]


def _missing_resource_hint(path: re.Match[str]) -> str:
    api_version = path["root"].partition("/")[2]
    option = f" --api-group={shlex.quote(path['group'])}" if path["group"] else ""
    has = f"`kubectl api-resources{option}` lists what the server has"
    if any((each.api_version, each.plural) == (api_version, path["plural"]) for each in BUILT_IN):
        return (
            f"{path['plural']} are a part of Kubernetes: is the server's URL right (it must end "
            f"before /{path['root']}), and does the server have {api_version}? {has}"
        )
    return f"no such resource, or not yet: is its CustomResourceDefinition installed? {has}"


# -- denied requests ---------------------------------------------------------------------------

DENIAL = re.compile(
    r'User "(?P<user>[^"]+)" cannot (?:(?P<verb>[\w:-]+) resource "(?P<plural>[^"/]+)'
    r'(?:/(?P<subresource>[^"]+))?" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]+)")?)?'
)
"""The sentence in which an API server denies a user a request: the missing right is that for this
resource, which is another one than the request's if the user may not impersonate."""

READ_VERBS = ("list", "watch")
"""The verbs of an informer, which needs both."""

ANONYMOUS_USER = "system:anonymous"
"""The user of requests without credentials that the server can use."""

LOGIN_HINT = (
    "the token or client certificate is missing, wrong or has expired: log in again, or get a "
    "fresh kubeconfig"
)

CREATION_DENIAL = re.compile(r" is forbidden: *$")
"""The end of the sentence of older servers for an apply, or an update, that would create."""

OWNER_DENIAL = "cannot set an ownerRef on a resource you can't delete"
BLOCKING_DENIAL = (
    "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set "
    "finalizers on"
)
"""Sentences of the admission plugin OwnerReferencesPermissionEnforcement."""

BLOCKING_HINT = (
    f"a Role or ClusterRole must allow update on {OWNER_FINALIZERS}; or pass "
    f"block_owner_deletion=False"
)


def _hint_for_forbidden(status: Status, path: str, verb: str) -> str:
    """Return the hint for a 403; empty for the sentence of an admission plugin, a policy or a
    webhook, which says why and concerns writes alone.
    """
    message = status.message
    denied = DENIAL.search(message)
    user = denied["user"] if denied and REDACTED not in denied["user"] else ""
    if user == ANONYMOUS_USER:
        return f"the request was anonymous: {LOGIN_HINT}"
    if BLOCKING_DENIAL in message:
        return BLOCKING_HINT
    if OWNER_DENIAL in message:
        verb = "delete"
    elif CREATION_DENIAL.search(message):
        verb = "create"
    elif verb not in (*READ_VERBS, "get") and not (
        denied or " is forbidden: RBAC: " in message or message in ("", "Forbidden")
    ):
        return ""
    found = denied if denied and denied["plural"] else OBJECT_PATH.search(path)
    if found is None:  # kubectl takes the path itself
        check = _can_i(verb, path, {"--as=": user})
        return f"a ClusterRole must allow it, such as system:discovery: {check}"
    return _name_missing_right(found, _denied_name(status, path, found), verb, user)


def _denied_name(status: Status, path: str, found: re.Match[str]) -> str:
    """Return the name of the denied object; empty if unknown or redacted."""
    requested = OBJECT_PATH.search(path)
    if requested is not None and requested["plural"] == found["plural"]:
        return requested["name"] or ""
    name = str(status.details.get("name", ""))
    return "" if REDACTED in name else name


def _name_missing_right(found: re.Match[str], name: str, verb: str, user: str) -> str:
    """Name the right that a match of ``DENIAL`` or of ``OBJECT_PATH`` is about."""
    verb = found.groupdict().get("verb") or verb
    resource, part = _resource_name(found), found["subresource"]
    options = {"-n ": found["namespace"], "--subresource=": part, "--as=": user}
    missing = f"{verb} on {resource}/{part}" if part else f"{verb} on {resource}"
    if verb in READ_VERBS:
        missing = "list and watch"
    elif verb.startswith("impersonate-on:"):  # since Kubernetes 1.36
        missing += ", or impersonate on the user, and on each group and extra value"
    target = f"{resource}/{name}" if name else resource
    return f"a Role or ClusterRole must allow {missing}: {_can_i(verb, target, options)}"


def _can_i(verb: str, target: str, options: Mapping[str, str | None]) -> str:
    given = [f" {name}{shlex.quote(value)}" for name, value in options.items() if value]
    if verb in READ_VERBS and not options.get("-n "):
        given.insert(0, " -A")
    return f"check with `kubectl auth can-i {verb} {shlex.quote(target)}{''.join(given)}`"


# -- reads -------------------------------------------------------------------------------------

UNSUPPORTED_FIELD_MESSAGES = (
    "field label not supported",
    "is not a known field selector",
    "supported fields",
)
"""Parts of the server's sentence for a field that it can't select by."""

INVALID_SELECTOR_MESSAGES = ("unable to parse requirement", "invalid selector", "field selector")
"""Parts of the server's sentence for a selector that doesn't parse."""

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
            return _hint_for_forbidden(status, path, phase if phase in READ_VERBS else "get")
        case 404 if phase in ("list", "watch"):
            # The absence of any other path, such as /version, says nothing about a resource.
            found = OBJECT_PATH.search(path)
            return "" if found is None or found["name"] else _missing_resource_hint(found)
        case 429 if INITIALIZING_MESSAGE not in status.message:
            return OVERLOAD_HINT
        case _:
            return ""


def hint_for_other_server(host: str, content_type: str, origin: str) -> str:
    """Return the hint for a response that no API server would send.

    ``content_type`` is that of a page for people, else empty; ``origin`` the file and context that
    name the server, if any.
    """
    page = f" answers with a page ({content_type}), and" if content_type else ""
    setting = f"`server:` in {origin}" if origin else "its URL"
    return f"{host}{page} doesn't look like a Kubernetes API server: is {setting} right?"


# -- writes ------------------------------------------------------------------------------------

RBAC_VERBS: Mapping[Method, str] = {
    "GET": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}

VERSION_DENIALS: Mapping[Method, tuple[str, str]] = {
    "POST": (
        "resourceVersion should not be set on objects to be created",
        "remove metadata.resourceVersion, which a copy of an existing object has",
    ),
    "PUT": (
        "must be specified for an update",
        "change a copy of the object as it was read, or use patch, which needs no version",
    ),
}
"""The server's sentence for a version that a body must not have, or must have; what to do."""

MAX_CAUSE_LENGTH = 300
"""Characters shown of a cause."""

MAX_CAUSES = 5
"""Number of causes shown in addition to those in the server's sentence."""


def hint_for_write_error(status: Status, path: str, method: Method) -> str:
    """Return the hint for the error response to a write; empty if there is none."""
    parts = [_describe_other_causes(status), _hint_for_write_status(status, path, method)]
    return "; ".join(part for part in parts if part)


def _hint_for_write_status(status: Status, path: str, method: Method) -> str:
    match status.code:
        case 403 if status.reason:  # without a reason, a proxy has rejected the request
            return _hint_for_forbidden(status, path, RBAC_VERBS[method])
        case 404:
            return _hint_for_missing_object(status, path)
        case 405:
            return f"this resource doesn't support {RBAC_VERBS[method]}"
        case 409 if status.reason == "AlreadyExists":
            return "get or patch the existing object, or use apply, which creates or patches"
        case 409:
            return _hint_for_conflict(status)
        case 422 | 500 if method in VERSION_DENIALS:
            sentence, hint = VERSION_DENIALS[method]
            return hint if sentence in status.message else ""
        case _:
            return ""


def _hint_for_conflict(status: Status) -> str:
    if status.is_apply_conflict:
        return "omit those fields, or take their ownership with force=True, which is the default"
    if "UID" in status.message:
        return "the object with that uid no longer exists: read the current object"
    return "read the object again and repeat the change, as retry_on_conflict does"


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
    return _missing_resource_hint(found)


def _describe_other_causes(status: Status) -> str:
    """List the causes that the server's sentence doesn't contain."""
    causes = [
        f"{cause['field']}: {cause['message']}" if cause.get("field") else str(cause["message"])
        for cause in status.causes
        if cause.get("message") and one_line(str(cause["message"])) not in status.message
    ]
    more = f", and {len(causes) - MAX_CAUSES} more" if len(causes) > MAX_CAUSES else ""
    return ", ".join(one_line(each, MAX_CAUSE_LENGTH) for each in causes[:MAX_CAUSES]) + more
