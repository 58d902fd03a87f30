"""Writes to single objects: create, update, patch, apply and delete.

Each write takes the steps of a real server in the same order: read the newest state, check the
request against it, build the next state, note the field managers, store. No other write runs in
between. Sent bodies and patches have the values of JSON alone (see ``plain_json``). The stored
state shares their parts, so nothing may change them later.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

from aioinformer._core.objects.resources import Resource
from aioinformer.errors import BadRequest
from aioinformer.testing.cluster.storage import Collection, Storage
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import JsonObject, StoredObject
from aioinformer.testing.writes import validation
from aioinformer.testing.writes.keyed_lists import check_keyed_lists
from aioinformer.testing.writes.patches import BodyPatch
from aioinformer.testing.writes.server_side_apply import (
    ApplyRequest,
    FieldManager,
    ManagedFields,
    apply_configuration,
    diff_fields,
    with_managed_fields,
)
from aioinformer.testing.writes.update_strategies import allows_create_on_update
from aioinformer.testing.writes.write_options import MANAGER_LENGTH

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""The characters of generated suffixes (apimachinery's ``rand``: no vowels, so no words)."""

_PROPAGATION_FINALIZERS: Mapping[str, str] = {
    "Foreground": "foregroundDeletion",
    "Orphan": "orphan",
}
"""The finalizers that a propagation policy adds. They stay without a garbage collector."""
_CLEANUP_FINALIZERS: Mapping[str, str] = {
    "customresourcedefinitions.apiextensions.k8s.io": "customresourcecleanup.apiextensions.k8s.io"
}
"""The finalizers of resources whose deletion a controller of the cluster completes."""


@dataclass(frozen=True, slots=True)
class Preconditions:
    """The preconditions of a deletion (``None`` for none), and its propagation."""

    uid: str | None = None
    resource_version: str | None = None
    propagation: str = ""
    graceful: bool = False


@dataclass(frozen=True, slots=True)
class WriteOptions:
    part: validation.Part = "whole"
    field_manager: str = ""
    user_agent: str = ""
    dry_run: bool = False
    """True to do everything but store the result."""
    check_creation: Callable[[], None] = lambda: None
    """Called before an update or an apply creates an object; raises if the user may not do so."""
    check_change: Callable[[JsonObject | None, Mapping[str, Any]], None] = lambda old, new: None
    """Called with the stored body, ``None`` for an absent object, and the sent one; raises if the
    user may not make this change."""

    @property
    def manager_name(self) -> str:
        """The manager: ``fieldManager``, or the User-Agent's part before a slash
        (``managerOrUserAgent``).
        """
        program = self.user_agent.partition("/")[0][:MANAGER_LENGTH]
        return self.field_manager or "".join(filter(str.isprintable, program)) or "unknown"


DEFAULT_WRITE_OPTIONS = WriteOptions()


