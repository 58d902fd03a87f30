"""Error responses: their bodies read within limits and mapped to errors without secrets.

A ``v1.Status`` in the body becomes the ``Status`` of the error. Of any other body the error has the
size and the content type only.

Two kinds of secrets must not get from a response into an error. A proxy may repeat the headers of
the request; the ``Redactor`` hides them. The Status of a request for Secrets may quote one;
``secret_errors`` removes what may be such a quote.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import math
import re
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import aiohttp
import msgspec
from msgspec.structs import replace
from yarl import URL

from aioinformer._client.auth.proxies import host_and_port
from aioinformer._client.auth.redaction import Redactor
from aioinformer._client.http.error_mapping import REQUEST_EXCEPTIONS, WRITE_OUTCOME_UNKNOWN
from aioinformer._client.http.hints import (
    hint_for_other_server,
    hint_for_read_error,
    hint_for_write_error,
    requires_tls,
)
from aioinformer._client.http.request import ApiRequest
from aioinformer._client.http.secret_errors import redact_secret_values, run_redaction
from aioinformer._core.codec.status_decoder import decode_status
from aioinformer._core.quantities import quantity
from aioinformer.errors import (
    ConnectionFailed,
    FetchError,
    Phase,
    ProtocolError,
    Status,
    server_error,
)
from aioinformer.errors.texts import one_line

HTML_TYPES = ("text/html", "application/xhtml+xml")
"""Content types of pages for people. Kubernetes serves none of them at the requested paths."""

CREDENTIAL_ERROR_CODES = (401, 403)
"""Codes whose cause may be that the wrong context was chosen."""

UNKNOWN_PATH = "404 page not found"
"""The text of Go's HTTP library, with which API servers answer for a resource that was removed."""


# -- the response as an error ------------------------------------------------------------------


def is_html(response: aiohttp.ClientResponse) -> bool:
    return response.content_type in HTML_TYPES


async def map_error_response(
    response: aiohttp.ClientResponse,
    *,
    request: ApiRequest,
    make_redactor: Callable[[], Redactor],
    origin: str = "",
) -> FetchError:
    """Return the error for a response that is not a success, or is a page for people.

    The body must be unread. The redactor hides the secrets of the request, whose headers some
    debugging proxies send back. ``origin`` is the file and context of the credentials, if any.
    """
    target, phase = f"{request.method} {response.url.with_query(None)}", request.phase
    context = f" ({origin})" if origin else ""
    media = response.content_type if is_html(response) else ""
    host = host_and_port(response.url)
    other_server = hint_for_other_server(host, media, origin)
    if request.is_success(response.status):
        return ProtocolError(f"{target}: {other_server}", phase=phase)
    if response.status < 300:
        text = f"{target}: the server answered {response.status} where only 200 is valid"
        return ProtocolError(
            f"{text}; {WRITE_OUTCOME_UNKNOWN}" if request.is_write else text, phase=phase
        )
    status = await _read_status(response, request, make_redactor)
    if requires_tls(status):
        text = f"{host}: the server answers in TLS only: should its URL begin with https://?"
        return ConnectionFailed(f"{text}{context}", phase=phase)
    path = response.url.path
    if _is_not_api_server(status, media, phase):
        hint = other_server
    elif phase == "write" and status.code != 401:
        hint = hint_for_write_error(status, path, request.method)
    else:
        hint = hint_for_read_error(status, path, phase)
    if status.code in CREDENTIAL_ERROR_CODES:
        hint = f"{hint}{context}".strip()
    return server_error(status, phase=phase, target=target, advice=hint)


async def _read_status(
    response: aiohttp.ClientResponse, request: ApiRequest, make_redactor: Callable[[], Redactor]
) -> Status:
    body, complete = await read_error_body(response.content)

    def build() -> Status:
        return build_status(
            response.status,
            response.headers,
            body,
            path=response.url.path,
            redactor=make_redactor(),
            complete=complete,
        )

    return await run_redaction(request, build)


def _is_not_api_server(status: Status, content_type: str, phase: Phase) -> bool:
    """Return True if no API server would send this error.

    An API server redirects nobody and sends no HTML. Its only plain text for an unknown path is
    that of Go's HTTP library, also for a removed resource.
    """
    if 300 <= status.code < 400:
        return True
    foreign = content_type or (phase == "discovery" and status.message != UNKNOWN_PATH)
    return status.code == 404 and not status.reason and bool(foreign)


# -- the body ----------------------------------------------------------------------------------

