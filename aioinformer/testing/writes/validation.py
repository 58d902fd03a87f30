"""Checks of a body that was sent, and the body to store instead: stamps and unchanged parts.

The functions are pure. Their rules are those that an API server applies to every type alike. The
rules of single types (defaults of a Pod, validation by a schema) are left out, so a body is
otherwise stored as sent.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import msgspec

from aioinformer.errors import BadRequest, ServerError, Status, server_error
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import Encoding, JsonObject, StoredObject
from aioinformer.testing.writes.metadata_rules import check_created_metadata, check_updated_metadata
from aioinformer.testing.writes.role_references import check_role_reference
from aioinformer.testing.writes.typed_bodies import convert_body
from aioinformer.testing.writes.update_strategies import (
    allows_unconditional_update,
    status_metadata,
)

_SERVER_METADATA = (
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
"""The metadata that the server alone writes. An update can't change it."""

_OMITTED_WHEN_EMPTY = ("labels", "annotations", "finalizers", "ownerReferences")

_GENERATE_NAME_LIMIT = 58
"""Characters of ``generateName`` that are used. Five more make 63, the limit."""


class _OwnerReference(msgspec.Struct, rename="camel"):
    api_version: str | None = None
    kind: str | None = None
    name: str | None = None
    uid: str | None = None
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class _ManagedFieldsEntry(msgspec.Struct, rename="camel"):
    """``fieldsV1`` can be any JSON."""

    manager: str | None = None
    operation: str | None = None
    api_version: str | None = None
    subresource: str | None = None
    time: str | None = None


class _ObjectMeta(msgspec.Struct, rename="camel"):
    """The fields of ObjectMeta that are read here."""

    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None
    owner_references: list[_OwnerReference] | None = None
    managed_fields: list[_ManagedFieldsEntry] | None = None


class _SentObject(msgspec.Struct):
    metadata: _ObjectMeta


def check_metadata(body: Mapping[str, Any]) -> JsonObject:
    """Return the body with metadata, empty ones if need be; ``BadRequest`` for a wrong type."""
    checked: JsonObject = {**body, "metadata": body.get("metadata") or {}}
    convert_body(checked, _SentObject)
    return checked


def check_patched_metadata(body: Mapping[str, Any]) -> None:
    """Raise ``Invalid`` if a field of the metadata of a patched body has the wrong type."""
    try:
        check_metadata(body)
    except BadRequest as error:
        raise statuses.invalid_patch(body, error.status.message) from error


def validated(encoding: Encoding, body: Mapping[str, Any]) -> JsonObject:
    """Return a copy with its type filled in and a metadata of its own; other values are shared.

    Raises:
        BadRequest: the body is not an object of this resource.
    """
    resource = encoding.resource
    type_meta = {"kind": resource.kind, "apiVersion": resource.api_version}
    for key, expected in type_meta.items():
        found = body.get(key, expected)
        if found != expected and encoding.custom and key == "kind":
            raise _wrong_kind(encoding, body, str(found))
        if found != expected:
            term = "kind" if key == "kind" else "API version"
            raise statuses.bad_request(
                f"the {term} in the data ({found}) does not match the expected {term} ({expected})"
            )
    metadata: JsonObject = dict(check_metadata(body)["metadata"])
    for name in _OMITTED_WHEN_EMPTY:
        if name in metadata and not metadata[name]:
            del metadata[name]
    return {**type_meta, **body, "metadata": metadata}


def _wrong_kind(encoding: Encoding, body: Mapping[str, Any], kind: str) -> ServerError:
    """Return the error for a custom object of another kind. The server's code for it is its own."""
    name = str(body["metadata"].get("name", "")) if isinstance(body.get("metadata"), dict) else ""
    text = f'Invalid value: "{kind}": must be {encoding.resource.kind}'
    group = encoding.resource.group
    return statuses.invalid(kind, name, "kind", "FieldValueInvalid", text, group=group)


Part: TypeAlias = Literal["whole", "main", "status"]
"""All of an object, all but the status, or the status."""


@dataclass(frozen=True, slots=True)
class CreationDefaults:
    """The values of a new object that chance and the clock decide."""

    uid: str
    make_suffix: Callable[[], str]
    """Returns the characters after ``generateName``; called if the object has no name."""
    time: dt.datetime


