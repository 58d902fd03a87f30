"""Writes to one object: what is checked, what is stored, what is given back.

The verbs of a cluster on a single object. What a body becomes is ``writes``'s part, that of
``patches`` and ``applying``; what follows from a change is ``storage``'s. Here is the order of the
steps, which is the server's: the newest state is read, checked against, and replaced without
anything in between.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import msgspec

from aioinformer._core.objects.resources import Resource
from aioinformer.testing.cluster.storage import Collection, Storage
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire import statuses as write_statuses
from aioinformer.testing.wire.encoding import Stored
from aioinformer.testing.writes import validation
from aioinformer.testing.writes.patches import Patch
from aioinformer.testing.writes.server_side_apply import (
    Applied,
    Manager,
    Owners,
    applied,
    change_between,
)

__all__ = ["Conditions", "Manner", "Registry"]

Body = dict[str, Any]

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""What generated names end with (apimachinery's ``rand``: no vowels, so no words)."""

_HELD: Mapping[str, str] = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}
"""The finalizers that a way of propagation leaves for the garbage collector, which isn't here."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a deletion is bound to (``None`` is nothing), and how it goes about."""

    uid: str | None = None
    resource_version: str | None = None
    propagation: str = ""
    graceful: bool = False


@dataclass(frozen=True, slots=True)
class Manner:
    """How a write is meant, beyond what it writes."""

    part: validation.Part = "whole"
    manager: str = ""
    """Who writes, if that is to be noted."""
    dry: bool = False
    """Do everything but store it."""


WHOLE = Manner()