@dataclass(frozen=True, slots=True)
class Registry:
    """Writes to the objects of a storage. ``Cluster`` documents the errors of each method."""

    storage: Storage
    random: Random
    """Decides uids and generated names."""
    clock: Callable[[], dt.datetime]

    def get(self, resource: str | Resource, name: str, namespace: str | None) -> StoredObject:
        return _find_stored(self.storage.find(resource), name, namespace)

    def find(
        self, resource: str | Resource, name: str, namespace: str | None
    ) -> StoredObject | None:
        collection = self.storage.find(resource)
        return collection.objects.get(_storage_key(collection, name, namespace))

    def create(
        self,
        resource: str | Resource,
        body: Mapping[str, Any],
        namespace: str | None,
        options: WriteOptions = DEFAULT_WRITE_OPTIONS,
    ) -> StoredObject:
        with statuses.error_phase("write"):
            collection = self.storage.find(resource)
            options.check_change(None, body)
            defaults = self._make_defaults()
            new = validation.build_created(collection.encoding, body, defaults, namespace=namespace)
            if options.part == "main" and self._has_status(collection):
                new.pop("status", None)
            new = _prepare(collection, new)
            name, own_namespace = new["metadata"]["name"], new["metadata"].get("namespace")
            if _storage_key(collection, name, own_namespace) in collection.objects:
                raise statuses.already_exists(collection.encoding.resource, name)
            _check(collection, new)
            absent: JsonObject = {"metadata": {}}
            managed = self._update_managed_fields(collection, absent, new, options)
            return self._store(collection, None, managed, dry_run=options.dry_run)

    def _make_defaults(self) -> validation.CreationDefaults:
        return validation.CreationDefaults(
            _format_uid(self.random.getrandbits(128)), self._make_suffix, self.clock()
        )

    def _make_suffix(self) -> str:
        return "".join(self.random.choices(_SUFFIX_LETTERS, k=5))

    def update(
        self,
        resource: str | Resource,
        body: Mapping[str, Any],
        namespace: str | None,
        options: WriteOptions = DEFAULT_WRITE_OPTIONS,
    ) -> tuple[StoredObject, bool]:
        """Replace an object; return the object, and True if it is new."""
        with statuses.error_phase("write"):
            collection = self.storage.find(resource)
            new = validation.validated(collection.encoding, body)
            metadata = new["metadata"]
            name = metadata.get("name") or ""
            if collection.encoding.resource.namespaced:
                namespace = namespace or metadata.get("namespace")
            stored = self._find_for_apply(collection, name, namespace)
            if stored is not None:
                return self._replace(collection, stored, new, options), False
            if not (name and allows_create_on_update(collection.encoding, options.part)):
                raise statuses.object_not_found(collection.encoding.resource, name)
            return self._create_on_update(collection, new, namespace, options), True

    def _create_on_update(
        self, collection: Collection, body: JsonObject, namespace: str | None, options: WriteOptions
    ) -> StoredObject:
        resource, metadata = collection.encoding.resource, body["metadata"]
        if uid := metadata.get("uid"):
            raise statuses.failed_precondition(resource, metadata["name"], "UID", uid, "")
        new = self._build_absent(collection, body, namespace, options)
        managed = self._update_managed_fields(collection, {"metadata": {}}, new, options)
        return self._store(collection, None, managed, dry_run=options.dry_run)

    def _build_absent(
        self, collection: Collection, body: JsonObject, namespace: str | None, options: WriteOptions
    ) -> JsonObject:
        """Return the new object of an update or an apply whose object doesn't exist.

        Unlike a creation, such a write may have a resourceVersion, which the server drops.
        """
        options.check_change(None, body)
        metadata = {**body["metadata"]}
        validation.sent_version(metadata)
        metadata.pop("resourceVersion", None)
        new = validation.build_created(
            collection.encoding,
            body | {"metadata": metadata},
            self._make_defaults(),
            namespace=namespace,
        )
        if options.part == "main" and self._has_status(collection):
            new.pop("status", None)
        new = _prepare(collection, new)
        _check(collection, new)
        options.check_creation()
        return new

    def patch(
        self,
        resource: str | Resource,
        name: str,
        patch: BodyPatch,
        namespace: str | None,
        options: WriteOptions = DEFAULT_WRITE_OPTIONS,
    ) -> StoredObject:
        with statuses.error_phase("write"):
            collection = self.storage.find(resource)
            stored = self._find_for_write(collection, name, namespace)
            patched = patch.apply(stored.body)
            try:
                new = validation.validated(collection.encoding, patched)
            except BadRequest:
                validation.check_patched_metadata(patched)
                raise
            self._check_uid(collection, stored, new["metadata"], options)
            return self._replace(collection, stored, new, options)

    def delete(
        self,
        resource: str | Resource,
        name: str,
        namespace: str | None,
        *,
        preconditions: Preconditions,
        dry_run: bool = False,
    ) -> StoredObject:
        """Remove an object, or mark it for deletion; return its last state."""
        with statuses.error_phase("write"):
            collection = self.storage.find(resource)
            stored = _find_stored(collection, name, namespace)
            validation.check_delete_preconditions(
                collection.encoding, stored, preconditions.uid, preconditions.resource_version
            )
            marked = "deletionTimestamp" in stored.metadata
            finalizers = _deletion_finalizers(stored, preconditions, marked=marked)
            if (finalizers or preconditions.graceful) and not marked and not dry_run:
                body = validation.marked_for_deletion(stored, finalizers, self.clock())
                stored = self.storage.store(collection, stored, body)
            if finalizers or dry_run:
                return stored
            return self.storage.store(collection, stored, None)

    # -- apply ---------------------------------------------------------------------------------

    def apply(
        self,
        resource: str | Resource,
        config: Mapping[str, Any],
        namespace: str | None,
        options: WriteOptions,
        *,
        force: bool,
    ) -> tuple[StoredObject, bool]:
        """Apply a configuration; return the object, and True if it is new."""
        with statuses.error_phase("write"):
            collection = self.storage.find(resource)
            encoding = collection.encoding
            wanted = validation.validated(encoding, config)
            name = wanted["metadata"].get("name", "")
            stored = self._find_for_apply(collection, name, namespace)
            if stored is None and options.part == "status":
                raise statuses.object_not_found(encoding.resource, name)
            if stored is not None:
                self._check_uid(collection, stored, wanted["metadata"], options)
                validation.check_applied_version(encoding, stored, wanted["metadata"])
            wanted = validation.limit_to_part(
                encoding, wanted, options.part, status=self._has_status(collection)
            )
            check_keyed_lists(encoding, wanted)
            manager = self._make_field_manager(collection, options, "Apply")
            request = ApplyRequest(wanted, manager, force, self.clock())
            if stored is None:
                new = self._build_applied(collection, request, namespace, options)
                return self._store(collection, None, new, dry_run=options.dry_run), True
            result = apply_configuration(encoding, stored.body, request)
            replaced = self._replace(collection, stored, result, options, managed_fields_set=True)
            return replaced, False

    def _build_applied(
        self,
        collection: Collection,
        request: ApplyRequest,
        namespace: str | None,
        options: WriteOptions,
    ) -> JsonObject:
        encoding, metadata = collection.encoding, request.config["metadata"]
        if uid := metadata.get("uid"):
            given = f"the provided object specified uid {uid}"
            reason = f"uid mismatch: {given}, and no existing object was found"
            raise statuses.conflict(encoding.resource, metadata.get("name", ""), reason)
        new = self._build_absent(collection, request.config, namespace, options)
        applied = apply_configuration(encoding, {"metadata": {}}, request)
        return with_managed_fields(new, applied["metadata"].get("managedFields"))

    # -- steps that the writes share -----------------------------------------------------------

    def _check_uid(
        self,
        collection: Collection,
        stored: StoredObject,
        metadata: JsonObject,
        options: WriteOptions,
    ) -> None:
        """Raise ``Invalid`` if a patch or an apply has another uid than the object.

        A write to a custom object's status takes nothing but managedFields of the metadata, so that
        its uid counts for nothing.
        """
        encoding, uid = collection.encoding, metadata.get("uid")
        if not uid or uid == stored.uid:
            return
        if not (encoding.custom and options.part == "status" and self._has_status(collection)):
            raise statuses.immutable_uid(encoding.resource, stored.name, uid)
        metadata["uid"] = stored.uid

    def _find_for_write(
        self, collection: Collection, name: str, namespace: str | None
    ) -> StoredObject:
        stored = self._find_for_apply(collection, name, namespace)
        if stored is None:
            raise statuses.object_not_found(collection.encoding.resource, name)
        return stored

    def _find_for_apply(
        self, collection: Collection, name: str, namespace: str | None
    ) -> StoredObject | None:
        stored = collection.objects.get(_storage_key(collection, name, namespace))
        if stored is not None and not stored.decoded:
            self.storage.keep_body(stored)  # the steps of the write read the body several times
        return stored

    def _replace(
        self,
        collection: Collection,
        stored: StoredObject,
        body: JsonObject,
        options: WriteOptions,
        *,
        managed_fields_set: bool = False,
    ) -> StoredObject:
        """Store the next state of an object, unless nothing changes.

        With ``managed_fields_set``, ``body`` already has the managers of the next state.
        """
        status = self._has_status(collection)
        part = options.part if status else "whole"
        options.check_change(stored.body, body)
        body, old = _prepare(collection, body), stored.body
        new = validation.build_replacement(collection.encoding, stored, body, part, status=status)
        _check(collection, new)
        if managed_fields_set:
            new = with_managed_fields(new, body["metadata"].get("managedFields"))
        else:
            new = self._update_managed_fields(collection, old, new, options)
        if new == old:
            return stored
        return self._store(collection, stored, new, dry_run=options.dry_run)

    def _update_managed_fields(
        self, collection: Collection, old: JsonObject, new: JsonObject, options: WriteOptions
    ) -> JsonObject:
        """Return the new state with its managers, if managers are kept for this object."""
        sent = new["metadata"].get("managedFields")
        if sent == [{}]:  # the form in which a client asks to forget the managers
            return with_managed_fields(new, None)
        if sent and options.part == "whole":
            return new
        managed = sent or old["metadata"].get("managedFields")
        # Managers are kept from the first request on that names one.
        if managed or options.field_manager:
            change = diff_fields(old, new, custom=collection.encoding.custom)
            if change:
                manager = self._make_field_manager(collection, options, "Update")
                owners = ManagedFields.from_object({"metadata": {"managedFields": managed}})
                managed = owners.record_update(manager, change, self.clock())
        return with_managed_fields(new, managed)

    def _make_field_manager(
        self, collection: Collection, options: WriteOptions, operation: Literal["Apply", "Update"]
    ) -> FieldManager:
        version = collection.encoding.resource.api_version
        subresource = "status" if options.part == "status" else ""
        return FieldManager(operation, options.manager_name, version, subresource)

    def _has_status(self, collection: Collection) -> bool:
        return self.storage.has_status(collection.encoding.resource)

    def _store(
        self,
        collection: Collection,
        old: StoredObject | None,
        new: JsonObject,
        *,
        dry_run: bool = False,
    ) -> StoredObject:
        if dry_run:
            return StoredObject(collection.encoding, new, old.version if old else 0)
        if old is not None and validation.is_deletion_complete(new):
            # This write removed the last finalizer. The answer is the state before the removal.
            self.storage.store(collection, old, None)
            return StoredObject(collection.encoding, new, old.version)
        return self.storage.store(collection, old, new)


