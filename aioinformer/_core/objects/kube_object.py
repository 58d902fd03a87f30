"""``KubeObject``, the cached object, and the three events that listeners receive.

A cached object is its own JSON bytes plus its key. uid and resourceVersion are read from the bytes
(``object_body``). The body is decoded when it is read, and the decoded form is kept only for the
objects that were opened last. So a cache of 100,000 objects costs their bytes, and the garbage
collector has nothing to walk (``gc=False``: no field of these classes can be part of a cycle).
"""

from __future__ import annotations

import datetime as dt
from abc import ABCMeta
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Generic, Literal, NoReturn, TypeAlias, cast

import msgspec
from msgspec import Struct, StructMeta
from msgspec.structs import force_setattr
from typing_extensions import TypeVar

from aioinformer._core.missing_names import declare_missing, mapping_hints, missing_key
from aioinformer._core.objects.decode_errors import DECODE_ERRORS, discard_input, is_secret
from aioinformer._core.objects.json_depth import upper_levels
from aioinformer._core.objects.object_body import (
    NO_PLACE,
    DecodedBody,
    IdentityPlace,
    IdentityText,
    ObjectBody,
    decoded_bodies,
    find_place,
)
from aioinformer._core.objects.object_key import ObjectKey as ObjectKey
from aioinformer._core.objects.readonly import (
    READ_ONLY_HINT,
    FrozenMapping,
    FrozenSequence,
    ReadOnly,
    SecretBody,
    SecretMapping,
    freeze,
)
from aioinformer._core.objects.resources import Resource
from aioinformer.errors import ObjectDecodeError, UsageError
from aioinformer.errors.texts import printable

T = TypeVar("T")

_STRING_MAP = dict[str, str]
_OBJECT_LIST = list[dict[str, Any]]
_TIMESTAMP = Annotated[dt.datetime, msgspec.Meta(tz=True)]
"""The form of times in metadata: RFC 3339 with a zone, as Go's ``metav1.Time``."""


