"""The access to one cache file: a thread that reads and writes, and the file's problem.

SQLite blocks, so that each operation is a call in the file's own thread. The first problem ends the
use of the file until the program restarts: it is logged in one line, shown in health, and all
informers go on without the file.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

from msgspec import Struct

from aioinformer._core.cachefile.change_log import LogEntry
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.resources import Resource
from aioinformer._core.sharding.ranges import HashRanges
from aioinformer._runtime.cachefile.stored_scope import CacheFileProblem, ScopeWrite, StoredScope

if TYPE_CHECKING:
    from aioinformer._core.cachefile.identity import ClusterIdentity
    from aioinformer._runtime.cachefile.database import Database, LedState
    from aioinformer._runtime.cachefile.leadership import Leadership

__all__ = ["FileAccess", "FollowedState"]

log = logging.getLogger("aioinformer.cachefile")

R = TypeVar("R")

FollowedPart: TypeAlias = "LedState | list[KubeObject] | list[LogEntry]"
"""A part of what ``Database.follow`` yields: first a ``LedState``, then lists."""

OBJECTS_PER_READ = 256
"""Objects that are read without a turn of the event loop in between: less than a millisecond."""


class FollowedState(Struct, frozen=True):
    """The state of one scope at one moment, as a follower has read it."""

    state: LedState
    objects: Sequence[KubeObject]
    """The whole state, if ``state`` says so."""
    entries: Sequence[LogEntry]
    """The changes since the follower's position, otherwise."""


class FileAccess:
    """The use of a cache file by the informers of one process."""

    def __init__(self, path: Path, *, shared: bool = False) -> None:
        """Use the file at ``path``; ``open`` opens the file.

        Args:
            path: the path of the file.
            shared: True if several processes use the file.
        """
        self.path = path
        self.leadership: Leadership | None = _make_leadership(path) if shared else None
        """The leadership of this process; ``None`` if the file isn't shared."""
        self._opened_as_leader = self._prepared_to_lead = False
        self._reading = asyncio.Lock()
        self.problem = ""
        """The reason why the file is no longer used; empty while the file is used."""
        self.identities: set[str] = set()
        """The scopes that informers of this process read and write."""
        self._users = 0
        self._lock = asyncio.Lock()
        self._database: Database | None = None
        self._executor: ThreadPoolExecutor | None = None

    async def open(self, find_cluster: Callable[[], Awaitable[ClusterIdentity]]) -> bool:
        """Open the file for the first caller. Each caller must call ``close`` in the end.

        Args:
            find_cluster: returns the identity of the cluster.

        Returns:
            False if the file can't be used.
        """
        self._users += 1
        async with self._lock:
            if self._database is None and not self.problem:
                cluster = await find_cluster()
                if not (cluster.uid or cluster.endpoint):
                    self.fail(f"{self.path} is not used: the cluster has no identity")
                    return False
                if self._executor is None:
                    self._executor = ThreadPoolExecutor(1, "aioinformer-cachefile")
                await self._try(lambda: self._open_database(cluster))
            if self.leadership is not None and self._database is not None:
                self._prepared_to_lead = self._prepared_to_lead or self._opened_as_leader
                self.leadership.start()
        return not self.problem

    @property
    def leads(self) -> bool:
        """True if this process writes the file: it is the leader, or the file isn't shared."""
        return self.leadership is None or self.leadership.leads

    async def close(self) -> None:
        """End the use of one caller. The last one closes the file."""
        self._users -= 1
        if self._users:
            return
        executor, self._executor = self._executor, None
        database, self._database = self._database, None
        self._prepared_to_lead = False
        if executor is None:
            return
        # In the thread, after all writes; not awaited by a caller that is cancelled again.
        closing = executor.submit(self._close_database, database)
        executor.shutdown(wait=False)
        await asyncio.shield(asyncio.wrap_future(closing))

    def fail(self, problem: str) -> None:
        """Use the file no more, and log the reason once."""
        if not self.problem:
            self.problem = problem
            log.warning("%s; the informers go on without a cache file", problem)
            if self.leadership is not None and self._executor is not None:
                self._executor.submit(self.leadership.resign)

    async def read_scope(self, identity: str) -> StoredScope | None:
        """Return the stored state of a scope; ``None`` if there is none that can be read."""
        database = self._database
        if database is None:
            return None
        return await self._try(lambda: database.read_scope(identity))

    async def read_objects(
        self, scope: StoredScope, resource: Resource, ranges: HashRanges | None = None
    ) -> AsyncIterator[list[KubeObject]]:
        """Return the objects of a scope in lists. After a problem the iterator ends early.

        Args:
            scope: the scope.
            resource: the resource of the objects.
            ranges: the shards to read; ``None`` for all objects.
        """
        database = self._database
        if database is None:
            return
        batches = database.read_objects(scope, resource, OBJECTS_PER_READ, ranges)
        try:
            while batch := await self._try(lambda: next(batches, None)):
                yield batch
        finally:
            if self._executor is not None:
                self._executor.submit(batches.close)

    async def follow(
        self, identity: str, position: int | None, resource: Resource
    ) -> FollowedState | None:
        """Return what the leader has written of a scope behind ``position``.

        ``None`` if no leader has announced the scope, or the file can't be read.
        """
        database = self._database
        if database is None:
            return None
        # One connection has one transaction: readings of two scopes must not share it, since the
        # second one would not see what was written after the first one began.
        async with self._reading:
            parts = database.follow(identity, position, resource, OBJECTS_PER_READ)
            found, finished = list[FollowedPart](), False
            try:
                while not finished:
                    taken = await self._try(lambda: _take(parts))
                    if taken is None:
                        return None
                    found += taken[0]
                    finished = taken[1]
            finally:
                if not finished and self._executor is not None:
                    self._executor.submit(parts.close)
        return _join(found)

    async def announce(self, identity: str, *, synced: bool, fresh: float) -> None:
        """Notify followers that this process, which leads, reads a scope from now on."""
        database = self._database
        if database is None:
            return
        async with self._lock:
            if not self._prepared_to_lead:
                self._prepared_to_lead = True
                await self._try(database.lead)
        await self._try(lambda: database.announce(identity, synced=synced, fresh=fresh))

    async def retract(self, identities: Sequence[str]) -> None:
        """Notify followers that this process, which leads, reads these scopes no more."""
        database = self._database
        if database is not None:
            await self._try(lambda: database.retract(identities))

    async def write(self, writes: Sequence[ScopeWrite]) -> bool:
        """Write later states. Return False if they were not written."""
        database = self._database
        if database is None or self.problem:
            return False
        await self._try(lambda: database.write(writes))
        return not self.problem

    def _open_database(self, cluster: ClusterIdentity) -> None:
        """Open the file, in the thread. A caller that was cancelled may have opened the file."""
        if self._database is None:
            self._database, self._opened_as_leader = _open(self.path, cluster, self.leadership)

    def _close_database(self, database: Database | None) -> None:
        """Close the file, in the thread.

        Args:
            database: the open file; ``None`` if the caller that was opening it was cancelled.
        """
        if database is None:
            database, self._database = self._database, None
        if database is not None:
            _close(database)
        if self.leadership is not None:  # after the last write
            self.leadership.resign()

    async def _try(self, work: Callable[[], R]) -> R | None:
        """Run ``work`` in the thread. Return ``None`` after a problem, which ends the use."""
        if self._executor is None or self.problem:
            return None
        try:
            return await asyncio.wrap_future(self._executor.submit(work))
        except CacheFileProblem as problem:
            self.fail(str(problem))
            return None

    def __repr__(self) -> str:
        return f"<FileAccess {self.path} users={self._users} {self.problem or 'usable'}>"


