"""Objects as bytes, the way an API server writes them: once an object, however many readers.

Two dialects, for two code paths in the server. Built-in types are Go structs: their keys come in
the order of declaration, list items lack ``kind`` and ``apiVersion``, and ``metadata`` precedes
``items``. Custom resources are maps: keys are sorted everywhere, so ``items`` precedes
``metadata``, and each item carries its type (recordings 10 and 50).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, cast

import msgspec

from aioinformer._core.objects.resources import BUILT_IN, Resource

EventType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
"""The annotation of the bookmark after the initial events of a watch (KEP-3157)."""

_METADATA_ORDER = (
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
_RANK = {name: rank for rank, name in enumerate(_METADATA_ORDER)}

_MAPS = ("labels", "annotations", "data", "binaryData")
"""Fields that are maps in Go, whose keys its encoder sorts: those of ObjectMeta, ConfigMap and
Secret. Maps deeper in an object keep the order in which they were sent."""

_NOT_OMITTED: dict[str, dict[str, Any]] = {"Pod": {"spec": {"containers": None}, "status": {}}}
"""What a bookmark of a built-in type shows of its zero values (recording 30)."""

_PLAIN = msgspec.json.Encoder()
_SORTED = msgspec.json.Encoder(order="sorted")
_ESCAPES = {b"<": b"\\u003c", b">": b"\\u003e", b"&": b"\\u0026"}
"""What Go's encoder writes for characters that mean something in HTML (recording 28)."""
_BUILT_IN_TYPES = frozenset((resource.group, resource.kind) for resource in BUILT_IN)


def json_bytes(value: object, *, by_key: bool = False) -> bytes:
    """JSON as the server writes it."""
    encoded = (_SORTED if by_key else _PLAIN).encode(value)
    for character, escape in _ESCAPES.items():
        if character in encoded:  # only ever within a string
            encoded = encoded.replace(character, escape)
    return encoded


@dataclass(frozen=True, slots=True)
class Frame:
    """What a list says of itself."""

    version: int
    token: str = ""
    remaining: int = 0
    shard: str = ""
    """The shard selector that was applied; empty if none was (recording 65)."""

    def metadata(self) -> dict[str, Any]:
        """The ``ListMeta``, in its order."""
        metadata: dict[str, Any] = {"resourceVersion": str(self.version)}
        if self.token:
            metadata["continue"] = self.token
        if self.remaining:
            metadata["remainingItemCount"] = self.remaining
        if self.shard:
            metadata["shardInfo"] = {"selector": self.shard}
        return metadata


class ListForm(Protocol):
    """How a list is shown: its objects whole, or in one of the forms that ``Accept`` asks for."""

    def page(self, rows: Iterable[Stored], frame: Frame) -> bytes:
        """A list, or one page of it."""
        ...


