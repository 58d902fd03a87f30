"""Requests and open answers: bytes between the API server and the rest.

An answer is handed out as an open ``ResponseStream`` whose chunks are read as they arrive; a body that is
left before its end takes its connection with it. With what a request goes out ``access`` says, on
which connections ``sessions``; what the bytes mean is ``wire``'s work, and what failed is told by
``statuses`` and ``refusals``. A request is sent once more if there are other credentials than
those with which it failed. Nothing else is tried again here: that is the cursor's to decide, and
the program's where something is written.

``send_once``: keeps aiohttp from sending a write a second time.

When a connection that was used before breaks, aiohttp sends idempotent requests once more, on a
new one, and takes PUT and DELETE for such. To Kubernetes they are not: a PUT that was done the
first time is a Conflict the second time, a DELETE is a 404, or hits what was created meanwhile.
The program has to know that it doesn't know.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import PackageNotFoundError, version

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from aioinformer._client.auth.authenticator import Authenticator, RequestCredentials
from aioinformer._client.auth.credentials import Credentials
from aioinformer._client.auth.impersonation import has_impersonation_headers
from aioinformer._client.auth.redaction import Redactor, strip_quoted_response
from aioinformer._client.http.error_mapping import (
    REQUEST_EXCEPTIONS,
    map_request_error,
    map_response_error,
    strip_headers,
)
from aioinformer._client.http.error_responses import is_html, map_error_response, secret_values
from aioinformer._client.http.headers import Headers, ServerWarnings, current_headers
from aioinformer._client.http.request import JSON, ApiRequest, Timeouts
from aioinformer._client.http.sessions import Sessions
from aioinformer.errors import (
    ConnectionFailed,
    FetchError,
    NotRunning,
    RequestTimedOut,
    TransportError,
    Unauthorized,
)

__all__ = [
    "JSON",
    "ApiRequest",
    "ResponseStream",
    "SendFailed",
    "Timeouts",
    "Transport",
    "send_once",
]


class SendFailed(Exception):
    """No error of its own: carries a failure past aiohttp, which sends again after some."""

    def __init__(self, error: aiohttp.ClientError) -> None:
        super().__init__(type(error).__name__)
        self.error = error


async def send_once(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """A middleware of aiohttp's: send it, and let no failure be a reason to do so again.

    Raises:
        SentOnce: the connection broke; wraps what aiohttp says of it.
    """
    try:
        return await handler(request)
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise SendFailed(error) from error


MAX_CONCURRENT_REQUESTS = 100
"""Lists and single requests under way together, and so their connections. A semaphore rather
than the connector's limit: waiting for a turn is not part of the time allowed for connecting."""


def _user_agent() -> str:
    try:
        return f"aioinformer/{version('aioinformer')}"
    except PackageNotFoundError:  # run from a source tree
        return "aioinformer/0"


USER_AGENT = _user_agent()
"""``User-Agent``. A server indents its answers for a browser, curl or wget: recording 44."""


class ResponseStream:
    """An open answer: its chunks, decompressed, as they arrive.

    Iterate it once, in one task. A chunk is whatever has arrived, cut anywhere.

    Raises, while iterating:
        ConnectionLost: it broke off.
        RequestTimedOut: nothing came for too long, or a watch outlived its deadline.
        ProtocolError: what came is not well-formed HTTP.
        NotRunning: the client was closed meanwhile.
    """

    __slots__ = ("_read", "_request", "_response", "_sessions")

    def __init__(
        self, response: aiohttp.ClientResponse, request: ApiRequest, sessions: Sessions
    ) -> None:
        self._response = response
        self._request = request
        self._sessions = sessions
        self._read = response.content.readany

    def __aiter__(self) -> ResponseStream:
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = await self._read()
        except REQUEST_EXCEPTIONS as error:
            call, url = self._request, self._response.url
            if call.body:
                strip_quoted_response(error)
            raise map_response_error(error, url, phase=call.phase, method=call.method) from error
        if not chunk:
            raise StopAsyncIteration
        return chunk

    @property
    def headers_sent(self) -> Mapping[str, str]:
        """The headers of the request. They hold credentials."""
        return self._response.request_info.headers

    def interrupt(self, error: Exception) -> None:
        """Let the reader fail with ``error``, unless the end has arrived already."""
        if not self._response.content.is_eof():
            self._response.content.set_exception(error)

    async def aclose(self) -> None:
        """Drop the connection, unless the answer has ended; return when the socket is closed."""
        try:
            await self._drop_connection()
        finally:
            await self._sessions.release()

    async def _drop_connection(self) -> None:
        connection = self._response.connection
        if connection is None or (protocol := connection.protocol) is None:
            self._response.close()
            return
        closed = protocol.closed
        # Not close(): over TLS that waits for the server's farewell, up to 30 s.
        protocol.abort()
        self._response.close()
        if closed is not None:
            await asyncio.gather(closed, return_exceptions=True)

    def __repr__(self) -> str:
        return f"<Body of {self._request.phase} {self._request.path}>"


