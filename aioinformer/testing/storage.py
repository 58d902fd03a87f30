"""What a cluster holds: a collection a resource, one resourceVersion counter, history, watches.

``store`` is the one place where anything changes; everything that is told of a change follows
from it there, in one order.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from aioinformer._core.resources import BUILT_IN, Resource, find_built_in
from aioinformer.testing import statuses
from aioinformer.testing.collection import Collection
from aioinformer.testing.encoding import Encoding, Stored
from aioinformer.testing.history import Change, History
from aioinformer.testing.subresources import built_in_status
from aioinformer.testing.watches import Watch

__all__ = ["Snapshot", "Storage"]

FIRST_VERSION = 1
"""The resourceVersion of an empty cluster; 0 means "any" in requests."""

_BUILT_IN_VERSIONS = frozenset(resource.api_version for resource in BUILT_IN)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a cluster at one moment, as a backup of its etcd holds it."""

    version: int
    """The newest resourceVersion then."""
    objects: Mapping[Resource, tuple[Stored, ...]]
    """By resource; every resource that was served is there."""

    def __repr__(self) -> str:
        return f"<Snapshot rv={self.version} {sum(map(len, self.objects.values()))} objects>"


class Storage:
    """Everything a cluster knows."""

    def __init__(self, window: int) -> None:
        """Make an empty storage that serves the built-in resources.

        Args:
            window: changes that are remembered.
        """
        self.version = FIRST_VERSION
        """The newest resourceVersion: that of the last write."""
        self.history = History(window, FIRST_VERSION)
        self.collections: dict[tuple[str, str, str], Collection] = {}
        self.with_status = {resource for resource in BUILT_IN if built_in_status(resource)}
        """Those whose status requests write through a subresource alone."""
        self._names: dict[str, Resource] = {}
        self._watches: dict[Resource, list[Watch]] = {}
        self._expected: dict[Callable[[], None], int] = {}
        for resource in BUILT_IN:
            self.collections[_identity(resource)] = Collection(Encoding(resource))
        self._index_names()

    # -- resources ----------------------------------------------------------------------------

    @property
    def resources(self) -> tuple[Resource, ...]:
        """Everything that is served."""
        return tuple(collection.encoding.resource for collection in self.collections.values())

    def add(self, resource: Resource, *, status: bool = False) -> None:
        """Serve a resource; ``status`` with that subresource."""
        if status:
            self.with_status.add(resource)
        self.collections.setdefault(_identity(resource), Collection(Encoding(resource)))
        self._index_names()

    def remove(self, collection: Collection) -> None:
        """Serve it no longer: its objects are deleted one by one, then its watches end."""
        resource = collection.encoding.resource
        for stored in list(collection.objects.values()):
            self.store(collection, stored, None)
        del self.collections[_identity(resource)]
        self._index_names()
        for watch in self._watches.pop(resource, []):
            watch.finish(bookmark=True)

    def find(self, resource: str | Resource) -> Collection:
        """The objects of a resource.

        Raises:
            UnknownResource: nothing that is served has this name.
            NotFound: the ``Resource`` isn't served.
        """
        if isinstance(resource, str):
            resource = self._named(resource)
        found = self.collections.get(_identity(resource))
        if found is not None:
            return found
        known = resource.api_version in _BUILT_IN_VERSIONS
        raise statuses.resource_not_found() if known else statuses.page_not_found()

    def _named(self, name: str) -> Resource:
        found = self._names.get(name.lower())
        return found or find_built_in(name)  # which knows how to say that there is none

    def _index_names(self) -> None:
        self._names.clear()
        for resource in self.resources:
            for name in resource.names():
                self._names.setdefault(name, resource)  # built-in names come first

    # -- changes ------------------------------------------------------------------------------

    def store(
        self, collection: Collection, old: Stored | None, body: dict[str, Any] | None
    ) -> Stored:
        """Write an object's next state, or remove it (``None``); what watches are shown of it."""
        version = self.version + 1
        new = None
        if body is not None:
            metadata = body["metadata"] | {"resourceVersion": str(version)}
            new = Stored(collection.encoding, body | {"metadata": metadata}, version)
        change = Change(version, collection.encoding.resource, old, new)
        self.version = version  # from here on nothing can fail
        if new is not None:
            collection.put(new)
        elif old is not None:
            collection.remove(old.key)
        self.history.append(change)
        for watch in list(self._watches.get(change.resource, ())):
            watch.offer(change)
        self._announce()
        return new or change.gone

    @contextmanager
    def expecting(self, version: int, reached: Callable[[], None]) -> Generator[None]:
        """Within the context, call ``reached`` once ``version`` is there."""
        self._expected[reached] = version
        try:
            self._announce()
            yield
        finally:
            self._expected.pop(reached, None)

    def _announce(self) -> None:
        for reached, version in list(self._expected.items()):
            if version <= self.version:
                del self._expected[reached]
                reached()

    def attach(self, watch: Watch) -> None:
        """Tell a watch of every change from now on."""
        self._watches.setdefault(watch.encoding.resource, []).append(watch)

    def detach(self, watch: Watch) -> None:
        """Tell it nothing more."""
        watches = self._watches.get(watch.encoding.resource, [])
        if watch in watches:
            watches.remove(watch)

    # -- the past -----------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """The present."""
        objects = {
            one.encoding.resource: tuple(one.objects.values()) for one in self.collections.values()
        }
        return Snapshot(self.version, objects)

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a state: objects and counter. Watches end; no history is left."""
        for watch in [watch for watches in self._watches.values() for watch in watches]:
            watch.close()
        self._watches.clear()
        self.collections = {}
        for resource, objects in snapshot.objects.items():
            self.collections[_identity(resource)] = collection = Collection(Encoding(resource))
            for stored in objects:
                collection.put(stored)
        self._index_names()
        self.version = snapshot.version
        self.history = History(self.history.window, snapshot.version)
        self._announce()

    def __repr__(self) -> str:
        objects = sum(map(len, self.collections.values()))
        watches = sum(map(len, self._watches.values()))
        return f"<Storage rv={self.version} {objects} objects {watches} watches>"


def _identity(resource: Resource) -> tuple[str, str, str]:
    return resource.group, resource.version, resource.plural
