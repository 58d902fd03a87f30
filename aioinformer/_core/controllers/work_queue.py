"""Which keys wait, which are worked on, which are to come: client-go's work queue as plain state.

A key is never worked on twice at once. However often it is added while it waits, it runs once;
added while it runs, it runs exactly once more. Delayed keys are put in line by ``collect_ready``.

Two lines, and the one of low priority waits for the other, as in controller-runtime: what has just
changed doesn't stand behind the ten thousand objects of an initial list. Not for ever, though: a
controller whose keys come back faster than it works would never get through that list
(kubernetes-sigs/controller-runtime#3496), so each tenth key is one of the low line while it waits.

Nobody leaves the normal line but at its front, so a deque does. From the low line keys leave in
the middle, when they are added again at normal priority.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable
from contextlib import suppress
from typing import Generic, TypeVar

from aioinformer._core.controllers.delay_queue import DelayQueue
from aioinformer._core.controllers.queue_items import Priority, QueueItem, QueueStatistics
from aioinformer.errors import UsageError

__all__ = ["KeyQueue"]

K = TypeVar("K", bound=Hashable)

NORMAL_PER_LOW = 9
"""Keys of normal priority that may pass a waiting one of low priority. A tenth of the work goes to
an initial list even if it never ends, and a change waits for one more run at most."""

CLEANUP_THRESHOLD = 1000
"""Keys whose room isn't worth giving back."""

NORMAL = Priority.NORMAL


