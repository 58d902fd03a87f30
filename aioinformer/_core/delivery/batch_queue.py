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

from aioinformer._core.delivery.replay import EventMap, map_events
from aioinformer._core.objects.kube_object import Event

__all__ = ["FILTER_BATCH", "SYNC_MARK", "Batch", "BatchQueue"]

FILTER_BATCH = 32
"""Events given to a filter in one go, but live ones: it may have to open the body of each."""

Batch: TypeAlias = tuple[Sequence[Event], float, int]
"""Events, when they came, and how many of them count against the limit."""

SYNC_MARK: list[Event] = []
"""Instead of events: here ends the state that the listener found."""


class BatchQueue:
    """Batches that are queued, and the rest of the one that is open."""

    def __init__(self, event_map: EventMap | None = None) -> None:
        """Nothing came; ``event_map``: a filter, for what is not live, as it is opened."""
        self.rest: Iterator[Event] = iter(())
        """The rest of the open batch. To take from it is to take the event out of here."""
        self.at = 0.0
        """When that batch came."""
        self.borrowed = False
        """Whether somebody may hold ``rest``, who takes events without asking."""
        self.queue: deque[Batch] = deque()
        """To be read only. Looked at for every batch, so it is no property."""
        self.uncounted = 0
        """Batches queued that don't count against the limit."""
        self.dropped = 0
        """Events of open batches that were taken, but not handed to the listener."""
        self._event_map = event_map
        self._open_is_live = False
        self._queued_live = 0  # live events
        self._opened_events = 0  # events of batches that were opened

    def add(self, events: Sequence[Event], at: float) -> int:
        """Queue live events; returns ``live``."""
        count = len(events)
        self.queue.append((events, at, count))
        self._queued_live = live = self._queued_live + count
        return live + length_hint(self.rest) if self._open_is_live else live

    def add_uncounted(self, batches: Sequence[Sequence[Event]], at: float, *, marked: bool) -> None:
        """Queue the diff of a relist; ``marked``: and behind it, the mark."""
        self.queue.extend((batch, at, 0) for batch in batches)
        self.uncounted += len(batches)
        if marked:
            self.queue.append((SYNC_MARK, at, 0))
            self.uncounted += 1

    def open(self) -> Sequence[Event] | None:
        """Begin with the next batch, and return it; ``None`` if there is none."""
        if not self.queue:
            return None
        events, self.at, count = self.queue.popleft()
        self._queued_live -= count
        self._open_is_live = count > 0
        if not count:
            events = self._filter_batch(events)
        self.rest = iter(events)
        self.borrowed = False
        self._opened_events += len(events)
        return events

    def _filter_batch(self, events: Sequence[Event]) -> Sequence[Event]:
        """What of a relist's batch goes through the filter now; the rest stays queued."""
        self.uncounted -= 1
        if self._event_map is None or events is SYNC_MARK:
            return events
        if len(events) > FILTER_BATCH:
            self.queue.appendleft((events[FILTER_BATCH:], self.at, 0))
            self.uncounted += 1
        queue = self.queue
        passing = map_events(events[:FILTER_BATCH], self._event_map)
        return passing if self.queue is queue else ()  # the filter has dropped everything

    def split_open_batch(self) -> None:
        """Something goes before the rest of the open batch now: who is in the middle of it has to
        ask for more, and finds the iterator that they hold at its end.
        """
        if self.borrowed:
            self.borrowed = False
            self.rest = iter(tuple(self.rest))

    def clear(self) -> deque[Batch]:
        """Drop everything; returns the batches that were queued, to be let go of in steps."""
        self.dropped += length_hint(self.rest)
        deque(self.rest, maxlen=0)  # somebody may be in the middle of it
        queue, self.queue = self.queue, deque()
        self._queued_live = self.uncounted = 0
        return queue

    @property
    def live(self) -> int:
        """Events that count against the limit. May be read from any thread."""
        return (
            self._queued_live + length_hint(self.rest) if self._open_is_live else self._queued_live
        )

    @property
    def relist_pending(self) -> bool:
        """Whether some of a relist's diff is here."""
        return self.uncounted > 0 or (not self._open_is_live and length_hint(self.rest) > 0)

    @property
    def delivered(self) -> int:
        """Events that were handed to the listener."""
        return self._opened_events - self.dropped - length_hint(self.rest)

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
        return f"<BatchQueue live={self.live} told={self.uncounted}>"
