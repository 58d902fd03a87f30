"""Requests about single objects: a method, a target and a body in, what a server answers out.

Sans-I/O, and shared by the two front ends: ``handlers`` has such requests over HTTP, ``sending``
from writers without sockets. What a write does to an object is ``registry``'s work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec

from aioinformer._core.objects.resources import BUILT_IN
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.cluster.registry import Conditions, Manner
from aioinformer.testing.faults.faults import Verb
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire import statuses as write_statuses
from aioinformer.testing.wire.encoding import Encoding, document_bytes
from aioinformer.testing.wire.urls import Target
from aioinformer.testing.writes import validation
from aioinformer.testing.writes.patches import (
    JsonPatch,
    MergePatch,
    Patch,
    StrategicMergePatch,
    operations_in,
)

__all__ = ["BODY_LIMIT", "WRITES", "Answered", "Asked", "answer"]

BODY_LIMIT = 3 * 1024 * 1024
"""The longest body of a write (the API server's ``MaxRequestBodyBytes``)."""

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
"""For built-in kinds alone."""
APPLY_PATCH = "application/apply-patch+yaml"
"""YAML of which JSON is read here."""
PATCHES = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)
DRY = "All"
"""The one value of ``dryRun``."""
PROPAGATIONS = ("Foreground", "Background", "Orphan")
UNNAMED = "application/octet-stream"
"""What an HTTP library takes a body for that says nothing of itself."""

