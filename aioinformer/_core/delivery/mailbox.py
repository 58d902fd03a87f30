"""What one listener has yet to hear.

Every listener has a mailbox of its own. What came lately is kept as it came: batches that all
mailboxes share, and a place in them. Live events count against a limit. What is bounded by the
number of cached objects anyway (the state that a listener finds when it joins, the diff of a
relist, a resync) doesn't, and is not copied for each listener either.

A full mailbox follows its rule. ``coalesce``: the oldest events are merged by key, as many as it
takes; see ``coalescing``. ``block``: nothing is taken from the queue in front of the cache until
there is room, so that in the end the socket isn't read. ``error``: it ends, empty. The bound is
max(limit, 2 x keys) events. Waiting belongs to the runtime.

The order is: the state that was found, what was merged, what came lately, a resync. A resync goes
last, and only what nothing else was told of is told again: real and resync are real.

How much a mailbox holds, and what happens beyond that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import islice
from operator import length_hint
from typing import Literal, NoReturn, TypeAlias

from aioinformer._core.delivery.batch_queue import FILTER_BATCH, SYNC_MARK, BatchQueue
from aioinformer._core.delivery.coalescing import CoalescedEvents
from aioinformer._core.delivery.replay import (
    EventMap,
    Replay,
    UnseenDeletions,
    addition_events,
    drain_batches,
    free_in_steps,
    initial_events,
    map_events,
    resync_events,
)
from aioinformer._core.objects.kube_object import Event, KubeObject

__all__ = ["LIMIT", "Mailbox", "Overflow", "OverflowName"]


LIMIT = 1024
"""Live events a mailbox holds by default; client-go's buffer begins at this and has no end."""

OverflowName: TypeAlias = Literal["coalesce", "block", "error"]
"""The names of the rules, as programs pass them."""


class Overflow(StrEnum):
    """The rule of a mailbox that holds more live events than its limit.

    No module compares rules: each reads the properties below. So a new rule is a member and its
    properties here, and its effect in ``Mailbox``.
    """

    COALESCE = "coalesce"
    """The oldest events are merged by object."""
    BLOCK = "block"
    """The pump waits for room, so that in the end the watch isn't read."""
    ERROR = "error"
    """The listener is ended."""

    @property
    def merges(self) -> bool:
        """True if the mailbox merges its oldest events."""
        return self is Overflow.COALESCE

    @property
    def blocks(self) -> bool:
        """True if the pump must wait until the mailbox has room."""
        return self is Overflow.BLOCK

    @property
    def ends(self) -> bool:
        """True if the listener must be ended."""
        return self is Overflow.ERROR

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        rules = ", ".join(repr(rule.value) for rule in cls)
        raise ValueError(f"overflow must be one of {rules}, not {value!r}")


MAX_SKIPPED = 256
"""Events passed over in one go: a listener may wake up after 100,000 objects went."""

MAX_MERGED = 64
"""Events merged as others come: 0.1 ms, and many listeners may have to. What is left to be merged
then is told by ``needs_merge``."""

UNLIMITED = 1 << 30
"""The room of a mailbox that never keeps anybody waiting."""


