"""What is cached and what is told: ``KubeObject``, ``ObjectKey``, and the three events.

A cached object is its own JSON bytes plus the four metadata fields that a cache needs. The rest
is decoded when somebody asks, and the decoded form is kept only for the objects opened last, so
that a cache of 100,000 objects costs their bytes, and the garbage collector has nothing to walk
(``gc=False``: no field of these classes can be part of a cycle).

Cutting objects out of a response is ``wire``'s work, keeping them is ``indexer``'s.

Which cached objects have their decoded body at hand: those that were opened last.

Decoding a pod takes ten microseconds, and a handler reads its object several times; but a body
is six times as large as its bytes, so that a cache of 100,000 objects must not keep them all.
What is decoded, and how it is shown, is ``objects``'.
"""

from __future__ import annotations

import datetime as dt
from abc import ABCMeta
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Generic, Literal, NoReturn, TypeAlias

import msgspec
from msgspec import Struct, StructMeta
from msgspec.structs import force_setattr
from typing_extensions import TypeVar

from aioinformer._core.objects.identity import ObjectKey as ObjectKey
from aioinformer._core.objects.json_depth import decode_nested
from aioinformer._core.objects.readonly import (
    READ_ONLY_HINT,
    FrozenMapping,
    FrozenSequence,
    MissingAttribute,
    ReadOnly,
    freeze,
)
from aioinformer._core.objects.resources import Resource
from aioinformer.errors import ObjectDecodeError

__all__ = [
    "NOT_DECODED",
    "Added",
    "DecodedBody",
    "DecodedBodyCache",
    "DeleteReason",
    "Deleted",
    "Event",
    "KubeObject",
    "ObjectKey",
    "Updated",
]


MAX_DECODED = 16
"""How many decoded bodies are kept. A handler and the code that it calls read one or two objects
at a time. 16 typical pods are 0.2 MB of dicts, which a processor's cache holds beside all else:
with 64, reading a few fields of each event costs a sixth more, with 256 a third."""

LARGE_BODY_BYTES = 64 * 1024
"""Bytes of JSON from which on a body counts as large."""

MAX_DECODED_LARGE = 8
"""How many large ones are kept beside them: 256 ConfigMaps of 1 MiB must not stay open."""


class DecodedBody:
    """Where an object has its decoded body; ``NOT_DECODED`` if it isn't decoded.

    It is also what keeps msgspec from encoding the fields of an object as if they were its
    content: a type that msgspec doesn't know, and whose name is all that it tells the caller.
    """

    __slots__ = ("content",)

    def __init__(self, content: dict[str, Any] | None) -> None:
        self.content = content


DecodedBody.__name__ = "KubeObject (send its raw bytes, or encode its to_dict())"
NOT_DECODED = DecodedBody(None)


class DecodedBodyCache:
    """Keeps the decoded bodies of the objects that were opened last, in their ``_body``.

    First in, first out: an object that is read all day is decoded again once in a while, which
    costs microseconds, and reading one needs no bookkeeping. Every step is one atomic operation
    of ``deque``, so that readers in threads may race here: the worst is a body decoded twice.
    """

    def __init__(self) -> None:
        """None yet."""
        self._small: deque[Struct] = deque()
        self._large: deque[Struct] = deque()

    def add(self, obj: Struct, body: dict[str, Any], size: int) -> None:
        """``obj``, of so many bytes, was decoded; another one is closed for it, if need be."""
        force_setattr(obj, "_body", DecodedBody(body))
        kept, most = (
            (self._small, MAX_DECODED)
            if size < LARGE_BODY_BYTES
            else (self._large, MAX_DECODED_LARGE)
        )
        kept.append(obj)
        while len(kept) > most:
            try:
                oldest = kept.popleft()
            except IndexError:  # another thread was faster
                return
            force_setattr(oldest, "_body", NOT_DECODED)

    def __repr__(self) -> str:
        return f"<DecodedBodyCache small={len(self._small)} large={len(self._large)}>"