class _StructMapping(StructMeta, ABCMeta):
    # Positional patterns of ``match`` bind the arguments of the constructor, not the fields.
    __match_args__ = ("key", "uid", "resource_version", "raw", "resource")

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Make an object; a ``KubeObject`` from other values than its fields."""
        if cls is KubeObject:
            return create_object(*args, **kwargs)
        return super().__call__(*args, **kwargs)


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

    ``obj["spec"]["nodeName"]`` reads the body, which is decoded at the first use. Two objects are
    equal if key, uid and bytes are equal. Writing raises ``TypeError``; ``to_dict()`` returns a
    copy.

    The repr shows no content, and of a Secret the reprs of its parts, such as ``obj["data"]``,
    show none either. Not hidden are single texts (``obj["data"]["password"]``), ``raw``, copies
    (``to_dict()``, ``dict(...)``) and models.

    ``json.dumps`` takes no mapping but a ``dict``: write ``json.dumps(obj.to_dict())``, for a list
    of objects ``json.dumps(objects, default=KubeObject.to_dict)``, or use ``raw``.
    """

    key: ObjectKey
    raw: bytes
    resource: Resource
    _body: ObjectBody = NO_PLACE

    if TYPE_CHECKING:  # as ``create_object`` and the metaclass have them
        __match_args__ = ("key", "uid", "resource_version", "raw", "resource")

        def __init__(
            self, key: ObjectKey, uid: str, resource_version: str, raw: bytes, resource: Resource
        ) -> None: ...

    @property
    def uid(self) -> str:
        """``metadata.uid``, which no other object ever has."""
        uid = self._body.uid
        return uid if isinstance(uid, str) else self.raw[uid].decode()

    @property
    def resource_version(self) -> str:
        """``metadata.resourceVersion``, the version of the object's content."""
        version = self._body.version
        return version if isinstance(version, str) else self.raw[version].decode()

    @property
    def name(self) -> str:
        return self.key.name

    @property
    def namespace(self) -> str:
        """``metadata.namespace``; empty for a cluster-scoped object."""
        return self.key.namespace

    @property
    def kind(self) -> str:
        """The object's type, from the resource, because the items of a list don't have it."""
        return self.resource.kind

    @property
    def api_version(self) -> str:
        """Group and version of the resource through which the object was read."""
        return self.resource.api_version

    # -- the rest of metadata, from the body; a value of another type is an error ----------------

    @property
    def labels(self) -> Mapping[str, str]:
        """``metadata.labels``; empty if there are none."""
        if self._body.content is None:  # selectors read only the labels, of every object
            return FrozenMapping(_read_labels(self))
        return FrozenMapping(self._metadata("labels", _STRING_MAP) or {})

    @property
    def annotations(self) -> Mapping[str, str]:
        """``metadata.annotations``; empty if there are none."""
        # kubectl's ``last-applied-configuration`` repeats the contents of a Secret.
        view = SecretMapping if is_secret(self.resource) else FrozenMapping
        return view(self._metadata("annotations", _STRING_MAP) or {})

    @property
    def owner_references(self) -> Sequence[Mapping[str, Any]]:
        """``metadata.ownerReferences``; empty if there are none."""
        return FrozenSequence(self._metadata("ownerReferences", _OBJECT_LIST) or [])

    @property
    def creation_timestamp(self) -> dt.datetime | None:
        """The time at which the server created the object."""
        time: dt.datetime | None = self._metadata("creationTimestamp", _TIMESTAMP)
        return time

    @property
    def deletion_timestamp(self) -> dt.datetime | None:
        """The time at which the object is to be removed; ``None`` if no deletion was requested."""
        time: dt.datetime | None = self._metadata("deletionTimestamp", _TIMESTAMP)
        return time

    def _metadata(self, name: str, kind: Any) -> Any:
        try:
            body = self._decoded_body()
        except ObjectDecodeError:
            body = shallow_body(self)  # raises as well, unless the object is only too deep
        try:
            value = msgspec.convert(body.get("metadata"), dict[str, Any]).get(name)
            return None if value is None else msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            raise body_error(self, error, path=f"metadata.{name}") from error

    # -- the body -----------------------------------------------------------------------------

    def __getitem__(self, key: str) -> Any:
        body = self._body.content  # ``_decoded_body`` inline: handlers do this most
        if body is None:
            body = self._decoded_body()
        try:
            return freeze(body[key])
        except KeyError:
            raise missing_key(key, body) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._decoded_body())

    def __len__(self) -> int:
        return len(self._decoded_body())

    def __bool__(self) -> bool:
        return True  # ``if obj := lister.get(...)`` must not decode the body, which may fail

    def to_dict(self) -> dict[str, Any]:
        """Return the body as a new dict, which can be changed."""
        return _decode_body(self, self.raw)  # three times as fast as a deep copy of an open body

    def decode(self, model: type[T]) -> T:
        """Return the body as a msgspec struct, a dataclass, or another type that msgspec builds.

        Raises:
            msgspec.ValidationError: the body doesn't fit the model.
            ObjectDecodeError: the body is no JSON.
        """
        try:
            return msgspec.json.decode(self.raw, type=model)
        except msgspec.ValidationError:
            self.to_dict()  # raises for a number that no type can hold: not the model's fault
            raise
        except DECODE_ERRORS as error:
            raise body_error(self, error) from error

    def _decoded_body(self) -> dict[str, Any]:
        state = self._body  # read once: another thread may close the object in between
        body = state.content
        if body is None:
            body = _readable_body(self, self.raw)
            decoded_bodies.add(self, DecodedBody(body, state.closed), len(self.raw))
        return body

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KubeObject):
            return NotImplemented
        return (self.key, self.uid, self.raw) == (other.key, other.uid, other.raw)

    def __ne__(self, other: object) -> bool:  # the method of Struct compares identities
        return not self == other

    def __hash__(self) -> int:
        return hash((self.key, self.uid, self.raw))

    def __copy__(self) -> KubeObject:
        return self

    def __deepcopy__(self, memo: object) -> KubeObject:
        return self

    def __repr__(self) -> str:
        return printable(f"<{self.kind} {self.key} rv={self.resource_version} {len(self.raw)} B>")

    def __reduce__(self) -> tuple[type[KubeObject], tuple[object, ...]]:
        return KubeObject, (self.key, self.uid, self.resource_version, self.raw, self.resource)


make_struct: Callable[[ObjectKey, bytes, Resource, ObjectBody], KubeObject]
make_struct = StructMeta.__call__.__get__(KubeObject)  # the constructor without the conversion


def create_object(
    key: ObjectKey, uid: str, resource_version: str, raw: bytes, resource: Resource
) -> KubeObject:
    return make_struct(key, raw, resource, IdentityText(uid, resource_version))


def create_packed_object(
    key: ObjectKey, uid: str, resource_version: str, raw: bytes, resource: Resource
) -> KubeObject:
    """Return the object with this JSON, with uid and version left in its bytes if possible."""
    place = find_place(raw, uid, resource_version) or IdentityText(uid, resource_version)
    return make_struct(key, raw, resource, place)


def pack_identity(obj: KubeObject) -> None:
    """Leave uid and version of ``obj``, which nobody else has yet, in its bytes if found there."""
    state = obj._body  # pyright: ignore[reportPrivateUsage]  # in the module of the class
    if type(state) is IdentityText and (place := find_place(obj.raw, state.uid, state.version)):
        force_setattr(obj, "_body", place)


