"""Writes of single objects: what is sent for each, and the answer made an object.

Values only: the method, path, query and body of a request come out, the bytes of its answer go in.
Sending is the client's business, or that of a cluster in memory. What can't be meant is refused
here, before anything is sent: no name, an object of another kind, one of another namespace. What
the server thinks of the rest, it says itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any, Literal, TypeAlias, cast

import msgspec

from aioinformer._core.codec.object_decoder import DECODE_ERRORS, decode_envelope, decode_object
from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.resources import Resource
from aioinformer.errors import ProtocolError, UsageError

__all__ = ["Method", "Patch", "Propagation", "WriteRequest", "WriteRequestBuilder"]

Patch: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""A mapping is a JSON merge patch (RFC 7386), a sequence of operations a JSON patch (RFC 6902)."""

Propagation: TypeAlias = Literal["Background", "Foreground", "Orphan"]
"""What becomes of the objects that a deleted one owns."""

Method: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
"""The HTTP method of a request."""

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
"""JSON is YAML, too; there is no media type for an apply in JSON alone."""


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """One request about one object."""

    method: Method
    path: str
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = field(default=b"", repr=False)
    """JSON; empty for none. It may be a Secret's, so nothing shows it."""
    content_type: str = ""

    @property
    def is_write(self) -> bool:
        """Whether it changes anything."""
        return self.method != "GET"


@dataclass(frozen=True, slots=True)
class WriteRequestBuilder:
    """The requests for the objects of one resource."""

    resource: Resource
    namespace: str | None = None
    """Where, for keys and objects that don't say; the only place, for those that do."""

    def __post_init__(self) -> None:
        self.resource.path(self.namespace)  # a ValueError for a namespace that can't be

    # -- requests ------------------------------------------------------------------------------

    def get(self, key: ObjectKey | str) -> WriteRequest:
        """To read one."""
        return WriteRequest("GET", self._object_path(self._resolve_key(key)))

    def create(self, obj: Mapping[str, Any]) -> WriteRequest:
        """To create one, under its name or one that the server chooses."""
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
            "POST", self._object_path(key, whole=False), {}, _encode_json(body), JSON
        )

    def update(self, obj: Mapping[str, Any], subresource: str = "") -> WriteRequest:
        """To replace one, or what a subresource is of it."""
        body, path = self._named_body(obj, subresource)
        return WriteRequest("PUT", path, {}, _encode_json(body), JSON)

    def patch(self, key: ObjectKey | str, patch: Patch, subresource: str = "") -> WriteRequest:
        """To change parts of one."""
        path = self._object_path(self._resolve_key(key), subresource)
        if isinstance(patch, Mapping):
            return WriteRequest("PATCH", path, {}, _encode_json(patch), MERGE_PATCH)
        return WriteRequest("PATCH", path, {}, _encode_json(_checked_operations(patch)), JSON_PATCH)

    def apply(
        self, obj: Mapping[str, Any], manager: str, *, force: bool = False, subresource: str = ""
    ) -> WriteRequest:
        """To own what ``obj`` names."""
        if not manager:
            raise UsageError(
                "to apply needs manager=: the name under which fields are owned, and found again"
            )
        body, path = self._named_body(obj, subresource)
        body["metadata"].pop("managedFields", None)  # which no apply may have
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
        """To delete one."""
        held = {"uid": uid, "resourceVersion": resource_version}
        given = {
            "preconditions": {name: text for name, text in held.items() if text} or None,
            "propagationPolicy": propagation,
            "gracePeriodSeconds": grace_period,
        }
        options = {name: option for name, option in given.items() if option is not None}
        request = WriteRequest("DELETE", self._object_path(self._resolve_key(key)))
        if not options:
            return request
        head = {"kind": "DeleteOptions", "apiVersion": "v1"}
        return replace(request, body=_encode_json(head | options), content_type=JSON)

    # -- what they are made of -----------------------------------------------------------------

    @property
    def _kind_with_article(self) -> str:
        return f"{'an' if self.resource.kind[0] in 'AEIOU' else 'a'} {self.resource.kind}"

    def _resolve_key(self, key: ObjectKey | str, *, new: bool = False) -> ObjectKey:
        """``key`` with the namespace that it is in.

        Raises:
            UsageError: it has none, or another than the writer's, or no name.
        """
        try:
            whole = ObjectKey.parse(key) if isinstance(key, str) else key
        except ValueError as error:
            raise UsageError(f"{self.resource}: {error}") from error
        if not _is_key(whole):
            given = type(key).__name__  # the object itself, perhaps, and it may be a Secret
            raise UsageError(
                f"{self._kind_with_article} is found by an ObjectKey or a str, not by a {given}"
            )
        if not whole.name and not new:
            raise UsageError(
                f"{self._kind_with_article} is found by its name, and {key!r} has none"
            )
        where, own = whole.namespace, self.namespace
        if where and own and where != own:
            raise UsageError(
                f"{self.resource} {whole}: this writer is for the namespace {own!r}; make one for "
                f"{where!r}, or one without a namespace"
            )
        if self.resource.namespaced and not (where or own):
            raise UsageError(
                f"{self.resource} {whole.name}: in which namespace? Make the writer with "
                "namespace=, or say 'namespace/name'"
            )
        return ObjectKey(where or own or "", whole.name)

    def _object_path(self, key: ObjectKey, subresource: str = "", *, whole: bool = True) -> str:
        """The path of an object, or of its collection."""
        try:
            path = self.resource.path(key.namespace, key.name if whole else None)
        except ValueError as error:
            raise UsageError(str(error)) from error
        if subresource in (".", "..") or not {"/", "%", "?"}.isdisjoint(subresource):
            raise UsageError(f"a subresource is a word such as 'status', not {subresource!r}")
        return f"{path}/{subresource}" if subresource else path

    def _named_body(self, obj: Mapping[str, Any], subresource: str) -> tuple[dict[str, Any], str]:
        """The body of an object that has a name, and its path."""
        body = self._checked_body(obj)
        metadata = body["metadata"]
        if not metadata.get("name"):
            raise UsageError(
                f"{self._kind_with_article} is found by metadata.name, and this one has none"
            )
        key = self._resolve_key(
            ObjectKey(_metadata_text(metadata, "namespace"), _metadata_text(metadata, "name"))
        )
        return body, self._object_path(key, subresource)

    def _checked_body(self, obj: Mapping[str, Any]) -> dict[str, Any]:
        """``obj`` as a dict of its own, two levels deep, with its type filled in.

        Raises:
            UsageError: it is of another type, or has no metadata.
        """
        body = _copy_mapping(obj, f"{self._kind_with_article} to write")
        head = {"apiVersion": self.resource.api_version, "kind": self.resource.kind}
        for name, expected in head.items():
            if (found := body.setdefault(name, expected)) != expected:
                raise UsageError(
                    f"{self.resource} are written here, whose {name} is {expected!r}: "
                    f"this object's is {found!r}"
                )
        metadata = body.get("metadata")
        if not isinstance(metadata, Mapping):
            raise UsageError(
                f"{self._kind_with_article} needs metadata with a name, and this one has none"
            )
        return body | {"metadata": dict(cast("Mapping[str, Any]", metadata))}

    # -- answers -------------------------------------------------------------------------------

    def decode(self, body: bytes) -> KubeObject:
        """The object in an answer.

        Raises:
            ProtocolError: there is none.
        """
        raw = body.strip()
        try:
            metadata = decode_envelope(raw).metadata
        except DECODE_ERRORS as error:
            said = f"{self.resource}: the answer is no object: {error}"
            raise ProtocolError(said, phase="write") from error
        return decode_object(self.resource, metadata, raw, 0, len(raw), managed_fields=False)

    def decode_deleted(self, body: bytes) -> KubeObject | None:
        """What is left of a deleted object; ``None`` if the server says only that it is done.

        Raises:
            ProtocolError: it says neither.
        """
        try:
            done = _decode_kind(body).kind == "Status"
        except DECODE_ERRORS:
            done = False  # what is wrong with it is told by the next line
        return None if done else self.decode(body)