@dataclass(frozen=True, slots=True)
class Registry:
    """The objects of a storage, one at a time. What raises, and when, is on ``Cluster``."""

    storage: Storage
    random: Random
    """Decides uids and generated names."""
    clock: Callable[[], dt.datetime]

    def get(self, resource: str | Resource, name: str, namespace: str | None) -> Body:
        """A copy of an object."""
        return _copy(_find(self.storage.find(resource), name, namespace))

    def create(
        self,
        resource: str | Resource,
        body: Mapping[str, Any],
        namespace: str | None,
        manner: Manner = WHOLE,
    ) -> Body:
        """Store a new object."""
        with statuses.during("write"):
            collection = self.storage.find(resource)
            new = validation.created(collection.encoding, body, self._birth(), namespace=namespace)
            if manner.part == "main" and self._has_status(collection):
                new.pop("status", None)
            metadata = new["metadata"]
            if _key(collection, metadata["name"], metadata.get("namespace")) in collection.objects:
                raise statuses.already_exists(collection.encoding.resource, metadata["name"])
            nothing: Body = {"metadata": {}}
            noted = self._noted(collection, nothing, new, manner)
            return self._store(collection, None, noted, dry=manner.dry)

    def _birth(self) -> validation.Birth:
        suffix = "".join(self.random.choices(_SUFFIX_LETTERS, k=5))
        uid = str(uuid.UUID(int=self.random.getrandbits(128), version=4))
        return validation.Birth(uid, suffix, self.clock())

    def update(
        self,
        resource: str | Resource,
        body: Mapping[str, Any],
        namespace: str | None,
        manner: Manner = WHOLE,
    ) -> Body:
        """Replace an object."""
        with statuses.during("write"):
            collection = self.storage.find(resource)
            whole = validation.accepted(collection.encoding, body)
            metadata = whole["metadata"]
            place = namespace or metadata.get("namespace")
            stored = _find(collection, metadata.get("name") or "", place)
            return self._replace(collection, stored, whole, manner)

    def patch(
        self,
        resource: str | Resource,
        name: str,
        patch: Patch,
        namespace: str | None,
        manner: Manner = WHOLE,
    ) -> Body:
        """Change an object."""
        with statuses.during("write"):
            collection = self.storage.find(resource)
            stored = _find(collection, name, namespace)
            whole = validation.accepted(collection.encoding, patch.change(stored.body))
            uid = whole["metadata"].get("uid")
            if uid and uid != stored.uid:
                raise write_statuses.immutable_uid(collection.encoding.resource, name, uid)
            return self._replace(collection, stored, whole, manner)

    def apply(
        self,
        resource: str | Resource,
        config: Mapping[str, Any],
        namespace: str | None,
        manner: Manner,
        *,
        force: bool,
    ) -> tuple[Body, bool]:
        """Apply a configuration; the object, and whether it is new."""
        with statuses.during("write"):
            collection = self.storage.find(resource)
            encoding = collection.encoding
            wanted = validation.accepted(encoding, config)
            name = wanted["metadata"].get("name", "")
            stored = collection.objects.get(_key(collection, name, namespace))
            if stored is None and manner.part == "status":
                raise statuses.object_not_found(encoding.resource, name)
            if stored is not None:
                validation.check_version(encoding, stored, wanted["metadata"])
            wanted = validation.settable(wanted, manner.part, status=self._has_status(collection))
            applying = Applied(
                wanted, self._manager(collection, manner, "Apply"), force, self.clock()
            )
            if stored is None:
                return self._apply_new(collection, applying, namespace, dry=manner.dry), True
            result = applied(encoding, stored.body, applying)
            return self._replace(collection, stored, result, manner, noted=True), False

    def _apply_new(
        self, collection: Collection, applying: Applied, namespace: str | None, *, dry: bool
    ) -> Body:
        encoding, metadata = collection.encoding, dict(applying.config["metadata"])
        if uid := metadata.get("uid"):
            given = f"the provided object specified uid {uid}"
            why = f"uid mismatch: {given}, and no existing object was found"
            raise statuses.conflict(encoding.resource, metadata.get("name", ""), why)
        metadata.pop("resourceVersion", None)
        config = applying.config | {"metadata": metadata}
        new = validation.created(encoding, config, self._birth(), namespace=namespace)
        bare: Body = {"metadata": {}}
        owned = applied(encoding, bare, applying)["metadata"].get("managedFields")
        noted = new["metadata"] | ({"managedFields": owned} if owned else {})
        return self._store(collection, None, new | {"metadata": noted}, dry=dry)

    def delete(
        self,
        resource: str | Resource,
        name: str,
        namespace: str | None,
        *,
        conditions: Conditions,
        dry: bool = False,
    ) -> Body:
        """Remove an object, or mark it."""
        with statuses.during("write"):
            collection = self.storage.find(resource)
            stored = _find(collection, name, namespace)
            validation.check_deletion(
                collection.encoding, stored, conditions.uid, conditions.resource_version
            )
            metadata = stored.body["metadata"]
            marked = "deletionTimestamp" in metadata
            finalizers: list[str] = list(metadata.get("finalizers") or ())
            held = _HELD.get(conditions.propagation)
            if held and held not in finalizers and not marked:
                finalizers.append(held)
            if (finalizers or conditions.graceful) and not marked and not dry:
                condemned = validation.condemned(stored, finalizers, self.clock())
                stored = self.storage.store(collection, stored, condemned)
            if finalizers or dry:
                return _copy(stored)
            return _copy(self.storage.store(collection, stored, None))

    # -- parts of them -------------------------------------------------------------------------

    def _replace(
        self,
        collection: Collection,
        stored: Stored,
        whole: Body,
        manner: Manner,
        *,
        noted: bool = False,
    ) -> Body:
        status = self._has_status(collection)
        part = manner.part if status else "whole"
        new = validation.replaced(collection.encoding, stored, whole, part, status=status)
        if noted:  # an apply has done so itself
            managed = whole["metadata"].get("managedFields")
            new["metadata"].pop("managedFields", None)
            new["metadata"] |= {"managedFields": managed} if managed else {}
        else:
            new = self._noted(collection, stored.body, new, manner)
        if new == stored.body:
            return _copy(stored)
        return self._store(collection, stored, new, dry=manner.dry)

    def _noted(self, collection: Collection, old: Body, new: Body, manner: Manner) -> Body:
        """The new state with its managers noted, if they are."""
        metadata = {**new["metadata"]}
        sent = metadata.pop("managedFields", None)
        if sent == [{}]:  # how a client has them forgotten
            return new | {"metadata": metadata}
        if sent and manner.part == "whole":
            return new
        noted = sent or old["metadata"].get("managedFields")
        if noted or manner.manager:
            change = change_between(old, new, custom=collection.encoding.custom)
            manager = self._manager(collection, manner, "Update")
            if change:
                owners = Owners.of({"metadata": {"managedFields": noted}})
                noted = owners.updated(manager, change, self.clock())
            metadata |= {"managedFields": noted} if noted else {}
        return new | {"metadata": metadata}

    def _manager(self, collection: Collection, manner: Manner, operation: Any) -> Manager:
        version = collection.encoding.resource.api_version
        part = "status" if manner.part == "status" else ""
        return Manager(operation, manner.manager or "unknown", version, part)

    def _has_status(self, collection: Collection) -> bool:
        return collection.encoding.resource in self.storage.with_status

    def _store(
        self, collection: Collection, old: Stored | None, new: Body, *, dry: bool = False
    ) -> Body:
        if dry:
            return _copy(Stored(collection.encoding, new, old.version if old else 0))
        if old is not None and validation.is_finished(new):
            self.storage.store(collection, old, None)
            return _copy(Stored(collection.encoding, new, old.version))  # as it was last
        return _copy(self.storage.store(collection, old, new))


def _find(collection: Collection, name: str, namespace: str | None) -> Stored:
    found = collection.objects.get(_key(collection, name, namespace))
    if found is None:
        raise statuses.object_not_found(collection.encoding.resource, name)
    return found


def _key(collection: Collection, name: str, namespace: str | None) -> str:
    resource = collection.encoding.resource
    if namespace and not resource.namespaced:
        raise statuses.resource_not_found()
    return f"{namespace or 'default'}/{name}" if resource.namespaced else name


def _copy(stored: Stored) -> Body:
    body: Body = msgspec.json.decode(stored.encoding.whole(stored.raw))
    return body
