"""Events that repeat: one Event with a count, instead of one for each time.

The rules of client-go's ``tools/events``. The first occurrence is an Event of its own. The second
one within six minutes makes it a series, which is told at once; from then on occurrences are only
counted, and the count is told every half hour, and at the end, when there was none for six minutes.
Beside it stands the spam filter of the older recorder: an object gets 25 Events or updates of one
at once, and one more every five minutes.

Sans-I/O: ``now`` is seconds of a monotonic clock, ``stamp`` nanoseconds since 1970. What is to be
sent comes out as an ``Entry``, whose ``draft`` is what is to be said of it by the time that it is
sent: a slow server gets the newest count, and not each of them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from aioinformer._core.listwatch.rate_limit import Bucket
from aioinformer._core.writing.event_objects import Occurrence, Reporter, event_name, micro_time

__all__ = ["FINISH", "REFRESH", "Aggregation", "Draft", "Entry"]

FINISH = 360.0
"""Seconds of silence after which a series is over (client-go's ``finishTime``)."""
REFRESH = 1800.0
"""Seconds after which the count of one that goes on is told (``refreshTime``)."""
ENTRIES = 4096
"""Events that are remembered, and objects whose tokens are (``maxLruCacheEntries``)."""
BURST = 25
"""Events of one object that may be sent at once (the spam filter's ``defaultSpamBurst``)."""
INTERVAL = 300.0
"""Seconds until it may be one more (``defaultSpamQPS``)."""


@dataclass(frozen=True, slots=True)
class Draft:
    """What is to be sent of an event."""

    name: str
    namespace: str
    body: dict[str, Any]
    """The whole Event, or a merge patch of it."""
    new: bool
    """Whether it is to be created."""
    count: int
    """How many occurrences it tells of."""


class Entry:
    """One Event: what happened, and how often."""

    __slots__ = ("_created", "_first", "_last", "_told", "count", "name", "occurrence", "seen_at")

    def __init__(self, occurrence: Occurrence, stamp: int, now: float) -> None:
        """It happened for the first time."""
        self.occurrence = occurrence
        self.name = event_name(occurrence.regarding.name, stamp)
        self.count = 1
        """How often it has happened."""
        self.seen_at = now
        """When it did last."""
        self._first = self._last = stamp
        self._created = False
        self._told = 0

    @property
    def untold(self) -> int:
        """Occurrences that the server hasn't been told of."""
        return self.count - self._told

    @property
    def created(self) -> bool:
        """Whether the server has the Event."""
        return self._created

    def repeat(self, stamp: int, now: float) -> None:
        """It happened again."""
        self.count += 1
        self._last, self.seen_at = stamp, now

    def draft(self, reporter: Reporter) -> Draft | None:
        """What to send now; ``None`` if the server knows all of it."""
        if not self.untold:
            return None
        event = self.occurrence
        series = {"count": self.count, "lastObservedTime": micro_time(self._last)}
        told: dict[str, Any] = {"series": series} if self.count > 1 else {}
        if not self._created:
            told = event.body(self.name, self._first, reporter) | told
        return Draft(self.name, event.namespace, told, not self._created, self.count)

    def sent(self, draft: Draft) -> None:
        """The server has it."""
        self._created = True
        self._told = max(self._told, draft.count)

    def vanished(self) -> None:
        """The server has it no longer: Events live an hour there. The next draft is a whole one."""
        self._created = False

    def __repr__(self) -> str:
        return f"<Entry {self.occurrence} ×{self.count}, {self.untold} untold>"


class Aggregation:
    """The events of one recorder. What it remembers is bounded, the oldest goes first."""

    def __init__(self, *, entries: int = ENTRIES) -> None:
        """Nothing has happened.

        Args:
            entries: how many events are remembered.
        """
        self.filtered = 0
        """Occurrences that weren't told, since there were too many of their object."""
        self._limit = entries
        self._entries: OrderedDict[tuple[object, ...], Entry] = OrderedDict()
        self._buckets: OrderedDict[object, Bucket] = OrderedDict()
        self._refreshed: dict[Entry, float] = {}
        self._stamp = 0

    def observe(self, occurrence: Occurrence, stamp: int, now: float) -> list[Entry]:
        """Something has happened; what is to be sent for it, if anything."""
        stamp = self._stamp = max(stamp, self._stamp + 1)  # names differ by it
        entry = self._entries.get(occurrence.key)
        if entry is not None and now - entry.seen_at < FINISH:
            return self._repeated(entry, stamp, now)
        over = [] if entry is None else list(self._finish(occurrence.key))
        if not self._takes_token(occurrence, now):
            self.filtered += 1
            return over
        entry = self._entries[occurrence.key] = Entry(occurrence, stamp, now)
        return [*over, entry, *self._evicted()]

    def _repeated(self, entry: Entry, stamp: int, now: float) -> list[Entry]:
        entry.repeat(stamp, now)
        self._entries.move_to_end(entry.occurrence.key)
        if entry in self._refreshed or not entry.created:  # counted, or on its way
            return []
        self._refreshed[entry] = now
        # Without a token it is told when the series is refreshed, or over.
        return [entry] if self._takes_token(entry.occurrence, now) else []

    def due(self, now: float) -> list[Entry]:
        """What is to be sent since time has passed: ask about every minute."""
        over = [key for key, entry in self._entries.items() if now - entry.seen_at >= FINISH]
        send = [entry for key in over for entry in self._finish(key)]
        for entry, at in self._refreshed.items():
            if now - at >= REFRESH:
                self._refreshed[entry] = now
                if entry.untold:
                    send.append(entry)
        return send

    def close(self) -> list[Entry]:
        """No more will happen: what is still to be told."""
        return [entry for key in list(self._entries) for entry in self._finish(key)]

    def forget(self, entry: Entry) -> None:
        """It was not accepted: the next occurrence is a first one."""
        if self._entries.get(entry.occurrence.key) is entry:
            del self._entries[entry.occurrence.key]
        self._refreshed.pop(entry, None)

    def _finish(self, key: tuple[object, ...]) -> Iterator[Entry]:
        """Forget one; it comes out if there is more to be told of it."""
        entry = self._entries.pop(key)
        self._refreshed.pop(entry, None)
        if entry.untold and entry.created:
            yield entry

    def _evicted(self) -> list[Entry]:
        if len(self._entries) <= self._limit:
            return []
        return list(self._finish(next(iter(self._entries))))

    def _takes_token(self, occurrence: Occurrence, now: float) -> bool:
        bucket = self._buckets.get(occurrence.regarding)
        if bucket is None:
            bucket = self._buckets[occurrence.regarding] = Bucket(1 / INTERVAL, BURST)
            if len(self._buckets) > self._limit:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(occurrence.regarding)
        if bucket.ready > now:
            return False
        bucket.take(now)
        return True

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        series = len(self._refreshed)
        return f"<Aggregation {len(self)} events, {series} series, {self.filtered} filtered>"
