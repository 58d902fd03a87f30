"""``Transport``: sends requests and streams their responses.

A response is an open ``ResponseStream`` whose chunks are read as they arrive; leaving it before its
end closes its connection. A request is sent a second time only if the server rejected its
credentials and others are available. The reflector, and for writes the program, decides about any
other retry.

Writes need ``send_once``. When a used connection breaks, aiohttp sends PUT and DELETE again on a
new one. In Kubernetes they are not idempotent: if the first PUT succeeded, the second one is a
Conflict; a second DELETE is a 404, or deletes an object that was created in between. The program
must learn that the outcome is unknown.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from aioinformer._client.auth.authenticator import Authenticator, RequestCredentials
from aioinformer._client.auth.credentials import Credentials
from aioinformer._client.auth.impersonation import has_impersonation_headers
from aioinformer._client.auth.redaction import Redactor
from aioinformer._client.http.error_mapping import (
    REQUEST_EXCEPTIONS,
    is_tls_failure,
    map_request_error,
    map_response_error,
)
from aioinformer._client.http.error_responses import is_html, map_error_response
from aioinformer._client.http.headers import Headers, ServerWarnings, current_headers, read_warnings
from aioinformer._client.http.request import ApiRequest, Timeouts
from aioinformer._client.http.resolver import Resolver, opened_addresses
from aioinformer._client.http.secret_errors import redact_secret_error, run_redaction, secret_values
from aioinformer._client.http.sessions import Sessions
from aioinformer._client.http.user_agent import default_user_agent
from aioinformer._core.objects.decode_errors import discard_input
from aioinformer._core.quantities import quantity
from aioinformer.errors import (
    ConfigurationError,
    ConnectionFailed,
    FetchError,
    NotRunning,
    RequestTimedOut,
    TransportError,
    Unauthorized,
)

log = logging.getLogger("aioinformer.requests")

MAX_CONCURRENT_REQUESTS = 100
"""Number of lists and single requests that run at a time, and so of their connections. A semaphore
enforces it rather than the connector: the time in the queue must not count as time for connecting.
"""

CREDENTIAL_HEADERS = ("Authorization", "Cookie")
"""The headers that are not sent where others on the network can read them."""


class SendFailed(Exception):
    """A wrapper that hides a connection error from aiohttp's retry."""

    def __init__(self, error: aiohttp.ClientError) -> None:
        super().__init__(type(error).__name__)
        self.error = error