def is_packed(obj: KubeObject) -> bool:
    """Return True unless uid and version of ``obj`` are strings beside its bytes."""
    return type(obj._body.closed) is not IdentityText  # pyright: ignore[reportPrivateUsage]  # the same


DIFFERENT: Final = 0
SAME_UID: Final = 1
SAME_VERSION: Final = 2


def compare_identity(old: KubeObject, new: KubeObject) -> int:
    """Compare two objects of one key: ``DIFFERENT`` uids, ``SAME_UID``, or ``SAME_VERSION``."""
    before, after = old._body, new._body  # pyright: ignore[reportPrivateUsage]  # of this module
    if type(before) is type(after) is IdentityText:  # two changes in a row
        if before.uid != after.uid:
            return DIFFERENT
        return SAME_VERSION if before.version == after.version else SAME_UID
    if type(before) is IdentityPlace and type(after) is IdentityText and before is not NO_PLACE:
        if old.raw[before.uid] != after.uid.encode():  # a change of a listed object
            return DIFFERENT
        same = old.raw[before.version] == after.version.encode()
        return SAME_VERSION if same else SAME_UID
    if before is after and type(before) is IdentityPlace and before is not NO_PLACE:  # two lists
        if old.raw[before.identity] == new.raw[before.identity]:
            return SAME_VERSION
        return SAME_UID if old.raw[before.uid] == new.raw[before.uid] else DIFFERENT
    if old.uid != new.uid:
        return DIFFERENT
    return SAME_VERSION if old.resource_version == new.resource_version else SAME_UID


def _raise_read_only(obj: KubeObject, name: str, *value: object) -> NoReturn:
    raise TypeError(f"{name!r} can't be written: {READ_ONLY_HINT}")


for _name in ("__setattr__", "__delattr__"):  # a frozen struct overrides the methods of its class
    setattr(KubeObject, _name, _raise_read_only)


def body_error(
    obj: KubeObject, error: Exception, *, path: str = ""
) -> ObjectDecodeError | UsageError:
    """Return the error of a read of an object's JSON, or of the value at ``path`` in it. An object
    of a model has no JSON.
    """
    if not obj.raw:
        return UsageError(
            f"{obj.resource} {obj.key} has no JSON to read, since its informer has model=: read "
            "the model with the informer's lister.get(key), or use convert= in place of model="
        )
    deep = isinstance(error, RecursionError)
    reason = "it is nested too deeply" if deep else discard_input(error)
    return ObjectDecodeError(
        f"{obj.resource} {obj.key} at resourceVersion {obj.resource_version}: "
        f"its {path or 'body'} can't be decoded: {reason}",
        key=str(obj.key),
        path=path,
        resource_version=obj.resource_version,
        uid=obj.uid,
    )


_read_body = msgspec.json.Decoder(dict[str, Any]).decode


def _decode_body(obj: KubeObject, raw: bytes) -> dict[str, Any]:
    try:
        body = _read_body(raw)
    except DECODE_ERRORS as error:
        raise body_error(obj, error) from error
    if "apiVersion" not in body:
        body["apiVersion"] = obj.api_version
    if "kind" not in body:
        body["kind"] = obj.kind
    return body


def _readable_body(obj: KubeObject, raw: bytes) -> dict[str, Any]:
    body = _decode_body(obj, raw)
    return SecretBody(body) if is_secret(obj.resource) else body


def cached_body(obj: KubeObject) -> dict[str, Any] | None:
    """Return the decoded body if the object is open. The caller must not change it."""
    return obj._body.content  # pyright: ignore[reportPrivateUsage]  # in the module of the class


def decoded_body(obj: KubeObject) -> dict[str, Any]:
    """Return the decoded body, and keep it for a while. The caller must not change it.

    Raises:
        ObjectDecodeError: the body is no JSON.
    """
    return obj._decoded_body()  # pyright: ignore[reportPrivateUsage]  # the same


def shallow_body(obj: KubeObject) -> dict[str, Any]:
    """Return the body of an object that is nested too deeply to be decoded, with a ``0`` in place
    of each part that is deeper than ``MAX_DEPTH``. Raises as ``decoded_body``.
    """
    return _readable_body(obj, upper_levels(obj.raw))


class _LabelsMetadata(msgspec.Struct, gc=False):
    labels: dict[str, str] | None = None


class _Labels(msgspec.Struct, gc=False):
    """The labels alone, since selectors and label indexes read them of many objects."""

    metadata: _LabelsMetadata


_decode_labels = msgspec.json.Decoder(_Labels).decode


def _read_labels(obj: KubeObject) -> dict[str, str]:
    try:
        try:
            found = _decode_labels(obj.raw)
        except RecursionError:
            found = _decode_labels(upper_levels(obj.raw))
    except DECODE_ERRORS as error:
        raise body_error(obj, error, path="metadata.labels") from error
    return found.metadata.labels or {}


