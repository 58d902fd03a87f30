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
from aioinformer.testing.wire.encoding import StoredObject
from aioinformer.testing.writes import validation
from aioinformer.testing.writes.patches import BodyPatch
from aioinformer.testing.writes.server_side_apply import (
    ApplyRequest,
    FieldManager,
    ManagedFields,
    apply_configuration,
    diff_fields,
)

__all__ = ["Preconditions", "Registry", "WriteOptions"]

JsonObject = dict[str, Any]

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""What generated names end with (apimachinery's ``rand``: no vowels, so no words)."""

_PROPAGATION_FINALIZERS: Mapping[str, str] = {
    "Foreground": "foregroundDeletion",
    "Orphan": "orphan",
}
"""The finalizers that a way of propagation leaves for the garbage collector, which isn't here."""


@dataclass(frozen=True, slots=True)
class Preconditions:
    """What a deletion is bound to (``None`` is nothing), and how it goes about."""

    uid: str | None = None
    resource_version: str | None = None
    propagation: str = ""
    graceful: bool = False


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How a write is meant, beyond what it writes."""

    part: validation.Part = "whole"
    field_manager: str = ""
    """Who writes, if that is to be noted."""
    dry_run: bool = False
    """Do everything but store it."""


DEFAULT_WRITE_OPTIONS = WriteOptions()


@dataclass(frozen=True, slots=True)
class Registry:
    """The objects of a storage, one at a time. What raises, and when, is on ``Cluster``."""

    storage: Storage
    random: Random
    """Decides uids and generated names."""
    clock: Callable[[], dt.datetime]

    def get(self, resource: str | Resource, name: str, namespace: str | None) -> JsonObject:
        """A copy of an object."""
        return _decode_copy(_find_stored(self.storage.find(resource), name, namespace))

    def create(
        self,
        resource: str | Resource,
        body: Mapping[str, Any],
        namespace: str | None,
        options: WriteOptions = DEFAULT_WRITE_OPTIONS,
    ) -> JsonObject:
        """Store a new object."""
        with statuses.error_phase("write"):
            collection = self.storage.find(resource)
            new = validation.build_created(
                collection.encoding, body, self._make_defaults(), namespace=namespace
            )
            if options.part == "main" and self._has_status(collection):
                new.pop("status", None)
            metadata = new["metadata"]
            if (
                _storage_key(collection, metadata["name"], metadata.get("namespace"))
                in collection.objects
            ):
                raise statuses.already_exists(collection.encoding.resource, metadata["name"])
            nothing: JsonObject = {"metadata": {}}
            noted = self._update_managed_fields(collection, nothing, new, options)
            return self._store(collection, None, noted, dry_run=options.dry_run)

    def _make_defaults(self) -> validation.CreationDefaults:
        suffix = "".join(self.random.choices(_SUFFIX_LETTERS, k=5))
        uid = str(uuid.UUID(int=self.random.getrandbits(128), version=4))
        return validation.CreationDefaults(uid, suffix, self.clock())

    def update(
        self,
        resource: str | Resource,
        body: Mapping[str, Any],
        namespace: str | None,
        options: WriteOptions = DEFAULT_WRITE_OPTIONS,
    ) -> JsonObject:
        """Replace an object."""
        with statuses.error_phase("write"):
            collection = self.storage.find(resource)
            whole = validation.validated(collection.encoding, body)
            metadata = whole["metadata"]
            place = namespace or metadata.get("namespace")
            stored = _find_stored(collection, metadata.get("name") or "", place)
            return self._replace(collection, stored, whole, options)

    def patch(
        self,
        resource: str | Resource,
        name: str,
        patch: BodyPatch,
        namespace: str | None,
        options: WriteOptions = DEFAULT_WRITE_OPTIONS,
    ) -> JsonObject:
        """Change an object."""
        with statuses.error_phase("write"):
            collection = self.storage.find(resource)
            stored = _find_stored(collection, name, namespace)
            whole = validation.validated(collection.encoding, patch.apply(stored.body))
            uid = whole["metadata"].get("uid")
            if uid and uid != stored.uid:
                raise write_statuses.immutable_uid(collection.encoding.resource, name, uid)
            return self._replace(collection, stored, whole, options)

    def apply(
        self,
        resource: str | Resource,
        config: Mapping[str, Any],
        namespace: str | None,
        options: WriteOptions,
        *,
        force: bool,
    ) -> tuple[JsonObject, bool]:
        """Apply a configuration; the object, and whether it is new."""
        with statuses.error_phase("write"):
            collection = self.storage.find(resource)
            encoding = collection.encoding
            wanted = validation.validated(encoding, config)
            name = wanted["metadata"].get("name", "")
            stored = collection.objects.get(_storage_key(collection, name, namespace))
            if stored is None and options.part == "status":
                raise statuses.object_not_found(encoding.resource, name)
            if stored is not None:
                validation.check_apply_preconditions(encoding, stored, wanted["metadata"])
            wanted = validation.limit_to_part(
                wanted, options.part, status=self._has_status(collection)
            )
            applying = ApplyRequest(
                wanted, self._make_field_manager(collection, options, "Apply"), force, self.clock()
            )
            if stored is None:
                return self._apply_new(
                    collection, applying, namespace, dry_run=options.dry_run
                ), True
            result = apply_configuration(encoding, stored.body, applying)
            return self._replace(
                collection, stored, result, options, managed_fields_set=True
            ), False

    def _apply_new(
        self, collection: Collection, request: ApplyRequest, namespace: str | None, *, dry_run: bool
    ) -> JsonObject:
        encoding, metadata = collection.encoding, dict(request.config["metadata"])
        if uid := metadata.get("uid"):
            given = f"the provided object specified uid {uid}"
            why = f"uid mismatch: {given}, and no existing object was found"
            raise statuses.conflict(encoding.resource, metadata.get("name", ""), why)
        metadata.pop("resourceVersion", None)
        config = request.config | {"metadata": metadata}
        new = validation.build_created(encoding, config, self._make_defaults(), namespace=namespace)
        bare: JsonObject = {"metadata": {}}
        owned = apply_configuration(encoding, bare, request)["metadata"].get("managedFields")
        noted = new["metadata"] | ({"managedFields": owned} if owned else {})
        return self._store(collection, None, new | {"metadata": noted}, dry_run=dry_run)

    def delete(
        self,
        resource: str | Resource,
        name: str,
        namespace: str | None,
        *,
        preconditions: Preconditions,
        dry_run: bool = False,
    ) -> JsonObject:
        """Remove an object, or mark it."""
        with statuses.error_phase("write"):
            collection = self.storage.find(resource)
            stored = _find_stored(collection, name, namespace)
            validation.check_delete_preconditions(
                collection.encoding, stored, preconditions.uid, preconditions.resource_version
            )
            metadata = stored.body["metadata"]
            marked = "deletionTimestamp" in metadata
            finalizers: list[str] = list(metadata.get("finalizers") or ())
            held = _PROPAGATION_FINALIZERS.get(preconditions.propagation)
            if held and held not in finalizers and not marked:
                finalizers.append(held)
            if (finalizers or preconditions.graceful) and not marked and not dry_run:
                condemned = validation.marked_for_deletion(stored, finalizers, self.clock())
                stored = self.storage.store(collection, stored, condemned)
            if finalizers or dry_run:
                return _decode_copy(stored)
            return _decode_copy(self.storage.store(collection, stored, None))

    # -- parts of them -------------------------------------------------------------------------

    def _replace(
        self,
        collection: Collection,
        stored: StoredObject,
        body: JsonObject,
        options: WriteOptions,
        *,
        managed_fields_set: bool = False,
    ) -> JsonObject:
        status = self._has_status(collection)
        part = options.part if status else "whole"
        new = validation.build_replacement(collection.encoding, stored, body, part, status=status)
        if managed_fields_set:  # an apply has done so itself
            managed = body["metadata"].get("managedFields")
            new["metadata"].pop("managedFields", None)
            new["metadata"] |= {"managedFields": managed} if managed else {}
        else:
            new = self._update_managed_fields(collection, stored.body, new, options)
        if new == stored.body:
            return _decode_copy(stored)
        return self._store(collection, stored, new, dry_run=options.dry_run)

    def _update_managed_fields(
        self, collection: Collection, old: JsonObject, new: JsonObject, options: WriteOptions
    ) -> JsonObject:
        """The new state with its managers noted, if they are."""
        metadata = {**new["metadata"]}
        sent = metadata.pop("managedFields", None)
        if sent == [{}]:  # how a client has them forgotten
            return new | {"metadata": metadata}
        if sent and options.part == "whole":
            return new
        noted = sent or old["metadata"].get("managedFields")
        if noted or options.field_manager:
            change = diff_fields(old, new, custom=collection.encoding.custom)
            manager = self._make_field_manager(collection, options, "Update")
            if change:
                owners = ManagedFields.from_object({"metadata": {"managedFields": noted}})
                noted = owners.record_update(manager, change, self.clock())
            metadata |= {"managedFields": noted} if noted else {}
        return new | {"metadata": metadata}

    def _make_field_manager(
        self, collection: Collection, options: WriteOptions, operation: Any
    ) -> FieldManager:
        version = collection.encoding.resource.api_version
        part = "status" if options.part == "status" else ""
        return FieldManager(operation, options.field_manager or "unknown", version, part)

    def _has_status(self, collection: Collection) -> bool:
        return collection.encoding.resource in self.storage.with_status

    def _store(
        self,
        collection: Collection,
        old: StoredObject | None,
        new: JsonObject,
        *,
        dry_run: bool = False,
    ) -> JsonObject:
        if dry_run:
            return _decode_copy(StoredObject(collection.encoding, new, old.version if old else 0))
        if old is not None and validation.is_deletion_complete(new):
            self.storage.store(collection, old, None)
            return _decode_copy(
                StoredObject(collection.encoding, new, old.version)
            )  # as it was last
        return _decode_copy(self.storage.store(collection, old, new))


def _find_stored(collection: Collection, name: str, namespace: str | None) -> StoredObject:
    found = collection.objects.get(_storage_key(collection, name, namespace))
    if found is None:
        raise statuses.object_not_found(collection.encoding.resource, name)
    return found


def _storage_key(collection: Collection, name: str, namespace: str | None) -> str:
    resource = collection.encoding.resource
    if namespace and not resource.namespaced:
        raise statuses.resource_not_found()
    return f"{namespace or 'default'}/{name}" if resource.namespaced else name


def _decode_copy(stored: StoredObject) -> JsonObject:
    body: JsonObject = msgspec.json.decode(stored.encoding.add_type_meta(stored.raw))
    return body
