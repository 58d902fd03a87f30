"""The classification of every end of a request: errors become one of two dozen outcomes."""

from __future__ import annotations

from enum import Enum, auto

from msgspec import Struct

from aioinformer.errors import (
    ConnectionFailed,
    Expired,
    FetchError,
    Forbidden,
    Invalid,
    NotFound,
    ProtocolError,
    ServerError,
    ServerFailure,
    TooManyRequests,
    TransportError,
    Unauthorized,
)

METHOD_NOT_ALLOWED = 405

UNAVAILABLE = 503
"""The status of a server that starts, stops or is overloaded, often with a Retry-After."""


class Outcome(Enum):
    """The end of a request, as far as the next request depends on it."""

    MORE = auto()
    COMPLETE = auto()
    POLLED = auto()
    """The last page arrived; the server refuses watches, so lists follow at the polling interval.
    """
    ALIVE = auto()
    """The check after an idle timeout found a server that had nothing to send. That is a server
    without a newer version, or one that was restarted before the watch: it sends no bookmark before
    it sees a change."""
    REWOUND = auto()
    """The state is older than an earlier one. If the read was consistent, the server was restored
    from a backup. If not, a replica may lag behind, and a consistent read follows."""
    ENDED = auto()
    """The server ended the watch as usual."""
    SILENT_WATCH = auto()
    """The server ended the watch as usual, and has shown no version for minutes: it has nothing to
    send, or was restored from a backup to an older version than that of the watch."""
    SHORT_WATCH = auto()
    """The watch ended long before its time, without a change."""
    EMPTY_WATCH = auto()
    """The watch ended at once, without a change."""
    IDLE_TIMEOUT = auto()
    WATCHLIST_TIMEOUT = auto()
    """The initial list of the WatchList was not complete in time."""
    EXPIRED = auto()
    """410, as a response or an event: the server no longer knows the version or continue token."""
    VERSION_TOO_LARGE = auto()
    SERVED = auto()
    """Discovery shows the resource, although a request was answered with 404."""
    APPEARED = auto()
    """Discovery shows the resource, and did not show it before."""
    API_VERSION_CHANGED = auto()
    """Discovery shows the resource in another API version only."""
    NOT_SERVED = auto()
    THROTTLED = auto()
    """429: the server asks the client to wait."""
    UNAVAILABLE = auto()
    """503: the server starts, stops or is overloaded."""
    UNREACHABLE = auto()
    """The network did not carry the request: refused, reset, timed out."""
    CONNECTION_LOST = auto()
    """The connection broke in the middle of a response. A watch had shown something, or had lasted
    for more than a second."""
    LOST_AT_ONCE = auto()
    """The connection of a watch broke at once, before an event."""
    UNAUTHORIZED = auto()
    ACCESS_DENIED = auto()
    METHOD_NOT_ALLOWED = auto()
    """405: the server doesn't serve this kind of request for the resource."""
    WATCH_REFUSED = auto()
    """403, 404 or 405 for a watch, right after a list that worked."""
    NOT_FOUND = auto()
    SERVER_ERROR = auto()
    WATCHLIST_UNSUPPORTED = auto()
    """The server has no WatchList, or its storage can't serve one."""
    WATCHLIST_REFUSED = auto()
    """The network did not carry a WatchList, although the server has answered another informer."""
    WATCHLIST_UNANSWERED = auto()
    """The connection was closed, or nothing came in time, in place of the answer to a WatchList."""
    BAD_REQUEST = auto()
    """Any other response: 400, 422, a redirect."""
    ERROR_EVENT = auto()
    """An ERROR event inside the stream. The missed changes are unknown."""
    PROTOCOL_ERROR = auto()
    """The response is malformed. The missed changes are unknown."""


class RequestEnd(Struct, frozen=True):
    outcome: Outcome
    error: FetchError | None = None
    """``None`` if nothing went wrong, and where an error was reported before."""
    known: bool = False
    """True if the program knows of the error: it is logged, and not reported again."""

    @property
    def retry_after(self) -> float | None:
        """The least wait that the server asked for, in seconds."""
        return self.error.status.retry_after if isinstance(self.error, ServerError) else None


def classify_watchlist(error: FetchError, *, opened: bool, answered: bool) -> Outcome:
    """Return the outcome for ``error``, the end of a WatchList before its end mark.

    ``answered`` says that the server has answered another informer since the last failure. What
    refuses WatchLists alone, a proxy or an aggregated API, may do so with a closed connection. A
    connection that could not be made says nothing about them.
    """
    outcome = classify(error, opened=opened)
    if lacks_watchlist(error):
        return Outcome.WATCHLIST_UNSUPPORTED
    if outcome is not Outcome.UNREACHABLE:
        return outcome
    if answered:
        return Outcome.WATCHLIST_REFUSED
    return outcome if isinstance(error, ConnectionFailed) else Outcome.WATCHLIST_UNANSWERED


def classify(error: FetchError, *, opened: bool = False) -> Outcome:
    """Return the outcome for ``error``; ``opened`` if a 200 response had begun before it."""
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
    if isinstance(error, TooManyRequests):
        return Outcome.THROTTLED
    if error.status.code == UNAVAILABLE:
        return Outcome.UNAVAILABLE
    if isinstance(error, Unauthorized):
        return Outcome.UNAUTHORIZED
    if isinstance(error, Forbidden):
        return Outcome.ACCESS_DENIED
    if isinstance(error, NotFound):
        return Outcome.NOT_FOUND
    if in_stream:
        return Outcome.ERROR_EVENT
    if error.status.code == METHOD_NOT_ALLOWED:
        return Outcome.METHOD_NOT_ALLOWED
    return Outcome.SERVER_ERROR if isinstance(error, ServerFailure) else Outcome.BAD_REQUEST


NO_WATCH_PROGRESS = "RequestWatchProgress is disabled"
"""A part of the message of a server whose storage can't serve a WatchList."""


def lacks_watchlist(error: FetchError) -> bool:
    """Return True if ``error``, the answer to a WatchList, says that the server has none.

    422 is the answer of a server whose feature gate is off, or which is older than the feature
    (apimachinery's ``ValidateListOptions``). If a wrong selector is the cause, the list that
    follows fails, too.
    """
    if isinstance(error, Invalid):
        return True
    return isinstance(error, ServerError) and NO_WATCH_PROGRESS in error.status.message


def _is_version_too_large(error: ServerError) -> bool:
    """Return True for 'Too large resource version', in the three forms that client-go knows."""
    causes = error.status.causes
    if any(cause.get("reason") == "ResourceVersionTooLarge" for cause in causes):
        return True
    if error.status.reason != "Timeout":
        return False
    texts = [error.status.message, *(cause.get("message") for cause in causes)]
    return any(isinstance(text, str) and "Too large resource version" in text for text in texts)