async def send_once(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Send a request without aiohttp's retry, as a middleware of aiohttp.

    Raises:
        SendFailed: the connection broke; wraps the exception of aiohttp.
    """
    try:
        return await handler(request)
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise SendFailed(error) from error


class ResponseStream:
    """The open body of a response: an asynchronous iterator over its decompressed chunks.

    Iterate it once, in one task. A chunk is the data that has arrived, cut anywhere.

    Raises, while iterating:
        ConnectionLost: the connection broke.
        RequestTimedOut: no data came in the time allowed, or a watch outlived its deadline.
        ProtocolError: the response is not well-formed HTTP.
        NotRunning: the client was closed meanwhile.
    """

    __slots__ = ("_began", "_read", "_request", "_response", "_sessions", "opened")

    def __init__(
        self,
        response: aiohttp.ClientResponse,
        request: ApiRequest,
        sessions: Sessions,
        opened: Sequence[str],
        began: float,
    ) -> None:
        self.opened = opened
        """The addresses to which a connection was opened; none if an open connection was used."""
        self._began = began
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
            raise map_response_error(error, self._response.url, self._request) from error
        if not chunk:
            raise StopAsyncIteration
        return chunk

    @property
    def headers_sent(self) -> Mapping[str, str]:
        return self._response.request_info.headers

    def interrupt(self, error: Exception) -> None:
        """Let the reader fail with ``error``, unless the end of the body has arrived."""
        if not self._response.content.is_eof():
            self._response.content.set_exception(error)

    async def aclose(self) -> None:
        """Close the connection, unless the body has ended, and wait until the socket is closed."""
        try:
            await self._close_connection()
        finally:
            response = self._response
            outcome = f"status {response.status}, {response.content.total_bytes} bytes,"
            _log_request(self._request, response.url, self._began, outcome)
            await self._sessions.release()

    async def _close_connection(self) -> None:
        connection = self._response.connection
        if connection is None or (protocol := connection.protocol) is None:
            self._response.close()
            return
        closed = protocol.closed
        # abort(), not close(): over TLS, close() waits for the server's close_notify, up to 30 s.
        protocol.abort()
        self._response.close()
        if closed is not None:
            await asyncio.gather(closed, return_exceptions=True)

    def __repr__(self) -> str:
        return f"<ResponseStream of {self._request.phase} {self._request.path}>"


class Transport:
    """The sender of requests with one set of credentials. Create it in a running loop; close it."""

    def __init__(
        self,
        credentials: Credentials,
        *,
        headers: Headers,
        timeouts: Timeouts,
        user_agent: str = "",
        send_credentials_unencrypted: bool = False,
    ) -> None:
        self._credentials = credentials
        self._withhold_credentials = credentials.are_exposed and not send_credentials_unencrypted
        self._authenticator = Authenticator(credentials, timeout=timeouts.connect)
        self._headers = headers
        self._user_agent = user_agent or default_user_agent()
        self._timeouts = timeouts
        self._request_slots = asyncio.Semaphore(MAX_CONCURRENT_REQUESTS)
        self._write_slots = asyncio.Semaphore(MAX_CONCURRENT_REQUESTS)
        self._server_warnings = ServerWarnings()
        self._open_streams: set[ResponseStream] = set()
        self._resolver = Resolver()
        self._current_sessions: Sessions | None = None
        self._sessions: set[Sessions] = set()
        self._has_answered = False
        self._closed = False

    # -- requests ------------------------------------------------------------------------------

    @asynccontextmanager
    async def request(self, request: ApiRequest) -> AsyncGenerator[ResponseStream]:
        """Send a request and yield the body of its response, open until the context is left.

        A ``FetchError`` that leaves the context is redacted, also one that the caller raised: an
        ERROR event may repeat the request's headers, or quote a Secret, as well as an error
        response.

        Raises:
            ServerError: the status is not 200 (for a write, nor 201 or 202). Redirects are errors.
            TransportError: no response came.
            ProtocolError: the response is not HTTP.
        """
        if request.watch_timeout is None:
            # Writes don't wait behind lists, because a lease must be renewed in time.
            slots = self._write_slots if request.phase == "write" else self._request_slots
            async with slots, self._open_response(request) as stream:
                yield stream
            return
        async with self._open_response(request) as stream:
            overdue = RequestTimedOut(
                f"GET {self._build_url(request).with_query(None)}: the watch outlived its "
                f"{request.watch_timeout} s by {self._timeouts.grace:g} s and was ended",
                phase=request.phase,
            )
            delay = request.watch_timeout + self._timeouts.grace
            timer = asyncio.get_running_loop().call_later(delay, stream.interrupt, overdue)
            try:
                yield stream
            finally:
                timer.cancel()

    @asynccontextmanager
    async def _open_response(self, request: ApiRequest) -> AsyncGenerator[ResponseStream]:
        try:
            stream = await self._send_with_refresh(request)
        except FetchError as error:
            discard_input(error)  # its frames hold headers and parts of the response
            raise
        self._open_streams.add(stream)
        try:
            yield stream
        except FetchError as error:
            if isinstance(error, RequestTimedOut):
                self._resolver.avoid(stream.opened)
            found = error

            def redact() -> None:
                self._make_redactor(stream.headers_sent, request).redact_error(found)
                redact_secret_error(found, request.path)

            await run_redaction(request, redact)
            raise
        finally:
            self._open_streams.discard(stream)
            await stream.aclose()

    async def _send_with_refresh(self, request: ApiRequest) -> ResponseStream:
        """Send a request; after a 401 or failed TLS handshake, refresh credentials and repeat."""
        credentials = await self._authenticator.current_credentials()
        try:
            return await self._send_checked(request, credentials)
        except Unauthorized:
            refreshed = await self._authenticator.refresh_after_401(credentials)
            if refreshed is None:
                raise
        except TransportError as error:
            # A write whose connection was lost after the handshake may have been done.
            unsent = isinstance(error, ConnectionFailed) or not request.is_write
            if not (unsent and is_tls_failure(error)):
                raise
            refreshed = await self._authenticator.refresh_after_tls_failure(credentials)
            if refreshed is None:
                raise
        return await self._send_checked(request, refreshed)

    async def _send_checked(
        self, request: ApiRequest, credentials: RequestCredentials
    ) -> ResponseStream:
        sessions = await self._sessions_for(credentials.tls)
        sessions.acquire()
        opened: list[str] = []
        opened_addresses.set(opened)
        began = asyncio.get_running_loop().time()
        try:
            response = await self._send(request, credentials.header, sessions)
        except BaseException as error:  # also a time limit of the caller, such as that of a lease
            what = f"no response ({type(error).__name__})"
            _log_request(request, self._build_url(request), began, what)
            self._resolver.avoid(opened)
            await sessions.release()
            raise
        self._has_answered = True
        if response.status >= 500:
            self._resolver.avoid(opened)
            if self._resolver.has_choice and sessions is self._current_sessions:
                self._current_sessions = None  # the next request connects to another address
                await sessions.close_when_unused()
        if request.watch_timeout is not None:
            _log_request(request, response.url, began, f"status {response.status}, open")
        stream = ResponseStream(response, request, sessions, opened, began)
        if response.status != 401:
            self._authenticator.record_success()
        make_redactor = partial(self._make_redactor, stream.headers_sent, request)
        try:
            if "Warning" in response.headers:
                read = partial(read_warnings, response.headers, make_redactor, request.path)
                self._server_warnings.log(await run_redaction(request, read))
            if request.is_success(response.status) and not is_html(response):
                return stream
            raise await map_error_response(
                response,
                request=request,
                make_redactor=make_redactor,
                origin=self._credentials.origin,
            )
        except BaseException:
            await stream.aclose()
            raise

    async def check_exposure(self) -> None:
        """Raise ``ConfigurationError`` if others on the network could read the credentials.

        A source that has no credentials yet is checked again with each request.
        """
        if not self._withhold_credentials:
            return
        headers = CIMultiDict[str](() if callable(self._headers) else self._headers)
        with suppress(FetchError):  # which the first request raises
            headers.add("Authorization", (await self._authenticator.current_credentials()).header)
        if fault := self._find_exposure(headers):
            raise ConfigurationError(fault)

    def _find_exposure(self, headers: Mapping[str, str]) -> str:
        """Return the error for credentials that must not be sent; empty if there are none."""
        if not (self._withhold_credentials and any(map(headers.get, CREDENTIAL_HEADERS))):
            return ""
        return (
            f"{self._credentials.description}: the credentials are not sent, because without TLS "
            f"others on the network can read them: use a URL that begins with https://, remove "
            f"the credentials, or pass send_credentials_unencrypted=True to the client"
        )

    async def wait_for_credentials(self, timeout: float) -> bool:
        """Wait until there are other credentials; return False if ``timeout`` seconds pass."""
        return await self._authenticator.wait_for_change(timeout)

    async def tls_context(self) -> ssl.SSLContext | None:
        """Return the TLS context of new connections; ``None`` for plain HTTP."""
        source = self._credentials.tls
        return None if source is None else await source.context()

    async def _sessions_for(self, tls: ssl.SSLContext | None) -> Sessions:
        """Return the sessions of a TLS context; those of the previous one close when unused."""
        if self._closed:  # while this request waited for a slot or for its credentials
            raise NotRunning("the client was closed before the request was sent")
        previous = self._current_sessions
        if previous is not None and previous.tls is tls:
            return previous
        current = Sessions(tls, self._resolver, self._timeouts, self._credentials.proxy)
        self._current_sessions = current
        self._sessions = {each for each in self._sessions if not each.closed} | {current}
        if previous is not None:
            await previous.close_when_unused()
        return current

    def _make_redactor(self, headers: Mapping[str, str], request: ApiRequest) -> Redactor:
        """Return a redactor of the request's headers, the proxy's included, and of its Secret."""
        proxy_headers = self._proxy_headers().items()
        return Redactor([*headers.items(), *proxy_headers, *secret_values(request)])

    async def _send(
        self, request: ApiRequest, authorization: str, sessions: Sessions
    ) -> aiohttp.ClientResponse:
        url, proxy = self._build_url(request), self._credentials.proxy
        headers = self._build_headers(request, url, authorization)
        is_watch = request.watch_timeout is not None
        session = sessions.watches if is_watch else sessions.requests
        try:
            async with asyncio.timeout(self._timeouts.watch_start if is_watch else None):
                return await session.request(
                    request.method,
                    url,
                    data=request.body or None,
                    headers=headers,
                    middlewares=(send_once,) if request.is_write else None,
                    allow_redirects=False,
                    proxy=proxy.url if proxy and not proxy.is_socks else None,
                    proxy_headers=self._proxy_headers() or None,
                    server_hostname=self._credentials.tls_server_name,
                )
        except (*REQUEST_EXCEPTIONS, SendFailed) as caught:
            error = caught.error if isinstance(caught, SendFailed) else caught

            def map_error() -> FetchError:
                return map_request_error(
                    error,
                    url,
                    request,
                    redactor=self._make_redactor(headers, request),
                    proxy=proxy,
                    origin=self._credentials.origin,
                    has_answered=self._has_answered,
                )

            raise await run_redaction(request, map_error) from error

    def _build_headers(self, request: ApiRequest, url: URL, authorization: str) -> CIMultiDict[str]:
        own = current_headers(self._headers)
        # The program's impersonation headers replace those of the kubeconfig as a whole.
        impersonation = () if has_impersonation_headers(own) else self._credentials.headers
        headers = CIMultiDict([*impersonation, *own.items()])
        headers.setdefault("User-Agent", self._user_agent)
        headers["Accept"] = request.accept
        compressed = self._credentials.compression and request.watch_timeout is None
        headers["Accept-Encoding"] = "gzip" if compressed else "identity"
        if request.content_type:
            headers["Content-Type"] = request.content_type
        if authorization:
            headers["Authorization"] = authorization
        if fault := self._find_exposure(headers):
            raise FetchError(fault, phase="credentials")
        if url.scheme == "http":  # no tunnel: the proxy reads the request itself
            headers.update(self._proxy_headers())
        return headers

    def _proxy_headers(self) -> dict[str, str]:
        proxy = self._credentials.proxy
        authorization = proxy.authorization if proxy and not proxy.is_socks else ""
        return {"Proxy-Authorization": authorization} if authorization else {}

    def _build_url(self, request: ApiRequest) -> URL:
        server = self._credentials.server
        return server.with_path(server.path.rstrip("/") + request.path).with_query(request.query)

    # -- closing -------------------------------------------------------------------------------

    async def close(self) -> None:
        """End open responses, close all connections, and wait until their sockets are closed.

        A cancellation ends the waiting, not the closing.
        """
        self._closed = True
        for stream in tuple(self._open_streams):
            stream.interrupt(NotRunning("the client was closed while a response was being read"))
        async with AsyncExitStack() as closing:
            for sessions in self._sessions:
                closing.push_async_callback(sessions.close)
            closing.push_async_callback(self._authenticator.aclose)
            closing.push_async_callback(self._resolver.close)

    def __repr__(self) -> str:
        opened = f"{quantity(len(self._open_streams), 'response')} open"
        state = "closed" if self._closed else opened
        return f"<Transport to {self._credentials.description}, {state}>"


def _log_request(request: ApiRequest, url: URL, began: float, outcome: str) -> None:
    """Log a request, which shows no query and no header, and so no secret."""
    if not log.isEnabledFor(logging.DEBUG):
        return
    seconds = asyncio.get_running_loop().time() - began
    log.debug(
        "%s %s (%s): %s after %.3f s", request.method, url.raw_path, request.phase, outcome, seconds
    )
