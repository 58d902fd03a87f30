"""The table of objects in a cache file: blocks of changed objects, which are appended.

``block_index`` describes blocks. The functions here block, in the thread of ``file_access``.
"""

from __future__ import annotations

import sqlite3
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from msgspec.msgpack import Decoder, Encoder

from aioinformer._core.objects.kube_object import KubeObject, ObjectKey, create_packed_object
from aioinformer._core.objects.object_key import Admit
from aioinformer._core.objects.resources import Resource
from aioinformer.cachefile.state.block_index import BlockEntry, BlockIndex, checksum_of, make_entry
from aioinformer.cachefile.state.change_record import Changes

SCHEMA = """
CREATE TABLE blocks (
    id INTEGER PRIMARY KEY,
    scope INTEGER NOT NULL,
    entries BLOB NOT NULL,
    bodies BLOB NOT NULL,
    entries_checksum INTEGER NOT NULL,
    bodies_checksum INTEGER NOT NULL
);
CREATE INDEX blocks_of_scope ON blocks (scope);
"""

READ_ENTRIES = "SELECT entries, entries_checksum FROM blocks WHERE id = ?"
REMOVE_BLOCK = "DELETE FROM blocks WHERE id = ? RETURNING id, entries_checksum, bodies_checksum"
READ_BODIES = "SELECT bodies, bodies_checksum FROM blocks WHERE id = ?"

BLOCK_ENTRIES = 256
"""Entries of a block, which are encoded or decoded in less than a millisecond."""

BLOCK_BYTES = 1 << 20
"""Bytes of bodies at which a block ends before that, so that large objects take little memory."""

LEVEL = 3
"""The level of zlib for the bodies of a block. Level 1 takes as long and leaves a sixth more of
pods, level 6 leaves a third less in twice the time."""

RECLAIMED_FOR_ONE = 2
"""Entries that are reclaimed for each written entry. One would keep the size of the file; two bring
a size above the limit down step by step, since one single step would write all objects."""

Item: TypeAlias = tuple[ObjectKey, BlockEntry, bytes]
"""The state of an object, with its body."""

Part: TypeAlias = tuple[int, list[BlockEntry], list[tuple[ObjectKey, int]]]
"""The number of a block, its entries, and the keys and places of the present objects in it."""

_ENCODER = Encoder()
_DECODER = Decoder(list[BlockEntry])


