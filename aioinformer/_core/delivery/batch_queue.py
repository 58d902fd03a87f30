"""The recent events of one listener: batches that all mailboxes share, and a position in them.

Live events and the diffs of relists are queued in order of arrival, without a copy. A batch is
opened when the previous one is at its end, and a consumer may take events from the open batch with
no call into this module.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from aioinformer._core.delivery.replay import EventBatch, EventMap, map_events
from aioinformer._core.objects.kube_object import Event

FILTER_BATCH = 32
"""Events of a relist that a filter sees in one step: it may have to decode the body of each."""

Batch: TypeAlias = tuple[EventBatch, float, int]
"""Events, the loop's time at which they came, and how many of them count against the limit."""

SYNC_MARK: list[Event] = []
"""A batch that marks the end of the initial state of a listener that joined before it."""

POSITION_MARK: list[Event] = []
"""A batch that marks the end of the events that lead to a state whose delivery is recorded."""


class BatchIterator(Iterator[Event], Protocol):
    def __length_hint__(self) -> int:
        """Return the exact number of events that are left.

        A call of this method takes a fifth of the time of ``operator.length_hint``.
        """
        ...


if TYPE_CHECKING:

    def _iterate(events: EventBatch) -> BatchIterator: ...
else:
    _iterate = iter
    """Of a tuple or a list; ``iter`` is declared to return no more than an ``Iterator``."""


class BatchQueue:
    def __init__(self, event_map: EventMap | None = None) -> None:
        """Make an empty queue.

        ``event_map`` filters the batches of a relist as they are opened; live events are filtered
        before ``add``.
        """
        self.rest = _iterate(())
        """The rest of the open batch. Advancing this iterator takes an event."""
        self.at = 0.0
        self.borrowed = False
        self.queue: deque[Batch] = deque()
        """To be read only. An attribute because it is read for every batch."""
        self.uncounted = 0
        """The number of queued batches that don't count against the limit."""
        self.dropped = 0
        """The number of events that were taken from open batches, but not delivered."""
        self._event_map = event_map
        self._open_is_live = False
        self._queued_live = 0  # live events
        self._opened_events = 0  # events of batches that were opened

    def add(self, events: EventBatch, at: float) -> int:
        count = len(events)
        left = self.rest.__length_hint__()
        if not (left or self.queue):
            # As ``open``, since no event comes before: then the consumer need not open it.
            self.at, self._open_is_live, self.borrowed = at, True, False
            self._opened_events += count
            self.rest = _iterate(events)
            return count
        self.queue.append((events, at, count))
        self._queued_live = live = self._queued_live + count
        return live + left if self._open_is_live else live

    def add_uncounted(self, batches: Sequence[EventBatch], at: float, *, marked: bool) -> None:
        """Queue the diff of a relist, with ``SYNC_MARK`` behind it if ``marked``."""
        self.queue.extend((batch, at, 0) for batch in batches)
        self.uncounted += len(batches)
        if marked:
            self.queue.append((SYNC_MARK, at, 0))
            self.uncounted += 1

    def add_mark(self) -> None:
        self.queue.append((POSITION_MARK, self.at, 0))

    def open(self) -> EventBatch | None:
        if not self.queue:
            return None
        events, self.at, count = self.queue.popleft()
        self._queued_live -= count
        self._open_is_live = count > 0
        if not count:
            events = self._filter_batch(events)
        self.rest = _iterate(events)
        self.borrowed = False
        self._opened_events += len(events)
        return events

    def _filter_batch(self, events: EventBatch) -> EventBatch:
        if events is POSITION_MARK:
            return events
        self.uncounted -= 1
        if self._event_map is None or events is SYNC_MARK:
            return events
        if len(events) > FILTER_BATCH:
            self.queue.appendleft((events[FILTER_BATCH:], self.at, 0))
            self.uncounted += 1
        queue = self.queue
        passing = map_events(events[:FILTER_BATCH], self._event_map)
        return passing if self.queue is queue else ()  # the filter has closed its own listener

    def split_open_batch(self) -> None:
        """End the iterator that a consumer holds, because other events now come before the rest.

        The rest of the open batch stays pending.
        """
        if self.borrowed:
            self.borrowed = False
            self.rest = _iterate(tuple(self.rest))

    def clear(self) -> deque[Batch]:
        """Discard everything. Returns the queued batches, for the caller to free in steps."""
        self.dropped += self.rest.__length_hint__()
        deque(self.rest, maxlen=0)  # a consumer may hold this iterator
        queue, self.queue = self.queue, deque()
        self._queued_live = self.uncounted = 0
        return queue

    @property
    def live(self) -> int:
        """The events that count against the limit. May be read from any thread."""
        return (
            self._queued_live + self.rest.__length_hint__()
            if self._open_is_live
            else self._queued_live
        )

    @property
    def relist_pending(self) -> bool:
        return self.uncounted > 0 or (not self._open_is_live and self.rest.__length_hint__() > 0)

    @property
    def delivered(self) -> int:
        return self._opened_events - self.dropped - self.rest.__length_hint__()

    @property
    def oldest(self) -> float | None:
        """The time at which the oldest pending event came. May be read from any thread."""
        if self.rest.__length_hint__():
            return self.at
        try:
            return self.queue[0][1]
        except IndexError:
            return None

    def __bool__(self) -> bool:
        return len(self.queue) > 0 or self.rest.__length_hint__() > 0
