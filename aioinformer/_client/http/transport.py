"""Requests and open answers: bytes between the API server and the rest.

An answer is handed out as an open ``Body`` whose chunks are read as they arrive; a body that is
left before its end takes its connection with it. With what a request goes out ``access`` says, on
which connections ``sessions``; what the bytes mean is ``wire``'s work, and what failed is told by
``statuses`` and ``refusals``. A request is sent once more if there are other credentials than
those with which it failed. Nothing else is tried again here: that is the cursor's to decide, and
the program's where something is written.

``sent_once``: keeps aiohttp from sending a write a second time.

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

from aioinformer._client.auth.authenticator import Access, Identity
from aioinformer._client.auth.credentials import Credentials
from aioinformer._client.auth.impersonation import impersonates
from aioinformer._client.auth.redaction import Mask, without_answer
from aioinformer._client.http.error_mapping import FAILURES, failure, interruption, without_headers
from aioinformer._client.http.error_responses import is_page, refusal, values_sent
from aioinformer._client.http.headers import Cautions, Headers, current
from aioinformer._client.http.request import JSON, Call, Timeouts
from aioinformer._client.http.sessions import Sessions
from aioinformer.errors import (
    ConnectionFailed,
    FetchError,
    NotRunning,
    RequestTimedOut,
    TransportError,
    Unauthorized,
)

__all__ = ["JSON", "Body", "Call", "SentOnce", "Timeouts", "Transport", "sent_once"]


class SentOnce(Exception):
    """No error of its own: carries a failure past aiohttp, which sends again after some."""

    def __init__(self, error: aiohttp.ClientError) -> None:
        super().__init__(type(error).__name__)
        self.error = error


async def sent_once(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """A middleware of aiohttp's: send it, and let no failure be a reason to do so again.

    Raises:
        SentOnce: the connection broke; wraps what aiohttp says of it.
    """
    try:
        return await handler(request)
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise SentOnce(error) from error


REQUESTS_AT_ONCE = 100
"""Lists and single requests under way together, and so their connections. A semaphore rather
than the connector's limit: waiting for a turn is not part of the time allowed for connecting."""


def _agent() -> str:
    try:
        return f"aioinformer/{version('aioinformer')}"
    except PackageNotFoundError:  # run from a source tree
        return "aioinformer/0"


AGENT = _agent()
"""``User-Agent``. A server indents its answers for a browser, curl or wget: recording 44."""


class Body:
    """An open answer: its chunks, decompressed, as they arrive.

    Iterate it once, in one task. A chunk is whatever has arrived, cut anywhere.

    Raises, while iterating:
        ConnectionLost: it broke off.
        RequestTimedOut: nothing came for too long, or a watch outlived its deadline.
        ProtocolError: what came is not well-formed HTTP.
        NotRunning: the client was closed meanwhile.
    """

    __slots__ = ("_call", "_read", "_response", "_sessions")

    def __init__(self, response: aiohttp.ClientResponse, call: Call, sessions: Sessions) -> None:
        self._response = response
        self._call = call
        self._sessions = sessions
        self._read = response.content.readany

    def __aiter__(self) -> Body:
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = await self._read()
        except FAILURES as error:
            call, url = self._call, self._response.url
            if call.body:
                without_answer(error)
            raise interruption(error, url, phase=call.phase, method=call.method) from error
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
            await self._drop()
        finally:
            await self._sessions.give_back()

    async def _drop(self) -> None:
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
        return f"<Body of {self._call.phase} {self._call.path}>"


