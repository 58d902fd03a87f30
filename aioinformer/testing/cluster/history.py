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
from aioinformer.testing.wire.encoding import EventType, Form, Stored

__all__ = ["Change", "History"]


@dataclass(slots=True, eq=False)
class Change:
    """One write: what was stored before and what after it; ``None`` where there was nothing."""

    version: int
    resource: Resource
    old: Stored | None
    new: Stored | None
    _lines: dict[tuple[EventType, Form], bytes] = field(
        default_factory=dict[tuple[EventType, Form], bytes]
    )
    """Events already encoded: one encoding for all watches of a form."""

    def line(self, form: Form, *, seen_before: bool, seen_after: bool) -> bytes | None:
        """The event for a watch that selects the old state, the new one, both or neither.

        An object that leaves a selection is DELETED for it, one that enters is ADDED; DELETED
        shows the last state that was selected, at this change's version (recording 31).
        """
        if seen_after:
            return self._event(form, "MODIFIED" if seen_before else "ADDED")
        return self._event(form, "DELETED") if seen_before else None

    def _event(self, form: Form, event: EventType) -> bytes:
        line = self._lines.get((event, form))
        if line is None:
            shown = self.gone if event == "DELETED" or self.new is None else self.new
            line = self._lines[event, form] = form.line(event, shown)
        return line

    @property
    def gone(self) -> Stored:
        """The old state at this change's version: what DELETED shows."""
        if self.old is None:
            raise ValueError(f"nothing was there before rv={self.version}")
        return self.old.at(self.version)


class History:
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
        self.compacted = start
        """The newest resourceVersion whose change is forgotten; a list may still show it."""
        self._cached_from = start
        self._changes: deque[Change] = deque()

    @property
    def watchable(self) -> int:
        """The oldest resourceVersion that a watch may start from."""
        return max(self.compacted, self._cached_from)

    def empty_watch_cache(self, newest: int) -> None:
        """Serve no watch from before ``newest`` any more; lists aren't touched.

        A restarted server begins so: its lists are etcd's, its watches its own cache's.
        """
        self._cached_from = newest

    def append(self, change: Change) -> None:
        """Remember a change, and forget the oldest if there are too many."""
        self._changes.append(change)
        while len(self._changes) > self.window:
            self.compacted = self._changes.popleft().version

    def compact(self, to: int) -> None:
        """Forget the changes up to and including version ``to``."""
        while self._changes and self._changes[0].version <= to:
            self._changes.popleft()
        self.compacted = max(self.compacted, to)

    def since(self, version: int, resource: Resource) -> Iterator[Change]:
        """The changes of a resource after ``version``, oldest first."""
        # Versions have no gaps here, so the place of a change follows from its version.
        skipped = max(0, version - self.compacted)
        later = islice(self._changes, skipped, None)
        return (change for change in later if change.resource == resource)

    def __repr__(self) -> str:
        return f"<History {len(self._changes)} changes after rv={self.compacted}>"
