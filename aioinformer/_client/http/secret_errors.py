"""Errors of requests for Secrets, without the contents of Secrets.

A server, a proxy, an admission webhook or a policy may quote the submitted or the stored Secret in
an error, whatever the method. ``secret_values`` yields the submitted values for a ``Redactor``. The
stored ones are unknown, so only those sentences of API servers are shown that quote nothing of an
object (``KNOWN_SENTENCES``); of others, at most the beginning and the names of fields.
"""

from __future__ import annotations

import asyncio
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeVar, cast

import msgspec
from msgspec.structs import replace

from aioinformer._client.auth.off_loop import compute_in_thread
from aioinformer._client.http.request import ApiRequest
from aioinformer._core.objects.decode_errors import iter_related
from aioinformer.errors import ServerError, Status, server_error

T = TypeVar("T")

SECRET_PATH = re.compile(r"/api/v1(?:/watch)?(?:/namespaces/[^/]+)?/secrets(?:/|$)")
"""The part of a path by which a request is one for Secrets. A proxy may have a prefix before it."""


def is_secret_path(path: str) -> bool:
    return SECRET_PATH.search(path) is not None


# -- the server's sentences --------------------------------------------------------------------

_NAME = r'"[^"\s]{1,253}"'
_OBJECT = rf"(?:secrets?|Secret|namespaces?) {_NAME}"
_AUTHORIZED = (
    r'User "[^"]+" cannot [a-z:-]+ (?:path "[^"]+"|resource "[^"]+" in API group "[^"]*" '
    r'(?:in the namespace "[^"]+"|at the cluster scope))'
)
_PRECONDITION = (
    r"(?:the object has been modified; please apply your changes to the latest version and try "
    r"again|the (?:UID|ResourceVersion) in the precondition \([\w-]*\) does not match the "
    r"(?:UID|ResourceVersion) in record \([\w-]*\)\. The object might have been [a-z ]+|"
    r"(?:StorageError: invalid object, Code: 4, Key: [^\s,]+, ResourceVersion: \d+, "
    r"AdditionalErrorMsg: )?Precondition failed: (?:UID|ResourceVersion) in precondition: [\w-]*, "
    r"(?:UID|ResourceVersion) in object meta: ?[\w-]*|"
    r"uid mismatch: the provided object specified uid [\w-]*, and no existing object was found)"
)
_QUOTA = r"exceeded quota: [\w.-]+, requested: [\w./=,-]+, used: [\w./=,-]+, limited: [\w./=,-]+"
_OWNERS = (
    r"cannot set (?:an ownerRef on a resource you can't delete|blockOwnerDeletion if an "
    r"ownerReference refers to a resource you can't set finalizers on): "
)
_TERMINATING = r"unable to create new content in namespace [\w-]+ because it is being terminated"

