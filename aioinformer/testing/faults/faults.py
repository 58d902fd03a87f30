"""Switches for faults of a server or network, each for the requests that a test chooses.

    with server.faults.status(503, verb="watch_list", retry_after=1):
        ...  # the first request of each informer is answered with 503
    stalled = server.faults.stall(verb="watch", times=1)
    ...  # the next watch, or an open one, sends nothing more
    stalled.end()

``hits`` counts the requests that a fault has concerned. If there are none when an ``ApiServer``
ends, it warns of an ``UnusedFault``: the test has tested nothing.

The switches are sans-I/O. ``ApiServer`` applies them to sockets, ``ClusterSource`` to the bytes
that it yields. Several faults can be active at once, and their effects add up. Faults of the data
are methods of ``Cluster`` (``compact``, ``restore``, ``empty_watch_cache``), and faults of the
whole process are methods of ``ApiServer`` (``stop``, ``restart``, ``drop_connections``).
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Mapping
from itertools import count
from random import Random
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias, TypedDict, Unpack, get_args

from aioinformer._core.objects.resources import Resource
from aioinformer._core.quantities import quantity
from aioinformer.errors import Status
from aioinformer.testing.faults.effects import (
    LIST_EFFECTS,
    WATCH_EFFECTS,
    Corrupt,
    Cut,
    Delay,
    Drip,
    Effect,
    EndlessPages,
    EndWatch,
    ErrorStatus,
    ForeignBody,
    LateBookmarks,
    NoInitialEventsEnd,
    Refuse,
    RepeatBookmarks,
    RewriteEvents,
    RewriteLine,
    StaleList,
)
from aioinformer.testing.wire import statuses

RequestVerb: TypeAlias = Literal[
    "any",
    "list",
    "watch",
    "watch_list",
    "get",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
]
"""The verb of a request. Documents that aren't objects (discovery, health) are ``get``. A
``watch_list`` is a watch that begins with the whole state, as the first request of an informer; a
fault of ``watch`` concerns these too, and one of ``list`` doesn't."""

MAX_UNUSED = 100
"""The faults that are remembered because they have ended without a request."""

HTML_PAGE = b"<html><body>Your session has expired. Please log in again.</body></html>\n"
"""A page that a proxy sends in the place of an answer."""

TOO_LARGE = "Too large resource version"
_TOO_LARGE_STATUSES = {
    "message": Status(504, "Timeout", f"{TOO_LARGE}: 9, current: 1", retry_after=1.0),
    "reason": Status(504, "Timeout", details={"causes": [{"reason": "ResourceVersionTooLarge"}]}),
    "cause": Status(504, "Timeout", details={"causes": [{"message": TOO_LARGE}]}),
}
"""The forms that client-go's ``isTooLargeResourceVersionError`` knows."""

