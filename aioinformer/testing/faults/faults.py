"""What a server does wrong, and to which requests: switches, for tests to turn.

    with server.faults.status(503, verb="list", retry_after=1):
        ...  # every list is answered so
    silent = server.faults.stall(verb="watch", times=1)
    ...  # the next watch, or one that is open, says nothing more
    silent.end()

Sans-I/O: given a verb, a resource, the time and the bytes so far, an ``FaultedRequest`` says what
becomes of the next ones. ``ApiServer`` does that to sockets, ``ClusterSource`` to what it yields.
Faults add up. Those that come with the data itself are on ``Cluster`` (``compact``, ``restore``,
``empty_watch_cache``), those of the whole process on ``ApiServer`` (``stop``, ``restart``,
``drop_connections``).
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Literal, Self, TypeAlias

from aioinformer._core.objects.resources import Resource
from aioinformer.errors import Status
from aioinformer.testing.faults.effects import (
    WATCH_EFFECTS,
    Corrupt,
    Cut,
    Delay,
    Drip,
    Effect,
    ErrorStatus,
    LateBookmarks,
    NoInitialEventsEnd,
    Refuse,
)

__all__ = ["Fault", "Faults", "RequestVerb"]

RequestVerb: TypeAlias = Literal[
    "any", "list", "watch", "get", "create", "update", "patch", "delete"
]
"""What a request does. Documents that aren't objects (discovery, health) are ``get``."""

