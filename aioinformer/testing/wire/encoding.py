"""Objects as bytes, the way an API server writes them: once an object, however many readers.

Two dialects, for two code paths in the server. Built-in types are Go structs: their keys come in
the order of declaration, list items lack ``kind`` and ``apiVersion``, and ``to_dict`` precedes
``items``. Custom resources are maps: keys are sorted everywhere, so ``items`` precedes
``to_dict``, and each item carries its type (recordings 10 and 50).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, cast

import msgspec

from aioinformer._core.objects.resources import BUILT_IN, Resource

WatchEventType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
"""The annotation of the bookmark after the initial events of a watch (KEP-3157)."""

_METADATA_FIELDS = (
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
"""The fields of ObjectMeta as declared in apimachinery."""
_METADATA_RANKS = {name: rank for rank, name in enumerate(_METADATA_FIELDS)}

_MAP_FIELDS = ("labels", "annotations", "data", "binaryData")
"""Fields that are maps in Go, whose keys its encoder sorts: those of ObjectMeta, ConfigMap and
Secret. Maps deeper in an object keep the order in which they were sent."""

_BOOKMARK_ZERO_VALUES: dict[str, dict[str, Any]] = {
    "Pod": {"spec": {"containers": None}, "status": {}}
}
"""What a bookmark of a built-in type shows of its zero values (recording 30)."""

_ENCODER = msgspec.json.Encoder()
_SORTING_ENCODER = msgspec.json.Encoder(order="sorted")
_HTML_ESCAPES = {b"<": b"\\u003c", b">": b"\\u003e", b"&": b"\\u0026"}
"""What Go's encoder writes for characters that mean something in HTML (recording 28)."""
_BUILT_IN_TYPES = frozenset((resource.group, resource.kind) for resource in BUILT_IN)


def encode_json(value: object, *, sort_keys: bool = False) -> bytes:
    """JSON as the server writes it."""
    encoded = (_SORTING_ENCODER if sort_keys else _ENCODER).encode(value)
    for character, escape in _HTML_ESCAPES.items():
        if character in encoded:  # only ever within a string
            encoded = encoded.replace(character, escape)
    return encoded


@dataclass(frozen=True, slots=True)
class ListMeta:
    """What a list says of itself."""

    version: int
    continue_token: str = ""
    remaining_item_count: int = 0
    shard_selector: str = ""
    """The shard selector that was applied; empty if none was (recording 65)."""

    def to_dict(self) -> dict[str, Any]:
        """The ``ListMeta``, in its order."""
        metadata: dict[str, Any] = {"resourceVersion": str(self.version)}
        if self.continue_token:
            metadata["continue"] = self.continue_token
        if self.remaining_item_count:
            metadata["remainingItemCount"] = self.remaining_item_count
        if self.shard_selector:
            metadata["shardInfo"] = {"selector": self.shard_selector}
        return metadata


class ListEncoder(Protocol):
    """How a list is shown: its objects whole, or in one of the forms that ``Accept`` asks for."""

    def encode_list(self, rows: Iterable[StoredObject], list_meta: ListMeta) -> bytes:
        """A list, or one page of it."""
        ...


class ObjectEncoder(ListEncoder, Protocol):
    """One in which objects can be watched, too."""

    def encode_event(self, event: WatchEventType, stored: StoredObject) -> bytes:
        """One event of a watch."""
        ...

    def encode_bookmark(self, version: int, *, initial_events_end: bool = False) -> bytes:
        """A bookmark."""
        ...

    def as_first_event(self, line: bytes) -> bytes:
        """An event as the first one of its watch."""
        ...


