"""What informers tell, added up for whoever shows it: the adapters' common part.

What is told for every chunk and for every event is counted in plain numbers that belong to the
thread of the loop: a tenth of a microsecond, and no lock. How informers stand is read when
somebody looks, in whatever thread that is. The names, texts and units are here as well, so that
two adapters can't differ in them; how any of it is shown is theirs. Queues are in
``counting_work``.

What work queues tell, added up for whoever shows it: the other half of ``counting``.

A queue counts for itself, so what goes up and down, the adds and the retries are read when
somebody looks; keys and runs are told as they are done, which is seldom next to what they do.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from aioinformer._core.controllers.queue_items import QueueStatistics, ReadQueue
from aioinformer._core.instrumentation import Levels, ReadLevels

__all__ = [
    "HANDLER_SECONDS",
    "INFORMER_GAUGES",
    "QUEUE_COUNTERS",
    "QUEUE_GAUGES",
    "REQUEST_SECONDS",
    "WAIT_SECONDS",
    "WORK_SECONDS",
    "ActiveInformers",
    "ActiveQueues",
    "HandlerTotals",
    "InformerGauge",
    "LabelPair",
    "QueueGauge",
    "ReceivedTotals",
    "ThreadCounts",
    "ThreadLocalCounts",
    "sum_counts",
]


REQUEST_SECONDS = (0.01, 0.05, 0.25, 1.0, 5.0, 30.0, 120.0, 330.0, 660.0)
"""From a list out of the server's cache to the watch that lasts its five to ten minutes."""

HANDLER_SECONDS = (0.0001, 0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0)
"""From a handler that only notes something to one that talks to other servers."""


@dataclass(frozen=True, slots=True)
class InformerGauge:
    """A number that goes up and down."""

    help: str
    unit: str
    """As OpenTelemetry writes it; Prometheus has seconds and bytes in the name."""
    aggregate: Callable[[list[Levels]], float]
    """What several informers with the same label amount to."""


INFORMER_GAUGES: Mapping[str, InformerGauge] = {
    "informers": InformerGauge("Informers at work.", "{informer}", len),
    "informers_synced": InformerGauge(
        "Informers whose cache has held a full state.",
        "{informer}",
        lambda all_: sum(each.synced for each in all_),
    ),
    "resource_version": InformerGauge(
        "Up to where the cache has applied everything; of several, the one furthest behind.",
        "",
        lambda all_: min(each.resource_version for each in all_),
    ),
    "freshness_seconds": InformerGauge(
        "Seconds since the last proof that the cache is up to date; of several, the longest.",
        "s",
        lambda all_: max(each.freshness_seconds for each in all_),
    ),
    "queue_entries": InformerGauge(
        "Deltas received and not applied yet.",
        "{delta}",
        lambda all_: sum(each.queue_entries for each in all_),
    ),
    "queue_bytes": InformerGauge(
        "Bytes of the deltas received and not applied yet.",
        "By",
        lambda all_: sum(each.queue_bytes for each in all_),
    ),
    "objects": InformerGauge(
        "Cached objects.", "{object}", lambda all_: sum(each.objects for each in all_)
    ),
    "objects_rejected": InformerGauge(
        "Objects whose newest version was rejected.",
        "{object}",
        lambda all_: sum(each.rejected for each in all_),
    ),
    "events_pending": InformerGauge(
        "Live events that wait for listeners.",
        "{event}",
        lambda all_: sum(each.pending for each in all_),
    ),
    "listeners_blocking": InformerGauge(
        "Listeners that keep the watch from being read: they have overflow='block', and are full.",
        "{listener}",
        lambda all_: sum(each.blocking for each in all_),
    ),
}
"""By name."""


# -- counted without a lock ----------------------------------------------------------------------

LabelPair: TypeAlias = tuple[str, str]
"""Informer and verb, or informer and listener."""


@dataclass(slots=True)
class ReceivedTotals:
    """Of one informer and verb."""

    size: int = 0
    events: int = 0

    def add(self, other: ReceivedTotals) -> None:
        """The sum of both."""
        self.size += other.size
        self.events += other.events


