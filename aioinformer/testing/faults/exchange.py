"""One request and the faults that concern it: what becomes of the head, and of the next bytes.

Sans-I/O. Whoever answers asks ``head`` before the first byte and ``send`` before any other, and
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
    BEFORE_THE_HEAD,
    Action,
    Answer,
    Break,
    Corrupt,
    Cut,
    Delay,
    Drip,
    Fail,
    LateBookmarks,
    NoEndMark,
    Refuse,
    Send,
    Wait,
)
from aioinformer.testing.faults.faults import Fault, Faults, Verb
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import INITIAL_EVENTS_END

__all__ = ["Exchange"]

_END_MARK = INITIAL_EVENTS_END.encode()
_NEVER = float("inf")

_E = TypeVar("_E")


class Exchange:
    """One request. Close it, or use it as a context manager."""

    def __init__(
        self, faults: Faults, verb: Verb, resource: Resource | None, namespace: str | None = None
    ) -> None:
        """Make the exchange of a request that has arrived.

        Args:
            faults: what is wrong.
            verb: what the request does.
            resource: to what; ``None`` for documents that aren't objects.
            namespace: where.
        """
        self.verb: Verb = verb
        self.resource = resource
        self.sent = 0
        """Bytes of the body that were sent."""
        self.on_change: Callable[[], None] | None = None
        """Called when a fault begins or ends, so that a wait may be over."""
        self._namespace = namespace
        self._faults = faults
        self._since: dict[Fault, int] = {}
        """The faults that concern this request, and how much was sent when they first did."""
        self._arrived: float | None = None
        self._next_drip = 0.0
        self._unobserve = faults.observe(self._changed)

    # -- the head -----------------------------------------------------------------------------

    def head(self, now: float) -> Action:
        """What becomes of the answer as a whole; ``Send(b"")`` if it begins."""
        if self._arrived is None:
            self._arrived = now
        self._concern(BEFORE_THE_HEAD)
        self._concern((Cut,))
        if any(self._held(Refuse)):
            return Break(refused=True)
        due = self._arrived + sum(effect.seconds for _, effect in self._held(Delay))
        if now < due:
            return Wait(due)
        for _, answer in self._held(Answer):
            # A new exception each time: it will carry a phase and a traceback.
            return Fail(server_error(answer.status) if answer.status else self._forbidden())
        cuts = [cut for _, cut in self._held(Cut) if cut.after is None]
        if not cuts:
            return Send(b"")
        return Wait(_NEVER) if all(cut.silent for cut in cuts) else Break()

    def _forbidden(self) -> ServerError:
        if self.resource is None:
            return statuses.forbidden_path()
        return statuses.forbidden(self.verb, self.resource, self._namespace)

    # -- the body -----------------------------------------------------------------------------

    def send(self, data: bytes, now: float) -> Action:
        """What becomes of these bytes. Ask with none whether the connection still lives."""
        self._concern((Cut, Drip, Corrupt))
        if not self._since:
            self.sent += len(data)
            return Send(data)
        room, ending = self._room()
        if room <= 0 and ending is not None:
            return Wait(_NEVER) if ending.silent else Break()
        for _, drip in self._held(Drip) if data else ():
            if now < self._next_drip:
                return Wait(self._next_drip)
            room = min(room, drip.size)
            self._next_drip = now + drip.every
        part = self._corrupted(data[: int(min(room, len(data)))])
        self.sent += len(part)
        return Send(part)

    def _room(self) -> tuple[float, Cut | None]:
        """Bytes until a cut, and which one that is."""
        room, ending = _NEVER, None
        for fault, cut in self._held(Cut):
            left = self._since[fault] + (cut.after or 0) - self.sent
            if left < room or (left == room and not cut.silent):
                room, ending = left, cut
        return room, ending

    def _corrupted(self, data: bytes) -> bytes:
        for fault, effect in self._held(Corrupt):
            start = self._since[fault] + effect.after - self.sent
            low, high = max(start, 0), min(start + len(effect.put), len(data))
            if low < high:
                data = data[:low] + effect.put[low - start : high - start] + data[high:]
        return data

    # -- watches ------------------------------------------------------------------------------

    def bookmark_delay(self) -> float:
        """By how many seconds a bookmark that is due is late; ``inf`` for never."""
        self._concern((LateBookmarks,))
        return sum(effect.seconds for _, effect in self._held(LateBookmarks))

    def withholds(self, line: bytes) -> bool:
        """Whether a line of a watch isn't sent at all."""
        if not line.startswith(b'{"type":"BOOKMARK"') or _END_MARK not in line:
            return False
        self._concern((NoEndMark,))
        return any(self._held(NoEndMark))

    # -- which faults -------------------------------------------------------------------------

    def _concern(self, effects: tuple[type[object], ...]) -> None:
        """Let the faults that are on and have one of these effects concern this request."""
        for fault in self._faults.on:
            if fault in self._since or not isinstance(fault.effect, effects):
                continue
            if fault.concerns(self.verb, self.resource):
                fault.hits += 1
                self._since[fault] = self.sent

    def _held(self, effect: type[_E]) -> list[tuple[Fault, _E]]:
        return [
            (fault, fault.effect)
            for fault in self._since
            if isinstance(fault.effect, effect) and not fault.ended
        ]

    def _changed(self) -> None:
        if self.on_change is not None:
            self.on_change()

    def close(self) -> None:
        """It is over."""
        self._unobserve()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Exchange {self.verb} {self.resource} {self.sent} bytes {list(self._since)}>"
