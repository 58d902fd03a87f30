"""The references of one informer's compressed objects: one body for the objects of one owner.

The owner is the first of an object's ``ownerReferences``, found in its JSON without decoding it. A
wrong guess makes a larger frame, and nothing else: a frame can be decompressed with the reference
that its object refers to. The table itself holds its references weakly, so that a reference lives
as long as objects that need it, and the ReplicaSets of last week take no memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from weakref import WeakValueDictionary

from aioinformer._core.compression.compressed_object import CompressionGroup, ValueItems
from aioinformer._core.compression.zstd import ReferenceCodec
from aioinformer._core.objects.object_body import UID_LENGTH

__all__ = ["MIN_MEMBERS", "ReferenceTable", "find_owner"]

MIN_MEMBERS: Final = 24
"""Objects of an owner from which on they have a reference. An object saves a sixteenth of its JSON
with it, so that fewer would save less than the reference takes."""

MAX_REFERENCE: Final = 64 * 1024
"""Bytes of the largest JSON with a reference. Two thirds of larger objects are rarely shared."""

MAX_OWNERS: Final = 4096
"""Owners with fewer objects that are counted between two walks, 0.6 MB."""

FIT_PART: Final = 8
FIT_BYTES: Final = 32
"""A reference fits if it leaves no more than this part of the JSON, and so many bytes in addition.
A dictionary leaves a tenth, too."""

_OWNERS_KEY = b'"ownerReferences":[{'
_UID_KEY = b'"uid":"'
_MAX_POSITION: Final = 16 * 1024
"""The end of the bytes in which an owner is looked for: metadata stands at the beginning."""


def find_owner(raw: bytes) -> bytes:
    """Return the uid of an object's first owner; empty if there is none."""
    start = raw.find(_OWNERS_KEY, 0, _MAX_POSITION)
    if start < 0:
        return b""
    start = raw.find(_UID_KEY, start, _MAX_POSITION)
    if start < 0:
        return b""
    start += len(_UID_KEY)
    return raw[start : start + UID_LENGTH]


class ReferenceTable:
    """The references of one informer, by the uid of the owner."""

    def __init__(self, zstd: Any, known: Sequence[ValueItems]) -> None:
        """Create an empty table.

        Args:
            zstd: the module that ``find_zstd`` has found.
            known: the index values of compressed objects by their number.
        """
        self._zstd = zstd
        self._known = known
        self._groups: WeakValueDictionary[bytes, CompressionGroup] = WeakValueDictionary()
        self._members: dict[bytes, int] = {}
        """Objects that were counted, by owner."""
        self._counted = 0

    @property
    def total_bytes(self) -> int:
        """Bytes of the references."""
        # A copy: a thread may add groups meanwhile.
        groups = [reference() for reference in self._groups.valuerefs()]
        return sum(group.codec.dictionary_bytes for group in groups if group is not None)

    @property
    def expected_share(self) -> float:
        """The share of the counted objects whose owner has, or will have, a reference."""
        if not self._counted:
            return 0.0
        found = sum(count for count in self._members.values() if count >= MIN_MEMBERS)
        return found / self._counted

    def count(self, raw: bytes) -> None:
        """Count an object of the cache that wasn't counted before."""
        self._counted += 1
        if len(raw) <= MAX_REFERENCE and (owner := find_owner(raw)):
            self._members[owner] = self._members.get(owner, 0) + 1

    def count_again(self) -> None:
        """Forget the numbers, because all objects are counted again."""
        self._members.clear()
        self._counted = 0

    def rest(self) -> None:
        """Bound the number of counted owners, between two passes."""
        if len(self._members) > MAX_OWNERS:
            self.count_again()

    def find(self, raw: bytes) -> CompressionGroup | None:
        """Return the group of the objects with the same owner; make it if there are enough."""
        if len(raw) > MAX_REFERENCE or not (owner := find_owner(raw)):
            return None
        group = self._groups.get(owner)
        if group is None and self._members.get(owner, 0) >= MIN_MEMBERS:
            codec = ReferenceCodec(self._zstd, raw)
            group = CompressionGroup(codec, self._known, is_reference=True)
            self._groups[owner] = group
        return group

    def fits(self, raw: bytes, frame: bytes) -> bool:
        """Return True if a reference serves this object as well as a dictionary.

        Otherwise the owner has no reference until more objects of it are counted: the object that
        became the reference was unusual, or the objects of this owner differ.
        """
        if len(frame) <= FIT_BYTES + len(raw) // FIT_PART:
            return True
        owner = find_owner(raw)
        self._groups.pop(owner, None)
        self._members.pop(owner, None)
        return False

    def __repr__(self) -> str:
        return f"<ReferenceTable references={len(self._groups)} owners={len(self._members)}>"