class Form(ListForm, Protocol):
    """One in which objects can be watched, too."""

    def line(self, event: EventType, stored: Stored) -> bytes:
        """One event of a watch."""
        ...

    def bookmark(self, version: int, *, initial_events_end: bool = False) -> bytes:
        """A bookmark."""
        ...

    def first(self, line: bytes) -> bytes:
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

    def item(self, body: dict[str, Any]) -> bytes:
        """One object as a list has it."""
        if self.custom:
            return json_bytes(body, by_key=True)
        rest = {
            key: _sorted(body[key]) if key in _MAPS else body[key]
            for key in body
            if key not in ("kind", "apiVersion", "metadata")
        }
        return json_bytes({"metadata": ordered(body["metadata"]), **rest})

    def whole(self, item: bytes) -> bytes:
        """One object as a response or an event has it: with its type."""
        return item if self.custom else self._head + item[1:]

    def line(self, event: EventType, stored: Stored) -> bytes:
        """One event of a watch."""
        return event_line(event, self.whole(stored.raw))

    def bookmark(self, version: int, *, initial_events_end: bool = False) -> bytes:
        """A bookmark: an object of the watched type with nothing but a resourceVersion."""
        body: dict[str, Any] = {"metadata": bookmark_metadata(version, initial_events_end)}
        if self.custom:
            body |= {"apiVersion": self.resource.api_version, "kind": self.resource.kind}
        else:
            body |= _NOT_OMITTED.get(self.resource.kind, {})
        return event_line("BOOKMARK", self.whole(self.item(body)))

    def first(self, line: bytes) -> bytes:
        """The event as it is."""
        return line

    def page(self, rows: Iterable[Stored], frame: Frame) -> bytes:
        """A list, or one page of it."""
        joined = b",".join(stored.raw for stored in rows)
        kind = json_bytes(f"{self.resource.kind}List")
        api_version = json_bytes(self.resource.api_version)
        if self.custom:
            metadata = json_bytes({"continue": ""} | frame.metadata(), by_key=True)
            head = b'{"apiVersion":%s,"items":[' % api_version
            return b'%s%s],"kind":%s,"metadata":%s}\n' % (head, joined, kind, metadata)
        head = b'{"kind":%s,"apiVersion":%s,' % (kind, api_version)
        return b'%s"metadata":%s,"items":[%s]}\n' % (head, json_bytes(frame.metadata()), joined)

    @property
    def _head(self) -> bytes:
        head = {"kind": self.resource.kind, "apiVersion": self.resource.api_version}
        return json_bytes(head)[:-1] + b","


def bookmark_metadata(version: int, initial_events_end: bool) -> dict[str, Any]:
    """All that a bookmark says."""
    metadata: dict[str, Any] = {"resourceVersion": str(version)}
    if initial_events_end:
        metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
    return metadata


def event_line(event: EventType, whole: bytes) -> bytes:
    """One event of a watch, about an object with its type."""
    return b'{"type":"%s","object":%s}\n' % (event.encode(), whole)


def ordered(metadata: dict[str, Any]) -> dict[str, Any]:
    """ObjectMeta with its fields in the order of their declaration, and its maps sorted."""
    fields = sorted(metadata.items(), key=lambda pair: _RANK.get(pair[0], len(_RANK)))
    return {name: _sorted(value) if name in _MAPS else value for name, value in fields}


def _sorted(value: Any) -> Any:
    return dict(sorted(cast("dict[str, Any]", value).items())) if isinstance(value, dict) else value


@dataclass(slots=True, eq=False)
class Stored:
    """One state of one object: the body, and its bytes. Never written to after it is made."""

    encoding: Encoding
    body: dict[str, Any]
    version: int
    raw: bytes = b""
    """The bytes as a list item."""

    def __post_init__(self) -> None:
        self.raw = self.encoding.item(self.body)

    @property
    def name(self) -> str:
        """``metadata.name``."""
        name: str = self.body["metadata"]["name"]
        return name

    @property
    def namespace(self) -> str:
        """``metadata.namespace``; empty if cluster-scoped."""
        namespace: str = self.body["metadata"].get("namespace", "")
        return namespace

    @property
    def uid(self) -> str:
        """``metadata.uid``."""
        uid: str = self.body["metadata"]["uid"]
        return uid

    @property
    def key(self) -> str:
        """The key in storage, below the resource: lists are in the order of these (etcd's)."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def at(self, version: int) -> Stored:
        """The same state under another resourceVersion: what a DELETED event shows."""
        metadata = self.body["metadata"] | {"resourceVersion": str(version)}
        return Stored(self.encoding, self.body | {"metadata": metadata}, version)

    def __repr__(self) -> str:
        return f"<Stored {self.encoding.resource} {self.key} rv={self.version}>"


def error_line(status: dict[str, Any]) -> bytes:
    """The event that ends a watch with a ``v1.Status`` (recordings 43 and 61)."""
    return b'{"type":"ERROR","object":%s}\n' % json_bytes(status)


def document_bytes(document: dict[str, Any]) -> bytes:
    """Any other document, as the server ends one: with a newline."""
    return json_bytes(document) + b"\n"
