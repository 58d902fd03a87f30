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
    ProtocolError,
    ServerError,
    ServerFailure,
    TooManyRequests,
    TransportError,
    Unauthorized,
)

__all__ = ["Outcome", "classify"]


class Outcome(Enum):
    """How a request ended, as far as the next one depends on it."""

    MORE = auto()
    """A page, with more to come."""
    COMPLETE = auto()
    """The last page."""
    ENDED = auto()
    """A watch ended as watches do."""
    UNSERVED = auto()
    """A watch ended at once, with nothing in it."""
    EXPIRED = auto()
    """The resourceVersion or continue token is gone: 410, as a response or as an event."""
    AHEAD = auto()
    """The resourceVersion is newer than anything this server has: 'too large'."""
    BUSY = auto()
    """429: the server asks for patience."""
    UNREACHABLE = auto()
    """The network broke: refused, reset, timed out."""
    DENIED = auto()
    """401, 403."""
    FAILED = auto()
    """5xx in answer to the request."""
    REJECTED = auto()
    """Any other answer: 400, 404, 405, 422, a redirect."""
    BROKEN = auto()
    """An error inside the stream, or bytes that make no sense: what was missed is unknown."""


def classify(error: FetchError, *, in_stream: bool = False) -> Outcome:
    """The outcome that ``error`` means.

    Args:
        error: what a list or watch ended with.
        in_stream: whether it came as an ERROR event of a stream already open.
    """
    if isinstance(error, ServerError):
        return _classify_status(error, in_stream=in_stream)
    if isinstance(error, TransportError):
        return Outcome.UNREACHABLE
    if isinstance(error, ProtocolError):
        return Outcome.BROKEN
    return Outcome.REJECTED


def _classify_status(error: ServerError, *, in_stream: bool) -> Outcome:
    if isinstance(error, Expired):
        return Outcome.EXPIRED
    if _too_large(error):
        return Outcome.AHEAD
    if isinstance(error, TooManyRequests):
        return Outcome.BUSY
    if in_stream:
        return Outcome.BROKEN
    if isinstance(error, Unauthorized | Forbidden):
        return Outcome.DENIED
    return Outcome.FAILED if isinstance(error, ServerFailure) else Outcome.REJECTED


def _too_large(error: ServerError) -> bool:
    """'Too large resource version' in the three dialects of server that client-go knows."""
    causes = _causes(error)
    if any(cause.get("reason") == "ResourceVersionTooLarge" for cause in causes):
        return True
    if error.status.reason != "Timeout":
        return False
    texts = [error.status.message, *(cause.get("message") for cause in causes)]
    return any(isinstance(text, str) and "Too large resource version" in text for text in texts)


def _causes(error: ServerError) -> list[dict[str, Any]]:
    """The causes in the details that have the form of causes; a server may send anything."""
    sent: Any = error.status.details.get("causes")
    if not isinstance(sent, list):
        return []
    return [cause for cause in cast("Iterable[Any]", sent) if isinstance(cause, dict)]
