"""The tables of a cache file, in SQLite.

One transaction holds changed objects and the resourceVersion that they are the state of. So a file
is a true past state of each scope after any crash of the process. The write-ahead log (WAL) is
synchronized at its own checkpoints only (``synchronous=NORMAL``): after a loss of power the file
may be an earlier state. The functions here block, and belong to the thread of ``file_access``.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
import zlib
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.object_key import Admit
from aioinformer._core.objects.resources import Resource
from aioinformer._runtime.reflector.lister_watcher import ClusterIdentity
from aioinformer.cachefile.object_blocks import SCHEMA as BLOCKS_SCHEMA
from aioinformer.cachefile.object_blocks import ObjectBlocks
from aioinformer.cachefile.state.block_index import checksum_of
from aioinformer.cachefile.state.change_record import Changes
from aioinformer.cachefile.stored_scope import (
    CacheFileProblem,
    ScopeWrite,
    StoredScope,
)

APPLICATION_ID = 0x61696F69
"""``aioi`` in ASCII: marks a SQLite file as a cache file of this library."""

SCHEMA_VERSION = 3
"""The version of the tables, in SQLite's ``user_version``."""

LOCK_SECONDS = 2.0
"""Seconds to wait for a process that is just closing the file, as in a restart."""

PAGE_BYTES = 16384
"""Bytes of a page. SQLite's 4096 take half as much CPU again for blocks of up to a megabyte."""

LOG_PAGES = 2000
"""Pages of the write-ahead log at which they are copied into the database once: 32 MB."""

CACHE_KIB = 8000
"""KiB of pages that are kept in memory."""

SIDE_FILES = ("-journal", "-wal", "-shm")
"""What SQLite appends to the name of a file for the files that it opens beside it."""

SCHEMA = f"""
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
CREATE TABLE cluster (uid TEXT NOT NULL, endpoint TEXT NOT NULL);
CREATE TABLE scopes (
    id INTEGER PRIMARY KEY,
    identity TEXT NOT NULL,
    slot INTEGER NOT NULL,
    family TEXT NOT NULL,
    scope TEXT NOT NULL,
    version TEXT NOT NULL,
    written REAL NOT NULL,
    reread INTEGER NOT NULL,
    handlers TEXT NOT NULL,
    shards TEXT NOT NULL,
    leaving INTEGER NOT NULL,
    blocks INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    UNIQUE (identity, slot)
);
CREATE INDEX scopes_of_family ON scopes (family);
{BLOCKS_SCHEMA}"""

PUT_SCOPE = "INSERT OR REPLACE INTO scopes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

READ_SCOPE = "SELECT * FROM scopes WHERE identity = ? AND slot = ?"

READ_SCOPES = """
SELECT * FROM scopes WHERE identity = ? OR (family = ? AND family != '') ORDER BY id
"""