class KeyQueue(Generic[K]):
    """A work queue without anybody who waits. ``WorkQueue`` is the one to use.

    Times are in seconds of any monotonic clock. Every method takes O(1), or O(log n) of those
    delayed. What is done takes no memory, once nothing waits and nothing is worked on.
    """

    def __init__(self, label: str = "the work queue") -> None:
        """An empty queue; ``label`` is what errors call it."""
        self.label = label
        """What errors call it."""
        self.delays: DelayQueue[K] = DelayQueue()
        """Keys whose time has not come."""
        self._dropped_delays: DelayQueue[K] = DelayQueue()  # what a shutdown dropped of them
        self.is_shut_down = False
        """Whether nothing is added any more."""
        self.reruns = 0
        """Keys that are worked on and will wait again when that is done."""
        self.waiting = 0
        """Keys in line: ``len()``, without the call."""
        self._items: dict[K, QueueItem[K]] = {}  # waiting or worked on
        self._normal: deque[QueueItem[K]] = deque()
        self._low: OrderedDict[K, QueueItem[K]] = OrderedDict()
        self._passed = 0
        self._cleaned_up_at = 0
        self._running: set[QueueItem[K]] = set()
        self._dropped_items: tuple[dict[K, QueueItem[K]], deque[QueueItem[K]]] = (
            {},
            deque(),
        )  # what it dropped in line
        self.adds = self.merged = self.retries = self.dropped = self.taken = self.done_count = 0
        self.waited = self.waited_max = self.worked = self.worked_max = 0.0

    # -- in ------------------------------------------------------------------------------------

    def add(self, key: K, now: float, priority: Priority = NORMAL) -> bool:
        """Ask for a run of ``key``; whether it will come: not if the queue is shut down."""
        if self.is_shut_down:
            self.dropped += 1
            return False
        item = self._items.get(key)
        if item is None:
            self.adds += 1
            self.waiting += 1
            item = self._items[key] = QueueItem(key, priority, now)
            if priority is NORMAL:
                self._normal.append(item)
            else:
                self._low[key] = item
        elif item.started_at is not None:
            self._add_rerun(item, now, priority)
        else:
            self.merged += 1
            if priority > item.priority:
                del self._low[key]
                item.priority = priority
                self._normal.append(item)
        return True

    def _add_rerun(self, running: QueueItem[K], now: float, priority: Priority) -> None:
        if running.rerun is None:
            running.rerun = QueueItem(running.key, priority, now)
            self.adds += 1
            self.reruns += 1
        else:
            self.merged += 1
            running.rerun.priority = max(running.rerun.priority, priority)

    def add_at(self, key: K, ready: float, priority: Priority = NORMAL) -> bool:
        """Ask for a run at a time; whether it will come, as far as the queue isn't shut down."""
        if self.is_shut_down:
            self.dropped += 1
            return False
        self.delays.add(key, ready, priority)
        return True

    def collect_ready(self, now: float, limit: int) -> None:
        """Put those in line whose time has come, up to ``limit`` of them."""
        for _ in range(limit):
            ready = self.delays.pop(now)
            if ready is None:
                return
            self.add(ready[0], now, ready[1])

    # -- out -----------------------------------------------------------------------------------

    def take(self, now: float) -> K:
        """Begin to work on the next key.

        Raises:
            IndexError: none waits.
        """
        low = self._low
        if not low:
            item = self._normal.popleft()
        elif self._normal and self._passed < NORMAL_PER_LOW:
            self._passed += 1
            item = self._normal.popleft()
        else:
            self._passed = 0
            item = low.popitem(last=False)[1]
        item.started_at = now
        self._running.add(item)
        self.waiting -= 1
        self.taken += 1
        waited = now - item.added_at
        self.waited += waited
        if waited > self.waited_max:
            self.waited_max = waited
        return item.key

    def done(self, key: K, now: float) -> QueueItem[K]:
        """End the work on a key. It waits again if it was added meanwhile: ``again`` says so.

        Raises:
            UsageError: it isn't worked on.
        """
        item = self._items.get(key)
        if item is None or (started := item.started_at) is None:
            state = "doesn't know it" if item is None else "still holds it"
            raise UsageError(
                f"{key!r} was done, but not being worked on: {self.label} {state}; "
                "call done() once for each key that get() returned"
            )
        self._running.discard(item)
        self.done_count += 1
        worked = now - started
        self.worked += worked
        if worked > self.worked_max:
            self.worked_max = worked
        if item.rerun is None:
            del self._items[key]
            if not self._items and self.done_count - self._cleaned_up_at > CLEANUP_THRESHOLD:
                self._cleaned_up_at = self.done_count
                # An emptied dict keeps the room of its best days, until as many keys have come.
                self._items.clear()
                self._low.clear()
        else:
            self._requeue(item.rerun)
        return item

    def _requeue(self, rerun: QueueItem[K]) -> None:
        self.reruns -= 1
        self.waiting += 1
        self._items[rerun.key] = rerun
        if rerun.priority is NORMAL:
            self._normal.append(rerun)
        else:
            self._low[rerun.key] = rerun

    def shut_down(self, *, drop: bool = False) -> None:
        """Take nothing more, and drop what is delayed; with ``drop``, what waits, too."""
        if not self.is_shut_down:
            self.is_shut_down = True
            self.dropped += len(self.delays)
            self._dropped_delays, self.delays = self.delays, self._dropped_delays
        if drop and (self.waiting or self.reruns):
            self._drop_waiting()

    def _drop_waiting(self) -> None:
        """Keep what is worked on, and nothing else. The rest is left for ``free``."""
        self.dropped += self.waiting + self.reruns
        self.waiting = self.reruns = 0
        for item in self._running:
            item.rerun = None
        self._dropped_items = self._items, self._normal
        self._items = {item.key: item for item in self._running}
        self._normal, self._low = deque(), OrderedDict()

    def free(self, limit: int) -> bool:
        """Give back the memory of up to ``limit`` dropped keys; whether there are more.

        A hundred thousand of them at once would take twenty milliseconds.
        """
        known, line = self._dropped_items
        for _ in range(min(limit, len(known))):
            known.popitem()
        for _ in range(min(limit, len(line))):
            line.pop()
        return self._dropped_delays.drop(limit) or bool(known or line)

    # -- asked ---------------------------------------------------------------------------------

    @property
    def finished(self) -> bool:
        """Whether nothing will ever be handed out again."""
        return self.is_shut_down and not self.waiting and not self.reruns

    @property
    def idle(self) -> bool:
        """Whether no key waits, and none is worked on."""
        return not self._items

    def priority(self, key: K) -> Priority | None:
        """That of a key which waits or is worked on."""
        item = self._items.get(key)
        return None if item is None else item.priority

    def statistics(self, now: float) -> QueueStatistics:
        """Its numbers. May be called in any thread."""
        started = [each.started_at for each in list(self._running)]
        running = [max(0.0, now - each) for each in started if each is not None]
        return QueueStatistics(
            normal=len(self._normal),
            low=len(self._low),
            delayed=len(self.delays),
            processing=len(running),
            adds=self.adds,
            merged=self.merged,
            retries=self.retries,
            dropped=self.dropped,
            done=self.done_count,
            waited_mean=self.waited / self.taken if self.taken else 0.0,
            waited_max=self.waited_max,
            waiting_longest=max(0.0, now - self._waiting_since(now)),
            worked_mean=self.worked / self.done_count if self.done_count else 0.0,
            worked_max=self.worked_max,
            running_longest=max(running, default=0.0),
            unfinished_seconds=sum(running),
        )

    def _waiting_since(self, now: float) -> float:
        """Since when the next of either line has waited; ``now`` if both are empty."""
        since = [now]
        for line in (self._normal, self._low.values()):
            with suppress(StopIteration, RuntimeError):  # taken meanwhile, in another thread
                since.append(next(iter(line)).added_at)
        return min(since)

    def __len__(self) -> int:
        """How many wait to be handed out."""
        return self.waiting

    def __repr__(self) -> str:
        state = "shut down" if self.is_shut_down else "open"
        counts = f"normal={len(self._normal)} low={len(self._low)} delayed={len(self.delays)}"
        return f"<KeyQueue {state} {counts} processing={len(self._running)}>"
