"""Every exception that aioinformer raises on purpose, by who is at fault.

Foreign exceptions (aiohttp, ssl, msgspec, yaml) become one of these at one border each and are
kept as ``__cause__``, so that a program needs to know this page alone. A wrong argument that the
signature already forbids stays the ``TypeError`` or ``ValueError`` that Python users expect.
No message here ever carries a credential: they are built from hosts, paths, names and the
server's own ``Status``.

    InformerError
    ├── UsageError                 the calling program asked for something that can't be
    │   ├── ConfigurationError     no usable kubeconfig, context or in-cluster files
    │   ├── InvalidSelector        a label or field selector that doesn't parse
    │   ├── InvalidPath            a path into an object that doesn't parse
    │   ├── PathMismatch           a strict path doesn't fit the object that it was asked of
    │   ├── UnknownResource        no resource of that name
    │   │   └── AmbiguousResource  several groups have one; ``candidates`` tells them apart
    │   ├── UnwatchableResource    it is there, and can't be listed and watched
    │   ├── NotSynced              the cache was read before its first full state
    │   ├── IndexFailed            a new index's function raised; says at which object
    │   ├── NotComparable          a resourceVersion that can't be compared with others
    │   └── NotRunning             the informer or factory has ended, or never started
    ├── FetchError                 a request failed; ``phase`` says during what
    │   ├── ServerError            the API server answered, with an error; ``status`` has it
    │   │   ├── BadRequest, Unauthorized, Forbidden, NotFound, Conflict, Invalid
    │   │   ├── Expired            the resourceVersion or continue token is gone (410)
    │   │   ├── TooManyRequests    429
    │   │   └── ServerFailure      5xx
    │   ├── TransportError         the network did not carry the request or the answer
    │   │   ├── ConnectionFailed   never reached: refused, unknown host, TLS
    │   │   ├── ConnectionLost     broken off in the middle
    │   │   └── RequestTimedOut    nothing came within the time allowed
    │   ├── ResourceMoved          the resource is served in another version now
    │   ├── ServerRewound          the server was restored from a backup
    │   └── ProtocolError          the answer is not what a Kubernetes API server sends
    │       └── LineTooLong        one watch event is longer than the cap
    ├── HandlerTimeout             a call of a handler took longer than its ``timeout=``
    ├── HandlerCancelled           a handler raised a CancelledError that nobody asked for
    ├── ObjectDecodeError          a cached body turned out not to be JSON when it was opened
    ├── NotCached                  ``lister[...]`` of an object that the cache doesn't hold
    ├── SyncTimeout                ``wait_synced`` ran out of time; says which informers, and why
    ├── Stale                      the cache did not come to show something in time; says why
    ├── ListenerOverflow           a listener with ``overflow="error"`` was too slow
    └── ShutdownIncomplete         something did not end in the time that leaving allows
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = [
    "AmbiguousResource",
    "BadRequest",
    "ConfigurationError",
    "Conflict",
    "ConnectionFailed",
    "ConnectionLost",
    "Expired",
    "FetchError",
    "Forbidden",
    "HandlerCancelled",
    "HandlerTimeout",
    "IndexFailed",
    "InformerError",
    "Invalid",
    "InvalidPath",
    "InvalidSelector",
    "LineTooLong",
    "ListenerOverflow",
    "NotCached",
    "NotComparable",
    "NotFound",
    "NotRunning",
    "NotSynced",
    "ObjectDecodeError",
    "PathMismatch",
    "Phase",
    "ProtocolError",
    "RequestTimedOut",
    "ResourceMoved",
    "ServerError",
    "ServerFailure",
    "ServerRewound",
    "ShutdownIncomplete",
    "Stale",
    "Status",
    "SyncTimeout",
    "TooManyRequests",
    "TransportError",
    "Unauthorized",
    "UnknownResource",
    "UnwatchableResource",
    "UsageError",
    "server_error",
]


Phase = Literal["credentials", "discovery", "list", "watch", "write"]
"""What a request was for. ``write`` is create, update, patch and delete."""


class InformerError(Exception):
    """Base of every exception that aioinformer raises on purpose."""


# -- the calling program ---------------------------------------------------------------------


class UsageError(InformerError):
    """The calling program asked for something that can't be. Trying again doesn't help."""


class ConfigurationError(UsageError):
    """No usable kubeconfig, context or in-cluster files. The message says what was tried."""


class InvalidSelector(UsageError, ValueError):
    """A label or field selector that doesn't parse. The message marks where."""


class InvalidPath(UsageError, ValueError):
    """A path into an object that doesn't parse. The message marks where."""


class PathMismatch(UsageError, TypeError):
    """A strict path leads into a value of another shape, such as a key of a string."""


class UnknownResource(UsageError, LookupError):
    """No resource of that name, in the built-in table or on the server."""


class AmbiguousResource(UnknownResource):
    """Several groups have a resource of that name. ``candidates`` are names that have one each."""

    def __init__(self, message: str, *, candidates: tuple[str, ...]) -> None:
        super().__init__(message)
        self.candidates = candidates


