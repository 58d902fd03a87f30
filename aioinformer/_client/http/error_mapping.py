"""Failures of the network, as our errors: HTTP answers and aiohttp's exceptions.

This is the one border where foreign exceptions of a request are mapped. A message names the
method, the host and the path of what was asked, never its query (a continue token is nobody's
business) and never a header; what an answer repeats of one is masked. Asking is ``transport``'s
work, reading the body of an answer that of ``refusals``, what to do about it that of ``advice``;
what follows from an error is the cursor's.
"""

from __future__ import annotations

import datetime as dt
import math
import os
import socket
import ssl
from collections.abc import Mapping
from dataclasses import replace
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import aiohttp
import msgspec
from aiohttp.http import HttpProcessingError
from aiohttp.http_exceptions import ContentEncodingError
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from aioinformer._client.auth.redaction import Redactor
from aioinformer._client.http.hints import (
    describe_certificate_error,
    describe_tls_error,
    hint_for_network_error,
)
from aioinformer._core.codec.status_decoder import decode_status, one_line
from aioinformer._core.writing.write_requests import Method
from aioinformer.errors import (
    ConnectionFailed,
    ConnectionLost,
    FetchError,
    Phase,
    ProtocolError,
    RequestTimedOut,
    Status,
    TransportError,
)

__all__ = [
    "MAX_TEXT_LENGTH",
    "REQUEST_EXCEPTIONS",
    "UNKNOWN_PATH",
    "WRITE_OUTCOME_UNKNOWN",
    "build_status",
    "map_request_error",
    "map_response_error",
    "strip_headers",
]

MAX_TEXT_LENGTH = 1024
"""Characters kept of an answer that is no Status: the page of a proxy may be a megabyte, and its
first lines say what it is."""

UNKNOWN_PATH = "404 page not found"
"""What Go's HTTP library says, which is what servers say of a resource that was removed."""

MAX_PHRASE_LENGTH = 200
"""Characters kept of a word of the server's that should be a short one: a reason phrase, a host."""

DNS_HINT = "is it spelt right, and does this machine's DNS, or VPN, know it?"
ROUTE_HINT = "is the host up, and does a firewall, or a VPN that is off, keep this machine from it?"

PROXY_HINT = (
    "is it running, and its URL right (`proxy-url:` in a kubeconfig, else that of the client that "
    "was given)?"
)

WRITE_OUTCOME_UNKNOWN = "whether it was done is unknown: read the object to find out"
"""What is told of a write that may have reached the server, and got no answer."""

REQUEST_EXCEPTIONS = (aiohttp.ClientError, HttpProcessingError, OSError, TimeoutError)
"""What aiohttp raises when a request or an open answer fails. ``HttpProcessingError`` is not a
``ClientError``: a malformed chunk arrives as one."""


# -- answers -----------------------------------------------------------------------------------


def build_status(
    code: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    redactor: Redactor | None = None,
    complete: bool = True,
    show_text: bool = True,
) -> Status:
    """What an answer other than 200 says.

    Args:
        code: its HTTP status code.
        headers: its headers, looked up in the spelling of the RFCs.
        body: its body, or the beginning of it. A ``v1.Status`` is taken apart; anything else
            (a removed custom resource is answered with plain text, recording 53; proxies send
            HTML) becomes the message, on one line and cut to ``MAX_TEXT_LENGTH`` characters.
        redactor: hides what was sent with the request.
        complete: whether the body came to its end; else its last characters may be the first ones
            of something to hide.
        show_text: whether what is no Status is shown. It may repeat the body of a write, such as a
            Secret's; of that, only Go's word for an unknown path is shown.
    """
    redactor = redactor or Redactor(())
    waits = _parse_retry_after(headers.get("Retry-After", ""))
    if 300 <= code < 400:
        said = one_line(
            _describe_redirect(headers.get("Location", ""), redactor), MAX_PHRASE_LENGTH
        )
        return Status(code, "", said, retry_after=waits)
    try:
        status = redactor.redact_status(decode_status(body, code=code))
    except (msgspec.MsgspecError, UnicodeDecodeError):
        said = body.decode("utf-8", "replace")
        if not show_text and said.strip() != UNKNOWN_PATH:
            said = ""
        masked = redactor.redact_complete(said) if complete else redactor.redact_prefix(said)
        line = one_line(" ".join(masked.split()), MAX_TEXT_LENGTH)
        return Status(code, "", line or _reason_phrase(code), retry_after=waits)
    if not status.message:
        status = replace(status, message=_reason_phrase(status.code))
    return status if waits is None else replace(status, retry_after=waits)