T = TypeVar("T")

_DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_STRING_MAP = dict[str, str]
_OBJECT_LIST = list[dict[str, Any]]
_TIMESTAMP = Annotated[dt.datetime, msgspec.Meta(tz=True)]
"""What metadata must be: RFC 3339 with a zone, as Go's ``metav1.Time``."""


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
    _body: DecodedBody = NOT_DECODED

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

    # Whoever reads these relies on their types, so that a value of another one is no value, whether
    # or not the body happens to be open.

    @property
    def labels(self) -> Mapping[str, str]:
        """``metadata.labels``; empty if there are none."""
        if self._body is NOT_DECODED:  # selectors read the labels of every object, and nothing else
            return FrozenMapping(_read_labels(self))
        return FrozenMapping(self._metadata("labels", _STRING_MAP) or {})

    @property
    def annotations(self) -> Mapping[str, str]:
        """``metadata.annotations``; empty if there are none."""
        return FrozenMapping(self._metadata("annotations", _STRING_MAP) or {})

    @property
    def owner_references(self) -> Sequence[Mapping[str, Any]]:
        """``metadata.ownerReferences``; empty if there are none."""
        return FrozenSequence(self._metadata("ownerReferences", _OBJECT_LIST) or [])

    @property
    def creation_timestamp(self) -> dt.datetime | None:
        """When the server created the object."""
        when: dt.datetime | None = self._metadata("creationTimestamp", _TIMESTAMP)
        return when

    @property
    def deletion_timestamp(self) -> dt.datetime | None:
        """When the object is due to go; ``None`` while nobody has asked for that."""
        when: dt.datetime | None = self._metadata("deletionTimestamp", _TIMESTAMP)
        return when

    def _metadata(self, name: str, kind: Any) -> Any:
        """A copy of that value, ``None`` if there is none; raises unless it is of that kind."""
        try:
            value = msgspec.convert(self._decoded_body().get("metadata"), dict[str, Any]).get(name)
            return None if value is None else msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            raise decode_error(self, error, path=f"metadata.{name}") from error

    # -- the body -----------------------------------------------------------------------------

    def __getitem__(self, key: str) -> Any:
        body = self._body.content  # as in ``_decoded_body``: this is what handlers do most
        return freeze((self._decoded_body() if body is None else body)[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self._decoded_body())

    def __len__(self) -> int:
        return len(self._decoded_body())

    def __bool__(self) -> bool:
        return True  # ``if obj := lister.get(...)`` must not open it, which may fail

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
            _decode_body(self)  # a number that no type can hold is no fault of the model's
            raise
        except _DECODE_ERRORS as error:
            raise decode_error(self, error) from error

    def _decoded_body(self) -> dict[str, Any]:
        body = self._body.content  # read once: another thread may close it in between
        if body is None:
            body = _decode_body(self)
            _decoded_bodies.add(self, body, len(self.raw))
        return body

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


def _raise_read_only(obj: KubeObject, name: str, *value: object) -> NoReturn:
    raise TypeError(f"{name!r} can't be written: {READ_ONLY_HINT}")


for _name in ("__setattr__", "__delattr__"):  # a frozen struct overrides what its class defines
    setattr(KubeObject, _name, _raise_read_only)


_decoded_bodies = DecodedBodyCache()

_read_body = msgspec.json.Decoder(dict[str, Any]).decode


def _decode_body(obj: KubeObject) -> dict[str, Any]:
    try:
        body = _read_body(obj.raw)
    except _DECODE_ERRORS as error:
        raise decode_error(obj, error) from error
    if "apiVersion" not in body:
        body["apiVersion"] = obj.api_version
    if "kind" not in body:
        body["kind"] = obj.kind
    return body


def cached_body(obj: KubeObject) -> dict[str, Any] | None:
    """The decoded body, not to be changed, if it happens to be there."""
    return obj._body.content  # pyright: ignore[reportPrivateUsage]  # a friend, in the module of the class


def decoded_body(obj: KubeObject) -> dict[str, Any]:
    """The decoded body, not to be changed; kept for a while.

    Raises:
        ObjectDecodeError: the body is no JSON.
    """
    return obj._decoded_body()  # pyright: ignore[reportPrivateUsage]  # the same


class _LabelsMetadata(Struct, gc=False):
    labels: dict[str, str] | None = None


class _Labels(Struct, gc=False):
    metadata: _LabelsMetadata


_decode_labels = msgspec.json.Decoder(_Labels).decode


def _read_labels(obj: KubeObject) -> dict[str, str]:
    try:
        return decode_nested(_decode_labels, obj.raw).metadata.labels or {}
    except _DECODE_ERRORS as error:
        raise decode_error(obj, error, path="metadata.labels") from error


def decode_error(obj: KubeObject, error: Exception, *, path: str = "") -> ObjectDecodeError:
    """What to raise for a body, or for what is at ``path`` of it, that can't be decoded."""
    return ObjectDecodeError(
        f"{obj.resource} {obj.key} at resourceVersion {obj.resource_version}: "
        f"its {path or 'body'} can't be decoded: {error}",
        key=str(obj.key),
        path=path,
        resource_version=obj.resource_version,
    )


# -- what listeners are told -------------------------------------------------------------------

T_co = TypeVar("T_co", covariant=True, default=KubeObject)
E = TypeVar("E", default=KubeObject)

DeleteReason: TypeAlias = Literal["deleted", "vanished", "resource_gone", "filtered", "dropped"]
"""Why an object is gone for a listener. ``deleted``: the server said so. ``vanished``: a fresh list
no longer had it; when exactly it went, and its last state, are unknown. ``resource_gone``: the
server serves no such resource any more (its CustomResourceDefinition was deleted), which its
discovery has confirmed. ``filtered``: it still exists and is cached, but no longer passes the
listener's own ``filter=``. ``dropped``: it still exists, but the informer's ``transform=`` has
dropped its newest state, and so it is cached no longer."""


for _name in ("metadata", "spec", "status", "data"):  # here, so that type checkers see none
    setattr(KubeObject, _name, MissingAttribute(_name))


class Added(Struct, Generic[T_co], frozen=True, gc=False):
    """An object that this listener has not held before."""

    obj: T_co
    initial: bool = False
    """Whether it is part of the state that the listener found when it joined."""

    @property
    def key(self) -> ObjectKey:
        """Which object; every event has it, whatever the objects of its informer look like."""
        return key_of(self.obj)


class Updated(Struct, Generic[T_co], frozen=True, gc=False):
    """A new state of an object with the same uid."""

    old: T_co
    """What the cache held when ``new`` replaced it."""
    new: T_co
    resync: bool = False
    """Whether this is the cached state told again (then ``old is new``)."""

    @property
    def obj(self) -> T_co:
        """The object as it is now; every event has one."""
        return self.new

    @property
    def key(self) -> ObjectKey:
        """Which object."""
        return key_of(self.new)


class Deleted(Struct, Generic[T_co], frozen=True, gc=False):
    """An object that left the cache."""

    obj: T_co
    """Its last known state."""
    reason: DeleteReason = "deleted"

    @property
    def key(self) -> ObjectKey:
        """Which object."""
        return key_of(self.obj)


Event: TypeAlias = Added[E] | Updated[E] | Deleted[E]
"""What a listener is told; of ``Event[Pod]``, the objects are ``Pod``s."""


def key_of(obj: object) -> ObjectKey:
    """The key of a ``KubeObject``. Events of other objects know their own (``views``).

    Raises:
        TypeError: it is another object: a program made this event itself.
    """
    if not isinstance(obj, KubeObject):
        raise TypeError(f"of a {type(obj).__name__} alone nobody knows the key")
    return obj.key