class Mailbox:
    """One listener's pending events. There is one consumer."""

    def __init__(
        self,
        *,
        limit: int = LIMIT,
        overflow: Overflow | OverflowName = Overflow.COALESCE,
        holds: Callable[[KubeObject], bool],
        event_map: EventMap | None = None,
    ) -> None:
        """Make an empty mailbox.

        Args:
            limit: live events that it holds; at least 1.
            overflow: what happens beyond that.
            holds: whether the cache still has an object, by uid.
            event_map: a filter, through which every event goes; ``None`` for none.
        """
        if limit < 1:
            raise ValueError(f"limit must be at least 1, not {limit}")
        self.limit = limit
        self.overflow = Overflow(overflow)
        self.synced = False
        """Whether the consumer has come back for more after all of the state that it found."""
        self.max_pending = 0
        """The most live events that were ever pending, after those too many were merged."""
        self.overflowed = False
        """Whether it was full and its rule is ``error``: ``clear`` it, and fill it no more."""
        self.needs_merge = False
        """Whether to ``merge_oldest``, until it is no longer so, before it is given anything more."""
        self.closed = False
        """Whether what is put into it is dropped. Who closes it says so; perhaps its own filter."""
        self.should_yield = False
        """Whether the last look ended early, since so much is told no more: give way first."""
        self._holds = holds
        self._event_map = event_map
        self._initial: Replay | None = None
        self._coalesced = CoalescedEvents()
        self._live = BatchQueue(event_map)
        self._resync: Replay | None = None
        self._unseen = UnseenDeletions()
        self._delivered_singly = 0  # events that were handed out from elsewhere

    # -- filling -------------------------------------------------------------------------------

    def put(self, events: Sequence[Event], at: float = 0.0) -> bool:
        """Queue live events, which are kept and not copied; whether any is for this listener. Who
        fills a mailbox that blocks looks at ``free`` first; nothing is refused.
        """
        if self._event_map is not None and not self.closed:
            events = map_events(events, self._event_map)
        if self.closed or not events:
            return False
        pending = self._live.add(events, at) + self._coalesced.count
        if pending > self.limit:
            if self.overflow.merges:
                self._merge_excess()
                return True
            self.overflowed = self.overflow.ends
        if pending > self.max_pending:
            self.max_pending = pending
        return True

    def replay(self, objects: Iterable[KubeObject], at: float = 0.0, *, full: bool = True) -> None:
        """Have the ``objects`` told that the listener finds when it joins, before anything else.
        ``full``: whether they are a full state; ``synced`` waits for one.
        """
        source = iter(objects)
        told = initial_events(
            addition_events(source), self._event_map, self._holds, self._skip_deleted
        )
        self._initial = Replay(told, source, at, full)

    def put_relist(
        self, batches: Sequence[Sequence[Event]], at: float = 0.0, *, initial: bool = False
    ) -> None:
        """Queue the diff of a relist, or the cache's first state, which is what a listener finds
        that joined before. It doesn't count against the limit. One diff at a time: look at
        ``relist_pending`` first, and ``merge_oldest`` or wait until it is over.
        """
        if self.closed:
            return
        late = self._live
        behind = self._initial or self._coalesced.changes or late.queue or length_hint(late.rest)
        if self.relist_pending and self.overflow.ends:
            self.overflowed = True
        elif initial and not behind:  # a resync is told last, whenever it was asked for
            source = drain_batches(batches)
            told = initial_events(source, self._event_map, self._holds, self._skip_deleted)
            self._initial = Replay(told, source, at)
        else:
            late.add_uncounted(batches, at, marked=initial)

    def resync(self, objects: Iterable[KubeObject], current: Callable[[KubeObject], bool]) -> bool:
        """Have ``objects`` told again, when nothing else is pending, those of which the cache still
        has this very state. Not while some of an earlier resync is still to be told: a listener
        that doesn't come back would hold another state a period. Whether it will be told.
        """
        if self._resync is not None or self.closed:
            return False
        self._resync = resync_events(iter(objects), self._event_map, current)
        return True

    def merge_oldest(self, count: int) -> None:
        """Merge up to ``count`` of the oldest events that are queued. For ``coalesce`` only."""
        self._merge(count)
        self._live.split_open_batch()

    def _merge_excess(self) -> None:
        """Merge the oldest events until the limit is kept, as many as may be in one go."""
        self.needs_merge = True
        budget = (
            0 if self._live.uncounted and self._event_map is not None else MAX_MERGED
        )  # a filter takes long
        while self.needs_merge and budget > 0:
            excess = self.pending - self.limit
            count = min((excess + 1) // 2, budget)  # one that is merged takes away two at most
            self._merge(count)
            budget -= count
        self._live.split_open_batch()

    def _merge(self, count: int) -> None:
        late = self._live
        if not length_hint(late.rest):
            self._open_batch(by_consumer=False)
        for event in islice(late.rest, count):
            late.dropped += 1
            if not (self._unseen.objects and self._unseen.discard_event(event)):
                self._coalesced.add(event, late.at)
        pending = self.pending
        self.needs_merge = bool(late) and pending > self.limit
        if not self.needs_merge and pending > self.max_pending:
            self.max_pending = pending

    def drop_resync(self) -> Iterator[None]:
        """Drop what is left of a resync, as ``clear``: nothing of it is news."""
        rest = free_in_steps(CoalescedEvents(), deque[object](), self._resync)
        self._resync = None
        return rest

    def clear(self) -> Iterator[None]:
        """Drop everything that is pending; what is returned lets go of it, in steps."""
        rest = free_in_steps(self._coalesced, self._live.clear(), self._initial, self._resync)
        self._coalesced = CoalescedEvents(merged=self._coalesced.merged)
        self._unseen = UnseenDeletions()
        self._initial = self._resync = None
        self.needs_merge = False
        return rest

    def _skip_deleted(self, obj: KubeObject) -> None:
        """``obj`` went before it was told of."""
        if not self._coalesced.discard(obj):
            self._unseen.add(obj)

    # -- draining ------------------------------------------------------------------------------

    def pop(self) -> Event | None:
        """The next event; ``None`` if there is none, or if so many were skipped that it is time
        to give way: ``should_yield`` tells which.

        Asking says that the event before was dealt with: that is how ``synced`` is known.
        """
        self.should_yield = False
        for _ in range(MAX_SKIPPED if self._event_map is None else FILTER_BATCH):
            if self._initial is not None:
                event = self._next_initial(self._initial)
            elif self._coalesced.changes:
                event = self._next_coalesced()
            elif (event := next(self._live.rest, None)) is not None:
                if not (self._unseen.objects and self._unseen.discard_event(event)):
                    return event
                self._live.dropped += 1
                continue
            elif self._live.queue:
                self._open_batch(by_consumer=True)
                if self._event_map is not None and not length_hint(self._live.rest):
                    break  # the filter took its time for nothing
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
        """The rest of a batch, if nothing else comes before it; else ``pop`` is needed. To take
        from it is to pop. It may end early: what is dropped or merged doesn't come.
        """
        late = self._live
        if self._initial is not None or self._coalesced.changes or self._unseen.objects:
            return None
        if (
            late.uncounted and self._event_map is not None
        ):  # a filter for all of them at once takes long
            return None
        self.should_yield = False
        while not length_hint(late.rest):
            events = late.open()
            if events is None:
                return None
            if events is SYNC_MARK:
                self.synced = True
        late.borrowed = True
        return late.rest

    def _open_batch(self, *, by_consumer: bool) -> bool:
        """Begin with the next batch; whether there is one. ``by_consumer``: the consumer wants it."""
        events = self._live.open()
        if events is SYNC_MARK and by_consumer:
            self.synced = True
        elif events is SYNC_MARK:
            self._coalesced.mark()
        return events is not None

    def _next_initial(self, initial: Replay) -> Event | None:
        event = initial.next()
        if self._initial is not initial:
            return None  # its filter has dropped everything
        if initial.finished:
            self._initial = None
            self.synced = self.synced or initial.full
        return event

    def _next_coalesced(self) -> Event | None:
        event = self._coalesced.pop()
        self.synced = self.synced or event is None  # the mark
        return event

    def _next_resync(self, resync: Replay) -> Event | None:
        event = resync.next()
        if self._resync is not resync:
            return None  # as above
        self._resync = None if resync.finished else resync
        return event

    # -- looking -------------------------------------------------------------------------------

    @property
    def pending(self) -> int:
        """Live events that it holds, and what others were merged into."""
        return self._live.live + self._coalesced.count

    @property
    def state_pending(self) -> bool:
        """Whether some of a state is pending: found, of a relist, or of a resync."""
        return self._initial is not None or self._live.relist_pending or self._resync is not None

    @property
    def has_filter(self) -> bool:
        """Whether events go through a filter."""
        return self._event_map is not None

    @property
    def free(self) -> int:
        """Live events that may still be queued."""
        return self.limit - self.pending if self.overflow.blocks else UNLIMITED

    @property
    def relist_pending(self) -> bool:
        """Whether some of a relist's diff is still queued."""
        return self._live.relist_pending

    @property
    def half_empty(self) -> bool:
        """Whether there is so much room that filling it up again is worth a wake-up."""
        return self.pending * 2 <= self.limit and not self.relist_pending

    @property
    def empty(self) -> bool:
        """Whether nothing is pending, live or not."""
        late = self._live  # asked for every batch: no further property
        if self._initial is not None or self._coalesced.changes or late.queue:
            return False
        return self._resync is None and not length_hint(late.rest)

    @property
    def more_batches(self) -> bool:
        """Whether there may be another batch behind the one that ``borrow_batch`` gave."""
        return len(self._live.queue) > 0

    @property
    def delivered(self) -> int:
        """Events popped so far."""
        return self._live.delivered + self._delivered_singly

    @property
    def merged(self) -> int:
        """Events that were not told by themselves, since later ones took them in."""
        return self._coalesced.merged

    @property
    def oldest(self) -> float | None:
        """When the oldest pending event came, resyncs left out; ``None`` if there is none."""
        if (found := self._initial) is not None:
            return found.queued_at
        merged = self._coalesced.oldest
        return self._live.oldest if merged is None else merged

    def __repr__(self) -> str:
        return f"<Mailbox pending={self.pending}/{self.limit} {self.overflow} synced={self.synced}>"
