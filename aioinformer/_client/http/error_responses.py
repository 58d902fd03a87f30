"""An answer other than 200, read as far as it is worth and made the error that it means.

The code is known before the body comes and says most; so the body gets a few seconds and some
kilobytes. What it says is ``statuses``' to understand.

What is written to a Secret stays out of what is told of the answer.

A server, an admission webhook or a policy says why it refuses, and may quote what it refuses: all
of the object, or the value that it doesn't like. What was sent is known, and is hidden as
credentials are, in each of its spellings. What was stored before isn't: where a sentence may have
that, it is not told.
"""

from __future__ import annotations

import asyncio
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import cast

import aiohttp
import msgspec

from aioinformer._client.auth.redaction import Redactor
from aioinformer._client.http.error_mapping import (
    REQUEST_EXCEPTIONS,
    UNKNOWN_PATH,
    WRITE_OUTCOME_UNKNOWN,
    build_status,
)
from aioinformer._client.http.hints import (
    OBJECT_PATH,
    find_denied_user,
    hint_for_other_server,
    hint_for_read_error,
    hint_for_write_error,
    iter_causes,
    requires_tls,
)
from aioinformer._client.http.request import ApiRequest
from aioinformer.errors import (
    ConnectionFailed,
    FetchError,
    Phase,
    ProtocolError,
    Status,
    server_error,
)

__all__ = [
    "ERROR_BODY_TIMEOUT",
    "MAX_ERROR_BYTES",
    "is_html",
    "map_error_response",
    "read_error_body",
    "redact_secret_values",
    "secret_values",
]


NON_SECRET_FIELDS = frozenset(
    {"apiVersion", "kind", "type", "metadata", "op", "path", "from", "immutable"}
)
"""Fields of a Secret, or of an operation of a JSON patch, that are none."""

QUOTING_CODES = (400, 422)
"""Codes of what a server can't read or finds invalid: a merge patch that makes a label a number
comes back with all of the object."""

DENIED_REQUEST = re.compile(r"(denied (?:the )?request)\b.*", re.DOTALL)
"""What an admission webhook or a policy says behind this are somebody else's words."""


def redact_secret_values(status: Status, path: str) -> Status:
    """``status`` without the server's sentence where that may quote a Secret.

    Of a Secret that is invalid only the fields are told; of one that was denied, by whom.
    """
    if not _is_secret_path(path):
        return status
    if status.code not in QUOTING_CODES:
        said = DENIED_REQUEST.sub(r"\1; why may quote the Secret, and is not shown", status.message)
        return status if said == status.message else replace(status, message=said, details={})
    causes = [
        {name: cause[name] for name in ("reason", "field") if name in cause}
        for cause in iter_causes(status)
    ]
    fields = ", ".join(dict.fromkeys(str(cause["field"]) for cause in causes if "field" in cause))
    about = f": it is about {fields}" if fields else ""
    said = f"the server's sentence may quote the Secret, and is not shown{about}"
    return replace(status, message=said, details={"causes": causes} if causes else {})


def secret_values(request: ApiRequest) -> Iterator[tuple[str, str]]:
    """The values of the Secret that was sent, each as it was and in and out of base64; named like
    headers, for a ``Redactor``.
    """
    if not request.body or not _is_secret_path(request.path):
        return
    for text in _string_values(msgspec.json.decode(request.body)):
        for spelling in (text, b64encode(text.encode()).decode(), _decode_base64(text)):
            yield "", spelling


def _is_secret_path(path: str) -> bool:
    found = OBJECT_PATH.search(path)
    return found is not None and (found["plural"], found["group"]) == ("secrets", None)


def _string_values(value: object) -> Iterator[str]:
    """All texts in it, but for those that are no secret."""
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
    except ValueError:  # UnicodeDecodeError and binascii.Error are
        return ""


HTML_TYPES = ("text/html", "application/xhtml+xml")
"""What is meant for people: Kubernetes has none of it at the paths that are asked for."""

