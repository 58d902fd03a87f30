"""Requests that write single objects, and the decoding of their answers.

Mistakes that need no server are rejected before anything is sent: a missing name, an object of
another kind or of another namespace. The server checks everything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any, Literal, TypeAlias, cast

import msgspec

from aioinformer._core.codec.object_decoder import decode_envelope, decode_object
from aioinformer._core.objects.decode_errors import DECODE_ERRORS, discard_input
from aioinformer._core.objects.json_depth import decode_nested
from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.resources import Resource, is_path_segment
from aioinformer.errors import ProtocolError, UsageError

Patch: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""A mapping is a JSON merge patch (RFC 7386), a sequence of operations a JSON patch (RFC 6902)."""

Propagation: TypeAlias = Literal["Background", "Foreground", "Orphan"]
"""The fate of the objects that a deleted object owns."""

EventType: TypeAlias = Literal["Normal", "Warning"]
"""The type of an Event; ``Warning`` is for something that may need attention."""

Method: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

OWNER_FINALIZERS = "<resource>/finalizers, with the resource of the owner"
"""The part of an error's advice that a writer which knows the owner replaces."""

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
"""The media type of an apply, which is YAML, and so may be JSON."""


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """A request about one object."""

    method: Method
    path: str
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = field(default=b"", repr=False)
    """JSON; empty for no body. The body may be a Secret, so no ``repr`` shows it."""
    content_type: str = ""

    @property
    def is_write(self) -> bool:
        """True if the request changes something."""
        return self.method != "GET"


