"""Objects as bytes, in the form of an API server; each state of an object is encoded once.

The server has two dialects. Built-in types are Go structs: their keys are in the order of
declaration, list items have no ``kind`` and ``apiVersion``, and ``metadata`` precedes ``items``.
Custom resources are maps: all keys are sorted, and each item has its type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, cast

import msgspec

from aioinformer._core.objects.resources import BUILT_IN, Resource

JsonObject: TypeAlias = dict[str, Any]

WatchEventType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
"""Annotates the bookmark after the initial events of a watch (KEP-3157)."""

METADATA_FIELDS = (
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
)
"""The fields of ObjectMeta in the order of their declaration in apimachinery."""

_METADATA_MAPS = ("labels", "annotations")
"""Fields of ObjectMeta that are maps in Go, so that Go's encoder sorts their keys."""
_CONTENT_MAPS = ("data", "binaryData")
"""The same of ConfigMap and Secret. Deeper maps keep the order in which they were sent."""

_BOOKMARK_ZERO_VALUES: dict[str, dict[str, Any]] = {
    "Pod": {"spec": {"containers": None}, "status": {}}
}
"""The zero values that a bookmark of a built-in type contains."""

_ENCODER = msgspec.json.Encoder()
_SORTING_ENCODER = msgspec.json.Encoder(order="sorted")
_HTML_ESCAPES = {b"<": b"\\u003c", b">": b"\\u003e", b"&": b"\\u0026"}
"""The escapes of Go's encoder for characters with a meaning in HTML."""
_BUILT_IN_TYPES = frozenset((resource.group, resource.kind) for resource in BUILT_IN)


def plain_json(body: Mapping[str, Any]) -> JsonObject:
    """Return a copy with the values of JSON: tests write tuples, times and read-only mappings."""
    copy: JsonObject = msgspec.json.decode(msgspec.json.encode(dict(body), enc_hook=_to_plain_json))
    return copy


