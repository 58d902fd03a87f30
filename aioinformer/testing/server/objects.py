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
from aioinformer.testing.cluster.registry import Preconditions, WriteOptions
from aioinformer.testing.faults.faults import RequestVerb
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire import statuses as write_statuses
from aioinformer.testing.wire.encoding import Encoding, encode_document
from aioinformer.testing.wire.urls import ResourcePath
from aioinformer.testing.writes import validation
from aioinformer.testing.writes.patches import (
    BodyPatch,
    JsonPatch,
    MergePatch,
    StrategicMergePatch,
    decode_operations,
)

__all__ = ["BODY_LIMIT", "WRITE_VERBS", "ObjectRequest", "ObjectResponse", "handle_request"]

BODY_LIMIT = 3 * 1024 * 1024
"""The longest body of a write (the API server's ``MaxRequestBodyBytes``)."""

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
"""For built-in kinds alone."""
APPLY_PATCH = "application/apply-patch+yaml"
"""YAML of which JSON is read here."""
PATCH_TYPES = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)
DRY_RUN_ALL = "All"
"""The one value of ``dryRun``."""
PROPAGATIONS = ("Foreground", "Background", "Orphan")
OCTET_STREAM = "application/octet-stream"
"""What an HTTP library takes a body for that says nothing of itself."""

WRITE_VERBS: Mapping[str, RequestVerb] = {
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}