def build_created(
    encoding: Encoding,
    body: Mapping[str, Any],
    defaults: CreationDefaults,
    *,
    namespace: str | None,
) -> JsonObject:
    """Return the new object that a creation stores, in the URL's ``namespace``, its own or
    ``default``.

    Raises:
        BadRequest, Invalid, ServerFailure: the body can't be created.
    """
    new = validated(encoding, body)
    metadata = new["metadata"]
    if sent_version(metadata):
        message = "resourceVersion should not be set on objects to be created"
        raise server_error(Status(500, "", message))
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = metadata["generateName"][:_GENERATE_NAME_LIMIT] + defaults.make_suffix()
    _set_namespace(encoding, metadata, namespace)
    check_created_metadata(encoding.resource, metadata)
    check_role_reference(encoding.resource, new)
    metadata |= {"uid": defaults.uid, "creationTimestamp": _format_time(defaults.time)}
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
        metadata.pop(name, None)
    if encoding.custom or "spec" in new:
        metadata["generation"] = 1
    return new


def _set_namespace(encoding: Encoding, metadata: JsonObject, namespace: str | None) -> None:
    if not encoding.resource.namespaced:
        if namespace:
            raise statuses.bad_request("namespace is not allowed on a cluster-scoped object")
        metadata.pop("namespace", None)  # the server drops that of a body
        return
    own = metadata.get("namespace")
    if own and namespace and own != namespace:
        raise _wrong_namespace()
    metadata["namespace"] = namespace or own or "default"


def _wrong_namespace() -> ServerError:
    return statuses.bad_request(
        "the namespace of the provided object does not match the namespace sent on the request"
    )


def build_replacement(
    encoding: Encoding, stored: StoredObject, body: JsonObject, part: Part, *, status: bool
) -> JsonObject:
    """Return the next state of an object; it equals the stored state if nothing changes.

    ``body`` is as ``validated`` returned it; ``status`` is True for resources with a status
    subresource.

    Raises:
        BadRequest: the body is another object.
        Conflict: the body has a resourceVersion that isn't the newest, or another uid.
        Invalid: the resource needs a resourceVersion, and the body has none; a new finalizer on an
            object that is being deleted; metadata that break a rule; another ``roleRef``.
    """
    metadata = body["metadata"]
    _check_preconditions(encoding, stored, metadata)
    _check_identity(stored, metadata)
    now = stored.metadata
    if part == "status":
        metadata = _status_write_metadata(encoding, now, metadata)
    _check_finalizers(encoding, stored, metadata)
    check_updated_metadata(encoding.resource, metadata, now)
    new = _merge_parts(stored.body, body, part)
    check_role_reference(encoding.resource, new, stored.body)
    metadata = {name: value for name, value in metadata.items() if name not in _SERVER_METADATA}
    metadata |= {name: now[name] for name in _SERVER_METADATA if name in now}
    metadata["resourceVersion"] = now["resourceVersion"]
    if "generation" in now and _changes_generation(encoding, stored.body, new, status=status):
        metadata["generation"] = now["generation"] + 1
    return new | {"metadata": metadata}


def _check_identity(stored: StoredObject, metadata: JsonObject) -> None:
    """Check that a body has the name and namespace of the object; fill them in if it has none."""
    now = stored.metadata
    if metadata.setdefault("name", now["name"]) != now["name"]:
        raise statuses.bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL "
            f"({now['name']})"
        )
    if "namespace" not in now:
        metadata.pop("namespace", None)  # the server drops that of a cluster-scoped object
    elif (metadata.get("namespace") or now["namespace"]) != now["namespace"]:
        raise _wrong_namespace()
    else:
        metadata["namespace"] = now["namespace"]


def _status_write_metadata(
    encoding: Encoding, now: Mapping[str, Any], sent: Mapping[str, Any]
) -> JsonObject:
    changed = status_metadata(encoding)
    kept = {name: value for name, value in now.items() if name not in changed}
    return kept | {name: sent[name] for name in changed if name in sent}


def _merge_parts(old: JsonObject, new: JsonObject, part: Part) -> JsonObject:
    """Return the new body, with the old values of the parts that aren't written."""
    if part == "whole":
        return new
    source, rest = (new, old) if part == "status" else (old, new)
    body = {name: value for name, value in rest.items() if name != "status"}
    return body | ({"status": source["status"]} if "status" in source else {})


def _changes_generation(
    encoding: Encoding, old: JsonObject, new: JsonObject, *, status: bool
) -> bool:
    """Return True if a change increments the generation: of the spec; of all but the metadata (and
    a status subresource) of custom objects.
    """
    if not encoding.custom:
        return bool(new.get("spec") != old.get("spec"))
    ignored = {"metadata", "status"} if status else {"metadata"}
    before, after = (
        {name: value for name, value in body.items() if name not in ignored} for body in (old, new)
    )
    return before != after


