"""Aggregation of repeated Events: one Event with a count instead of an Event for each record.

The rules are those of client-go's ``tools/events``. The first record makes an Event. A second
record within six minutes makes it a series, which is sent at once. Further records only increase
the count, which is sent every half hour, and at the end, after six minutes without a record. In
addition there is the spam filter of client-go's older recorder.

``now`` is in seconds of a monotonic clock, ``stamp`` in nanoseconds since 1970. The
``pending_event`` of a series is read just before it is sent, so that a slow server receives the
newest count.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from aioinformer._core.listwatch.rate_limit import Bucket
from aioinformer._core.quantities import quantity
from aioinformer.eventrecorder.state.event_objects import (
    EventRecord,
    ReportingController,
    event_name,
    format_stamp,
)

FINISH_TIME = 360.0
"""Seconds without a record after which a series is over (client-go's ``finishTime``)."""
REFRESH_TIME = 1800.0
"""Seconds after which the count of a series that goes on is sent (``refreshTime``)."""
MAX_SERIES = 4096
"""The most Events, and the most objects' tokens, that are remembered (``maxLruCacheEntries``)."""
BURST = 25
"""Events of one object that may be sent at once (the spam filter's ``defaultSpamBurst``)."""
TOKEN_INTERVAL = 300.0
"""Seconds after which one more may be sent (``defaultSpamQPS``)."""


@dataclass(frozen=True, slots=True)
class PendingEvent:
    """The part of a series that the server doesn't have yet."""

    name: str
    namespace: str
    body: dict[str, Any]
    """The whole Event, or a merge patch of it."""
    is_new: bool
    count: int


class EventSeries:
    """One Event: a record, how often it was repeated, and how much of that the server has."""

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

    def __init__(self, record: EventRecord, stamp: int, now: float) -> None:
        """Start with the first record."""
        self.record = record
        self.name = event_name(record.regarding.name, stamp)
        self.count = 1
        self.last_seen_at = now
        """The time of the last record, in seconds of the clock."""
        self._first_stamp = self._last_stamp = stamp
        self._created = False
        self._sent_count = 0

    @property
    def unsent(self) -> int:
        """The number of records that the server doesn't have."""
        return self.count - self._sent_count

    @property
    def created(self) -> bool:
        """True if the server has the Event."""
        return self._created

    def add_record(self, stamp: int, now: float) -> None:
        """Count another record."""
        self.count += 1
        self._last_stamp, self.last_seen_at = stamp, now

    def pending_event(self, reporter: ReportingController) -> PendingEvent | None:
        """Return the part to send now, or ``None`` if the server has everything."""
        if not self.unsent:
            return None
        event = self.record
        series = {"count": self.count, "lastObservedTime": format_stamp(self._last_stamp)}
        body: dict[str, Any] = {"series": series} if self.count > 1 else {}
        if not self._created:
            body = event.to_dict(self.name, self._first_stamp, reporter) | body
        return PendingEvent(self.name, event.namespace, body, not self._created, self.count)

    def record_sent(self, pending: PendingEvent) -> None:
        """Note that the server accepted a request."""
        self._created = True
        self._sent_count = max(self._sent_count, pending.count)

    def record_deleted(self) -> None:
        """Note that the server deleted the Event, as it does after an hour: create it again."""
        self._created = False

    def __repr__(self) -> str:
        return f"<EventSeries {self.record} ×{self.count}, {self.unsent} unsent>"


class EventSeriesTracker:
    """The series of one recorder. The oldest of too many is forgotten."""

    def __init__(self, *, entries: int = MAX_SERIES) -> None:
        self.filtered = 0
        """Records without an Event, because there were too many for one object."""
        self._limit = entries
        self._series: OrderedDict[tuple[object, ...], EventSeries] = OrderedDict()
        self._buckets: OrderedDict[object, Bucket] = OrderedDict()
        self._refreshed_at: dict[EventSeries, float] = {}
        self._stamp = 0

    def observe(self, record: EventRecord, stamp: int, now: float) -> list[EventSeries]:
        """Take a record; return the series that are due because of it."""
        # Two records in one nanosecond, or a clock that was set back, must not repeat a name.
        stamp = self._stamp = max(stamp, self._stamp + 1)
        entry = self._series.get(record.key)
        if entry is not None and now - entry.last_seen_at < FINISH_TIME:
            return self._repeat(entry, stamp, now)
        over = [] if entry is None else list(self._finish(record.key))
        if not self._take_token(record, now):
            self.filtered += 1
            return over
        entry = self._series[record.key] = EventSeries(record, stamp, now)
        return [*over, entry, *self._evict()]

    def _repeat(self, entry: EventSeries, stamp: int, now: float) -> list[EventSeries]:
        entry.add_record(stamp, now)
        self._series.move_to_end(entry.record.key)
        if entry in self._refreshed_at or not entry.created:
            return []  # only counted, or the first Event is still on its way
        self._refreshed_at[entry] = now
        # Without a token the count is sent when the series is refreshed, or over.
        return [entry] if self._take_token(entry.record, now) else []

    def take_due(self, now: float) -> list[EventSeries]:
        """Return the series that are due because time has passed. Call it about once a minute."""
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
        """Forget all series; return those with an unsent part."""
        return [entry for key in list(self._series) for entry in self._finish(key)]

    def forget(self, entry: EventSeries) -> None:
        """Forget a series that the server did not accept: the next record starts a new one."""
        if self._series.get(entry.record.key) is entry:
            del self._series[entry.record.key]
        self._refreshed_at.pop(entry, None)

    def _finish(self, key: tuple[object, ...]) -> Iterator[EventSeries]:
        """Forget a series; yield it if it has an unsent part."""
        entry = self._series.pop(key)
        self._refreshed_at.pop(entry, None)
        if entry.unsent and entry.created:
            yield entry

    def _evict(self) -> list[EventSeries]:
        if len(self._series) <= self._limit:
            return []
        return list(self._finish(next(iter(self._series))))

    def _take_token(self, record: EventRecord, now: float) -> bool:
        bucket = self._buckets.get(record.regarding)
        if bucket is None:
            bucket = self._buckets[record.regarding] = Bucket(1 / TOKEN_INTERVAL, BURST)
            if len(self._buckets) > self._limit:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(record.regarding)
        if bucket.ready_at > now:
            return False
        bucket.take(now)
        return True

    def __len__(self) -> int:
        return len(self._series)

    def __repr__(self) -> str:
        series = len(self._refreshed_at)
        events = quantity(len(self), "event")
        return f"<EventSeriesTracker {events}, {series} series, {self.filtered} filtered>"
