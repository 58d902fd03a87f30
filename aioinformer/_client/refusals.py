"""An answer other than 200, read as far as it is worth and made the error that it means.

The code is known before the body comes and says most; so the body gets a few seconds and some
kilobytes. What it says is ``statuses``' to understand.
"""

from __future__ import annotations

import asyncio

import aiohttp

from aioinformer._client.advice import about_refusal, is_tls_only
from aioinformer._client.masking import Mask
from aioinformer._client.statuses import FAILURES, status_of
from aioinformer.errors import ConnectionFailed, FetchError, Phase, ProtocolError, server_error

__all__ = ["ERROR_CAP", "refusal"]

ERROR_CAP = 64 * 1024
"""Bytes read of an error's body. A Status is a few hundred; a proxy's page may be anything."""

OF_CREDENTIALS = (401, 403)
"""Codes that may be due to the wrong context having been chosen."""

ERROR_SECONDS = 5.0
"""Seconds for that: the status code is known already and says most."""


async def refusal(
    response: aiohttp.ClientResponse, *, phase: Phase, mask: Mask, origin: str = ""
) -> FetchError:
    """The error that an answer other than 200 means.

    Args:
        response: the answer, its body unread.
        phase: what was asked for.
        mask: hides what was sent: some debugging proxies send a request's headers back in their
            error page.
        origin: which file and context the credentials are from, if from one.
    """
    target = f"GET {response.url.with_query(None)}"
    if response.status < 300:
        said = f"{target}: answered {response.status}, where only 200 makes sense"
        return ProtocolError(said, phase=phase)
    body, whole = await _beginning(response)
    status = status_of(response.status, response.headers, body, mask=mask, whole=whole)
    if is_tls_only(status):
        url = response.url
        said = f"{url.host}:{url.port}: it answers in TLS only: is the server's URL meant to be "
        return ConnectionFailed(f"{said}https://?{_from(origin)}", phase=phase)
    advice = about_refusal(status, response.url.path, phase)
    if status.code in OF_CREDENTIALS:
        advice += _from(origin)
    return server_error(status, phase=phase, target=target, advice=advice)


def _from(origin: str) -> str:
    return f" ({origin})" if origin else ""


async def _beginning(response: aiohttp.ClientResponse) -> tuple[bytes, bool]:
    """The first ``ERROR_CAP`` bytes of a body, or what came of them in a few seconds; whether
    that is all of it.
    """
    body, whole = bytearray(), False
    try:
        async with asyncio.timeout(ERROR_SECONDS):
            while len(body) <= ERROR_CAP and not whole:
                chunk = await response.content.readany()
                body += chunk
                whole = not chunk
    except FAILURES:
        pass  # the status code came, and says more than that its explanation broke off
    return bytes(body[:ERROR_CAP]), whole and len(body) <= ERROR_CAP
