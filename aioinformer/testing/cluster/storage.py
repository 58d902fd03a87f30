"""The content of a cluster: a collection for each resource, the version counter, the change log.

``Storage.store`` is the only place where an object changes. In one step it stores the new state,
appends the change to the log, adds the event to the open watches and wakes requests that wait for a
version. Therefore all of them agree on the order of changes.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Protocol

from aioinformer._core.objects.resources import BUILT_IN, Resource, find_built_in
from aioinformer._core.quantities import quantity
from aioinformer.testing.cluster.history import ChangeLog, StoredChange
from aioinformer.testing.cluster.watches import OpenWatches, Watch
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import Encoding, StoredObject
from aioinformer.testing.wire.served_resources import (
    BUILT_IN_SERVED,
    STATUS,
    ApiResource,
    ServedResources,
)
from aioinformer.testing.writes import events

FIRST_VERSION = 1
"""The resourceVersion of an empty cluster; 0 means "any" in requests."""

KEPT_BODIES = 1_000
"""The latest states that were written or read for a write, whose bodies stay decoded for the next
write. All other bodies are decoded when they are needed."""

_UNCHANGED = object()
"""An object that no later change touched; ``None`` is one that didn't exist yet."""


# -- one resource ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CollectionSnapshot:
    """A state of a collection: its keys in order, and the object of each key.

    Nothing is copied: a past state is the present one and the states that later changes replaced.
    """

    keys: Sequence[str]
    objects: Mapping[str, StoredObject]
    previous_states: Mapping[str, StoredObject | None]
    """The states that later changes replaced; they hide those in ``objects``."""

    def __getitem__(self, key: str) -> StoredObject:
        return self.previous_states.get(key) or self.objects[key]


