"""The state of client-go's work queue: keys that wait, that are processed, and that are delayed.

The queue of low priority is served after the other, as in controller-runtime, so that a key that
has just changed doesn't wait behind the ten thousand objects of an initial list. But every tenth
key is taken from the low queue: otherwise a controller whose keys are added faster than it
processes them would never finish that list (kubernetes-sigs/controller-runtime#3496).

Keys leave the normal queue at its front only, so a deque is enough. Keys leave the low queue in the
middle as well, when they are added again at normal priority.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable
from contextlib import suppress
from typing import Generic, TypeVar

from aioinformer._core.instrumentation import QueueStatistics
from aioinformer.controllers.state.delay_queue import DelayQueue
from aioinformer.controllers.state.queue_items import Priority, QueueItem
from aioinformer.errors import UsageError

K = TypeVar("K", bound=Hashable)

NORMAL_PER_LOW = 9
"""Keys of normal priority that may overtake a waiting key of low priority: a change waits for at
most one more run."""

CLEANUP_THRESHOLD = 1000
"""Processed keys after which empty dicts are cleared: the memory of fewer isn't worth it."""

NORMAL = Priority.NORMAL


class KeyQueue(Generic[K]):
    """The state of a work queue, without waiting. Use ``WorkQueue``, its asyncio wrapper.

    Times are in seconds of any monotonic clock. Every method takes O(1), or O(log n) of the delayed
    keys. Once no key waits and none is processed, processed keys take no memory.
    """

    def __init__(self, label: str = "the work queue") -> None:
        """Make an empty queue; ``label`` names it in errors."""
        self.label = label
        self.delays: DelayQueue[K] = DelayQueue()
        self._dropped_delays: DelayQueue[K] = DelayQueue()  # discarded by a shutdown, for free()
        self.is_shut_down = False
        self.reruns = 0
        """The number of keys that are processed and wait again when they are done."""
        self.waiting = 0
        """The number of keys that wait: ``len()`` without the call."""
        self._items: dict[K, QueueItem[K]] = {}  # waiting or processed
        self._normal: deque[QueueItem[K]] = deque()
        self._low: OrderedDict[K, QueueItem[K]] = OrderedDict()
        self._overtaken = 0
        self._cleaned_up_at = 0
        self._running: set[QueueItem[K]] = set()
        # Keys that a shutdown discarded, by key and in their order, for free().
        self._dropped_items: tuple[dict[K, QueueItem[K]], deque[QueueItem[K]]] = (
            {},
            deque(),
        )
        self.adds = self.merged = self.retries = self.dropped = self.taken = self.done_count = 0
        self.waited = self.waited_max = self.worked = self.worked_max = 0.0

    # -- adding --------------------------------------------------------------------------------

    def add(self, key: K, now: float, priority: Priority = NORMAL) -> bool:
        """Request a run of ``key``. Return False if the queue is shut down."""
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
            if priority > item.priority:  # it waits at low priority
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
        """Request a run at a time. Return False if the queue is shut down."""
        if self.is_shut_down:
            self.dropped += 1
            return False
        self.delays.add(key, ready, priority)
        return True

    def collect_ready(self, now: float, limit: int) -> None:
        """Move up to ``limit`` delayed keys whose time has come to the keys that wait."""
        for _ in range(limit):
            ready = self.delays.pop(now)
            if ready is None:
                return
            self.add(ready[0], now, ready[1])

    # -- processing ----------------------------------------------------------------------------

    def take(self, now: float) -> K:
        """Take the next key and begin to process it; raise an ``IndexError`` if no key waits."""
        low = self._low
        if not low:
            item = self._normal.popleft()
        elif self._normal and self._overtaken < NORMAL_PER_LOW:
            self._overtaken += 1
            item = self._normal.popleft()
        else:
            self._overtaken = 0
            item = low.popitem(last=False)[1]  # the oldest one
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
        """End the run of a key. The returned item's ``rerun`` is set if the key waits again.

        Raises:
            UsageError: the key isn't being processed.
        """
        item = self._items.get(key)
        if item is None or (started := item.started_at) is None:
            state = "is not in" if item is None else "still waits in"
            raise UsageError(
                f"done({key!r}), but {key!r} is not being processed: it {state} {self.label}; "
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
                # An emptied dict keeps the memory of its largest size; clear() releases it.
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
        """Accept no more keys and discard the delayed ones; with ``drop``, the waiting ones too."""
        if not self.is_shut_down:
            self.is_shut_down = True
            self.dropped += len(self.delays)
            # A swap is one step; free() releases the memory of the delayed keys later.
            self._dropped_delays, self.delays = self.delays, self._dropped_delays
        if drop and (self.waiting or self.reruns):
            self._drop_waiting()

    def _drop_waiting(self) -> None:
        """Discard all keys except those that are processed. ``free`` releases their memory."""
        self.dropped += self.waiting + self.reruns
        self.waiting = self.reruns = 0
        for item in self._running:
            item.rerun = None
        self._dropped_items = self._items, self._normal
        self._items = {item.key: item for item in self._running}
        self._normal, self._low = deque(), OrderedDict()

    def free(self, limit: int) -> bool:
        """Release the memory of up to ``limit`` discarded keys: 100,000 at once take 20 ms. Return
        True if there are more.
        """
        known, order = self._dropped_items
        for _ in range(min(limit, len(known))):
            known.popitem()
        for _ in range(min(limit, len(order))):
            order.pop()
        return self._dropped_delays.drop(limit) or bool(known or order)

    # -- state ---------------------------------------------------------------------------------

    @property
    def finished(self) -> bool:
        """True if no key will be handed out any more."""
        return self.is_shut_down and not self.waiting and not self.reruns

    @property
    def idle(self) -> bool:
        """True if no key waits and none is processed."""
        return not self._items

    def priority(self, key: K) -> Priority | None:
        """Return the priority of a key that waits or is processed; ``None`` for others."""
        item = self._items.get(key)
        return None if item is None else item.priority

    def statistics(self, now: float) -> QueueStatistics:
        """Return the statistics. May be called in any thread."""
        # list() is one step of the interpreter, so that other threads may call this.
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
        """Return since when the next key of either queue has waited; ``now`` if both are empty."""
        since = [now]
        for queue in (self._normal, self._low.values()):
            with suppress(StopIteration, RuntimeError):  # changed meanwhile, in the loop's thread
                since.append(next(iter(queue)).added_at)
        return min(since)

    def __len__(self) -> int:
        """Return the number of keys that wait to be handed out."""
        return self.waiting

    def __repr__(self) -> str:
        state = "shut down" if self.is_shut_down else "open"
        counts = f"normal={len(self._normal)} low={len(self._low)} delayed={len(self.delays)}"
        return f"<KeyQueue {state} {counts} processing={len(self._running)}>"
