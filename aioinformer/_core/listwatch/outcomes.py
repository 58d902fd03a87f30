"""How a list or watch ended, as far as the next request depends on it.

Servers and networks fail in many dialects; ``cursor``'s table knows a dozen outcomes. Here, and
nowhere else, the one becomes the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from typing import Any, cast

from aioinformer.errors import (
    Expired,
    FetchError,
    Forbidden,
    NotFound,
    ProtocolError,
    ServerError,
    ServerFailure,
    TooManyRequests,
    TransportError,
    Unauthorized,
)

__all__ = ["Outcome", "classify"]

UNAVAILABLE = 503
"""A server that starts, stops or is overloaded says so, often with a Retry-After."""


class Outcome(Enum):
    """How a request ended, as far as the next one depends on it."""

    MORE = auto()
    """A page, with more to come."""
    COMPLETE = auto()
    """The last page."""
    REWOUND = auto()
    """A state is older than one seen before. If it was read consistently, the server was restored
    from a backup; if not, that is to be seen."""
    ENDED = auto()
    """A watch ended as watches do."""
    SHORT_WATCH = auto()
    """A watch ended long before its time, with nothing new in it."""
    EMPTY_WATCH = auto()
    """A watch ended at once, with nothing new in it."""
    IDLE_TIMEOUT = auto()
    """A watch said nothing for longer than this server's bookmarks are apart."""
    WATCHLIST_TIMEOUT = auto()
    """A WatchList did not come to the end of its initial state."""
    EXPIRED = auto()
    """The resourceVersion or continue token is gone: 410, as a response or as an event."""
    VERSION_TOO_LARGE = auto()
    """The resourceVersion is newer than anything this server has: 'too large'."""
    SERVED = auto()
    """Discovery shows the resource, although it was answered with 404."""
    APPEARED = auto()
    """Discovery shows the resource, which it did not before."""
    API_VERSION_CHANGED = auto()
    """Discovery shows the resource in another version, and in that one only."""
    NOT_SERVED = auto()
    """Discovery does not show the resource."""
    THROTTLED = auto()
    """429, 503: the server asks for patience."""
    UNREACHABLE = auto()
    """The network did not carry the request: refused, reset, timed out."""
    CONNECTION_LOST = auto()
    """The network broke in the middle of an answer."""
    ACCESS_DENIED = auto()
    """401, 403."""
    NOT_FOUND = auto()
    """404: the resource isn't served."""
    SERVER_ERROR = auto()
    """Any other 5xx in answer to the request."""
    BAD_REQUEST = auto()
    """Any other answer: 400, 405, 422, a redirect."""
    ERROR_EVENT = auto()
    """An ERROR event inside the stream: what was missed is unknown."""
    PROTOCOL_ERROR = auto()
    """Bytes that make no sense: what was missed is unknown."""


def classify(error: FetchError, *, opened: bool = False) -> Outcome:
    """The outcome that ``error`` means.

    Args:
        error: what a list or watch ended with.
        opened: whether it came after the head of an answer that said 200.
    """
    if isinstance(error, ServerError):
        return _classify_status(error, in_stream=opened)
    if isinstance(error, TransportError):
        return Outcome.CONNECTION_LOST if opened else Outcome.UNREACHABLE
    if isinstance(error, ProtocolError):
        return Outcome.PROTOCOL_ERROR
    return Outcome.BAD_REQUEST


def _classify_status(error: ServerError, *, in_stream: bool) -> Outcome:
    if isinstance(error, Expired):
        return Outcome.EXPIRED
    if _is_version_too_large(error):
        return Outcome.VERSION_TOO_LARGE
    if isinstance(error, TooManyRequests) or error.status.code == UNAVAILABLE:
        return Outcome.THROTTLED
    if isinstance(error, Unauthorized | Forbidden):
        return Outcome.ACCESS_DENIED
    if isinstance(error, NotFound):
        return Outcome.NOT_FOUND
    if in_stream:
        return Outcome.ERROR_EVENT
    return Outcome.SERVER_ERROR if isinstance(error, ServerFailure) else Outcome.BAD_REQUEST


def _is_version_too_large(error: ServerError) -> bool:
    """'Too large resource version' in the three dialects of server that client-go knows."""
    causes = _read_causes(error)
    if any(cause.get("reason") == "ResourceVersionTooLarge" for cause in causes):
        return True
    if error.status.reason != "Timeout":
        return False
    texts = [error.status.message, *(cause.get("message") for cause in causes)]
    return any(isinstance(text, str) and "Too large resource version" in text for text in texts)


def _read_causes(error: ServerError) -> list[dict[str, Any]]:
    """The causes in the details that have the form of causes; a server may send anything."""
    sent: Any = error.status.details.get("causes")
    if not isinstance(sent, list):
        return []
    return [cause for cause in cast("Iterable[Any]", sent) if isinstance(cause, dict)]