@dataclass(frozen=True, slots=True)
class Encoding:
    """How one resource is written: the form in which objects are stored."""

    resource: Resource
    custom: bool = field(init=False)

    def __post_init__(self) -> None:
        known = (self.resource.group, self.resource.kind) in _BUILT_IN_TYPES
        object.__setattr__(self, "custom", not known)

    def encode_item(self, body: dict[str, Any]) -> bytes:
        """One object as a list has it."""
        if self.custom:
            return encode_json(body, sort_keys=True)
        rest = {
            key: _sort_mapping(body[key]) if key in _MAP_FIELDS else body[key]
            for key in body
            if key not in ("kind", "apiVersion", "metadata")
        }
        return encode_json({"metadata": order_metadata(body["metadata"]), **rest})

    def add_type_meta(self, item: bytes) -> bytes:
        """One object as a response or an event has it: with its type."""
        return item if self.custom else self._type_meta + item[1:]

    def encode_event(self, event: WatchEventType, stored: StoredObject) -> bytes:
        """One event of a watch."""
        return encode_watch_event(event, self.add_type_meta(stored.raw))

    def encode_bookmark(self, version: int, *, initial_events_end: bool = False) -> bytes:
        """A bookmark: an object of the watched type with nothing but a resourceVersion."""
        body: dict[str, Any] = {"metadata": build_bookmark_metadata(version, initial_events_end)}
        if self.custom:
            body |= {"apiVersion": self.resource.api_version, "kind": self.resource.kind}
        else:
            body |= _BOOKMARK_ZERO_VALUES.get(self.resource.kind, {})
        return encode_watch_event("BOOKMARK", self.add_type_meta(self.encode_item(body)))

    def as_first_event(self, line: bytes) -> bytes:
        """The event as it is."""
        return line

    def encode_list(self, rows: Iterable[StoredObject], list_meta: ListMeta) -> bytes:
        """A list, or one page of it."""
        joined = b",".join(stored.raw for stored in rows)
        kind = encode_json(f"{self.resource.kind}List")
        api_version = encode_json(self.resource.api_version)
        if self.custom:
            metadata = encode_json({"continue": ""} | list_meta.to_dict(), sort_keys=True)
            head = b'{"apiVersion":%s,"items":[' % api_version
            return b'%s%s],"kind":%s,"metadata":%s}\n' % (head, joined, kind, metadata)
        head = b'{"kind":%s,"apiVersion":%s,' % (kind, api_version)
        return b'%s"metadata":%s,"items":[%s]}\n' % (head, encode_json(list_meta.to_dict()), joined)

    @property
    def _type_meta(self) -> bytes:
        head = {"kind": self.resource.kind, "apiVersion": self.resource.api_version}
        return encode_json(head)[:-1] + b","


def build_bookmark_metadata(version: int, initial_events_end: bool) -> dict[str, Any]:
    """All that a bookmark says."""
    metadata: dict[str, Any] = {"resourceVersion": str(version)}
    if initial_events_end:
        metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
    return metadata


def encode_watch_event(event: WatchEventType, object_json: bytes) -> bytes:
    """One event of a watch, about an object with its type."""
    return b'{"type":"%s","object":%s}\n' % (event.encode(), object_json)


def order_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """ObjectMeta with its fields in the order of their declaration, and its maps sorted."""
    fields = sorted(
        metadata.items(), key=lambda pair: _METADATA_RANKS.get(pair[0], len(_METADATA_RANKS))
    )
    return {name: _sort_mapping(value) if name in _MAP_FIELDS else value for name, value in fields}


def _sort_mapping(value: Any) -> Any:
    return dict(sorted(cast("dict[str, Any]", value).items())) if isinstance(value, dict) else value


@dataclass(slots=True, eq=False)
class StoredObject:
    """One state of one object: the body, and its bytes. Never written to after it is made."""

    encoding: Encoding
    body: dict[str, Any]
    version: int
    raw: bytes = b""
    """The bytes as a list item."""

    def __post_init__(self) -> None:
        self.raw = self.encoding.encode_item(self.body)

    @property
    def name(self) -> str:
        """``to_dict.name``."""
        name: str = self.body["metadata"]["name"]
        return name

    @property
    def namespace(self) -> str:
        """``to_dict.namespace``; empty if cluster-scoped."""
        namespace: str = self.body["metadata"].get("namespace", "")
        return namespace

    @property
    def uid(self) -> str:
        """``to_dict.uid``."""
        uid: str = self.body["metadata"]["uid"]
        return uid

    @property
    def key(self) -> str:
        """The key in storage, below the resource: lists are in the order of these (etcd's)."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def with_version(self, version: int) -> StoredObject:
        """The same state under another resourceVersion: what a DELETED event shows."""
        metadata = self.body["metadata"] | {"resourceVersion": str(version)}
        return StoredObject(self.encoding, self.body | {"metadata": metadata}, version)

    def __repr__(self) -> str:
        return f"<StoredObject {self.encoding.resource} {self.key} rv={self.version}>"


def encode_error_event(status: dict[str, Any]) -> bytes:
    """The event that ends a watch with a ``v1.Status`` (recordings 43 and 61)."""
    return b'{"type":"ERROR","object":%s}\n' % encode_json(status)


def encode_document(document: dict[str, Any]) -> bytes:
    """Any other document, as the server ends one: with a newline."""
    return encode_json(document) + b"\n"
