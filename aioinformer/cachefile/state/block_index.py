"""The blocks in which a cache file keeps objects, and the index of the newest states.

A write appends the changed objects as blocks, each compressed as a whole, in a third of the time of
updating rows in place. An earlier entry of an object is *outdated*. Once more than half of the
entries are, the oldest blocks are *reclaimed*: their other entries are appended again, and the
blocks are removed. So the file has at most about twice the size of its objects.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Iterable, Sequence

from msgspec import Struct

from aioinformer._core.objects.kube_object import KubeObject, ObjectKey

REMOVED = -1
"""The size of an entry without a body: the object no longer exists."""

SPARE_ENTRIES = 1024
"""Outdated entries that are always kept: a cache of a few objects isn't rewritten often."""


def checksum_of(content: bytes) -> int:
    """Return the checksum by which a cache file proves blocks and rows. A change needs a new
    ``SCHEMA_VERSION`` of the database.
    """
    return zlib.crc32(content)


class BlockEntry(Struct, frozen=True, array_like=True, gc=False):
    """The state of an object, without its body. The bodies of a block are in the entries' order."""

    namespace: str
    name: str
    uid: str
    version: str
    size: int
    """Bytes of the body; ``REMOVED`` for an object that no longer exists."""

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.namespace, self.name)


def make_entry(key: ObjectKey, obj: KubeObject | None, size: int) -> BlockEntry:
    """Return the entry of an object, or of its removal; ``size`` is the bytes of its body."""
    if obj is None:
        return BlockEntry(key.namespace, key.name, "", "", REMOVED)
    return BlockEntry(key.namespace, key.name, obj.uid, obj.resource_version, size)


class BlockIndex:
    """The blocks of one scope, in the order of their numbers, and the newest entry of each key.

    The numbers of blocks begin with 1 and grow. No key is in a block twice.
    """

    def __init__(self) -> None:
        self.numbers: deque[int] = deque()
        """The numbers of the blocks, the oldest first. To be read only."""
        self.digest = 0
        """The digest of the blocks, which ``ObjectBlocks`` counts."""
        self._newest: dict[ObjectKey, int] = {}
        """The number of the block with the newest entry of each key; negative for a removal."""
        self._namespaces: dict[str, str] = {}
        """One text for all objects of a namespace."""
        self._objects = self._entries = 0

    def add(self, number: int, entries: Iterable[tuple[ObjectKey, int]]) -> None:
        """Add a block behind all others, with the key and the size of each entry."""
        newest = self._newest
        self.numbers.append(number)
        for key, size in entries:
            # Removed first, so that the index keeps the given key, which the cache has as well, and
            # not an earlier copy.
            self._objects -= newest.pop(key, 0) > 0
            newest[key] = number if size >= 0 else -number
            self._objects += size >= 0
            self._entries += 1

    def add_older(self, number: int, entries: Sequence[BlockEntry]) -> list[tuple[ObjectKey, int]]:
        """Add a block of a file before all others. Return what ``find`` returns."""
        newest, found = self._newest, list[tuple[ObjectKey, int]]()
        self.numbers.appendleft(number)
        self._entries += len(entries)
        for place, entry in enumerate(entries):
            namespace = self._namespaces.setdefault(entry.namespace, entry.namespace)
            key = ObjectKey(namespace, entry.name)
            if key in newest:
                continue
            if entry.size < 0:
                newest[key] = -number
            else:
                newest[key] = number
                found.append((key, place))
        self._objects += len(found)
        return found

    def has(self, key: ObjectKey) -> bool:
        """Return True if the newest entry of ``key`` is that of an object."""
        return self._newest.get(key, 0) > 0

    def find(self, number: int, entries: Sequence[BlockEntry]) -> list[tuple[ObjectKey, int]]:
        """Return the keys of the objects whose newest state is in a block, with their places."""
        newest, found = self._newest, list[tuple[ObjectKey, int]]()
        for place, entry in enumerate(entries):
            key = entry.key
            if newest.get(key) == number:
                found.append((key, place))
        return found

    @property
    def excess(self) -> bool:
        """True if the oldest block is to be reclaimed, since most entries are outdated."""
        return self._entries > 2 * self._objects + SPARE_ENTRIES

    def reclaim(self, entries: Sequence[BlockEntry]) -> list[tuple[ObjectKey, int]]:
        """Remove the oldest block. Return what ``find`` returns, to be appended again."""
        number = self.numbers.popleft()
        self._entries -= len(entries)
        for entry in entries:
            # No block is older, so that the removal has no effect any more.
            if entry.size < 0 and self._newest.get(entry.key) == -number:
                del self._newest[entry.key]
        return self.find(number, entries)

    def __len__(self) -> int:
        return self._objects

    def __repr__(self) -> str:
        return (
            f"<BlockIndex objects={self._objects} entries={self._entries} "
            f"blocks={len(self.numbers)}>"
        )