class ObjectBlocks:
    """The objects of all scopes of one open file."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._execute: Callable[..., sqlite3.Cursor] = connection.execute
        self._indexes: dict[int, BlockIndex] = {}
        self._readers = 0
        """Iterators that read objects. Meanwhile no block is reclaimed."""

    def forget(self) -> None:
        """Read the indexes again before they are used: the file has changed in another way."""
        self._indexes.clear()

    def _index(self, scope: int, digest: int | None) -> BlockIndex:
        """Return the index of a scope, which is read from the file for the first call."""
        if scope not in self._indexes:
            deque(self._read_index(scope, digest), maxlen=0)  # runs the iterator to its end
        return self._indexes[scope]

    def _read_index(self, scope: int, digest: int | None) -> Iterator[Part]:
        """Read the index of a scope. Return an iterator over all blocks, the newest first."""
        index = BlockIndex()
        query = (
            "SELECT id, entries_checksum, bodies_checksum FROM blocks WHERE scope = ? "
            "ORDER BY id DESC"
        )
        blocks = self._execute(query, (scope,)).fetchall()
        found = _wrap(sum(_digest(*block) for block in blocks))
        if digest is not None and found != digest:
            raise ValueError(f"the blocks of the state {scope} are not those that were written")
        for number, _, _ in blocks:
            entries = self._read_entries(number)
            yield number, entries, index.add_older(number, entries)
        if scope not in self._indexes:  # a write meanwhile has read the index as well
            self._indexes[scope], index.digest = index, found

    def _find_objects(self, scope: int, digest: int | None) -> Iterator[Part]:
        """Return an iterator over the blocks of a scope, and the present objects in them."""
        index = self._indexes.get(scope)
        if index is None:
            yield from self._read_index(scope, digest)
            return
        for number in tuple(index.numbers):
            entries = self._read_entries(number)
            yield number, entries, index.find(number, entries)

    def _read_entries(self, number: int) -> list[BlockEntry]:
        return _DECODER.decode(self._read_checked(READ_ENTRIES, number))

    def _read_checked(self, query: str, number: int) -> bytes:
        """Return a part of a block; raise ``ValueError`` if it is damaged."""
        part, checksum = self._execute(query, (number,)).fetchone()
        if checksum_of(part) != checksum:
            raise ValueError(f"block {number} is damaged")
        return bytes(part)

    def _read_items(
        self, number: int, entries: Sequence[BlockEntry], found: Sequence[tuple[ObjectKey, int]]
    ) -> Iterator[Item]:
        """Return an iterator over chosen objects of a block: by their keys and places."""
        if not found:
            return
        bodies = zlib.decompress(self._read_checked(READ_BODIES, number))
        ends, end = list[int](), 0
        for entry in entries:
            end += max(entry.size, 0)
            ends.append(end)
        for key, place in found:
            entry = entries[place]
            yield key, entry, bodies[ends[place] - entry.size : ends[place]]

    # -- reading -------------------------------------------------------------------------------

    def read(
        self, scope: int, resource: Resource, admit: Admit | None, digest: int | None = None
    ) -> Iterator[KubeObject]:
        """Return an iterator over the objects of a scope, which must not be changed meanwhile.

        ``digest`` is what the last ``write`` returned. It isn't used after a write of this run.
        """
        self._readers += 1
        try:
            for number, entries, found in self._find_objects(scope, digest):
                if admit is not None:
                    found = [
                        (key, place)
                        for key, place in found
                        if admit(entries[place].uid, key.namespace)
                    ]
                for key, entry, raw in self._read_items(number, entries, found):
                    yield create_packed_object(key, entry.uid, entry.version, raw, resource)
        finally:
            self._readers -= 1

    # -- writing, in a transaction of the caller -------------------------------------------------

    def write(self, scope: int, changes: Changes, digest: int | None = None) -> int:
        """Append the newest states of changed objects, and reclaim blocks if most is outdated.

        Return the digest of the blocks; ``digest`` is the one before.
        """
        index = self._index(scope, digest)
        self._append(scope, index, _changed_items(index, changes))
        if index.excess and not self._readers:
            limit = RECLAIMED_FOR_ONE * len(changes) + BLOCK_ENTRIES
            self._append(scope, index, self._reclaim(index, limit))
        return index.digest

    def remove(self, scope: int) -> None:
        self._indexes.pop(scope, None)
        self._execute("DELETE FROM blocks WHERE scope = ?", (scope,))

    def find_keys(self, scope: int, admit: Admit, digest: int | None = None) -> list[ObjectKey]:
        return [
            key
            for _, entries, found in self._find_objects(scope, digest)
            for key, place in found
            if admit(entries[place].uid, key.namespace)
        ]

    def _append(self, scope: int, index: BlockIndex, items: Iterable[Item]) -> None:
        block, size = list[Item](), 0
        for item in items:
            block.append(item)
            size += len(item[2])
            if len(block) == BLOCK_ENTRIES or size >= BLOCK_BYTES:
                self._append_block(scope, index, block)
                block, size = [], 0
        if block:
            self._append_block(scope, index, block)

    def _append_block(self, scope: int, index: BlockIndex, items: Sequence[Item]) -> None:
        entries = _ENCODER.encode([entry for _, entry, _ in items])
        bodies = zlib.compress(b"".join([raw for _, _, raw in items]), LEVEL)
        query = (
            "INSERT INTO blocks (scope, entries, bodies, entries_checksum, bodies_checksum) "
            "VALUES (?, ?, ?, ?, ?)"
        )
        checksums = checksum_of(entries), checksum_of(bodies)
        number = self._execute(query, (scope, entries, bodies, *checksums)).lastrowid
        if number is None:
            raise AssertionError("SQLite has inserted a row without a number")
        index.digest = _wrap(index.digest + _digest(number, *checksums))
        index.add(number, [(key, entry.size) for key, entry, _ in items])
        time.sleep(0)  # lets the event loop's thread have the interpreter

    def _reclaim(self, index: BlockIndex, limit: int) -> Iterator[Item]:
        """Remove the oldest blocks, at most about ``limit`` entries. Yield the items to keep."""
        while limit > 0 and index.excess:
            number = index.numbers[0]
            entries = self._read_entries(number)
            yield from self._read_items(number, entries, index.reclaim(entries))
            for removed in self._execute(REMOVE_BLOCK, (number,)).fetchall():
                index.digest = _wrap(index.digest - _digest(*removed))
            limit -= len(entries)

    def __repr__(self) -> str:
        return f"<ObjectBlocks {self._indexes!r}>"


def _digest(number: int, entries_checksum: int, bodies_checksum: int) -> int:
    """Return the part of one block in the digest of a scope, which is the sum of all."""
    return checksum_of(f"{number} {entries_checksum} {bodies_checksum}".encode())


def _wrap(digest: int) -> int:
    return digest & 0xFFFFFFFF


def _changed_items(index: BlockIndex, changes: Changes) -> Iterator[Item]:
    for key, obj in changes.items():
        if obj is not None:
            raw = obj.raw
            yield key, make_entry(key, obj, len(raw)), raw
        elif index.has(key):
            yield key, make_entry(key, None, 0), b""
