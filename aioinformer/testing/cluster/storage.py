"""What a cluster holds: a collection a resource, one resourceVersion counter, history, watches.

``store`` is the one place where anything changes; everything that is told of a change follows
from it there, in one order.

The objects of one resource, in key order, now and as of an earlier resourceVersion.

Which built-in resources have a status subresource; custom ones say so when they are added.

Where there is one, a request to the object itself leaves the status alone, and a request to the
subresource everything else. Source: the discovery documents of Kubernetes 1.36.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from aioinformer._core.objects.resources import BUILT_IN, Resource, find_built_in
from aioinformer.testing.cluster.history import ChangeLog, StoredChange
from aioinformer.testing.cluster.watches import Watch
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import Encoding, StoredObject

__all__ = ["Snapshot", "Storage", "has_built_in_status"]


@dataclass(frozen=True, slots=True)
class CollectionSnapshot:
    """A state of a collection: keys in order, and what each held."""

    keys: Sequence[str]
    objects: Mapping[str, StoredObject]
    previous_states: Mapping[str, StoredObject | None]
    """What later changes replaced."""

    def __getitem__(self, key: str) -> StoredObject:
        return self.previous_states.get(key) or self.objects[key]


class Collection:
    """The objects of one resource."""

    def __init__(self, encoding: Encoding) -> None:
        self.encoding = encoding
        self.objects: dict[str, StoredObject] = {}
        self._keys: list[str] = []

    def put(self, stored: StoredObject) -> None:
        """Store a new object, or a new state of one."""
        key = stored.key
        if key not in self.objects:
            insort(self._keys, key)
        self.objects[key] = stored

    def remove(self, key: str) -> None:
        """Forget an object."""
        del self.objects[key]
        del self._keys[bisect_left(self._keys, key)]

    def snapshot_before(
        self, changes: Iterable[StoredChange], *, prefix: str = "", start: str = ""
    ) -> CollectionSnapshot:
        """The state before the changes ``changes``, which are given oldest first.

        Args:
            changes: every change since.
            prefix: how the wanted keys begin: ``namespace/``, or empty.
            start: the first key wanted.
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
            there = {key for key in undone if key >= start and key.startswith(prefix)}
            keys = sorted(there.union(keys))
            keys = [key for key in keys if undone.get(key, _UNCHANGED) is not None]
        return CollectionSnapshot(keys, self.objects, undone)

    def __len__(self) -> int:
        return len(self._keys)

    def __repr__(self) -> str:
        return f"<Collection {self.encoding.resource} {len(self)} objects>"


_UNCHANGED = object()


def _prefix_end(prefix: str) -> str:
    """The first string after all those that begin with ``prefix``."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)


_WITH_STATUS = frozenset(
    (
        *("namespaces", "nodes", "persistentvolumeclaims", "persistentvolumes", "pods"),
        *("replicationcontrollers", "resourcequotas", "services"),
        *("daemonsets.apps", "deployments.apps", "replicasets.apps", "statefulsets.apps"),
        *("cronjobs.batch", "jobs.batch", "horizontalpodautoscalers.autoscaling"),
        *("poddisruptionbudgets.policy", "ingresses.networking.k8s.io"),
        *("servicecidrs.networking.k8s.io", "volumeattachments.storage.k8s.io"),
        "certificatesigningrequests.certificates.k8s.io",
        "flowschemas.flowcontrol.apiserver.k8s.io",
        "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "customresourcedefinitions.apiextensions.k8s.io",
        "apiservices.apiregistration.k8s.io",
        "resourceclaims.resource.k8s.io",
    )
)


def has_built_in_status(resource: Resource) -> bool:
    """Whether it is a built-in one that has it."""
    return str(resource) in _WITH_STATUS


FIRST_VERSION = 1
"""The resourceVersion of an empty cluster; 0 means "any" in requests."""

_BUILT_IN_VERSIONS = frozenset(resource.api_version for resource in BUILT_IN)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a cluster at one moment, as a backup of its etcd holds it."""

    version: int
    """The newest resourceVersion then."""
    objects: Mapping[Resource, tuple[StoredObject, ...]]
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
        self.change_log = ChangeLog(window, FIRST_VERSION)
        self.collections: dict[tuple[str, str, str], Collection] = {}
        self.with_status = {resource for resource in BUILT_IN if has_built_in_status(resource)}
        """Those whose status requests write through a subresource alone."""
        self._names: dict[str, Resource] = {}
        self._watches: dict[Resource, list[Watch]] = {}
        self._version_callbacks: dict[Callable[[], None], int] = {}
        for resource in BUILT_IN:
            self.collections[_resource_key(resource)] = Collection(Encoding(resource))
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
        self.collections.setdefault(_resource_key(resource), Collection(Encoding(resource)))
        self._index_names()

    def remove(self, collection: Collection) -> None:
        """Serve it no longer: its objects are deleted one by one, then its watches end."""
        resource = collection.encoding.resource
        for stored in list(collection.objects.values()):
            self.store(collection, stored, None)
        del self.collections[_resource_key(resource)]
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
            resource = self._find_by_name(resource)
        found = self.collections.get(_resource_key(resource))
        if found is not None:
            return found
        known = resource.api_version in _BUILT_IN_VERSIONS
        raise statuses.resource_not_found() if known else statuses.page_not_found()

    def _find_by_name(self, name: str) -> Resource:
        found = self._names.get(name.lower())
        return found or find_built_in(name)  # which knows how to say that there is none

    def _index_names(self) -> None:
        self._names.clear()
        for resource in self.resources:
            for name in resource.names():
                self._names.setdefault(name, resource)  # built-in names come first

    # -- changes ------------------------------------------------------------------------------

    def store(
        self, collection: Collection, old: StoredObject | None, body: dict[str, Any] | None
    ) -> StoredObject:
        """Write an object's next state, or remove it (``None``); what watches are shown of it."""
        version = self.version + 1
        new = None
        if body is not None:
            metadata = body["metadata"] | {"resourceVersion": str(version)}
            new = StoredObject(collection.encoding, body | {"metadata": metadata}, version)
        change = StoredChange(version, collection.encoding.resource, old, new)
        self.version = version  # from here on nothing can fail
        if new is not None:
            collection.put(new)
        elif old is not None:
            collection.remove(old.key)
        self.change_log.append(change)
        for watch in list(self._watches.get(change.resource, ())):
            watch.add_change(change)
        self._call_reached()
        return new or change.deleted_state

    @contextmanager
    def expecting(self, version: int, reached: Callable[[], None]) -> Generator[None]:
        """Within the context, call ``reached`` once ``version`` is there."""
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
            self.collections[_resource_key(resource)] = collection = Collection(Encoding(resource))
            for stored in objects:
                collection.put(stored)
        self._index_names()
        self.version = snapshot.version
        self.change_log = ChangeLog(self.change_log.window, snapshot.version)
        self._call_reached()

    def __repr__(self) -> str:
        objects = sum(map(len, self.collections.values()))
        watches = sum(map(len, self._watches.values()))
        return f"<Storage rv={self.version} {objects} objects {watches} watches>"


def _resource_key(resource: Resource) -> tuple[str, str, str]:
    return resource.group, resource.version, resource.plural
