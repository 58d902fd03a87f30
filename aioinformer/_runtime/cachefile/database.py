"""The tables of a cache file, in SQLite.

One transaction holds changed objects and the resourceVersion that they are the state of. So a file
is a true past state of each scope after any crash of the process: SQLite discards a transaction
that is incomplete. The write-ahead log (WAL) is synchronized at its own checkpoints only
(``synchronous=NORMAL``). After a loss of power the file may therefore be an earlier state, which is
a true past state as well.

The functions here block, and belong to the thread of ``file_access``. The objects are in blocks of
changes (``object_blocks``).
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import msgspec

from aioinformer._core.cachefile.change_log import LogEntry
from aioinformer._core.cachefile.change_record import Changes
from aioinformer._core.cachefile.identity import ClusterIdentity
from aioinformer._core.compression.block_codec import CompressionMissing, load_codec
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.resources import Resource
from aioinformer._core.sharding.ranges import HashRanges
from aioinformer._runtime.cachefile.object_blocks import SCHEMA as BLOCKS_SCHEMA
from aioinformer._runtime.cachefile.object_blocks import ObjectBlocks
from aioinformer._runtime.cachefile.shared_tables import LedScope, SharedTables
from aioinformer._runtime.cachefile.stored_scope import (
    CacheFileProblem,
    ScopeWrite,
    ShardsWrite,
    StoredScope,
    explain_open,
)

__all__ = ["Database", "LedState"]

APPLICATION_ID = 0x61696F69
"""``aioi`` in ASCII: marks a SQLite file as a cache file of this library."""

SCHEMA_VERSION = 2
"""The version of the tables, in SQLite's ``user_version``."""

LOCK_SECONDS = 2.0
"""Seconds to wait for a process that is just closing the file, as in a restart."""

PAGE_BYTES = 16384
"""Bytes of a page. A block of changes has up to a megabyte: with SQLite's pages of 4096 bytes, more
of them are written, chained and freed, which takes half as much CPU again."""

LOG_PAGES = 2000
"""Pages of the write-ahead log at which they are copied into the database: 32 MB. Pages that change
several times in between are copied once."""

CACHE_KIB = 8000
"""KiB of pages that are kept in memory."""

SCHEMA = f"""
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
CREATE TABLE cluster (uid TEXT NOT NULL, endpoint TEXT NOT NULL);
CREATE TABLE scopes (
    id INTEGER PRIMARY KEY,
    identity TEXT NOT NULL UNIQUE,
    version TEXT NOT NULL,
    written REAL NOT NULL,
    reread INTEGER NOT NULL,
    handlers TEXT NOT NULL
);
{BLOCKS_SCHEMA}"""

SHARDS_SCHEMA = """
CREATE TABLE IF NOT EXISTS scope_shards (scope INTEGER PRIMARY KEY, complete TEXT NOT NULL)
"""
"""Only files of groups have this table: the shards whose state a scope's version is."""

PUT_SCOPE = """
INSERT INTO scopes (identity, version, written, reread, handlers) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (identity) DO UPDATE SET version = excluded.version, written = excluded.written,
reread = excluded.reread, handlers = excluded.handlers RETURNING id
"""


class LedState(NamedTuple):
    """The head of what a follower reads: the state behind its position, without the objects."""

    led: LedScope
    stored: StoredScope | None
    """The stored state; ``None`` as long as the leader has written none."""
    whole: bool
    """True if the whole state follows, and False if the changes behind the position do."""


