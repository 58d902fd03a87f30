"""The newest state of each object that has changed since the last write to a cache file.

A thousand changes of one object cost one write. The changes of a list, as many as there are
objects, are kept as the batches that the listeners share, and are recorded in steps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TypeAlias

from aioinformer._core.objects.kube_object import Deleted, Event, KubeObject, ObjectKey

Changes: TypeAlias = dict[ObjectKey, KubeObject | None]
"""The newest state of each changed object; ``None`` for an object that no longer exists."""


class ChangeRecord:
    def __init__(self) -> None:
        self.changes: Changes = {}
        """The changes that were recorded, to be read only."""
        self._batches: deque[Sequence[Event]] = deque()
        """The batches of lists that were not recorded yet, and all batches after them."""

    def record(self, events: Sequence[Event]) -> None:
        """Record the events of one step of the pump."""
        if self._batches:
            self._batches.append(events)
        else:
            self._record_now(events)

    def record_list(self, batches: Sequence[Sequence[Event]]) -> None:
        """Record the changes of a list when ``step`` is called."""
        self._batches.extend(batches)

    def step(self) -> bool:
        """Record one waiting batch. Return True if none is left."""
        if self._batches:
            self._record_now(self._batches.popleft())
        return not self._batches

    def _record_now(self, events: Sequence[Event]) -> None:
        changes = self.changes
        for event in events:
            obj = event.obj
            changes[obj.key] = None if type(event) is Deleted else obj

    def clear(self) -> None:
        self.changes, self._batches = {}, deque()

    def __len__(self) -> int:
        return len(self.changes) + sum(map(len, self._batches))

    def __repr__(self) -> str:
        return f"<ChangeRecord changes={len(self)}>"