FORBIDDEN = 403
_DEFAULT_STATUSES = {
    302: ("", "redirected to another host"),
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


class ListFilter(TypedDict, total=False):
    """The lists that a fault concerns."""

    resource: str | Resource | None
    """A ``Resource``, or a name in any form; ``None`` (the default) for all resources."""
    times: int | None
    """Requests after which the fault is used up; ``None`` (the default) for any number."""
    share: float
    """The share of these requests that the fault concerns, from 0 to 1 (the default). The
    ``random`` of ``Faults`` decides for each request."""
    under_way: bool | None
    """True for requests alone that have arrived before the fault began, False for later ones alone;
    ``None`` (the default) for both."""


class WatchFilter(ListFilter, total=False):
    """The watches that a fault concerns."""

    verb: Literal["watch", "watch_list"]
    """``watch_list`` for watches alone that begin with the whole state; ``watch`` by default."""


class RequestFilter(ListFilter, total=False):
    """The requests that a fault concerns."""

    verb: RequestVerb
    """``any`` by default."""


class UnusedFault(UserWarning):
    """A fault has concerned no request, so that the test with it has tested nothing.

    The plugin ``aioinformer.testing.plugin`` makes it an error of the test.
    """


class Fault:
    """One switch that is on. ``end`` switches it off, and so does leaving its context."""

    def __init__(
        self, effect: Effect, requests: Mapping[str, Any], faults: Faults, number: int
    ) -> None:
        times: int | None = requests.get("times")
        share: float = requests.get("share", 1.0)
        if times is not None and times < 1:
            raise ValueError(f"times must be at least 1 request, or None for all; not {times}")
        if not 0 <= share <= 1:
            raise ValueError(f"share must be from 0 to 1, not {share}")
        self.effect = effect
        self.hits = 0
        """Requests that the fault has concerned so far."""
        self.has_spared = False
        """True once a request was not one of the ``share``."""
        self.verb: RequestVerb = requests.get("verb", "any")
        if self.verb not in get_args(RequestVerb):
            raise ValueError(f"verb must be one of {get_args(RequestVerb)}, not {self.verb!r}")
        self._resource: str | Resource | None = requests.get("resource")
        self._times = times
        self.share = share
        self._under_way: bool | None = requests.get("under_way")
        self._faults = faults
        self.number = number
        self.retired = False
        """True once the fault concerns no further requests because of ``retire``."""
        self.ended = False

    @property
    def active(self) -> bool:
        """True if the fault can concern another request."""
        if self.ended or self.retired:
            return False
        return self._times is None or self.hits < self._times

    def end(self) -> None:
        """Switch the fault off. Stalled connections go on, broken ones stay broken."""
        if not self.ended:
            self.ended = True
            self._faults.remove(self)

    def retire(self) -> None:
        """Concern no further requests, but keep stalled connections stalled until ``end``."""
        self.retired = True

    def concerns(
        self, verb: RequestVerb, resource: Resource | None, number: int | None = None
    ) -> bool:
        """Return True if the fault concerns a request; ``number`` is ``None`` for a later one."""
        is_watch = verb in ("watch", "watch_list")
        effect = self.effect
        if not self.active or (isinstance(effect, WATCH_EFFECTS) and not is_watch):
            return False
        if isinstance(effect, LIST_EFFECTS) and verb != "list":
            return False
        if self.verb not in ("any", verb, "watch" if is_watch else verb):
            return False
        under_way = number is not None and number < self.number
        if self._under_way not in (None, under_way):
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

    @property
    def unused(self) -> bool:
        """True if the fault could concern no request. Refused connections are not counted."""
        return not (self.hits or self.has_spared or isinstance(self.effect, Refuse))

    @property
    def name(self) -> str:
        """The fault and its requests, as ``ErrorStatus 503 for verb="list"``."""
        status = getattr(self.effect, "status", None)
        code = f" {status.code}" if isinstance(status, Status) else ""
        of = f' resource="{self._resource}"' if self._resource else ""
        return f'{type(self.effect).__name__}{code} for verb="{self.verb}"{of}'

    def __repr__(self) -> str:
        requests = f"{self.verb} {self._resource or 'everything'}"
        state = "ended" if self.ended else "on" if self.active else "used up"
        state = "retired" if self.retired and not self.ended else state
        return f"<Fault {self.effect} for {requests} {state} {quantity(self.hits, 'hit')}>"


class Faults:
    """The switches of a server.

    Each method switches a fault on and returns it. The keywords ``verb``, ``resource``, ``times``,
    ``share`` and ``under_way`` choose the requests: see ``RequestFilter``. Switches for lists have
    no ``verb``.
    """

    def __init__(self, *, random: Random | None = None) -> None:
        """Make switches that are all off.

        ``random`` decides the requests of faults with a ``share``; by default it has a fixed seed,
        so that each run of a test is the same.
        """
        self._random = random or Random(0)
        self._numbers = count(1)
        self._active: list[Fault] = []
        self._unused: deque[Fault] = deque(maxlen=MAX_UNUSED)
        """Faults that have ended without a request."""
        self._arrived: dict[tuple[RequestVerb, Resource | None], int] = {}
        """The number of the last request of each verb and resource."""
        self._observers: list[Callable[[], None]] = []

    # -- connections ---------------------------------------------------------------------------

    def refuse(self) -> Fault:
        """Refuse connections, and requests over idle connections. Answers under way go on."""
        return self._add(Refuse())

    def reset(self, *, after: int | None = None, **requests: Unpack[RequestFilter]) -> Fault:
        """Break connections after ``after`` bytes of the body, counted from now for open answers.

        ``None`` breaks at once, before the head if the head isn't sent.
        """
        return self._add(Cut(_check_offset(after), stalled=False), **requests)

    def stall(self, *, after: int | None = None, **requests: Unpack[RequestFilter]) -> Fault:
        """Stop sending without closing, like a connection that a router has forgotten.

        ``after`` counts as in ``reset``; with ``None`` not even the head is sent.
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
        self,
        *,
        after: int = 0,
        put: bytes = b"\xff",
        find: bytes = b"",
        **requests: Unpack[RequestFilter],
    ) -> Fault:
        r"""Overwrite bytes of the body with ``put``, once in each answer.

        Args:
            after: the offset of the first overwritten byte, counted as in ``reset``. In a
                compressed answer it is an offset of the compressed bytes.
            put: the bytes; ``b"\xff"``, the default, is part of no UTF-8 text.
            find: overwrite the first occurrence of these bytes from ``after`` on, such as ``b"{"``;
                if empty, the bytes at ``after``.
            **requests: the requests that the fault concerns.
        """
        return self._add(Corrupt(_check_offset(after) or 0, put, find), **requests)

    # -- answers -------------------------------------------------------------------------------

    def latency(self, seconds: float, **requests: Unpack[RequestFilter]) -> Fault:
        """Begin answers this many seconds late; with ``inf``, not before the fault ends."""
        return self._add(Delay(seconds), **requests)

    def status(
        self,
        code: int,
        *,
        retry_after: int | None = None,
        reason: str = "",
        message: str = "",
        plain: bool = False,
        **requests: Unpack[RequestFilter],
    ) -> Fault:
        """Answer with an error. A 403 without ``reason`` and ``message`` has the text of RBAC.

        Args:
            code: the HTTP status of an error, or of a redirection, whose ``Location`` is on another
                host then.
            retry_after: seconds for ``Retry-After``; no such header by default.
            reason: a reason such as ``ServiceUnavailable``; the server's own by default.
            message: the text; the server's own by default.
            plain: True for the 404 in plain text with which a server answers for a group version
                that it doesn't serve; ``code`` must be 404.
            **requests: the requests that the fault concerns.
        """
        if not 300 <= code <= 599:
            raise ValueError(f"code must be the status of an error, 300 to 599, not {code}")
        if plain:
            if code != 404:
                raise ValueError(f"plain is for the code 404 alone, not {code}")
            return self._add(ErrorStatus(statuses.page_not_found().status), **requests)
        if code == FORBIDDEN and not (reason or message or retry_after):
            return self.forbid(**requests)
        return self._add(ErrorStatus(_make_status(code, retry_after, reason, message)), **requests)

    def version_too_large(
        self,
        form: Literal["message", "reason", "cause"] = "reason",
        **requests: Unpack[RequestFilter],
    ) -> Fault:
        """Answer 504: the requested resourceVersion is not reached yet.

        ``form`` is the place of the explanation in the Status, which depends on the server's
        version: its message, the reason of a cause, or the message of a cause.
        """
        return self._add(ErrorStatus(_TOO_LARGE_STATUSES[form]), **requests)

    def html_page(self, body: bytes = HTML_PAGE, **requests: Unpack[RequestFilter]) -> Fault:
        """Answer 200 with a page for people, as the login page of a proxy."""
        return self._add(ForeignBody(body, "text/html"), **requests)

    # -- lists ---------------------------------------------------------------------------------

    def stale_lists(self, versions: int, **lists: Unpack[ListFilter]) -> Fault:
        """Answer lists of a resourceVersion with a state that is so many versions older.

        Lists that name no version aren't concerned, nor are further pages.
        """
        return self._add(StaleList(versions), verb="list", **lists)

    def endless_pages(self, **lists: Unpack[ListFilter]) -> Fault:
        """Give each page of a list a new continue token; the first page follows the last one."""
        return self._add(EndlessPages(), verb="list", **lists)

    def forbid(self, **requests: Unpack[RequestFilter]) -> Fault:
        """Answer 403, with the text of RBAC for each request."""
        return self._add(ErrorStatus(None), **requests)

    # -- watches -------------------------------------------------------------------------------

    def drop_bookmarks(self, **watches: Unpack[WatchFilter]) -> Fault:
        """Send no bookmarks, except for the end of initial events (see ``endless_watch_list``)."""
        return self._add_for_watches(LateBookmarks(float("inf")), watches)

    def delay_bookmarks(self, seconds: float, **watches: Unpack[WatchFilter]) -> Fault:
        """Send each bookmark this many seconds late, with the version of the later time."""
        return self._add_for_watches(LateBookmarks(seconds), watches)

    def endless_watch_list(self, **watches: Unpack[WatchFilter]) -> Fault:
        """Never mark the end of a WatchList's initial events, as some aggregated servers don't."""
        return self._add_for_watches(NoInitialEventsEnd(), watches)

    def repeat_bookmarks(self, **watches: Unpack[WatchFilter]) -> Fault:
        """Send each bookmark twice."""
        return self._add_for_watches(RepeatBookmarks(), watches)

    def end_watches(
        self, *, after: float = 0.0, idle: bool = False, **watches: Unpack[WatchFilter]
    ) -> Fault:
        """End watches properly, also those that begin while the fault is on.

        A watch ends when it has lasted for ``after`` seconds. With ``idle``, the events that there
        are are sent first, and a bookmark if there were any.
        """
        return self._add_for_watches(EndWatch(after=after, idle=idle), watches)

    def rewrite_events(self, rewrite: RewriteLine, **watches: Unpack[WatchFilter]) -> Fault:
        """Change the lines of watches, for servers with faults that have no switch of their own.

        ``rewrite`` is called with each line, which is an event as JSON and a newline, and returns
        the lines to send instead: ``[]`` loses the event, ``[line, line]`` repeats it.
        """
        return self._add_for_watches(RewriteEvents(rewrite), watches)

    def error_event(
        self, code: int, *, reason: str = "", message: str = "", **watches: Unpack[WatchFilter]
    ) -> Fault:
        """End watches with an ERROR event, as a server that can't continue a watch does.

        ``code`` is that of the Status in the event, such as 410 for a history that is forgotten;
        reason and message are the server's own by default.
        """
        status = _make_status(code, None, reason, message)
        return self._add_for_watches(EndWatch(status), watches)

    # -- all switches --------------------------------------------------------------------------

    @property
    def on(self) -> tuple[Fault, ...]:
        """The faults that are switched on, in the order of switching."""
        return tuple(self._active)

    @property
    def refusing(self) -> bool:
        return any(isinstance(fault.effect, Refuse) for fault in self._active)

    def clear(self) -> None:
        """Switch everything off."""
        for fault in self.on:
            fault.end()

    def arrive(self, verb: RequestVerb, resource: Resource | None) -> int:
        """Return the number of a request that arrives now. Requests and faults count together."""
        number = next(self._numbers)
        self._arrived[verb, resource] = number
        return number

    def warn_of_unused(self) -> None:
        """Warn of the faults that have concerned no request: nothing follows."""
        for fault in (*self._unused, *self._active):
            if fault.unused:
                since = (key for key, last in self._arrived.items() if last > fault.number)
                arrived = sorted(f"{verb} {of or 'of a document'}" for verb, of in since)
                message = (
                    f"the fault {fault.name} has concerned no request; requests since it began: "
                    f"{', '.join(arrived) or 'none'}"
                )
                if fault.verb == "list" and any(each.startswith("watch_list") for each in arrived):
                    message += '; an informer begins with a watch_list: pass verb="watch_list"'
                warnings.warn(message, UnusedFault, stacklevel=3)
        self._unused.clear()

    def concern(
        self, fault: Fault, verb: RequestVerb, resource: Resource | None, number: int
    ) -> bool:
        """Return True if ``fault`` concerns a request; each call decides its ``share`` anew."""
        if not fault.concerns(verb, resource, number):
            return False
        chosen = fault.share == 1 or self._random.random() < fault.share
        fault.has_spared |= not chosen
        return chosen

    def observe(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call ``changed`` after each switch. The returned function ends that."""
        self._observers.append(changed)
        return lambda: self._observers.remove(changed)

    def _add_for_watches(self, effect: Effect, watches: WatchFilter) -> Fault:
        # A filter of watches is one of requests, with fewer verbs.
        requests: dict[str, Any] = {"verb": "watch", **watches}
        return self._add(effect, **requests)

    def _add(self, effect: Effect, **requests: Unpack[RequestFilter]) -> Fault:
        fault = Fault(effect, requests, self, next(self._numbers))
        self._active.append(fault)
        self._notify()
        return fault

    def remove(self, fault: Fault) -> None:
        self._active.remove(fault)
        if fault.unused:
            self._unused.append(fault)
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