KNOWN_SENTENCES = (
    # The credentials and the role. An authorizer sees the request's path, and never an object.
    "Unauthorized",
    rf"(?:[a-z0-9.]+(?: {_NAME})? is )?forbidden: {_AUTHORIZED}(?:: .*)?",
    rf"secrets {_NAME} is forbidden: ?(?:{_QUOTA}|{_TERMINATING}|{_OWNERS}.*)?",
    # The object, its version and its owners. Fields have names there, and no values.
    rf"{_OBJECT} (?:not found|already exists)",
    r"the server could not find the requested resource",
    rf"Operation cannot be fulfilled on {_OBJECT}: {_PRECONDITION}",
    r'Apply failed with \d+ conflicts?: conflicts? with "[^"]*".*',
    r'conflict with "[^"]*"[\w\s":.-]*',
    # The server's history.
    r"too old resource version: \d+(?: \(\d+\))?",
    r"The resourceVersion for the provided (?:list|watch) is too old\.",
    r"The provided continue parameter is too old to display a consistent list result\.[\w\s,.-]*",
    r"etcdserver: mvcc: required revision has been compacted",
    # Load and time.
    r"(?:Timeout: )?Too large resource version(?:: \d+, current: \d+)?",
    r"(?:Timeout: )?request did not complete within (?:the allotted timeout|requested timeout)"
    r"(?: - context (?:deadline exceeded|canceled))?",
    r"context (?:deadline exceeded|canceled)",
    r"the server was unable to return a response in the time allotted, but may still be "
    r"processing the request",
    r"The [a-z]+ operation against secrets could not be completed at this time, please try again\.",
    r"[Tt]oo many requests, please try again later\.?",
    r"(?:Too many requests: )?storage is \(re\)initializing",
    # The parts of the server, and those that it calls.
    r"(?:Internal error occurred: )?(?:rpc error: code = \w+ desc = )?etcdserver: "
    r"(?:[a-z]+ ){0,3}(?:request timed out|leader changed|no leader|too many requests|"
    r"mvcc: database space exceeded|not capable)(?:[\w\s,]*)",
    r"(?:the server is currently unable to handle the request|apiserver is shutting down)",
    r"a watch stream was requested by the client but the required storage feature "
    r"RequestWatchProgress is disabled",
    r'(?:Internal error occurred: )?failed calling webhook "[^"\s]+": failed to call webhook: '
    r'Post "[^"\s]+": (?:dial tcp|x509:|tls:|context deadline exceeded|EOF|service "|'
    r"no endpoints available).*",
    # The method, and the formats.
    r"the server does not allow this method on the requested resource",
    r'[a-z]+ is not supported on resources of kind "secrets"',
    r"Request entity too large: limit is \d+",
    r"the body of the request was in an unknown format - accepted media types include: [\w/+., -]*",
    r"only the following media types are accepted: [\w/+.,;= -]*",
    r"the server rejected our request due to an error in our request",
    # The query, which the program has sent and which names no values of a Secret.
    r"field label not supported: \S+",
    r'"[^"\s]+" is not a known field selector: .*',
    r"(?:unable to parse requirement|invalid (?:\w+ )?selector): .*",
    r"(?:invalid resource version: )?resourceVersion: Invalid value: .*",
    r"(?:invalid continue token: )?continue key is not valid: .*",
    r'[A-Z][a-z]+Options\.meta\.k8s\.io "" is invalid: .*',
    # Warnings.
    r'(?:unknown|duplicate) field "[\w.\[\]/-]+"',
    r"v1 Secret is deprecated.*",
)
"""Sentences of API servers that quote nothing of an object, as regular expressions."""

KNOWN_BEGINNINGS = (
    rf'(?:secrets {_NAME} is forbidden: )?admission webhook "[^"\s]+" denied the request',
    rf"(?:secrets {_NAME} is forbidden: )?ValidatingAdmissionPolicy '[^'\s]+' with binding "
    rf"'[^'\s]+' denied request",
    r'(?:Internal error occurred: )?failed calling webhook "[^"\s]+"',
    r'(?:Internal error occurred: )?unable to transform key "[^"\s]+"',
)
"""Beginnings of sentences that name who has failed or rejected the request. The words that follow
are not the API server's own."""

_KNOWN = re.compile("|".join(KNOWN_SENTENCES), re.DOTALL)
_BEGINNING = re.compile("|".join(KNOWN_BEGINNINGS))

_HIDDEN = "the server's sentence may quote the Secret and is not shown"


def redact_secret_sentence(sentence: str) -> str:
    if not sentence or _KNOWN.fullmatch(sentence):
        return sentence
    if (known := _BEGINNING.match(sentence)) is None:
        return _HIDDEN
    rest = "; the reason may quote the Secret and is not shown"
    return sentence if known[0] == sentence else f"{known[0]}{rest}"


# -- the Status --------------------------------------------------------------------------------

KNOWN_REASONS = re.compile(
    "AlreadyExists|BadRequest|Conflict|Expired|Forbidden|Gone|InternalError|Invalid|"
    "MethodNotAllowed|NotAcceptable|NotFound|RequestEntityTooLarge|ServerTimeout|"
    "ServiceUnavailable|StorageReadError|Timeout|TooManyRequests|Unauthorized|UnsupportedMediaType"
)
"""The reasons of ``metav1.StatusReason``. A webhook may send any text as its reason."""

KNOWN_DETAILS: Mapping[str, re.Pattern[str]] = {
    "name": re.compile(r"[a-z0-9.:-]{1,253}"),
    "kind": re.compile(r"secrets|Secret|namespaces"),
    "uid": re.compile(r"[0-9a-f-]{1,36}"),
}
"""The details that are kept, and their forms."""