class UnwatchableResource(UsageError):
    """The resource exists, and can't be listed and watched: reviews, some metrics.

    ``lacks`` are the verbs that it would need.
    """

    def __init__(self, message: str, *, lacks: tuple[str, ...]) -> None:
        super().__init__(message)
        self.lacks = lacks


class NotSynced(UsageError):
    """The cache was read before it held its first full state.

    Await ``wait_synced()`` first, or read through ``lister.unsynced`` to accept a partial view.
    """


class IndexFailed(UsageError):
    """The function of an index that was to be added raised; what it raised is the ``__cause__``.

    The cache and its other indexes are as if nobody had asked. ``index`` and ``key`` say of which
    index, and at which object.
    """

    def __init__(self, index: str, resource: object, key: object, error: Exception) -> None:
        super().__init__(
            f"the index {index!r} was not added: its function raised at {resource} {key}: "
            f"{type(error).__name__}: {error}"
        )
        self.index = index
        self.key = str(key)


class NotComparable(UsageError, ValueError):
    """A resourceVersion that is no decimal number, and so neither older nor newer than others.

    Conformant servers have none (KEP-5504); some aggregated ones do.
    """

    def __init__(self, version: str) -> None:
        super().__init__(
            f"the resourceVersion {version!r} is no decimal number, so that nobody knows whether "
            "it is older or newer than another one (KEP-5504)"
        )
        self.version = version


class NotRunning(UsageError):
    """The informer, stream or factory has ended, or was never started."""


# -- a request ---------------------------------------------------------------------------------


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
    """409: the object exists already, or has changed since it was read."""


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


def server_error(
    status: Status, *, phase: Phase | None = None, target: str = "", advice: str = ""
) -> ServerError:
    """The exception for a server's ``status``.

    The reason wins over the code for ``Expired`` and ``Gone``: an ERROR event may carry either
    (client-go's ``apierrors.IsResourceExpired`` and ``IsGone``).
    """
    if status.reason in ("Expired", "Gone"):
        return Expired(status, phase=phase, target=target, advice=advice)
    fallback = ServerFailure if status.code >= 500 else ServerError
    made = _BY_CODE.get(status.code, fallback)
    return made(status, phase=phase, target=target, advice=advice)


# -- the rest --------------------------------------------------------------------------------


class HandlerTimeout(InformerError, TimeoutError):
    """A call of a handler took longer than its ``timeout=``."""


class HandlerCancelled(InformerError):
    """A handler raised a CancelledError that nobody asked for; it is the ``__cause__``.

    It stands for it wherever an ``Exception`` is expected: a bare one would end a task silently.
    """


class ObjectDecodeError(InformerError):
    """A cached body turned out not to be valid JSON when it was opened.

    The metadata was readable, so the object is cached under its key; its body is not. The
    handler that opened it is not to blame.
    """

    def __init__(self, message: str, *, key: str, resource_version: str) -> None:
        super().__init__(message)
        self.key = key
        self.resource_version = resource_version


class NotCached(InformerError, KeyError):
    """``lister[key]`` of an object that the cache doesn't hold. ``lister.get(key)`` is ``None``.

    It is a ``KeyError``, as of any mapping, and not ``NotFound``, which is an API server's answer:
    the server may have the object, in a later state or outside of what is cached.
    """

    def __init__(self, resource: object, key: object) -> None:
        super().__init__(f"{key} is not among the cached {resource}")
        self.resource = str(resource)
        self.key = str(key)

    def __str__(self) -> str:  # that of KeyError puts quotes around it
        return str(self.args[0])


class SyncTimeout(InformerError, TimeoutError):
    """``wait_synced`` ran out of time.

    ``unsynced`` maps the name of each informer that is not synced to what its health says.
    """

    def __init__(self, timeout: float, unsynced: Mapping[str, str]) -> None:
        listed = "; ".join(f"{name}: {why}" for name, why in unsynced.items())
        super().__init__(f"not synced after {timeout:g} s: {listed}")
        self.unsynced = dict(unsynced)


class Stale(InformerError, TimeoutError):
    """The cache did not come to show something in time; the message says what health says.

    ``resource_version`` is up to where the cache has applied everything.
    """

    def __init__(self, message: str, *, resource_version: str) -> None:
        super().__init__(message)
        self.resource_version = resource_version


class ListenerOverflow(InformerError):
    """More events were pending than a listener with ``overflow="error"`` allows, or the changes of
    two lists. It was ended and hears no more; ``limit`` is what it allowed.
    """

    def __init__(self, name: str, *, limit: int) -> None:
        super().__init__(
            f"{name} was ended: it was too slow for a limit of {limit} events; raise the limit, "
            'or have them merged by key (overflow="coalesce")'
        )
        self.limit = limit


class ShutdownIncomplete(InformerError):
    """Something did not end in the time that leaving allows. ``left`` names it."""

    def __init__(self, left: tuple[str, ...], *, waited: float) -> None:
        super().__init__(f"still running {waited:g} s after being asked to end: {', '.join(left)}")
        self.left = left
