"""A bounded window of recent changes, and the compaction that empties it.

The window serves watches that start in the past, and lists of the state at an earlier
resourceVersion: the present state with the later changes undone. A request for a version before the
window is answered with 410. A real server keeps some minutes (etcd) and some number of events (its
watch cache); here the limit is a number alone, so that tests decide.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from aioinformer._core.objects.resources import Resource
from aioinformer._core.quantities import quantity
from aioinformer.testing.wire.encoding import ObjectEncoder, StoredObject, WatchEventType


@dataclass(slots=True, eq=False)
class StoredChange:
    """One write: the stored state before and after it. ``None`` stands for no object."""

    version: int
    resource: Resource
    old: StoredObject | None
    new: StoredObject | None
    mirrored: tuple[StoredChange, ...] = ()
    """The same change in the other versions in which the object is served."""
    _encoded_events: dict[tuple[WatchEventType, ObjectEncoder], bytes] = field(
        default_factory=dict[tuple[WatchEventType, ObjectEncoder], bytes]
    )
    """The events that were encoded so far: one encoding serves all watches of a form."""

    def of(self, resource: Resource) -> StoredChange | None:
        """Return the change as a change of ``resource``; ``None`` if it is one of another."""
        if self.resource == resource:
            return self
        return next((each for each in self.mirrored if each.resource == resource), None)

    def encode_event(
        self, encoder: ObjectEncoder, *, selected_before: bool, selected_after: bool
    ) -> bytes | None:
        """Return the event for a watch that selects the old state, the new one, both or neither.

        An object that leaves a selection is DELETED for that watch, and an object that enters the
        selection is ADDED. DELETED shows the last selected state at this change's version.
        """
        if selected_after:
            return self._encode_cached(encoder, "MODIFIED" if selected_before else "ADDED")
        return self._encode_cached(encoder, "DELETED") if selected_before else None

    def _encode_cached(self, encoder: ObjectEncoder, event: WatchEventType) -> bytes:
        line = self._encoded_events.get((event, encoder))
        if line is None:
            # An object can be DELETED for a watch and still exist: it left the selection.
            shown = self.deleted_state if event == "DELETED" or self.new is None else self.new
            line = self._encoded_events[event, encoder] = encoder.encode_event(event, shown)
        return line

    @property
    def shown_state(self) -> StoredObject:
        return self.new or self.deleted_state

    @property
    def deleted_state(self) -> StoredObject:
        """The old state at this change's version, as DELETED shows it."""
        if self.old is None:
            raise ValueError(
                f"the change at rv={self.version} has no old state: it created an object"
            )
        return self.old.with_version(self.version)


class ChangeLog:
    """The latest changes, oldest first."""

    def __init__(self, window: int, start: int) -> None:
        """Make an empty log of ``window`` changes after the resourceVersion ``start``."""
        if window < 0:
            raise ValueError(f"window must be 0 or more changes, not {window}")
        self.window = window
        self.compacted_version = start
        """The newest resourceVersion whose change is forgotten. A list can still show it."""
        self._watch_cache_start = start
        self._resource_starts: dict[Resource, int] = {}
        self._changes: deque[StoredChange] = deque()

    def oldest_watchable(self, resource: Resource) -> int:
        """Return the oldest resourceVersion that a watch of a resource can start from."""
        own = self._resource_starts.get(resource, 0)
        return max(self.compacted_version, self._watch_cache_start, own)

    def restart_resource(self, resource: Resource, newest: int) -> None:
        self._resource_starts[resource] = newest

    def empty_watch_cache(self, newest: int) -> None:
        """Serve no watch from a version before ``newest`` any more, as after a restart; lists go
        on.
        """
        self._watch_cache_start = newest

    def append(self, change: StoredChange) -> None:
        self._changes.append(change)
        while len(self._changes) > self.window:
            self.compacted_version = self._changes.popleft().version

    def convert(self, resource: Resource, convert: Callable[[StoredObject], StoredObject]) -> None:
        for number, change in enumerate(self._changes):
            if change.resource == resource:
                old, new = (state and convert(state) for state in (change.old, change.new))
                self._changes[number] = StoredChange(change.version, resource, old, new)

    def compact(self, to: int) -> None:
        """Forget the changes up to and including version ``to``."""
        while self._changes and self._changes[0].version <= to:
            self._changes.popleft()
        self.compacted_version = max(self.compacted_version, to)

    def changes_since(self, version: int, resource: Resource) -> Iterator[StoredChange]:
        # Versions have no gaps here, so the place of a change follows from its version.
        skipped = max(0, version - self.compacted_version)
        later = islice(self._changes, skipped, None)
        return (found for change in later if (found := change.of(resource)) is not None)

    def __repr__(self) -> str:
        changes = quantity(len(self._changes), "change")
        return f"<ChangeLog {changes} after rv={self.compacted_version}>"