@dataclass(frozen=True, slots=True)
class WriteRequestBuilder:
    """A builder of the requests for the objects of one resource; see ``ResourceWriter``."""

    resource: Resource
    namespace: str | None = None
    """The namespace of keys and objects without one. Others are rejected."""
    field_manager: str = ""
    """The field manager of creations, updates and patches; empty to let the server name one."""
    apply_manager: str = ""
    """The field manager of applies that name none."""

    def __post_init__(self) -> None:
        if self.namespace is not None and not isinstance(cast("object", self.namespace), str):
            raise TypeError(
                f"namespace must be one namespace's name, or None for all, not {self.namespace!r}"
            )
        self.resource.path(self.namespace)  # raises ValueError for an invalid namespace

    # -- requests ------------------------------------------------------------------------------

    def get(self, key: ObjectKey | str, subresource: str = "") -> WriteRequest:
        """Build a read; see ``ResourceWriter``."""
        return WriteRequest("GET", self._object_path(self._resolve_key(key), subresource))

    def log(self, key: ObjectKey | str, options: Mapping[str, object]) -> WriteRequest:
        """Build a read of a pod's log, with options in Python's spelling."""
        query = {
            _camel_case(name): str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in options.items()
            if value is not None
        }
        path = self._object_path(self._resolve_key(key), "log")
        return WriteRequest("GET", path, query)

    def create(self, obj: Mapping[str, Any]) -> WriteRequest:
        """Build a creation; see ``ResourceWriter``."""
        body = self._checked_body(obj)
        metadata = body["metadata"]
        if not metadata.get("name") and not metadata.get("generateName"):
            raise UsageError(
                f"{self._kind_with_article} to create needs metadata.name, or generateName"
            )
        key = self._resolve_key(
            ObjectKey(_metadata_text(metadata, "namespace"), _metadata_text(metadata, "name")),
            new=True,
        )
        return WriteRequest(
            "POST",
            self._object_path(key, collection=True),
            self._manager_query,
            _encode_json(body),
            JSON,
        )

    def update(self, obj: Mapping[str, Any], subresource: str = "") -> WriteRequest:
        """Build a replacement of the object or of a subresource; see ``ResourceWriter``."""
        body, path = self._named_body(obj, subresource)
        return WriteRequest("PUT", path, self._manager_query, _encode_json(body), JSON)

    def update_status(self, obj: Mapping[str, Any]) -> WriteRequest:
        """Build a replacement of the status; see ``ResourceWriter``."""
        return self.update(obj, "status")

    def patch(self, key: ObjectKey | str, patch: Patch, subresource: str = "") -> WriteRequest:
        """Build a patch; see ``ResourceWriter``."""
        path, query = self._object_path(self._resolve_key(key), subresource), self._manager_query
        if isinstance(patch, Mapping):
            return WriteRequest("PATCH", path, query, _encode_json(patch), MERGE_PATCH)
        operations = _encode_json(_checked_operations(patch))
        return WriteRequest("PATCH", path, query, operations, JSON_PATCH)

    def apply(
        self,
        obj: Mapping[str, Any],
        field_manager: str = "",
        *,
        force: bool = True,
        subresource: str = "",
    ) -> WriteRequest:
        """Build a server-side apply; see ``ResourceWriter``."""
        manager = field_manager or self.apply_manager
        if not manager:
            raise UsageError(
                "apply needs field_manager=: the name under which the server records who owns the "
                "fields"
            )
        body, path = self._named_body(obj, subresource)
        body["metadata"].pop("managedFields", None)  # the server rejects an apply that has it
        query = {"fieldManager": manager} | ({"force": "true"} if force else {})
        return WriteRequest("PATCH", path, query, _encode_json(body), APPLY_PATCH)

    def delete(
        self,
        key: ObjectKey | str,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: Propagation | None = None,
        grace_period: int | None = None,
    ) -> WriteRequest:
        """Build a deletion; see ``ResourceWriter``."""
        request = WriteRequest("DELETE", self._object_path(self._resolve_key(key)))
        required = {"uid": uid, "resourceVersion": resource_version}
        preconditions = {name: text for name, text in required.items() if text}
        return _with_delete_options(
            request,
            preconditions=preconditions or None,
            propagationPolicy=propagation,
            gracePeriodSeconds=grace_period,
        )

    def delete_collection(
        self,
        *,
        labels: str = "",
        fields: str = "",
        propagation: Propagation | None = None,
        grace_period: int | None = None,
    ) -> WriteRequest:
        """Build a deletion of all selected objects; see ``ResourceApi``."""
        if self.resource.namespaced and not self.namespace:
            raise UsageError(
                f"{self.resource}: the namespace is missing, and the server deletes the objects of "
                "one namespace at a time. Make the API object with namespace="
            )
        selectors = {"labelSelector": labels, "fieldSelector": fields}
        query = {name: text for name, text in selectors.items() if text}
        return _with_delete_options(
            WriteRequest("DELETE", self.resource.path(self.namespace), query),
            propagationPolicy=propagation,
            gracePeriodSeconds=grace_period,
        )

    def evict(self, key: ObjectKey | str, *, grace_period: int | None = None) -> WriteRequest:
        """Build an eviction (policy/v1); see ``ResourceApi``."""
        resolved = self._resolve_key(key)
        body: dict[str, Any] = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": resolved.name, "namespace": resolved.namespace},
        }
        if grace_period is not None:
            body["deleteOptions"] = {"gracePeriodSeconds": grace_period}
        path = self._object_path(resolved, "eviction")
        return WriteRequest("POST", path, {}, _encode_json(body), JSON)

    # -- parts of requests ---------------------------------------------------------------------

    @property
    def _manager_query(self) -> dict[str, str]:
        return {"fieldManager": self.field_manager} if self.field_manager else {}

    @property
    def _kind_with_article(self) -> str:
        return f"{'an' if self.resource.kind[0] in 'AEIOU' else 'a'} {self.resource.kind}"

    def _resolve_key(self, key: ObjectKey | str, *, new: bool = False) -> ObjectKey:
        """Return ``key`` with its namespace; raise a ``UsageError`` if it can't be a key of this
        writer.
        """
        try:
            parsed = ObjectKey.parse(key) if isinstance(key, str) else key
        except ValueError as error:
            raise UsageError(f"{self.resource}: {error}") from error
        if not _is_key(parsed):
            given = type(key).__name__  # not the value: it may be the object, and a Secret
            raise UsageError(
                f"{self._kind_with_article} is identified by an ObjectKey or a str, "
                f"not by a {given}"
            )
        if not parsed.name and not new:
            raise UsageError(
                f"{self._kind_with_article} is identified by its name, and {key!r} has none"
            )
        namespace, own = parsed.namespace, self.namespace
        if namespace and own and namespace != own:
            raise UsageError(
                f"{self.resource} {parsed}: this writer is for the namespace {own!r}; make one for "
                f"{namespace!r}, or one without a namespace"
            )
        if self.resource.namespaced and not (namespace or own):
            raise UsageError(
                f"{self.resource} {parsed.name}: the namespace is missing. Make the writer with "
                "namespace=, or give 'namespace/name'"
            )
        return ObjectKey(namespace or own or "", parsed.name)

    def _object_path(
        self, key: ObjectKey, subresource: str = "", *, collection: bool = False
    ) -> str:
        """Return the path of an object, or of its collection."""
        try:
            path = self.resource.path(key.namespace, None if collection else key.name)
        except ValueError as error:
            raise UsageError(str(error)) from error
        if subresource and not (is_path_segment(subresource) and "?" not in subresource):
            raise UsageError(f"a subresource is a word such as 'status', not {subresource!r}")
        return f"{path}/{subresource}" if subresource else path

    def _named_body(self, obj: Mapping[str, Any], subresource: str) -> tuple[dict[str, Any], str]:
        """Return the body of an object that has a name, and its path."""
        body = self._checked_body(obj)
        metadata = body["metadata"]
        if not metadata.get("name"):
            raise UsageError(
                f"{self._kind_with_article} is identified by metadata.name, and this one has none"
            )
        key = self._resolve_key(
            ObjectKey(_metadata_text(metadata, "namespace"), _metadata_text(metadata, "name"))
        )
        return body, self._object_path(key, subresource)

    def _checked_body(self, obj: Mapping[str, Any]) -> dict[str, Any]:
        """Return a copy of ``obj``, two levels deep, with ``apiVersion`` and ``kind`` filled in."""
        body = _copy_mapping(obj, f"{self._kind_with_article} to write")
        head = {"apiVersion": self.resource.api_version, "kind": self.resource.kind}
        for name, expected in head.items():
            if (found := body.setdefault(name, expected)) != expected:
                raise UsageError(
                    f"this writer is for {self.resource}, whose {name} is {expected!r}; "
                    f"the object's {name} is {found!r}"
                )
        metadata = body.get("metadata")
        if not isinstance(metadata, Mapping):
            raise UsageError(
                f"{self._kind_with_article} needs metadata with a name, and this one has none"
            )
        return body | {"metadata": dict(cast("Mapping[str, Any]", metadata))}

    # -- answers -------------------------------------------------------------------------------

    def decode(self, body: bytes) -> KubeObject:
        """Return the object in an answer; raise a ``ProtocolError`` for anything else."""
        raw = body.strip()
        try:
            metadata = decode_nested(decode_envelope, raw).metadata
        except DECODE_ERRORS as error:
            message = f"{self.resource}: the answer is not an object: {discard_input(error)}"
            raise ProtocolError(message, phase="write") from error
        return decode_object(self.resource, metadata, raw, 0, len(raw), managed_fields=False)

    def decode_deleted(self, body: bytes) -> KubeObject | None:
        """Return the remaining state of a deleted object; ``None`` if the answer is a success
        Status. Raises ``ProtocolError`` for anything else.
        """
        try:
            done = decode_nested(_decode_kind, body).kind == "Status"
        except DECODE_ERRORS:
            done = False  # decode() raises the precise error
        return None if done else self.decode(body)


