"""Requests for single objects: method, path, query and body in, the server's answer out.

The module is sans-I/O. The HTTP server and the writers without sockets share it, so that both read
a request the same way. It checks the request and decodes the body; the registry of the cluster
does the write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

import msgspec

from aioinformer._core.objects.resources import BUILT_IN
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.cluster.registry import Preconditions, WriteOptions
from aioinformer.testing.faults.faults import RequestVerb
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import Encoding, JsonObject, encode_document
from aioinformer.testing.wire.negotiation import JSON
from aioinformer.testing.wire.urls import ResourcePath
from aioinformer.testing.writes import validation
from aioinformer.testing.writes.patches import (
    BodyPatch,
    JsonPatch,
    MergePatch,
    StrategicMergePatch,
)

__all__ = ["BODY_LIMIT", "WRITE_VERBS", "ObjectRequest", "ObjectResponse", "handle_request"]

BODY_LIMIT = 3 * 1024 * 1024
"""The longest body of a write (the API server's ``MaxRequestBodyBytes``)."""

MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
"""The media type of a patch that only built-in kinds accept."""
APPLY_PATCH = "application/apply-patch+yaml"
"""The media type of an apply. Only JSON, which is a part of YAML, is read here."""
PATCH_TYPES = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)
DRY_RUN_ALL = "All"
"""The only value of ``dryRun``."""
PROPAGATIONS = ("Foreground", "Background", "Orphan")
OCTET_STREAM = "application/octet-stream"
"""The media type that aiohttp assumes for a body without a Content-Type."""

WRITE_VERBS: Mapping[str, RequestVerb] = {
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}


@dataclass(frozen=True, slots=True)
class ObjectRequest:
    """A request for one object, or for the collection to create an object in."""

    method: str
    path: ResourcePath
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    content_type: str = JSON
    body: bytes = b""

    def json(self) -> JsonObject:
        """Return the decoded body.

        Raises:
            BadRequest: the body is not a JSON object.
            ServerError: the body has another media type.
        """
        if self.content_type not in (JSON, OCTET_STREAM):
            raise statuses.unsupported_media_type(JSON)
        try:
            return msgspec.json.decode(self.body, type=JsonObject)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise statuses.bad_request(f"the body is not a JSON object: {error}") from error

    @property
    def write_options(self) -> WriteOptions:
        """The options of the write."""
        manager = self.query.get("fieldManager", "")
        return WriteOptions(self.path.part, manager, "dryRun" in self.query)

    def check_query(self, options: str) -> None:
        """Check the query parameters of the write.

        Args:
            options: the kind that the error names, such as ``CreateOptions``.

        Raises:
            Invalid: ``dryRun`` has another value than ``All``.
        """
        dry_run = self.query.get("dryRun", DRY_RUN_ALL)
        if dry_run != DRY_RUN_ALL:
            text = f'Unsupported value: ["{dry_run}"]: supported values: "{DRY_RUN_ALL}"'
            raise statuses.invalid_options(options, "dryRun", "FieldValueNotSupported", text)


@dataclass(frozen=True, slots=True)
class ObjectResponse:
    """The answer to a request for one object."""

    body: JsonObject
    status: int = 200
    encoding: Encoding | None = None
    """The encoding of the object; ``None`` if the body is a document such as a Status."""

    @property
    def raw(self) -> bytes:
        """The body as bytes."""
        if self.encoding is None:
            return encode_document(self.body)
        return self.encoding.add_type_meta(self.encoding.encode_item(self.body)) + b"\n"


def handle_request(cluster: Cluster, request: ObjectRequest) -> ObjectResponse:
    """Return the answer to a request that is neither a list nor a watch.

    Raises:
        ServerError: the answer is this error.
    """
    path = request.path
    if len(request.body) > BODY_LIMIT:
        raise statuses.body_too_large(BODY_LIMIT)
    if request.method in ("POST", "DELETE") and path.part != "main":
        verb = "create" if request.method == "POST" else "delete"
        raise statuses.unsupported_method(verb, path.resource)
    handler = _HANDLERS.get((request.method, bool(path.name)))
    # A write to all namespaces is not possible; the server has no default namespace.
    if handler is None or (path.resource.namespaced and path.namespace is None):
        raise statuses.method_not_allowed()
    return handler(cluster, request)


def _get(cluster: Cluster, request: ObjectRequest) -> ObjectResponse:
    path = request.path
    return _object_response(
        request, cluster.get(path.resource, path.name, namespace=path.namespace)
    )


def _create(cluster: Cluster, request: ObjectRequest) -> ObjectResponse:
    request.check_query("CreateOptions")
    path, body = request.path, request.json()
    created = cluster.registry.create(path.resource, body, path.namespace, request.write_options)
    return _object_response(request, created, 201)


def _update(cluster: Cluster, request: ObjectRequest) -> ObjectResponse:
    request.check_query("UpdateOptions")
    path, body = request.path, validation.check_metadata(request.json())
    _check_name(path, body)
    updated = cluster.registry.update(path.resource, body, path.namespace, request.write_options)
    return _object_response(request, updated)


