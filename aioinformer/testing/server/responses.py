"""Responses over HTTP: length or chunks, compression, indentation, and broken connections."""

from __future__ import annotations

import gzip
import socket
import struct
import zlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from aiohttp import web
from multidict import CIMultiDict

from aioinformer.errors import ServerError
from aioinformer.testing.server.request_driver import CHUNK_BYTES, RequestDriver, split_chunks
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import encode_document
from aioinformer.testing.wire.negotiation import JSON, accepts_gzip, accepts_plain, wants_pretty

CONTENT_LENGTH_LIMIT = 2048
"""Bytes up to which bodies have a Content-Length; longer ones are chunked (Go's net/http)."""
GZIP_MIN_BYTES = 128 * 1024
"""Bodies from this size on are compressed for clients that accept gzip."""
GZIP_LEVEL = 1
"""The compression level of a real server."""
GZIP_WINDOW_BITS = zlib.MAX_WBITS | 16
"""zlib's value for the gzip format."""

_REDIRECTION_TARGET = "https://elsewhere.invalid/"
"""Another host, to which no credentials may be sent."""
_CACHE_HEADERS = {"Cache-Control": "no-cache, private"}
_GZIP_HEADERS = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
_NOSNIFF_HEADERS = {"X-Content-Type-Options": "nosniff"}


@dataclass(frozen=True, slots=True)
class Response:
    body: bytes
    status: int = 200
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    warnings: Sequence[str] = ()
    """Texts of the headers ``Warning``."""
    is_error: bool = False


def document_response(body: Mapping[str, Any] | None, **headers: str) -> Response:
    """Return the response with a document; raise ``NotFound`` for ``None``."""
    if body is None:
        raise statuses.page_not_found()
    return Response(encode_document(dict(body)), headers=headers)


def error_response(error: ServerError) -> Response:
    """Return the response for an error: a Status, or plain text for an unknown path."""
    status = error.status
    headers: dict[str, str] = {}
    if status.retry_after is not None:
        headers["Retry-After"] = f"{status.retry_after:g}"
    if 300 <= status.code < 400:
        headers["Location"] = _REDIRECTION_TARGET
    if status.code == 404 and not status.reason:
        text = "text/plain; charset=utf-8"
        return Response(f"{status.message}\n".encode(), 404, text, headers | _NOSNIFF_HEADERS)
    if status.code == 403:
        # A filter answers 403 before the code of the API runs.
        headers |= _NOSNIFF_HEADERS
    body = encode_document(statuses.status_document(status))
    return Response(body, status.code, JSON, headers, is_error=True)


async def send_response(
    request: web.BaseRequest, content: Response, driver: RequestDriver
) -> web.StreamResponse:
    """Return a response that is sent or ready; raise ``TransportError`` if faults cut it."""
    body = content.body
    headers: CIMultiDict[str] = CIMultiDict(
        {"Content-Type": content.content_type, **_CACHE_HEADERS, **content.headers}
    )
    for text in content.warnings:
        headers.add("Warning", f"299 - {msgspec.json.encode(text).decode()}")
    # Other code of the server, which indents, writes a Status for clients that don't accept JSON.
    indented = content.is_error and not accepts_plain(request.headers.get("Accept", ""))
    indented = indented or wants_pretty(request.headers, request.query)
    if content.content_type == JSON and indented:
        body = msgspec.json.format(body, indent=2)
    if len(body) > GZIP_MIN_BYTES and accepts_gzip(request.headers):
        body = _compress(body)
        headers.update(_GZIP_HEADERS)
    chunked = len(body) > CONTENT_LENGTH_LIMIT
    # The usual response leaves in one write: HEAD and 304 have no body, and faults need the parts.
    if driver.request.undisturbed and 0 < len(body) <= CHUNK_BYTES and request.method != "HEAD":
        whole = web.Response(body=body, status=content.status, headers=headers)
        if chunked:
            whole.enable_chunked_encoding()
        return whole
    response = web.StreamResponse(status=content.status, headers=headers)
    if chunked:
        response.enable_chunked_encoding()
    else:
        response.content_length = len(body)
    return await _write_parts(request, response, driver.transfer(split_chunks(body)))


async def stream_response(
    request: web.BaseRequest, lines: AsyncGenerator[bytes], driver: RequestDriver, *, gzipped: bool
) -> web.StreamResponse:
    """Send the head at once, then each line as an HTTP chunk; ``TransportError`` if faults cut it.

    An empty line sends nothing. With ``gzipped`` each line is a gzip member, as by Kubernetes 1.37.
    """
    headers = {"Content-Type": JSON, **_CACHE_HEADERS, **(_GZIP_HEADERS if gzipped else {})}
    response = web.StreamResponse(headers=headers)
    response.enable_chunked_encoding()
    sent = _gzip_members(lines) if gzipped else lines
    return await _write_parts(request, response, driver.transfer(sent))


async def _gzip_members(lines: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    async for line in lines:
        yield _gzip_member(line) if line else b""


def _gzip_member(line: bytes) -> bytes:
    """Return a line as a gzip member that is flushed before its end (``perFlushGzipWriter``).

    Without that flush, Go's reader shows a member only when the next one begins.
    """
    compressor = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, GZIP_WINDOW_BITS)
    flushed = compressor.compress(line) + compressor.flush(zlib.Z_SYNC_FLUSH)
    return flushed + compressor.flush(zlib.Z_FINISH)


def _compress(data: bytes) -> bytes:
    return gzip.compress(data, compresslevel=GZIP_LEVEL, mtime=0)


async def _write_parts(
    request: web.BaseRequest, response: web.StreamResponse, parts: AsyncGenerator[bytes]
) -> web.StreamResponse:
    await response.prepare(request)
    if request.method != "HEAD":  # its response has the head alone
        async for part in parts:
            await response.write(part)
    await response.write_eof()
    return response


def abort(request: web.BaseRequest) -> web.StreamResponse:
    """Break the connection of a request. The returned response is never sent."""
    transport = request.transport
    if transport is not None:
        connection = transport.get_extra_info("socket")
        if connection is not None:
            # With SO_LINGER of 0 seconds the client gets a reset, not an orderly end.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    return web.Response(status=500)
