"""The mailbox: the pending events of one listener.

A mailbox has four parts, which are delivered in this order:

    1. the initial state   objects that were cached when the listener joined
    2. merged events       live events beyond the limit, merged by object
    3. recent events       batches of live events and of relists, shared with other mailboxes
    4. a resync            the cached state again

A resync is delivered only for objects whose cached state has not changed since. Merging a resync
with a real update gives a real update.

Live events count against a limit. The other events don't count, since their number is bounded by
the number of cached objects, and they are not copied for each listener. So a mailbox holds at most
max(limit, 2 x keys) events of its own.

This module is synchronous: waiting for events and for room belongs to the runtime.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from aioinformer._core.chunked_list import drain_chunks
from aioinformer._core.delivery.batch_queue import (
    FILTER_BATCH,
    POSITION_MARK,
    SYNC_MARK,
    BatchQueue,
)
from aioinformer._core.delivery.coalescing import CoalescedEvents, Mark
from aioinformer._core.delivery.overflow import Overflow, OverflowName
from aioinformer._core.delivery.replay import (
    EventBatch,
    EventMap,
    Replay,
    UnseenDeletions,
    addition_events,
    free_in_steps,
    initial_events,
    map_events,
    resync_events,
)
from aioinformer._core.objects.kube_object import Event, KubeObject

LIMIT = 1024
"""Live events that a mailbox holds by default. client-go's buffer begins at this size and grows
without bound."""

MAX_SKIPPED = 256
"""Events skipped in one step: a listener may wake up after 100,000 objects were deleted."""

MAX_MERGED = 64
"""Events merged in one ``put``, as many listeners may have to merge: 0.1 ms. If more events are
left to be merged, ``needs_merge`` is set."""

UNLIMITED = 1 << 30
"""The room of a mailbox that doesn't make the pump wait."""


