"""Recording and checking of the events that are delivered to a listener.

The tests of the embedded server and of the real one use this module, because the order of events
doesn't depend on the server.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from aioinformer import (
    Added,
    Deleted,
    DeleteReason,
    Event,
    KubeObject,
    ObjectKey,
    SharedInformer,
    Updated,
)


def version_number(obj: KubeObject) -> int:
    """Return the resourceVersion as a number. Both servers of these tests use numbers."""
    return int(obj.resource_version)


def states(objects: Iterable[KubeObject]) -> dict[ObjectKey, tuple[str, str]]:
    """Return the uid and resourceVersion of objects by key."""
    return {obj.key: (obj.uid, obj.resource_version) for obj in objects}


def check_event_order(events: Iterable[Event]) -> dict[ObjectKey, tuple[str, str]]:
    """Assert that events have a valid order, and return the resulting state."""
    held: dict[ObjectKey, KubeObject] = {}
    for event in events:
        match event:
            case Added(obj, _):
                assert obj.key not in held, f"added twice: {obj}"
                held[obj.key] = obj
            case Updated(old, new, resync):
                assert held.get(old.key) == old, f"{new} does not follow {held.get(old.key)}"
                assert old.uid == new.uid, f"an update across uids: {old} {new}"
                assert version_number(old) < version_number(new) or (resync and old is new)
                held[new.key] = new
            case Deleted(obj, _):
                assert obj.key in held, f"deleted but never added: {obj}"
                assert held.pop(obj.key).uid == obj.uid
    return states(held.values())


@dataclass
class RecordingHandler:
    """A handler that records its events and compares the cache with each of them."""

    informer: SharedInformer
    events: list[Event] = field(default_factory=list[Event])

    async def on_add(self, obj: KubeObject, /, *, initial: bool) -> None:
        self._check_cache_is_ahead(obj)
        self.events.append(Added(obj, initial))

    async def on_update(self, old: KubeObject, new: KubeObject, /, *, resync: bool) -> None:
        self._check_cache_is_ahead(new)
        self.events.append(Updated(old, new, resync))

    async def on_delete(self, obj: KubeObject, /, *, reason: DeleteReason) -> None:
        cached = self.informer.lister.unsynced.get(obj.key)
        assert cached is None or cached.uid != obj.uid, (
            f"the deletion of {cached} was delivered too early"
        )
        self.events.append(Deleted(obj, reason))

    def _check_cache_is_ahead(self, obj: KubeObject) -> None:
        cached = self.informer.lister.unsynced.get(obj.key)
        assert cached is None or version_number(cached) >= version_number(obj), (
            f"{cached} is behind {obj}"
        )
