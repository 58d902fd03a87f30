"""Errors of requests, with their purpose and the server's ``Status``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, cast

from msgspec import Struct

from aioinformer.errors.texts import one_line, printable
from aioinformer.errors.usage import InformerError

Phase = Literal["credentials", "discovery", "list", "watch", "write"]
"""The purpose of a request. ``write`` is create, update, patch and delete."""


MAX_LENGTH = 4000
"""Characters of an error's text: of the server's message, the address and the advice together."""


class Status(Struct, frozen=True):
    """The API server's description of an error: its ``v1.Status`` object.

    A plain-text response, as for a missing custom resource, becomes a Status with an empty
    ``reason`` and the text as ``message``.
    """

    code: int
    """The HTTP status code, or the code inside an ERROR watch event."""
    reason: str = ""
    """The machine-readable reason, such as ``Expired``; empty if the server gave none."""
    message: str = ""
    details: Mapping[str, Any] = {}
    """The ``details`` as received: name, kind, causes, retryAfterSeconds."""
    retry_after: float | None = None
    """Seconds to wait, from the ``Retry-After`` header or ``details.retryAfterSeconds``."""
    continue_token: str = ""
    """A token for the rest of an expired list, which is inconsistent with its beginning."""

    @property
    def causes(self) -> list[dict[str, Any]]:
        """The causes in the details: each has a reason, a message or a field.

        A server may send anything in their place, so entries of another form are left out.
        """
        sent: Any = self.details.get("causes")
        if not isinstance(sent, list):
            return []
        return [cause for cause in cast("Iterable[Any]", sent) if isinstance(cause, dict)]

    @property
    def is_apply_conflict(self) -> bool:
        """True if an apply with ``force=False`` has set fields of another manager."""
        return any(cause.get("reason") == "FieldManagerConflict" for cause in self.causes)

    def __str__(self) -> str:
        head = f"{self.code} {self.reason}".rstrip()
        return printable(f"{head}: {self.message}" if self.message else head)


class FetchError(InformerError):
    """A request failed. ``phase`` is its purpose, ``__cause__`` the foreign exception."""

    def __init__(self, message: str, *, phase: Phase | None = None) -> None:
        super().__init__(message if len(message) <= MAX_LENGTH else one_line(message, MAX_LENGTH))
        self.phase: Phase | None = phase


class ServerError(FetchError):
    """The API server answered with an error. ``advice`` is a hint for the remedy, or empty."""

    def __init__(
        self, status: Status, *, phase: Phase | None = None, target: str = "", advice: str = ""
    ) -> None:
        text = f"{target}: {status}" if target else str(status)
        super().__init__(f"{text}; {advice}" if advice else text, phase=phase)
        self.status = status
        self.target = target
        self.advice = advice


class BadRequest(ServerError):
    """400: the server doesn't accept the request, for example its selector."""


class Unauthorized(ServerError):
    """401: the server doesn't accept the credentials."""


class Forbidden(ServerError):
    """403: the server denies the authenticated user the request (RBAC)."""


class NotFound(ServerError):
    """404: the object or the resource does not exist."""


class Conflict(ServerError):
    """409: the object has changed since it was read, or another field manager owns a field."""


class AlreadyExists(Conflict):
    """409: an object of that name exists. To read it again and repeat the request does not help."""


class Expired(ServerError):
    """410: the resourceVersion or the continue token is older than the server's history."""


class Invalid(ServerError):
    """422: the server understood the object, but it is not valid."""


class TooManyRequests(ServerError):
    """429: the server asks for fewer requests; ``status.retry_after`` may say for how long."""


class ServerFailure(ServerError):
    """5xx: the server, or something in front of it, failed."""


class TransportError(FetchError):
    """The network did not carry the request or the response."""


class ConnectionFailed(TransportError):
    """No connection to the server: refused, unknown host, TLS."""


class ConnectionLost(TransportError):
    """The connection broke during the response."""


class RequestTimedOut(TransportError):
    """No response, or no further data of it, came within the time allowed."""


class ResourceMoved(FetchError):
    """The server serves a resource in another ``version`` than the one that was read.

    The informer reads the resource in that version from then on.
    """

    def __init__(self, resource: str, version: str) -> None:
        super().__init__(
            f"{resource} are no longer served in the version that was read; they are read in "
            f"version {version} from now on",
            phase="discovery",
        )
        self.version = version


class ServerRewound(FetchError):
    """The server shows an older state than before, because it was restored from a backup.

    The informer lists all objects again, at ``resource_version``, and compares them by content.
    """

    def __init__(self, resource: str, resource_version: str) -> None:
        super().__init__(
            f"the server has gone back in time, as after the restore of a backup: {resource} were "
            f"listed again at version {resource_version}, and compared by content",
            phase="list",
        )
        self.resource_version = resource_version


class ProtocolError(FetchError):
    """The response is not that of a Kubernetes API server."""


class UnexpectedObject(ProtocolError):
    """A list or watch contains an object of another kind, or in another namespace.

    Such an object is never cached. An event of a watch is ignored and counted in
    ``Health.ignored``, as client-go ignores it; a list, or the initial list of a WatchList, is
    rejected as a whole and requested again.
    """


class LineTooLong(ProtocolError):
    """A watch event is longer than the configured limit."""


_BY_CODE: dict[int, type[ServerError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Expired,
    422: Invalid,
    429: TooManyRequests,
}

_BY_REASON: dict[str, type[ServerError]] = {
    "Expired": Expired,
    "Gone": Expired,
    "AlreadyExists": AlreadyExists,
}


def server_error(
    status: Status, *, phase: Phase | None = None, target: str = "", advice: str = ""
) -> ServerError:
    """Return the exception for a server's ``status``.

    The reason takes precedence over the code for ``Expired`` and ``Gone``, because an ERROR event
    may have either (client-go's ``apierrors.IsResourceExpired`` and ``IsGone``), and distinguishes
    the two errors with code 409.
    """
    fallback = ServerFailure if status.code >= 500 else ServerError
    made = _BY_REASON.get(status.reason) or _BY_CODE.get(status.code, fallback)
    return made(status, phase=phase, target=target, advice=advice)