# -- events ------------------------------------------------------------------------------------

T_co = TypeVar("T_co", covariant=True, default=KubeObject)
E = TypeVar("E", default=KubeObject)

DeleteReason: TypeAlias = Literal[
    "deleted", "vanished", "resource_gone", "scope_removed", "filtered", "dropped"
]
"""The reason of a ``Deleted`` event. ``deleted``: the server sent the deletion. ``vanished``: a
relist no longer contains the object, or contains another one of that name (a re-created object, or
one that a watch shows as added); the time of the deletion and the last state are unknown.
``resource_gone``: the server no longer serves the resource, which discovery has confirmed.
``scope_removed``: the informer no longer reads the object's namespace; the object may still exist.
``filtered``: the object is still cached, but no longer passes the listener's own ``filter=``.
``dropped``: the object still exists, but the informer's ``transform=`` has dropped its newest
state, so it is no longer cached.

Example::

    CERTAIN: set[DeleteReason] = {"deleted", "resource_gone"}  # the others lack the last state

    @pods.on_delete
    async def removed(obj: KubeObject, *, reason: DeleteReason) -> None:
        print(obj.name, "was deleted" if reason in CERTAIN else "is not there any more")"""


for _parent, _names in (
    ("", ("metadata", "spec", "status", "data")),
    ("['spec']", ("nodeName", "containers", "replicas", "template")),
    ("['status']", ("phase", "conditions")),
):
    _others = "; attributes are key, name, namespace, labels and the like"
    declare_missing(KubeObject, mapping_hints(*_names, parent=f"obj{_parent}", others=_others))


class Added(Struct, Generic[T_co], frozen=True, gc=False):
    """An object that is new to the listener."""

    obj: T_co
    initial: bool = False
    """True if the object was cached when the listener joined, or is part of the initial list."""

    @property
    def key(self) -> ObjectKey:
        """The key of the object. Every event has one, also if the objects are models."""
        return key_of(self.obj)


class Updated(Struct, Generic[T_co], frozen=True, gc=False):
    """A new state of an object with the same uid."""

    old: T_co
    """The state that the listener knew when ``new`` replaced it."""
    new: T_co
    resync: bool = False
    """True if this is the cached state, delivered again by a resync (then ``old is new``)."""

    @property
    def obj(self) -> T_co:
        return self.new

    @property
    def key(self) -> ObjectKey:
        return key_of(self.new)


class Deleted(Struct, Generic[T_co], frozen=True, eq=False, gc=False):
    """An object that is no longer cached, or no longer passes the listener's filter."""

    obj: T_co
    """The last known state. With ``convert=``, the last one that could be converted; if there is
    none, reading it raises the ``ModelMismatch``, and ``key`` says what was deleted."""
    reason: DeleteReason = "deleted"
    _cached: T_co | None = None
    """The cached state, if the server sent another one with the deletion, for filters: a listener
    holds the cached state. No part of the event's value."""

    @property
    def key(self) -> ObjectKey:
        return key_of(self.obj)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Deleted):
            return NotImplemented
        found = cast("Deleted[object]", other)
        return (self.obj, self.reason) == (found.obj, found.reason)

    def __ne__(self, other: object) -> bool:  # the method of Struct compares identities
        return not self == other

    def __hash__(self) -> int:
        return hash((Deleted, self.obj, self.reason))

    def __repr__(self) -> str:
        return f"Deleted(obj={self.obj!r}, reason={self.reason!r})"


def held_state(event: Deleted) -> KubeObject:
    """Return the state that a listener holds when ``event`` arrives."""
    cached = event._cached  # pyright: ignore[reportPrivateUsage]  # in the module of the class
    return event.obj if cached is None else cached


Event: TypeAlias = Added[E] | Updated[E] | Deleted[E]
"""An event that a listener receives. The objects of an ``Event[Pod]`` are ``Pod``s.

Example::

    def describe(event: Event) -> str:
        match event:
            case Added(obj, initial=True):
                return f"{obj.name} is there"
            case Updated(old, new):
                return f"{new.name}: {old.resource_version} -> {new.resource_version}"
            case _:
                return f"{type(event).__name__} {event.obj.name}"

    async with pods.events() as events:
        async for event in events:
            assert describe(event) == f"{event.obj.name} is there"
            break
"""


def key_of(obj: object) -> ObjectKey:
    """Return the key of a ``KubeObject``. Events of other objects store their key.

    Raises:
        TypeError: ``obj`` is another object, in an event that a program has created itself.
    """
    if not isinstance(obj, KubeObject):
        raise TypeError(f"cannot derive a key from a {type(obj).__name__}; pass a KubeObject")
    return obj.key
