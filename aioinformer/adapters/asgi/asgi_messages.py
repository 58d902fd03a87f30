"""The types and messages of ASGI that are used here: one request, and a response whole or in parts.

The types are those of ASGI 3.0 (HTTP 2.x), spelled so that they fit wherever Starlette's do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from aioinformer.errors import UsageError

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Headers: TypeAlias = tuple[tuple[bytes, bytes], ...]

JSON_HEADERS: Headers = ((b"content-type", b"application/json"), (b"cache-control", b"no-store"))


def check_http(scope: Scope) -> None:
    """Raise ``UsageError`` for a WebSocket or a lifespan."""
    if scope["type"] != "http":
        raise UsageError(f"this ASGI application serves HTTP requests, not {scope['type']!r}")


async def start_response(send: Send, status: int, headers: Headers) -> None:
    """Send the head of a response, with a list of its own, which middleware changes in place."""
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})


async def send_response(send: Send, status: int, headers: Headers, body: bytes) -> None:
    """Send a whole response."""
    await start_response(send, status, headers)
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def wait_disconnected(receive: Receive) -> None:
    """Wait until the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass
