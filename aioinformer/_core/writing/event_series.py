"""Events that repeat: one Event with a count, instead of one for each time.

The rules of client-go's ``tools/events``. The first occurrence is an Event of its own. The second
one within six minutes makes it a series, which is told at once; from then on occurrences are only
counted, and the count is told every half hour, and at the end, when there was none for six minutes.
Beside it stands the spam filter of the older recorder: an object gets 25 Events or updates of one
at once, and one more every five minutes.

Sans-I/O: ``now`` is seconds of a monotonic clock, ``stamp`` nanoseconds since 1970. What is to be
sent comes out as an ``EventSeries``, whose ``pending_event`` is what is to be said of it by the time that it is
sent: a slow server gets the newest count, and not each of them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from aioinformer._core.listwatch.rate_limit import Bucket
from aioinformer._core.writing.event_objects import (
    EventRecord,
    ReportingController,
    event_name,
    format_stamp,
)

__all__ = ["FINISH_TIME", "REFRESH_TIME", "EventSeries", "EventSeriesTracker", "PendingEvent"]

FINISH_TIME = 360.0
"""Seconds of silence after which a series is over (client-go's ``finishTime``)."""
REFRESH_TIME = 1800.0
"""Seconds after which the count of one that goes on is told (``refreshTime``)."""
MAX_SERIES = 4096
"""Events that are remembered, and objects whose tokens are (``maxLruCacheEntries``)."""
BURST = 25
"""Events of one object that may be sent at once (the spam filter's ``defaultSpamBurst``)."""
TOKEN_INTERVAL = 300.0
"""Seconds until it may be one more (``defaultSpamQPS``)."""


@dataclass(frozen=True, slots=True)
class PendingEvent:
    """What is to be sent of an event."""

    name: str
    namespace: str
    body: dict[str, Any]
    """The whole Event, or a merge patch of it."""
    is_new: bool
    """Whether it is to be created."""
    count: int
    """How many occurrences it tells of."""


class EventSeries:
    """One Event: what happened, and how often."""

    __slots__ = (
        "_created",
        "_first_stamp",
        "_last_stamp",
        "_sent_count",
        "count",
        "last_seen_at",
        "name",
        "record",
    )

    def __init__(self, occurrence: EventRecord, stamp: int, now: float) -> None:
        """It happened for the first time."""
        self.record = occurrence
        self.name = event_name(occurrence.regarding.name, stamp)
        self.count = 1
        """How often it has happened."""
        self.last_seen_at = now
        """When it did last."""
        self._first_stamp = self._last_stamp = stamp
        self._created = False
        self._sent_count = 0

    @property
    def unsent(self) -> int:
        """Occurrences that the server hasn't been told of."""
        return self.count - self._sent_count

    @property
    def created(self) -> bool:
        """Whether the server has the Event."""
        return self._created

    def add_occurrence(self, stamp: int, now: float) -> None:
        """It happened again."""
        self.count += 1
        self._last_stamp, self.last_seen_at = stamp, now

    def pending_event(self, reporter: ReportingController) -> PendingEvent | None:
        """What to send now; ``None`` if the server knows all of it."""
        if not self.unsent:
            return None
        event = self.record
        series = {"count": self.count, "lastObservedTime": format_stamp(self._last_stamp)}
        told: dict[str, Any] = {"series": series} if self.count > 1 else {}
        if not self._created:
            told = event.to_dict(self.name, self._first_stamp, reporter) | told
        return PendingEvent(self.name, event.namespace, told, not self._created, self.count)

    def record_sent(self, pending: PendingEvent) -> None:
        """The server has it."""
        self._created = True
        self._sent_count = max(self._sent_count, pending.count)

    def record_deleted(self) -> None:
        """The server has it no longer: Events live an hour there. The next draft is a whole one."""
        self._created = False

    def __repr__(self) -> str:
        return f"<Entry {self.record} ×{self.count}, {self.unsent} untold>"


class EventSeriesTracker:
    """The events of one recorder. What it remembers is bounded, the oldest goes first."""

    def __init__(self, *, entries: int = MAX_SERIES) -> None:
        """Nothing has happened.

        Args:
            entries: how many events are remembered.
        """
        self.filtered = 0
        """Occurrences that weren't told, since there were too many of their object."""
        self._limit = entries
        self._series: OrderedDict[tuple[object, ...], EventSeries] = OrderedDict()
        self._buckets: OrderedDict[object, Bucket] = OrderedDict()
        self._refreshed_at: dict[EventSeries, float] = {}
        self._stamp = 0

    def observe(self, occurrence: EventRecord, stamp: int, now: float) -> list[EventSeries]:
        """Something has happened; what is to be sent for it, if anything."""
        stamp = self._stamp = max(stamp, self._stamp + 1)  # names differ by it
        entry = self._series.get(occurrence.key)
        if entry is not None and now - entry.last_seen_at < FINISH_TIME:
            return self._repeat(entry, stamp, now)
        over = [] if entry is None else list(self._finish(occurrence.key))
        if not self._take_token(occurrence, now):
            self.filtered += 1
            return over
        entry = self._series[occurrence.key] = EventSeries(occurrence, stamp, now)
        return [*over, entry, *self._evict()]

    def _repeat(self, entry: EventSeries, stamp: int, now: float) -> list[EventSeries]:
        entry.add_occurrence(stamp, now)
        self._series.move_to_end(entry.record.key)
        if entry in self._refreshed_at or not entry.created:  # counted, or on its way
            return []
        self._refreshed_at[entry] = now
        # Without a token it is told when the series is refreshed, or over.
        return [entry] if self._take_token(entry.record, now) else []

    def take_due(self, now: float) -> list[EventSeries]:
        """What is to be sent since time has passed: ask about every minute."""
        over = [
            key for key, entry in self._series.items() if now - entry.last_seen_at >= FINISH_TIME
        ]
        send = [entry for key in over for entry in self._finish(key)]
        for entry, at in self._refreshed_at.items():
            if now - at >= REFRESH_TIME:
                self._refreshed_at[entry] = now
                if entry.unsent:
                    send.append(entry)
        return send

    def close(self) -> list[EventSeries]:
        """No more will happen: what is still to be told."""
        return [entry for key in list(self._series) for entry in self._finish(key)]

    def forget(self, entry: EventSeries) -> None:
        """It was not accepted: the next occurrence is a first one."""
        if self._series.get(entry.record.key) is entry:
            del self._series[entry.record.key]
        self._refreshed_at.pop(entry, None)

    def _finish(self, key: tuple[object, ...]) -> Iterator[EventSeries]:
        """Forget one; it comes out if there is more to be told of it."""
        entry = self._series.pop(key)
        self._refreshed_at.pop(entry, None)
        if entry.unsent and entry.created:
            yield entry

    def _evict(self) -> list[EventSeries]:
        if len(self._series) <= self._limit:
            return []
        return list(self._finish(next(iter(self._series))))

    def _take_token(self, occurrence: EventRecord, now: float) -> bool:
        bucket = self._buckets.get(occurrence.regarding)
        if bucket is None:
            bucket = self._buckets[occurrence.regarding] = Bucket(1 / TOKEN_INTERVAL, BURST)
            if len(self._buckets) > self._limit:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(occurrence.regarding)
        if bucket.ready_at > now:
            return False
        bucket.take(now)
        return True

    def __len__(self) -> int:
        return len(self._series)

    def __repr__(self) -> str:
        series = len(self._refreshed_at)
        return f"<EventSeriesTracker {len(self)} events, {series} series, {self.filtered} filtered>"