def _describe_redirect(location: str, redactor: Redactor) -> str:
    try:
        host = URL(location).host
    except ValueError:
        host = None
    where = f"to {host}" if host else "elsewhere on the same host"
    if (
        redactor.redact_complete(location) != location
    ):  # hosts are put in lower case, where no mask knows them
        where = "to where it repeats a header of the request"
    return f"redirected {where}, which is not followed: credentials are not sent there"


def _reason_phrase(code: int) -> str:
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return "no body"


def _parse_retry_after(retry_after: str) -> float | None:
    """``Retry-After`` in either of its forms. Kubernetes sends seconds; proxies may send a date."""
    if retry_after.isdecimal():
        seconds = float(retry_after)
        return seconds if math.isfinite(seconds) else None
    try:
        date = parsedate_to_datetime(retry_after)
    except (ValueError, OverflowError):  # no date, or one beyond all calendars
        return None
    date = date if date.tzinfo else date.replace(tzinfo=dt.UTC)
    return max(0.0, (date - dt.datetime.now(dt.UTC)).total_seconds())


# -- exceptions --------------------------------------------------------------------------------


def map_request_error(
    error: BaseException,
    url: URL,
    *,
    phase: Phase,
    proxy: URL | None,
    origin: str = "",
    method: Method = "GET",
) -> FetchError:
    """Our error for a request that got no answer. Raise it ``from error``.

    Args:
        error: one of ``REQUEST_EXCEPTIONS``.
        url: what was asked; its query is not told.
        phase: what it was asked for.
        proxy: through which proxy, if through one.
        origin: which file and context named the server, if one did.
        method: how it was asked. Whether a write was done is unknown then, unless it never
            reached the server.
    """
    made = _map_request_error(error, url, phase, proxy, method)
    reached = not isinstance(made, ConnectionFailed)
    sent = reached and not isinstance(error, aiohttp.ConnectionTimeoutError)
    doubt = f"; {WRITE_OUTCOME_UNKNOWN}" if method != "GET" and sent else ""
    return type(made)(f"{made}{doubt} ({origin})" if origin else f"{made}{doubt}", phase=phase)


def _map_request_error(
    error: BaseException, url: URL, phase: Phase, proxy: URL | None, method: Method
) -> FetchError:
    host, target = _host_and_port(url), f"{method} {url.with_query(None)}"
    match error:
        case aiohttp.ClientHttpProxyError():
            answer = f"{error.status} {one_line(error.message, MAX_PHRASE_LENGTH)}".rstrip()
            said = f"{host}: the proxy {_host_and_port(proxy)} answered {answer}"
            return ConnectionFailed(said, phase=phase)
        case aiohttp.ClientConnectorCertificateError():
            said = f"{host}: {describe_certificate_error(error.certificate_error)}"
            return ConnectionFailed(said, phase=phase)
        case aiohttp.ClientSSLError():
            return ConnectionFailed(f"{host}: {describe_tls_error(error.os_error)}", phase=phase)
        case aiohttp.ClientConnectorError() if proxy is not None:
            said = f"{host}: the proxy {_host_and_port(proxy)} can't be reached: {_system_reason(error.os_error)}"
            return ConnectionFailed(f"{said}; {PROXY_HINT}", phase=phase)
        case aiohttp.ClientConnectorDNSError():
            said = f"{host}: the name is not known: {_system_reason(error.os_error)}; {DNS_HINT}"
            return ConnectionFailed(said, phase=phase)
        case aiohttp.ClientConnectorError():
            return ConnectionFailed(
                f"{host}: {_describe_network_error(error.os_error)}", phase=phase
            )
        case aiohttp.ConnectionTimeoutError():
            said = f"{host}: no connection in the time allowed; {ROUTE_HINT}"
            return RequestTimedOut(said, phase=phase)
        case TimeoutError():
            return RequestTimedOut(f"{target}: no answer in the time allowed", phase=phase)
        case aiohttp.ClientResponseError() | HttpProcessingError():
            wrong = (
                _describe_oversized_head(error.message)
                or f"the answer is not HTTP{_https_hint(url)}"
            )
            return ProtocolError(f"{target}: {wrong}", phase=phase)
        case aiohttp.ServerDisconnectedError():
            said = f"{target}: the server hung up without an answer{_https_hint(url)}"
            return ConnectionLost(said, phase=phase)
        case _ if (alert := _find_tls_alert(error)) is not None:
            return ConnectionFailed(f"{host}: {describe_tls_error(alert)}", phase=phase)
        case _:
            return ConnectionLost(f"{target}: {_system_reason(error)}", phase=phase)


