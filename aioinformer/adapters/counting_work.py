"""What work queues tell, added up for whoever shows it: the other half of ``counting``.

A queue counts for itself, so what goes up and down, the adds and the retries are read when
somebody looks; keys and runs are told as they are done, which is seldom next to what they do.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from aioinformer._core.work.statistics import QueueStatistics, ReadQueue

__all__ = ["COUNTERS", "GAUGES", "WAIT_SECONDS", "WORK_SECONDS", "QueueGauge", "Queues"]

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
    amount: Callable[[list[QueueStatistics]], float]
    """What several queues of one name amount to."""


GAUGES: Mapping[str, QueueGauge] = {
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

COUNTERS: Mapping[str, tuple[str, Callable[[QueueStatistics], int]]] = {
    "adds": ("Runs asked for; of adds to a key that waits already, the first.", lambda s: s.adds),
    "retries": ("Rate-limited adds.", lambda s: s.retries),
}
"""The same, of a single queue."""


@dataclass(frozen=True, slots=True)
class _State:
    """The queues in use, and the last counts of those that have ended."""

    reads: tuple[tuple[str, ReadQueue], ...] = ()
    ended: tuple[tuple[str, str, int], ...] = ()


class Queues:
    """Written by event loops, read by whoever scrapes: as a record that is replaced, never
    changed. A counter must not fall when a queue ends, so its last count stays.
    """

    def __init__(self) -> None:
        """None yet."""
        self._state = _State()
        self._writing = threading.Lock()

    def add(self, queue: str, read: ReadQueue) -> None:
        """It is in use."""
        with self._writing:
            self._state = _State((*self._state.reads, (queue, read)), self._state.ended)

    def remove(self, queue: str, read: ReadQueue) -> None:
        """It is in use no more; its counts are read for the last time."""
        with self._writing:
            reads = list(self._state.reads)
            reads.remove((queue, read))
            counts = _counts(self._state.ended, {queue: [read()]})
            ended = tuple((*labels, count) for labels, count in counts.items())
            self._state = _State(tuple(reads), ended)

    def read(self) -> tuple[dict[str, list[QueueStatistics]], dict[tuple[str, str], int]]:
        """Queues in use by name; and counts by name of the counter and of the queue."""
        state = self._state
        found: dict[str, list[QueueStatistics]] = {}
        for queue, read in state.reads:
            found.setdefault(queue, []).append(read())
        return found, _counts(state.ended, found)

    def __len__(self) -> int:
        return len(self._state.reads)


def _counts(
    ended: tuple[tuple[str, str, int], ...], queues: Mapping[str, list[QueueStatistics]]
) -> dict[tuple[str, str], int]:
    counts = {(counter, queue): count for counter, queue, count in ended}
    for queue, all_ in queues.items():
        for counter, (_, count) in COUNTERS.items():
            known = counts.get((counter, queue), 0)
            counts[counter, queue] = known + sum(count(each) for each in all_)
    return counts