def _to_plain_json(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    if isinstance(value, Sequence):
        return list(cast("Sequence[object]", value))
    raise TypeError(f"a {type(value).__name__} can't be encoded as JSON: {value!r}")


def encode_json(value: object, *, sort_keys: bool = False) -> bytes:
    encoded = (_SORTING_ENCODER if sort_keys else _ENCODER).encode(value)
    for character, escape in _HTML_ESCAPES.items():
        if character in encoded:  # inside a string: JSON has these characters nowhere else
            encoded = encoded.replace(character, escape)
    return encoded


@dataclass(frozen=True, slots=True)
class ListMeta:
    version: int
    continue_token: str = ""
    remaining_item_count: int = 0
    shard_selector: str = ""
    """The selector that was applied; empty for none."""

    def to_dict(self) -> dict[str, Any]:
        """Return the keys in the server's order."""
        metadata: dict[str, Any] = {"resourceVersion": str(self.version)}
        if self.continue_token:
            metadata["continue"] = self.continue_token
        if self.remaining_item_count:
            metadata["remainingItemCount"] = self.remaining_item_count
        if self.shard_selector:
            metadata["shardInfo"] = {"selector": self.shard_selector}
        return metadata


class ListEncoder(Protocol):
    """A form of lists: whole objects, or one of the forms that ``Accept`` asks for."""

    def encode_list(self, rows: Iterable[StoredObject], list_meta: ListMeta) -> bytes:
        """Return a list, or one page of it."""
        ...


class ObjectEncoder(ListEncoder, Protocol):
    """A form of lists and of watch events."""

    def encode_event(self, event: WatchEventType, stored: StoredObject) -> bytes: ...

    def encode_bookmark(self, version: int, *, initial_events_end: bool = False) -> bytes: ...

    def as_first_event(self, line: bytes) -> bytes:
        """Return the form of an event that is the first of its watch."""
        ...


@dataclass(frozen=True, slots=True)
class Encoding:
    """The whole form of one resource's objects, in which they are stored."""

    resource: Resource
    custom: bool = field(init=False)
    """True for a custom resource, which has the other dialect."""
    _type_meta: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        known = (self.resource.group, self.resource.kind) in _BUILT_IN_TYPES
        head = {"kind": self.resource.kind, "apiVersion": self.resource.api_version}
        # The instance is frozen.
        object.__setattr__(self, "custom", not known)
        object.__setattr__(self, "_type_meta", encode_json(head)[:-1] + b",")

    def encode_item(self, body: dict[str, Any]) -> bytes:
        if self.custom:
            return encode_json(body, sort_keys=True)
        rest = {
            key: _sort_mapping(body[key]) if key in _CONTENT_MAPS else body[key]
            for key in body
            if key not in ("kind", "apiVersion", "metadata")
        }
        return encode_json({"metadata": order_metadata(body["metadata"]), **rest})

    def add_type_meta(self, item: bytes) -> bytes:
        """Return a list item in the form of responses and events: with its type."""
        return item if self.custom else self._type_meta + item[1:]

    def encode_event(self, event: WatchEventType, stored: StoredObject) -> bytes:
        return encode_watch_event(event, self.add_type_meta(stored.raw))

    def encode_bookmark(self, version: int, *, initial_events_end: bool = False) -> bytes:
        """Return an object of the watched type with a resourceVersion alone."""
        body: dict[str, Any] = {"metadata": build_bookmark_metadata(version, initial_events_end)}
        if self.custom:
            body |= {"apiVersion": self.resource.api_version, "kind": self.resource.kind}
        else:
            body |= _BOOKMARK_ZERO_VALUES.get(self.resource.kind, {})
        return encode_watch_event("BOOKMARK", self.add_type_meta(self.encode_item(body)))

    def as_first_event(self, line: bytes) -> bytes:
        return line

    def encode_list(self, rows: Iterable[StoredObject], list_meta: ListMeta) -> bytes:
        joined = b",".join(stored.raw for stored in rows)
        kind = encode_json(f"{self.resource.kind}List")
        api_version = encode_json(self.resource.api_version)
        # The items are joined as bytes: each object was encoded once, when it was stored.
        if self.custom:
            metadata = encode_json({"continue": ""} | list_meta.to_dict(), sort_keys=True)
            head = b'{"apiVersion":%s,"items":[' % api_version
            return b'%s%s],"kind":%s,"metadata":%s}\n' % (head, joined, kind, metadata)
        head = b'{"kind":%s,"apiVersion":%s,' % (kind, api_version)
        return b'%s"metadata":%s,"items":[%s]}\n' % (head, encode_json(list_meta.to_dict()), joined)


def build_bookmark_metadata(version: int, initial_events_end: bool) -> dict[str, Any]:
    metadata: dict[str, Any] = {"resourceVersion": str(version)}
    if initial_events_end:
        metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
    return metadata


def encode_watch_event(event: WatchEventType, object_json: bytes) -> bytes:
    """Return one event of a watch; the object has its type."""
    return b'{"type":"%s","object":%s}\n' % (event.encode(), object_json)


def order_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return ObjectMeta with its fields in declaration order, and its maps sorted."""
    ordered = {name: metadata[name] for name in METADATA_FIELDS if name in metadata}
    if len(ordered) < len(metadata):  # fields that ObjectMeta doesn't have come last
        ordered |= metadata
    for name in _METADATA_MAPS:
        if name in ordered:
            ordered[name] = _sort_mapping(ordered[name])
    return ordered


def _sort_mapping(value: Any) -> Any:
    return dict(sorted(cast("dict[str, Any]", value).items())) if isinstance(value, dict) else value


class StoredObject:
    """One state of one object: its bytes, and its metadata, which most requests need.

    The rest is decoded when it is needed, so that many objects take little memory, and the garbage
    collector has little to walk. The body and the metadata must not be changed.
    """

    __slots__ = ("_body", "encoding", "metadata", "raw", "version")

    def __init__(self, encoding: Encoding, body: JsonObject, version: int) -> None:
        self.encoding = encoding
        self.version = version
        self.metadata: JsonObject = body["metadata"]
        self.raw = encoding.encode_item(body)
        """The bytes as a list item."""
        self._body: JsonObject | None = body

    @property
    def body(self) -> JsonObject:
        return self._body if self._body is not None else self.to_dict()

    @property
    def decoded(self) -> bool:
        return self._body is not None

    def keep_body(self) -> None:
        """Decode the body, and keep it until ``release_body``."""
        self._body = self.body

    def release_body(self) -> None:
        self._body = None

    def to_dict(self) -> JsonObject:
        """Return a copy of the object, which can be changed."""
        body: JsonObject = msgspec.json.decode(self.encoding.add_type_meta(self.raw))
        return body

    @property
    def document(self) -> bytes:
        """The object as the body of a response."""
        return self.encoding.add_type_meta(self.raw) + b"\n"

    @property
    def name(self) -> str:
        name: str = self.metadata["name"]
        return name

    @property
    def namespace(self) -> str:
        """``metadata.namespace``; empty if cluster-scoped."""
        namespace: str = self.metadata.get("namespace", "")
        return namespace

    @property
    def uid(self) -> str:
        uid: str = self.metadata["uid"]
        return uid

    @property
    def key(self) -> str:
        """The key in etcd, below the resource. Lists are in the order of these keys."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def with_version(self, version: int) -> StoredObject:
        """Return this state with another resourceVersion, as a DELETED event shows it."""
        metadata = self.metadata | {"resourceVersion": str(version)}
        return StoredObject(self.encoding, self.body | {"metadata": metadata}, version)

    def __repr__(self) -> str:
        return f"<StoredObject {self.encoding.resource} {self.key} rv={self.version}>"


def encode_error_event(status: dict[str, Any]) -> bytes:
    """Return the event that ends a watch with a ``v1.Status``."""
    return b'{"type":"ERROR","object":%s}\n' % encode_json(status)


def encode_document(document: dict[str, Any]) -> bytes:
    """Return any other document, with the server's newline at the end."""
    return encode_json(document) + b"\n"