def _take(parts: Iterator[FollowedPart]) -> tuple[list[FollowedPart], bool]:
    """Return the next parts with one list of objects at most, and True if no part is left."""
    taken: list[FollowedPart] = []
    for part in parts:
        taken.append(part)
        if not isinstance(part, tuple) and len(part) == OBJECTS_PER_READ:
            return taken, False
    return taken, True


def _join(parts: Sequence[FollowedPart]) -> FollowedState | None:
    """Return what the parts contain; ``None`` if there is none."""
    if not parts:
        return None
    state = cast("LedState", parts[0])
    items = [item for part in parts[1:] for item in part]
    if state.whole:
        return FollowedState(state, cast("list[KubeObject]", items), ())
    return FollowedState(state, (), cast("list[LogEntry]", items))


def _make_leadership(path: Path) -> Leadership:
    from aioinformer._runtime.cachefile.leadership import Leadership  # SQLite, as below

    return Leadership(path)


def _open(
    path: Path, cluster: ClusterIdentity, leadership: Leadership | None
) -> tuple[Database, bool]:
    """Return the open file, and True if this process writes it."""
    from aioinformer._runtime.cachefile.database import Database  # SQLite, for its users alone

    if leadership is None:
        return Database(path, cluster), True
    try:
        leads = leadership.campaign()
        database = Database(path, cluster, term=leadership.term, follows=not leads)
        if leads:
            leadership.publish()
    except BaseException:
        leadership.resign()
        raise
    return database, leads


def _close(database: Database) -> None:
    try:
        database.close()
    except CacheFileProblem as problem:
        log.warning("%s", problem)
