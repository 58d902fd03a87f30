"""The class that a cached object has while its JSON is compressed.

An object is compressed in place: its class becomes ``CompressedObject``, and its field ``raw`` a
``CompressedBytes``. So the object stays the same one in the cache, in its indexes, in mailboxes and
in the variables of programs, and objects of other informers have no part in this. Class and field
are assigned one after the other, and each method of either class works with every state between,
because readers in threads may see those.

uid and version stand before the frame, since every newer version of the object is compared with
them. Every other part of a compressed object is read from its JSON, which is decompressed for each
read. A body that was decoded stays so for a while, as with any object (``object_body``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from struct import Struct as Layout
from typing import Final, TypeAlias, cast

from msgspec import Struct
from msgspec.structs import force_setattr

from aioinformer._core.compression.zstd import BodyCodec
from aioinformer._core.objects.kube_object import (
    DIFFERENT,
    SAME_UID,
    SAME_VERSION,
    KubeObject,
    cached_body,
)
from aioinformer._core.objects.object_body import COMPRESSED, CompressedIdentity

__all__ = [
    "COMPRESSED_BYTES",
    "CompressedBytes",
    "CompressedObject",
    "CompressionGroup",
    "KnownValues",
    "UncompressedObject",
    "ValueItems",
    "keep_uncompressed",
    "saved_bytes",
    "store_compressed",
]

KnownValues: TypeAlias = Mapping[str, tuple[str, ...]]
"""The index values of an object by the name of the index."""

ValueItems: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
"""The same as pairs, which take less memory."""

HEADER: Final = Layout(">IHBB")
"""The size of the JSON (an object of 4 GB is beyond every server), the number of the index values,
and the lengths of uid and version."""
COMPRESSED_BYTES: Final = 32 + 33
"""Bytes of a ``CompressedBytes``, and of the header of its data."""

UUID_BYTES: Final = 16
UUID_START: Final = HEADER.size
UUID_END: Final = UUID_START + UUID_BYTES
UUID_LENGTH: Final = 36
"""The length of the text of a UUID."""
PACKED_UID: Final = 255
"""The length of a uid that stands for a UUID in 16 bytes, as those of all API servers are."""


class CompressionGroup:
    """The things that compressed objects have in common."""

    __slots__ = ("__weakref__", "codec", "is_reference", "known")

    def __init__(
        self, codec: BodyCodec, known: Sequence[ValueItems], *, is_reference: bool = False
    ) -> None:
        """Create a group without objects."""
        self.codec = codec
        """Decompresses the objects."""
        self.known = known
        """Index values by their number, for those indexes that existed."""
        self.is_reference = is_reference
        """True if the codec has a body of the same owner as its reference; otherwise the codec has
        a dictionary, or nothing."""


class CompressedBytes(Struct, frozen=True, eq=False, gc=False):
    """The compressed JSON of one object. Its length is the length of the JSON itself."""

    data: bytes
    """The header, uid, version, frame."""
    group: CompressionGroup

    @classmethod
    def of(
        cls,
        raw: bytes,
        frame: bytes,
        uid: str,
        version: str,
        group: CompressionGroup,
        values: int = 0,
    ) -> CompressedBytes:
        """Return ``raw`` compressed.

        Args:
            raw: the JSON.
            frame: its frame, which the codec of the group can decompress.
            uid: the object's uid.
            version: its resourceVersion.
            group: the things that it has in common with other objects.
            values: the number of the object's index values in the group.

        Raises:
            ValueError: uid or version is longer than 254 bytes.
        """
        identity, length = _pack_uid(uid)
        number = version.encode()
        if len(number) >= PACKED_UID:
            raise ValueError("the version is too long")
        header = HEADER.pack(len(raw), values, length, len(number))
        return cls(b"%b%b%b%b" % (header, identity, number, frame), group)

    def __len__(self) -> int:
        return int.from_bytes(self.data[:4], "big")

    def _version_place(self) -> tuple[int, int]:
        """Return the offset of the version, and that behind it."""
        _, _, uid_length, length = HEADER.unpack_from(self.data)
        start = HEADER.size + (UUID_BYTES if uid_length == PACKED_UID else uid_length)
        return start, start + length

    def compare(self, uid: str, version: str) -> int:
        """Compare with the identity of another version: the result of ``compare_identity``.

        This runs for each change of a compressed object, and so makes no text of its own uid.
        """
        data = self.data
        length, start = data[UUID_START - 2], UUID_END
        if length != PACKED_UID:
            start = UUID_START + length
            same = data[UUID_START:start].decode() == uid
        else:
            same = _has_form(uid) and data[UUID_START:start].hex() == uid.replace("-", "")
        if not same:
            return DIFFERENT
        end = start + data[UUID_START - 1]
        return SAME_VERSION if data[start:end].decode() == version else SAME_UID

    def decompress(self) -> bytes:
        """Return the JSON."""
        return self.group.codec.decompress(memoryview(self.data)[self._version_place()[1] :])

    @property
    def known_values(self) -> KnownValues:
        """The index values of the object, for those indexes that existed."""
        number: int = HEADER.unpack_from(self.data)[1]
        return dict(self.group.known[number])

    @property
    def uid(self) -> str:
        """``metadata.uid`` of the object."""
        data = self.data
        length, start = data[HEADER.size - 2], HEADER.size
        if length == PACKED_UID:
            return _unpack_uuid(data[start : start + UUID_BYTES])
        return data[start : start + length].decode()

    @property
    def version(self) -> str:
        """``metadata.resourceVersion`` of the object."""
        start, end = self._version_place()
        return self.data[start:end].decode()


def _pack_uid(uid: str) -> tuple[bytes, int]:
    """Return the bytes of a uid, and the length that the header has for it."""
    if _has_form(uid):
        digits = uid.replace("-", "")
        try:
            packed = bytes.fromhex(digits)
        except ValueError:
            packed = b""
        if len(packed) == UUID_BYTES and packed.hex() == digits:
            return packed, PACKED_UID
    text = uid.encode()
    if len(text) >= PACKED_UID:
        raise ValueError("the uid is too long")
    return text, len(text)


def _has_form(uid: str) -> bool:
    """Return True if a text has the length of a UUID, and hyphens at its places."""
    return len(uid) == UUID_LENGTH and uid[8:24:5] == "----"


def _unpack_uuid(packed: bytes) -> str:
    digits = packed.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


CompressionGroup.__name__ = CompressedIdentity.__name__  # in the error of msgspec.json.encode


class CompressedObject(KubeObject, frozen=True, eq=False, gc=False):
    """An object whose JSON is compressed. The class adds no field to ``KubeObject``."""

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

    def _compare_texts(self, uid: str, version: str) -> int:
        stored = self.stored
        if type(stored) is CompressedBytes:
            return stored.compare(uid, version)
        return super()._compare_texts(uid, version)


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
    # The class first: its methods read both forms of the field. The state last: until then it has
    # the uid for readers that found the object before.
    force_setattr(obj, "__class__", CompressedObject)
    force_setattr(obj, "stored", compressed)
    if cached_body(obj) is None:
        force_setattr(obj, "_body", COMPRESSED)


def keep_uncompressed(obj: KubeObject) -> None:
    """Mark an object as not worth compressing."""
    force_setattr(obj, "__class__", UncompressedObject)


def saved_bytes(obj: KubeObject) -> int:
    """Return the bytes that compression saves for an object; 0 unless it is compressed."""
    stored = obj.stored
    if type(stored) is not CompressedBytes:
        return 0
    return len(stored) - len(stored.data) - COMPRESSED_BYTES
