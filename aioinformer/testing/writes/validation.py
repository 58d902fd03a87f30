"""What a write does to a body, before it is stored: checks, stamps, what is kept.

Pure functions from the body that was sent (and the one that is stored) to the one to store. They
do what an API server does for every type alike; what it does for one type (defaults of a Pod,
validation of a schema) is left out: a body is otherwise stored as sent.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

import msgspec

from aioinformer.errors import ServerError, Status, server_error
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire import statuses as write_statuses
from aioinformer.testing.wire.encoding import Encoding, StoredObject

JsonObject = dict[str, Any]

_SERVER_METADATA = (
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
"""Metadata that the server alone writes: an update can't change it."""

_OMITTED_WHEN_EMPTY = ("labels", "annotations", "finalizers", "ownerReferences")
"""Metadata that isn't there when it is empty."""

_GENERATE_NAME_LIMIT = 58
"""Characters of ``generateName`` that are used, so that 5 more fit into 63."""


class _ObjectMeta(msgspec.Struct, rename="camel"):
    """The fields of ObjectMeta that are read here, with the types that they must have."""

    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None


class _SentObject(msgspec.Struct):
    metadata: _ObjectMeta


def check_metadata(body: Mapping[str, Any]) -> JsonObject:
    """The body with its metadata, whose fields have the types that they must have.

    Raises:
        BadRequest: they don't.
    """
    whole: JsonObject = {**body, "metadata": body.get("metadata") or {}}
    try:
        msgspec.convert(whole, _SentObject)
    except msgspec.ValidationError as error:
        raise statuses.bad_request(str(error)) from error
    return whole


def validated(encoding: Encoding, body: Mapping[str, Any]) -> JsonObject:
    """A copy of a body that was sent, with its type filled in.

    Raises:
        BadRequest: it is no object of this resource.
    """
    resource = encoding.resource
    # Through JSON and back: a copy, and the same values that any client will read.
    copy: JsonObject = msgspec.json.decode(msgspec.json.encode(dict(body), enc_hook=_to_plain_json))
    head = {"kind": resource.kind, "apiVersion": resource.api_version}
    for key, expected in head.items():
        found = copy.get(key, expected)
        if found != expected and encoding.custom and key == "kind":
            raise _wrong_kind(encoding, copy, str(found))
        if found != expected:
            what = "kind" if key == "kind" else "API version"
            raise statuses.bad_request(
                f"the {what} in the data ({found}) does not match the expected {what} ({expected})"
            )
    metadata: JsonObject = check_metadata(copy)["metadata"]
    for name in _OMITTED_WHEN_EMPTY:
        if name in metadata and not metadata[name]:
            del metadata[name]
    return head | copy | {"metadata": metadata}


def _wrong_kind(encoding: Encoding, body: JsonObject, kind: str) -> ServerError:
    """The kind of a custom resource is checked by other code than a built-in one's."""
    name = str(body["metadata"].get("name", "")) if isinstance(body.get("metadata"), dict) else ""
    text = f'Invalid value: "{kind}": must be {encoding.resource.kind}'
    group = encoding.resource.group
    return statuses.invalid(kind, name, "kind", "FieldValueInvalid", text, group=group)


