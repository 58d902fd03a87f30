"""An answer other than 200, read as far as it is worth and made the error that it means.

The code is known before the body comes and says most; so the body gets a few seconds and some
kilobytes. What it says is ``statuses``' to understand.
"""

from __future__ import annotations

import asyncio

import aiohttp

from aioinformer._client.advice import about_refusal, about_stranger, is_tls_only, user_in
from aioinformer._client.calls import Call
from aioinformer._client.confidences import unquoted
from aioinformer._client.masking import Mask
from aioinformer._client.statuses import DOUBT, FAILURES, UNKNOWN_PATH, status_of
from aioinformer._client.write_advice import about_refused_write
from aioinformer.errors import (
    ConnectionFailed,
    FetchError,
    Phase,
    ProtocolError,
    Status,
    server_error,
)

__all__ = ["ERROR_CAP", "ERROR_SECONDS", "beginning", "is_page", "refusal"]

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
