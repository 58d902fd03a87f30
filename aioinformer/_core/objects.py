"""What is cached and what is told: ``KubeObject``, ``ObjectKey``, and the three events.

A cached object is its own JSON bytes plus the four metadata fields that a cache needs. The rest
is decoded when somebody asks, and the decoded form is kept only for the objects opened last, so
that a cache of 100,000 objects costs their bytes, and the garbage collector has nothing to walk
(``gc=False``: no field of these classes can be part of a cycle).

Cutting objects out of a response is ``wire``'s work, keeping them is ``indexer``'s.
"""

from __future__ import annotations

import datetime as dt
from abc import ABCMeta
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Struct, StructMeta

from aioinformer._core.readonly import FrozenMapping, ReadOnly, freeze
from aioinformer._core.resources import Resource
from aioinformer.errors import ObjectDecodeError

__all__ = ["Added", "DeleteReason", "Deleted", "Event", "KubeObject", "ObjectKey", "Updated"]

T = TypeVar("T")

OPEN_OBJECTS = 64
"""How many decoded bodies are kept. A handler and the code that it calls read one or two objects
at a time. 64 typical pods are 0.8 MB of dicts, which a processor's cache holds: with 256, reading
a few fields of each event costs a sixth more."""

LARGE = 64 * 1024
"""Bytes of JSON from which on a body counts as large."""

OPEN_LARGE_OBJECTS = 8
"""How many large ones are kept beside them: 256 ConfigMaps of 1 MiB must not stay open."""

_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class ObjectKey(Struct, frozen=True, order=True, gc=False):
    """Which object: its namespace (empty if cluster-scoped) and its name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @classmethod
    def parse(cls, text: str) -> ObjectKey:
        """The key that ``str()`` wrote: ``namespace/name``, or ``name``.

        Raises:
            ValueError: more than one slash.
        """
        namespace, _, name = text.rpartition("/")
        if "/" in namespace:
            raise ValueError(f"a key is 'namespace/name' or 'name', not {text!r}")
        return cls(namespace, name)


class _StructMapping(StructMeta, ABCMeta):
    """The metaclass of a msgspec struct that is a ``Mapping`` too."""


class KubeObject(
    Struct,
    ReadOnly,
    Mapping[str, Any],
    metaclass=_StructMapping,
    frozen=True,
    eq=False,
    gc=False,
    repr_omit_defaults=True,
):
    """One object as the server sent it: a read-only mapping over its own JSON bytes.

    ``obj["spec"]["nodeName"]`` reads the body, decoding it at the first use. Two objects are
    equal iff key, uid and bytes are. Writing is a ``TypeError``; ``to_dict()`` gives a copy.
    """

    key: ObjectKey
    uid: str
    resource_version: str
    raw: bytes
    resource: Resource
    _body: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        """``metadata.name``."""
        return self.key.name

    @property
    def namespace(self) -> str:
        """``metadata.namespace``; empty for a cluster-scoped object."""
        return self.key.namespace

    @property
    def kind(self) -> str:
        """The object's type. Items of a list don't carry it; the resource does."""
        return self.resource.kind

    @property
    def api_version(self) -> str:
        """Group and version of the resource through which the object was read."""
        return self.resource.api_version

    # -- the rest of metadata, from the body --------------------------------------------------

    @property
    def labels(self) -> Mapping[str, str]:
        """``metadata.labels``; empty if there are none."""
        if self._body is None:  # selectors read the labels of every object, and nothing else
            return FrozenMapping(_read_labels(self))
        return self._metadata("labels", {})

    @property
    def annotations(self) -> Mapping[str, str]:
        """``metadata.annotations``; empty if there are none."""
        return self._metadata("annotations", {})

    @property
    def owner_references(self) -> Sequence[Mapping[str, Any]]:
        """``metadata.ownerReferences``; empty if there are none."""
        return self._metadata("ownerReferences", [])

    @property
    def creation_timestamp(self) -> dt.datetime | None:
        """When the server created the object."""
        return _timestamp(self._metadata("creationTimestamp", ""))

    @property
    def deletion_timestamp(self) -> dt.datetime | None:
        """When the object is due to go; ``None`` while nobody has asked for that."""
        return _timestamp(self._metadata("deletionTimestamp", ""))

    def _metadata(self, name: str, default: T) -> T:
        value = self._open()["metadata"].get(name)
        frozen: T = freeze(default if value is None else value)
        return frozen

    # -- the body -----------------------------------------------------------------------------

    def __getitem__(self, key: str) -> Any:
        return freeze(self._open()[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self._open())

    def __len__(self) -> int:
        return len(self._open())

    def to_dict(self) -> dict[str, Any]:
        """The body as a dict of one's own, to change or to hand on."""
        return _decode_body(self)  # three times as fast as a deep copy of an open body

    def decode(self, model: type[T]) -> T:
        """The body as a msgspec struct, a dataclass, or whatever else msgspec builds.

        Raises:
            msgspec.ValidationError: the body doesn't fit the model.
            ObjectDecodeError: the body is no JSON.
        """
        try:
            return msgspec.json.decode(self.raw, type=model)
        except msgspec.ValidationError:
            raise
        except _UNREADABLE as error:
            raise undecodable(self, error) from error

    def _open(self) -> dict[str, Any]:
        body = self._body  # read once: another thread may close it in between
        return body if body is not None else _open_bodies.open(self)

    # -- identity -----------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KubeObject):
            return NotImplemented
        return (self.key, self.uid, self.raw) == (other.key, other.uid, other.raw)

    def __ne__(self, other: object) -> bool:  # the struct's own compares identities
        return not self == other

    def __hash__(self) -> int:
        return hash((self.key, self.uid, self.raw))

    def __copy__(self) -> KubeObject:
        return self

    def __deepcopy__(self, memo: object) -> KubeObject:
        return self

    def __repr__(self) -> str:
        return f"<{self.kind} {self.key} rv={self.resource_version} {len(self.raw)} B>"

    def __reduce__(self) -> tuple[type[KubeObject], tuple[object, ...]]:
        return KubeObject, (self.key, self.uid, self.resource_version, self.raw, self.resource)