WRITES: Mapping[str, Verb] = {
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """One request."""

    method: str
    target: Target
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    content_type: str = JSON
    body: bytes = b""

    def json(self) -> dict[str, Any]:
        """The body.

        Raises:
            BadRequest, ServerError: it is no JSON object, or in another format.
        """
        if self.content_type not in (JSON, UNNAMED):
            raise statuses.unsupported_media_type(JSON)
        try:
            return msgspec.json.decode(self.body, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise statuses.bad_request(f"the body is not a JSON object: {error}") from error

    @property
    def manner(self) -> Manner:
        """How a write is meant."""
        manager = self.query.get("fieldManager", "")
        return Manner(self.target.part, manager, "dryRun" in self.query)

    def check_query(self, options: str) -> None:
        """That its parameters can be, those that are known.

        Raises:
            Invalid: they can't.
        """
        dry = self.query.get("dryRun", DRY)
        if dry != DRY:
            text = f'Unsupported value: ["{dry}"]: supported values: "{DRY}"'
            raise write_statuses.invalid_options(options, "dryRun", "FieldValueNotSupported", text)


@dataclass(frozen=True, slots=True)
class Answered:
    """What comes of one."""

    body: dict[str, Any]
    status: int = 200
    encoding: Encoding | None = None
    """The object's; ``None`` for a document."""

    @property
    def raw(self) -> bytes:
        """The bytes."""
        if self.encoding is None:
            return document_bytes(self.body)
        return self.encoding.whole(self.encoding.item(self.body)) + b"\n"


def answer(cluster: Cluster, asked: Asked) -> Answered:
    """The answer to anything but a list or a watch.

    Raises:
        ServerError: the server refuses.
    """
    target, size = asked.target, len(asked.body)
    if size > BODY_LIMIT:
        raise statuses.body_too_large(BODY_LIMIT)
    if asked.method in ("POST", "DELETE") and target.part != "main":
        verb = "create" if asked.method == "POST" else "delete"
        raise write_statuses.unsupported_method(verb, target.resource)
    verbs: dict[tuple[str, bool], Callable[[Cluster, Asked], Answered]] = {
        ("GET", True): _get,
        ("POST", False): _create,
        ("PUT", True): _update,
        ("PATCH", True): _patch,
        ("DELETE", True): _delete,
    }
    act = verbs.get((asked.method, bool(target.name)))
    if act is None or (target.resource.namespaced and target.namespace is None):
        raise statuses.method_not_allowed()  # there is no default namespace here
    return act(cluster, asked)


def _get(cluster: Cluster, asked: Asked) -> Answered:
    return _object(asked, cluster.get(*_named(asked), namespace=asked.target.namespace))


def _create(cluster: Cluster, asked: Asked) -> Answered:
    asked.check_query("CreateOptions")
    target, body = asked.target, asked.json()
    made = cluster.registry.create(target.resource, body, target.namespace, asked.manner)
    return _object(asked, made, 201)


def _update(cluster: Cluster, asked: Asked) -> Answered:
    asked.check_query("UpdateOptions")
    target, whole = asked.target, validation.checked(asked.json())
    _check_name(target, whole)
    made = cluster.registry.update(target.resource, whole, target.namespace, asked.manner)
    return _object(asked, made)


def _patch(cluster: Cluster, asked: Asked) -> Answered:
    asked.check_query("PatchOptions")
    if asked.content_type == APPLY_PATCH:
        return _apply(cluster, asked)
    if "force" in asked.query:
        text = "Forbidden: may not be specified for non-apply patch"
        raise write_statuses.invalid_options("PatchOptions", "force", "FieldValueForbidden", text)
    patch: Patch
    if asked.content_type in (MERGE_PATCH, UNNAMED):
        patch = MergePatch(_configuration(asked))
    elif asked.content_type == JSON_PATCH:
        patch = JsonPatch(operations_in(asked.body))
    elif asked.content_type == STRATEGIC_PATCH and asked.target.resource in BUILT_IN:
        patch = StrategicMergePatch(_configuration(asked))
    else:
        raise statuses.unsupported_media_type(", ".join(PATCHES))
    namespace = asked.target.namespace
    return _object(asked, cluster.registry.patch(*_named(asked), patch, namespace, asked.manner))


def _apply(cluster: Cluster, asked: Asked) -> Answered:
    target, resource = asked.target, asked.target.resource
    if not asked.query.get("fieldManager"):
        text = "Required value: is required for apply patch"
        reason = "FieldValueRequired"
        raise write_statuses.invalid_options("PatchOptions", "fieldManager", reason, text)
    config = validation.checked(_configuration(asked))
    found = config.get("apiVersion", ""), config.get("kind", "")
    if found != (resource.api_version, resource.kind):
        raise statuses.bad_request(f"invalid object type: {found[0] or '/'}, Kind={found[1]}")
    if config["metadata"].get("managedFields") is not None:
        raise statuses.bad_request("metadata.managedFields must be nil")
    _check_name(target, config)
    force = asked.query.get("force", "false").lower() not in ("false", "0")
    body, new = cluster.registry.apply(
        resource, config, target.namespace, asked.manner, force=force
    )
    return _object(asked, body, 201 if new else 200)


def _configuration(asked: Asked) -> dict[str, Any]:
    """The object that a merge patch or an apply is."""
    try:
        found: object = msgspec.json.decode(asked.body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise statuses.bad_request("invalid JSON patch") from error
    if not isinstance(found, dict):
        raise write_statuses.undecodable_patch(found, "map[string]interface {}")
    return cast("dict[str, Any]", found)


def _check_name(target: Target, whole: dict[str, Any]) -> None:
    found = whole["metadata"].setdefault("name", target.name)
    if found != target.name:
        raise statuses.bad_request(
            f"the name of the object ({found}) does not match the name on the URL ({target.name})"
        )


def _delete(cluster: Cluster, asked: Asked) -> Answered:
    asked.check_query("DeleteOptions")
    target = asked.target
    options = _options(asked.json() if asked.body else {})
    propagation = options.propagation_policy or asked.query.get("propagationPolicy", "")
    if propagation not in ("", *PROPAGATIONS):
        listed = ", ".join(f'"{each}"' for each in (*PROPAGATIONS, "nil"))
        text = f'Unsupported value: "{propagation}": supported values: {listed}'
        reason = "FieldValueNotSupported"
        raise write_statuses.invalid_options("DeleteOptions", "propagationPolicy", reason, text)
    held = options.preconditions or _Preconditions()
    last = cluster.registry.delete(
        *_named(asked),
        target.namespace,
        conditions=Conditions(held.uid, held.resource_version, propagation),
        dry=asked.manner.dry or bool(options.dry_run),
    )
    metadata = last["metadata"]
    if metadata.get("finalizers"):
        return _object(asked, last)  # it is still there
    return Answered(statuses.success(target.resource, target.name, metadata["uid"]))


def _named(asked: Asked) -> tuple[Any, str]:
    return asked.target.resource, asked.target.name


def _object(asked: Asked, body: dict[str, Any], status: int = 200) -> Answered:
    return Answered(body, status, Encoding(asked.target.resource))


class _Preconditions(msgspec.Struct, rename="camel"):
    uid: str | None = None
    resource_version: str | None = None


class _DeleteOptions(msgspec.Struct, rename="camel"):
    """What is read of the body of a DELETE. No object here has a grace period."""

    preconditions: _Preconditions | None = None
    propagation_policy: str | None = None
    dry_run: list[str] | None = None


def _options(body: dict[str, Any]) -> _DeleteOptions:
    try:
        return msgspec.convert(body, _DeleteOptions)
    except msgspec.ValidationError as error:
        raise statuses.bad_request(str(error)) from error
