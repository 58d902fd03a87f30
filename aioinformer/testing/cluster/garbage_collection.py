"""Garbage collection: the deletion of the objects whose owners were deleted.

kube-controller-manager does this after each deletion, in the background; here the deletion itself
does it, so that every run gives the same result. The rules are those of its ``garbagecollector``:

Background   the owner is deleted, then its dependents
Foreground   the dependents are deleted first; the owner waits for those that block its deletion
Orphan       the dependents lose their reference to the owner

A dependent with another owner that still exists stays. Only a deletion starts a collection: a
reference to an owner that never existed is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from aioinformer.testing.cluster.history import StoredChange
from aioinformer.testing.cluster.registry import Preconditions, Registry
from aioinformer.testing.cluster.storage import Collection, Storage
from aioinformer.testing.wire.encoding import StoredObject

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
"""The finalizers of owners for which the garbage collector works."""


class GarbageCollector:
    def __init__(self, storage: Storage, registry: Registry) -> None:
        self._storage = storage
        self._registry = registry
        self._dependents: dict[str, set[tuple[Collection, str]]] = {}
        """The dependents by the uid of their owner."""

    def observe(self, change: StoredChange) -> None:
        """Follow the references of a change; collect what it leaves without an owner."""
        old, new = change.old, change.new
        before, after = _owners(old), _owners(new)
        if before or after:
            self._index(change, before.keys(), after.keys())
        if new is not None and "deletionTimestamp" in new.metadata:
            self._handle_marked(new)
        elif new is None and old is not None and old.uid in self._dependents:
            self._collect(old.uid)
        if old is not None:
            for uid in before.keys() - after.keys():
                self._finish_owner(before[uid], old)

    def rebuild(self) -> None:
        self._dependents.clear()
        for collection in self._storage.collections.values():
            for stored in collection.objects.values() if collection.mirror is None else ():
                for uid in _owners(stored):
                    self._dependents.setdefault(uid, set()).add((collection, stored.key))

    def _index(
        self, change: StoredChange, before: AbstractSet[str], after: AbstractSet[str]
    ) -> None:
        stored = change.new or change.old
        if stored is None:
            return
        place = (self._storage.find(change.resource), stored.key)
        for uid in before - after:
            self._dependents.get(uid, set()).discard(place)
        for uid in after:
            self._dependents.setdefault(uid, set()).add(place)

    def _dependents_of(self, uid: str) -> Iterator[tuple[Collection, StoredObject]]:
        for collection, key in sorted(self._dependents.get(uid, ()), key=_place_order):
            stored = collection.objects.get(key)
            if stored is not None and uid in _owners(stored):
                yield collection, stored

    # -- deletions -----------------------------------------------------------------------------

    def _collect(self, uid: str) -> None:
        """Delete the dependents of an owner that is deleted; keep those with another owner."""
        for collection, stored in self._dependents_of(uid):
            if self._has_other_owner(stored, uid):
                self._drop_reference(collection, stored, uid)
            elif "deletionTimestamp" not in stored.metadata:
                self._delete(collection, stored, "")
        self._dependents.pop(uid, None)

    def _handle_marked(self, owner: StoredObject) -> None:
        finalizers = owner.metadata.get("finalizers") or ()
        if ORPHAN in finalizers:
            for collection, stored in list(self._dependents_of(owner.uid)):
                self._drop_reference(collection, stored, owner.uid)
            self._drop_finalizer(owner, ORPHAN)
        elif FOREGROUND in finalizers:
            for collection, stored in list(self._dependents_of(owner.uid)):
                if "deletionTimestamp" in stored.metadata:
                    continue
                if self._has_other_owner(stored, owner.uid):
                    self._drop_reference(collection, stored, owner.uid)
                else:
                    self._delete(collection, stored, "Foreground")
            self._finish_foreground(owner)

    def _finish_foreground(self, owner: StoredObject) -> None:
        """Complete the deletion of an owner without blocking dependents."""
        blocking = (
            stored
            for _, stored in self._dependents_of(owner.uid)
            if _owners(stored)[owner.uid].get("blockOwnerDeletion")
        )
        if next(blocking, None) is None:
            self._drop_finalizer(owner, FOREGROUND)

    def _finish_owner(self, reference: Mapping[str, Any], dependent: StoredObject) -> None:
        owner = self._find_owner(reference, dependent)
        if owner is None or "deletionTimestamp" not in owner.metadata:
            return
        if FOREGROUND in (owner.metadata.get("finalizers") or ()):
            self._finish_foreground(owner)

    # -- steps ---------------------------------------------------------------------------------

    def _find_owner(
        self, reference: Mapping[str, Any], dependent: StoredObject
    ) -> StoredObject | None:
        """Return the owner that a reference names, if this very object still exists."""
        group = str(reference.get("apiVersion", "")).rpartition("/")[0]
        wanted, name = (group, reference.get("kind")), reference.get("name", "")
        for resource in self._storage.resources:
            if (resource.group, resource.kind) == wanted:
                key = f"{dependent.namespace}/{name}" if resource.namespaced else name
                found = self._storage.find(resource).objects.get(key)
                if found is not None and found.uid == reference["uid"]:
                    return found
        return None

    def _has_other_owner(self, stored: StoredObject, uid: str) -> bool:
        others = (each for other, each in _owners(stored).items() if other != uid)
        return any(self._find_owner(each, stored) is not None for each in others)

    def _delete(self, collection: Collection, stored: StoredObject, propagation: str) -> None:
        conditions = Preconditions(stored.uid, propagation=propagation)
        namespace = stored.namespace or None
        resource = collection.encoding.resource
        self._registry.delete(resource, stored.name, namespace, preconditions=conditions)

    def _drop_reference(self, collection: Collection, stored: StoredObject, uid: str) -> None:
        metadata = dict(stored.metadata)
        kept = [each for each in metadata["ownerReferences"] if each.get("uid") != uid]
        metadata["ownerReferences"] = kept
        if not kept:
            del metadata["ownerReferences"]
        self._storage.store(collection, stored, stored.body | {"metadata": metadata})

    def _drop_finalizer(self, owner: StoredObject, finalizer: str) -> None:
        collection = self._storage.find(owner.encoding.resource)
        present = collection.objects.get(owner.key)
        if present is None or present.uid != owner.uid:
            return
        metadata = dict(present.metadata)
        left = [each for each in metadata.get("finalizers") or () if each != finalizer]
        metadata["finalizers"] = left
        body = present.body | {"metadata": metadata} if left else None
        self._storage.store(collection, present, body)


def _place_order(place: tuple[Collection, str]) -> tuple[str, str]:
    collection, key = place
    return str(collection.encoding.resource), key


def _owners(stored: StoredObject | None) -> Mapping[str, Mapping[str, Any]]:
    """Return the references of an object by the uid of the owner."""
    if stored is None:
        return {}
    references = stored.metadata.get("ownerReferences")
    return {each["uid"]: each for each in references if each.get("uid")} if references else {}
