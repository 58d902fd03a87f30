"""The feed: an ASGI application that serves any number of clients."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, nullcontext
from typing import Any

import msgspec

from aioinformer._core.arguments import check_int, check_seconds
from aioinformer._core.callables import check_signature
from aioinformer._core.delivery.mailbox import LIMIT
from aioinformer._core.objects.view import name_of
from aioinformer._core.selectors.event_filter import Filter
from aioinformer._runtime.delivery.handler_errors import as_exception
from aioinformer._runtime.delivery.options import ListenerOptions
from aioinformer._runtime.delivery.streams import EventStream
from aioinformer.adapters.asgi.asgi_messages import (
    JSON_HEADERS,
    Headers,
    Receive,
    Scope,
    Send,
    check_http,
    send_response,
    wait_disconnected,
)
from aioinformer.adapters.asgi.feed_client import STREAM_HEADERS, FeedClient
from aioinformer.adapters.asgi.probes import Informers, check_informers
from aioinformer.adapters.asgi.sse import Encode, FrameEncoder, metadata
from aioinformer.errors import NotRunning

HEARTBEAT = 15.0
"""Seconds between two heartbeats. Proxies close connections that are idle for 30 to 60 s."""

MAX_CLIENTS = 1000
"""Clients at a time. Even one that reads nothing costs its socket's buffers and its mailboxes."""

HEARTBEAT_COMMENT = b": alive\n\n"
"""A comment, which browsers ignore."""

RETRY_HEADERS: Headers = (*JSON_HEADERS, (b"retry-after", b"2"))


class EventFeed:
    """An ASGI application that sends the events of a set of informers to each client.

    Frames are ``added``, ``updated`` and ``deleted``, whose data is the result of ``encode`` for
    the object; ``reset`` before and ``synced`` after the objects that are cached when the client
    connects; and ``failed`` for an object for which ``encode`` raised. ``failed`` has the object's
    identity and the error's type only; the log has the whole error, once. The ``deleted`` of an
    object whose last frame was ``failed`` has the same data.
    """

    def __init__(
        self,
        informers: Informers,
        *,
        encode: Encode = metadata,
        filter: Filter[Any] | None = None,
        limit: int = LIMIT,
        interval: float = 0.0,
        heartbeat: float = HEARTBEAT,
        pulse: Callable[[], bytes] = lambda: HEARTBEAT_COMMENT,
        clients: int = MAX_CLIENTS,
    ) -> None:
        """Make a feed without clients.

        Args:
            informers: called when a client connects, whose events it receives. An informer with
                ``model=`` keeps no JSON and can't be one of them.
            encode: returns the data of an object, or ``None`` to leave the object out; an object
                that was sent before is then deleted for the clients. The function receives the
                ``KubeObject``, also if the informer has a ``convert=``.
            filter: as for ``SharedInformer.events``; it receives what ``convert=`` returns.
            limit: live events that may be pending for one client before events are merged by
                object.
            interval: minimum seconds between two sends. Events that arrive meanwhile are sent
                together.
            heartbeat: seconds between two heartbeats.
            pulse: returns whole frames to send at each heartbeat and before everything else; by
                default a comment.
            clients: the most clients at a time. Further clients receive a 503 with ``Retry-After``.

        Raises:
            TypeError: ``informers`` is no function, ``encode`` is no plain function of an informer
                and an object, or an option has a wrong type.
            ValueError: a number is out of range.
        """
        check_informers(informers, "EventFeed")
        ListenerOptions(limit=limit, filter=filter)  # raises here and not at the first client
        check_int("clients", clients)
        check_seconds("interval", interval, zero="no pause")
        check_seconds("heartbeat", heartbeat)
        check_signature(pulse, "pulse=")
        self._informers = informers
        self._frames = FrameEncoder(encode)
        self._filter = filter
        self._limit = limit
        self._interval = interval
        self._heartbeat = heartbeat
        self._pulse = pulse
        self._max_clients = clients
        self._closed = False
        self._clients: set[FeedClient] = set()

    @property
    def clients(self) -> int:
        """The number of connected clients."""
        return len(self._clients)

    def close(self) -> None:
        """End every response, and answer 503 from now on. A full socket's response ends later."""
        self._closed = True
        for client in self._clients:
            client.wake()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one client until it disconnects, the informers end or the feed is closed.

        Raises:
            UsageError: an informer has a ``model=``, and nothing was sent yet; or an informer was
                not started.
        """
        check_http(scope)
        if self._closed or self.clients >= self._max_clients:
            await send_response(
                send, 503, RETRY_HEADERS, b'{"detail":"no further clients are served now"}'
            )
            return
        async with AsyncExitStack() as stack:
            try:
                streams = [await stack.enter_async_context(each) for each in self._make_streams()]
            except NotRunning as error:
                await send_response(
                    send, 503, RETRY_HEADERS, msgspec.json.encode({"detail": str(error)})
                )
                return
            if scope.get("method") == "HEAD":
                await send_response(send, 200, STREAM_HEADERS, b"")
                return
            for limit in [each.start_limit() for each in streams]:
                await stack.enter_async_context(limit or nullcontext())
            await self._serve(FeedClient(streams, send, self._frames), receive)

    def _make_streams(self) -> Iterator[EventStream[Any]]:
        for each in self._informers():
            each.check_bytes("an EventFeed sends")
            yield each.events(limit=self._limit, filter=self._filter)

    async def _serve(self, client: FeedClient, receive: Receive) -> None:
        self._clients.add(client)
        sending = asyncio.create_task(self._send_events(client), name="server-sent events")
        disconnect = asyncio.create_task(
            wait_disconnected(receive), name="client of server-sent events"
        )
        try:
            await asyncio.wait({sending, disconnect}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._clients.discard(client)
            sending.cancel()
            disconnect.cancel()
            await asyncio.wait({sending, disconnect})
        for task in (sending, disconnect):
            if not task.cancelled():
                task.result()

    async def _send_events(self, client: FeedClient) -> None:
        clock = asyncio.get_running_loop().time
        due = clock()
        try:
            await client.start()
            while not (self._closed or client.ended):
                if clock() >= due:
                    await client.send(self._next_pulse())
                    due = clock() + self._heartbeat
                if not await client.send_pending():
                    await asyncio.sleep(self._interval)
                    await client.wait_pending(until=due)
            await client.end()
        except OSError:
            return  # since ASGI 2.4, send() raises it after the client has disconnected

    def _next_pulse(self) -> bytes:
        try:
            return self._pulse()
        except asyncio.CancelledError as error:  # which would end the response without a word
            raise as_exception(error, f"pulse={name_of(self._pulse)}") from error

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open"
        return f"<EventFeed {state} clients={self.clients} {self._frames!r}>"