MAX_ERROR_BYTES = 64 * 1024
"""Bytes read of an error's body. A Status is a few hundred; a proxy's page may be anything."""

CREDENTIAL_ERROR_CODES = (401, 403)
"""Codes that may be due to the wrong context having been chosen."""

ERROR_BODY_TIMEOUT = 5.0
"""Seconds for that: the status code is known already and says most."""


def is_html(response: aiohttp.ClientResponse) -> bool:
    """Whether an answer is a page for people, such as that of a login."""
    return response.content_type in HTML_TYPES


async def map_error_response(
    response: aiohttp.ClientResponse, *, request: ApiRequest, redactor: Redactor, origin: str = ""
) -> FetchError:
    """The error that an answer means which doesn't say that the request was done, or a page.

    Args:
        response: the answer, its body unread.
        request: what was asked for.
        redactor: hides what was sent: some debugging proxies send a request's headers back in their
            error page.
        origin: which file and context the credentials are from, if from one.
    """
    target, phase = f"{request.method} {response.url.with_query(None)}", request.phase
    media = response.content_type if is_html(response) else ""
    stranger = hint_for_other_server(f"{response.url.host}:{response.url.port}", media, origin)
    if request.is_success(response.status):
        return ProtocolError(f"{target}: {stranger}", phase=phase)
    if response.status < 300:
        said = f"{target}: answered {response.status}, where only 200 makes sense"
        return ProtocolError(
            f"{said}; {WRITE_OUTCOME_UNKNOWN}" if request.is_write else said, phase=phase
        )
    body, whole = await read_error_body(response.content)
    status = build_status(
        response.status,
        response.headers,
        body,
        redactor=redactor,
        complete=whole,
        show_text=not request.body,
    )
    if request.is_write:
        status = redact_secret_values(status, response.url.path)
    if requires_tls(status):
        url = response.url
        said = f"{url.host}:{url.port}: it answers in TLS only: is the server's URL meant to be "
        return ConnectionFailed(f"{said}https://?{_origin_suffix(origin)}", phase=phase)
    advice = _hint_for_error(status, response.url.path, request)
    if _is_not_api_server(status, media, phase):
        advice = stranger
    if status.code in CREDENTIAL_ERROR_CODES:
        advice = f"{advice}{_origin_suffix(origin)}".strip()
    return server_error(status, phase=phase, target=target, advice=advice)


def _hint_for_error(status: Status, path: str, request: ApiRequest) -> str:
    if request.phase == "write" and status.code != 401:
        return hint_for_write_error(status, path, request.method, find_denied_user(status))
    return hint_for_read_error(status, path, request.phase)


def _is_not_api_server(status: Status, content_type: str, phase: Phase) -> bool:
    """Whether no API server says so: it redirects nobody, and has no page and no other text for
    what it doesn't know than Go's HTTP library, which says so for a removed resource as well.
    """
    if 300 <= status.code < 400:
        return True
    unlike = content_type or (phase == "discovery" and status.message != UNKNOWN_PATH)
    return status.code == 404 and not status.reason and bool(unlike)


def _origin_suffix(origin: str) -> str:
    return f" ({origin})" if origin else ""


async def read_error_body(content: aiohttp.StreamReader) -> tuple[bytes, bool]:
    """The first ``MAX_ERROR_BYTES`` bytes of a body, or what came of them in a few seconds; whether
    that is all of it.
    """
    body, whole = bytearray(), False
    try:
        async with asyncio.timeout(ERROR_BODY_TIMEOUT):
            while len(body) <= MAX_ERROR_BYTES and not whole:
                chunk = await content.readany()
                body += chunk
                whole = not chunk
    except REQUEST_EXCEPTIONS:
        pass  # the status code came, and says more than that its explanation broke off
    return bytes(body[:MAX_ERROR_BYTES]), whole and len(body) <= MAX_ERROR_BYTES
