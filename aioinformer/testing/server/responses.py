"""Answers over HTTP: a whole body or a stream, and how either is sent.

Here is everything about the bytes on the wire: length or chunks, compression, indentation, and a
connection that is broken on purpose. What an answer says is decided before.
"""

from __future__ import annotations

import gzip
import socket
import struct
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from aiohttp import web

from aioinformer.errors import ServerError
from aioinformer.testing.server.request_driver import RequestDriver, split_chunks
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import encode_document
from aioinformer.testing.wire.negotiation import JSON, accepts_gzip, accepts_plain, wants_pretty

__all__ = [
    "Response",
    "abort",
    "document_response",
    "error_response",
    "send_response",
    "stream_response",
]

CONTENT_LENGTH_LIMIT = 2048
"""Answers up to this size carry a Content-Length; longer ones are chunked (Go's net/http)."""
GZIP_MIN_BYTES = 128 * 1024
"""Answers from this size on are compressed for those who accept it (recording 55)."""

_CACHE_HEADERS = {"Cache-Control": "no-cache, private"}
_GZIP_HEADERS = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
_NOSNIFF_HEADERS = {"X-Content-Type-Options": "nosniff"}


@dataclass(frozen=True, slots=True)
class Response:
    """A whole answer."""

    body: bytes
    status: int = 200
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    is_error: bool = False
    """Whether it is a Status that says no."""


def document_response(body: Mapping[str, Any] | None, **headers: str) -> Response:
    """An answer that is a document.

    Raises:
        NotFound: there is none.
    """
    if body is None:
        raise statuses.page_not_found()
    return Response(encode_document(dict(body)), headers=headers)


def error_response(error: ServerError) -> Response:
    """A refusal as the server words it: a Status, or plain text where that is what it sends."""
    status = error.status
    headers: dict[str, str] = {}
    if status.retry_after is not None:
        headers["Retry-After"] = f"{status.retry_after:g}"
    if status.code == 404 and not status.reason:
        text = "text/plain; charset=utf-8"
        return Response(f"{status.message}\n".encode(), 404, text, headers | _NOSNIFF_HEADERS)
    if status.code == 403:
        headers |= (
            _NOSNIFF_HEADERS  # refused by a filter before the API's own code (recordings 25 and 40)
        )
    body = encode_document(statuses.status_document(status))
    return Response(body, status.code, JSON, headers, is_error=True)


async def send_response(
    request: web.Request, content: Response, driver: RequestDriver
) -> web.StreamResponse:
    """Send an answer, as far as it gets through.

    Raises:
        TransportError: not all of it did.
    """
    body, headers = (
        content.body,
        {"Content-Type": content.content_type, **_CACHE_HEADERS, **content.headers},
    )
    # A Status for someone who didn't ask for plain JSON is written by other code, indented.
    foreign = content.is_error and not accepts_plain(request.headers.get("Accept", ""))
    pretty = foreign or wants_pretty(request.headers, request.query)
    if content.content_type == JSON and pretty:
        body = msgspec.json.format(body, indent=2)
    if len(body) > GZIP_MIN_BYTES and accepts_gzip(request.headers):
        body = gzip.compress(body, compresslevel=1, mtime=0)  # level 1 is the server's
        headers |= _GZIP_HEADERS
    response = web.StreamResponse(status=content.status, headers=headers)
    if len(body) > CONTENT_LENGTH_LIMIT:
        response.enable_chunked_encoding()
    else:
        response.content_length = len(body)
    return await _write_parts(request, response, driver.transfer(split_chunks(body)))


async def stream_response(
    request: web.Request, lines: AsyncGenerator[bytes], driver: RequestDriver, *, gzipped: bool
) -> web.StreamResponse:
    """Send lines as they come, each as one HTTP chunk; the head goes out at once.

    Args:
        request: what is answered.
        lines: the lines; an empty one sends nothing.
        driver: the way they go.
        gzipped: compress each as a gzip member of its own, as Kubernetes 1.37 does.

    Raises:
        TransportError: they don't get through.
    """
    headers = {"Content-Type": JSON, **_CACHE_HEADERS, **(_GZIP_HEADERS if gzipped else {})}
    response = web.StreamResponse(headers=headers)
    response.enable_chunked_encoding()
    sent = _gzip_members(lines) if gzipped else lines
    return await _write_parts(request, response, driver.transfer(sent))


async def _gzip_members(lines: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    async for line in lines:
        yield gzip.compress(line, compresslevel=1, mtime=0) if line else b""


async def _write_parts(
    request: web.Request, response: web.StreamResponse, parts: AsyncGenerator[bytes]
) -> web.StreamResponse:
    await response.prepare(request)
    async for part in parts:
        await response.write(part)
    await response.write_eof()
    return response


def abort(request: web.Request) -> web.StreamResponse:
    """Break a request's connection; the answer that is returned goes nowhere."""
    transport = request.transport
    if transport is not None:
        connection = transport.get_extra_info("socket")
        if connection is not None:
            # Without lingering the peer gets a reset, not a polite end.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    return web.Response(status=500)