@dataclass(frozen=True, slots=True)
class ObjectRequest:
    """One request."""

    method: str
    path: ResourcePath
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    content_type: str = JSON
    body: bytes = b""

    def json(self) -> dict[str, Any]:
        """The body.

        Raises:
            BadRequest, ServerError: it is no JSON object, or in another format.
        """
        if self.content_type not in (JSON, OCTET_STREAM):
            raise statuses.unsupported_media_type(JSON)
        try:
            return msgspec.json.decode(self.body, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise statuses.bad_request(f"the body is not a JSON object: {error}") from error

    @property
    def write_options(self) -> WriteOptions:
        """How a write is meant."""
        manager = self.query.get("fieldManager", "")
        return WriteOptions(self.path.part, manager, "dryRun" in self.query)

    def check_query(self, options: str) -> None:
        """That its parameters can be, those that are known.

        Raises:
            Invalid: they can't.
        """
        dry = self.query.get("dryRun", DRY_RUN_ALL)
        if dry != DRY_RUN_ALL:
            text = f'Unsupported value: ["{dry}"]: supported values: "{DRY_RUN_ALL}"'
            raise write_statuses.invalid_options(options, "dryRun", "FieldValueNotSupported", text)


@dataclass(frozen=True, slots=True)
class ObjectResponse:
    """What comes of one."""

    body: dict[str, Any]
    status: int = 200
    encoding: Encoding | None = None
    """The object's; ``None`` for a document."""

    @property
    def raw(self) -> bytes:
        """The bytes."""
        if self.encoding is None:
            return encode_document(self.body)
        return self.encoding.add_type_meta(self.encoding.encode_item(self.body)) + b"\n"


def handle_request(cluster: Cluster, request: ObjectRequest) -> ObjectResponse:
    """The answer to anything but a list or a watch.

    Raises:
        ServerError: the server refuses.
    """
    target, size = request.path, len(request.body)
    if size > BODY_LIMIT:
        raise statuses.body_too_large(BODY_LIMIT)
    if request.method in ("POST", "DELETE") and target.part != "main":
        verb = "create" if request.method == "POST" else "delete"
        raise write_statuses.unsupported_method(verb, target.resource)
    verbs: dict[tuple[str, bool], Callable[[Cluster, ObjectRequest], ObjectResponse]] = {
        ("GET", True): _get,
        ("POST", False): _create,
        ("PUT", True): _update,
        ("PATCH", True): _patch,
        ("DELETE", True): _delete,
    }
    act = verbs.get((request.method, bool(target.name)))
    if act is None or (target.resource.namespaced and target.namespace is None):
        raise statuses.method_not_allowed()  # there is no default namespace here
    return act(cluster, request)


def _get(cluster: Cluster, request: ObjectRequest) -> ObjectResponse:
    return _object_response(
        request, cluster.get(*_resource_and_name(request), namespace=request.path.namespace)
    )


def _create(cluster: Cluster, request: ObjectRequest) -> ObjectResponse:
    request.check_query("CreateOptions")
    target, body = request.path, request.json()
    made = cluster.registry.create(target.resource, body, target.namespace, request.write_options)
    return _object_response(request, made, 201)


def _update(cluster: Cluster, request: ObjectRequest) -> ObjectResponse:
    request.check_query("UpdateOptions")
    target, whole = request.path, validation.check_metadata(request.json())
    _check_name(target, whole)
    made = cluster.registry.update(target.resource, whole, target.namespace, request.write_options)
    return _object_response(request, made)


def _patch(cluster: Cluster, request: ObjectRequest) -> ObjectResponse:
    request.check_query("PatchOptions")
    if request.content_type == APPLY_PATCH:
        return _apply(cluster, request)
    if "force" in request.query:
        text = "Forbidden: may not be specified for non-apply patch"
        raise write_statuses.invalid_options("PatchOptions", "force", "FieldValueForbidden", text)
    patch: BodyPatch
    if request.content_type in (MERGE_PATCH, OCTET_STREAM):
        patch = MergePatch(_decode_configuration(request))
    elif request.content_type == JSON_PATCH:
        patch = JsonPatch(decode_operations(request.body))
    elif request.content_type == STRATEGIC_PATCH and request.path.resource in BUILT_IN:
        patch = StrategicMergePatch(_decode_configuration(request))
    else:
        raise statuses.unsupported_media_type(", ".join(PATCH_TYPES))
    namespace = request.path.namespace
    return _object_response(
        request,
        cluster.registry.patch(
            *_resource_and_name(request), patch, namespace, request.write_options
        ),
    )


def _apply(cluster: Cluster, request: ObjectRequest) -> ObjectResponse:
    target, resource = request.path, request.path.resource
    if not request.query.get("fieldManager"):
        text = "Required value: is required for apply patch"
        reason = "FieldValueRequired"
        raise write_statuses.invalid_options("PatchOptions", "fieldManager", reason, text)
    config = validation.check_metadata(_decode_configuration(request))
    found = config.get("apiVersion", ""), config.get("kind", "")
    if found != (resource.api_version, resource.kind):
        raise statuses.bad_request(f"invalid object type: {found[0] or '/'}, Kind={found[1]}")
    if config["metadata"].get("managedFields") is not None:
        raise statuses.bad_request("metadata.managedFields must be nil")
    _check_name(target, config)
    force = request.query.get("force", "false").lower() not in ("false", "0")
    body, new = cluster.registry.apply(
        resource, config, target.namespace, request.write_options, force=force
    )
    return _object_response(request, body, 201 if new else 200)


def _decode_configuration(request: ObjectRequest) -> dict[str, Any]:
    """The object that a merge patch or an apply is."""
    try:
        found: object = msgspec.json.decode(request.body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise statuses.bad_request("invalid JSON patch") from error
    if not isinstance(found, dict):
        raise write_statuses.undecodable_patch(found, "map[string]interface {}")
    return cast("dict[str, Any]", found)


def _check_name(path: ResourcePath, body: dict[str, Any]) -> None:
    found = body["metadata"].setdefault("name", path.name)
    if found != path.name:
        raise statuses.bad_request(
            f"the name of the object ({found}) does not match the name on the URL ({path.name})"
        )


def _delete(cluster: Cluster, request: ObjectRequest) -> ObjectResponse:
    request.check_query("DeleteOptions")
    target = request.path
    options = _decode_delete_options(request.json() if request.body else {})
    propagation = options.propagation_policy or request.query.get("propagationPolicy", "")
    if propagation not in ("", *PROPAGATIONS):
        listed = ", ".join(f'"{each}"' for each in (*PROPAGATIONS, "nil"))
        text = f'Unsupported value: "{propagation}": supported values: {listed}'
        reason = "FieldValueNotSupported"
        raise write_statuses.invalid_options("DeleteOptions", "propagationPolicy", reason, text)
    held = options.preconditions or _PreconditionsBody()
    last = cluster.registry.delete(
        *_resource_and_name(request),
        target.namespace,
        preconditions=Preconditions(held.uid, held.resource_version, propagation),
        dry_run=request.write_options.dry_run or bool(options.dry_run),
    )
    metadata = last["metadata"]
    if metadata.get("finalizers"):
        return _object_response(request, last)  # it is still there
    return ObjectResponse(statuses.success_document(target.resource, target.name, metadata["uid"]))


def _resource_and_name(request: ObjectRequest) -> tuple[Any, str]:
    return request.path.resource, request.path.name


def _object_response(
    request: ObjectRequest, body: dict[str, Any], status: int = 200
) -> ObjectResponse:
    return ObjectResponse(body, status, Encoding(request.path.resource))


class _PreconditionsBody(msgspec.Struct, rename="camel"):
    uid: str | None = None
    resource_version: str | None = None


class _DeleteOptionsBody(msgspec.Struct, rename="camel"):
    """What is read of the body of a DELETE. No object here has a grace period."""

    preconditions: _PreconditionsBody | None = None
    propagation_policy: str | None = None
    dry_run: list[str] | None = None


def _decode_delete_options(body: dict[str, Any]) -> _DeleteOptionsBody:
    try:
        return msgspec.convert(body, _DeleteOptionsBody)
    except msgspec.ValidationError as error:
        raise statuses.bad_request(str(error)) from error
