"""Requests that are neither lists nor watches, and their responses, as decoded values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import msgspec

from aioinformer._client.kubeconfig.go_yaml import decode_yaml
from aioinformer._core.objects.resources import BUILT_IN
from aioinformer.testing.access.users import User
from aioinformer.testing.cluster.registry import Preconditions, WriteOptions
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import Encoding, JsonObject, StoredObject, encode_document
from aioinformer.testing.wire.negotiation import JSON
from aioinformer.testing.wire.served_resources import STATUS
from aioinformer.testing.wire.urls import ResourcePath
from aioinformer.testing.writes.patches import BodyPatch, JsonPatch, MergePatch, StrategicMergePatch
from aioinformer.testing.writes.typed_bodies import convert_body
from aioinformer.testing.writes.validation import Part
from aioinformer.testing.writes.write_options import check_write_options, unsupported_cause

MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
"""The media type of a patch that only built-in kinds accept."""
APPLY_PATCH = "application/apply-patch+yaml"
"""The media type of an apply, whose body is YAML or JSON."""
PATCH_TYPES = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)
PROTOBUF = "application/vnd.kubernetes.protobuf"
YAML = "application/yaml"
BODY_TYPES = f"{JSON}, {YAML}"
OCTET_STREAM = "application/octet-stream"
"""The media type that aiohttp assumes for a body without a Content-Type."""
PROPAGATIONS = ("Foreground", "Background", "Orphan")


@dataclass(frozen=True, slots=True)
class ObjectRequest:
    """A request for one object, or for the collection to create an object in."""

    method: str
    path: ResourcePath
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    content_type: str = JSON
    body: bytes = b""
    user: User | None = None
    """``None`` for a user without a name and without limits."""
    user_agent: str = ""

    def json(self) -> JsonObject:
        """Return the decoded JSON or YAML; raise ``BadRequest`` or ``ServerError`` (415) for
        others.
        """
        return self._decode_yaml_object() if self.content_type == YAML else self._decode_json()

    def object_json(self) -> JsonObject:
        """Return the decoded body; raise ``BadRequest`` for a custom object without a kind."""
        body = self.json()
        if Encoding(self.path.resource).custom and not body.get("kind"):
            # Built-in types are known by the path; a custom object has to name its kind.
            reason = f"Object 'Kind' is missing in '{self.body.decode(errors='replace')}'"
            raise statuses.unrecognized_body(self.path.resource.kind, reason, self.body)
        return body

    def _decode_json(self) -> JsonObject:
        if self.content_type == PROTOBUF:
            raise statuses.protobuf_body(BODY_TYPES)
        if self.content_type not in (JSON, OCTET_STREAM):
            raise statuses.unsupported_media_type(BODY_TYPES)
        try:
            return msgspec.json.decode(self.body, type=JsonObject)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise statuses.bad_request(f"the body is not a JSON object: {error}") from error

    def _decode_yaml_object(self) -> JsonObject:
        kind = self.path.resource.kind
        try:
            found = decode_yaml(self.body)
        except ValueError as error:
            raise statuses.unrecognized_body(kind, f"yaml: {error}", self.body) from error
        if not isinstance(found, dict):
            raise statuses.unrecognized_body(kind, "the body is not an object", self.body)
        return cast("JsonObject", found)

    @property
    def write_options(self) -> WriteOptions:
        manager = self.query.get("fieldManager", "")
        part: Part = "status" if self.path.part == STATUS.name else "main"
        return WriteOptions(part, manager, self.user_agent, "dryRun" in self.query)

    @property
    def field_validation(self) -> str:
        """Strict, Warn or Ignore."""
        return self.query.get("fieldValidation") or "Warn"

    def check_query(self, options: str) -> None:
        """Raise ``Invalid`` for an invalid parameter of ``options``, such as ``CreateOptions``."""
        check_write_options(options, self.query, is_apply=self.is_apply)

    @property
    def is_apply(self) -> bool:
        return self.method == "PATCH" and self.content_type == APPLY_PATCH


@dataclass(frozen=True, slots=True)
class ObjectResponse:
    raw: bytes
    status: int = 200
    stored: StoredObject | None = None
    """``None`` if the body is a list, or a document such as a Status."""
    warnings: Sequence[str] = ()
    """Texts of the headers ``Warning``."""


# -- patches ----------------------------------------------------------------------------------


def decode_patch(request: ObjectRequest) -> BodyPatch:
    """Return the patch; raise ``BadRequest``, or ``ServerError`` (415) for other types."""
    if request.content_type in (MERGE_PATCH, OCTET_STREAM):
        return MergePatch(decode_configuration(request))
    if request.content_type == JSON_PATCH:
        return JsonPatch.decode(request.body)
    if request.content_type == STRATEGIC_PATCH and request.path.resource in BUILT_IN:
        return StrategicMergePatch(decode_configuration(request))
    raise statuses.unsupported_media_type(", ".join(PATCH_TYPES))


def decode_configuration(request: ObjectRequest) -> JsonObject:
    try:
        if request.content_type == APPLY_PATCH:
            found = _decode_apply(request.body)
        else:
            found = msgspec.json.decode(request.body)
    except (msgspec.DecodeError, ValueError) as error:
        raise statuses.bad_request("invalid JSON patch") from error
    if not isinstance(found, dict):
        raise statuses.undecodable_patch(found, "map[string]interface {}")
    return cast("JsonObject", found)


def _decode_apply(body: bytes) -> object:
    """Return the value of YAML. Most clients send JSON, whose decoder is the faster one."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return decode_yaml(body)


# -- deletions --------------------------------------------------------------------------------


class PreconditionsBody(msgspec.Struct, rename="camel"):
    uid: str | None = None
    resource_version: str | None = None


class DeleteOptionsBody(msgspec.Struct, rename="camel"):
    """The fields of ``DeleteOptions`` that are read. No object here has a grace period."""

    preconditions: PreconditionsBody | None = None
    propagation_policy: str | None = None
    dry_run: list[str] | None = None


def decode_delete_options(request: ObjectRequest) -> tuple[Preconditions, bool]:
    """Return preconditions, and True for a dry run; raise ``BadRequest`` or ``Invalid``."""
    request.check_query("DeleteOptions")
    options = convert_body(request.json() if request.body else {}, DeleteOptionsBody)
    sent = options.preconditions or PreconditionsBody()
    propagation = _check_propagation(request, options)
    dry_run = request.write_options.dry_run or bool(options.dry_run)
    return Preconditions(sent.uid, sent.resource_version, propagation), dry_run


def _check_propagation(request: ObjectRequest, options: DeleteOptionsBody) -> str:
    """Return the propagation policy of a deletion; empty for the default."""
    propagation = options.propagation_policy or request.query.get("propagationPolicy", "")
    if propagation not in ("", *PROPAGATIONS):
        known = (*PROPAGATIONS, "nil")
        cause = unsupported_cause("propagationPolicy", f'"{propagation}"', known)
        raise statuses.invalid_options("DeleteOptions", [cause])
    return propagation


def object_response(
    stored: StoredObject, status: int = 200, *, warnings: Sequence[str] = ()
) -> ObjectResponse:
    return ObjectResponse(stored.document, status, stored, warnings)


def json_response(document: JsonObject, status: int = 200) -> ObjectResponse:
    """Return the response with a document that is not a stored object."""
    return ObjectResponse(encode_document(document), status)