def _prepare(collection: Collection, body: JsonObject) -> JsonObject:
    return body if collection.rules is None else collection.rules.prepare(body)


def _check(collection: Collection, body: JsonObject) -> None:
    if collection.rules is not None:
        collection.rules.check(body)


def _deletion_finalizers(
    stored: StoredObject, preconditions: Preconditions, *, marked: bool
) -> list[str]:
    """Return the finalizers that an object has to wait for before it is removed."""
    finalizers: list[str] = list(stored.metadata.get("finalizers") or ())
    added = [_PROPAGATION_FINALIZERS.get(preconditions.propagation)]
    added.append(_CLEANUP_FINALIZERS.get(str(stored.encoding.resource)))
    for finalizer in added:
        if finalizer and finalizer not in finalizers and not marked:
            finalizers.append(finalizer)
    return finalizers


def _find_stored(collection: Collection, name: str, namespace: str | None) -> StoredObject:
    stored = collection.objects.get(_storage_key(collection, name, namespace))
    if stored is None:
        raise statuses.object_not_found(collection.encoding.resource, name)
    return stored


def _storage_key(collection: Collection, name: str, namespace: str | None) -> str:
    resource = collection.encoding.resource
    if namespace and not resource.namespaced:
        raise statuses.resource_not_found()
    return f"{namespace or 'default'}/{name}" if resource.namespaced else name


def _format_uid(bits: int) -> str:
    """Return 128 random bits as a UUID of version 4 (RFC 9562)."""
    bits = bits & ~(0xF << 76) | 4 << 76
    bits = bits & ~(0x3 << 62) | 2 << 62
    text = f"{bits:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