def _with_delete_options(request: WriteRequest, **given: object) -> WriteRequest:
    """Return the request with ``DeleteOptions`` as its body, if an option is given."""
    options = {name: option for name, option in given.items() if option is not None}
    if not options:
        return request
    head = {"kind": "DeleteOptions", "apiVersion": "v1"}
    return replace(request, body=_encode_json(head | options), content_type=JSON)


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


class _KindEnvelope(msgspec.Struct):
    kind: str = ""


_decode_kind = msgspec.json.Decoder(_KindEnvelope).decode


def _checked_operations(patch: object) -> list[object]:
    kind = type(patch).__name__
    if isinstance(patch, Sequence) and not isinstance(patch, str):
        given = [*cast("Sequence[object]", patch)]
        wrong = [each for each in given if not isinstance(each, Mapping)]
        if not wrong:
            return given
        kind += f" with {type(wrong[0]).__name__} in it"
    raise UsageError(
        "a patch is a mapping (a merge patch) or a sequence of operations (a JSON patch), "
        f"not {kind}"
    )


def _metadata_text(metadata: Mapping[str, Any], name: str) -> str:
    found = metadata.get(name) or ""
    if not isinstance(found, str):
        raise UsageError(f"metadata.{name} is a string, not {found!r}")
    return found


def _is_key(found: object) -> bool:
    """Return True for an ObjectKey; the caller may not be type-checked."""
    return isinstance(found, ObjectKey)


def _copy_mapping(found: object, what: str) -> dict[str, Any]:
    """Return a copy of ``found`` if it is a mapping; the caller may not be type-checked."""
    if not isinstance(found, Mapping):
        raise UsageError(f"{what} is a mapping, not {type(found).__name__}")
    return dict(cast("Mapping[str, Any]", found))


def _encode_json(value: object) -> bytes:
    try:
        encoded = msgspec.json.encode(value, enc_hook=_to_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"this can't be sent as JSON: {error}") from error
    if b"null" in encoded and (where := _find_non_finite(value)):
        raise UsageError(f"this can't be sent as JSON: {where[1:]} is NaN or infinite")
    return encoded


def _find_non_finite(value: object) -> str:
    """Return the path of a float that is NaN or infinite, or an empty string: msgspec writes
    ``null`` instead, which deletes the field in a merge patch.
    """
    if isinstance(value, float):
        return "" if isfinite(value) else "."
    entries: Iterable[tuple[object, object]] = ()
    if isinstance(value, Mapping):
        entries = cast("Mapping[object, object]", value).items()
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        entries = enumerate(cast("Sequence[object]", value))
    for name, each in entries:
        if where := _find_non_finite(each):
            return f".{name}{where}".removesuffix(".")
    return ""


def _to_plain(value: object) -> object:
    """Convert mappings and sequences other than dict and list: views of a cached object."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    if isinstance(value, Sequence):
        return list(cast("Sequence[object]", value))
    raise TypeError(f"a {type(value).__name__} has no form in JSON")
