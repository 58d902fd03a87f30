"""The class that a cached object has while its JSON is compressed.

An object is compressed in place: its class becomes ``CompressedObject``, and its field ``raw`` a
``CompressedBytes``. So the object stays the same one in the cache, in its indexes, in mailboxes and
in the variables of programs, and objects of other informers have no part in this. Class and field
are assigned one after the other, and each method of either class works with every state between,
because readers in threads may see those.

uid and version stand before the frame, since every newer version of the object is compared with
them. Whatever else is read of a compressed object is read from its JSON, decompressed for each
read. A body that was decoded stays so for a while, as with any object (``object_body``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, TypeAlias, cast

from msgspec import Struct
from msgspec.structs import force_setattr

from aioinformer._core.compression.zstd import BodyCodec
from aioinformer._core.objects.kube_object import KubeObject, pack_identity
from aioinformer._core.objects.object_body import IdentityPlace

__all__ = [
    "CompressedBytes",
    "CompressedObject",
    "CompressionGroup",
    "KnownValues",
    "UncompressedObject",
    "keep_uncompressed",
    "saved_bytes",
    "store_compressed",
]

KnownValues: TypeAlias = Mapping[str, tuple[str, ...]]
"""The index values of an object by the name of the index."""

SIZE_BYTES: Final = 4
"""Bytes that hold the size of the JSON: an object of 4 GB is beyond every server."""
HEADER_BYTES: Final = SIZE_BYTES + 2
"""The size of the JSON, and the lengths of uid and version, each in one byte."""
COMPRESSED_BYTES: Final = 32 + 33
"""Bytes of a ``CompressedBytes``, and of the header of its data."""


class CompressionGroup(Struct, frozen=True, eq=False, gc=False):
    """The things that compressed objects have in common."""

    codec: BodyCodec
    """Decompresses the objects."""
    values: KnownValues
    """The index values of each of the objects, for those indexes that existed."""


class CompressedBytes(Struct, frozen=True, eq=False, gc=False):
    """The compressed JSON of one object. Its length is the length of the JSON itself."""

    data: bytes
    """Size of the JSON, lengths of uid and version, uid, version, frame."""
    group: CompressionGroup

    @classmethod
    def of(cls, raw: bytes, uid: str, version: str, group: CompressionGroup) -> CompressedBytes:
        """Return ``raw`` compressed.

        Raises:
            ValueError: uid or version is longer than 255 bytes.
        """
        name, number = uid.encode(), version.encode()
        header = len(raw).to_bytes(SIZE_BYTES, "big") + bytes((len(name), len(number)))
        return cls(b"%b%b%b%b" % (header, name, number, group.codec.compress(raw)), group)

    def __len__(self) -> int:
        return int.from_bytes(self.data[:SIZE_BYTES], "big")

    def decompress(self) -> bytes:
        """Return the JSON."""
        data = self.data
        start = HEADER_BYTES + data[SIZE_BYTES] + data[SIZE_BYTES + 1]
        return self.group.codec.decompress(memoryview(data)[start:])

    @property
    def uid(self) -> str:
        """``metadata.uid`` of the object."""
        return self.data[HEADER_BYTES : HEADER_BYTES + self.data[SIZE_BYTES]].decode()

    @property
    def version(self) -> str:
        """``metadata.resourceVersion`` of the object."""
        data = self.data
        start = HEADER_BYTES + data[SIZE_BYTES]
        return data[start : start + data[SIZE_BYTES + 1]].decode()


class CompressedPlace(IdentityPlace):
    """The state of a compressed object: the places of uid and version in its JSON.

    Readers that found an object before it was compressed read at these places. All others, and the
    comparison with a newer version, ask the ``CompressedBytes``.
    """

    __slots__ = ()

    content: ClassVar[None] = None

    def __init__(self, place: IdentityPlace) -> None:
        """Create the state for the same places."""
        self.uid, self.version, self.identity = place.uid, place.version, place.identity


for _type in (CompressedPlace, BodyCodec):  # in the error of msgspec.json.encode
    _type.__name__ = IdentityPlace.__name__
_compressed_places: dict[IdentityPlace, CompressedPlace] = {}


class CompressedObject(KubeObject, frozen=True, eq=False, gc=False):
    """An object whose JSON is compressed. It has no field that ``KubeObject`` lacks."""

    @property
    def uid(self) -> str:
        """``metadata.uid``."""
        stored = self.stored
        return stored.uid if type(stored) is CompressedBytes else super().uid

    @property
    def resource_version(self) -> str:
        """``metadata.resourceVersion``."""
        stored = self.stored
        return stored.version if type(stored) is CompressedBytes else super().resource_version


def _read_raw(obj: KubeObject) -> bytes:
    """Return the JSON, decompressed for this call."""
    stored = obj.stored
    return stored.decompress() if type(stored) is CompressedBytes else cast("bytes", stored)


# Not in the body of the class: for type checkers ``raw`` is a field, and stays one.
setattr(CompressedObject, "raw", property(_read_raw))  # noqa: B010 - as above


class UncompressedObject(KubeObject, frozen=True, eq=False, gc=False):
    """An object that isn't worth compressing. The class saves the next attempt."""


for _kind in (CompressedObject, UncompressedObject):  # a frozen struct has methods of its own
    for _name in ("__setattr__", "__delattr__"):
        setattr(_kind, _name, getattr(KubeObject, _name))


def store_compressed(obj: KubeObject, compressed: CompressedBytes) -> None:
    """Compress an object in place: ``compressed`` has been made of its JSON."""
    state = pack_identity(obj)
    # The class first: its methods read both forms of the field.
    force_setattr(obj, "__class__", CompressedObject)
    force_setattr(obj, "stored", compressed)
    if type(state) is IdentityPlace:
        place = _compressed_places.get(state)
        if place is None:
            place = _compressed_places.setdefault(state, CompressedPlace(state))
        force_setattr(obj, "_body", place)


def keep_uncompressed(obj: KubeObject) -> None:
    """Mark an object as not worth compressing."""
    force_setattr(obj, "__class__", UncompressedObject)


def saved_bytes(obj: KubeObject) -> int:
    """Return the bytes that compression saves for an object; 0 unless it is compressed."""
    stored = obj.stored
    if type(stored) is not CompressedBytes:
        return 0
    return len(stored) - len(stored.data) - COMPRESSED_BYTES
