"""The tables of a cache file that several processes share: the led scopes and the log of changes.

``change_log`` (core) describes the log. A row of the log has the changes of one scope in one
transaction, compressed as a whole: the objects of a resource have much text in common. The
functions here block, and belong to the thread of ``file_access``. A file that one process uses
alone doesn't have these tables.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.msgpack import Decoder, Encoder

from aioinformer._core.cachefile.change_log import (
    EntryKind,
    LogEntry,
    LogSequence,
    choose_read,
)
from aioinformer._core.compression.block_codec import BlockCodec
from aioinformer._core.objects.kube_object import KubeObject, ObjectKey, create_packed_object
from aioinformer._core.objects.resources import Resource

__all__ = ["LedScope", "SharedTables"]

SCHEMA = """
CREATE TABLE IF NOT EXISTS led_scopes (
    id INTEGER PRIMARY KEY,
    identity TEXT NOT NULL UNIQUE,
    term TEXT NOT NULL,
    synced INTEGER NOT NULL,
    fresh REAL NOT NULL,
    floor INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS logged_changes (
    sequence INTEGER PRIMARY KEY,
    scope INTEGER NOT NULL,
    entries BLOB NOT NULL
);
"""

PUT_LED_SCOPE = """
INSERT INTO led_scopes (identity, term, synced, fresh, floor) VALUES (?, ?, ?, ?, 0)
ON CONFLICT (identity) DO UPDATE SET term = excluded.term, synced = excluded.synced,
fresh = excluded.fresh RETURNING id
"""

PUT_ENTRIES = "INSERT INTO logged_changes (sequence, scope, entries) VALUES (?, ?, ?)"
"""Writes a row under the number of its last entry. A row without entries says that the scope was
listed, so that its whole state is to be read. The row gives the list a number, so that positions
before and after the list differ."""

READ_ENTRIES = """
SELECT entries FROM logged_changes WHERE sequence > ? AND scope = ? ORDER BY sequence
"""

ENTRIES_PER_ROW = 256
"""Entries of a row. Encoding and decoding a row holds the interpreter for less than a
millisecond."""


class StoredEntry(Struct, frozen=True, array_like=True):
    """A change of a cache, as a row contains it."""

    kind: EntryKind
    namespace: str
    name: str
    uid: str
    version: str
    raw: bytes


_ENCODER = Encoder()
_DECODER = Decoder(list[StoredEntry])


class LedScope(Struct, frozen=True):
    """A scope that a leader reads, as a follower finds it in the file."""

    number: int
    term: str
    """The leadership that wrote the scope last."""
    synced: bool
    """True if that leader's state is confirmed by the server."""
    fresh: float
    """The time of the server's last proof that the state was up to date, as far as the leader has
    written it, in seconds since the epoch; 0 before the first proof."""
    floor: int
    head: int
    """The number of the last entry of the log."""

    def must_read_state(self, position: int | None) -> bool:
        """Return True if the log doesn't lead from ``position`` to the present state."""
        return choose_read(position, self.floor, self.head) == "state"


class SharedTables:
    """The additional tables of one open file."""

    def __init__(self, connection: sqlite3.Connection, codec: BlockCodec) -> None:
        """Use the tables of ``connection``; bodies are compressed by ``codec``."""
        self._execute: Callable[..., sqlite3.Cursor] = connection.execute
        self._connection = connection
        self._codec = codec
        self._sequence = LogSequence()

    def create(self) -> None:
        """Create the tables, if the file has none."""
        self._connection.executescript(f"BEGIN;{SCHEMA}COMMIT;")

    def lead(self) -> None:
        """Continue the log as its writer."""
        self._execute("PRAGMA query_only = OFF")
        row = self._execute("SELECT max(sequence), min(sequence) FROM logged_changes").fetchone()
        self._sequence = LogSequence(row[0] or 0, row[1] or 0)

    # -- writing, in a transaction of the caller -------------------------------------------------

    def announce(self, identity: str, term: str, *, synced: bool, fresh: float) -> int:
        """Record that the leader of ``term`` reads a scope. Return the scope's number."""
        values = (identity, term, synced, fresh)
        number: int = self._execute(PUT_LED_SCOPE, values).fetchone()[0]
        return number

    def retract(self, identities: Iterable[str]) -> None:
        """Record that no leader reads these scopes."""
        rows = [(identity,) for identity in identities]
        self._connection.executemany("UPDATE led_scopes SET term = '' WHERE identity = ?", rows)

    def append(self, scope: int, entries: Sequence[LogEntry] | None) -> None:
        """Append the changes of a scope; ``None`` if followers must read the whole state."""
        if entries is None:
            (number,) = self._sequence.take(1)
            self._execute(PUT_ENTRIES, (number, scope, b""))
            self._execute("UPDATE led_scopes SET floor = ? WHERE id = ?", (number, scope))
            entries = ()
        for start in range(0, len(entries), ENTRIES_PER_ROW):
            part = entries[start : start + ENTRIES_PER_ROW]
            encoded = self._codec.compress(
                _ENCODER.encode([_store(each.kind, each.obj) for each in part])
            )
            self._execute(PUT_ENTRIES, (self._sequence.take(len(part))[-1], scope, encoded))
        if removed := self._sequence.trim():
            self._execute("DELETE FROM logged_changes WHERE sequence <= ?", (removed,))
            self._execute("UPDATE led_scopes SET floor = max(floor, ?)", (removed,))

    # -- reading, in a transaction of the caller -------------------------------------------------

    def read_scope(self, identity: str) -> LedScope | None:
        """Return a scope that a leader reads, or has read; ``None`` if there is none."""
        query = "SELECT id, term, synced, fresh, floor FROM led_scopes WHERE identity = ?"
        row = self._execute(query, (identity,)).fetchone()
        if row is None:
            return None
        head = self._execute("SELECT max(sequence) FROM logged_changes").fetchone()[0] or 0
        return LedScope(row[0], row[1], bool(row[2]), row[3], row[4], head)

    def read_entries(
        self, scope: int, position: int, resource: Resource, size: int
    ) -> Iterator[list[LogEntry]]:
        """Return an iterator over the changes behind ``position``, in lists of ``size`` at most."""
        for (encoded,) in self._execute(READ_ENTRIES, (position, scope)):
            entries = _DECODER.decode(self._codec.decompress(encoded)) if encoded else []
            for start in range(0, len(entries), size):
                yield [_load(each, resource) for each in entries[start : start + size]]

    def __repr__(self) -> str:
        return f"<SharedTables {self._sequence!r}>"


def _store(kind: EntryKind, obj: KubeObject) -> StoredEntry:
    key = obj.key
    return StoredEntry(kind, key.namespace, key.name, obj.uid, obj.resource_version, obj.raw)


def _load(entry: StoredEntry, resource: Resource) -> LogEntry:
    key = ObjectKey(entry.namespace, entry.name)
    obj = create_packed_object(key, entry.uid, entry.version, entry.raw, resource)
    return LogEntry(entry.kind, obj)
