"""Pending changes by key: what a listener that is behind has yet to hear of each object.

Of everything that happened to one object only two things matter to somebody who didn't look
meanwhile: what they hold, and the newest state. So an update after an addition is an addition of
the newer state, updates are one update from the first old state to the last new one, a deletion
takes the updates before it along, and an object that came and went was never there. Objects of
different uids are never merged into one update: they stay a deletion and an addition.

Each operation takes constant time, and a key keeps the place of its oldest pending change, so that
a busy object neither overtakes nor starves the others. When to merge is ``mailbox``'s to decide.
"""

from __future__ import annotations

from collections import OrderedDict

from msgspec import Struct

from aioinformer._core.objects.kube_object import (
    Added,
    Deleted,
    Event,
    KubeObject,
    ObjectKey,
    Updated,
)

__all__ = ["CoalescedEvents", "PendingChange"]


class PendingChange(Struct, gc=False):
    """What is pending for one key: a deletion, something new, or one after the other."""

    at: float
    """When the oldest part of it came."""
    deletion: Deleted | None = None
    latest: Added | Updated | None = None

    @property
    def size(self) -> int:
        """Events that it is told as."""
        return (self.deletion is not None) + (self.latest is not None)

    def merge(self, event: Event) -> None:
        """Take in what happened next to the same key."""
        then = self.latest
        if isinstance(event, Deleted):
            first = self.deletion
            if not isinstance(then, Added) or (first and first.obj.uid == event.obj.uid):
                self.deletion = (
                    event  # the later one: it left a filter, came back, and went for good
                )
            self.latest = None
        elif isinstance(event, Added) or then is None:
            self.latest = event
        elif isinstance(then, Added):
            self.latest = Added(event.new, then.initial)
        else:
            self.latest = Updated(then.old, event.new, then.resync and event.resync)


class CoalescedEvents:
    """Changes in the order in which their keys were first touched."""

    def __init__(self, *, merged: int = 0) -> None:
        """Nothing is pending; ``merged``: where to begin counting."""
        self.count = 0
        """Events that are pending: one a key, or two if an object was re-created."""
        self.merged = merged
        """Events that others took in, so that they will never be told by themselves."""
        # A plain dict would be slow to pop from the front of: it skips what was deleted there.
        self.changes: OrderedDict[ObjectKey | None, PendingChange] = OrderedDict()
        """To be read only. Looked at for every batch, so it is no property."""

    def add(self, event: Event, at: float) -> None:
        """Merge in what happened at ``at``."""
        key = event.obj.key
        change = self.changes.get(key)
        before = 0
        if change is None:
            change = self.changes[key] = PendingChange(at)
        else:
            before = change.size
        change.merge(event)
        self._update_count(key, change, before)
        self.merged += before + 1 - change.size

    def _update_count(self, key: ObjectKey, change: PendingChange, before: int) -> None:
        size = change.size
        self.count += size - before
        if not size:
            del self.changes[key]

    def mark(self) -> None:
        """Remember this place in the order; ``pop`` returns ``None`` there. There is one mark."""
        self.changes.pop(None, None)
        self.changes[None] = PendingChange(0.0)

    def pop(self) -> Event | None:
        """The next event, of the key that was touched first; ``None`` at the mark, and if nothing
        is pending.
        """
        change = next(iter(self.changes.values()), None)
        if change is None:
            return None
        event: Event | None = change.latest
        if change.deletion is not None:
            event, change.deletion = change.deletion, None
            if change.latest is not None:
                self.count -= 1
                return event
        self.changes.popitem(last=False)
        self.count -= event is not None
        return event

    def discard(self, obj: KubeObject) -> bool:
        """Drop what is pending for ``obj``, since nobody was told of it; what comes after its
        deletion stays. Whether that deletion was among it.
        """
        change = self.changes.get(obj.key)
        if change is None:
            return False
        before = change.size
        over = change.deletion is not None and change.deletion.obj.uid == obj.uid
        if over:
            change.deletion = None
        elif isinstance(change.latest, Updated) and change.latest.old.uid == obj.uid:
            change.latest = None
        self._update_count(obj.key, change, before)
        return over

    def drop(self, count: int) -> None:
        """Drop the changes of up to ``count`` keys. 100,000 at once would take 40 ms."""
        for _ in range(min(count, len(self.changes))):
            self.count -= self.changes.popitem(last=False)[1].size

    @property
    def oldest(self) -> float | None:
        """When the oldest pending change came. May be read from any thread."""
        while True:
            try:
                changes = self.changes.items()
                return next((change.at for key, change in changes if key is not None), None)
            except RuntimeError:  # it was changed while another thread looked: look once more
                continue

    def __bool__(self) -> bool:
        return bool(self.changes)

    def __repr__(self) -> str:
        return f"<CoalescedEvents pending={self.count} merged={self.merged}>"