def _check_finalizers(encoding: Encoding, stored: StoredObject, metadata: JsonObject) -> None:
    now = stored.metadata
    if "deletionTimestamp" not in now:
        return
    present = now.get("finalizers") or ()
    added = [each for each in metadata.get("finalizers") or () if each not in present]
    if added:
        raise statuses.new_finalizers(encoding.resource, stored.name, added)


def sent_version(metadata: Mapping[str, Any]) -> int:
    """Return the resourceVersion, 0 for none; raise ``ServerFailure`` if it is not a number."""
    text: str = metadata.get("resourceVersion") or "0"
    if not (text.isascii() and text.isdecimal()):
        message = f'strconv.ParseUint: parsing "{text}": invalid syntax'
        raise server_error(Status(500, "", message))
    return int(text)


def _check_preconditions(encoding: Encoding, stored: StoredObject, metadata: JsonObject) -> None:
    uid = metadata.get("uid")
    if uid and uid != stored.uid:
        raise statuses.failed_precondition(encoding.resource, stored.name, "UID", uid, stored.uid)
    _check_version(encoding, stored, metadata)


def _check_version(encoding: Encoding, stored: StoredObject, metadata: JsonObject) -> None:
    resource, version = encoding.resource, sent_version(metadata)
    if version and version != stored.version:
        raise statuses.conflict(resource, stored.name)
    if not version and not allows_unconditional_update(encoding):
        text = "Invalid value: 0: must be specified for an update"
        raise statuses.invalid(
            resource.plural,
            stored.name,
            "metadata.resourceVersion",
            "FieldValueInvalid",
            text,
            group=resource.group,
        )


def check_applied_version(encoding: Encoding, stored: StoredObject, metadata: JsonObject) -> None:
    """Check the resourceVersion of an applied configuration.

    Raises:
        Invalid: the resourceVersion is ``0``.
        Conflict: the resourceVersion isn't the newest.
        ServerFailure: the resourceVersion is not a number.
    """
    if metadata.get("resourceVersion"):
        _check_version(encoding, stored, metadata)


def limit_to_part(
    encoding: Encoding, config: JsonObject, part: Part, *, status: bool
) -> JsonObject:
    """Return the fields of an applied configuration that a write of ``part`` can set."""
    if part == "main" and status:
        return {name: value for name, value in config.items() if name != "status"}
    if part != "status":
        return config
    identity = ("name", "namespace", "uid", "resourceVersion", *status_metadata(encoding))
    metadata = config["metadata"]
    found = {name: config[name] for name in ("apiVersion", "kind", "status") if name in config}
    return found | {"metadata": {name: metadata[name] for name in identity if name in metadata}}


def check_delete_preconditions(
    encoding: Encoding, stored: StoredObject, uid: str | None, resource_version: str | None
) -> None:
    """Raise ``Conflict`` if a precondition of a deletion doesn't hold."""
    conditions = {
        "UID": (uid, stored.uid),
        "ResourceVersion": (resource_version, str(stored.version)),
    }
    for field, (expected, found) in conditions.items():
        if expected and expected != found:
            raise statuses.delete_conflict(encoding.resource, stored.name, field, expected, found)


def marked_for_deletion(
    stored: StoredObject, finalizers: Sequence[str], now: dt.datetime
) -> JsonObject:
    """Return the state of an object that is being deleted, and waits for its finalizers."""
    metadata = stored.metadata
    marks: JsonObject = {"finalizers": list(finalizers)} if finalizers else {}
    marks |= {"deletionTimestamp": _format_time(now), "deletionGracePeriodSeconds": 0}
    if "generation" in metadata:
        marks["generation"] = metadata["generation"] + 1  # as a real server does
    return stored.body | {"metadata": metadata | marks}


def is_deletion_complete(body: JsonObject) -> bool:
    """Return True if an object is marked for deletion and has no finalizer left."""
    metadata = body["metadata"]
    return "deletionTimestamp" in metadata and not metadata.get("finalizers")


def _format_time(moment: dt.datetime) -> str:
    # Several times as fast as ``strftime``, which each creation would call.
    return f"{moment.astimezone(dt.UTC).replace(tzinfo=None).isoformat(timespec='seconds')}Z"
