"""Writes to one object: what is checked, what is stored, what is given back.

The verbs of a cluster on a single object. What a body becomes is ``writes``'s part, what follows
from a change ``storage``'s; here is the order of the steps, which is the server's: the newest
state is read, checked against, and replaced without anything in between.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import msgspec

from aioinformer._core.resources import Resource
from aioinformer.testing import statuses, writes
from aioinformer.testing.collection import Collection
from aioinformer.testing.encoding import Stored
from aioinformer.testing.storage import Storage

__all__ = ["Conditions", "Registry"]

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""What generated names end with (apimachinery's ``rand``: no vowels, so no words)."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a deletion is bound to; ``None`` is nothing."""

    uid: str | None = None
    resource_version: str | None = None


@dataclass(frozen=True, slots=True)
class Registry:
    """The objects of a storage, one at a time. What raises, and when, is on ``Cluster``."""

    storage: Storage
    random: Random
    """Decides uids and generated names."""
    clock: Callable[[], dt.datetime]

    def get(self, resource: str | Resource, name: str, namespace: str | None) -> dict[str, Any]:
        """A copy of an object."""
        return _copy(_find(self.storage.find(resource), name, namespace))

    def create(
        self, resource: str | Resource, body: Mapping[str, Any], namespace: str | None
    ) -> dict[str, Any]:
        """Store a new object."""
        with statuses.during("write"):
            collection = self.storage.find(resource)
            suffix = "".join(self.random.choices(_SUFFIX_LETTERS, k=5))
            uid = str(uuid.UUID(int=self.random.getrandbits(128), version=4))
            birth = writes.Birth(uid, suffix, self.clock())
            new = writes.created(collection.encoding, body, birth, namespace=namespace)
            metadata = new["metadata"]
            if _key(collection, metadata["name"], metadata.get("namespace")) in collection.objects:
                raise statuses.already_exists(collection.encoding.resource, metadata["name"])
            return _copy(self.storage.store(collection, None, new))

    def update(
        self, resource: str | Resource, body: Mapping[str, Any], namespace: str | None
    ) -> dict[str, Any]:
        """Replace an object."""
        with statuses.during("write"):
            collection = self.storage.find(resource)
            whole = writes.accepted(collection.encoding, body)
            metadata = whole["metadata"]
            place = namespace or metadata.get("namespace")
            stored = _find(collection, metadata.get("name") or "", place)
            return self._replace(collection, stored, whole)

    def merge_patch(
        self, resource: str | Resource, name: str, patch: Mapping[str, Any], namespace: str | None
    ) -> dict[str, Any]:
        """Change an object by a merge patch."""
        with statuses.during("write"):
            collection = self.storage.find(resource)
            stored = _find(collection, name, namespace)
            whole = writes.accepted(collection.encoding, writes.merged(stored.body, patch))
            return self._replace(collection, stored, whole)

    def delete(
        self,
        resource: str | Resource,
        name: str,
        namespace: str | None,
        *,
        conditions: Conditions,
        graceful: bool,
    ) -> dict[str, Any]:
        """Remove an object, or mark it."""
        with statuses.during("write"):
            collection = self.storage.find(resource)
            stored = _find(collection, name, namespace)
            writes.check_deletion(
                collection.encoding, stored, conditions.uid, conditions.resource_version
            )
            waits = bool(stored.body["metadata"].get("finalizers"))
            if (waits or graceful) and "deletionTimestamp" not in stored.body["metadata"]:
                marked = writes.condemned(stored, self.clock())
                stored = self.storage.store(collection, stored, marked)
            return _copy(stored if waits else self.storage.store(collection, stored, None))

    def _replace(
        self, collection: Collection, stored: Stored, whole: dict[str, Any]
    ) -> dict[str, Any]:
        new = writes.replaced(collection.encoding, stored, whole)
        if new == stored.body:
            return _copy(stored)
        return _copy(
            self.storage.store(collection, stored, None if writes.is_finished(new) else new)
        )


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


def _copy(stored: Stored) -> dict[str, Any]:
    body: dict[str, Any] = msgspec.json.decode(stored.encoding.whole(stored.raw))
    return body
