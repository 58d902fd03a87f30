"""The pump: deltas from the queue to the cache, and their events to every mailbox.

The pump pops an entry, applies it and distributes its events in one step, without an ``await``. So
the cache is never behind an event that a listener receives, a listener that joins between two steps
misses no event and gets none twice, and no locks are needed, unlike in client-go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from aioinformer._core.cache.comparison import without_traceback
from aioinformer._core.callables import weak_call
from aioinformer._core.chunked_list import drain_chunks, iter_chunks
from aioinformer._core.delivery.replay import EventBatch
from aioinformer._core.objects.deltas import (
    Bookmark,
    Confirmed,
    Correction,
    Delta,
    Replaced,
)
from aioinformer._core.objects.kube_object import Event, KubeObject, ObjectKey
from aioinformer._core.quantities import quantity
from aioinformer._runtime.delivery.listener import BackpressureGate, Listener
from aioinformer._runtime.informer.waiters import CacheWaiters
from aioinformer._runtime.reflector.delta_queue import DeltaQueue
from aioinformer._runtime.reporting.error_hook import Outage
from aioinformer._runtime.tasks.event_loop import (
    ITEMS_PER_STEP,
    STAGING_SLICE_SECONDS,
    TimeSlice,
    loop_clock,
)

if TYPE_CHECKING:  # for types alone
    from aioinformer._core.cache.indexer import StagedReplacement
    from aioinformer._core.cache.protocols import ObjectCache
    from aioinformer._runtime.informer.feature import Feature

log = logging.getLogger("aioinformer.pump")

BATCH_SIZE = 256
"""Changes applied between two distributions to the mailboxes: about a millisecond."""
FILTERED_BATCH_SIZE = 16
"""First batch size with filters, which read every change; doubled while distributions are quick."""
MAX_DISTRIBUTE_SECONDS = 0.002
"""Seconds that a distribution may take. After a longer one the batch size is halved."""
BLOCKED_WARNING_DELAY = 10.0
"""Seconds until a warning is logged that a full mailbox stops the reading of the watch."""
CLOCK_CHECK_INTERVAL = 16
"""Changes applied between two readings of the clock: an index function may decode every body."""


MAX_SHOWN_NAMESPACES = 5
"""Empty namespaces that a log line names."""


class Pump:
    """Drains one queue into one cache, and distributes the events to the listeners."""

    def __init__(
        self,
        name: str,
        queue: DeltaQueue,
        indexer: ObjectCache,
        *,
        namespace: str | None = None,
        observers: Sequence[Feature] = (),
        on_rejected: Callable[[Exception], None] | None = None,
    ) -> None:
        """Make a pump.

        Args:
            name: the informer's name.
            queue: the changes to apply.
            indexer: the cache.
            namespace: the only one that the informer reads, for the log.
            observers: receive all changes.
            on_rejected: called with the error of a rejected object; once if a batch has many.
        """
        self.synced = asyncio.Event()
        """Set when the initial list was applied, or when the pump has ended."""
        self.gate = BackpressureGate()
        """Opened by a listener whose mailbox has room again."""
        self.waiters = CacheWaiters(indexer, name)
        self.rejection_observers: dict[Callable[[ObjectKey], None], None] = {}
        """Called with the key of each object whose newest version was rejected."""
        self._on_rejected = on_rejected
        self._observers = observers
        self._rejections = Outage(log)
        self._has_rejections = False
        """True if the log says that objects are rejected."""
        self._name = name
        self._namespace = namespace
        self._queue = queue
        self._indexer = indexer
        self._joined: dict[Listener, None] = {}
        self._on_closed = weak_call(self._leave)
        self._listeners: list[Listener] = []
        """The listeners of the last ``_refresh``, in order of joining."""
        self._blocking: list[Listener] = []
        """The listeners for which the pump waits while their mailbox is full."""
        self._listeners_changed = False
        self._clock: Callable[[], float] = float
        """Returns the loop's time, once the pump runs."""
        self._batch_size = BATCH_SIZE
        """Changes to apply until the next distribution."""
        self._full_listeners: list[Listener] = []
        self._needs_merge: list[Listener] = []
        self._cached_batches: tuple[Sequence[KubeObject], ...] | None = None
        """The cached objects for replays and resyncs; ``None`` once the cache has changed."""
        self._batch: list[Event] | None = None
        """The events of the batch of changes that is being applied, if there is one."""
        self._joining: list[tuple[Listener, bool, int]] = []
        """Listeners that index functions added in that batch, ``replay``, and its events before."""

    def join(self, listener: Listener, *, replay: bool = True) -> None:
        """Deliver all further events to ``listener``; with ``replay``, the cached objects first."""
        if self._batch is not None:  # the cache has changes that no listener has received yet
            self._joining.append((listener, replay, len(self._batch)))
            return
        state = self._indexer.state
        if state.synced or state.objects:
            at = asyncio.get_running_loop().time()
            listener.replay(self._iter_cached() if replay else (), at, full=state.synced)
        self._joined[listener] = None
        listener.on_closed = self._on_closed
        self._listeners_changed = True

    def _leave(self, listener: Listener) -> None:
        self._joined.pop(listener, None)
        self._listeners_changed = True
        # Not at the next batch, which may be hours away: a listener that left is freed now.
        self._listeners, self._blocking = [], []

    @property
    def listeners(self) -> list[Listener]:
        """The present listeners, in a new list after each join or leave."""
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
        """Return the cached objects, from batches that all replays and resyncs share."""
        if self._cached_batches is None:
            self._cached_batches = tuple(iter_chunks(self._indexer.state.objects.values()))
        return drain_chunks(self._cached_batches)

    @property
    def blocked_by(self) -> tuple[str, ...]:
        """The names of the listeners whose full mailbox the pump waits for, for any thread."""
        return tuple(each.name for each in self._full_listeners if not each.closed)

    def listener_read_by(self, task: asyncio.Task[Any] | None) -> Listener | None:
        """Return the listener that ``task`` reads, if the pump may wait for that listener."""
        for listener in self.listeners:
            consumer = listener.consumer
            if listener.mailbox.overflow.blocks and consumer is not None and consumer() is task:
                return listener
        return None

    @property
    def pending(self) -> int:
        """Live events that wait in mailboxes. May be read from any thread."""
        return sum(each.mailbox.pending for each in tuple(self._joined))

    def end(self) -> None:
        """End all listeners and waiters. Listeners can still take their pending events."""
        self.synced.set()
        self.waiters.end()
        for listener in self.listeners:
            listener.close(drop=False)

    async def run(self) -> NoReturn:
        """Drain the queue until cancelled."""
        self._clock = clock = loop_clock()
        time_slice, entries, filled = TimeSlice(), self._queue.fifo.entries, self._queue.filled
        while True:
            if entries:
                await time_slice.maybe_yield()
            else:
                while not entries:  # as ``DeltaQueue.ready``, without a coroutine for each event
                    filled.clear()
                    await filled.wait()
                time_slice.started_at = clock()
            if self._listeners_changed:
                self._refresh()
            free = self._free_in_mailboxes()
            if free <= 0:
                free = await self._wait_for_mailboxes(time_slice)
            replaced = self._apply_changes(time_slice, free)
            if self._needs_merge:
                await self._merge_pending(time_slice)
            if replaced is not None:
                replacement, kind = self._indexer.replace(replaced), replaced.without_objects()
                del replaced  # only the replacement may hold the objects, to free them in steps
                await self._apply_replacement(replacement, kind, time_slice)

    async def _wait_for_mailboxes(self, time_slice: TimeSlice) -> int:
        """Wait until no mailbox that blocks is full. Return the number of events that all take."""
        while full := [each for each in self._blocking_listeners if each.mailbox.free <= 0]:
            await self._wait_for_room(full, time_slice)
        self._full_listeners = []
        return self._free_in_mailboxes()

    def _free_in_mailboxes(self) -> int:
        """Return the number of events that all mailboxes take, at most those of a batch."""
        free = self._batch_size
        for listener in self._blocking:  # as of the last ``_refresh``
            free = min(free, listener.mailbox.free)
        return free

    @property
    def _blocking_listeners(self) -> list[Listener]:
        return self._blocking if self.listeners else []

    async def _wait_for_room(self, full: list[Listener], time_slice: TimeSlice) -> None:
        """Wait until one of the listeners has room again, or has left."""
        self._full_listeners = full
        loop = asyncio.get_running_loop()
        warning = loop.call_later(BLOCKED_WARNING_DELAY, self._warn_blocked)
        try:
            await self.gate.wait()
        finally:
            warning.cancel()
        if (late := loop.time() - warning.when()) > 0:
            log.info(
                "%s: the watch is read again, %.1f s after the first warning", self._name, late
            )
        time_slice.reset()

    def _warn_blocked(self) -> None:
        names = ", ".join(self.blocked_by)
        log.warning(
            "%s: the watch was not read for %g s, because of overflow='block' and the full mailbox "
            "of %s",
            self._name,
            BLOCKED_WARNING_DELAY,
            names,
        )

    def _apply_changes(self, time_slice: TimeSlice, limit: int) -> Replaced | None:
        """Apply a batch of changes and distribute their events; return the whole state that ended
        it. A re-created object makes two events, so that a mailbox may exceed its limit by one.
        """
        events: list[Event] = []
        self._batch = events
        rejected: dict[ObjectKey, Exception] = {}
        replaced: Replaced | None = None
        confirmed = False
        entries, pop = self._queue.fifo.entries, self._queue.fifo.pop
        for count in range(self._batch_size):
            if (
                not entries
                or len(events) >= limit
                or (count % CLOCK_CHECK_INTERVAL == CLOCK_CHECK_INTERVAL - 1 and time_slice.expired)
            ):
                break
            entry = pop()
            if isinstance(entry, Delta):
                if error := self._indexer.apply(entry, events):
                    rejected[entry.obj.key] = without_traceback(error) if rejected else error
            elif isinstance(entry, Bookmark):
                self._indexer.bookmark(entry)
            elif isinstance(entry, Replaced):
                replaced = entry
                break
            elif isinstance(entry, Confirmed):
                self._indexer.confirm_restored(entry)
                confirmed = True
                break
            elif isinstance(entry, Correction) and (error := self._indexer.correct(entry, events)):
                rejected[entry.key] = without_traceback(error) if rejected else error
        if self._queue.producer_waiting:
            self._queue.wake_producer()
        if events:
            self._distribute(tuple(events))
        self._batch = None
        if self._joining:
            self._complete_joins(events)
        if self.waiters.waiting:
            self.waiters.notify(events)
        if rejected:
            self._report_rejected(rejected)
            self._notify_rejected(rejected)
        elif self._has_rejections:
            self._update_rejections()
        if confirmed:
            self.update_synced()
        return replaced

    def _complete_joins(self, events: list[Event]) -> None:
        """Join the listeners that index functions have added while ``events`` were made."""
        joining, self._joining = self._joining, []
        for listener, replay, before in joining:
            if listener.closed:
                continue
            self.join(listener, replay=replay)
            following = () if replay else tuple(events[before:])  # a replay includes these changes
            if following and listener.put(following, self._clock()):
                self._needs_merge.append(listener)

    def _distribute(self, events: tuple[Event, ...]) -> None:
        """Put one shared batch into all mailboxes, and adapt the size of the next batch."""
        self._cached_batches = None
        clock = self._clock
        at = clock()
        if self._listeners_changed:  # an index function may just have added or removed one
            self._refresh()
        for listener in self._listeners:  # no comprehension, which is a call more in Python 3.11
            if listener.put(events, at):
                self._needs_merge.append(listener)
        for observer in self._observers:
            observer.record(events)
        if (took := clock() - at) > MAX_DISTRIBUTE_SECONDS:
            self._batch_size = self._batch_size // 2 or 1
        elif self._batch_size <= len(events) and took < MAX_DISTRIBUTE_SECONDS / 4:
            self._batch_size = min(self._batch_size * 2, BATCH_SIZE)

    async def _merge_pending(self, time_slice: TimeSlice) -> None:
        """Merge pending events of listeners over their limit, in steps. This is rarely needed."""
        for listener in self._needs_merge:
            while listener.mailbox.needs_merge:
                listener.mailbox.merge_oldest(ITEMS_PER_STEP)
                await time_slice.maybe_yield()
        self._needs_merge = []

    async def _apply_replacement(
        self, replacement: StagedReplacement, kind: Replaced, time_slice: TimeSlice
    ) -> None:
        """Stage a new state in steps, then install and distribute it in one step."""
        scope = kind.scope
        while not replacement.step(ITEMS_PER_STEP):
            await time_slice.maybe_yield(STAGING_SLICE_SECONDS)
        await self._drain_previous_relist(scope, time_slice)
        if kind.reason == "scope_removed" and kind.is_whole:
            for observer in self._observers:
                await observer.prepare_removal(scope or "")
        initial = replacement.initial
        batches = replacement.commit().chunks
        self._cached_batches = None
        for observer in self._observers:
            observer.record_list(batches, kind)
        self._put_relist(batches, kind, initial=initial)
        del batches  # each batch is freed when the last listener has passed it, not all at once
        self._report_rejected(replacement.rejected)
        if self._has_rejections:
            self._update_rejections()
        for number, key in enumerate(replacement.rejected, 1):
            self._notify_rejected((key,))
            if not number % ITEMS_PER_STEP:
                await time_slice.maybe_yield()
        count = len(self._indexer.state.objects)
        if replacement.rejected and not count:
            log.warning(
                "%s: the list is complete, but nothing is cached: each of its %d objects was "
                "rejected; correct the model=, transform= or index function that raised",
                self._name,
                len(replacement.rejected),
            )
        if scope is None:
            how = "restored from the cache file" if kind.restored else "listed"
            if not count and self._namespace is not None:
                how += f": the namespace {self._namespace} has none, or doesn't exist"
            log.info("%s: %s %s", self._name, quantity(count, "object"), how)
        else:
            log.debug(
                "%s: namespace %s replaced, %s in all", self._name, scope, quantity(count, "object")
            )
        await time_slice.maybe_yield()
        while not replacement.step(ITEMS_PER_STEP):
            await time_slice.maybe_yield()

    def _put_relist(self, batches: Sequence[EventBatch], kind: Replaced, *, initial: bool) -> None:
        """Distribute the changes of a list, and mark the end of the first state of the cache;
        ``initial`` if this is the first state of its scope.
        """
        scope = kind.scope
        first = self._indexer.state.synced and not self.synced.is_set()
        at = asyncio.get_running_loop().time()
        for listener in self.listeners:
            position, own = listener.position, batches
            if position is not None and initial:
                skips = position.skips_first_state(scope or "", restored=kind.restored)
                own = () if skips else batches
            if position is not None:
                position.begun = position.begun or first
            listener.put_relist(own, at, initial=first, scope=scope)
        if first:
            self.synced.set()
            self._log_empty_namespaces()
        self.waiters.notify_all()

    def _log_empty_namespaces(self) -> None:
        """Name the namespaces without objects, of which a misspelt one would be."""
        states = self._indexer.scope_states().items()
        empty = [scope for scope, each in states if scope and each.synced and not each.objects]
        if empty:
            shown = empty[:MAX_SHOWN_NAMESPACES] + ["..."] * (len(empty) > MAX_SHOWN_NAMESPACES)
            log.info("%s: nothing in %s: empty, or absent", self._name, ", ".join(shown))

    def update_synced(self) -> None:
        """Mark the end of the first state if the cache is synced now without another list."""
        if self._indexer.state.synced and not self.synced.is_set():
            self._put_relist((), Replaced((), ""), initial=False)

    async def _drain_previous_relist(self, scope: str | None, time_slice: TimeSlice) -> None:
        """Wait or merge until no listener has events of the scope's previous relist pending.
        Otherwise a listener that takes no events would hold as many as lists times objects.
        """
        for listener in self.listeners:
            mailbox = listener.mailbox
            while mailbox.overflow.merges and (mailbox.has_relist_of(scope) or mailbox.needs_merge):
                mailbox.merge_oldest(ITEMS_PER_STEP)
                await time_slice.maybe_yield()
        while full := [
            each for each in self._blocking_listeners if each.mailbox.has_relist_of(scope)
        ]:
            await self._wait_for_room(full, time_slice)
        self._full_listeners = []

    def resync(self, listeners: Sequence[Listener]) -> None:
        """Deliver the cached state to ``listeners`` again, once the initial list is complete."""
        if self._indexer.state.synced:
            for listener in listeners:
                listener.resync(self._iter_cached(), self._is_current)

    def _is_current(self, obj: KubeObject) -> bool:
        return self._indexer.state.objects.get(obj.key) is obj

    def _report_rejected(self, rejected: Mapping[ObjectKey, Exception]) -> None:
        """Report all of them once: a wrong model or index function rejects every object."""
        if rejected:
            self._has_rejections = True
            self._rejections.begin()
        for key, error in rejected.items():
            cached = self._indexer.state.objects.get(key) is not None
            kept = f"the previous version of {key} stays" if cached else f"{key} is not"
            others = len(rejected) - 1
            also = f"; rejected as well: {quantity(others, 'other object')}" if others else ""
            log.error("%s: %s%s; %s cached", self._name, error, also, kept, exc_info=error)
            if self._on_rejected is not None:
                self._on_rejected(error)
            without_traceback(error)  # its frames would keep removed objects alive
            break

    def _update_rejections(self) -> None:
        """Say that no object is rejected any more, if that is so."""
        if not self._indexer.rejected:
            self._has_rejections = False
            self._rejections.end("%s: no object is rejected", self._name)

    def _notify_rejected(self, keys: Iterable[ObjectKey]) -> None:
        for observer in tuple(self.rejection_observers):
            for key in keys:
                observer(key)

    def __repr__(self) -> str:
        return f"<Pump {self._name} listeners={len(self._joined)} {self._queue!r}>"