def _to_plain_json(value: object) -> object:
    """Other mappings and sequences than JSON's own: the read-only views of a cached object."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    if isinstance(value, Sequence):
        return list(cast("Sequence[object]", value))
    raise TypeError(f"a {type(value).__name__} has no form in JSON: {value!r}")


Part: TypeAlias = Literal["whole", "main", "status"]
"""What of an object is written: all of it, all but the status, or the status alone."""


@dataclass(frozen=True, slots=True)
class CreationDefaults:
    """What chance and the clock give a new object."""

    uid: str
    name_suffix: str
    """What follows ``generateName``."""
    time: dt.datetime


def build_created(
    encoding: Encoding,
    body: Mapping[str, Any],
    defaults: CreationDefaults,
    *,
    namespace: str | None,
) -> JsonObject:
    """A new object.

    Args:
        encoding: its resource.
        body: what was sent.
        defaults: uid, time, and the rest of a generated name.
        namespace: the one in the URL; the body's own, or ``default``, if there is none.

    Raises:
        BadRequest, Invalid, ServerFailure: what was sent can't be created.
    """
    whole = validated(encoding, body)
    metadata = whole["metadata"]
    if metadata.get("resourceVersion"):
        message = "resourceVersion should not be set on objects to be created"
        raise server_error(Status(500, "", message))
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = metadata["generateName"][:_GENERATE_NAME_LIMIT] + defaults.name_suffix
    _check_name(encoding, metadata.get("name", ""))
    _set_namespace(encoding, metadata, namespace)
    metadata |= {"uid": defaults.uid, "creationTimestamp": _format_time(defaults.time)}
    for absent in ("deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
        metadata.pop(absent, None)
    if encoding.custom or "spec" in whole:
        metadata["generation"] = 1
    return whole


def _check_name(encoding: Encoding, name: str) -> None:
    kind, group = encoding.resource.kind, encoding.resource.group
    if not name:
        text = "Required value: name or generateName is required"
        raise statuses.invalid(kind, "", "metadata.name", "FieldValueRequired", text, group=group)
    if name in (".", "..") or "/" in name or "%" in name:
        fault = f"may not be '{name}'" if name in (".", "..") else "may not contain '/' or '%'"
        text = f'Invalid value: "{name}": {fault}'
        raise statuses.invalid(kind, name, "metadata.name", "FieldValueInvalid", text, group=group)


def _set_namespace(encoding: Encoding, metadata: JsonObject, namespace: str | None) -> None:
    own = metadata.get("namespace")
    if not encoding.resource.namespaced:
        if own or namespace:
            raise statuses.bad_request("namespace is not allowed on a cluster-scoped object")
        return
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
    """An object's next state from an accepted body; equal to the stored one if nothing changes.

    Args:
        encoding: its resource.
        stored: its state.
        body: the body.
        part: which part of the object is written.
        status: whether the status is a part of its own.

    Raises:
        BadRequest: it is no object of this resource, or another one.
        Conflict: it was made from a state that is no longer the newest, or of another uid.
        Invalid: a custom resource without the resourceVersion that it was made from; a finalizer
            that comes after the deletion.
    """
    metadata = body["metadata"]
    _check_preconditions(encoding, stored, metadata)
    now = stored.body["metadata"]
    if metadata.setdefault("name", now["name"]) != now["name"]:
        raise statuses.bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL "
            f"({now['name']})"
        )
    if metadata.setdefault("namespace", now.get("namespace")) != now.get("namespace"):
        raise _wrong_namespace()
    if part == "status":
        metadata = dict(now)
    _check_finalizers(encoding, stored, metadata)
    new = _merge_parts(stored.body, body, part)
    metadata = {name: value for name, value in metadata.items() if name not in _SERVER_METADATA}
    metadata |= {name: now[name] for name in _SERVER_METADATA if name in now}
    metadata["resourceVersion"] = now["resourceVersion"]
    if metadata["namespace"] is None:
        del metadata["namespace"]
    if "generation" in now and _changes_generation(encoding, stored.body, new, status=status):
        metadata["generation"] = now["generation"] + 1
    return new | {"metadata": metadata}


def _merge_parts(old: JsonObject, new: JsonObject, part: Part) -> JsonObject:
    """The new body, with the parts that aren't written as they were."""
    if part == "whole":
        return new
    source, rest = (new, old) if part == "status" else (old, new)
    body = {name: value for name, value in rest.items() if name != "status"}
    return body | ({"status": source["status"]} if "status" in source else {})