class Mailbox:
    """The pending events of one listener. There is one consumer."""

    def __init__(
        self,
        *,
        limit: int = LIMIT,
        overflow: Overflow | OverflowName = Overflow.COALESCE,
        holds: Callable[[KubeObject], bool],
        event_map: EventMap | None = None,
    ) -> None:
        """Make an empty mailbox.

        ``limit`` is the number of live events that it holds; ``holds`` returns True if the cache
        still has an object, by uid; ``event_map`` is the filter.

        Raises:
            ValueError: the limit is below 1, or there is no such rule.
        """
        if limit < 1:
            raise ValueError(f"limit must be at least 1, not {limit}")
        self.limit = limit
        self.overflow = Overflow(overflow)
        self._blocks = self.overflow.blocks
        self.synced = False
        """True once the consumer has asked for the event after the initial state."""
        self.max_pending = 0
        """The most live events that were ever pending, counted after merging."""
        self.overflowed = False
        """True if the mailbox was full and its rule ``ends`` the listener. The owner must then
        ``clear`` the mailbox and put nothing more into it."""
        self.needs_merge = False
        """True if the owner must call ``merge_oldest`` until this is False, before the next put."""
        self.closed = False
        """True if events that are put are discarded. Set by the owner, perhaps from the filter."""
        self.should_yield = False
        """True if ``pop`` skipped so many events that the consumer must yield to the loop first."""
        self.marks_pending = 0
        """The number of ``mark`` calls behind whose place the consumer has not asked for an event.
        It is never 0 again if a mark was discarded with the pending events."""
        self.recent = BatchQueue(event_map)
        """To be read only. An attribute because it is read for every batch."""
        self._holds = holds
        self._event_map = event_map
        self._initial: Replay | None = None
        self._coalesced = CoalescedEvents()
        self._resync: Replay | None = None
        self._unseen = UnseenDeletions()
        self._relist_scopes: set[str | None] = set()
        """The scopes of the diffs that were put since none was pending."""
        self._delivered_singly = 0  # events that did not come from ``recent``

    # -- filling -------------------------------------------------------------------------------

    def put(self, events: EventBatch, at: float = 0.0) -> bool:
        """Queue live events; the sequence is kept. Return True if any of them passed the filter.

        Every event is accepted. If the rule ``blocks``, the owner checks ``free`` first.
        """
        if self._event_map is not None and not self.closed:
            events = map_events(events, self._event_map)
        if self.closed or not events:
            return False
        pending = self.recent.add(events, at) + self._coalesced.count
        if pending > self.limit:
            if self.overflow.merges:
                self._merge_excess()
                return True
            self.overflowed = self.overflow.ends
        if pending > self.max_pending:
            self.max_pending = pending
        return True

    def replay(self, objects: Iterable[KubeObject], at: float = 0.0, *, full: bool = True) -> None:
        """Deliver the ``objects`` before anything else, since the listener has just joined.

        Each object is read when it is delivered. ``synced`` waits for a ``full`` state.
        """
        source = iter(objects)
        events = initial_events(
            addition_events(source), self._event_map, self._holds, self._skip_deleted
        )
        self._initial = Replay(events, source, at, full)

    def put_relist(
        self,
        batches: Sequence[EventBatch],
        at: float = 0.0,
        *,
        initial: bool = False,
        scope: str | None = None,
    ) -> None:
        """Queue the diff of a relist, which doesn't count against the limit.

        There may be one diff of a scope at a time. While ``has_relist_of(scope)``, the owner must
        first call ``merge_oldest``, or wait. The diffs of different scopes are of different
        objects, so that all of them together are no more than twice the objects. ``initial`` is
        True for the state that completes the first state of the cache, which is the initial state
        of a listener that joined before.
        """
        if self.closed:
            return
        overflowed = self.overflow.ends and self.has_relist_of(scope)
        if not self.relist_pending:
            self._relist_scopes.clear()
        if batches:
            self._relist_scopes.add(scope)
        recent = self.recent
        behind = (
            self._initial
            or self._coalesced.changes
            or recent.queue
            or recent.rest.__length_hint__()
        )
        if overflowed:
            self.overflowed = True
        elif initial and not behind:  # a pending resync doesn't count: it is delivered last
            source = drain_chunks(batches)
            # Replay lazily, so that objects that are deleted meanwhile are skipped.
            events = initial_events(source, self._event_map, self._holds, self._skip_deleted)
            self._initial = Replay(events, source, at)
        else:
            recent.add_uncounted(batches, at, marked=initial)

    def resync(self, objects: Iterable[KubeObject], current: Callable[[KubeObject], bool]) -> bool:
        """Deliver ``objects`` again, once nothing else is pending; skip those that aren't
        ``current``.

        Return False without an effect while an earlier resync is pending: a listener that takes
        nothing would otherwise hold one more state after each period.
        """
        if self._resync is not None or self.closed:
            return False
        self._resync = resync_events(iter(objects), self._event_map, current)
        return True

    def mark(self) -> None:
        """Mark this place in the order of events, to learn when what precedes it is delivered."""
        self.recent.add_mark()
        self.marks_pending += 1

    def merge_oldest(self, count: int) -> None:
        """Merge up to ``count`` of the oldest queued events, if the rule ``merges``."""
        self._merge(count)
        self.recent.split_open_batch()

    def _merge_excess(self) -> None:
        self.needs_merge = True
        # The batches of a relist are filtered when they are opened, which takes long.
        filtering = self.recent.uncounted and self._event_map is not None
        budget = 0 if filtering else MAX_MERGED
        while self.needs_merge and budget > 0:
            excess = self.pending - self.limit
            count = min((excess + 1) // 2, budget)  # a merged event removes two events at most
            self._merge(count)
            budget -= count
        self.recent.split_open_batch()

    def _merge(self, count: int) -> None:
        recent = self.recent
        if not recent.rest.__length_hint__():
            self._open_batch(by_consumer=False)
        for event in islice(recent.rest, count):
            recent.dropped += 1
            if not (self._unseen.objects and self._unseen.discard_event(event)):
                self._coalesced.add(event, recent.at)
        pending = self.pending
        self.needs_merge = bool(recent) and pending > self.limit
        if not self.needs_merge and pending > self.max_pending:
            self.max_pending = pending

    def drop_resync(self) -> Iterator[None]:
        """Discard the rest of a resync, which holds no change. Returns the same as ``clear``."""
        steps = free_in_steps(CoalescedEvents(), deque[object](), self._resync)
        self._resync = None
        return steps

    def clear(self) -> Iterator[None]:
        """Discard everything that is pending. Advancing the returned iterator frees it in steps."""
        steps = free_in_steps(self._coalesced, self.recent.clear(), self._initial, self._resync)
        self._coalesced = CoalescedEvents(merged=self._coalesced.merged)
        self._unseen = UnseenDeletions()
        self._initial = self._resync = None
        self.needs_merge = False
        return steps

    def _skip_deleted(self, obj: KubeObject) -> None:
        if not self._coalesced.discard(obj):
            self._unseen.add(obj)

    # -- draining ------------------------------------------------------------------------------

    def pop(self) -> Event | None:
        """Return the next event; ``None`` for none, or if ``should_yield`` after many skipped
        events.

        This acknowledges the previous event: ``synced`` becomes True when the event after the
        initial state is requested.
        """
        self.should_yield = False
        for _ in range(MAX_SKIPPED if self._event_map is None else FILTER_BATCH):
            if self._initial is not None:
                event = self._next_initial(self._initial)
            elif self._coalesced.changes:
                event = self._next_coalesced()
            elif (event := next(self.recent.rest, None)) is not None:
                if not (self._unseen.objects and self._unseen.discard_event(event)):
                    return event
                self.recent.dropped += 1
                continue
            elif self.recent.queue:
                self._open_batch(by_consumer=True)
                if self._event_map is not None and not self.recent.rest.__length_hint__():
                    break  # the filter took its time, and no event passed
                continue
            elif self._resync is not None:
                event = self._next_resync(self._resync)
            else:
                return None
            if event is not None:
                self._delivered_singly += 1
                return event
        self.should_yield = True
        return None

    def borrow_batch(self) -> Iterator[Event] | None:
        """Return the rest of the open batch, or the next batch, or ``None`` where ``pop`` is
        needed.

        Advancing the iterator pops an event. The iterator ends early if its events are discarded or
        merged meanwhile.
        """
        recent = self.recent
        if self._initial is not None or self._coalesced.changes or self._unseen.objects:
            return None
        if recent.uncounted and self._event_map is not None:
            return None  # to filter a whole batch takes long: ``pop`` pauses in between
        self.should_yield = False
        while not recent.rest.__length_hint__():
            events = recent.open()
            if events is None:
                return None
            if events is SYNC_MARK:
                self.synced = True
            elif events is POSITION_MARK:
                self.marks_pending -= 1
        recent.borrowed = True
        return recent.rest

    def _open_batch(self, *, by_consumer: bool) -> None:
        events = self.recent.open()
        if events is SYNC_MARK and by_consumer:
            self.synced = True
        elif events is SYNC_MARK:
            self._coalesced.add_mark(Mark.SYNC)
        elif events is POSITION_MARK and (by_consumer or self._coalesced.add_mark(Mark.POSITION)):
            self.marks_pending -= 1

    def _next_initial(self, initial: Replay) -> Event | None:
        event = initial.next()
        if self._initial is not initial:
            return None  # the filter has closed its own listener
        if initial.finished:
            self._initial = None
            self.synced = self.synced or initial.full
        return event

    def _next_coalesced(self) -> Event | None:
        found = self._coalesced.pop()
        if found is Mark.POSITION:
            self.marks_pending -= 1
            return None
        if found is Mark.SYNC:
            self.synced = True
            return None
        return found

    def _next_resync(self, resync: Replay) -> Event | None:
        event = resync.next()
        if self._resync is not resync:
            return None  # as above
        self._resync = None if resync.finished else resync
        return event

    # -- inspecting ----------------------------------------------------------------------------

    @property
    def pending(self) -> int:
        return self.recent.live + self._coalesced.count

    @property
    def state_pending(self) -> bool:
        """True if part of a whole state is pending: initial, of a relist, or of a resync."""
        return self._initial is not None or self.recent.relist_pending or self._resync is not None

    @property
    def has_filter(self) -> bool:
        return self._event_map is not None

    @property
    def free(self) -> int:
        # No event is merged then, so that all of them are in ``recent``.
        return self.limit - self.recent.live if self._blocks else UNLIMITED

    @property
    def relist_pending(self) -> bool:
        return self.recent.relist_pending

    def has_relist_of(self, scope: str | None) -> bool:
        return self.relist_pending and scope in self._relist_scopes

    @property
    def half_empty(self) -> bool:
        """True if there is enough room to make waking the pump worthwhile."""
        return self.pending * 2 <= self.limit and not self.relist_pending

    @property
    def empty(self) -> bool:
        recent = self.recent  # read for every batch: so no call of its properties
        if self._initial is not None or self._coalesced.changes or recent.queue:
            return False
        return self._resync is None and not recent.rest.__length_hint__()

    @property
    def delivered(self) -> int:
        return self.recent.delivered + self._delivered_singly

    @property
    def merged(self) -> int:
        return self._coalesced.merged

    @property
    def oldest(self) -> float | None:
        """The time at which the oldest pending event came, or ``None``. Resyncs don't count."""
        if (initial := self._initial) is not None:
            return initial.queued_at
        merged = self._coalesced.oldest
        return self.recent.oldest if merged is None else merged

    def __repr__(self) -> str:
        return f"<Mailbox pending={self.pending}/{self.limit} {self.overflow} synced={self.synced}>"
