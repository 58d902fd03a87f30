"""The checkpointer: restores the states of one informer, and keeps the file behind its cache.

It keeps the newest state of each object that the pump has changed. Every second it takes these
states with the applied resourceVersions, of one moment, as a checkpoint, which the file's thread
writes in one transaction. A mark behind the events that lead to the checkpoint delays the write
until every durable listener has passed it. Meanwhile later changes are recorded apart.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from aioinformer._core.cache.protocols import ObjectCache
from aioinformer._core.chunked_list import ChunkedList
from aioinformer._core.codec.shape import Transform
from aioinformer._core.listwatch.reflector_requests import Start
from aioinformer._core.objects.deltas import Replaced
from aioinformer._core.objects.kube_object import Deleted, Event, KubeObject, ObjectKey
from aioinformer._core.objects.resources import Resource
from aioinformer._runtime.delivery.listener import Listener
from aioinformer._runtime.reflector.delta_queue import EntryQueue
from aioinformer._runtime.reflector.lister_watcher import ListerWatcher, NamesOrigin
from aioinformer._runtime.reflector.reflector import Reflector
from aioinformer.cachefile.cache_file import CacheFile
from aioinformer.cachefile.checkpoint import Checkpoint, finish_record, split_changes
from aioinformer.cachefile.durable_listeners import DurableListeners
from aioinformer.cachefile.durable_position import DurablePosition
from aioinformer.cachefile.file_access import log
from aioinformer.cachefile.state.change_record import ChangeRecord
from aioinformer.cachefile.state.identity import scope_identity
from aioinformer.cachefile.state.recorded_shards import RecordedShards
from aioinformer.cachefile.stored_scope import ScopeWrite, ShardsWrite, StoredScope
from aioinformer.cachefile.stored_shards import StoredShards, shards_to_write
from aioinformer.errors import UsageError
from aioinformer.sharding.state.assignment import ShardAssignment

MARK_SECONDS = 0.02
"""Seconds after which marks are looked at for the first time: most handlers have passed them."""


class Checkpointer:
    def __init__(
        self,
        name: str,
        file: CacheFile,
        cache: ObjectCache,
        *,
        selection: Mapping[str, str],
        transform: Transform | None,
        refusal: str,
        group: ShardAssignment | None = None,
        family: str = "",
    ) -> None:
        """Make the checkpointer of an informer that has not started.

        ``selection`` is what selects the objects or changes their stored form, besides the source
        and ``transform``; ``refusal`` is the reason why the file can't be used, or empty;
        ``family`` is the identity of an informer of several namespaces, without the namespaces.
        """
        self._name = name
        self._file = file
        self._access = file.access()
        self._cache = cache
        self._selection = selection
        self._transform = transform
        self._refusal = refusal
        self._group = group
        self._family = family
        self._durable = DurableListeners(name, self._access, family)
        self._shards: dict[str, RecordedShards] = {}
        """The shards of each scope of a group's informer."""
        self._stored_shards: dict[str, StoredShards] = {}
        self._record = ChangeRecord()
        self._identities: dict[str, str] = {}
        """The identities of the scopes that the cache holds, or is about to hold."""
        self._slots: dict[str, int] = {}
        """The slots of this informer's states, by identity."""
        self._left: dict[str, StoredScope] = {}
        """The states of an earlier run that durable listeners know, and that were neither restored
        nor removed yet, by identity."""
        self._current: set[str] = set()
        """The identities whose state was restored, recorded or removed in this run. Such a state is
        never restored from the file again."""
        self._leaving: set[str] = set()
        """The identities whose removal is about to be delivered."""
        self._removed: set[str] = set()
        """The identities whose removal was delivered after the last seal."""
        self._removal_applied = asyncio.Event()
        self._begun: frozenset[str] = frozenset()
        """The durable names for which the file has the end of their first state."""
        self._resource: Resource | None = None
        self._written: dict[str, float] = {}
        """The times at which the restored states were written, by scope."""
        self._stored: Checkpoint | None = None
        """The state that was last written; its changes don't count."""
        self._sealed: Checkpoint | None = None
        self._opening = asyncio.Lock()
        self._uses = 0
        """The number of calls of the file's ``open``."""
        self._started = self._opened = self._frozen = self._refusal_logged = False

    # -- health --------------------------------------------------------------------------------

    @property
    def problem(self) -> str:
        """The reason why the file isn't used, or doesn't advance; empty if there is none."""
        if self._refusal or self._access.problem:
            return self._refusal or self._access.problem
        if self._frozen and (closed := self._durable.closed):
            return f"{self._file.path} is held back by {', '.join(closed)}, which was closed"
        return ""

    @property
    def restored(self) -> float | None:
        """The age in seconds of the oldest state that was restored and not confirmed yet."""
        states = self._cache.scope_states()
        ages = [
            time.time() - written
            for scope, written in self._written.items()
            if scope in states and states[scope].restored
        ]
        return max(0.0, *ages) if ages else None

    # -- durable listeners ---------------------------------------------------------------------

    def add_durable(self, listener: Listener, position: DurablePosition) -> None:
        """Write only states that ``listener`` has handled; raise ``UsageError`` if it can't."""
        name = position.name
        if self._refusal:
            raise UsageError(f"durable={name!r} needs the cache file: {self._refusal}")
        if self._group is not None:
            raise UsageError(
                f"durable={name!r} can't remember the events of {self._name}: the replica that "
                "holds a shard handles the shard's events, and the files of the other replicas "
                "don't have them; give each replica a fixed shard=Shard(index, count), or use a "
                "Controller"
            )
        if self._started:
            raise UsageError(
                f"durable={name!r} comes too late: the informer of {self._name} runs, and the "
                "cache file moves on; add durable handlers before the factory is entered, or in "
                "the same step as informer(), without an await in between"
            )
        self._durable.add(listener, position, self.freeze)

    # -- restoring -----------------------------------------------------------------------------

    async def restore_and_run(self, reflector: Reflector, queue: EntryQueue, scope: str) -> None:
        """Run a reflector, and continue the stored state of its scope if there is one."""
        self._started = True
        await reflector.run(await self._restore(reflector.source, queue, scope))

    async def _restore(self, source: ListerWatcher, queue: EntryQueue, scope: str) -> Start:
        """Queue the stored state of a scope, if there is one; return what to read first."""
        stored = await self._read_scope(source, scope)
        if stored is None:
            return Start()
        objects: list[KubeObject] = []
        async for batch in self._access.read_objects(stored, source.resource):
            objects += batch
        if self._access.problem:
            return Start()
        self._current.add(stored.identity)
        self._left.pop(stored.identity, None)
        self._durable.restore(scope, stored)
        self._forget_handlers(stored.handlers)
        self._written[scope] = stored.written
        queue.put(Replaced(objects, stored.version, restored=True))
        if stored.reread:
            return Start(not_older_than=stored.version)
        return Start(resume_from=stored.version, restored=True)

    async def open_shards(self, source: ListerWatcher, scope: str) -> StoredShards | None:
        """Return the shards that the file has of one scope of a group; ``None`` for none."""
        group = self._group
        if group is None:
            raise AssertionError("an informer without a group has no shards that come and go")
        self._started = True
        await self._wait_removed(scope)
        self._shards[scope] = RecordedShards(group.count)
        stored = await self._read_scope(source, scope)
        if stored is None:
            return None
        self._current.add(stored.identity)
        self._stored_shards[scope] = StoredShards(self._access, stored, source.resource, group)
        return self._stored_shards[scope]

    async def _read_scope(self, source: ListerWatcher, scope: str) -> StoredScope | None:
        """Open the file, and return the state of a scope to restore; ``None`` if there is none."""
        await self._wait_removed(scope)
        identity = await self._open(source)
        if not identity:
            return None
        stored = await self._access.read_scopes(identity, "")
        slot = self._claim(identity, stored)
        if slot is None or self._access.problem:
            return None
        self._identities[scope] = identity
        # The namespace had other selectors, or its removal may have been delivered in part.
        for each in tuple(self._left.values()):
            if each.scope == scope and (each.identity != identity or each.leaving):
                await self._remove_left(each, lambda: True)
        found = [each for each in stored if each.identity == identity and each.slot == slot]
        if not found or identity in self._current:
            self._current.add(identity)
            return None
        self._durable.begin(found[0].handlers if not self._family else ())
        return found[0]

    async def _wait_removed(self, scope: str) -> None:
        """Wait until the cache has applied an earlier removal of a scope."""
        while self._cache.is_removing(scope):
            self._removal_applied.clear()
            await self._removal_applied.wait()

    def _claim(self, identity: str, stored: Sequence[StoredScope]) -> int | None:
        """Return the slot of the state of ``identity``; ``None`` if the file can't be used."""
        if identity not in self._slots:
            slot = self._access.claim(self._durable, identity, stored)
            if slot is None:
                self._refusal = (
                    "another informer of this program keeps the same objects in the file, for a "
                    "durable listener of the same name"
                )
                self._log_refusal()
                return None
            self._slots[identity] = slot
        return self._slots[identity]

    async def _open(self, source: ListerWatcher) -> str:
        """Return the identity of a scope that can be restored and recorded; else an empty text."""
        if self._refusal:
            self._log_refusal()
            return ""
        if not isinstance(source, NamesOrigin):
            self._refusal = f"{source!r} says neither its cluster nor its selection"
            self._log_refusal()
            return ""
        async with self._opening:  # the scopes of an informer are restored at the same time
            if not self._opened:  # the first caller may have been cancelled in between
                self._uses, self._resource = self._uses + 1, source.resource
                await self._access.open(source.cluster_identity)
                if self._family and self._durable:
                    await self._open_family()
                self._opened = True
        if self._access.problem or self._refusal:
            return ""
        return scope_identity(
            source.resource, {**self._selection, **source.selection}, self._transform
        )

    async def _open_family(self) -> None:
        """Read which states of an earlier run the durable listeners know."""
        stored, names = await self._access.read_scopes("", self._family), self._durable.names
        slot = self._claim(self._family, stored)
        for each in stored:
            if each.identity == self._family:
                if each.slot == slot:
                    self._begun = each.handlers
                    self._durable.begin(each.handlers)
            elif each.handlers & names:
                self._left[each.identity] = each

    # -- namespaces that left ------------------------------------------------------------------

    async def prepare_removal(self, scope: str) -> None:
        """Write that the removal of a scope is about to be delivered: a program that ends before it
        is handled delivers the removal once more, and then the objects if they are read again.
        """
        identity = self._identities.get(scope, "")
        if self._durable and identity in self._current and not self._access.problem:
            self._leaving.add(identity)
            await self._access.mark_leaving(identity, self._slots[identity])

    async def _remove_left(self, stored: StoredScope, is_left: Callable[[], bool]) -> None:
        """Deliver the removal of a state of an earlier run, whose objects the cache never had, to
        the durable listeners that know it.
        """
        if self._resource is None:
            return
        events = ChunkedList[Event]()
        async for batch in self._access.read_objects(stored, self._resource):
            events.extend([Deleted(obj, "scope_removed") for obj in batch])
        await self._access.mark_leaving(stored.identity, stored.slot)
        if self._access.problem or stored.identity in self._current or not is_left():
            return
        self._left.pop(stored.identity, None)
        self._current.add(stored.identity)
        self._slots[stored.identity] = stored.slot
        self._access.claims[stored.identity, stored.slot] = self._durable.names
        self._removed.add(stored.identity)
        self._durable.put_removal(stored, events.chunks)

    async def _remove_all_left(self) -> None:
        for each in tuple(self._left.values()):
            if self._cache.lacks(each.scope):
                await self._remove_left(each, partial(self._cache.lacks, each.scope))

    def _log_refusal(self) -> None:
        if not self._refusal_logged:
            self._refusal_logged = True
            log.warning("%s: %s; going on without the cache file", self._name, self._refusal)

    def _forget_handlers(self, stored: frozenset[str]) -> None:
        for name in sorted(stored - self._durable.names):
            log.warning(
                "%s: no listener is called durable=%r any more; %s forgets its position",
                *(self._name, name, self._file.path),
            )

    # -- recording -----------------------------------------------------------------------------

    @property
    def _stopped(self) -> bool:
        return bool(self._refusal or self._access.problem or self._frozen)

    def record(self, events: Sequence[Event]) -> None:
        if not self._stopped:
            self._record.record(events)

    def record_list(self, batches: Sequence[Sequence[Event]], kind: Replaced) -> None:
        """Record the changes of a list; those of a restored state are in the file already."""
        scope = kind.scope or ""
        if scope in self._shards:
            self._shards[scope].apply(kind)
        if kind.reason == "scope_removed" and kind.is_whole:
            self._record_removal(scope)
        if not kind.restored and not self._stopped:
            self._record.record_list(batches)

    def _record_removal(self, scope: str) -> None:
        identity = self._identities.pop(scope, "")
        self._stored_shards.pop(scope, None)
        if identity in self._current and not self._stopped:
            self._leaving.discard(identity)
            self._removed.add(identity)
        self._removal_applied.set()

    def _seal(self) -> Checkpoint:
        """Return the state of this moment, and the changes since the last such state."""
        states = self._cache.scope_states()
        versions = {
            scope: states[scope].resource_version
            for scope in self._recorded_scopes()
            if (states[scope].synced or states[scope].restored)
            # A member that has not held a shard has no version.
            and (states[scope].resource_version or scope not in self._shards)
        }
        shards = {
            scope: self._shards[scope].seal(version)
            for scope, version in versions.items()
            if scope in self._shards
        }
        rejecting = frozenset(map(self._scope_of, self._cache.rejected))
        record, self._record = self._record, ChangeRecord()
        removed, self._removed = frozenset(self._removed), set()
        identities = {scope: self._identities[scope] for scope in versions}
        return Checkpoint(versions, rejecting, [record], shards, removed, identities)

    def _recorded_scopes(self) -> list[str]:
        states = self._cache.scope_states()
        return [scope for scope in self._identities if scope in states]

    def _scope_of(self, key: ObjectKey) -> str:
        return "" if "" in self._identities else key.namespace

    def freeze(self) -> None:
        """Take the last state that all durable listeners will handle, since one of them closes."""
        if self._stopped:
            return
        later, earlier = self._seal(), self._sealed
        if earlier is not None:
            records, removed = [*earlier.records, *later.records], earlier.removed | later.removed
            later = replace(later, records=records, removed=removed)
        self._sealed = later
        self._frozen = True
        self._durable.mark()

    # -- writing -------------------------------------------------------------------------------

    async def run(self) -> None:
        """Write the states, every ``interval`` seconds, until cancelled."""
        if self._refusal:
            self._log_refusal()
        while not (self._stopped and self._sealed is None):
            await asyncio.sleep(self._file.interval)
            await self._advance()
        self._record.clear()

    async def _advance(self) -> None:
        """Seal the present state, and write the sealed one if it was handled."""
        await finish_record(self._record)
        if self._left and not self._stopped:
            await self._remove_all_left()
        if self._sealed is None and not self._stopped and self._has_unwritten_state:
            self._sealed = self._seal()
            if self._durable:
                self._durable.mark()
                await asyncio.sleep(min(MARK_SECONDS, self._file.interval))
        if self._sealed is not None and self._durable.have_handled:
            await self._write(self._sealed)

    @property
    def _has_unwritten_state(self) -> bool:
        """True if the cache shows another state than the last written one."""
        states, scopes, stored = self._cache.scope_states(), self._recorded_scopes(), self._stored
        if self._removed or self._beginning:
            return True
        if len(self._record) or stored is None:
            return any(states[scope].synced or states[scope].restored for scope in scopes)
        return any(states[scope].resource_version != stored.versions.get(scope) for scope in scopes)

    async def _write(self, sealed: Checkpoint) -> None:
        """Write a state. If this is cancelled, ``close`` writes the state once more."""
        parts = await split_changes(sealed, self._scope_of)
        names, leaving = sorted(self._durable.names), self._leaving | self._removed
        writes = [self._scope_write(each, "", names) for each in sealed.removed]
        writes += [
            replace(
                self._scope_write(identity, version, names),
                reread=scope in sealed.rejecting,
                changes=changes,
                shards=self._shards_to_write(scope, sealed),
                scope=scope,
                leaving=identity in leaving,
            )
            for scope, version in sealed.versions.items()
            if (identity := sealed.identities[scope])
            and (
                (changes := parts[scope])
                or identity in sealed.removed
                or sealed.differs(scope, self._stored)
            )
        ]
        if beginning := self._beginning:
            writes.append(self._scope_write(self._family, "0", names))
        if not writes or await self._access.write(writes):
            self._stored = replace(sealed, records=())
            self._begun = beginning or self._begun
        self._sealed = None

    def _scope_write(self, identity: str, version: str, names: Sequence[str]) -> ScopeWrite:
        slot = self._slots[identity]
        return ScopeWrite(identity, version, False, names, {}, slot=slot, family=self._family)

    @property
    def _beginning(self) -> frozenset[str]:
        """The durable names, if the file is to be told that their first state is complete."""
        known = self._family in self._slots and self._cache.state.synced
        names = self._durable.names
        return names if known and names != self._begun else frozenset()

    def _shards_to_write(self, scope: str, sealed: Checkpoint) -> ShardsWrite | None:
        group, stored = self._group, self._stored_shards.get(scope)
        return (
            None if group is None else shards_to_write(scope, self._stored, sealed, stored, group)
        )

    async def close(self) -> None:
        """Write the last state and leave the file. The informer's tasks have ended."""
        if not self._uses:
            self._access.release(self._durable, self._slots)
            return
        try:
            if not self._stopped and self._durable.idle:
                self.freeze()
                self._durable.complete()
            if self._sealed is not None and not self._access.problem and self._durable.have_handled:
                await self._write(self._sealed)
        finally:
            self._access.release(self._durable, self._slots)
            for _ in range(self._uses):
                await self._access.close()

    def __repr__(self) -> str:
        return f"<Checkpointer of {self._name} {self._record!r} {self.problem or self._access!r}>"