class _KindEnvelope(msgspec.Struct):
    kind: str = ""


_decode_kind = msgspec.json.Decoder(_KindEnvelope).decode


def _checked_operations(patch: object) -> list[object]:
    given, kind = list[object](), type(patch).__name__
    if isinstance(patch, Sequence):
        given.extend(cast("Sequence[object]", patch))  # of a str, its characters
        if all(isinstance(operation, Mapping) for operation in given):
            return given
    raise UsageError(
        "a patch is a mapping (a merge patch) or a sequence of operations (a JSON patch), "
        f"not {kind}{' of something else' if given else ''}"
    )


def _metadata_text(metadata: Mapping[str, Any], name: str) -> str:
    found = metadata.get(name) or ""
    if not isinstance(found, str):
        raise UsageError(f"metadata.{name} is a string, not {found!r}")
    return found


def _is_key(found: object) -> bool:
    """A program need not be type-checked."""
    return isinstance(found, ObjectKey)


def _copy_mapping(found: object, what: str) -> dict[str, Any]:
    """A copy of ``found``, if that is a mapping; a program need not be type-checked."""
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
    """Where there is a float that JSON has no word for, and a null would be sent.

    In a merge patch, that deletes the field.
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
    """Other mappings and sequences than JSON's own: the read-only views of a cached object."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    if isinstance(value, Sequence):
        return list(cast("Sequence[object]", value))
    raise TypeError(f"a {type(value).__name__} has no form in JSON")