class ObjectRules(Protocol):
    """The rules of one resource for its objects."""

    def prepare(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a sent body in the form in which it is stored."""
        ...

    def check(self, body: dict[str, Any]) -> None:
        """Raise ``Invalid`` if the body can't be stored."""

    def unknown_fields(self, body: dict[str, Any]) -> Sequence[str]:
        """Return the paths of the fields that ``prepare`` drops."""
        ...


@dataclass(frozen=True, slots=True)
class Mirror:
    """The relation of a version to the version in which its objects are stored."""

    base: Collection
    to_base: Callable[[dict[str, Any]], dict[str, Any]]
    from_base: Callable[[dict[str, Any]], dict[str, Any]]


class Collection:
    """The objects of one resource, in key order, now and as of an earlier resourceVersion."""

    def __init__(self, encoding: Encoding) -> None:
        self.encoding = encoding
        self.rules: ObjectRules | None = None
        """The rules of the resource's definition; ``None`` if objects are stored as sent."""
        self.mirror: Mirror | None = None
        """The place where the objects are stored, if this is another version of them."""
        self.mirrors: list[Collection] = []
        self.objects: dict[str, StoredObject] = {}
        self._keys: list[str] = []

    def put(self, stored: StoredObject) -> None:
        key = stored.key
        if key not in self.objects:
            insort(self._keys, key)
        self.objects[key] = stored

    def remove(self, key: str) -> None:
        del self.objects[key]
        del self._keys[bisect_left(self._keys, key)]

    def snapshot_before(
        self, changes: Iterable[StoredChange], *, prefix: str = "", start: str = ""
    ) -> CollectionSnapshot:
        """Return the state before ``changes``, which are all since then, oldest first.

        ``prefix`` is ``namespace/``, or empty for all keys; ``start`` is the first wanted key.
        """
        undone: dict[str, StoredObject | None] = {}
        for change in changes:
            touched = change.old or change.new
            if touched is not None:
                undone.setdefault(touched.key, change.old)  # the first change saw the wanted state
        low = bisect_left(self._keys, max(prefix, start))
        high = bisect_left(self._keys, _prefix_end(prefix)) if prefix else len(self._keys)
        keys = self._keys[low:high]
        if undone:
            # Deleted objects come back, and objects created since then are left out.
            touched_keys = {key for key in undone if key >= start and key.startswith(prefix)}
            keys = sorted(touched_keys.union(keys))
            keys = [key for key in keys if undone.get(key, _UNCHANGED) is not None]
        return CollectionSnapshot(keys, self.objects, undone)

    def mirror_change(self, change: StoredChange) -> StoredChange:
        """Apply a change of the stored version to this version of the objects; return it."""
        if self.mirror is None:
            raise ValueError(f"{self.encoding.resource} is no other version of stored objects")
        old, new = self._find(change.old), None
        if change.new is not None:
            new = self._mirror_state(change.new, self.mirror)
            self.put(new)
        elif old is not None:
            self.remove(old.key)
        return StoredChange(change.version, self.encoding.resource, old, new)

    def refresh_mirror(self) -> None:
        """Read all objects from the stored version again."""
        if self.mirror is not None:
            for stored in self.mirror.base.objects.values():
                self.put(self._mirror_state(stored, self.mirror))

    def _find(self, stored: StoredObject | None) -> StoredObject | None:
        return self.objects.get(stored.key) if stored is not None else None

    def _mirror_state(self, stored: StoredObject, mirror: Mirror) -> StoredObject:
        body = mirror.from_base(stored.body) | {"metadata": stored.metadata}
        return StoredObject(self.encoding, body, stored.version)

    def __len__(self) -> int:
        return len(self._keys)

    def __repr__(self) -> str:
        return f"<Collection {self.encoding.resource} {quantity(len(self), 'object')}>"


def _prefix_end(prefix: str) -> str:
    """Return the smallest string that is greater than all strings with this prefix."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)


# -- all resources -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a cluster at one moment, as a backup of its etcd holds it."""

    version: int
    objects: Mapping[Resource, tuple[StoredObject, ...]]
    """Every served resource has an entry, an empty one if need be."""
    served: ServedResources

    def __repr__(self) -> str:
        count = sum(map(len, self.objects.values()))
        return f"<Snapshot rv={self.version} {quantity(count, 'object')}>"


class Storage:
    """All resources of a cluster, and the watches that are open on them."""

    def __init__(self, window: int, start: int = FIRST_VERSION) -> None:
        """Make an empty storage that keeps ``window`` changes after the version ``start``."""
        self.version = start
        self.change_log = ChangeLog(window, start)
        self.collections: dict[tuple[str, str, str], Collection] = {}
        """The collections by group, version and plural name."""
        self.served = ServedResources(BUILT_IN_SERVED)
        self.observers: list[Callable[[StoredChange], None]] = []
        """Called after each change: the controllers of the cluster."""
        self._names: dict[str, Resource] = {}
        self._watches = OpenWatches()
        self._bookmarks_requested = False
        self._recent: deque[StoredObject] = deque()
        self._version_callbacks: dict[Callable[[], None], int] = {}
        for resource in BUILT_IN:
            self.collections[_resource_key(resource)] = Collection(Encoding(resource))
        self._link_events()
        self._index_names()

    # -- resources -----------------------------------------------------------------------------

    @property
    def resources(self) -> tuple[Resource, ...]:
        return tuple(collection.encoding.resource for collection in self.collections.values())

    def add(self, added: ApiResource) -> None:
        resource = added.resource
        self.collections.setdefault(_resource_key(resource), Collection(Encoding(resource)))
        self._set_served([*self._others(resource), added])

    def has_status(self, resource: Resource) -> bool:
        """Return True if the status is written through its subresource alone."""
        served = self.served.find(resource)
        return served is not None and served.subresource(STATUS.name) is not None

    def _others(self, resource: Resource) -> list[ApiResource]:
        key = _resource_key(resource)
        return [each for each in self.served if _resource_key(each.resource) != key]

    def _set_served(self, served: Iterable[ApiResource]) -> None:
        self.served = ServedResources(served)
        self._index_names()

    def remove(self, collection: Collection) -> None:
        """Stop serving a resource: delete its objects one by one, then end its watches."""
        resource = collection.encoding.resource
        for stored in list(collection.objects.values()) if collection.mirror is None else ():
            self.store(collection, stored, None)
        if collection.mirror is not None:
            collection.mirror.base.mirrors.remove(collection)
        del self.collections[_resource_key(resource)]
        self._set_served(self._others(resource))
        for watch in self._watches.of(resource):
            watch.finish(bookmark=True)

    def find(self, resource: str | Resource) -> Collection:
        """Return the collection of a resource.

        Raises:
            UnknownResource: no served resource has this name.
            NotFound: the ``Resource`` is not served.
        """
        if isinstance(resource, str):
            resource = self._find_by_name(resource)
        collection = self.collections.get(_resource_key(resource))
        if collection is None:
            raise statuses.not_served(resource.api_version)
        return collection

    def _find_by_name(self, name: str) -> Resource:
        found = self._names.get(name.lower())
        return found or find_built_in(name)  # raises UnknownResource, with similar names in it

    def _index_names(self) -> None:
        self._names.clear()
        for resource in self.resources:
            for name in resource.names():
                # Built-in resources come first, so a custom one can't take their short names.
                self._names.setdefault(name, resource)

    def add_mirror(self, collection: Collection, mirror: Mirror) -> None:
        """Serve the objects of another collection in this one too, in another form."""
        collection.mirror = mirror
        mirror.base.mirrors.append(collection)
        collection.refresh_mirror()

    def _link_events(self) -> None:
        """Make the Events of both groups one store."""
        core, group = find_built_in("events"), find_built_in("events.events.k8s.io")
        mirror = Mirror(self.find(core), events.to_core, events.from_core)
        self.add_mirror(self.find(group), mirror)

    # -- changes -------------------------------------------------------------------------------

    def store(
        self, collection: Collection, old: StoredObject | None, body: dict[str, Any] | None
    ) -> StoredObject:
        """Store the next state, or remove the object without a ``body``; return the shown state."""
        if collection.mirror is not None:
            return self._store_mirrored(collection, collection.mirror, old, body)
        return self._store(collection, old, body).shown_state

    def _store_mirrored(
        self,
        collection: Collection,
        mirror: Mirror,
        old: StoredObject | None,
        body: dict[str, Any] | None,
    ) -> StoredObject:
        present = mirror.base.objects.get(old.key) if old is not None else None
        stored = None if body is None else mirror.to_base(body)
        change = self._store(mirror.base, present, stored).of(collection.encoding.resource)
        if change is None:
            raise ValueError(f"{collection!r} is not attached to {mirror.base!r}")
        return change.shown_state

    def _store(
        self, collection: Collection, old: StoredObject | None, body: dict[str, Any] | None
    ) -> StoredChange:
        version = self.version + 1
        new = None
        if body is not None:
            metadata = body["metadata"] | {"resourceVersion": str(version)}
            new = StoredObject(collection.encoding, body | {"metadata": metadata}, version)
        change = StoredChange(version, collection.encoding.resource, old, new)
        # Nothing below can fail: encoding the body, which can, is done.
        self.version = version
        if new is not None:
            collection.put(new)
        elif old is not None:
            collection.remove(old.key)
        if collection.mirrors:
            change.mirrored = tuple(each.mirror_change(change) for each in collection.mirrors)
        self.change_log.append(change)
        self._watches.add_change(change)
        for mirrored in change.mirrored:
            self._watches.add_change(mirrored)
        if self._version_callbacks:
            self._call_reached()
        for observe in self.observers:
            observe(change)
        if new is not None:
            self.keep_body(new)
        return change

    def keep_body(self, stored: StoredObject) -> None:
        """Keep the decoded body of a state until ``KEPT_BODIES`` others have come."""
        stored.keep_body()
        self._recent.append(stored)
        if len(self._recent) > KEPT_BODIES:
            self._recent.popleft().release_body()

    def convert(
        self, collection: Collection, change: Callable[[dict[str, Any]], dict[str, Any]]
    ) -> None:
        """Show a resource's objects in another form, under the versions that they have."""

        def convert(stored: StoredObject) -> StoredObject:
            body = change(deepcopy(stored.body))
            body["metadata"] = stored.metadata
            return StoredObject(stored.encoding, body, stored.version)

        for stored in list(collection.objects.values()):
            collection.put(convert(stored))
        for mirrored in collection.mirrors:
            mirrored.refresh_mirror()
        self.change_log.convert(collection.encoding.resource, convert)

    def restart_watches(self, resource: Resource) -> None:
        """End a resource's watches, and serve none from before, as after a new definition."""
        self.version += 1
        self.change_log.append(StoredChange(self.version, resource, None, None))
        self.change_log.restart_resource(resource, self.version)
        for watch in self._watches.of(resource):
            watch.finish()
        self._call_reached()

    @contextmanager
    def expecting(self, version: int, reached: Callable[[], None]) -> Generator[None]:
        """Within the context, call ``reached`` once when ``version`` is reached."""
        self._version_callbacks[reached] = version
        try:
            self._call_reached()
            yield
        finally:
            self._version_callbacks.pop(reached, None)

    def _call_reached(self) -> None:
        for reached, version in list(self._version_callbacks.items()):
            if version <= self.version:
                del self._version_callbacks[reached]
                reached()

    def attach(self, watch: Watch) -> None:
        """Add every change from now on to a watch."""
        self._watches.add(watch)
        if self._bookmarks_requested:
            # The client has measured a short interval by now, which holds for its next watch too.
            watch.request_bookmark()

    def detach(self, watch: Watch) -> None:
        """Add no more changes to a watch."""
        self._watches.discard(watch)

    def request_bookmarks(self) -> None:
        """Have each open watch send a bookmark soon, and all watches send more from now on."""
        self._bookmarks_requested = True
        for watch in list(self._watches):
            watch.request_bookmark()

    # -- snapshots -----------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        return Snapshot(
            self.version,
            {
                collection.encoding.resource: tuple(collection.objects.values())
                for collection in self.collections.values()
            },
            self.served,
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a state: objects and version counter. Close all watches, keep no history."""
        for watch in list(self._watches):
            watch.close()
        self.collections = {}
        for resource, objects in snapshot.objects.items():
            self.collections[_resource_key(resource)] = collection = Collection(Encoding(resource))
            for stored in objects:
                collection.put(stored)
        self._link_events()
        self._set_served(snapshot.served)
        self.version = snapshot.version
        self.change_log = ChangeLog(self.change_log.window, snapshot.version)
        self._call_reached()

    def __repr__(self) -> str:
        objects = quantity(sum(map(len, self.collections.values())), "object")
        watches = f"{len(self._watches)} watch{'es' * (len(self._watches) != 1)}"
        return f"<Storage rv={self.version} {objects} {watches}>"


def _resource_key(resource: Resource) -> tuple[str, str, str]:
    return resource.group, resource.version, resource.plural
