"""One request under the active faults: the action for its head, and for the next bytes.

The module is sans-I/O. The server asks for ``response_action`` before the first byte and for
``body_action`` before any others, and carries the action out:

    match request.body_action(data, now):
        case SendBytes(part):  # send these bytes; then ask about the rest of data
        case WaitUntil(until):  # ask again then, or when on_change is called
        case BreakConnection():  # break the connection
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Self, TypeVar

from aioinformer._core.objects.resources import Resource
from aioinformer.errors import ServerError, server_error
from aioinformer.testing.faults.effects import (
    RESPONSE_START_EFFECTS,
    BreakConnection,
    Corrupt,
    Cut,
    Delay,
    Drip,
    EndWatch,
    ErrorStatus,
    FaultAction,
    LateBookmarks,
    NoInitialEventsEnd,
    Refuse,
    RepeatBookmarks,
    RespondWithError,
    SendBytes,
    WaitUntil,
)
from aioinformer.testing.faults.faults import Fault, Faults, RequestVerb
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import INITIAL_EVENTS_END

__all__ = ["FaultedRequest"]

_END_ANNOTATION = INITIAL_EVENTS_END.encode()
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

        Args:
            faults: the switches.
            verb: the verb of the request.
            resource: the requested resource; ``None`` for documents that aren't objects.
            namespace: the requested namespace; ``None`` for all, or for none.
            name: the name of the requested object; empty for a collection.
            url_path: the path of the URL, which the error for a document names.
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
        self._start_offsets: dict[Fault, int] = {}
        """The faults that concern this request, with ``bytes_sent`` when each first did."""
        self._arrival_time: float | None = None
        self._next_drip_time = 0.0
        self._stop_observing = faults.observe(self._notify)

    # -- the head ------------------------------------------------------------------------------

    def response_action(self, now: float) -> FaultAction:
        """Return the action for the answer as a whole; ``SendBytes(b"")`` if it can begin."""
        if self._arrival_time is None:
            self._arrival_time = now
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
        # A cut with a number of bytes lets the head pass; ``body_action`` applies it.
        cuts = [cut for _, cut in self._active_effects(Cut) if cut.after is None]
        if not cuts:
            return SendBytes(b"")
        # A break is visible to the client and a stall is not, so the break decides.
        return WaitUntil(_NEVER) if all(cut.stalled for cut in cuts) else BreakConnection()

    def _forbidden_error(self) -> ServerError:
        if self.resource is None:
            return statuses.forbidden_path(self.verb, self._url_path)
        return statuses.forbidden(self.verb, self.resource, self._namespace, name=self._name)

    # -- the body ------------------------------------------------------------------------------

    def body_action(self, data: bytes, now: float) -> FaultAction:
        """Return the action for the next bytes of the body.

        With no bytes, the action says whether the connection is still open.
        """
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
        """Return the number of bytes until the next cut, and that cut."""
        room, ending = _NEVER, None
        for fault, cut in self._active_effects(Cut):
            left = self._start_offsets[fault] + (cut.after or 0) - self.bytes_sent
            if left < room or (left == room and not cut.stalled):
                room, ending = left, cut
        return room, ending

    def _corrupt(self, data: bytes) -> bytes:
        for fault, effect in self._active_effects(Corrupt):
            # The overwritten range, relative to ``data``. It may lie partly or wholly outside.
            start = self._start_offsets[fault] + effect.after - self.bytes_sent
            low, high = max(start, 0), min(start + len(effect.put), len(data))
            if low < high:
                data = data[:low] + effect.put[low - start : high - start] + data[high:]
        return data

    # -- watches -------------------------------------------------------------------------------

    def bookmark_delay(self) -> float:
        """Return the seconds by which a bookmark that is due is late; ``inf`` for never."""
        self._apply_faults((LateBookmarks,))
        return sum(effect.seconds for _, effect in self._active_effects(LateBookmarks))

    def watch_end(self) -> EndWatch | None:
        """Return the fault that ends this watch now, if there is one."""
        self._apply_faults((EndWatch,))
        return next((effect for _, effect in self._active_effects(EndWatch)), None)

    def repeats_line(self, line: bytes) -> bool:
        """Return True if this line of a watch must be sent twice."""
        if not line.startswith(b'{"type":"BOOKMARK"'):
            return False
        self._apply_faults((RepeatBookmarks,))
        return bool(self._active_effects(RepeatBookmarks))

    def drops_line(self, line: bytes) -> bool:
        """Return True if this line of a watch must not be sent."""
        if not line.startswith(b'{"type":"BOOKMARK"') or _END_ANNOTATION not in line:
            return False
        self._apply_faults((NoInitialEventsEnd,))
        return bool(self._active_effects(NoInitialEventsEnd))

    # -- the faults ----------------------------------------------------------------------------

    def _apply_faults(self, effects: tuple[type[object], ...]) -> None:
        """Count this request as a hit of each active fault that has one of these effects."""
        for fault in self._faults.on:
            if fault in self._start_offsets or not isinstance(fault.effect, effects):
                continue
            if fault.concerns(self.verb, self.resource):
                fault.hits += 1
                self._start_offsets[fault] = self.bytes_sent

    def _active_effects(self, effect: type[_E]) -> list[tuple[Fault, _E]]:
        """Return the faults that concern this request and have this effect."""
        return [
            (fault, fault.effect)
            for fault in self._start_offsets
            if isinstance(fault.effect, effect) and not fault.ended
        ]

    def _notify(self) -> None:
        if self.on_change is not None:
            self.on_change()

    def close(self) -> None:
        """End the request: changes of the faults are no longer reported."""
        self._stop_observing()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        faults = list(self._start_offsets)
        return f"<FaultedRequest {self.verb} {self.resource} {self.bytes_sent} bytes {faults}>"