class _OpenBodies:
    """Keeps the decoded bodies of the objects that were opened last.

    First in, first out: an object that is read all day is decoded again once in a while, which
    costs microseconds, and reading one needs no bookkeeping. Every step is one atomic operation
    of ``deque``, so that readers in threads may race here: the worst is a body decoded twice.
    """

    def __init__(self) -> None:
        self._small: deque[KubeObject] = deque()
        self._large: deque[KubeObject] = deque()

    def open(self, obj: KubeObject) -> dict[str, Any]:
        body = _decode_body(obj)
        msgspec.structs.force_setattr(obj, "_body", body)
        if len(obj.raw) < LARGE:
            self._keep(obj, self._small, OPEN_OBJECTS)
        else:
            self._keep(obj, self._large, OPEN_LARGE_OBJECTS)
        return body

    def _keep(self, obj: KubeObject, kept: deque[KubeObject], limit: int) -> None:
        kept.append(obj)
        while len(kept) > limit:
            try:
                oldest = kept.popleft()
            except IndexError:  # another thread was faster
                return
            msgspec.structs.force_setattr(oldest, "_body", None)


_open_bodies = _OpenBodies()

_read_body = msgspec.json.Decoder(dict[str, Any]).decode


def _decode_body(obj: KubeObject) -> dict[str, Any]:
    try:
        body = _read_body(obj.raw)
    except _UNREADABLE as error:
        raise undecodable(obj, error) from error
    body.setdefault("apiVersion", obj.api_version)
    body.setdefault("kind", obj.kind)
    return body


def body_if_open(obj: KubeObject) -> dict[str, Any] | None:
    """The decoded body, not to be changed, if it happens to be there."""
    return obj._body  # pyright: ignore[reportPrivateUsage]  # a friend, in the module of the class


def open_body(obj: KubeObject) -> dict[str, Any]:
    """The decoded body, not to be changed; kept for a while.

    Raises:
        ObjectDecodeError: the body is no JSON.
    """
    return obj._open()  # pyright: ignore[reportPrivateUsage]  # the same


class _LabelsMetadata(Struct, gc=False):
    labels: dict[str, str] | None = None


class _Labels(Struct, gc=False):
    metadata: _LabelsMetadata


_decode_labels = msgspec.json.Decoder(_Labels).decode


def _read_labels(obj: KubeObject) -> dict[str, str]:
    try:
        return _decode_labels(obj.raw).metadata.labels or {}
    except _UNREADABLE as error:
        raise undecodable(obj, error) from error


def undecodable(obj: KubeObject, error: Exception) -> ObjectDecodeError:
    """What to raise for a body that can't be decoded."""
    return ObjectDecodeError(
        f"{obj.resource} {obj.key} at resourceVersion {obj.resource_version}: "
        f"its body can't be decoded: {error}",
        key=str(obj.key),
        resource_version=obj.resource_version,
    )


def _timestamp(text: str) -> dt.datetime | None:
    return dt.datetime.fromisoformat(text) if text else None


# -- what listeners are told -------------------------------------------------------------------

DeleteReason: TypeAlias = Literal["deleted", "vanished", "resource_gone", "filtered"]
"""Why an object is gone for a listener. ``deleted``: the server said so. ``vanished``: a fresh list
no longer had it; when exactly it went, and its last state, are unknown. ``resource_gone``: the
server serves no such resource any more (its CustomResourceDefinition was deleted), which its
discovery has confirmed. ``filtered``: it still exists and is cached, but no longer passes the
listener's own ``filter=``."""


class Added(Struct, frozen=True, gc=False):
    """An object that this listener has not held before."""

    obj: KubeObject
    initial: bool = False
    """Whether it is part of the state that the listener found when it joined."""


class Updated(Struct, frozen=True, gc=False):
    """A new state of an object with the same uid."""

    old: KubeObject
    """What the cache held when ``new`` replaced it."""
    new: KubeObject
    resync: bool = False
    """Whether this is the cached state told again (then ``old is new``)."""

    @property
    def obj(self) -> KubeObject:
        """The object as it is now; every event has one."""
        return self.new


class Deleted(Struct, frozen=True, gc=False):
    """An object that left the cache."""

    obj: KubeObject
    """Its last known state."""
    reason: DeleteReason = "deleted"


Event: TypeAlias = Added | Updated | Deleted
"""What a listener is told."""
