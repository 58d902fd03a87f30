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
from itertools import islice
from operator import length_hint
from typing import Literal, TypeAlias, get_args

from aioinformer._core.delivery.batch_queue import FILTERED, MARK, Backlog
from aioinformer._core.delivery.coalescing import Coalesced
from aioinformer._core.delivery.replay import (
    EachEvent,
    Gone,
    Telling,
    additions,
    filtered,
    found,
    letting_go,
    one_by_one,
    told_again,
)
from aioinformer._core.objects.kube_object import Event, KubeObject

__all__ = ["LIMIT", "Mailbox", "Overflow", "check_overflow"]


LIMIT = 1024
"""Live events a mailbox holds by default; client-go's buffer begins at this and has no end."""

Overflow: TypeAlias = Literal["coalesce", "block", "error"]
"""What happens when a mailbox is full. ``coalesce``: the oldest events are merged, object by
object. ``block``: nothing more is applied until there is room. ``error``: the listener is ended."""


def check_overflow(limit: int, overflow: Overflow) -> None:
    """Refuse what no mailbox can do.

    Raises:
        ValueError: the limit is below 1, or nobody knows the rule.
    """
    if limit < 1:
        raise ValueError(f"limit must be at least 1, not {limit}")
    if overflow not in get_args(Overflow):
        rules = ", ".join(map(repr, get_args(Overflow)))
        raise ValueError(f"overflow must be one of {rules}, not {overflow!r}")


SKIPS = 256
"""Events passed over in one go: a listener may wake up after 100,000 objects went."""

FOLDS = 64
"""Events merged as others come: 0.1 ms, and many listeners may have to. What is left to be merged
then is told by ``behind``."""

ROOM = 1 << 30
"""The room of a mailbox that never keeps anybody waiting."""