_DEFAULT_STATUSES = {
    400: ("BadRequest", "the server rejected our request for an unknown reason"),
    401: ("Unauthorized", "Unauthorized"),
    404: ("NotFound", "the server could not find the requested resource"),
    409: ("Conflict", "the server reported a conflict"),
    410: ("Expired", "The resourceVersion for the provided list is too old."),
    429: ("TooManyRequests", "Too many requests, please try again later."),
    500: ("InternalError", "an error on the server has prevented the request from succeeding"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: ("Timeout", "the server was unable to return a response in the time allotted"),
}
"""Reason and text by code, as apimachinery words them (``errors.NewGenericServerResponse``)."""


class Fault:
    """One switch that is on. End it, or use it as a context manager."""

    def __init__(
        self,
        effect: Effect,
        verb: RequestVerb,
        resource: str | Resource | None,
        times: int | None,
        on_end: Callable[[Fault], None],
    ) -> None:
        """Made by the methods of ``Faults``."""
        if times is not None and times < 1:
            raise ValueError(f"a fault hits something or everything, not {times} requests")
        self.effect = effect
        self.hits = 0
        """How many requests it has concerned so far."""
        self._verb = verb
        self._resource = resource
        self._times = times
        self._on_end = on_end
        self.ended = False
        """Whether it was switched off."""

    @property
    def active(self) -> bool:
        """Whether it can concern another request."""
        return not self.ended and (self._times is None or self.hits < self._times)

    def end(self) -> None:
        """Switch it off. What stalled goes on, what was broken stays broken."""
        if not self.ended:
            self.ended = True
            self._on_end(self)

    def concerns(self, verb: RequestVerb, resource: Resource | None) -> bool:
        """Whether it is about such requests, and not used up."""
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
        which = f"{self._verb} {self._resource or 'everything'}"
        state = "ended" if self.ended else "on" if self.active else "used up"
        return f"<Fault {self.effect} for {which} {state} {self.hits} hits>"


class Faults:
    """The switches. Each takes ``verb`` and ``resource`` (a name in any form) to choose requests,
    and ``times``, the number of requests after which it is used up.
    """

    def __init__(self) -> None:
        """Nothing is wrong."""
        self._active: list[Fault] = []
        self._observers: list[Callable[[], None]] = []

    # -- connections --------------------------------------------------------------------------

    def refuse(self) -> Fault:
        """Refuse connections, and requests over those that idle. What is open goes on."""
        return self._add(Refuse(), "any", None, None)

    def reset(
        self,
        *,
        after: int | None = None,
        verb: RequestVerb = "any",
        resource: str | Resource | None = None,
        times: int | None = None,
    ) -> Fault:
        """Break connections.

        Args:
            after: bytes of the body that still come, counted from now where an answer is under
                way; ``None`` breaks at once, before the head if that isn't sent.
            verb: of which requests.
            resource: of which resource; ``None`` for all.
            times: of how many; ``None`` for all.
        """
        return self._add(Cut(_check_offset(after), stalled=False), verb, resource, times)

    def stall(
        self,
        *,
        after: int | None = None,
        verb: RequestVerb = "any",
        resource: str | Resource | None = None,
        times: int | None = None,
    ) -> Fault:
        """Fall silent without closing, as a connection that a router has forgotten.

        Args:
            after: bytes of the body that still come, as in ``reset``; ``None`` for none, not even
                the head.
            verb: in which requests.
            resource: of which resource; ``None`` for all.
            times: in how many; ``None`` for all.
        """
        return self._add(Cut(_check_offset(after), stalled=True), verb, resource, times)

    # -- bytes --------------------------------------------------------------------------------

    def drip(
        self,
        *,
        size: int = 1,
        every: float = 0.001,
        verb: RequestVerb = "any",
        resource: str | Resource | None = None,
        times: int | None = None,
    ) -> Fault:
        """Send ``size`` bytes of a body at a time, ``every`` so many seconds."""
        if size < 1:
            raise ValueError(f"at least a byte drips, not {size}")
        return self._add(Drip(size, every), verb, resource, times)

    def corrupt(
        self,
        *,
        after: int = 0,
        put: bytes = b"\xff",
        verb: RequestVerb = "any",
        resource: str | Resource | None = None,
        times: int | None = None,
    ) -> Fault:
        """Overwrite bytes of the body with ``put``, ``after`` so many; once in each answer.

        The default is in no text. Compressed answers are hit where they are compressed.
        """
        return self._add(Corrupt(_check_offset(after) or 0, put), verb, resource, times)

    # -- answers ------------------------------------------------------------------------------

    def latency(
        self,
        seconds: float,
        *,
        verb: RequestVerb = "any",
        resource: str | Resource | None = None,
        times: int | None = None,
    ) -> Fault:
        """Begin answers late."""
        return self._add(Delay(seconds), verb, resource, times)

    def status(
        self,
        code: int,
        *,
        retry_after: int | None = None,
        reason: str = "",
        message: str = "",
        verb: RequestVerb = "any",
        resource: str | Resource | None = None,
        times: int | None = None,
    ) -> Fault:
        """Answer with an error. Reason and message are the server's own if none are given.

        Args:
            code: the HTTP status.
            retry_after: seconds for ``Retry-After``; none by default.
            reason: such as ``ServiceUnavailable``.
            message: what it says.
            verb: to which requests.
            resource: of which resource; ``None`` for all.
            times: to how many; ``None`` for all.
        """
        if not 400 <= code <= 599:
            raise ValueError(f"{code} is not the status of an error")
        known, text = _DEFAULT_STATUSES.get(code, ("", "unknown"))
        details = {} if retry_after is None else {"retryAfterSeconds": retry_after}
        status = Status(
            code, reason or known, message or text, details, retry_after=_to_seconds(retry_after)
        )
        return self._add(ErrorStatus(status), verb, resource, times)

    def forbid(
        self,
        *,
        verb: RequestVerb = "any",
        resource: str | Resource | None = None,
        times: int | None = None,
    ) -> Fault:
        """Answer 403, in the words in which RBAC refuses just that (recordings 25 and 40)."""
        return self._add(ErrorStatus(None), verb, resource, times)

    # -- watches ------------------------------------------------------------------------------

    def drop_bookmarks(
        self, *, resource: str | Resource | None = None, times: int | None = None
    ) -> Fault:
        """Send no bookmarks. The end mark of a WatchList comes; see ``endless_watch_list``."""
        return self._add(LateBookmarks(float("inf")), "watch", resource, times)

    def delay_bookmarks(
        self,
        seconds: float,
        *,
        resource: str | Resource | None = None,
        times: int | None = None,
    ) -> Fault:
        """Send each bookmark so much later; it says the version of then."""
        return self._add(LateBookmarks(seconds), "watch", resource, times)

    def endless_watch_list(
        self, *, resource: str | Resource | None = None, times: int | None = None
    ) -> Fault:
        """Never mark the end of a WatchList's initial events, as some aggregated servers don't."""
        return self._add(NoInitialEventsEnd(), "watch", resource, times)

    # -- all of them --------------------------------------------------------------------------

    @property
    def on(self) -> tuple[Fault, ...]:
        """Those that are switched on, in that order."""
        return tuple(self._active)

    @property
    def refusing(self) -> bool:
        """Whether connections are refused."""
        return any(isinstance(fault.effect, Refuse) for fault in self._active)

    def clear(self) -> None:
        """Switch everything off."""
        for fault in self.on:
            fault.end()

    def observe(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Have ``changed`` called after each switch; what is returned ends that."""
        self._observers.append(changed)
        return lambda: self._observers.remove(changed)

    def _add(
        self, effect: Effect, verb: RequestVerb, resource: str | Resource | None, times: int | None
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


def _check_offset(after: int | None) -> int | None:
    if after is not None and after < 0:
        raise ValueError(f"bytes are counted from 0, not from {after}")
    return after


def _to_seconds(seconds: int | None) -> float | None:
    return None if seconds is None else float(seconds)
