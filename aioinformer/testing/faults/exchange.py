"""One request under the active faults: the action for its head, and for the next bytes.

The module is sans-I/O. The server asks for ``response_action`` before the first byte and for
``body_action`` before any others, and carries the action out:

    match request.body_action(data, now):
        case SendBytes(part):  # send these bytes; then ask about the rest of data
        case WaitUntil(until):  # ask again then, or when on_change is called
        case BreakConnection():  # break the connection
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Self, TypeVar

from aioinformer._core.objects.resources import Resource
from aioinformer._core.quantities import quantity
from aioinformer.errors import ServerError, server_error
from aioinformer.testing.faults.effects import (
    IMMEDIATE_EFFECTS,
    RESPONSE_START_EFFECTS,
    BreakConnection,
    Corrupt,
    Cut,
    Delay,
    Drip,
    EndlessPages,
    EndWatch,
    ErrorStatus,
    FaultAction,
    ForeignBody,
    LateBookmarks,
    NoInitialEventsEnd,
    Refuse,
    RepeatBookmarks,
    RespondWithBody,
    RespondWithError,
    RewriteEvents,
    SendBytes,
    StaleList,
    WaitUntil,
)
from aioinformer.testing.faults.faults import Fault, Faults, RequestVerb
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import INITIAL_EVENTS_END

_BOOKMARK = b'{"type":"BOOKMARK"'
_END_ANNOTATION = INITIAL_EVENTS_END.encode()
_ENDLESS = "endless"
"""The beginning of each continue token of a list without an end. Then come the version of the list
on its last page, whose token leads to the first page of that version; the number of the request, so
that no two pages have the same token; and on other pages the server's own token."""
_LIST_VERSION = re.compile(rb'"resourceVersion":"(\d+)"')
_LIST_METADATA = re.compile(rb'("metadata":\{)')
_NEXT_PAGE = re.compile(rb'"continue":"([^"]+)"')
_NO_NEXT_PAGE = b'"continue":""'
_NEVER = float("inf")

_E = TypeVar("_E")