@dataclass(slots=True)
class HandlerTotals:
    """Of one informer and listener."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(HANDLER_SECONDS) + 1))
    """Calls by the bucket that they fall into, the one above the last edge included."""
    seconds: float = 0.0

    def add(self, other: HandlerTotals) -> None:
        """The sum of both."""
        self.counts = [sum(pair) for pair in zip(self.counts, other.counts, strict=True)]
        self.seconds += other.seconds


T = TypeVar("T", ReceivedTotals, HandlerTotals)


class ThreadCounts:
    """What one thread has counted. It alone writes; others copy the dicts, which is one step of
    the interpreter, and read the numbers.
    """

    def __init__(self) -> None:
        """Nothing."""
        self.received: dict[LabelPair, ReceivedTotals] = {}
        self.handled: dict[LabelPair, HandlerTotals] = {}


class ThreadLocalCounts(threading.local):
    """The counts of the current thread: a number that two threads add to without a lock loses
    some. Touching it makes a thread one of those who count, so a scrape doesn't.
    """

    def __init__(self, all_counts: list[ThreadCounts]) -> None:
        """Called once in each thread, with the same list."""
        mine = ThreadCounts()
        all_counts.append(mine)
        self._received = mine.received
        self._handled = mine.handled

    def add_received(self, informer: str, verb: str, size: int, events: int) -> None:
        """A chunk was read."""
        key = informer, verb
        tally = self._received.get(key)
        if tally is None:
            tally = self._received[key] = ReceivedTotals()
        tally.size += size
        tally.events += events

    def add_handled(self, informer: str, listener: str, seconds: float, calls: int) -> None:
        """A handler returned or raised; of several calls, each counts with their mean."""
        key = informer, listener
        tally = self._handled.get(key)
        if tally is None:
            tally = self._handled[key] = HandlerTotals()
        tally.counts[bisect_left(HANDLER_SECONDS, seconds / calls)] += calls
        tally.seconds += seconds


def sum_counts(parts: Iterable[dict[LabelPair, T]], empty: Callable[[], T]) -> dict[LabelPair, T]:
    """The counts of all threads together."""
    sums: dict[LabelPair, T] = {}
    for part in parts:
        for key, tally in part.copy().items():
            sums.setdefault(key, empty()).add(tally)
    return sums


# -- read when somebody looks --------------------------------------------------------------------


class ActiveInformers:
    """The informers at work. Written by event loops, read by whoever scrapes: as a tuple that is
    replaced, never changed.
    """

    def __init__(self) -> None:
        """None yet."""
        self._entries: tuple[tuple[str, ReadLevels], ...] = ()
        self._write_lock = threading.Lock()

    def add(self, informer: str, levels: ReadLevels) -> None:
        """It is at work."""
        with self._write_lock:
            self._entries += ((informer, levels),)

    def remove(self, informer: str, levels: ReadLevels) -> None:
        """It is no more."""
        with self._write_lock:
            entries = list(self._entries)
            entries.remove((informer, levels))
            self._entries = tuple(entries)

    def read(self) -> dict[str, list[Levels]]:
        """How those at work stand, by label."""
        found: dict[str, list[Levels]] = {}
        for informer, levels in self._entries:
            found.setdefault(informer, []).append(levels())
        return found

    def __len__(self) -> int:
        return len(self._entries)


WAIT_SECONDS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0, 300.0)
"""From a queue whose workers are idle to one that holds an initial list."""

WORK_SECONDS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0)
"""From a look into the cache to a call of somebody else's API."""


@dataclass(frozen=True, slots=True)
class QueueGauge:
    """A number that goes up and down."""

    help: str
    unit: str
    """As OpenTelemetry writes it; Prometheus has seconds in the name."""
    aggregate: Callable[[list[QueueStatistics]], float]
    """What several queues of one name amount to."""


QUEUE_GAUGES: Mapping[str, QueueGauge] = {
    "delayed": QueueGauge(
        "Keys whose time has not come yet.",
        "{key}",
        lambda all_: sum(each.delayed for each in all_),
    ),
    "processing": QueueGauge(
        "Keys that are being worked on.",
        "{key}",
        lambda all_: sum(each.processing for each in all_),
    ),
    "unfinished_work_seconds": QueueGauge(
        "Seconds that the work under way has taken by now, added up.",
        "s",
        lambda all_: sum(each.unfinished_seconds for each in all_),
    ),
    "longest_running_processor_seconds": QueueGauge(
        "Seconds that the longest work under way has taken by now.",
        "s",
        lambda all_: max(each.running_longest for each in all_),
    ),
}
"""By name, behind ``workqueue_``. The depth, which has two priorities, is the adapters'."""

QUEUE_COUNTERS: Mapping[str, tuple[str, Callable[[QueueStatistics], int]]] = {
    "adds": ("Runs asked for; of adds to a key that waits already, the first.", lambda s: s.adds),
    "retries": ("Rate-limited adds.", lambda s: s.retries),
}
"""The same, of a single queue."""


@dataclass(frozen=True, slots=True)
class _QueueState:
    """The queues in use, and the last counts of those that have ended."""

    reads: tuple[tuple[str, ReadQueue], ...] = ()
    ended: tuple[tuple[str, str, int], ...] = ()


class ActiveQueues:
    """Written by event loops, read by whoever scrapes: as a record that is replaced, never
    changed. A counter must not fall when a queue ends, so its last count stays.
    """

    def __init__(self) -> None:
        """None yet."""
        self._state = _QueueState()
        self._write_lock = threading.Lock()

    def add(self, queue: str, read: ReadQueue) -> None:
        """It is in use."""
        with self._write_lock:
            self._state = _QueueState((*self._state.reads, (queue, read)), self._state.ended)

    def remove(self, queue: str, read: ReadQueue) -> None:
        """It is in use no more; its counts are read for the last time."""
        with self._write_lock:
            reads = list(self._state.reads)
            reads.remove((queue, read))
            counts = _sum_queue_counts(self._state.ended, {queue: [read()]})
            ended = tuple((*labels, count) for labels, count in counts.items())
            self._state = _QueueState(tuple(reads), ended)

    def read(self) -> tuple[dict[str, list[QueueStatistics]], dict[tuple[str, str], int]]:
        """Queues in use by name; and counts by name of the counter and of the queue."""
        state = self._state
        found: dict[str, list[QueueStatistics]] = {}
        for queue, read in state.reads:
            found.setdefault(queue, []).append(read())
        return found, _sum_queue_counts(state.ended, found)

    def __len__(self) -> int:
        return len(self._state.reads)


def _sum_queue_counts(
    ended: tuple[tuple[str, str, int], ...], queues: Mapping[str, list[QueueStatistics]]
) -> dict[tuple[str, str], int]:
    counts = {(counter, queue): count for counter, queue, count in ended}
    for queue, all_ in queues.items():
        for counter, (_, count) in QUEUE_COUNTERS.items():
            known = counts.get((counter, queue), 0)
            counts[counter, queue] = known + sum(count(each) for each in all_)
    return counts