class Transport:
    """Sends requests with one set of credentials. Made inside a running loop; close it."""

    def __init__(self, credentials: Credentials, *, headers: Headers, timeouts: Timeouts) -> None:
        self._credentials = credentials
        self._authenticator = Authenticator(credentials, timeout=timeouts.connect)
        self._headers = headers
        self._timeouts = timeouts
        self._request_slots = asyncio.Semaphore(MAX_CONCURRENT_REQUESTS)
        self._write_slots = asyncio.Semaphore(MAX_CONCURRENT_REQUESTS)
        self._server_warnings = ServerWarnings()
        self._open_streams: set[ResponseStream] = set()
        self._current_sessions: Sessions | None = None
        self._sessions: set[Sessions] = set()
        self._closed = False

    # -- asking --------------------------------------------------------------------------------

    @asynccontextmanager
    async def request(self, request: ApiRequest) -> AsyncGenerator[ResponseStream]:
        """Send a request; the body of its answer, open until the context is left.

        What leaves the context as a ``FetchError`` loses what it repeats of the request's headers,
        whoever raised it: an ERROR event may tell them as well as a refusal.

        Raises:
            ServerError: any answer but 200 (to a write, 201 and 202 as well), redirects included.
            TransportError: no answer.
            ProtocolError: the answer is not HTTP.
        """
        if request.watch_timeout is None:
            # Writes don't wait behind lists: a lease is renewed in time, or lost.
            turns = self._write_slots if request.phase == "write" else self._request_slots
            async with turns, self._open_response(request) as body:
                yield body
            return
        async with self._open_response(request) as body:
            late = RequestTimedOut(
                f"GET {self._build_url(request).with_query(None)}: the watch outlived its "
                f"{request.watch_timeout} s by {self._timeouts.grace:g} s and was ended",
                phase=request.phase,
            )
            remains = request.watch_timeout + self._timeouts.grace
            alarm = asyncio.get_running_loop().call_later(remains, body.interrupt, late)
            try:
                yield body
            finally:
                alarm.cancel()

    @asynccontextmanager
    async def _open_response(self, request: ApiRequest) -> AsyncGenerator[ResponseStream]:
        body = await self._send_with_refresh(request)
        self._open_streams.add(body)
        try:
            yield body
        except FetchError as error:
            self._make_redactor(body.headers_sent, request).redact_error(error)
            raise
        finally:
            self._open_streams.discard(body)
            await body.aclose()

    async def _send_with_refresh(self, request: ApiRequest) -> ResponseStream:
        """The answer to a request, sent once more if there are other credentials for it."""
        identity = await self._authenticator.current_credentials()
        try:
            return await self._send_checked(request, identity)
        except Unauthorized:
            other = await self._authenticator.refresh_after_401(identity)
            if other is None:
                raise
        except TransportError as error:
            again = is_tls_failure(error) and (
                isinstance(error, ConnectionFailed) or not request.is_write
            )
            other = await self._authenticator.refresh_after_tls_failure(identity) if again else None
            if other is None:
                raise
        return await self._send_checked(request, other)

    async def _send_checked(
        self, request: ApiRequest, credentials: RequestCredentials
    ) -> ResponseStream:
        """The answer that says that a request was done."""
        sessions = await self._sessions_for(credentials.tls)
        sessions.acquire()
        try:
            response = await self._send(request, credentials.header, sessions)
        except BaseException:
            await sessions.release()
            raise
        body = ResponseStream(response, request, sessions)
        if response.status != 401:
            self._authenticator.record_success()
        if "Warning" in response.headers:
            self._server_warnings.log(
                response.headers, self._make_redactor(body.headers_sent, request)
            )
        if request.is_success(response.status) and not is_html(response):
            return body
        try:
            origin = self._credentials.origin
            mask = self._make_redactor(body.headers_sent, request)
            raise await map_error_response(response, request=request, redactor=mask, origin=origin)
        finally:
            await body.aclose()

    async def _sessions_for(self, tls: ssl.SSLContext | None) -> Sessions:
        """The sessions of a context, new ones if it is new. Those of before are retired."""
        if self._closed:  # while this request waited for its turn or its token
            raise NotRunning("the client was closed before the request was sent")
        before = self._current_sessions
        if before is not None and before.tls is tls:
            return before
        timeouts = self._timeouts
        self._current_sessions = Sessions(
            tls, connect=timeouts.connect, read_timeout=timeouts.silence
        )
        self._sessions = {each for each in self._sessions if not each.closed} | {
            self._current_sessions
        }
        if before is not None:
            await before.close_when_unused()
        return self._current_sessions

    def _make_redactor(self, headers: Mapping[str, str], request: ApiRequest) -> Redactor:
        """Hides every header that went out with a request, those for the proxy included, and what
        was written to a Secret.
        """
        proxy = ("Proxy-Authorization", self._credentials.proxy_authorization)
        return Redactor([*headers.items(), proxy, *secret_values(request)])

    async def _send(
        self, request: ApiRequest, authorization: str, sessions: Sessions
    ) -> aiohttp.ClientResponse:
        url, proxy = self._build_url(request), self._credentials.proxy
        headers = self._build_headers(request, url, authorization)
        session = sessions.requests if request.watch_timeout is None else sessions.watches
        try:
            async with asyncio.timeout(
                None if request.watch_timeout is None else self._timeouts.watch_start
            ):
                return await session.request(
                    request.method,
                    url,
                    data=request.body or None,
                    headers=headers,
                    middlewares=(send_once,) if request.is_write else None,
                    allow_redirects=False,
                    proxy=proxy,
                    proxy_headers=self._proxy_headers(),
                    server_hostname=self._credentials.tls_server_name,
                )
        except (*REQUEST_EXCEPTIONS, SendFailed) as caught:
            error = caught.error if isinstance(caught, SendFailed) else caught
            # Before its text is used: a proxy's reason phrase may repeat what it was sent.
            self._make_redactor(headers, request).redact_error(strip_headers(error))
            if request.body:
                strip_quoted_response(error)
            origin = self._credentials.origin
            raise map_request_error(
                error, url, phase=request.phase, method=request.method, proxy=proxy, origin=origin
            ) from error

    def _build_headers(self, request: ApiRequest, url: URL, authorization: str) -> CIMultiDict[str]:
        own = current_headers(self._headers)
        acting = () if has_impersonation_headers(own) else self._credentials.headers
        headers = CIMultiDict([*acting, *{"User-Agent": USER_AGENT, **own}.items()])
        headers["Accept"] = request.accept
        headers["Accept-Encoding"] = "gzip" if request.watch_timeout is None else "identity"
        if request.content_type:
            headers["Content-Type"] = request.content_type
        if authorization:
            headers["Authorization"] = authorization
        if url.scheme == "http":  # no tunnel: the proxy reads the request itself
            headers.update(self._proxy_headers() or {})
        return headers

    def _proxy_headers(self) -> dict[str, str] | None:
        credentials = self._credentials
        if not credentials.proxy or not credentials.proxy_authorization:
            return None
        return {"Proxy-Authorization": credentials.proxy_authorization}

    def _build_url(self, request: ApiRequest) -> URL:
        server = self._credentials.server
        return server.with_path(server.path.rstrip("/") + request.path).with_query(request.query)

    # -- closing -------------------------------------------------------------------------------

    async def close(self) -> None:
        """End what is open, close all connections, and wait until their sockets are closed. A
        cancellation ends the waiting, not the closing.
        """
        self._closed = True
        for body in tuple(self._open_streams):
            body.interrupt(NotRunning("the client was closed while an answer was being read"))
        async with AsyncExitStack() as closing:
            for sessions in self._sessions:
                closing.push_async_callback(sessions.close)
            closing.push_async_callback(self._authenticator.aclose)

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"{len(self._open_streams)} answers open"
        return f"<Transport to {self._credentials.description}, {state}>"


TLS_ERRORS = (aiohttp.ClientSSLError, aiohttp.ServerDisconnectedError, ssl.SSLError)
"""What a handshake that fails looks like."""


def is_tls_failure(error: FetchError) -> bool:
    """Whether a request may have failed since one side didn't like the other's certificate.

    A server that rejects a client's says so when the client takes the handshake to be over (TLS
    1.3), and hangs up: often that is all that can be seen.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, TLS_ERRORS):
            return True
        cause = cause.__cause__
    return False
