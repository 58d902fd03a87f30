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

from aioinformer._client.auth.redaction import Mask
from aioinformer._client.http.error_mapping import DOUBT, FAILURES, UNKNOWN_PATH, status_of
from aioinformer._client.http.hints import (
    TARGET,
    about_refusal,
    about_refused_write,
    about_stranger,
    causes_of,
    is_tls_only,
    user_in,
)
from aioinformer._client.http.request import Call
from aioinformer.errors import (
    ConnectionFailed,
    FetchError,
    Phase,
    ProtocolError,
    Status,
    server_error,
)

__all__ = [
    "ERROR_CAP",
    "ERROR_SECONDS",
    "beginning",
    "is_page",
    "refusal",
    "unquoted",
    "values_sent",
]


OPEN = frozenset({"apiVersion", "kind", "type", "metadata", "op", "path", "from", "immutable"})
"""Fields of a Secret, or of an operation of a JSON patch, that are none."""

QUOTING = (400, 422)
"""Codes of what a server can't read or finds invalid: a merge patch that makes a label a number
comes back with all of the object."""

DENIED = re.compile(r"(denied (?:the )?request)\b.*", re.DOTALL)
"""What an admission webhook or a policy says behind this are somebody else's words."""


def unquoted(status: Status, path: str) -> Status:
    """``status`` without the server's sentence where that may quote a Secret.

    Of a Secret that is invalid only the fields are told; of one that was denied, by whom.
    """
    if not _is_secret(path):
        return status
    if status.code not in QUOTING:
        said = DENIED.sub(r"\1; why may quote the Secret, and is not shown", status.message)
        return status if said == status.message else replace(status, message=said, details={})
    causes = [
        {name: cause[name] for name in ("reason", "field") if name in cause}
        for cause in causes_of(status)
    ]
    fields = ", ".join(dict.fromkeys(str(cause["field"]) for cause in causes if "field" in cause))
    about = f": it is about {fields}" if fields else ""
    said = f"the server's sentence may quote the Secret, and is not shown{about}"
    return replace(status, message=said, details={"causes": causes} if causes else {})


def values_sent(call: Call) -> Iterator[tuple[str, str]]:
    """The values of the Secret that was sent, each as it was and in and out of base64; named like
    headers, for a ``Mask``.
    """
    if not call.body or not _is_secret(call.path):
        return
    for text in _texts(msgspec.json.decode(call.body)):
        for spelling in (text, b64encode(text.encode()).decode(), _decoded(text)):
            yield "", spelling


def _is_secret(path: str) -> bool:
    found = TARGET.search(path)
    return found is not None and (found["plural"], found["group"]) == ("secrets", None)


def _texts(value: object) -> Iterator[str]:
    """All texts in it, but for those that are no secret."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in cast("list[object]", value):
            yield from _texts(each)
    elif isinstance(value, Mapping):
        for name, each in cast("Mapping[str, object]", value).items():
            if name not in OPEN:
                yield from _texts(each)


def _decoded(text: str) -> str:
    try:
        return b64decode(text, validate=True).decode()
    except ValueError:  # UnicodeDecodeError and binascii.Error are
        return ""


PAGES = ("text/html", "application/xhtml+xml")
"""What is meant for people: Kubernetes has none of it at the paths that are asked for."""

ERROR_CAP = 64 * 1024
"""Bytes read of an error's body. A Status is a few hundred; a proxy's page may be anything."""

OF_CREDENTIALS = (401, 403)
"""Codes that may be due to the wrong context having been chosen."""

ERROR_SECONDS = 5.0
"""Seconds for that: the status code is known already and says most."""


def is_page(response: aiohttp.ClientResponse) -> bool:
    """Whether an answer is a page for people, such as that of a login."""
    return response.content_type in PAGES


async def refusal(
    response: aiohttp.ClientResponse, *, call: Call, mask: Mask, origin: str = ""
) -> FetchError:
    """The error that an answer means which doesn't say that the request was done, or a page.

    Args:
        response: the answer, its body unread.
        call: what was asked for.
        mask: hides what was sent: some debugging proxies send a request's headers back in their
            error page.
        origin: which file and context the credentials are from, if from one.
    """
    target, phase = f"{call.method} {response.url.with_query(None)}", call.phase
    media = response.content_type if is_page(response) else ""
    stranger = about_stranger(f"{response.url.host}:{response.url.port}", media, origin)
    if call.succeeded(response.status):
        return ProtocolError(f"{target}: {stranger}", phase=phase)
    if response.status < 300:
        said = f"{target}: answered {response.status}, where only 200 makes sense"
        return ProtocolError(f"{said}; {DOUBT}" if call.writes else said, phase=phase)
    body, whole = await beginning(response.content)
    status = status_of(
        response.status, response.headers, body, mask=mask, whole=whole, text=not call.body
    )
    if call.writes:
        status = unquoted(status, response.url.path)
    if is_tls_only(status):
        url = response.url
        said = f"{url.host}:{url.port}: it answers in TLS only: is the server's URL meant to be "
        return ConnectionFailed(f"{said}https://?{_from(origin)}", phase=phase)
    advice = _advice(status, response.url.path, call)
    if _by_a_stranger(status, media, phase):
        advice = stranger
    if status.code in OF_CREDENTIALS:
        advice = f"{advice}{_from(origin)}".strip()
    return server_error(status, phase=phase, target=target, advice=advice)


def _advice(status: Status, path: str, call: Call) -> str:
    if call.phase == "write" and status.code != 401:
        return about_refused_write(status, path, call.method, user_in(status))
    return about_refusal(status, path, call.phase)


def _by_a_stranger(status: Status, media: str, phase: Phase) -> bool:
    """Whether no API server says so: it redirects nobody, and has no page and no other text for
    what it doesn't know than Go's HTTP library, which says so for a removed resource as well.
    """
    if 300 <= status.code < 400:
        return True
    unlike = media or (phase == "discovery" and status.message != UNKNOWN_PATH)
    return status.code == 404 and not status.reason and bool(unlike)


def _from(origin: str) -> str:
    return f" ({origin})" if origin else ""


async def beginning(content: aiohttp.StreamReader) -> tuple[bytes, bool]:
    """The first ``ERROR_CAP`` bytes of a body, or what came of them in a few seconds; whether
    that is all of it.
    """
    body, whole = bytearray(), False
    try:
        async with asyncio.timeout(ERROR_SECONDS):
            while len(body) <= ERROR_CAP and not whole:
                chunk = await content.readany()
                body += chunk
                whole = not chunk
    except FAILURES:
        pass  # the status code came, and says more than that its explanation broke off
    return bytes(body[:ERROR_CAP]), whole and len(body) <= ERROR_CAP
