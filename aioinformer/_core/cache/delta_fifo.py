"""DeltaFIFO: client-go's queue between the reflector and the store.

Per key the queue keeps what client-go's keeps: lookup, no two deletions in a row, no deletion of an
unknown object. Across keys it pops in order of arrival, as client-go's RealFIFO does since 1.36:
only so is the cache a true past state of the server at every moment. A whole new state and a
bookmark are entries too, so that no delta overtakes them.

The queue never waits: the producer reads ``full``, and the consumer gets ``None`` from an empty
queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Sequence
from itertools import islice

from aioinformer._core.objects.deltas import (
    Bookmark,
    Delta,
    QueueEntry,
    Replaced,
    Resync,
    StateEntry,
)
from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.stored import size_of

HIGH_MARK = 10_000
"""Entries at which the socket is no longer read: applying them takes about 50 ms."""
HIGH_BYTES = 32 * 1024 * 1024
"""Bytes at which the socket is no longer read. One event may exceed the limit."""


class DeltaFIFO:
    """A queue of deltas with one producer, whose order it keeps, and one consumer."""

    def __init__(
        self,
        known: Container[ObjectKey] | None = None,
        *,
        high_mark: int = HIGH_MARK,
        high_bytes: int = HIGH_BYTES,
    ) -> None:
        """Make an empty queue.

        Args:
            known: the keys in the store behind the queue. The deletion of an object that is neither
                known nor queued is dropped. Pass ``known`` only for a store that applies an entry
                before anything more is queued, which one that stages whole states in steps doesn't.
            high_mark: the number of entries at which the queue is ``full``.
            high_bytes: the bytes of JSON at which the queue is ``full``.
        """
        self._known = known
        self._high_mark = high_mark
        self._high_bytes = high_bytes
        self.entries: deque[QueueEntry] = deque()
        """The entries, to be read only. An attribute because it is read for every batch."""
        self._latest_deltas: dict[ObjectKey, Delta] = {}
        """The last delta of each object among the indexed entries."""
        self._indexed = 0
        """The number of oldest entries that are indexed; zero until a deletion needs the index."""
        self._bytes = 0
        self._queued_replaces = 0
        self._replace_in_progress = False
        """True if a whole state was popped, and may not be applied yet."""
        self._replaced = False

    # -- feeding -------------------------------------------------------------------------------

    def add(self, obj: KubeObject) -> None:
        """Queue the addition of ``obj``."""
        self.push(Delta("Added", obj))

    def update(self, obj: KubeObject) -> None:
        """Queue a change of ``obj``."""
        self.push(Delta("Updated", obj))

    def delete(self, obj: KubeObject) -> None:
        """Queue the deletion of ``obj``, whose last state this is."""
        self.push(Delta("Deleted", obj))

    def push(self, delta: Delta) -> None:
        """Queue a change, unless it is a redundant deletion."""
        self.extend((delta,))

    def extend(self, entries: Sequence[Delta | Bookmark]) -> bool:
        """Queue changes and bookmarks, but no redundant deletion; return True if ``full`` then."""
        append = self.entries.append
        for entry in entries:
            if isinstance(entry, Bookmark):
                self.bookmark(entry.resource_version, entry.scope)
                continue
            obj = entry.obj
            if entry.kind == "Deleted" and not self._is_new_deletion(obj.key):
                continue
            append(entry)
            self._bytes += len(obj.raw) or size_of(obj)
        # As ``full``, without a call for each piece of a watch.
        return len(self.entries) >= self._high_mark or self._bytes >= self._high_bytes

    def replace(self, objects: Sequence[KubeObject], resource_version: str) -> None:
        """Queue a whole new state of all objects that exist. See ``put`` for other states."""
        self.put(Replaced(objects, resource_version))

    def put(self, entry: StateEntry) -> None:
        """Queue an entry that isn't a change of the server's, behind all that is queued."""
        self.entries.append(entry)
        if isinstance(entry, Replaced):
            self._latest_deltas.clear()
            self._indexed = len(self.entries)
            self._queued_replaces += 1
            self._replaced = self._replaced or entry.is_whole

    def resync(self) -> None:
        """Queue a resync, unless one is queued, for a store of your own; informers don't use it."""
        if not any(isinstance(entry, Resync) for entry in self.entries):
            self.entries.append(Resync())

    def bookmark(self, resource_version: str, scope: str | None = None) -> None:
        """Queue a bookmark. Of several bookmarks of a scope in a row only the last is kept."""
        last = self.entries[-1] if self.entries else None
        if isinstance(last, Bookmark) and last.scope == scope:
            self.entries.pop()
        self.entries.append(Bookmark(resource_version, scope=scope))

    def _is_new_deletion(self, key: ObjectKey) -> bool:
        self._index_entries()
        newest = self._latest_deltas.get(key)
        if newest is not None:
            return newest.kind != "Deleted"
        # Until a whole state is applied, the keys that will be known can't be determined.
        return (
            self._known is None
            or self._queued_replaces > 0
            or self._replace_in_progress
            or key in self._known
        )

    def _index_entries(self) -> None:
        found: dict[ObjectKey, Delta] = {}
        for entry in islice(reversed(self.entries), len(self.entries) - self._indexed):
            if isinstance(entry, Delta):
                found.setdefault(entry.obj.key, entry)
        self._latest_deltas.update(found)
        self._indexed = len(self.entries)

    # -- draining ------------------------------------------------------------------------------

    def pop(self) -> QueueEntry | None:
        """Remove and return the oldest entry; ``None`` if the queue is empty.

        The call also acknowledges that the previous entry was applied completely, in all its steps.
        """
        self._replace_in_progress = False
        if not self.entries:
            return None
        entry = self.entries.popleft()
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
        """Return the queued deltas of one object, the oldest first. Reads the whole queue."""
        return tuple(e for e in self.entries if isinstance(e, Delta) and e.obj.key == key)

    @property
    def synced(self) -> bool:
        """True if a whole state was queued and popped."""
        return self._replaced and not self._queued_replaces

    @property
    def full(self) -> bool:
        """True if the producer should pause. The queue accepts further entries all the same."""
        return len(self.entries) >= self._high_mark or self._bytes >= self._high_bytes

    @property
    def size(self) -> int:
        """Bytes of JSON in queued deltas; whole states, which move to the cache, don't count."""
        return self._bytes

    def __len__(self) -> int:
        return len(self.entries)

    def __repr__(self) -> str:
        return f"<DeltaFIFO entries={len(self.entries)} size={self._bytes} B>"
