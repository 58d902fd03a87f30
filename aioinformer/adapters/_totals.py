"""Counts and gauges that the Prometheus and the OpenTelemetry adapters share.

What happens for each chunk and each event is counted in plain numbers of the event loop's thread: a
count takes 0.1 µs and needs no lock. Gauges (the levels of informers, the statistics of queues) and
the counts of queues are read at a scrape, in its thread. The names, help texts and units stand here
and in ``_recording``, so that the two adapters can't differ in them.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from aioinformer._core.instrumentation import Levels, QueueStatistics, ReadLevels, ReadQueue
from aioinformer._core.quantities import quantity

HANDLER_SECONDS = (0.0001, 0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0)
"""Bucket edges, from a handler that only sets a variable to one that calls other servers."""

RECEIVED_BYTES = "Bytes of answers read, decompressed."
RECEIVED_EVENTS = "Objects and events read."
QUEUE_DEPTH = "Keys that wait in the queue."
LEADERSHIP = "1 if this process leads under a Lease, else 0."
HELD_SHARDS = "Shards of a group on which this process works."


S = TypeVar("S", Levels, QueueStatistics)


@dataclass(frozen=True, slots=True)
class GaugeSpec(Generic[S]):
    """A number that goes up and down, of all informers or queues with the same label."""

    help: str
    unit: str
    """The unit in OpenTelemetry's notation. Prometheus has seconds and bytes in the name."""
    aggregate: Callable[[list[S]], float]


INFORMER_GAUGES: Mapping[str, GaugeSpec[Levels]] = {
    "informers": GaugeSpec("Informers at work.", "{informer}", len),
    "informers_synced": GaugeSpec(
        "Informers whose cache has held a full state.",
        "{informer}",
        lambda all_: sum(each.synced for each in all_),
    ),
    "resource_version": GaugeSpec(
        "The resourceVersion up to which the cache is complete; of several, the lowest.",
        "",
        lambda all_: min(each.resource_version for each in all_),
    ),
    "freshness_seconds": GaugeSpec(
        "Seconds since the last proof that the cache is up to date; of several, the longest.",
        "s",
        lambda all_: max(each.freshness_seconds for each in all_),
    ),
    "queue_entries": GaugeSpec(
        "Deltas received and not applied yet.",
        "{delta}",
        lambda all_: sum(each.queue_entries for each in all_),
    ),
    "queue_bytes": GaugeSpec(
        "Bytes of the deltas received and not applied yet.",
        "By",
        lambda all_: sum(each.queue_bytes for each in all_),
    ),
    "objects": GaugeSpec(
        "Cached objects.", "{object}", lambda all_: sum(each.objects for each in all_)
    ),
    "json_bytes": GaugeSpec(
        "Bytes of JSON of the cached objects.",
        "By",
        lambda all_: sum(each.json_bytes for each in all_),
    ),
    "objects_rejected": GaugeSpec(
        "Objects whose newest version was rejected.",
        "{object}",
        lambda all_: sum(each.rejected for each in all_),
    ),
    "events_pending": GaugeSpec(
        "Live events that wait for listeners.",
        "{event}",
        lambda all_: sum(each.pending for each in all_),
    ),
    "listeners_blocking": GaugeSpec(
        "Listeners that keep the watch from being read: they have overflow='block', and are full.",
        "{listener}",
        lambda all_: sum(each.blocking for each in all_),
    ),
}
"""By name without the prefix."""


# -- counted without a lock ----------------------------------------------------------------------

LabelPair: TypeAlias = tuple[str, str]
"""Values of two labels: informer and verb, or informer and listener."""


@dataclass(slots=True)
class ReceivedTotals:
    """Bytes and events received by one informer with one verb."""

    size: int = 0
    events: int = 0

    def add(self, other: ReceivedTotals) -> None:
        self.size += other.size
        self.events += other.events


