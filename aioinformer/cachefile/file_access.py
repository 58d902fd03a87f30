"""The access to one cache file: a thread that reads and writes, and the file's problem.

The first problem ends the use of the file until the program restarts: it is logged in one line,
shown in health, and all informers go on without the file.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.resources import Resource
from aioinformer.cachefile.stored_scope import CacheFileProblem, ScopeWrite, StoredScope
from aioinformer.sharding.state.ranges import HashRanges

if TYPE_CHECKING:
    from aioinformer._runtime.reflector.lister_watcher import ClusterIdentity
    from aioinformer.cachefile.database import Database

log = logging.getLogger("aioinformer.cachefile")

R = TypeVar("R")

OBJECTS_PER_READ = 256
"""Objects that are read without a turn of the event loop in between: less than a millisecond."""


class FileAccess:
    """The use of a cache file by the informers of one process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problem = ""
        """The reason why the file is no longer used; empty while the file is used."""
        self.durable_names: WeakKeyDictionary[object, tuple[str, set[str]]] = WeakKeyDictionary()
        """The family and the durable listeners of each informer of this process."""
        self.claims: dict[tuple[str, int], frozenset[str]] = {}
        """The states that informers of this process read and write: identities and slots, with the
        durable listeners of the informer."""
        self._users = 0
        self._lock = asyncio.Lock()
        self._database: Database | None = None
        self._executor: ThreadPoolExecutor | None = None

    async def open(self, find_cluster: Callable[[], Awaitable[ClusterIdentity]]) -> bool:
        """Open the file for the first caller; return False if that fails. Each must ``close``."""
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
        return not self.problem

    async def close(self) -> None:
        """End the use of one caller. The last one closes the file."""
        self._users -= 1
        if self._users:
            return
        executor, self._executor = self._executor, None
        database, self._database = self._database, None
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

    def claim(self, owner: object, identity: str, stored: Sequence[StoredScope]) -> int | None:
        """Return the slot of the state that an informer is to keep of the scope ``identity``, with
        the informer's durable listeners if the file has one; ``None`` if another informer has such
        a state.
        """
        names = frozenset(self.durable_names[owner][1])
        taken = {slot: each for (of, slot), each in self.claims.items() if of == identity}
        if any(each & names for each in taken.values()):
            return None
        others = {
            name
            for each, (_, found) in self.durable_names.items()
            if each is not owner
            for name in found
        }
        free = [each for each in stored if each.identity == identity and each.slot not in taken]
        free.sort(key=lambda each: (not each.handlers & names, bool(each.handlers)))
        used = {each.slot for each in stored if each.identity == identity} | taken.keys()
        slot = next(each for each in count() if each not in used)
        if free and (free[0].handlers & names or not free[0].handlers & others):
            slot = free[0].slot
        self.claims[identity, slot] = names
        return slot

    def release(self, owner: object, slots: Mapping[str, int]) -> None:
        """End the use of an informer's states, by identity, and of its durable names."""
        for claimed in slots.items():
            self.claims.pop(claimed, None)
        self.durable_names.pop(owner, None)

    async def read_scopes(self, identity: str, family: str) -> list[StoredScope]:
        """Return the stored states of a scope and of a family; none after a problem."""
        database = self._database
        if database is None:
            return []
        return await self._try(lambda: database.read_scopes(identity, family)) or []

    async def mark_leaving(self, identity: str, slot: int) -> None:
        """Write that the durable listeners may receive the removal of these objects from now on."""
        database = self._database
        if database is not None:
            await self._try(lambda: database.mark_leaving(identity, slot))

    async def read_objects(
        self, scope: StoredScope, resource: Resource, ranges: HashRanges | None = None
    ) -> AsyncIterator[list[KubeObject]]:
        """Yield the objects of a scope, or of these shards in it; end early after a problem."""
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

    async def write(self, writes: Sequence[ScopeWrite]) -> bool:
        """Write later states. Return False if they were not written."""
        database = self._database
        if database is None or self.problem:
            return False
        await self._try(lambda: database.write(writes))
        return not self.problem

    def _open_database(self, cluster: ClusterIdentity) -> None:
        """Open the file, in the thread. A caller that was cancelled may have opened the file."""
        from aioinformer.cachefile.database import Database  # SQLite, for its users alone

        if self._database is None:
            self._database = Database(self.path, cluster)

    def _close_database(self, database: Database | None) -> None:
        """Close the file, in the thread; the caller that was opening it may have been cancelled."""
        if database is None:
            database, self._database = self._database, None
        if database is None:
            return
        try:
            database.close()
        except CacheFileProblem as problem:
            log.warning("%s", problem)

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
