"""Exceptions of aiohttp, ssl and the operating system, mapped to errors of this library.

This module is the one border at which foreign exceptions of a request become errors of this
library: the transport raises the returned error ``from`` the foreign exception. A message names the
method, host and path of the request, never a header, nor the query, which may carry a continue
token. Foreign exceptions keep headers and parts of the response, maybe of a Secret, in their
attributes and frames, which tracebacks show; the functions here remove both.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Iterator

import aiohttp
from aiohttp.http import HttpProcessingError
from aiohttp.http_exceptions import ContentEncodingError
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from aioinformer._client.auth.proxies import Proxy, host_and_port
from aioinformer._client.auth.redaction import Redactor, strip_quoted_response
from aioinformer._client.http.hints import (
    describe_certificate_error,
    describe_tls_error,
    hint_for_network_error,
)
from aioinformer._client.http.request import ApiRequest
from aioinformer._client.http.sessions import MAX_HEAD_LINE, MAX_HEADERS, SocksError
from aioinformer.errors import (
    ConnectionFailed,
    ConnectionLost,
    FetchError,
    ProtocolError,
    RequestTimedOut,
    TransportError,
)
from aioinformer.errors.texts import one_line

REQUEST_EXCEPTIONS = (aiohttp.ClientError, HttpProcessingError, OSError, TimeoutError)
"""The exceptions that aiohttp raises when a request or the reading of a response fails.
``HttpProcessingError`` is not a ``ClientError``; a malformed chunk raises it."""

TLS_ERRORS = (
    aiohttp.ClientSSLError,
    aiohttp.ServerDisconnectedError,
    ssl.SSLError,
    ConnectionResetError,
    BrokenPipeError,
)

MAX_PHRASE_LENGTH = 200
"""Characters shown of a proxy's reason phrase."""

MAX_REASON_LENGTH = 1024
"""Characters shown of the text of a foreign exception."""

DNS_HINT = "is it spelt right, and does this machine's DNS, or VPN, know it?"
ROUTE_HINT = "is the host up, and does a firewall, or a VPN that is off, keep this machine from it?"

PROXY_HINT = (
    "is it running, and is its URL right (`proxy-url:` in a kubeconfig, else the proxy of the "
    "client that was given)?"
)

ENVIRONMENT_PROXY_HINT = (
    "is it running, and is its URL right? A server that needs no proxy is named in $NO_PROXY"
)

WRITE_OUTCOME_UNKNOWN = "the server may or may not have done it: read the object to find out"


def map_request_error(
    error: BaseException,
    url: URL,
    request: ApiRequest,
    *,
    redactor: Redactor | None = None,
    proxy: Proxy | None = None,
    origin: str = "",
    has_answered: bool = False,
) -> FetchError:
    """Return the error for a request that got no response. Raise it ``from error``.

    Secrets, and everything that ``error`` quotes of a response, are removed from ``error`` in
    place. For a write that may have reached the server, the message says that its outcome is
    unknown. ``origin`` is the file and context that name the server; empty if there is none.
    ``has_answered`` is true if the server has answered another request.
    """
    _strip_headers(error)
    if redactor is not None:
        # Before the text is used: a proxy's reason phrase may repeat what it received.
        redactor.redact_error(error)
    mapped = _map_request_error(error, url, request, proxy, has_answered=has_answered)
    strip_quoted_response(error)
    text, unsent = str(mapped), isinstance(error, aiohttp.ConnectionTimeoutError)
    if request.is_write and not (unsent or isinstance(mapped, ConnectionFailed)):
        text = f"{text}; {WRITE_OUTCOME_UNKNOWN}"
    # The fault may be that of the proxy, also if the connection to the proxy was opened.
    if proxy is not None and proxy.description not in text:
        text = f"{text}; the request went through {proxy.description}"
    return type(mapped)(f"{text} ({origin})" if origin else text, phase=request.phase)