def _changes_generation(
    encoding: Encoding, old: JsonObject, new: JsonObject, *, status: bool
) -> bool:
    """Whether the generation is another one: for built-in types it is that of the spec; for
    custom ones of everything but the metadata, and the status if that is a part of its own.
    """
    if not encoding.custom:
        return bool(new.get("spec") != old.get("spec"))
    aside = {"metadata", "status"} if status else {"metadata"}
    before, after = ({name: one[name] for name in one if name not in aside} for one in (old, new))
    return before != after


def _check_finalizers(encoding: Encoding, stored: StoredObject, metadata: JsonObject) -> None:
    now = stored.body["metadata"]
    if "deletionTimestamp" not in now:
        return
    held = now.get("finalizers") or ()
    added = [each for each in metadata.get("finalizers") or () if each not in held]
    if added:
        raise write_statuses.new_finalizers(encoding.resource, stored.name, added)


def _check_preconditions(encoding: Encoding, stored: StoredObject, metadata: JsonObject) -> None:
    resource = encoding.resource
    uid, version = metadata.get("uid"), metadata.get("resourceVersion")
    if uid and uid != stored.uid:
        raise statuses.failed_precondition(resource, stored.name, "UID", uid, stored.uid)
    if version and not version.isdecimal():
        text = f'strconv.ParseUint: parsing "{version}": invalid syntax'
        raise server_error(Status(500, "", text))
    if version and version != str(stored.version):
        raise statuses.conflict(resource, stored.name)
    if not version and encoding.custom:
        text = "Invalid value: 0: must be specified for an update"
        raise statuses.invalid(
            resource.plural,
            stored.name,
            "metadata.resourceVersion",
            "FieldValueInvalid",
            text,
            group=resource.group,
        )


def check_apply_preconditions(
    encoding: Encoding, stored: StoredObject, metadata: JsonObject
) -> None:
    """That an applied configuration is meant for this object, in this state.

    Raises:
        Conflict, Invalid: it names another version, or another uid.
    """
    uid, version = metadata.get("uid"), metadata.get("resourceVersion")
    if uid and uid != stored.uid:
        raise write_statuses.immutable_uid(encoding.resource, stored.name, uid)
    if version and version != str(stored.version):
        raise statuses.conflict(encoding.resource, stored.name)


def limit_to_part(config: JsonObject, part: Part, *, status: bool) -> JsonObject:
    """What of an applied configuration can be set through that part of the object."""
    if part == "main" and status:
        return {name: value for name, value in config.items() if name != "status"}
    if part != "status":
        return config
    identity = ("name", "namespace", "uid", "resourceVersion")
    metadata = config["metadata"]
    found = {name: config[name] for name in ("apiVersion", "kind", "status") if name in config}
    return found | {"metadata": {name: metadata[name] for name in identity if name in metadata}}


def check_delete_preconditions(
    encoding: Encoding, stored: StoredObject, uid: str | None, resource_version: str | None
) -> None:
    """The preconditions of a deletion.

    Raises:
        Conflict: one of them doesn't hold.
    """
    held = {"UID": (uid, stored.uid), "ResourceVersion": (resource_version, str(stored.version))}
    for field, (expected, found) in held.items():
        if expected and expected != found:
            raise statuses.delete_conflict(encoding.resource, stored.name, field, expected, found)


def marked_for_deletion(
    stored: StoredObject, finalizers: Sequence[str], now: dt.datetime
) -> JsonObject:
    """An object that waits for its finalizers: marked as deleted, still there."""
    metadata = stored.body["metadata"]
    marks: JsonObject = {"finalizers": list(finalizers)} if finalizers else {}
    marks |= {"deletionTimestamp": _format_time(now), "deletionGracePeriodSeconds": 0}
    if "generation" in metadata:
        marks["generation"] = metadata["generation"] + 1  # recording 30
    return stored.body | {"metadata": metadata | marks}


def is_deletion_complete(body: JsonObject) -> bool:
    """Whether an object was marked as deleted and its last finalizer is gone."""
    metadata = body["metadata"]
    return "deletionTimestamp" in metadata and not metadata.get("finalizers")


def _format_time(moment: dt.datetime) -> str:
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
