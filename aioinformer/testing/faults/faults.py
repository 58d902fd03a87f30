"""Switches for faults of a server or network, each for the requests that a test chooses.

    with server.faults.status(503, verb="list", retry_after=1):
        ...  # every list is answered with 503
    stalled = server.faults.stall(verb="watch", times=1)
    ...  # the next watch, or an open one, sends nothing more
    stalled.end()

The switches are sans-I/O. ``ApiServer`` applies them to sockets, ``ClusterSource`` to the bytes
that it yields. Several faults can be active at once, and their effects add up. Faults of the data
are methods of ``Cluster`` (``compact``, ``restore``, ``empty_watch_cache``), and faults of the
whole process are methods of ``ApiServer`` (``stop``, ``restart``, ``drop_connections``).
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Literal, Self, TypeAlias, TypedDict, Unpack

from aioinformer._core.objects.resources import Resource
from aioinformer.errors import Status
from aioinformer.testing.faults.effects import (
    WATCH_EFFECTS,
    Corrupt,
    Cut,
    Delay,
    Drip,
    Effect,
    EndWatch,
    ErrorStatus,
    LateBookmarks,
    NoInitialEventsEnd,
    Refuse,
    RepeatBookmarks,
)

__all__ = ["Fault", "Faults", "RequestFilter", "RequestVerb", "WatchFilter"]

RequestVerb: TypeAlias = Literal[
    "any", "list", "watch", "get", "create", "update", "patch", "delete", "deletecollection"
]
"""The verb of a request. Documents that aren't objects (discovery, health) are ``get``."""

