"""What one listener has yet to hear.

Every listener has a mailbox of its own. Live events are queued up to a limit; what is bounded by
the number of cached objects anyway (the state that a listener finds when it joins, the diff of a
relist, a resync) is not copied for each listener but read by a cursor over one shared sequence.

The rule for a full mailbox is ``block``: nothing is taken from the queue in front of the cache
while a mailbox has no room, so that in the end the socket isn't read. Waiting and waking belong
to the runtime.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import length_hint
from typing import Literal, TypeAlias

from aioinformer._core.objects import Added, Deleted, Event, KubeObject, ObjectKey, Updated

__all__ = ["LIMIT", "Mailbox", "Overflow"]

LIMIT = 1024
"""Live events a mailbox holds by default; client-go's buffer begins at this and has no end."""

_LIVE = (Updated, Added, Deleted)  # the likeliest first: the others are slow to rule out

Overflow: TypeAlias = Literal["block"]
"""What happens when a mailbox is full."""


class _Mark:
    """Stands behind the last event of the state that the listener found."""


_END = _Mark()
"""What an iterator that has ended is said to yield."""

SKIPS = 256
"""Events passed over in one go: a listener may wake up after 100,000 objects went."""


class Mailbox:
    """One listener's pending events. There is one consumer."""

    def __init__(
        self,
        *,
        limit: int = LIMIT,
        overflow: Overflow = "block",
        holds: Callable[[KubeObject], bool],
    ) -> None:
        """Make an empty mailbox.

        Args:
            limit: live events that it holds; at least 1.
            overflow: what happens beyond that.
            holds: whether the cache still has an object, by uid; ``Indexer.holds``.
        """
        if limit < 1:
            raise ValueError(f"limit must be at least 1, not {limit}")
        if overflow != "block":
            raise ValueError(f"overflow must be 'block', not {overflow!r}")
        self.limit = limit
        self.overflow: Overflow = overflow
        self.synced = False
        """Whether the consumer has come back for more after all of the state that it found."""
        self.delivered = 0
        """Events popped so far."""
        self._holds = holds
        self._items: deque[Event | Iterator[Event | None] | _Mark] = deque()
        self._live = 0
        self._told_again: Iterator[KubeObject] = iter(())
        """What the resync under way has yet to tell."""
        self._gone: set[tuple[ObjectKey, str]] = set()

    # -- filling -------------------------------------------------------------------------------

    def extend(self, events: Sequence[Event]) -> None:
        """Queue live events. Who fills looks at ``room`` first; nothing is refused."""
        self._items.extend(events)
        self._live += len(events)

    def replay(self, objects: Sequence[KubeObject]) -> None:
        """Queue the state that the listener finds when it joins, and the mark behind it."""
        self._items.append(self._initial(objects))
        self._items.append(_Mark())

    def tell(self, events: Iterable[Event], *, initial: bool = False) -> None:
        """Queue the diff of a relist, or the cache's first state, which is what a listener finds
        that joined before. It doesn't count against the limit.
        """
        if initial:
            self._items.append(self._initial(event.obj for event in events))
            self._items.append(_Mark())
        else:
            self._items.append(iter(events))

    def resync(self, objects: Sequence[KubeObject]) -> None:
        """Queue the state again, unless some of an earlier resync is still to be told: a listener
        that doesn't come back would hold another state a period. It doesn't count against the
        limit.
        """
        if length_hint(self._told_again):
            return
        self._told_again = left = iter(objects)
        self._items.append(Updated(obj, obj, resync=True) for obj in left)

    def clear(self) -> None:
        """Drop everything that is pending."""
        self._items.clear()
        self._told_again = iter(())
        self._gone.clear()
        self._live = 0

    # -- draining ------------------------------------------------------------------------------

    def pop(self) -> Event | None:
        """The next event; ``None`` if there is none, or if so many were skipped that it is time
        to give way: ``empty`` tells which.

        Asking says that the event before was dealt with: that is how ``synced`` is known.
        """
        skipped = 0
        while self._items and skipped < SKIPS:
            head = self._items[0]
            if isinstance(head, _LIVE):
                self._items.popleft()
                self._live -= 1
                event: Event | None = head
            else:
                event = self._advance(head)
            if event is not None and not (self._gone and self._annihilated(event)):
                self.delivered += 1
                return event
            skipped += 1
        return None

    def _advance(self, head: Iterator[Event | None] | _Mark) -> Event | None:
        """The next event of something longer, which is dropped at its end."""
        event = head if isinstance(head, _Mark) else next(head, _END)
        if not isinstance(event, _Mark):
            return event
        self._items.popleft()
        self.synced = self.synced or event is not _END
        return None

    def _initial(self, objects: Iterable[KubeObject]) -> Iterator[Event | None]:
        """Objects that went before the listener got to them are not told of, and neither is
        what happened to them: the events in between are still pending, and dropped.
        """
        for obj in objects:
            if self._holds(obj):
                yield Added(obj, initial=True)
            else:
                self._gone.add((obj.key, obj.uid))
                yield None

    def _annihilated(self, event: Event) -> bool:
        told = (event.obj.key, event.obj.uid)
        if told not in self._gone:
            return False
        if isinstance(event, Deleted):
            self._gone.remove(told)
        return True

    # -- looking -------------------------------------------------------------------------------

    @property
    def room(self) -> int:
        """Live events that may still be queued."""
        return self.limit - self._live

    @property
    def pending(self) -> int:
        """Live events that are queued."""
        return self._live

    @property
    def drained(self) -> bool:
        """Whether there is so much room that filling it up again is worth a wake-up."""
        return self._live * 2 <= self.limit

    @property
    def empty(self) -> bool:
        """Whether nothing is pending, live or not."""
        return not self._items

    def __repr__(self) -> str:
        return f"<Mailbox pending={self._live}/{self.limit} {self.overflow} synced={self.synced}>"
