"""What happened lately: a bounded window of changes, and the compaction that empties it.

A watch that starts in the past is served from here, and so is a list of the state at an earlier
resourceVersion, which is the present with the later changes undone. What is older than the
window is answered with 410. A real server keeps minutes (etcd) and a number of events (its watch
cache); here it is a number alone, so that tests decide.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from aioinformer._core.objects.resources import Resource
from aioinformer.testing.wire.encoding import ObjectEncoder, StoredObject, WatchEventType

__all__ = ["ChangeLog", "StoredChange"]


@dataclass(slots=True, eq=False)
class StoredChange:
    """One write: what was stored before and what after it; ``None`` where there was nothing."""

    version: int
    resource: Resource
    old: StoredObject | None
    new: StoredObject | None
    _encoded_events: dict[tuple[WatchEventType, ObjectEncoder], bytes] = field(
        default_factory=dict[tuple[WatchEventType, ObjectEncoder], bytes]
    )
    """Events already encoded: one encoding for all watches of a form."""

    def encode_event(
        self, encoder: ObjectEncoder, *, selected_before: bool, selected_after: bool
    ) -> bytes | None:
        """The event for a watch that selects the old state, the new one, both or neither.

        An object that leaves a selection is DELETED for it, one that enters is ADDED; DELETED
        shows the last state that was selected, at this change's version (recording 31).
        """
        if selected_after:
            return self._encode_cached(encoder, "MODIFIED" if selected_before else "ADDED")
        return self._encode_cached(encoder, "DELETED") if selected_before else None

    def _encode_cached(self, encoder: ObjectEncoder, event: WatchEventType) -> bytes:
        line = self._encoded_events.get((event, encoder))
        if line is None:
            shown = self.deleted_state if event == "DELETED" or self.new is None else self.new
            line = self._encoded_events[event, encoder] = encoder.encode_event(event, shown)
        return line

    @property
    def deleted_state(self) -> StoredObject:
        """The old state at this change's version: what DELETED shows."""
        if self.old is None:
            raise ValueError(f"nothing was there before rv={self.version}")
        return self.old.with_version(self.version)


class ChangeLog:
    """The latest changes, oldest first."""

    def __init__(self, window: int, start: int) -> None:
        """Make an empty history.

        Args:
            window: how many changes are kept.
            start: the resourceVersion before the first change.
        """
        if window < 0:
            raise ValueError(f"window is a number of changes, not {window}")
        self.window = window
        self.compacted_version = start
        """The newest resourceVersion whose change is forgotten; a list may still show it."""
        self._watch_cache_start = start
        self._changes: deque[StoredChange] = deque()

    @property
    def oldest_watchable(self) -> int:
        """The oldest resourceVersion that a watch may start from."""
        return max(self.compacted_version, self._watch_cache_start)

    def empty_watch_cache(self, newest: int) -> None:
        """Serve no watch from before ``newest`` any more; lists aren't touched.

        A restarted server begins so: its lists are etcd's, its watches its own cache's.
        """
        self._watch_cache_start = newest

    def append(self, change: StoredChange) -> None:
        """Remember a change, and forget the oldest if there are too many."""
        self._changes.append(change)
        while len(self._changes) > self.window:
            self.compacted_version = self._changes.popleft().version

    def compact(self, to: int) -> None:
        """Forget the changes up to and including version ``to``."""
        while self._changes and self._changes[0].version <= to:
            self._changes.popleft()
        self.compacted_version = max(self.compacted_version, to)

    def changes_since(self, version: int, resource: Resource) -> Iterator[StoredChange]:
        """The changes of a resource after ``version``, oldest first."""
        # Versions have no gaps here, so the place of a change follows from its version.
        skipped = max(0, version - self.compacted_version)
        later = islice(self._changes, skipped, None)
        return (change for change in later if change.resource == resource)

    def __repr__(self) -> str:
        return f"<History {len(self._changes)} changes after rv={self.compacted_version}>"