class Database:
    def __init__(self, path: Path, cluster: ClusterIdentity) -> None:
        """Open or create the file of ``cluster``; raise ``CacheFileProblem`` for any problem."""
        self.path = path
        self._cluster = cluster
        with self._explained():
            self._claim_files()
            self._connection = sqlite3.connect(
                path, timeout=LOCK_SECONDS, isolation_level=None, check_same_thread=False
            )
            self._blocks = ObjectBlocks(self._connection)
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise
            finally:
                self._remove_empty_journal()

    def _claim_files(self) -> None:
        """Create the file, and those that SQLite opens beside it, or check that they are this
        user's alone.

        SQLite trusts what it finds under these names. In a folder such as ``/tmp``, where a user
        can remove only the own files, no other user can take a name that is claimed. A volume with
        an ``fsGroup`` changes the mode of all files alike when a pod mounts it.
        """
        modes = {_claim(self.path).st_mode, _restrict(self.path)}
        for suffix in SIDE_FILES:
            path = Path(f"{self.path}{suffix}")
            # SQLite opens no shared memory in the exclusive mode; its file is only checked.
            if suffix == "-shm" and not os.path.lexists(path):
                continue
            if (found := _claim(path).st_mode) not in modes:
                raise CacheFileProblem(
                    f"{path} has the mode {stat.S_IMODE(found):04o}, so that other users may have "
                    "read or written it; remove it"
                )
            _restrict(path)

    def _prepare(self) -> None:
        execute = self._connection.execute
        # Exclusive before the WAL is opened: then SQLite needs no file of shared memory, and a
        # second process can't open the file.
        execute("PRAGMA locking_mode = EXCLUSIVE")
        execute(f"PRAGMA page_size = {PAGE_BYTES}")  # of a new file, before its first transaction
        execute("BEGIN IMMEDIATE")
        application = execute("PRAGMA application_id").fetchone()[0]
        version = execute("PRAGMA user_version").fetchone()[0]
        tables = execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        execute("COMMIT")
        self._claim_files()  # SQLite removes a log that it finds beside an empty file
        if not tables and not application:
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
            self._use_log()
            self._check_cluster()
            self._complete_identity()

    def _remove_empty_journal(self) -> None:
        """Remove the claimed journal: a write-ahead log takes its place."""
        with suppress(FileNotFoundError):
            if not (journal := Path(f"{self.path}-journal")).lstat().st_size:
                journal.unlink()

    def _use_log(self) -> None:
        """Use a write-ahead log. That changes the file, which must not be a foreign one."""
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
        """Store the uid if it is new: a cluster that is rebuilt at its address has another."""
        if uid := self._cluster.uid:
            self._connection.execute("UPDATE cluster SET uid = ? WHERE uid = ''", (uid,))

    # -- reading -------------------------------------------------------------------------------

    def read_scopes(self, identity: str, family: str = "") -> list[StoredScope]:
        """Return the stored states of a scope, and of a family, without their objects."""
        with self._explained():
            rows = self._connection.execute(READ_SCOPES, (identity, family)).fetchall()
            return [_check_scope(*row) for row in rows]

    def read_objects(
        self,
        scope: StoredScope,
        resource: Resource,
        size: int,
        admit: Admit | None = None,
    ) -> Generator[list[KubeObject]]:
        """Return an iterator over the objects of a scope, in lists of ``size`` objects.

        No block is reclaimed until the iterator has ended, or is closed. Raises
        ``CacheFileProblem`` if the file is corrupt.
        """
        with self._explained():
            objects = self._blocks.read(scope.number, resource, admit, scope.blocks)
            while batch := list(islice(objects, size)):
                yield batch

    # -- writing -------------------------------------------------------------------------------

    def write(self, writes: Sequence[ScopeWrite]) -> None:
        """Write later states of scopes in one transaction, or raise ``CacheFileProblem``."""
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
            query = "DELETE FROM scopes WHERE identity = ? AND slot = ? RETURNING id"
            for (number,) in execute(query, (write.identity, write.slot)).fetchall():
                self._blocks.remove(number)
            return
        handlers = msgspec.json.encode(sorted(write.handlers)).decode()
        key = (write.identity, write.slot)
        row = execute(READ_SCOPE, key).fetchone()
        if row is None:
            number = execute("SELECT coalesce(max(id), 0) + 1 FROM scopes").fetchone()[0]
            digest, written = 0, self._blocks.write(number, {}, 0)
        else:
            stored = _check_scope(*row)
            number, digest = stored.number, stored.blocks
            written = digest
        if write.outdated is not None:
            found = self._blocks.find_keys(number, write.outdated, digest)
            removed: Changes = {key: None for key in found if key not in write.changes}
            written = self._blocks.write(number, removed, digest)
        written = self._blocks.write(number, write.changes, written)
        self._put_scope(
            *(number, *key, write.family, write.scope, write.version, time.time()),
            *(int(write.reread), handlers, write.parts, int(write.leaving), written),
        )

    def _put_scope(self, *values: float | str) -> None:
        """Write the row of a scope: its values, and the checksum that covers them."""
        self._connection.execute(PUT_SCOPE, (*values, _checksum(values)))

    def mark_leaving(self, identity: str, slot: int) -> None:
        """Write that the durable listeners may receive the removal of these objects from now on."""
        with self._explained():
            row = self._connection.execute(READ_SCOPE, (identity, slot)).fetchone()
            if row is not None:
                _check_scope(*row)
                *values, _, blocks, _ = row
                self._put_scope(*values, 1, blocks)

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
        except FileNotFoundError as error:
            raise CacheFileProblem(
                f"{self.path} can't be opened: the folder {self.path.parent} does not exist; "
                "create the folder first"
            ) from error
        except OSError as error:
            reason = error.strerror or error
            raise CacheFileProblem(f"{self.path} can't be opened: {reason}") from error
        except (ValueError, TypeError, zlib.error, msgspec.MsgspecError) as error:
            raise CacheFileProblem(f"{self.path} is corrupt ({error}); remove it") from error

    def _explain(self, error: sqlite3.Error) -> str:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return (
                f"{self.path} is used by another process or factory; give each process its own file"
            )
        if name.startswith("SQLITE_FULL"):
            return f"{self.path} can't be written: the disk is full"
        if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
            return f"{self.path} is corrupt, or no cache file ({error}); remove it"
        return f"{self.path} can't be used: {error}"

    def __repr__(self) -> str:
        return f"<Database {self.path}>"


def _claim(path: Path) -> os.stat_result:
    """Create a file for this user alone, or check that it is a file of this user's, and no link."""
    # An existing file is not opened: closing a file ends all POSIX locks of the process on it, also
    # those of SQLite.
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
        os.close(os.open(path, flags, 0o600))
    except FileExistsError:
        pass
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode):
        kind = "a link" if stat.S_ISLNK(status.st_mode) else "no regular file"
        raise CacheFileProblem(f"{path} is {kind}; name a file of this program's own")
    if status.st_nlink > 1:
        raise CacheFileProblem(
            f"{path} is a link to a file that has another name, too; name another file"
        )
    if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
        raise CacheFileProblem(
            f"{path} belongs to another user (uid {status.st_uid}); name another file"
        )
    return status


def _restrict(path: Path) -> int:
    """Keep other users out of a file, and return its mode. Some file systems have one for all."""
    if path.lstat().st_mode & 0o077:
        path.chmod(0o600)
    return path.lstat().st_mode


def _checksum(values: Sequence[float | str]) -> int:
    return checksum_of(msgspec.json.encode(values))


def _check_scope(*row: Any) -> StoredScope:
    """Return the state of a row of ``READ_SCOPES``; raise ``ValueError`` if the row is damaged."""
    *values, checksum = row
    if _checksum(values) != checksum:
        raise ValueError(f"the state {values[0]} is damaged")
    number, identity, slot, _, scope, version, written, reread, handlers, parts, *rest = values
    names = frozenset(msgspec.json.decode(handlers, type=list[str]))
    return StoredScope(
        *(number, identity, slot, scope, version, written, bool(reread), names, parts),
        leaving=bool(rest[0]),
        blocks=rest[1],
    )