def _patch(cluster: Cluster, request: ObjectRequest) -> ObjectResponse:
    request.check_query("PatchOptions")
    if request.content_type == APPLY_PATCH:
        return _apply(cluster, request)
    if "force" in request.query:
        text = "Forbidden: may not be specified for non-apply patch"
        raise statuses.invalid_options("PatchOptions", "force", "FieldValueForbidden", text)
    path, patch = request.path, _decode_patch(request)
    patched = cluster.registry.patch(
        path.resource, path.name, patch, path.namespace, request.write_options
    )
    return _object_response(request, patched)


def _decode_patch(request: ObjectRequest) -> BodyPatch:
    if request.content_type in (MERGE_PATCH, OCTET_STREAM):
        return MergePatch(_decode_configuration(request))
    if request.content_type == JSON_PATCH:
        return JsonPatch.decode(request.body)
    if request.content_type == STRATEGIC_PATCH and request.path.resource in BUILT_IN:
        return StrategicMergePatch(_decode_configuration(request))
    raise statuses.unsupported_media_type(", ".join(PATCH_TYPES))


def _apply(cluster: Cluster, request: ObjectRequest) -> ObjectResponse:
    path, resource = request.path, request.path.resource
    if not request.query.get("fieldManager"):
        text = "Required value: is required for apply patch"
        reason = "FieldValueRequired"
        raise statuses.invalid_options("PatchOptions", "fieldManager", reason, text)
    config = validation.check_metadata(_decode_configuration(request))
    api_version, kind = config.get("apiVersion", ""), config.get("kind", "")
    if (api_version, kind) != (resource.api_version, resource.kind):
        raise statuses.bad_request(f"invalid object type: {api_version or '/'}, Kind={kind}")
    if config["metadata"].get("managedFields") is not None:
        raise statuses.bad_request("metadata.managedFields must be nil")
    _check_name(path, config)
    force = request.query.get("force", "false").lower() not in ("false", "0")
    applied, new = cluster.registry.apply(
        resource, config, path.namespace, request.write_options, force=force
    )
    return _object_response(request, applied, 201 if new else 200)


def _decode_configuration(request: ObjectRequest) -> JsonObject:
    """Return the object in the body of a merge patch or an apply."""
    try:
        found: object = msgspec.json.decode(request.body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise statuses.bad_request("invalid JSON patch") from error
    if not isinstance(found, dict):
        raise statuses.undecodable_patch(found, "map[string]interface {}")
    return cast("JsonObject", found)


def _check_name(path: ResourcePath, body: JsonObject) -> None:
    found = body["metadata"].setdefault("name", path.name)
    if found != path.name:
        raise statuses.bad_request(
            f"the name of the object ({found}) does not match the name on the URL ({path.name})"
        )


def _delete(cluster: Cluster, request: ObjectRequest) -> ObjectResponse:
    request.check_query("DeleteOptions")
    path, options = request.path, _decode_delete_options(request)
    preconditions = options.preconditions or _PreconditionsBody()
    last = cluster.registry.delete(
        path.resource,
        path.name,
        path.namespace,
        preconditions=Preconditions(
            preconditions.uid,
            preconditions.resource_version,
            _check_propagation(request, options),
        ),
        dry_run=request.write_options.dry_run or bool(options.dry_run),
    )
    metadata = last["metadata"]
    if metadata.get("finalizers"):  # the object still exists
        return _object_response(request, last)
    return ObjectResponse(statuses.success_document(path.resource, path.name, metadata["uid"]))


class _PreconditionsBody(msgspec.Struct, rename="camel"):
    uid: str | None = None
    resource_version: str | None = None


class _DeleteOptionsBody(msgspec.Struct, rename="camel"):
    """The fields of ``DeleteOptions`` that are read. No object here has a grace period."""

    preconditions: _PreconditionsBody | None = None
    propagation_policy: str | None = None
    dry_run: list[str] | None = None


def _decode_delete_options(request: ObjectRequest) -> _DeleteOptionsBody:
    try:
        return msgspec.convert(request.json() if request.body else {}, _DeleteOptionsBody)
    except msgspec.ValidationError as error:
        raise statuses.bad_request(str(error)) from error


def _check_propagation(request: ObjectRequest, options: _DeleteOptionsBody) -> str:
    """Return the propagation policy of a deletion; empty for the default."""
    propagation = options.propagation_policy or request.query.get("propagationPolicy", "")
    if propagation not in ("", *PROPAGATIONS):
        known = ", ".join(f'"{each}"' for each in (*PROPAGATIONS, "nil"))
        text = f'Unsupported value: "{propagation}": supported values: {known}'
        reason = "FieldValueNotSupported"
        raise statuses.invalid_options("DeleteOptions", "propagationPolicy", reason, text)
    return propagation


def _object_response(request: ObjectRequest, body: JsonObject, status: int = 200) -> ObjectResponse:
    return ObjectResponse(body, status, Encoding(request.path.resource))


_HANDLERS: Mapping[tuple[str, bool], Callable[[Cluster, ObjectRequest], ObjectResponse]] = {
    ("GET", True): _get,
    ("POST", False): _create,
    ("PUT", True): _update,
    ("PATCH", True): _patch,
    ("DELETE", True): _delete,
}
"""The handlers by method, and by whether the path names an object."""