class Transport:
    """Sends requests with one set of credentials. Made inside a running loop; close it."""

    def __init__(self, credentials: Credentials, *, headers: Headers, timeouts: Timeouts) -> None:
        self._credentials = credentials
        self._access = Access(credentials, patience=timeouts.connect)
        self._own = headers
        self._timeouts = timeouts
        self._turns = asyncio.Semaphore(REQUESTS_AT_ONCE)
        self._writes = asyncio.Semaphore(REQUESTS_AT_ONCE)
        self._cautions = Cautions()
        self._open: set[Body] = set()
        self._current: Sessions | None = None
        self._sessions: set[Sessions] = set()
        self._closed = False

    # -- asking --------------------------------------------------------------------------------

    @asynccontextmanager
    async def request(self, call: Call) -> AsyncGenerator[Body]:
        """Send a request; the body of its answer, open until the context is left.

        What leaves the context as a ``FetchError`` loses what it repeats of the request's headers,
        whoever raised it: an ERROR event may tell them as well as a refusal.

        Raises:
            ServerError: any answer but 200 (to a write, 201 and 202 as well), redirects included.
            TransportError: no answer.
            ProtocolError: the answer is not HTTP.
        """
        if call.watch is None:
            # Writes don't wait behind lists: a lease is renewed in time, or lost.
            turns = self._writes if call.phase == "write" else self._turns
            async with turns, self._body(call) as body:
                yield body
            return
        async with self._body(call) as body:
            late = RequestTimedOut(
                f"GET {self._url(call).with_query(None)}: the watch outlived its "
                f"{call.watch} s by {self._timeouts.grace:g} s and was ended",
                phase=call.phase,
            )
            remains = call.watch + self._timeouts.grace
            alarm = asyncio.get_running_loop().call_later(remains, body.interrupt, late)
            try:
                yield body
            finally:
                alarm.cancel()

    @asynccontextmanager
    async def _body(self, call: Call) -> AsyncGenerator[Body]:
        body = await self._answer(call)
        self._open.add(body)
        try:
            yield body
        except FetchError as error:
            self._mask(body.headers_sent, call).error(error)
            raise
        finally:
            self._open.discard(body)
            await body.aclose()

    async def _answer(self, call: Call) -> Body:
        """The answer to a request, sent once more if there are other credentials for it."""
        identity = await self._access.identity()
        try:
            return await self._sent(call, identity)
        except Unauthorized:
            other = await self._access.instead_of(identity)
            if other is None:
                raise
        except TransportError as error:
            again = secured(error) and (isinstance(error, ConnectionFailed) or not call.writes)
            other = await self._access.after_handshake(identity) if again else None
            if other is None:
                raise
        return await self._sent(call, other)

    async def _sent(self, call: Call, identity: Identity) -> Body:
        """The answer that says that a request was done."""
        sessions = await self._sessions_of(identity.tls)
        sessions.borrow()
        try:
            response = await self._send(call, identity.header, sessions)
        except BaseException:
            await sessions.give_back()
            raise
        body = Body(response, call, sessions)
        if response.status != 401:
            self._access.worked()
        if "Warning" in response.headers:
            self._cautions.heed(response.headers, self._mask(body.headers_sent, call))
        if call.succeeded(response.status) and not is_page(response):
            return body
        try:
            origin = self._credentials.origin
            mask = self._mask(body.headers_sent, call)
            raise await refusal(response, call=call, mask=mask, origin=origin)
        finally:
            await body.aclose()

    async def _sessions_of(self, tls: ssl.SSLContext | None) -> Sessions:
        """The sessions of a context, new ones if it is new. Those of before are retired."""
        if self._closed:  # while this request waited for its turn or its token
            raise NotRunning("the client was closed before the request was sent")
        before = self._current
        if before is not None and before.tls is tls:
            return before
        timeouts = self._timeouts
        self._current = Sessions(tls, connect=timeouts.connect, silence=timeouts.silence)
        self._sessions = {each for each in self._sessions if not each.closed} | {self._current}
        if before is not None:
            await before.retire()
        return self._current

    def _mask(self, sent: Mapping[str, str], call: Call) -> Mask:
        """Hides every header that went out with a request, those for the proxy included, and what
        was written to a Secret.
        """
        proxy = ("Proxy-Authorization", self._credentials.proxy_authorization)
        return Mask([*sent.items(), proxy, *values_sent(call)])

    async def _send(
        self, call: Call, authorization: str, sessions: Sessions
    ) -> aiohttp.ClientResponse:
        url, proxy = self._url(call), self._credentials.proxy
        headers = self._headers_of(call, url, authorization)
        session = sessions.requests if call.watch is None else sessions.watches
        try:
            async with asyncio.timeout(None if call.watch is None else self._timeouts.watch_start):
                return await session.request(
                    call.method,
                    url,
                    data=call.body or None,
                    headers=headers,
                    middlewares=(sent_once,) if call.writes else None,
                    allow_redirects=False,
                    proxy=proxy,
                    proxy_headers=self._proxy_headers(),
                    server_hostname=self._credentials.tls_server_name,
                )
        except (*FAILURES, SentOnce) as caught:
            error = caught.error if isinstance(caught, SentOnce) else caught
            # Before its text is used: a proxy's reason phrase may repeat what it was sent.
            self._mask(headers, call).error(without_headers(error))
            if call.body:
                without_answer(error)
            origin = self._credentials.origin
            raise failure(
                error, url, phase=call.phase, method=call.method, proxy=proxy, origin=origin
            ) from error

    def _headers_of(self, call: Call, url: URL, authorization: str) -> CIMultiDict[str]:
        own = current(self._own)
        acting = () if impersonates(own) else self._credentials.headers
        headers = CIMultiDict([*acting, *{"User-Agent": AGENT, **own}.items()])
        headers["Accept"] = call.accept
        headers["Accept-Encoding"] = "gzip" if call.watch is None else "identity"
        if call.content_type:
            headers["Content-Type"] = call.content_type
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

    def _url(self, call: Call) -> URL:
        server = self._credentials.server
        return server.with_path(server.path.rstrip("/") + call.path).with_query(call.query)

    # -- closing -------------------------------------------------------------------------------

    async def close(self) -> None:
        """End what is open, close all connections, and wait until their sockets are closed. A
        cancellation ends the waiting, not the closing.
        """
        self._closed = True
        for body in tuple(self._open):
            body.interrupt(NotRunning("the client was closed while an answer was being read"))
        async with AsyncExitStack() as closing:
            for sessions in self._sessions:
                closing.push_async_callback(sessions.close)
            closing.push_async_callback(self._access.aclose)

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"{len(self._open)} answers open"
        return f"<Transport to {self._credentials.where}, {state}>"


TLS_FAILURES = (aiohttp.ClientSSLError, aiohttp.ServerDisconnectedError, ssl.SSLError)
"""What a handshake that fails looks like."""


def secured(error: FetchError) -> bool:
    """Whether a request may have failed since one side didn't like the other's certificate.

    A server that rejects a client's says so when the client takes the handshake to be over (TLS
    1.3), and hangs up: often that is all that can be seen.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, TLS_FAILURES):
            return True
        cause = cause.__cause__
    return False
