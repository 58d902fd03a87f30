"""The access to one cache file: a thread that reads and writes, and the file's problem.

The first problem ends the use of the file until the program restarts: it is logged in one line,
shown in health, and all informers go on without the file.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakSet

from msgspec import Struct, field

from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.object_key import Admit
from aioinformer._core.objects.resources import Resource
from aioinformer.cachefile.stored_scope import CacheFileProblem, ScopeWrite, StoredScope

if TYPE_CHECKING:
    from aioinformer._runtime.reflector.lister_watcher import ClusterIdentity
    from aioinformer.cachefile.database import Database

log = logging.getLogger("aioinformer.cachefile")

R = TypeVar("R")

OBJECTS_PER_READ = 256
"""Objects that are read without a turn of the event loop in between: less than a millisecond."""


class FileUse(Struct, eq=False, weakref=True):
    """The use of a cache file by one informer."""

    family: str
    """The identity of an informer of several namespaces, without the namespaces."""
    names: set[str] = field(default_factory=set[str])
    """The names of the durable listeners, which are complete before the first claim."""
    claims: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])
    """The identities and slots of the states that the informer reads and writes."""
    opened: bool = False


class FileAccess:
    """The use of a cache file by the informers of one process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problem = ""
        """The reason why the file is no longer used; empty while the file is used."""
        self.uses: WeakSet[FileUse] = WeakSet()
        """Those of the informers of this process."""
        self._lock = asyncio.Lock()
        self._database: Database | None = None
        self._executor: ThreadPoolExecutor | None = None

    def add_use(self, family: str = "") -> FileUse:
        use = FileUse(family)
        self.uses.add(use)
        return use

    async def open(
        self, use: FileUse, find_cluster: Callable[[], Awaitable[ClusterIdentity]]
    ) -> None:
        """Open the file for the first caller. Each must ``close``."""
        use.opened = True
        async with self._lock:
            if self._database is None and not self.problem:
                cluster = await find_cluster()
                if not (cluster.uid or cluster.endpoint):
                    self.fail(f"{self.path} is not used: the cluster has no identity")
                    return
                if self._executor is None:
                    self._executor = ThreadPoolExecutor(1, "aioinformer-cachefile")
                await self._try(lambda: self._open_database(cluster))

    async def close(self, use: FileUse) -> None:
        """End one use, with its claims and names. The last one closes the file."""
        self.uses.discard(use)
        if any(each.opened for each in self.uses):
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

    def claim(self, use: FileUse, identity: str, stored: Sequence[StoredScope]) -> int | None:
        """Return the slot of the state that an informer is to keep of the scope ``identity``, with
        the informer's durable listeners if the file has one; ``None`` if another informer has such
        a state.
        """
        names = use.names
        claims = [(slot, each) for each in self.uses for of, slot in each.claims if of == identity]
        if any(each.names & names for _, each in claims):
            return None
        taken = {slot for slot, _ in claims}
        others = set[str]().union(*(each.names for each in self.uses if each is not use))
        found = [each for each in stored if each.identity == identity]
        free = [each for each in found if each.slot not in taken]
        free.sort(key=lambda each: (not each.handlers & names, bool(each.handlers)))
        used = taken.union(each.slot for each in found)
        slot = next(each for each in count() if each not in used)
        if free and (free[0].handlers & names or not free[0].handlers & others):
            slot = free[0].slot
        use.claims.add((identity, slot))
        return slot

    async def read_scopes(self, identity: str, family: str) -> list[StoredScope]:
        """Return the stored states of a scope and of a family; none after a problem."""
        return await self._call(lambda database: database.read_scopes(identity, family)) or []

    async def mark_leaving(self, identity: str, slot: int) -> None:
        """Write that the durable listeners may receive the removal of these objects from now on."""
        await self._call(lambda database: database.mark_leaving(identity, slot))

    async def read_objects(
        self, scope: StoredScope, resource: Resource, admit: Admit | None = None
    ) -> AsyncIterator[list[KubeObject]]:
        """Yield the objects of a scope, or the admitted ones; end early after a problem."""
        database = self._database
        if database is None:
            return
        batches = database.read_objects(scope, resource, OBJECTS_PER_READ, admit)
        try:
            while batch := await self._try(lambda: next(batches, None)):
                yield batch
        finally:
            if self._executor is not None:
                self._executor.submit(batches.close)

    async def write(self, writes: Sequence[ScopeWrite]) -> bool:
        """Write later states. Return False if they were not written."""
        await self._call(lambda database: database.write(writes))
        return self._database is not None and not self.problem

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

    async def _call(self, work: Callable[[Database], R]) -> R | None:
        database = self._database
        return None if database is None else await self._try(lambda: work(database))

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
        return f"<FileAccess {self.path} uses={len(self.uses)} {self.problem or 'usable'}>"


class StoredParts:
    """The state of the parts of a scope that an earlier run has stored."""

    def __init__(self, access: FileAccess, stored: StoredScope, resource: Resource) -> None:
        self._access = access
        self._stored = stored
        self._resource = resource
        self.version = stored.version
        # A state with rejected objects lacks their newest versions, so that a list is needed.
        self.parts = "" if stored.reread else stored.parts

    @property
    def problem(self) -> str:
        return self._access.problem

    def read(self, admit: Admit) -> AsyncIterator[list[KubeObject]]:
        """Return the admitted objects in lists. After a problem the iterator ends early."""
        return self._access.read_objects(self._stored, self._resource, admit)
