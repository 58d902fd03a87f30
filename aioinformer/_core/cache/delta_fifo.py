"""DeltaFIFO: what arrived and has not yet been applied, in order of arrival.

client-go's queue between the reflector and the store. Per key it keeps what client-go's does:
lookup, no two deletions in a row, no deletion of something unknown. Across keys it pops in order
of arrival, as client-go does since 1.36 (its RealFIFO): that is what makes the cache a true past
state of the server at every moment. A whole new state, a resync and a bookmark are entries like
any other, so that nothing overtakes.

It never waits: whoever feeds it looks at ``full``, whoever drains it gets ``None`` when there is
nothing. Waiting and waking belong to the runtime.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Sequence
from itertools import islice

from aioinformer._core.objects.deltas import Bookmark, Delta, QueueEntry, Replaced, Resync
from aioinformer._core.objects.kube_object import DeleteReason, KubeObject, ObjectKey
from aioinformer._core.objects.stored import size_of

__all__ = ["DeltaFIFO"]

HIGH_MARK = 10_000
"""Entries at which the socket is no longer read: about 50 ms of applying."""
HIGH_BYTES = 32 * 1024 * 1024
"""Bytes at which the socket is no longer read. One event may go over it."""


class DeltaFIFO:
    """A queue of changes. One producer's order is kept; there is one consumer."""

    def __init__(
        self,
        known: Container[ObjectKey] | None = None,
        *,
        high_mark: int = HIGH_MARK,
        high_bytes: int = HIGH_BYTES,
    ) -> None:
        """Make an empty queue.

        Args:
            known: the keys in the store behind the queue. With it, the deletion of an object
                that is neither known nor queued is dropped. Only for a store that applies an
                entry before anything more is queued: one that stages a whole state in steps
                doesn't know meanwhile what it will hold.
            high_mark: entries from which on the queue is ``full``.
            high_bytes: bytes of JSON from which on it is.
        """
        self._known = known
        self._high_mark = high_mark
        self._high_bytes = high_bytes
        self._entries: deque[QueueEntry] = deque()
        self._latest_deltas: dict[ObjectKey, Delta] = {}
        """The last change of each object, among the entries that were looked at."""
        self._indexed = 0
        """How many of the oldest entries those are. Only deletions ask; else it stays none."""
        self._bytes = 0
        self._queued_replaces = 0
        self._replace_in_progress = False
        """Whether a whole state was popped, and may not be applied yet."""
        self._replaced = False

    # -- feeding -------------------------------------------------------------------------------

    def add(self, obj: KubeObject) -> None:
        """The server says that ``obj`` was added."""
        self.push(Delta("Added", obj))

    def update(self, obj: KubeObject) -> None:
        """The server says that ``obj`` has changed."""
        self.push(Delta("Updated", obj))

    def delete(self, obj: KubeObject) -> None:
        """The server says that ``obj`` was deleted, in this last state."""
        self.push(Delta("Deleted", obj))

    def push(self, delta: Delta) -> None:
        """Queue a change, unless it is a redundant deletion."""
        self.extend((delta,))

    def extend(self, entries: Sequence[Delta | Bookmark]) -> None:
        """Queue changes and bookmarks in their order, except for redundant deletions."""
        append = self._entries.append
        for entry in entries:
            if isinstance(entry, Bookmark):
                self.bookmark(entry.resource_version)
                continue
            obj = entry.obj
            if entry.kind == "Deleted" and not self._is_new_deletion(obj.key):
                continue
            append(entry)
            self._bytes += len(obj.raw) or size_of(obj)

    def replace(
        self,
        objects: Sequence[KubeObject],
        resource_version: str,
        *,
        rewound: bool = False,
        reason: DeleteReason = "vanished",
    ) -> None:
        """A list was read: queue the whole new state. What vanished is found when it is applied.

        Args:
            objects: all there is.
            resource_version: as of when.
            rewound: whether the server has gone back in time, so that versions prove nothing.
            reason: why objects that are not among them are gone.
        """
        self._entries.append(Replaced(objects, resource_version, rewound, reason))
        self._latest_deltas.clear()
        self._indexed = len(self._entries)
        self._queued_replaces += 1
        self._replaced = True

    def resync(self) -> None:
        """Have the state of the cache told again, unless that is already queued."""
        if not any(isinstance(entry, Resync) for entry in self._entries):
            self._entries.append(Resync())

    def bookmark(self, resource_version: str) -> None:
        """Nothing of interest happened up to here. Of several in a row the last one counts."""
        if self._entries and isinstance(self._entries[-1], Bookmark):
            self._entries.pop()
        self._entries.append(Bookmark(resource_version))

    def _is_new_deletion(self, key: ObjectKey) -> bool:
        self._index_entries()
        newest = self._latest_deltas.get(key)
        if newest is not None:
            return newest.kind != "Deleted"
        # Behind a whole state that isn't applied yet, nobody knows what will be known.
        return (
            self._known is None
            or self._queued_replaces > 0
            or self._replace_in_progress
            or key in self._known
        )

    def _index_entries(self) -> None:
        """Look at the entries that have come since somebody asked: at each once at most."""
        found: dict[ObjectKey, Delta] = {}
        for entry in islice(reversed(self._entries), len(self._entries) - self._indexed):
            if isinstance(entry, Delta):
                found.setdefault(entry.obj.key, entry)
        self._latest_deltas.update(found)
        self._indexed = len(self._entries)

    # -- draining ------------------------------------------------------------------------------

    def pop(self) -> QueueEntry | None:
        """The oldest entry; ``None`` if there is none.

        Asking says that the entry before was applied: a whole state is applied in steps, and until
        its last one the store behind the queue holds the state before.
        """
        self._replace_in_progress = False
        if not self._entries:
            return None
        entry = self._entries.popleft()
        if self._indexed:
            self._indexed -= 1
            self._forget_entry(entry)
        if isinstance(entry, Delta):
            obj = entry.obj
            self._bytes -= len(obj.raw) or size_of(obj)
        elif isinstance(entry, Replaced):
            self._queued_replaces -= 1
            self._replace_in_progress = True
        return entry

    def _forget_entry(self, entry: QueueEntry) -> None:
        if isinstance(entry, Delta) and self._latest_deltas.get(entry.obj.key) is entry:
            del self._latest_deltas[entry.obj.key]

    # -- looking -------------------------------------------------------------------------------

    def deltas(self, key: ObjectKey) -> tuple[Delta, ...]:
        """What is queued for one object, the oldest first. Walks the whole queue."""
        return tuple(e for e in self._entries if isinstance(e, Delta) and e.obj.key == key)

    @property
    def synced(self) -> bool:
        """Whether a whole state was queued and popped."""
        return self._replaced and not self._queued_replaces

    @property
    def full(self) -> bool:
        """Whether the producer should stop for now. Nothing is refused."""
        return len(self._entries) >= self._high_mark or self._bytes >= self._high_bytes

    @property
    def size(self) -> int:
        """Bytes of JSON in queued changes; whole states don't count, they are on their way."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"<DeltaFIFO entries={len(self._entries)} size={self._bytes} B>"