FORBIDDEN = 403
_DEFAULT_STATUSES = {
    400: ("BadRequest", "the server rejected our request for an unknown reason"),
    401: ("Unauthorized", "Unauthorized"),
    403: ("Forbidden", "forbidden"),
    404: ("NotFound", "the server could not find the requested resource"),
    409: ("Conflict", "the server reported a conflict"),
    410: ("Expired", "The resourceVersion for the provided list is too old."),
    429: ("TooManyRequests", "Too many requests, please try again later."),
    500: ("InternalError", "an error on the server has prevented the request from succeeding"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: ("Timeout", "the server was unable to return a response in the time allotted"),
}
"""Reason and message by code, with apimachinery's texts (``errors.NewGenericServerResponse``)."""


class WatchFilter(TypedDict, total=False):
    """The watches that a fault concerns."""

    resource: str | Resource | None
    """A ``Resource``, or a name in any form; ``None`` (the default) for all resources."""
    times: int | None
    """The number of requests after which the fault is used up; ``None`` (the default) for any
    number."""


class RequestFilter(WatchFilter, total=False):
    """The requests that a fault concerns."""

    verb: RequestVerb
    """``any`` by default."""


class Fault:
    """One switch that is on. ``end`` switches it off, and so does leaving its context."""

    def __init__(
        self,
        effect: Effect,
        verb: RequestVerb,
        resource: str | Resource | None,
        times: int | None,
        on_end: Callable[[Fault], None],
    ) -> None:
        """Make a fault. The methods of ``Faults`` do."""
        if times is not None and times < 1:
            raise ValueError(f"times must be at least 1 request, or None for all; not {times}")
        self.effect = effect
        self.hits = 0
        """The number of requests that the fault has concerned so far."""
        self._verb = verb
        self._resource = resource
        self._times = times
        self._on_end = on_end
        self.ended = False
        """True once the fault was switched off."""

    @property
    def active(self) -> bool:
        """True if the fault can concern another request."""
        return not self.ended and (self._times is None or self.hits < self._times)

    def end(self) -> None:
        """Switch the fault off. Stalled connections go on, broken ones stay broken."""
        if not self.ended:
            self.ended = True
            self._on_end(self)

    def concerns(self, verb: RequestVerb, resource: Resource | None) -> bool:
        """Return True if the fault concerns such a request, and is not used up."""
        if not self.active or (isinstance(self.effect, WATCH_EFFECTS) and verb != "watch"):
            return False
        if self._verb not in ("any", verb):
            return False
        if self._resource is None or resource is None:
            return self._resource is None
        if isinstance(self._resource, Resource):
            return self._resource == resource
        return self._resource.lower() in resource.names()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end()

    def __repr__(self) -> str:
        requests = f"{self._verb} {self._resource or 'everything'}"
        state = "ended" if self.ended else "on" if self.active else "used up"
        return f"<Fault {self.effect} for {requests} {state} {self.hits} hits>"


class Faults:
    """The switches of a server.

    Each method switches a fault on and returns it. The keywords ``verb``, ``resource`` and
    ``times`` choose the requests: see ``RequestFilter``. Switches for watches have no ``verb``.
    """

    def __init__(self) -> None:
        """Make switches that are all off."""
        self._active: list[Fault] = []
        self._observers: list[Callable[[], None]] = []

    # -- connections ---------------------------------------------------------------------------

    def refuse(self) -> Fault:
        """Refuse connections, and requests over idle connections. Answers under way go on."""
        return self._add(Refuse())

    def reset(self, *, after: int | None = None, **requests: Unpack[RequestFilter]) -> Fault:
        """Break connections.

        Args:
            after: bytes of the body that are sent before, counted from now for an answer under
                way; ``None`` breaks at once, before the head if the head isn't sent.
            **requests: the requests that the fault concerns.
        """
        return self._add(Cut(_check_offset(after), stalled=False), **requests)

    def stall(self, *, after: int | None = None, **requests: Unpack[RequestFilter]) -> Fault:
        """Stop sending without closing, like a connection that a router has forgotten.

        Args:
            after: bytes of the body that are sent before, as in ``reset``; ``None`` for none, not
                even the head.
            **requests: the requests that the fault concerns.
        """
        return self._add(Cut(_check_offset(after), stalled=True), **requests)

    # -- bytes ---------------------------------------------------------------------------------

    def drip(
        self, *, size: int = 1, every: float = 0.001, **requests: Unpack[RequestFilter]
    ) -> Fault:
        """Send ``size`` bytes of the body at a time, with ``every`` seconds between two pieces."""
        if size < 1:
            raise ValueError(f"size must be at least 1 byte, not {size}")
        return self._add(Drip(size, every), **requests)

    def corrupt(
        self, *, after: int = 0, put: bytes = b"\xff", **requests: Unpack[RequestFilter]
    ) -> Fault:
        r"""Overwrite bytes of the body with ``put``, once in each answer.

        Args:
            after: the offset of the first overwritten byte, counted as in ``reset``. In a
                compressed answer it is an offset of the compressed bytes.
            put: the bytes; ``b"\xff"``, the default, is part of no UTF-8 text.
            **requests: the requests that the fault concerns.
        """
        return self._add(Corrupt(_check_offset(after) or 0, put), **requests)

    # -- answers -------------------------------------------------------------------------------

    def latency(self, seconds: float, **requests: Unpack[RequestFilter]) -> Fault:
        """Begin answers this many seconds late."""
        return self._add(Delay(seconds), **requests)

    def status(
        self,
        code: int,
        *,
        retry_after: int | None = None,
        reason: str = "",
        message: str = "",
        **requests: Unpack[RequestFilter],
    ) -> Fault:
        """Answer with an error.

        A 403 without ``reason`` and ``message`` has the text of RBAC, as by ``forbid``.

        Args:
            code: the HTTP status.
            retry_after: seconds for ``Retry-After``; no such header by default.
            reason: a reason such as ``ServiceUnavailable``; the server's own by default.
            message: the text; the server's own by default.
            **requests: the requests that the fault concerns.
        """
        if not 400 <= code <= 599:
            raise ValueError(f"code must be the status of an error, 400 to 599, not {code}")
        if code == FORBIDDEN and not (reason or message or retry_after):
            return self.forbid(**requests)
        return self._add(ErrorStatus(_make_status(code, retry_after, reason, message)), **requests)

    def forbid(self, **requests: Unpack[RequestFilter]) -> Fault:
        """Answer 403, with the text of RBAC for each request (recordings 25 and 40)."""
        return self._add(ErrorStatus(None), **requests)

    # -- watches -------------------------------------------------------------------------------

    def drop_bookmarks(self, **watches: Unpack[WatchFilter]) -> Fault:
        """Send no bookmarks.

        The bookmark that ends a WatchList's initial events is sent; see ``endless_watch_list``.
        """
        return self._add(LateBookmarks(float("inf")), verb="watch", **watches)

    def delay_bookmarks(self, seconds: float, **watches: Unpack[WatchFilter]) -> Fault:
        """Send each bookmark this many seconds late, with the version of the later time."""
        return self._add(LateBookmarks(seconds), verb="watch", **watches)

    def endless_watch_list(self, **watches: Unpack[WatchFilter]) -> Fault:
        """Never mark the end of a WatchList's initial events, as some aggregated servers don't."""
        return self._add(NoInitialEventsEnd(), verb="watch", **watches)

    def repeat_bookmarks(self, **watches: Unpack[WatchFilter]) -> Fault:
        """Send each bookmark twice."""
        return self._add(RepeatBookmarks(), verb="watch", **watches)

    def end_watches(self, **watches: Unpack[WatchFilter]) -> Fault:
        """End watches properly and at once, also those that begin while the fault is on."""
        return self._add(EndWatch(), verb="watch", **watches)

    def error_event(
        self, code: int, *, reason: str = "", message: str = "", **watches: Unpack[WatchFilter]
    ) -> Fault:
        """End watches with an ERROR event, as a server that can't continue a watch does.

        Args:
            code: the code of the Status in the event, such as 410 for a history that is forgotten.
            reason: the reason of the Status, such as ``Expired``; default: the server's own.
            message: the message of the Status; default: the server's own.
            **watches: the watches that the fault concerns (see ``WatchFilter``).
        """
        status = _make_status(code, None, reason, message)
        return self._add(EndWatch(status), verb="watch", **watches)

    # -- all switches --------------------------------------------------------------------------

    @property
    def on(self) -> tuple[Fault, ...]:
        """The faults that are switched on, in the order of switching."""
        return tuple(self._active)

    @property
    def refusing(self) -> bool:
        """True if connections are refused."""
        return any(isinstance(fault.effect, Refuse) for fault in self._active)

    def clear(self) -> None:
        """Switch everything off."""
        for fault in self.on:
            fault.end()

    def observe(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call ``changed`` after each switch. The returned function ends that."""
        self._observers.append(changed)
        return lambda: self._observers.remove(changed)

    def _add(
        self,
        effect: Effect,
        *,
        verb: RequestVerb = "any",
        resource: str | Resource | None = None,
        times: int | None = None,
    ) -> Fault:
        fault = Fault(effect, verb, resource, times, self._remove)
        self._active.append(fault)
        self._notify()
        return fault

    def _remove(self, fault: Fault) -> None:
        self._active.remove(fault)
        self._notify()

    def _notify(self) -> None:
        for changed in tuple(self._observers):
            changed()

    def __repr__(self) -> str:
        return f"<Faults {list(self._active)}>"


def _make_status(code: int, retry_after: int | None, reason: str, message: str) -> Status:
    known, text = _DEFAULT_STATUSES.get(code, ("", "unknown"))
    details = {} if retry_after is None else {"retryAfterSeconds": retry_after}
    seconds = None if retry_after is None else float(retry_after)
    return Status(code, reason or known, message or text, details, retry_after=seconds)


def _check_offset(after: int | None) -> int | None:
    if after is not None and after < 0:
        raise ValueError(f"after must be 0 or more bytes, not {after}")
    return after