def _map_request_error(
    error: BaseException,
    url: URL,
    request: ApiRequest,
    proxy: Proxy | None,
    *,
    has_answered: bool,
) -> FetchError:
    host, target = host_and_port(url), f"{request.method} {url.with_query(None)}"
    # A TLS server answers plain HTTP with an alert, or closes the connection.
    is_suspect = url.scheme == "http" and not has_answered
    https_hint = "; should the server's URL begin with https://?" if is_suspect else ""
    match error:
        case aiohttp.ClientHttpProxyError() if proxy is not None:
            answer = f"{error.status} {one_line(error.message, MAX_PHRASE_LENGTH)}".rstrip()
            return ConnectionFailed(f"{host}: {proxy.description} answered {answer}")
        case SocksError() if proxy is not None:
            return ConnectionFailed(f"{host}: {proxy.description} failed: {error}")
        case aiohttp.ClientConnectorCertificateError():
            fault = describe_certificate_error(error.certificate_error)
            return ConnectionFailed(f"{host}: {fault}")
        case aiohttp.ClientSSLError():
            return ConnectionFailed(f"{host}: {describe_tls_error(error.os_error)}")
        case aiohttp.ClientConnectorError() if proxy is not None:
            hint = ENVIRONMENT_PROXY_HINT if proxy.variable else PROXY_HINT
            fault = f"can't be reached: {_system_reason(error.os_error)}; {hint}"
            return ConnectionFailed(f"{host}: {proxy.description} {fault}")
        case aiohttp.ClientConnectorDNSError():
            reason = error.os_error.strerror or _system_reason(error.os_error)
            if not isinstance(error.os_error, socket.gaierror):
                return ConnectionFailed(f"{host}: the name can't be looked up: {reason}")
            return ConnectionFailed(f"{host}: the name is not known: {reason}; {DNS_HINT}")
        case aiohttp.ClientConnectorError():
            hint = hint_for_network_error(error.os_error)
            reason = _system_reason(error.os_error)
            return ConnectionFailed(f"{host}: {reason}{f'; {hint}' if hint else ''}")
        case aiohttp.ConnectionTimeoutError():
            return RequestTimedOut(f"{host}: no connection in the time allowed; {ROUTE_HINT}")
        case TimeoutError():
            return RequestTimedOut(f"{target}: no response in the time allowed")
        case aiohttp.ClientResponseError() | HttpProcessingError():
            fault = _describe_encoding(error) or _describe_oversized_head(error.message)
            return ProtocolError(f"{target}: {fault or f'the response is not HTTP{https_hint}'}")
        case aiohttp.ServerDisconnectedError():
            text = "the server closed the connection without a response"
            return ConnectionLost(f"{target}: {text}{https_hint}")
        case _ if (alert := _find_tls_alert(error)) is not None:
            return ConnectionFailed(f"{host}: {describe_tls_error(alert)}")
        case _:
            return ConnectionLost(f"{target}: {_system_reason(error)}")


def map_response_error(
    error: BaseException, url: URL, request: ApiRequest
) -> TransportError | ProtocolError:
    """Return the error for a response that ended early. Raise it ``from error``.

    What ``error`` quotes of the response is removed in place.
    """
    kind: type[TransportError | ProtocolError] = ConnectionLost
    match error:
        case TimeoutError():
            kind, text = RequestTimedOut, "no more data of the response came in the time allowed"
        case HttpProcessingError():
            kind, text = ProtocolError, "the response is not well-formed HTTP"
        case _:
            text = f"the response broke off: {_describe_broken_response(error)}"
    strip_quoted_response(error)
    return kind(f"{request.method} {url.with_query(None)}: {text}", phase=request.phase)


def is_tls_failure(error: FetchError) -> bool:
    """Return True if one side may have rejected the certificate of the other side.

    In TLS 1.3 a server rejects a client's certificate after the client considers the handshake
    complete. Often the closed connection, or its reset, is all that the client sees.
    """
    return any(isinstance(each, TLS_ERRORS) for each in _iter_causes(error))


def _iter_causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__


def _strip_headers(error: BaseException) -> None:
    """Remove the headers of request and response from an exception of aiohttp.

    Its repr shows these headers with the credentials, which a proxy may have sent back.
    """
    if isinstance(error, aiohttp.ClientResponseError):
        no_headers = CIMultiDictProxy(CIMultiDict[str]())
        error.request_info = error.request_info._replace(headers=no_headers)
        error.args = (error.request_info, error.history)
    for each in (error, error.__cause__):  # aiohttp's client error has one of its parser's as cause
        if isinstance(each, aiohttp.ClientResponseError | HttpProcessingError):
            each.headers = None


def _describe_broken_response(error: BaseException) -> str:
    # The text of aiohttp's ClientPayloadError is the repr of another exception.
    if not isinstance(error, aiohttp.ClientPayloadError):
        return _system_reason(error)
    if isinstance(error.__cause__, ContentEncodingError):
        return "the body can't be decompressed"
    return "the connection broke in the middle of the body"


def _system_reason(error: BaseException) -> str:
    # asyncio's own text for a refused connection lacks the reason.
    if isinstance(error, OSError) and error.errno and not isinstance(error, socket.gaierror):
        return os.strerror(error.errno)
    text = error.strerror if isinstance(error, OSError) else None
    return one_line(text or str(error), MAX_REASON_LENGTH) or type(error).__name__


def _find_tls_alert(error: BaseException) -> ssl.SSLError | None:
    # In TLS 1.3 the server checks the client's certificate after the client's handshake has ended,
    # so the alert arrives as an error of the connection.
    found = error if isinstance(error, ssl.SSLError) else error.__cause__
    return found if isinstance(found, ssl.SSLError) else None


def _describe_encoding(error: BaseException) -> str:
    """Describe a response that is compressed in an unknown way; empty for another fault."""
    if not any(isinstance(each, ContentEncodingError) for each in _iter_causes(error)):
        return ""
    return (
        "the response has a Content-Encoding that was not asked for and can't be decompressed: "
        "does a proxy in between compress it?"
    )


def _describe_oversized_head(message: str) -> str:
    """Describe a response whose head is too large; empty if aiohttp's message says another fault.

    The head of an API server's response has some hundred bytes; proxies add cookies and the like.
    aiohttp's own message quotes the head.
    """
    if message.startswith("Got more than ") or message == "Too many headers received":
        return (
            f"the head of the response is too long (more than {MAX_HEADERS} lines, or a line of "
            f"more than {MAX_HEAD_LINE} bytes): does a proxy in between add to it?"
        )
    return ""