@dataclass(slots=True)
class HandlerTotals:
    """The calls of one listener of one informer."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(HANDLER_SECONDS) + 1))
    """Calls by bucket of ``HANDLER_SECONDS``; the last bucket is above the last edge."""
    seconds: float = 0.0

    def add(self, other: HandlerTotals) -> None:
        self.counts = [sum(pair) for pair in zip(self.counts, other.counts, strict=True)]
        self.seconds += other.seconds


T = TypeVar("T", ReceivedTotals, HandlerTotals)


class ThreadCounts:
    """The counts of one thread, which only this thread writes.

    Another thread copies the dicts, which is one step of the interpreter, and reads the copies.
    """

    def __init__(self) -> None:
        self.received: dict[LabelPair, ReceivedTotals] = {}
        self.handled: dict[LabelPair, HandlerTotals] = {}


class ThreadLocalCounts(threading.local):
    """The counts of the current thread.

    Each thread has its own, since a number that two threads increment without a lock loses
    increments. Any use adds the current thread to ``all_counts``, so a scrape uses that list only.
    """

    def __init__(self, all_counts: list[ThreadCounts]) -> None:
        """Add counts of the current thread; called once in each thread, with the same list."""
        mine = ThreadCounts()
        all_counts.append(mine)
        self._received = mine.received
        self._handled = mine.handled

    def add_received(self, informer: str, verb: str, size: int, events: int) -> None:
        key = informer, verb
        totals = self._received.get(key)
        if totals is None:
            totals = self._received[key] = ReceivedTotals()
        totals.size += size
        totals.events += events

    def add_handled(self, informer: str, listener: str, seconds: float, calls: int) -> None:
        key = informer, listener
        totals = self._handled.get(key)
        if totals is None:
            totals = self._handled[key] = HandlerTotals()
        totals.counts[bisect_left(HANDLER_SECONDS, seconds / calls)] += calls
        totals.seconds += seconds


def sum_counts(parts: Iterable[dict[LabelPair, T]], empty: Callable[[], T]) -> dict[LabelPair, T]:
    sums: dict[LabelPair, T] = {}
    for part in parts:
        for key, totals in part.copy().items():
            sums.setdefault(key, empty()).add(totals)
    return sums


# -- read at a scrape --------------------------------------------------------------------


class ActiveInformers:
    """The running informers.

    Event loops write and scrapes read, in different threads: the tuple is replaced, never changed,
    so that a reader needs no lock.
    """

    def __init__(self) -> None:
        self._entries: tuple[tuple[str, ReadLevels], ...] = ()
        self._write_lock = threading.Lock()

    def add(self, informer: str, levels: ReadLevels) -> None:
        with self._write_lock:
            self._entries += ((informer, levels),)

    def remove(self, informer: str, levels: ReadLevels) -> None:
        with self._write_lock:
            entries = list(self._entries)
            entries.remove((informer, levels))
            self._entries = tuple(entries)

    def read(self) -> dict[str, list[Levels]]:
        found: dict[str, list[Levels]] = {}
        for informer, levels in self._entries:
            found.setdefault(informer, []).append(levels())
        return found

    def __len__(self) -> int:
        return len(self._entries)


QUEUE_GAUGES: Mapping[str, GaugeSpec[QueueStatistics]] = {
    "delayed": GaugeSpec(
        "Keys that are delayed.", "{key}", lambda all_: sum(each.delayed for each in all_)
    ),
    "processing": GaugeSpec(
        "Keys that are being processed.",
        "{key}",
        lambda all_: sum(each.processing for each in all_),
    ),
    "unfinished_work_seconds": GaugeSpec(
        "Seconds that the work under way has taken by now, added up.",
        "s",
        lambda all_: sum(each.unfinished_seconds for each in all_),
    ),
    "longest_running_processor_seconds": GaugeSpec(
        "Seconds that the longest work under way has taken by now.",
        "s",
        lambda all_: max(each.running_longest for each in all_),
    ),
}
"""By name after ``workqueue_``. Each adapter makes the depth itself, for its second label."""

QUEUE_COUNTERS: Mapping[str, tuple[str, Callable[[QueueStatistics], int]]] = {
    "adds": ("Runs requested; an add of a waiting key requests no further run.", lambda s: s.adds),
    "retries": ("Rate-limited adds.", lambda s: s.retries),
}
"""Help text and value, by name after ``workqueue_``."""


@dataclass(frozen=True, slots=True)
class _QueueState:
    reads: tuple[tuple[str, ReadQueue], ...] = ()
    ended: tuple[tuple[str, str, int], ...] = ()


class ActiveQueues:
    """The queues in use, and the final counts of those that have ended.

    The state is replaced, never changed, as in ``ActiveInformers``. A counter must not fall when a
    queue ends, so the final count of an ended queue stays.
    """

    def __init__(self) -> None:
        self._state = _QueueState()
        self._write_lock = threading.Lock()

    def add(self, queue: str, read: ReadQueue) -> None:
        with self._write_lock:
            self._state = _QueueState((*self._state.reads, (queue, read)), self._state.ended)

    def remove(self, queue: str, read: ReadQueue) -> None:
        with self._write_lock:
            reads = list(self._state.reads)
            reads.remove((queue, read))
            counts = _sum_queue_counts(self._state.ended, {queue: [read()]})
            ended = tuple((*labels, count) for labels, count in counts.items())
            self._state = _QueueState(tuple(reads), ended)

    def read(self) -> tuple[dict[str, list[QueueStatistics]], dict[tuple[str, str], int]]:
        """Return the queues in use by name, and the counts by counter and queue."""
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


class Totals:
    def __init__(self) -> None:
        self.informers = ActiveInformers()
        self.queues = ActiveQueues()
        self.leaders: dict[str, bool] = {}
        """For each Lease, True if this process leads."""
        self.shards: dict[str, int] = {}
        self._threads: list[ThreadCounts] = []
        self.counts = ThreadLocalCounts(self._threads)

    def received(self) -> Mapping[LabelPair, ReceivedTotals]:
        # The copy is one step of the interpreter; a thread may join meanwhile.
        return sum_counts((each.received for each in self._threads.copy()), ReceivedTotals)

    def handled(self) -> Mapping[LabelPair, HandlerTotals]:
        return sum_counts((each.handled for each in self._threads.copy()), HandlerTotals)

    def __str__(self) -> str:
        return (
            f"{quantity(len(self.informers), 'informer')} and "
            f"{quantity(len(self.queues), 'queue')}, "
            f"fed from {quantity(len(self._threads), 'thread')}"
        )