class FaultedRequest:
    """One request, and the faults that concern it. A context manager, which closes it."""

    def __init__(
        self,
        faults: Faults,
        verb: RequestVerb,
        resource: Resource | None,
        namespace: str | None = None,
        *,
        name: str = "",
        url_path: str = "/",
    ) -> None:
        """Make a request that has arrived.

        ``resource`` is ``None`` for documents that aren't objects, whose error names ``url_path``;
        ``name`` is empty for a collection.
        """
        self.verb: RequestVerb = verb
        self.resource = resource
        self.bytes_sent = 0
        """The number of bytes of the body that were sent."""
        self.on_change: Callable[[], None] | None = None
        """Called when a fault begins or ends, because a wait may be over then."""
        self._namespace = namespace
        self._name = name
        self._url_path = url_path
        self._faults = faults
        self._number = faults.arrive(verb, resource)
        self._start_offsets: dict[Fault, int] = {}
        """The faults that concern this request, with ``bytes_sent`` when each first did."""
        self._passed_over: set[Fault] = set()
        """The faults that would concern this request, but not as one of their share."""
        self._corrupted: set[Fault] = set()
        self._answered = False
        self._arrival_time: float | None = None
        self._next_drip_time = 0.0
        self._stop_observing = faults.observe(self._notify)

    @property
    def undisturbed(self) -> bool:
        """True if no fault concerns this request, nor could begin to: nothing is switched on."""
        return not self._start_offsets and not self._faults.on

    # -- the head ------------------------------------------------------------------------------

    def response_action(self, now: float) -> FaultAction:
        """Return the action for the answer as a whole; ``SendBytes(b"")`` if it can begin."""
        if self._arrival_time is None:
            self._arrival_time = now
        if self.undisturbed:
            self._answered = True
            return SendBytes(b"")
        self._apply_faults(RESPONSE_START_EFFECTS)
        self._apply_faults((Cut,))
        if self._active_effects(Refuse):
            return BreakConnection(refused=True)
        delay = sum(effect.seconds for _, effect in self._active_effects(Delay))
        due = self._arrival_time + delay
        if now < due:
            return WaitUntil(due)
        for _, answer in self._active_effects(ErrorStatus):
            # A new exception for each request, since it will carry a phase and a traceback.
            error = server_error(answer.status) if answer.status else self._forbidden_error()
            return RespondWithError(error)
        self._answered = True
        for _, foreign in self._active_effects(ForeignBody):
            return RespondWithBody(foreign.body, foreign.content_type)
        # A cut with a number of bytes lets the head pass; ``body_action`` applies it.
        cuts = [cut for _, cut in self._active_effects(Cut) if cut.after is None]
        if not cuts:
            return SendBytes(b"")
        self._answered = False
        # A break is visible to the client and a stall is not, so the break decides.
        return WaitUntil(_NEVER) if all(cut.stalled for cut in cuts) else BreakConnection()

    def _forbidden_error(self) -> ServerError:
        if self.resource is None:
            return statuses.forbidden_path(self.verb, self._url_path)
        verb = "watch" if self.verb == "watch_list" else self.verb
        return statuses.forbidden(verb, self.resource, self._namespace, name=self._name)

    # -- the body ------------------------------------------------------------------------------

    def body_action(self, data: bytes, now: float) -> FaultAction:
        """Return the action for the next bytes; without any, that for the open connection."""
        self._apply_faults((Cut, Drip, Corrupt))
        if not self._start_offsets:
            self.bytes_sent += len(data)
            return SendBytes(data)
        room, cut = self._bytes_until_cut()
        if room <= 0 and cut is not None:
            return WaitUntil(_NEVER) if cut.stalled else BreakConnection()
        for _, drip in self._active_effects(Drip) if data else ():
            if now < self._next_drip_time:
                return WaitUntil(self._next_drip_time)
            room = min(room, drip.size)
            self._next_drip_time = now + drip.every
        part = self._corrupt(data[: int(min(room, len(data)))])
        self.bytes_sent += len(part)
        return SendBytes(part)

    def _bytes_until_cut(self) -> tuple[float, Cut | None]:
        room, ending = _NEVER, None
        for fault, cut in self._active_effects(Cut):
            left = self._start_offsets[fault] + (cut.after or 0) - self.bytes_sent
            if left < room or (left == room and not cut.stalled):
                room, ending = left, cut
        return room, ending

    def _corrupt(self, data: bytes) -> bytes:
        for fault, effect in self._active_effects(Corrupt):
            # The overwritten range, relative to ``data``. The range may lie partly or wholly
            # outside.
            start = self._start_offsets[fault] + effect.after - self.bytes_sent
            if effect.find:
                start = data.find(effect.find, max(start, 0))
                if start < 0 or fault in self._corrupted:
                    continue
                self._corrupted.add(fault)
            low, high = max(start, 0), min(start + len(effect.put), len(data))
            if low < high:
                data = data[:low] + effect.put[low - start : high - start] + data[high:]
        return data

    # -- lists ---------------------------------------------------------------------------------

    def list_query(self, query: Mapping[str, str]) -> dict[str, str]:
        self._apply_faults((StaleList, EndlessPages))
        understood = dict(query)
        if understood.get("continue", "").startswith(_ENDLESS):
            _, version, _, own_token = understood.pop("continue").split("-", 3)
            first_page = {"resourceVersion": version, "resourceVersionMatch": "Exact"}
            return understood | ({"continue": own_token} if own_token else first_page)
        version = understood.get("resourceVersion", "")
        behind = sum(effect.versions for _, effect in self._active_effects(StaleList))
        if behind and version.isdecimal() and int(version) > behind:
            understood["resourceVersion"] = str(int(version) - behind)
            understood["resourceVersionMatch"] = "Exact"
        return understood

    def list_body(self, body: bytes) -> bytes:
        if not self._active_effects(EndlessPages):
            return body
        if own := _NEXT_PAGE.search(body):
            token = b"%s--%d-%s" % (_ENDLESS.encode(), self._number, own[1])
            return body[: own.start(1)] + token + body[own.end(1) :]
        head, found, rest = body.rpartition(_NO_NEXT_PAGE)  # lists of custom resources have this
        version = _LIST_VERSION.search(rest)
        token = b"%s-%s-%d-" % (_ENDLESS.encode(), version[1] if version else b"", self._number)
        if found:
            return head + b'"continue":"%s"' % token + rest
        return _LIST_METADATA.sub(rb'\1"continue":"%s",' % token, body, count=1)

    # -- watches -------------------------------------------------------------------------------

    def bookmark_delay(self) -> float:
        """Return the seconds by which a bookmark that is due is late; ``inf`` for never."""
        self._apply_faults((LateBookmarks,))
        return sum(effect.seconds for _, effect in self._active_effects(LateBookmarks))

    def watch_end(self, now: float, *, idle: bool) -> EndWatch | None:
        """Return the fault that ends this watch now; ``idle`` means that no event is to be sent."""
        self._apply_faults((EndWatch,))
        ends = (effect for _, effect in self._active_effects(EndWatch))
        return next((end for end in ends if self._is_due(end, now) and idle >= end.idle), None)

    def _is_due(self, end: EndWatch, now: float) -> bool:
        return now >= (self._arrival_time or 0.0) + end.after

    def next_watch_end(self) -> float:
        """Return the time at which a fault will end this watch; ``inf`` for never."""
        ends = (effect for _, effect in self._active_effects(EndWatch) if not effect.idle)
        began = self._arrival_time or 0.0
        return min((began + end.after for end in ends), default=_NEVER)

    def sent_lines(self, lines: list[bytes]) -> list[bytes]:
        """Return the lines of a watch that are sent in the place of ``lines``."""
        if self.undisturbed:
            return lines
        sent = [again for line in lines for again in self._sent_bookmarks(line)]
        self._apply_faults((RewriteEvents,) if sent else ())
        for _, effect in self._active_effects(RewriteEvents):
            sent = [other for line in sent for other in effect.rewrite(line)]
        return sent

    def _sent_bookmarks(self, line: bytes) -> tuple[bytes, ...]:
        if not line.startswith(_BOOKMARK):
            return (line,)
        is_end = _END_ANNOTATION in line
        self._apply_faults((NoInitialEventsEnd, RepeatBookmarks) if is_end else (RepeatBookmarks,))
        if is_end and self._active_effects(NoInitialEventsEnd):
            return ()
        return (line, line) if self._active_effects(RepeatBookmarks) else (line,)

    # -- the faults ----------------------------------------------------------------------------

    def _apply_faults(self, effects: tuple[type[object], ...]) -> None:
        """Count this request as a hit of each active fault that has one of these effects."""
        for fault in self._faults.on:
            if not isinstance(fault.effect, effects):
                continue
            if fault in self._start_offsets or fault in self._passed_over:
                continue
            if self._faults.concern(fault, self.verb, self.resource, self._number):
                fault.hits += 1
                self._start_offsets[fault] = self.bytes_sent
            elif fault.concerns(self.verb, self.resource, self._number):
                self._passed_over.add(fault)

    def _active_effects(self, effect: type[_E]) -> list[tuple[Fault, _E]]:
        return [
            (fault, fault.effect)
            for fault in self._start_offsets
            if isinstance(fault.effect, effect) and not fault.ended
        ]

    def _notify(self) -> None:
        if self._answered:  # a fault that is short meets the answers under way all the same
            self._apply_faults(IMMEDIATE_EFFECTS)
        if self.on_change is not None:
            self.on_change()

    def close(self) -> None:
        self._stop_observing()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        faults = list(self._start_offsets)
        sent = quantity(self.bytes_sent, "byte")
        return f"<FaultedRequest {self.verb} {self.resource} {sent} {faults}>"
