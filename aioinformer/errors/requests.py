"""A request that failed: what it was for, who is at fault, and what the server said of it.

Which of them mean what for the next request is decided in ``_core.outcomes``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from aioinformer.errors.usage import InformerError

__all__ = [
    "AlreadyExists",
    "BadRequest",
    "Conflict",
    "ConnectionFailed",
    "ConnectionLost",
    "Expired",
    "FetchError",
    "Forbidden",
    "Invalid",
    "LineTooLong",
    "NotFound",
    "Phase",
    "ProtocolError",
    "RequestTimedOut",
    "ResourceMoved",
    "ServerError",
    "ServerFailure",
    "ServerRewound",
    "Status",
    "TooManyRequests",
    "TransportError",
    "Unauthorized",
    "server_error",
]


Phase = Literal["credentials", "discovery", "list", "watch", "write"]
"""What a request was for. ``write`` is create, update, patch and delete."""


@dataclass(frozen=True, slots=True)
class Status:
    """What an API server says of a failed request: its ``v1.Status`` object.

    A plain-text answer (a missing custom resource gets one) becomes a Status with an empty
    ``reason`` and the text as ``message``.
    """

    code: int
    """The HTTP status code, or the code inside an ERROR watch event."""
    reason: str = ""
    """The machine-readable reason, such as ``Expired``; empty if the server gave none."""
    message: str = ""
    """The server's sentence."""
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """``details`` as sent: name, kind, causes, retryAfterSeconds."""
    retry_after: float | None = None
    """Seconds to wait, from the ``Retry-After`` header or ``details.retryAfterSeconds``."""
    continue_token: str = ""
    """A fresh token for the (inconsistent) rest of an expired list; recording 62."""

    def __str__(self) -> str:
        head = f"{self.code} {self.reason}".rstrip()
        return f"{head}: {self.message}" if self.message else head


class FetchError(InformerError):
    """A request failed. ``phase`` says what it was for, ``__cause__`` what broke underneath."""

    def __init__(self, message: str, *, phase: Phase | None = None) -> None:
        super().__init__(message)
        self.phase: Phase | None = phase


class ServerError(FetchError):
    """The API server answered, with an error. ``advice`` says what may be done, where that is
    known.
    """

    def __init__(
        self, status: Status, *, phase: Phase | None = None, target: str = "", advice: str = ""
    ) -> None:
        said = f"{target}: {status}" if target else str(status)
        super().__init__(f"{said}; {advice}" if advice else said, phase=phase)
        self.status = status
        self.target = target
        self.advice = advice


class BadRequest(ServerError):
    """400: the server doesn't accept the request, for example its selector."""


class Unauthorized(ServerError):
    """401: the server doesn't know who is asking."""


class Forbidden(ServerError):
    """403: the server knows who is asking and doesn't allow it (RBAC)."""


class NotFound(ServerError):
    """404: no such object, or no such resource."""


class Conflict(ServerError):
    """409: the object has changed since it was read, or another field manager owns a field."""


class AlreadyExists(Conflict):
    """409: there is an object of that name already. To read it again and to repeat is of no use."""


class Expired(ServerError):
    """410: the resourceVersion or the continue token is older than the server's history."""


class Invalid(ServerError):
    """422: understood, but not valid."""


class TooManyRequests(ServerError):
    """429: the server asks for fewer requests; ``status.retry_after`` may say for how long."""


class ServerFailure(ServerError):
    """5xx: the server, or something in front of it, failed."""


class TransportError(FetchError):
    """The network did not carry the request or the answer."""


class ConnectionFailed(TransportError):
    """The server was never reached: refused, unknown host, TLS."""


class ConnectionLost(TransportError):
    """The connection broke in the middle of an answer."""


class RequestTimedOut(TransportError):
    """Nothing came within the time allowed."""


class ResourceMoved(FetchError):
    """The server has stopped to serve a resource in the version that is read, not in another one.

    It is read in that one from then on. ``version`` names it.
    """

    def __init__(self, resource: str, version: str) -> None:
        super().__init__(
            f"{resource} are no longer served in the version that was read; they are read as "
            f"{version} from now on",
            phase="discovery",
        )
        self.version = version


class ServerRewound(FetchError):
    """The server shows an older state than one it has shown before: it was restored from a backup.

    Everything is read again and compared by content. ``resource_version`` is that of the state
    that was read then.
    """

    def __init__(self, resource: str, resource_version: str) -> None:
        super().__init__(
            f"the server has gone back in time, as by a restored backup: {resource} were read "
            f"again as of version {resource_version}, and compared by what is in them",
            phase="list",
        )
        self.resource_version = resource_version


class ProtocolError(FetchError):
    """The answer is not what a Kubernetes API server sends."""


class LineTooLong(ProtocolError):
    """One watch event is longer than the configured cap."""


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
    """The exception for a server's ``status``.

    The reason wins over the code for ``Expired`` and ``Gone``: an ERROR event may carry either
    (client-go's ``apierrors.IsResourceExpired`` and ``IsGone``). It tells the two 409s apart, too.
    """
    fallback = ServerFailure if status.code >= 500 else ServerError
    made = _BY_REASON.get(status.reason) or _BY_CODE.get(status.code, fallback)
    return made(status, phase=phase, target=target, advice=advice)
