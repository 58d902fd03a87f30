"""The pump: from the queue into the cache, and from there into every mailbox.

This is where the order of things is made. An entry is popped, applied and handed to the
listeners in one step without an await: so the cache leads, a listener that joins between two
steps misses nothing and hears nothing twice, and client-go's locks have no twin here. A whole
new state is staged in small steps beside the live one; only its swap is one step.

What the entries mean is decided by ``Indexer``, what a listener has yet to hear by ``Mailbox``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from aioinformer._core.cache.indexer import Indexer, StagedReplacement, without_traceback
from aioinformer._core.delivery.replay import drain_batches
from aioinformer._core.objects.deltas import Bookmark, Delta, Replaced, Resync
from aioinformer._core.objects.kube_object import Event, KubeObject, ObjectKey
from aioinformer._runtime.delivery.listener import BackpressureGate, Listener
from aioinformer._runtime.informer.waiters import CacheWaiters
from aioinformer._runtime.reflector.delta_queue import DeltaQueue
from aioinformer._runtime.tasks.event_loop import ITEMS_PER_STEP, STAGING_SLICE_SECONDS, TimeSlice
from aioinformer.errors import ModelMismatch, TransformFailed

__all__ = ["Pump"]

log = logging.getLogger("aioinformer.pump")

T = TypeVar("T")

BATCH_SIZE = 256
"""Changes applied between two hand-overs to the mailboxes: about a millisecond."""
FILTERED_BATCH_SIZE = 16
"""The same to begin with if there are filters: each looks at every change, and may open its body.
It doubles as long as that is quick."""
MAX_DISTRIBUTE_SECONDS = 0.002
"""Seconds that a hand-over may take: after one that took longer the next has half as much."""
BLOCKED_WARNING_DELAY = 10.0
"""Seconds after which a listener that keeps the watch from being read is warned of."""
CLOCK_CHECK_INTERVAL = 16
"""Changes applied between two looks at the clock: an index function may open every body."""


class Pump:
    """Drains one queue into one cache, and tells its audience."""

    def __init__(self, name: str, queue: DeltaQueue, indexer: Indexer) -> None:
        """Make a pump; ``run`` starts it.

        Args:
            name: the informer's, for logs.
            queue: what to drain.
            indexer: what to write to.
        """
        self.synced = asyncio.Event()
        """Set when the first full state has been applied, or will never be."""
        self.gate = BackpressureGate()
        """What a listener opens when its mailbox has room again."""
        self.waiters = CacheWaiters(indexer, name)
        """Those who wait for the cache to show something."""
        self.on_rejected: Callable[[Exception], None] | None = None
        """Is told why an object was rejected; once if many were in one go."""
        self._name = name
        self._queue = queue
        self._indexer = indexer
        self._joined: dict[Listener, None] = {}
        self._listeners: list[Listener] = []
        """The listeners of the last ``_refresh``, in order of joining."""
        self._blocking: list[Listener] = []
        """Those of them for which the pump waits while their mailbox is full."""
        self._listeners_changed = False
        self._batch_size = BATCH_SIZE
        """Changes to apply until the next hand-over."""
        self._full_listeners: list[Listener] = []
        self._needs_merge: list[Listener] = []
        self._cached_batches: tuple[Sequence[KubeObject], ...] | None = None
        """What is cached, as long as nothing has changed since somebody asked."""

    def join(self, listener: Listener, *, replay: bool = True) -> None:
        """Tell ``listener`` of everything from now on; with ``replay`` of what is cached, first."""
        state = self._indexer.state
        if state.synced or state.objects:
            at = asyncio.get_running_loop().time()
            listener.replay(self._iter_cached() if replay else (), at, full=state.synced)
        self._joined[listener] = None
        listener.on_closed = self._leave
        self._listeners_changed = True

    def _leave(self, listener: Listener) -> None:
        self._joined.pop(listener, None)
        self._listeners_changed = True

    @property
    def listeners(self) -> list[Listener]:
        """The present listeners. Every listener that joins or leaves makes a new list of them."""
        if self._listeners_changed:
            self._refresh()
        return self._listeners

    def _refresh(self) -> None:
        # Once before the next batch, not at every join: thousands of clients may join at once.
        self._listeners_changed = False
        self._listeners = list(self._joined)
        self._blocking = [each for each in self._listeners if each.mailbox.overflow.blocks]
        filtered = any(each.mailbox.has_filter for each in self._listeners)
        self._batch_size = FILTERED_BATCH_SIZE if filtered else BATCH_SIZE

    def _iter_cached(self) -> Iterator[KubeObject]:
        """What is cached, in batches that all who are told of it share."""
        if self._cached_batches is None:
            objects = list(self._indexer.state.objects.values())
            self._cached_batches = tuple(_split_batches(objects))
        return drain_batches(self._cached_batches)

    @property
    def blocked_by(self) -> tuple[str, ...]:
        """The names of the listeners for whose mailbox the pump waits: it was full, and isn't
        drained yet. May be read from any thread.
        """
        return tuple(each.name for each in self._full_listeners if not each.closed)

    def listener_read_by(self, task: asyncio.Task[Any] | None) -> Listener | None:
        """Whom ``task`` reads of those that the pump may be waiting for."""
        for listener in self.listeners:
            if listener.mailbox.overflow.blocks and listener.consumer is not None and listener.consumer() is task:
                return listener
        return None

    @property
    def pending(self) -> int:
        """Live events that wait in mailboxes. May be read from any thread."""
        return sum(each.mailbox.pending for each in tuple(self._joined))

    def end(self) -> None:
        """Nothing more will come. What is pending can still be taken."""
        self.synced.set()
        self.waiters.end()
        for listener in self.listeners:
            listener.close(drop=False)

    async def run(self) -> NoReturn:
        """Drain the queue until cancelled."""
        pace = TimeSlice()
        while True:
            if not self._queue.fifo:
                await self._queue.ready()
                pace.reset()
            if self._listeners_changed:
                self._refresh()
            free = await self._wait_for_mailboxes(pace) if self._blocking else self._batch_size
            entry = self._apply_changes(pace, free)
            if self._needs_merge:
                await self._merge_pending(pace)
            if isinstance(entry, Replaced):
                replacement = self._indexer.replace(entry)
                del entry  # so that only the replacement holds what it is to free in steps
                await self._apply_replacement(replacement, pace)
            elif isinstance(entry, Resync):
                self.resync(self.listeners)
            await pace.maybe_yield()

    async def _wait_for_mailboxes(self, time_slice: TimeSlice) -> int:
        """Wait until no mailbox that blocks is full. Return the number of events that all take."""
        while full := [each for each in self._blocking_listeners if each.mailbox.free <= 0]:
            await self._wait_for_room(full, time_slice)
        self._full_listeners = []
        return min((each.mailbox.free for each in self._blocking), default=self._batch_size)

    @property
    def _blocking_listeners(self) -> list[Listener]:
        return self._blocking if self.listeners else []

    async def _wait_for_room(self, full: list[Listener], time_slice: TimeSlice) -> None:
        """Wait until one of them has taken what is pending, or has left."""
        self._full_listeners = full
        warning = asyncio.get_running_loop().call_later(BLOCKED_WARNING_DELAY, self._warn_blocked)
        try:
            await self.gate.wait()
        finally:
            warning.cancel()
        time_slice.reset()

    def _warn_blocked(self) -> None:
        """It is what ``overflow="block"`` asks for, but not what anybody wants for so long."""
        names = ", ".join(self.blocked_by)
        log.warning(
            "%s has not read its watch for %g s: %s", self._name, BLOCKED_WARNING_DELAY, names
        )

    def _apply_changes(self, time_slice: TimeSlice, limit: int) -> Replaced | Resync | None:
        """Apply changes and hand over what they mean, up to the first entry of another kind.

        A re-created object is two events, so that a mailbox may go over its limit by one.
        """
        events: list[Event] = []
        rejected: dict[ObjectKey, Exception] = {}
        special: Replaced | Resync | None = None
        for count in range(self._batch_size):
            if len(events) >= limit or (
                count % CLOCK_CHECK_INTERVAL == CLOCK_CHECK_INTERVAL - 1 and time_slice.expired
            ):
                break
            if (entry := self._queue.pop()) is None:
                break
            if isinstance(entry, Delta):
                if error := self._indexer.apply(entry, events):
                    rejected[entry.obj.key] = without_traceback(error) if rejected else error
            elif isinstance(entry, Bookmark):
                self._indexer.bookmark(entry)
            else:
                special = entry
                break
        if events:
            self._distribute(tuple(events))
        if self.waiters.waiting:
            self.waiters.notify(events)
        if rejected:
            self._report_rejected(rejected)
        return special

    def _distribute(self, events: tuple[Event, ...]) -> None:
        """All mailboxes get the same batch."""
        self._cached_batches = None
        clock = asyncio.get_running_loop().time
        at = clock()
        if self._listeners_changed:  # by an index function that was called just now
            self._refresh()
        self._needs_merge = [each for each in self._listeners if each.put(events, at)]
        if (took := clock() - at) > MAX_DISTRIBUTE_SECONDS:
            self._batch_size = self._batch_size // 2 or 1
        elif self._batch_size <= len(events) and took < MAX_DISTRIBUTE_SECONDS / 4:
            self._batch_size = min(self._batch_size * 2, BATCH_SIZE)

    async def _merge_pending(self, time_slice: TimeSlice) -> None:
        """Have those merge what is pending who hold more than they may. Seldom needed: few merges
        are too many for one step.
        """
        for listener in self._needs_merge:
            while listener.mailbox.needs_merge:
                listener.mailbox.merge_oldest(ITEMS_PER_STEP)
                await time_slice.maybe_yield()
        self._needs_merge = []

    async def _apply_replacement(
        self, replacement: StagedReplacement, time_slice: TimeSlice
    ) -> None:
        """Stage a new state in steps, then swap it in and tell of it, at once."""
        while not replacement.step(ITEMS_PER_STEP):
            await time_slice.maybe_yield(STAGING_SLICE_SECONDS)
        await self._drain_previous_relist(time_slice)
        batches = list(_split_batches(replacement.commit()))
        self._cached_batches = None
        at = asyncio.get_running_loop().time()
        for listener in self.listeners:
            listener.put_relist(batches, at, initial=replacement.initial)
        del batches  # behind the last listener each batch falls away: not all of it at once
        self.synced.set()
        self.waiters.notify_all()
        self._report_rejected(replacement.rejected)
        count = len(self._indexer.state.objects)
        log.info("%s: %d object%s listed", self._name, count, "s" * (count != 1))
        await time_slice.maybe_yield()
        while not replacement.step(ITEMS_PER_STEP):
            await time_slice.maybe_yield()

    async def _drain_previous_relist(self, time_slice: TimeSlice) -> None:
        """See to it that nobody has the changes of another list pending. Of a listener that never
        comes back they would pile up: lists times objects.
        """
        for listener in self.listeners:
            mailbox = listener.mailbox
            while mailbox.overflow.merges and (mailbox.relist_pending or mailbox.needs_merge):
                mailbox.merge_oldest(ITEMS_PER_STEP)
                await time_slice.maybe_yield()
        while full := [each for each in self._blocking_listeners if each.mailbox.relist_pending]:
            await self._wait_for_room(full, time_slice)
        self._full_listeners = []

    def resync(self, listeners: Sequence[Listener]) -> None:
        """Tell some listeners once more what is cached. Nothing before the first full state."""
        if self._indexer.state.synced:
            for listener in listeners:
                listener.resync(self._iter_cached(), self._is_current)

    def _is_current(self, obj: KubeObject) -> bool:
        return self._indexer.state.objects.get(obj.key) is obj

    def _report_rejected(self, rejected: Mapping[ObjectKey, Exception]) -> None:
        """One line for all of them: a wrong model or index function rejects every object."""
        for key, error in rejected.items():
            others = f" and {len(rejected) - 1} others" if len(rejected) > 1 else ""
            misfit = isinstance(error, ModelMismatch | TransformFailed)
            what = error if misfit else f"an index function raised at {key}"
            stays = "what was cached of it stays"
            log.error("%s: %s%s; %s", self._name, what, others, stays, exc_info=error)
            if self.on_rejected is not None:
                self.on_rejected(error)
            without_traceback(error)  # its frames would keep alive what the cache let go
            break

    def __repr__(self) -> str:
        return f"<Pump {self._name} listeners={len(self._joined)} {self._queue!r}>"


def _split_batches(items: Sequence[T]) -> Iterator[tuple[T, ...]]:
    for start in range(0, len(items), BATCH_SIZE):
        yield tuple(items[start : start + BATCH_SIZE])
