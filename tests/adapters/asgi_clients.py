"""A client of an ASGI application, as its server would present it: no sockets, no framework."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Coroutine, MutableMapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, TypeAlias

from aioinformer.adapters.asgi.asgi_messages import Message, Receive, Scope, Send
from tests.promises.conftest import wait_until

__all__ = ["Application", "AsgiClient", "SseMessage", "connected", "make_scope", "request"]


Application: TypeAlias = Callable[[Scope, Receive, Send], Coroutine[None, None, None]]
"""Anything that serves HTTP by ASGI."""


class SseMessage(NamedTuple):
    """One message of an event stream; a comment has no event."""

    event: str
    data: Any


class AsgiClient:
    """A client, and the messages that it received."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""
        self.ended = False
        self.sends = 0
        self.writable = asyncio.Event()
        """Set while the client's socket takes data."""
        self.writable.set()
        self.disconnected = asyncio.Event()
        self.broken = False
        """True if sending raises, as servers of ASGI 2.4 do for a disconnected client."""

    async def receive(self) -> Message:
        await self.disconnected.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        await self.writable.wait()
        if self.broken:
            raise BrokenPipeError("the client has disconnected")
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            return
        self.sends += 1
        self.body += message["body"]
        self.ended = not message["more_body"]

    @property
    def messages(self) -> list[SseMessage]:
        """The frames that were received, in order."""
        return [_parse_message(text) for text in self.body.decode().split("\n\n")[:-1]]

    def object_names(self, *events: str) -> list[str]:
        """Return the names in the frames of these events, in order."""
        return [frame.data["name"] for frame in self.messages if frame.event in events]

    @property
    def synced(self) -> bool:
        """True if everything that was cached was received."""
        return any(frame.event == "synced" for frame in self.messages)

    @property
    def json(self) -> Any:
        """The body of a whole answer."""
        return json.loads(self.body)


def _parse_message(text: str) -> SseMessage:
    fields: MutableMapping[str, str] = {}
    for line in text.split("\n"):
        name, _, value = line.partition(": ")
        fields[name] = value
    return SseMessage(fields.get("event", ""), json.loads(fields.get("data", "null")))


def make_scope(method: str = "GET") -> Scope:
    """Return the scope of a request."""
    return {"type": "http", "method": method, "path": "/", "headers": []}


async def request(app: Application, method: str = "GET") -> AsgiClient:
    """Return a client that received a whole response."""
    client = AsgiClient()
    async with asyncio.timeout(30):
        await app(make_scope(method), client.receive, client.send)
    return client


@asynccontextmanager
async def connected(app: Application, *, synced: bool = True) -> AsyncGenerator[AsgiClient]:
    """Connect a client until the block ends."""
    client = AsgiClient()
    serving = asyncio.create_task(app(make_scope(), client.receive, client.send))
    try:
        await wait_until(lambda: serving.done() or client.synced or not synced)
        yield client
    finally:
        client.disconnected.set()
        await asyncio.wait_for(serving, 30)
