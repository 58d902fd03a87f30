"""The feed: everybody who listens to some informers through HTTP.

What one of them is sent is ``client``'s; here they come, are served, and are let go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack

import msgspec

from aioinformer._core.delivery.mailbox import LIMIT
from aioinformer._core.selectors.event_filter import Filter
from aioinformer._runtime.delivery.streams import EventStream
from aioinformer.adapters.asgi.client import STREAM_HEADERS, FeedClient
from aioinformer.adapters.asgi.probes import Informers
from aioinformer.adapters.asgi.responses import (
    JSON_HEADERS,
    Receive,
    Scope,
    Send,
    check_http,
    send_response,
    wait_disconnected,
)
from aioinformer.adapters.asgi.sse import Encode, FrameEncoder, metadata
from aioinformer.errors import NotRunning

__all__ = ["EventFeed"]

HEARTBEAT = 15.0
"""Seconds of silence: proxies cut connections that are idle for 30 to 60."""

MAX_CLIENTS = 1000
"""Clients at a time. One that has stalled costs its socket's buffers and its mailboxes."""

HEARTBEAT_COMMENT = b": alive\n\n"
"""A comment, which browsers ignore."""

RETRY_HEADERS = [*JSON_HEADERS, (b"retry-after", b"2")]


class EventFeed:
    """An ASGI application that tells each of its clients what some informers tell.

    Frames are ``added``, ``updated`` and ``deleted``, with what ``encode`` made of the object as
    data; ``reset`` and ``synced`` around what is cached at first; ``failed`` for an object that
    ``encode`` raised at, with the error's type alone (the log has all of it, once).
    """

    def __init__(
        self,
        informers: Informers,
        *,
        encode: Encode = metadata,
        filter: Filter | None = None,  # noqa: A002 - what everybody calls it
        limit: int = LIMIT,
        interval: float = 0.0,
        heartbeat: float = HEARTBEAT,
        pulse: Callable[[], bytes] = lambda: HEARTBEAT_COMMENT,
        clients: int = MAX_CLIENTS,
    ) -> None:
        """Nobody is connected yet.

        Args:
            informers: asked when a client comes; those that there are then are told of. Informers
                of whole objects, not of a ``model=``.
            encode: makes the data of an object.
            filter: as for ``SharedInformer.events``.
            limit: live events that wait for one client before they are merged by object.
            interval: seconds between two sends at least; what comes meanwhile is sent together.
            heartbeat: seconds between two pulses.
            pulse: whole frames to send then, and first of all; by default a comment.
            clients: how many there may be at a time; who comes then is told to come later (503).
        """
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
        """How many are connected."""
        return len(self._clients)

    def close(self) -> None:
        """End every response whose client takes its end, and answer 503 from now on."""
        self._closed = True
        for client in self._clients:
            client.wake()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one client until it leaves, the informers end or the feed is closed."""
        check_http(scope)
        if self._closed or self.clients >= self._max_clients:
            await send_response(
                send, 503, RETRY_HEADERS, b'{"detail":"no more clients are served now"}'
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
            await self._serve(FeedClient(streams, send, self._frames), receive)

    def _make_streams(self) -> list[EventStream]:
        return [each.events(limit=self._limit, filter=self._filter) for each in self._informers()]

    async def _serve(self, client: FeedClient, receive: Receive) -> None:
        """Tell the client everything until it has left, or there is no more."""
        self._clients.add(client)
        telling = asyncio.create_task(self._send_events(client), name="server-sent events")
        leaving = asyncio.create_task(
            wait_disconnected(receive), name="client of server-sent events"
        )
        try:
            await asyncio.wait({telling, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._clients.discard(client)
            telling.cancel()
            leaving.cancel()
            await asyncio.wait({telling, leaving})
        for task in (telling, leaving):
            if not task.cancelled():
                task.result()

    async def _send_events(self, client: FeedClient) -> None:
        clock = asyncio.get_running_loop().time
        due = clock()
        try:
            await client.start()
            while not (self._closed or client.ended):
                if clock() >= due:
                    await client.send(self._pulse())
                    due = clock() + self._heartbeat
                if not await client.send_pending():
                    await asyncio.sleep(self._interval)
                    await client.wait_pending(until=due)
            await client.end()
        except OSError:
            return  # how ASGI servers say, since 2.4, that the client has gone

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open"
        return f"<EventFeed {state} clients={self.clients} {self._frames!r}>"