MAX_ERROR_BYTES = 64 * 1024
"""Bytes read of an error's body. A Status has some hundred; a proxy's page may have any size."""

ERROR_BODY_TIMEOUT = 5.0
"""Seconds for reading the body of an error: the status code is known already and says most."""


async def read_error_body(content: aiohttp.StreamReader) -> tuple[bytes, bool]:
    """Return the first ``MAX_ERROR_BYTES``, or what arrived in time, and True if that is all."""
    body, complete = bytearray(), False
    try:
        async with asyncio.timeout(ERROR_BODY_TIMEOUT):
            while len(body) <= MAX_ERROR_BYTES and not complete:
                chunk = await content.readany()
                body += chunk
                complete = not chunk
    except REQUEST_EXCEPTIONS:
        pass  # the status code says more than the fact that the body broke off
    return bytes(body[:MAX_ERROR_BYTES]), complete and len(body) <= MAX_ERROR_BYTES


# -- the status --------------------------------------------------------------------------------

KNOWN_SENTENCES = (
    "Client sent an HTTP request to an HTTPS server",
    "The plain HTTP request was sent to HTTPS port",
    "Too many requests, please try again later.",
)
"""Sentences of Go's HTTP server, nginx and kube-apiserver that a message repeats: hints depend on
them, or they say more than the code."""

MEDIA_TYPE = re.compile(r"[a-z]{1,20}/[a-zA-Z0-9.+-]{1,60}")
"""Content types that a message repeats. Any other text may be anything."""

MAX_LOCATION_LENGTH = 200


def build_status(
    code: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    path: str = "",
    redactor: Redactor | None = None,
    complete: bool = True,
) -> Status:
    """Return the ``Status`` of an error response.

    A ``v1.Status`` in ``body`` is decoded. Of any other body only the size and the content type
    become the message, because it may be a Secret or repeat one; well-known sentences of servers
    are exceptions. The Status of a ``path`` of Secrets is redacted. ``complete`` is False for the
    beginning of a body. Headers are looked up in the spelling of the RFCs.
    """
    redactor = redactor or Redactor(())
    retry_after = _parse_retry_after(headers.get("Retry-After", ""))
    if 300 <= code < 400:
        text = _describe_redirect(headers.get("Location", ""), redactor)
        return Status(code, "", one_line(text, MAX_LOCATION_LENGTH), retry_after=retry_after)
    try:
        status = redact_secret_values(redactor.redact_status(decode_status(body, code=code)), path)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        text = _describe_body(code, headers, body, complete=complete)
        return Status(code, "", text, retry_after=retry_after)
    if not status.message:
        status = replace(status, message=_reason_phrase(status.code))
    return status if retry_after is None else replace(status, retry_after=retry_after)


def _describe_body(code: int, headers: Mapping[str, str], body: bytes, *, complete: bool) -> str:
    """Describe a body that is no Status, without quoting it."""
    if not body:
        return _reason_phrase(code)
    if body.strip() == UNKNOWN_PATH.encode():  # of a removed resource
        return UNKNOWN_PATH
    for sentence in KNOWN_SENTENCES:
        if sentence.encode() in body:
            return sentence
    media = headers.get("Content-Type", "").partition(";")[0].strip()
    kind = media if MEDIA_TYPE.fullmatch(media) else "no known content type"
    size = ("" if complete else "more than ") + quantity(len(body), "byte")
    return f"{_reason_phrase(code)}; the body is no Status: {size} of {kind}"


def _describe_redirect(location: str, redactor: Redactor) -> str:
    try:
        host = URL(location).host
    except ValueError:
        host = None
    where = f"to {host}" if host else "elsewhere on the same host"
    # The whole location is checked: yarl writes hosts in lower case, which no redactor recognizes.
    if redactor.redact_complete(location) != location:
        where = "to a location that repeats a header of the request"
    return f"redirected {where}, which is not followed: credentials are not sent there"


def _reason_phrase(code: int) -> str:
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return "no body"


def _parse_retry_after(retry_after: str) -> float | None:
    """Return the seconds of ``Retry-After``. Kubernetes sends seconds; proxies may send a date."""
    if retry_after.isdecimal():
        seconds = float(retry_after)
        return seconds if math.isfinite(seconds) else None
    try:
        date = parsedate_to_datetime(retry_after)
    except (ValueError, OverflowError):  # not a date, or a date that no calendar has
        return None
    date = date if date.tzinfo else date.replace(tzinfo=dt.UTC)
    return max(0.0, (date - dt.datetime.now(dt.UTC)).total_seconds())