class Mailbox:
    """One listener's pending events. There is one consumer."""

    def __init__(
        self,
        *,
        limit: int = LIMIT,
        overflow: Overflow = "coalesce",
        holds: Callable[[KubeObject], bool],
        each: EachEvent | None = None,
    ) -> None:
        """Make an empty mailbox.

        Args:
            limit: live events that it holds; at least 1.
            overflow: what happens beyond that.
            holds: whether the cache still has an object, by uid.
            each: a filter, through which every event goes; ``None`` for none.
        """
        check_overflow(limit, overflow)
        self.limit = limit
        self.overflow: Overflow = overflow
        self.synced = False
        """Whether the consumer has come back for more after all of the state that it found."""
        self.high = 0
        """The most live events that were ever pending, after those too many were merged."""
        self.overflowed = False
        """Whether it was full and its rule is ``error``: ``clear`` it, and fill it no more."""
        self.behind = False
        """Whether to ``fold``, until it is no longer so, before it is given anything more."""
        self.shut = False
        """Whether what is put into it is dropped. Who closes it says so; perhaps its own filter."""
        self.skipping = False
        """Whether the last look ended early, since so much is told no more: give way first."""
        self._holds = holds
        self._each = each
        self._found: Telling | None = None
        self._merged = Coalesced()
        self._late = Backlog(each)
        self._again: Telling | None = None
        self._gone = Gone()
        self._handed = 0  # events that were handed out from elsewhere

    # -- filling -------------------------------------------------------------------------------

    def extend(self, events: Sequence[Event], at: float = 0.0) -> bool:
        """Queue live events, which are kept and not copied; whether any is for this listener. Who
        fills a mailbox that blocks looks at ``room`` first; nothing is refused.
        """
        if self._each is not None and not self.shut:
            events = filtered(events, self._each)
        if self.shut or not events:
            return False
        pending = self._late.add(events, at) + self._merged.count
        if pending > self.limit and self.overflow == "coalesce":
            self._fold_excess()
            return True
        if pending > self.limit and self.overflow == "error":
            self.overflowed = True
        if pending > self.high:
            self.high = pending
        return True

    def replay(self, objects: Iterable[KubeObject], at: float = 0.0, *, full: bool = True) -> None:
        """Have the ``objects`` told that the listener finds when it joins, before anything else.
        ``full``: whether they are a full state; ``synced`` waits for one.
        """
        source = iter(objects)
        told = found(additions(source), self._each, self._holds, self._skip)
        self._found = Telling(told, source, at, full)

    def tell(
        self, batches: Sequence[Sequence[Event]], at: float = 0.0, *, initial: bool = False
    ) -> None:
        """Queue the diff of a relist, or the cache's first state, which is what a listener finds
        that joined before. It doesn't count against the limit. One diff at a time: look at
        ``telling`` first, and ``fold`` or wait until it is over.
        """
        if self.shut:
            return
        late = self._late
        behind = self._found or self._merged.changes or late.queue or length_hint(late.rest)
        if self.telling and self.overflow == "error":
            self.overflowed = True
        elif initial and not behind:  # a resync is told last, whenever it was asked for
            source = one_by_one(batches)
            told = found(source, self._each, self._holds, self._skip)
            self._found = Telling(told, source, at)
        else:
            late.tell(batches, at, marked=initial)

    def resync(self, objects: Iterable[KubeObject], current: Callable[[KubeObject], bool]) -> bool:
        """Have ``objects`` told again, when nothing else is pending, those of which the cache still
        has this very state. Not while some of an earlier resync is still to be told: a listener
        that doesn't come back would hold another state a period. Whether it will be told.
        """
        if self._again is not None or self.shut:
            return False
        self._again = told_again(iter(objects), self._each, current)
        return True

    def fold(self, count: int) -> None:
        """Merge up to ``count`` of the oldest events that are queued. For ``coalesce`` only."""
        self._fold(count)
        self._late.end_run()

    def _fold_excess(self) -> None:
        """Merge the oldest events until the limit is kept, as many as may be in one go."""
        self.behind = True
        budget = 0 if self._late.told and self._each is not None else FOLDS  # a filter takes long
        while self.behind and budget > 0:
            excess = self.pending - self.limit
            count = min((excess + 1) // 2, budget)  # one that is merged takes away two at most
            self._fold(count)
            budget -= count
        self._late.end_run()

    def _fold(self, count: int) -> None:
        late = self._late
        if not length_hint(late.rest):
            self._open(asked=False)
        for event in islice(late.rest, count):
            late.dropped += 1
            if not (self._gone.objects and self._gone.annihilates(event)):
                self._merged.add(event, late.at)
        pending = self.pending
        self.behind = bool(late) and pending > self.limit
        if not self.behind and pending > self.high:
            self.high = pending

    def drop_resync(self) -> Iterator[None]:
        """Drop what is left of a resync, as ``clear``: nothing of it is news."""
        rest = letting_go(Coalesced(), deque[object](), self._again)
        self._again = None
        return rest

    def clear(self) -> Iterator[None]:
        """Drop everything that is pending; what is returned lets go of it, in steps."""
        rest = letting_go(self._merged, self._late.clear(), self._found, self._again)
        self._merged = Coalesced(merged=self._merged.merged)
        self._gone = Gone()
        self._found = self._again = None
        self.behind = False
        return rest

    def _skip(self, obj: KubeObject) -> None:
        """``obj`` went before it was told of."""
        if not self._merged.strike(obj):
            self._gone.add(obj)

    # -- draining ------------------------------------------------------------------------------

    def pop(self) -> Event | None:
        """The next event; ``None`` if there is none, or if so many were skipped that it is time
        to give way: ``skipping`` tells which.

        Asking says that the event before was dealt with: that is how ``synced`` is known.
        """
        self.skipping = False
        for _ in range(SKIPS if self._each is None else FILTERED):
            if self._found is not None:
                event = self._next_found(self._found)
            elif self._merged.changes:
                event = self._next_merged()
            elif (event := next(self._late.rest, None)) is not None:
                if not (self._gone.objects and self._gone.annihilates(event)):
                    return event
                self._late.dropped += 1
                continue
            elif self._late.queue:
                self._open(asked=True)
                if self._each is not None and not length_hint(self._late.rest):
                    break  # the filter took its time for nothing
                continue
            elif self._again is not None:
                event = self._next_again(self._again)
            else:
                return None
            if event is not None:
                self._handed += 1
                return event
        self.skipping = True
        return None

    def run(self) -> Iterator[Event] | None:
        """The rest of a batch, if nothing else comes before it; else ``pop`` is needed. To take
        from it is to pop. It may end early: what is dropped or merged doesn't come.
        """
        late = self._late
        if self._found is not None or self._merged.changes or self._gone.objects:
            return None
        if late.told and self._each is not None:  # a filter for all of them at once takes long
            return None
        self.skipping = False
        while not length_hint(late.rest):
            events = late.open()
            if events is None:
                return None
            if events is MARK:
                self.synced = True
        late.lent = True
        return late.rest

    def _open(self, *, asked: bool) -> bool:
        """Begin with the next batch; whether there is one. ``asked``: the consumer wants it."""
        events = self._late.open()
        if events is MARK and asked:
            self.synced = True
        elif events is MARK:
            self._merged.mark()
        return events is not None

    def _next_found(self, found: Telling) -> Event | None:
        event = found.next()
        if self._found is not found:
            return None  # its filter has dropped everything
        if found.over:
            self._found = None
            self.synced = self.synced or found.full
        return event

    def _next_merged(self) -> Event | None:
        event = self._merged.pop()
        self.synced = self.synced or event is None  # the mark
        return event

    def _next_again(self, again: Telling) -> Event | None:
        event = again.next()
        if self._again is not again:
            return None  # as above
        self._again = None if again.over else again
        return event

    # -- looking -------------------------------------------------------------------------------

    @property
    def pending(self) -> int:
        """Live events that it holds, and what others were merged into."""
        return self._late.live + self._merged.count

    @property
    def whole(self) -> bool:
        """Whether some of a state is pending: found, of a relist, or of a resync."""
        return self._found is not None or self._late.telling or self._again is not None

    @property
    def filters(self) -> bool:
        """Whether events go through a filter."""
        return self._each is not None

    @property
    def room(self) -> int:
        """Live events that may still be queued."""
        return self.limit - self.pending if self.overflow == "block" else ROOM

    @property
    def telling(self) -> bool:
        """Whether some of a relist's diff is still queued."""
        return self._late.telling

    @property
    def drained(self) -> bool:
        """Whether there is so much room that filling it up again is worth a wake-up."""
        return self.pending * 2 <= self.limit and not self.telling

    @property
    def empty(self) -> bool:
        """Whether nothing is pending, live or not."""
        late = self._late  # asked for every batch: no further property
        if self._found is not None or self._merged.changes or late.queue:
            return False
        return self._again is None and not length_hint(late.rest)

    @property
    def more(self) -> bool:
        """Whether there may be another batch behind the one that ``run`` gave."""
        return len(self._late.queue) > 0

    @property
    def delivered(self) -> int:
        """Events popped so far."""
        return self._late.taken + self._handed

    @property
    def merged(self) -> int:
        """Events that were not told by themselves, since later ones took them in."""
        return self._merged.merged

    @property
    def oldest(self) -> float | None:
        """When the oldest pending event came, resyncs left out; ``None`` if there is none."""
        if (found := self._found) is not None:
            return found.at
        merged = self._merged.oldest
        return self._late.oldest if merged is None else merged

    def __repr__(self) -> str:
        return f"<Mailbox pending={self.pending}/{self.limit} {self.overflow} synced={self.synced}>"