class Database:
    """One open cache file."""

    def __init__(
        self, path: Path, cluster: ClusterIdentity, *, term: str = "", follows: bool = False
    ) -> None:
        """Open the file, or create it.

        Args:
            path: the path of the file.
            cluster: the cluster whose objects are cached.
            term: the leadership of this process, if processes share the file; empty to open the
                file for this process alone.
            follows: True to open an existing file for reading, beside its leader.

        Raises:
            CacheFileProblem: the file can't be used.
        """
        self.path = path
        codec = load_codec()
        self._term = term
        self._cluster = cluster
        with self._explained():
            if not follows:
                self._check_owner()
            # A follower must not create the file that its leader is to prepare.
            self._connection = sqlite3.connect(
                f"file:{quote(str(path.absolute()))}?mode=rw",
                timeout=LOCK_SECONDS,
                isolation_level=None,
                check_same_thread=False,
                uri=True,
            )
            try:
                self._tables = SharedTables(self._connection, codec)
                self._blocks = ObjectBlocks(self._connection, codec)
                if follows:
                    self._connection.execute("PRAGMA query_only = ON")
                self._prepare(follows=follows)
                if term and not follows:
                    self._tables.create()
                    self._tables.lead()
            except BaseException:
                self._connection.close()
                raise

    def _check_owner(self) -> None:
        """Create the file for this user alone, or check that it is this user's.

        Raises:
            CacheFileProblem: the file is another user's, or no regular file.
        """
        # An existing file is not opened here: closing a file ends all POSIX locks of the process on
        # it, also those of SQLite.
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
            os.close(os.open(self.path, flags, 0o600))
        except FileExistsError:
            status = self.path.stat()
            if not stat.S_ISREG(status.st_mode):
                raise CacheFileProblem(f"{self.path} is no regular file") from None
            if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
                raise CacheFileProblem(
                    f"{self.path} belongs to another user (uid {status.st_uid}); name another file"
                ) from None
            if status.st_mode & 0o077:
                self.path.chmod(0o600)

    def _prepare(self, *, follows: bool) -> None:
        execute = self._connection.execute
        if not self._term:
            # Exclusive before the WAL is opened: then SQLite needs no file of shared memory, and a
            # second process can't open the file.
            execute("PRAGMA locking_mode = EXCLUSIVE")
        execute(f"PRAGMA page_size = {PAGE_BYTES}")  # of a new file, before its first transaction
        execute("BEGIN" if follows else "BEGIN IMMEDIATE")
        application = execute("PRAGMA application_id").fetchone()[0]
        version = execute("PRAGMA user_version").fetchone()[0]
        tables = execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        execute("COMMIT")
        if not tables and not application and not follows:
            self._use_log()
            self._create()
        elif application != APPLICATION_ID:
            raise CacheFileProblem(
                f"{self.path} is a SQLite database of another program; name another file"
            )
        elif version != SCHEMA_VERSION:
            raise CacheFileProblem(
                f"{self.path} was written by another version of aioinformer (its tables have the "
                f"version {version}, not {SCHEMA_VERSION}); remove the file"
            )
        else:
            if not follows:
                self._use_log()
            self._check_cluster()
            if not follows:
                self._complete_identity()

    def _use_log(self) -> None:
        """Use a write-ahead log.

        The log changes the file, so the caller checks first that the file is not a foreign one.
        """
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")
        self._connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")

    def _create(self) -> None:
        # One transaction: a crash between two statements must not leave half of a schema.
        self._connection.executescript(f"BEGIN;{SCHEMA}COMMIT;")
        self._put_identity()

    def _put_identity(self) -> None:
        values = (self._cluster.uid, self._cluster.endpoint)
        self._connection.execute("INSERT INTO cluster (uid, endpoint) VALUES (?, ?)", values)

    def _check_cluster(self) -> None:
        row = self._connection.execute("SELECT uid, endpoint FROM cluster").fetchone()
        if row is None:  # the process ended between the schema and this row
            self._put_identity()
        elif not ClusterIdentity(*row).matches(self._cluster):
            if not self._cluster.uid:
                raise CacheFileProblem(
                    f"{self.path} was written for another server address, and this server doesn't "
                    "say which cluster it is (the uid of kube-system can't be read)"
                )
            raise CacheFileProblem(
                f"{self.path} holds the objects of another cluster; name a file for each cluster"
            )

    def _complete_identity(self) -> None:
        """Store the cluster's uid if the file is from a time at which the uid could not be read.

        Without the uid, a cluster that is rebuilt at the same address would be the same one.
        """
        if uid := self._cluster.uid:
            self._connection.execute("UPDATE cluster SET uid = ? WHERE uid = ''", (uid,))

    # -- reading -------------------------------------------------------------------------------

    def read_scope(self, identity: str) -> StoredScope | None:
        """Return the stored state of a scope without its objects; ``None`` if there is none."""
        query = "SELECT id, version, written, reread, handlers FROM scopes WHERE identity = ?"
        with self._explained():
            row = self._connection.execute(query, (identity,)).fetchone()
        if row is None:
            return None
        names = msgspec.json.decode(row[4], type=list[str])
        with self._explained():
            shards = self._read_shards(row[0])
        return StoredScope(row[0], row[1], row[2], bool(row[3]), frozenset(names), shards)

    def _read_shards(self, scope: int) -> str:
        """Return the shards of a scope, as text; empty without a group."""
        execute = self._connection.execute
        if not execute("SELECT 1 FROM sqlite_master WHERE name = 'scope_shards'").fetchone():
            return ""
        query = "SELECT complete FROM scope_shards WHERE scope = ?"
        row = execute(query, (scope,)).fetchone()
        return row[0] if row else ""

    def read_objects(
        self,
        scope: StoredScope,
        resource: Resource,
        size: int,
        ranges: HashRanges | None = None,
    ) -> Generator[list[KubeObject]]:
        """Return an iterator over the objects of a scope, in lists of ``size`` objects.

        No block is reclaimed until the iterator has ended, or is closed.

        Args:
            scope: the scope.
            resource: the resource of the objects.
            size: the length of the lists; the last one may be shorter.
            ranges: the shards to read; ``None`` for all objects.

        Raises:
            CacheFileProblem: the file is corrupt, or its objects can't be decompressed.
        """
        with self._explained():
            objects = self._blocks.read(scope.number, resource, ranges)
            while batch := list(islice(objects, size)):
                yield batch

    # -- following a leader --------------------------------------------------------------------

    def follow(
        self, identity: str, position: int | None, resource: Resource, size: int
    ) -> Generator[LedState | list[KubeObject] | list[LogEntry]]:
        """Return an iterator over the changes of a scope behind ``position``, or its whole state.

        All of it is read in one transaction, and so belongs to one state of the leader.

        Yields:
            First the ``LedState``, if a leader has announced the scope. Then lists of objects or of
            entries.

        Raises:
            CacheFileProblem: the file can't be read.
        """
        with self._explained(), self._reading():
            led = self._tables.read_scope(identity)
            if led is None:
                return
            stored = self.read_scope(identity)
            whole = led.must_read_state(position)
            yield LedState(led, stored, whole)
            if stored is None:
                return
            if whole:
                self._blocks.forget()  # the leader has written since
                yield from self.read_objects(stored, resource, size)
                self._blocks.forget()  # a follower needs the index of this moment no more
            elif position is not None and position < led.head:
                yield from self._tables.read_entries(led.number, position, resource, size)

    @contextmanager
    def _reading(self) -> Generator[None]:
        """Read one state of the file, and release it in the end."""
        self._connection.execute("BEGIN")
        try:
            yield
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def lead(self) -> None:
        """Become the file's writer, after its leader has ended."""
        with self._explained():
            self._blocks.forget()
            self._tables.lead()
            self._complete_identity()

    def announce(self, identity: str, *, synced: bool, fresh: float) -> None:
        """Notify followers that this process reads a scope from now on."""
        with self._explained():
            self._tables.announce(identity, self._term, synced=synced, fresh=fresh)

    def retract(self, identities: Sequence[str]) -> None:
        """Notify followers that this process reads these scopes no more."""
        with self._explained():
            self._tables.retract(identities)

    # -- writing -------------------------------------------------------------------------------

    def write(self, writes: Sequence[ScopeWrite]) -> None:
        """Write later states of scopes, in one transaction.

        Raises:
            CacheFileProblem: the disk is full, for example. The file keeps the earlier states.
        """
        with self._explained():
            execute = self._connection.execute
            execute("BEGIN IMMEDIATE")
            try:
                for write in writes:
                    self._write_scope(write)
            except BaseException:
                if self._connection.in_transaction:  # SQLite may have rolled back by itself
                    execute("ROLLBACK")
                self._blocks.forget()
                raise
            execute("COMMIT")

    def _write_scope(self, write: ScopeWrite) -> None:
        execute = self._connection.execute
        if not write.version:
            query = "DELETE FROM scopes WHERE identity = ? RETURNING id"
            for (number,) in execute(query, (write.identity,)).fetchall():
                self._blocks.remove(number)
            return
        handlers = msgspec.json.encode(sorted(write.handlers)).decode()
        values = (write.identity, write.version, time.time(), write.reread, handlers)
        number = execute(PUT_SCOPE, values).fetchone()[0]
        if write.shards is not None:
            self._put_shards(number, write.shards, write.changes)
        self._blocks.write(number, write.changes)
        if self._term:
            led = self._tables.announce(
                write.identity, self._term, synced=write.synced, fresh=write.fresh
            )
            self._tables.append(led, write.entries)

    def _put_shards(self, scope: int, shards: ShardsWrite, changes: Changes) -> None:
        """Record the shards of a scope, and remove the objects of an earlier time."""
        execute = self._connection.execute
        execute(SHARDS_SCHEMA)
        values = (scope, shards.complete)
        execute("INSERT OR REPLACE INTO scope_shards (scope, complete) VALUES (?, ?)", values)
        if outdated := shards.outdated:
            found = self._blocks.find_shards(scope, outdated)
            self._blocks.write(scope, {key: None for key in found if key not in changes})

    def close(self) -> None:
        """Close the file. Another process can open it then."""
        with self._explained():
            self._connection.close()

    # -- problems ------------------------------------------------------------------------------

    @contextmanager
    def _explained(self) -> Generator[None]:
        """Raise ``CacheFileProblem`` in the place of errors of SQLite and of the system."""
        try:
            yield
        except sqlite3.Error as error:
            raise CacheFileProblem(self._explain(error)) from error
        except OSError as error:
            raise CacheFileProblem(explain_open(self.path, error)) from error
        except CompressionMissing as error:
            message = (
                f"{self.path} is compressed by zstd, which this Python lacks: install "
                "aioinformer[zstd], or remove the file"
            )
            raise CacheFileProblem(message) from error
        except (ValueError, TypeError, msgspec.MsgspecError) as error:
            raise CacheFileProblem(f"{self.path} is corrupt ({error}); remove it") from error

    def _explain(self, error: sqlite3.Error) -> str:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return (
                f"{self.path} is used by another process or factory; give each process its own "
                "file, or pass shared=True in all of them"
            )
        if name.startswith("SQLITE_FULL"):
            return f"{self.path} can't be written: the disk is full"
        if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
            return f"{self.path} is corrupt, or no cache file ({error}); remove it"
        return f"{self.path} can't be used: {error}"

    def __repr__(self) -> str:
        return f"<Database {self.path}>"
