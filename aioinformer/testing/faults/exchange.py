"""One request and the faults that concern it: what becomes of the head, and of the next bytes.

Sans-I/O. Whoever answers asks ``response_action`` before the first byte and ``body_action`` before any other, and
does what it is told:

    match exchange.send(data, now):
        case Send(part):  # these bytes; then ask about the rest of data
        case Wait(until):  # ask again then, or when on_change is called
        case Break():  # break the connection
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
    ErrorStatus,
    FaultAction,
    LateBookmarks,
    NoInitialEventsEnd,
    Refuse,
    RespondWithError,
    SendBytes,
    WaitUntil,
)
from aioinformer.testing.faults.faults import Fault, Faults, RequestVerb
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import INITIAL_EVENTS_END

__all__ = ["FaultedRequest"]

_INITIAL_EVENTS_END = INITIAL_EVENTS_END.encode()
_NEVER = float("inf")

_E = TypeVar("_E")


class FaultedRequest:
    """One request. Close it, or use it as a context manager."""

    def __init__(
        self,
        faults: Faults,
        verb: RequestVerb,
        resource: Resource | None,
        namespace: str | None = None,
    ) -> None:
        """Make the exchange of a request that has arrived.

        Args:
            faults: what is wrong.
            verb: what the request does.
            resource: to what; ``None`` for documents that aren't objects.
            namespace: where.
        """
        self.verb: RequestVerb = verb
        self.resource = resource
        self.bytes_sent = 0
        """Bytes of the body that were sent."""
        self.on_change: Callable[[], None] | None = None
        """Called when a fault begins or ends, so that a wait may be over."""
        self._namespace = namespace
        self._faults = faults
        self._start_offsets: dict[Fault, int] = {}
        """The faults that concern this request, and how much was sent when they first did."""
        self._arrival_time: float | None = None
        self._next_drip_time = 0.0
        self._stop_observing = faults.observe(self._notify)

    # -- the head -----------------------------------------------------------------------------

    def response_action(self, now: float) -> FaultAction:
        """What becomes of the answer as a whole; ``SendBytes(b"")`` if it begins."""
        if self._arrival_time is None:
            self._arrival_time = now
        self._apply_faults(RESPONSE_START_EFFECTS)
        self._apply_faults((Cut,))
        if any(self._applied(Refuse)):
            return BreakConnection(refused=True)
        due = self._arrival_time + sum(effect.seconds for _, effect in self._applied(Delay))
        if now < due:
            return WaitUntil(due)
        for _, answer in self._applied(ErrorStatus):
            # A new exception each time: it will carry a phase and a traceback.
            return RespondWithError(
                server_error(answer.status) if answer.status else self._forbidden_error()
            )
        cuts = [cut for _, cut in self._applied(Cut) if cut.after is None]
        if not cuts:
            return SendBytes(b"")
        return WaitUntil(_NEVER) if all(cut.stalled for cut in cuts) else BreakConnection()

    def _forbidden_error(self) -> ServerError:
        if self.resource is None:
            return statuses.forbidden_path()
        return statuses.forbidden(self.verb, self.resource, self._namespace)

    # -- the body -----------------------------------------------------------------------------

    def body_action(self, data: bytes, now: float) -> FaultAction:
        """What becomes of these bytes. Ask with none whether the connection still lives."""
        self._apply_faults((Cut, Drip, Corrupt))
        if not self._start_offsets:
            self.bytes_sent += len(data)
            return SendBytes(data)
        room, ending = self._bytes_until_cut()
        if room <= 0 and ending is not None:
            return WaitUntil(_NEVER) if ending.stalled else BreakConnection()
        for _, drip in self._applied(Drip) if data else ():
            if now < self._next_drip_time:
                return WaitUntil(self._next_drip_time)
            room = min(room, drip.size)
            self._next_drip_time = now + drip.every
        part = self._corrupt(data[: int(min(room, len(data)))])
        self.bytes_sent += len(part)
        return SendBytes(part)

    def _bytes_until_cut(self) -> tuple[float, Cut | None]:
        """Bytes until a cut, and which one that is."""
        room, ending = _NEVER, None
        for fault, cut in self._applied(Cut):
            left = self._start_offsets[fault] + (cut.after or 0) - self.bytes_sent
            if left < room or (left == room and not cut.stalled):
                room, ending = left, cut
        return room, ending

    def _corrupt(self, data: bytes) -> bytes:
        for fault, effect in self._applied(Corrupt):
            start = self._start_offsets[fault] + effect.after - self.bytes_sent
            low, high = max(start, 0), min(start + len(effect.put), len(data))
            if low < high:
                data = data[:low] + effect.put[low - start : high - start] + data[high:]
        return data

    # -- watches ------------------------------------------------------------------------------

    def bookmark_delay(self) -> float:
        """By how many seconds a bookmark that is due is late; ``inf`` for never."""
        self._apply_faults((LateBookmarks,))
        return sum(effect.seconds for _, effect in self._applied(LateBookmarks))

    def drops_line(self, line: bytes) -> bool:
        """Whether a line of a watch isn't sent at all."""
        if not line.startswith(b'{"type":"BOOKMARK"') or _INITIAL_EVENTS_END not in line:
            return False
        self._apply_faults((NoInitialEventsEnd,))
        return any(self._applied(NoInitialEventsEnd))

    # -- which faults -------------------------------------------------------------------------

    def _apply_faults(self, effects: tuple[type[object], ...]) -> None:
        """Let the faults that are on and have one of these effects concern this request."""
        for fault in self._faults.on:
            if fault in self._start_offsets or not isinstance(fault.effect, effects):
                continue
            if fault.concerns(self.verb, self.resource):
                fault.hits += 1
                self._start_offsets[fault] = self.bytes_sent

    def _applied(self, effect: type[_E]) -> list[tuple[Fault, _E]]:
        return [
            (fault, fault.effect)
            for fault in self._start_offsets
            if isinstance(fault.effect, effect) and not fault.ended
        ]

    def _notify(self) -> None:
        if self.on_change is not None:
            self.on_change()

    def close(self) -> None:
        """It is over."""
        self._stop_observing()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<FaultedRequest {self.verb} {self.resource} {self.bytes_sent} bytes {list(self._start_offsets)}>"
