"""What came lately for one listener: batches that all mailboxes share, and a place in them.

Live events and the diffs of relists are kept as they came, in their order. Nothing is copied: a
batch is opened when the one before is at its end, and a consumer may take events from the open
one without asking anybody. What else is pending, and when which is too much, is ``mailbox``'s.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from operator import length_hint
from typing import TypeAlias

from aioinformer._core.delivery.replay import EachEvent, filtered
from aioinformer._core.objects.kube_object import Event

__all__ = ["FILTERED", "MARK", "Backlog", "Batch"]

FILTERED = 32
"""Events given to a filter in one go, but live ones: it may have to open the body of each."""

Batch: TypeAlias = tuple[Sequence[Event], float, int]
"""Events, when they came, and how many of them count against the limit."""

MARK: list[Event] = []
"""Instead of events: here ends the state that the listener found."""


class Backlog:
    """Batches that are queued, and the rest of the one that is open."""

    def __init__(self, each: EachEvent | None = None) -> None:
        """Nothing came; ``each``: a filter, for what is not live, as it is opened."""
        self.rest: Iterator[Event] = iter(())
        """The rest of the open batch. To take from it is to take the event out of here."""
        self.at = 0.0
        """When that batch came."""
        self.lent = False
        """Whether somebody may hold ``rest``, who takes events without asking."""
        self.queue: deque[Batch] = deque()
        """To be read only. Looked at for every batch, so it is no property."""
        self.told = 0
        """Batches queued that don't count against the limit."""
        self.dropped = 0
        """Events of open batches that were taken, but not handed to the listener."""
        self._each = each
        self._open_is_live = False
        self._queued = 0  # live events
        self._passed = 0  # events of batches that were opened

    def add(self, events: Sequence[Event], at: float) -> int:
        """Queue live events; returns ``live``."""
        count = len(events)
        self.queue.append((events, at, count))
        self._queued = live = self._queued + count
        return live + length_hint(self.rest) if self._open_is_live else live

    def tell(self, batches: Sequence[Sequence[Event]], at: float, *, marked: bool) -> None:
        """Queue the diff of a relist; ``marked``: and behind it, the mark."""
        self.queue.extend((batch, at, 0) for batch in batches)
        self.told += len(batches)
        if marked:
            self.queue.append((MARK, at, 0))
            self.told += 1

    def open(self) -> Sequence[Event] | None:
        """Begin with the next batch, and return it; ``None`` if there is none."""
        if not self.queue:
            return None
        events, self.at, count = self.queue.popleft()
        self._queued -= count
        self._open_is_live = count > 0
        if not count:
            events = self._opened(events)
        self.rest = iter(events)
        self.lent = False
        self._passed += len(events)
        return events

    def _opened(self, events: Sequence[Event]) -> Sequence[Event]:
        """What of a relist's batch goes through the filter now; the rest stays queued."""
        self.told -= 1
        if self._each is None or events is MARK:
            return events
        if len(events) > FILTERED:
            self.queue.appendleft((events[FILTERED:], self.at, 0))
            self.told += 1
        queue = self.queue
        passing = filtered(events[:FILTERED], self._each)
        return passing if self.queue is queue else ()  # the filter has dropped everything

    def end_run(self) -> None:
        """Something goes before the rest of the open batch now: who is in the middle of it has to
        ask for more, and finds the iterator that they hold at its end.
        """
        if self.lent:
            self.lent = False
            self.rest = iter(tuple(self.rest))

    def clear(self) -> deque[Batch]:
        """Drop everything; returns the batches that were queued, to be let go of in steps."""
        self.dropped += length_hint(self.rest)
        deque(self.rest, maxlen=0)  # somebody may be in the middle of it
        queue, self.queue = self.queue, deque()
        self._queued = self.told = 0
        return queue

    @property
    def live(self) -> int:
        """Events that count against the limit. May be read from any thread."""
        return self._queued + length_hint(self.rest) if self._open_is_live else self._queued

    @property
    def telling(self) -> bool:
        """Whether some of a relist's diff is here."""
        return self.told > 0 or (not self._open_is_live and length_hint(self.rest) > 0)

    @property
    def taken(self) -> int:
        """Events that were handed to the listener."""
        return self._passed - self.dropped - length_hint(self.rest)

    @property
    def oldest(self) -> float | None:
        """When the oldest event came. May be read from any thread."""
        if length_hint(self.rest):
            return self.at
        try:
            return self.queue[0][1]
        except IndexError:
            return None

    def __bool__(self) -> bool:
        return len(self.queue) > 0 or length_hint(self.rest) > 0

    def __repr__(self) -> str:
        return f"<Backlog live={self.live} told={self.told}>"