KNOWN_CAUSES: Mapping[str, re.Pattern[str]] = {
    "reason": re.compile(
        r"FieldValue[A-Z][A-Za-z]+|FieldManagerConflict|ResourceVersionTooLarge|"
        r"NamespaceTerminating|UnexpectedServerResponse"
    ),
    "field": re.compile(r"[\w.\[\]/-]{1,253}"),
    "message": _KNOWN,
}
"""The parts of a cause that are kept, and their forms (``metav1.CauseType``)."""


def redact_secret_values(status: Status, path: str) -> Status:
    """Return ``status`` without texts that may quote a Secret; unchanged if ``path`` is of others.

    Of an invalid Secret only the names of the fields are shown, of a denied one only who denied it.
    """
    if not is_secret_path(path):
        return status
    message, details = redact_secret_sentence(status.message), _redact_details(status)
    if message == _HIDDEN:
        fields = (cause["field"] for cause in details.get("causes", ()) if "field" in cause)
        names = ", ".join(dict.fromkeys(fields))
        message = f"{message}: it is about {names}" if names else message
    reason = status.reason if KNOWN_REASONS.fullmatch(status.reason) else ""
    return replace(status, reason=reason, message=message, details=details)


def _redact_details(status: Status) -> dict[str, Any]:
    details = _keep_known(status.details, KNOWN_DETAILS)
    if status.retry_after is not None and "retryAfterSeconds" in status.details:
        details["retryAfterSeconds"] = int(status.retry_after)
    causes = [_keep_known(cause, KNOWN_CAUSES) for cause in status.causes]
    if any(causes):
        details["causes"] = [cause for cause in causes if cause]
    return details


def _keep_known(sent: Mapping[str, Any], known: Mapping[str, re.Pattern[str]]) -> dict[str, Any]:
    return {
        name: sent[name]
        for name, form in known.items()
        if isinstance(sent.get(name), str) and form.fullmatch(sent[name])
    }


def redact_secret_error(error: BaseException, path: str) -> None:
    """Redact the ``Status`` of an error in place, also of a watch's ERROR event."""
    if not is_secret_path(path):
        return
    for each in iter_related(error):
        if isinstance(each, ServerError):
            each.status = redact_secret_values(each.status, path)
            shown = server_error(
                each.status, phase=each.phase, target=each.target, advice=each.advice
            )
            each.args = shown.args


# -- the submitted values ----------------------------------------------------------------------

NON_SECRET_FIELDS = frozenset(
    {"apiVersion", "kind", "type", "metadata", "op", "path", "from", "immutable"}
)
"""Fields of a Secret, or of an operation of a JSON patch, that hold no secret."""


MAX_BYTES_ON_LOOP = 8 * 1024
"""Bytes of a write whose values are searched for on the event loop, in some milliseconds."""


async def run_redaction(request: ApiRequest, redact: Callable[[], T]) -> T:
    """Call ``redact``, which hides the values of the request; for a large Secret in a thread."""
    if len(request.body) <= MAX_BYTES_ON_LOOP or not is_secret_path(request.path):
        return redact()
    redaction = asyncio.ensure_future(compute_in_thread(redact))
    try:
        return await asyncio.shield(redaction)
    finally:  # also after a cancellation: what is not redacted must not be seen
        while not redaction.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([redaction])


def secret_values(request: ApiRequest) -> Iterator[tuple[str, str]]:
    """Yield the values in the body of a write to a Secret, as headers for a ``Redactor``.

    Each value is yielded as submitted, encoded to base64, and decoded from base64.
    """
    if not request.body or not is_secret_path(request.path):
        return
    for text in _string_values(msgspec.json.decode(request.body)):
        for spelling in (text, b64encode(text.encode()).decode(), _decode_base64(text)):
            yield "", spelling


def _string_values(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in cast("list[object]", value):
            yield from _string_values(each)
    elif isinstance(value, Mapping):
        for name, each in cast("Mapping[str, object]", value).items():
            if name not in NON_SECRET_FIELDS:
                yield from _string_values(each)


def _decode_base64(text: str) -> str:
    try:
        return b64decode(text, validate=True).decode()
    except ValueError:  # base class of UnicodeDecodeError and binascii.Error
        return ""