def strip_headers(error: BaseException) -> BaseException:
    """``error``, relieved of the headers of request and answer: its repr shows them, credentials
    too, and a proxy may send back what it got.
    """
    if isinstance(error, aiohttp.ClientResponseError):
        no_headers = CIMultiDictProxy(CIMultiDict[str]())
        error.request_info = error.request_info._replace(headers=no_headers)
        error.args = (error.request_info, error.history)
    for each in (error, error.__cause__):  # aiohttp's own is made of one of its parser's
        if isinstance(each, aiohttp.ClientResponseError | HttpProcessingError):
            each.headers = None
    return error


def map_response_error(
    error: BaseException, url: URL, *, phase: Phase, method: Method = "GET"
) -> TransportError | ProtocolError:
    """Our error for an answer that broke off. Raise it ``from error``."""
    target = f"{method} {url.with_query(None)}"
    match error:
        case TimeoutError():
            return RequestTimedOut(f"{target}: the answer stopped coming", phase=phase)
        case HttpProcessingError():
            return ProtocolError(f"{target}: the answer is not well-formed HTTP", phase=phase)
        case _:
            said = f"{target}: the answer broke off: {_describe_broken_response(error)}"
            return ConnectionLost(said, phase=phase)


def _describe_broken_response(error: BaseException) -> str:
    """Why an answer ended early. aiohttp's own text quotes the repr of another exception."""
    if not isinstance(error, aiohttp.ClientPayloadError):
        return _system_reason(error)
    if isinstance(error.__cause__, ContentEncodingError):
        return "it can't be decompressed"
    return "the connection broke in the middle of it"


def _host_and_port(url: URL | None) -> str:
    return f"{url.host}:{url.port}" if url else ""


def _system_reason(error: BaseException) -> str:
    """What the system says. asyncio's own text of a refused connection lacks the reason."""
    if isinstance(error, OSError) and error.errno and not isinstance(error, socket.gaierror):
        return os.strerror(error.errno)
    said = error.strerror if isinstance(error, OSError) else None
    return one_line(said or str(error), MAX_TEXT_LENGTH) or type(error).__name__


def _describe_network_error(error: OSError) -> str:
    advice = hint_for_network_error(error)
    return f"{_system_reason(error)}; {advice}" if advice else _system_reason(error)


def _find_tls_alert(error: BaseException) -> ssl.SSLError | None:
    """What a server says of the handshake after its end: in TLS 1.3 it looks at the client's
    certificate only then.
    """
    found = error if isinstance(error, ssl.SSLError) else error.__cause__
    return found if isinstance(found, ssl.SSLError) else None


def _describe_oversized_head(message: str) -> str:
    """That an answer has too much of a head, if that is what aiohttp says. Its own text quotes it.

    An API server's head has some hundred bytes: it is a proxy's cookies, or the like.
    """
    if message.startswith("Got more than ") or message == "Too many headers received":
        return (
            "the head of the answer is too long (aiohttp takes lines of 8190 bytes): does a proxy "
            "in between add to it?"
        )
    return ""


def _https_hint(url: URL) -> str:
    """What may be behind it: a TLS server answers plain HTTP with an alert, or with nothing."""
    return "; is the server's URL meant to be https://?" if url.scheme == "http" else ""
