"""The checkpointer: restores the states of one informer, and keeps the file behind its cache.

It keeps the newest state of each object that the pump has changed. Every second it takes these
states with the applied resourceVersions, of one moment, as a checkpoint, which the file's thread
writes in one transaction. A mark behind the events that lead to the checkpoint delays the write
until every durable listener has passed it. Meanwhile later changes are recorded apart.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Protocol, TypeAlias, runtime_checkable

from msgspec import Struct
from msgspec.structs import replace

from aioinformer._core.cache.protocols import ObjectCache
from aioinformer._core.cache.store import CacheState
from aioinformer._core.chunked_list import ChunkedList
from aioinformer._core.codec.shape import Transform
from aioinformer._core.listwatch.reflector_requests import Start
from aioinformer._core.objects.deltas import Replaced
from aioinformer._core.objects.kube_object import Deleted, Event, KubeObject
from aioinformer._core.objects.object_key import Admit
from aioinformer._core.objects.resources import Resource
from aioinformer._runtime.delivery.listener import Listener
from aioinformer._runtime.informer.feature import (
    Feature,
    InformerParts,
    MakeReflectors,
    find_feature,
)
from aioinformer._runtime.reflector.delta_queue import EntryQueue
from aioinformer._runtime.reflector.lister_watcher import ListerWatcher, NamesOrigin
from aioinformer._runtime.reflector.reflector import Reflector
from aioinformer._runtime.reporting.health import Health
from aioinformer._runtime.tasks.event_loop import ITEMS_PER_STEP, TimeSlice
from aioinformer._runtime.tasks.task_group import StrictTaskGroup
from aioinformer.cachefile.cache_file import CacheFile
from aioinformer.cachefile.durable_listeners import DurableListeners
from aioinformer.cachefile.durable_position import DurablePosition
from aioinformer.cachefile.file_access import FileUse, StoredParts, log
from aioinformer.cachefile.state.change_record import ChangeRecord, Changes
from aioinformer.cachefile.state.identity import scope_identity
from aioinformer.cachefile.stored_scope import ScopeWrite, StoredScope
from aioinformer.errors import UsageError

CHANGE_BYTES = 104
"""Bytes of a recorded change: its place in a dict. Its object is mostly the cached one."""

MARK_SECONDS = 0.02
"""Seconds after which marks are looked at for the first time: most handlers have passed them."""

SealedParts: TypeAlias = tuple[frozenset[int], frozenset[int]]
"""The parts of a scope that the cache holds at one moment, by number, and those of them whose
objects are the state of the cache's version."""


class StateParts(Protocol):
    """The parts of a scope that the cache holds, where it does not hold all objects."""

    def seal(self, version: str) -> SealedParts:
        """Return the parts of this moment, at which the cache has applied ``version``."""
        ...

    def promise(self, sealed: SealedParts, written: SealedParts | None) -> tuple[str, Admit | None]:
        """Return the parts that the file promises, as text, and the objects that it is to remove
        unless they are among the changes; ``written`` is what this run has written last.
        """
        ...


@runtime_checkable
class ReadsScopes(Protocol):
    """A feature that reads several scopes, which come and go."""

    @property
    def scope_selectors(self) -> str:
        """The selectors of a scope that has none of its own, as text."""
        ...


@runtime_checkable
class ReadsParts(Protocol):
    """A feature that reads parts of each scope, which come and go."""

    @property
    def durable_refusal(self) -> str:
        """The reason why no listener can be durable."""
        ...


class SealedScope(Struct, frozen=True):
    """The state of one scope at one moment, without its objects."""

    record: ScopeRecord
    version: str
    reread: bool
    """True if newer versions of some objects were rejected, so that a list is needed."""
    parts: SealedParts | None


class ScopeRecord(Struct, eq=False):
    """The state of one scope that this run keeps in the file."""

    identity: str
    slot: int
    scope: str = ""
    current: bool = False
    """True if the state was restored, recorded or removed in this run. It is never restored from
    the file again."""
    leaving: bool = False
    """True if the removal of the scope is about to be delivered."""
    removed: bool = False
    """True if the removal was delivered after the last seal."""
    written: float = 0.0
    """The time at which the restored state was written."""
    parts: StateParts | None = None

    def has_state(self, state: CacheState) -> bool:
        # A cache that has not held a part has no version.
        has_version = state.resource_version or self.parts is None
        return bool((state.synced or state.restored) and has_version)

    def seal(self, version: str, *, reread: bool) -> SealedScope:
        parts = None if self.parts is None else self.parts.seal(version)
        return SealedScope(self, version, reread, parts)

    def promise(self, sealed: SealedScope, written: SealedScope | None) -> tuple[str, Admit | None]:
        if self.parts is None or sealed.parts is None:
            return "", None
        return self.parts.promise(sealed.parts, None if written is None else written.parts)


class Checkpoint(Struct, frozen=True):
    """A state of the cache that is to be written once the durable listeners have handled it."""

    scopes: Mapping[str, SealedScope]
    records: Sequence[ChangeRecord]
    """The changes that lead to the state; a later record has the newer ones."""
    removed: frozenset[ScopeRecord] = frozenset()
    """Scopes that were removed. A scope may have returned since, with all of its objects among the
    changes."""

    async def split_changes(self) -> Mapping[str, Changes]:
        """Return the newest state of each changed object of each scope."""
        parts: dict[str, Changes] = {scope: {} for scope in self.scopes}
        whole = parts.get("")
        for record in self.records:
            await finish_record(record)
            pace = TimeSlice()
            for number, (key, obj) in enumerate(record.changes.items()):
                part = parts.get(key.namespace) if whole is None else whole
                if part is not None:
                    part[key] = obj
                if number % ITEMS_PER_STEP == 0:
                    await pace.maybe_yield()
        return parts


async def finish_record(record: ChangeRecord) -> None:
    pace = TimeSlice()
    while not record.step():
        await pace.maybe_yield()


class Checkpointer(Feature):
    _name: str
    _cache: ObjectCache
    _selection: dict[str, str]
    """What selects the objects or changes their stored form, besides the source and the transform.
    """
    _transform: Transform | None
    _refusal: str
    """The reason why the file can't be used; or empty."""
    _durable_refusal: str
    """The reason why no listener can be durable; or empty."""
    _family: str
    """The identity of an informer of several namespaces, without the namespaces; or empty."""
    _use: FileUse
    _durable: DurableListeners

    def __init__(self, file: CacheFile) -> None:
        """Make the checkpointer of an informer to which it is not attached yet."""
        self._file = file
        self._access = file.access()
        self._record = ChangeRecord()
        self._records: dict[str, ScopeRecord] = {}
        """The states that this informer keeps in the file, by identity."""
        self._scopes: dict[str, ScopeRecord] = {}
        """Those of the scopes that the cache holds, or is about to hold, by scope."""
        self._left: dict[str, StoredScope] = {}
        """The states of an earlier run that durable listeners know, and that were neither restored
        nor removed yet, by identity."""
        self._removal_applied = asyncio.Event()
        self._begun: frozenset[str] = frozenset()
        """The durable names for which the file has the end of their first state."""
        self._resource: Resource | None = None
        self._stored: Mapping[str, SealedScope] = {}
        """The state that was last written, by scope."""
        self._sealed: Checkpoint | None = None
        self._opening = asyncio.Lock()
        self._started = self._opened = self._frozen = self._refusal_logged = False

    # -- the informer --------------------------------------------------------------------------

    def attach(self, parts: InformerParts) -> None:
        self._name, self._cache = parts.name, parts.cache
        resource, self._transform = parts.source.resource, parts.shape.transform
        self._selection = self._select(parts)
        self._refusal = self._file.refusal(resource, parts.shape)
        divided = find_feature(parts.features, ReadsParts)
        self._durable_refusal = "" if divided is None else divided.durable_refusal
        self._family = ""
        if (several := find_feature(parts.features, ReadsScopes)) is not None:
            chosen = {**self._selection, "selectors": several.scope_selectors}
            self._family = scope_identity(resource, chosen, self._transform)
        self._use = self._access.add_use(self._family)
        self._durable = DurableListeners(self._name, self._access, self._use)

    def _select(self, parts: InformerParts) -> dict[str, str]:
        """Return what selects objects or changes their stored form, without the source."""
        selection = {
            "managed fields": str(parts.builder.managed_fields),
            "shape": str(parts.shape),
            "version": self._file.version,
        }
        for feature in parts.features:
            if taken := selection.keys() & feature.identity.keys():
                raise UsageError(
                    f"{type(feature).__name__}.identity has the name {min(taken)!r}, which another "
                    "part of the informer has in the cache file; choose another name"
                )
            selection.update(feature.identity)
        return {"shard": "None", "scopes": "one", **selection}

    def wrap_reflectors(self, make: MakeReflectors, parts: InformerParts) -> MakeReflectors:
        return lambda _: make(self._restore_and_run)

    def start(self, tasks: StrictTaskGroup) -> None:
        tasks.start(self._run(), name=f"cache file of {self._name}")

    # -- health --------------------------------------------------------------------------------

    def summarize(self, health: Health) -> Health:
        return dataclasses.replace(health, restored=self._restored, cache_problem=self._problem)

    @property
    def memory_bytes(self) -> int:
        return len(self._record) * CHANGE_BYTES

    @property
    def _problem(self) -> str:
        """The reason why the file isn't used, or doesn't advance; empty if there is none."""
        if self._refusal or self._access.problem:
            return self._refusal or self._access.problem
        if self._frozen and (closed := self._durable.closed):
            return f"{self._file.path} is held back by {', '.join(closed)}, which was closed"
        return ""

    @property
    def _restored(self) -> float | None:
        """The age in seconds of the oldest state that was restored and not confirmed yet."""
        states = self._cache.scope_states()
        ages = [
            time.time() - record.written
            for scope, record in tuple(self._scopes.items())
            if scope in states and states[scope].restored
        ]
        return max(0.0, *ages) if ages else None

    # -- durable listeners ---------------------------------------------------------------------

    def add_durable(self, listener: Listener, position: DurablePosition) -> None:
        """Write only states that ``listener`` has handled; raise ``UsageError`` if it can't."""
        name = position.name
        if self._refusal:
            raise UsageError(f"durable={name!r} needs the cache file: {self._refusal}")
        if self._durable_refusal:
            raise UsageError(
                f"durable={name!r} can't remember the events of {self._name}: "
                f"{self._durable_refusal}"
            )
        if self._started:
            raise UsageError(
                f"durable={name!r} comes too late: the informer of {self._name} runs, and the "
                "cache file moves on; add durable handlers before the factory is entered, or in "
                "the same step as informer(), without an await in between"
            )
        self._durable.add(listener, position, self.freeze)

    # -- restoring -----------------------------------------------------------------------------

    async def _restore_and_run(self, reflector: Reflector, queue: EntryQueue, scope: str) -> None:
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
        record = self._records[stored.identity]
        record.current, record.written = True, stored.written
        self._left.pop(stored.identity, None)
        self._durable.restore(scope, stored)
        self._forget_handlers(stored.handlers)
        queue.put(Replaced(objects, stored.version, restored=True))
        if stored.reread:
            return Start(not_older_than=stored.version)
        return Start(resume_from=stored.version, restored=True)

    async def open_parts(
        self, source: ListerWatcher, scope: str, parts: StateParts
    ) -> StoredParts | None:
        """Return what the file has of a scope, ``None`` for nothing, and store ``parts`` of the
        scope from now on.
        """
        self._started = True
        stored = await self._read_scope(source, scope, parts)
        if stored is None:
            return None
        self._records[stored.identity].current = True
        return StoredParts(self._access, stored, source.resource)

    async def _read_scope(
        self, source: ListerWatcher, scope: str, parts: StateParts | None = None
    ) -> StoredScope | None:
        """Open the file, and return the state of a scope to restore; ``None`` if there is none."""
        await self._wait_removed(scope)
        identity = await self._open(source)
        if not identity:
            return None
        stored = await self._access.read_scopes(identity, "")
        record = self._claim(identity, stored, scope)
        if record is None or self._access.problem:
            return None
        record.parts, self._scopes[scope] = parts, record
        # The namespace had other selectors, or its removal may have been delivered in part.
        for each in tuple(self._left.values()):
            if each.scope == scope and (each.identity != identity or each.leaving):
                await self._remove_left(each, lambda: True)
        found = [each for each in stored if (each.identity, each.slot) == (identity, record.slot)]
        if not found or record.current:
            record.current = True
            return None
        self._durable.begin(found[0].handlers if not self._family else ())
        return found[0]

    async def _wait_removed(self, scope: str) -> None:
        """Wait until the cache has applied an earlier removal of a scope."""
        while self._cache.is_removing(scope):
            self._removal_applied.clear()
            await self._removal_applied.wait()

    def _claim(
        self, identity: str, stored: Sequence[StoredScope], scope: str = ""
    ) -> ScopeRecord | None:
        """Return the record of the state of ``identity``; ``None`` if the file can't be used."""
        if identity not in self._records:
            slot = self._access.claim(self._use, identity, stored)
            if slot is None:
                self._refusal = (
                    "another informer of this program keeps the same objects in the file, for a "
                    "durable listener of the same name"
                )
                self._log_refusal()
                return None
            self._records[identity] = ScopeRecord(identity, slot, scope)
        return self._records[identity]

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
                self._resource = source.resource
                await self._access.open(self._use, source.cluster_identity)
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
        family = self._claim(self._family, stored)
        for each in stored:
            if each.identity == self._family:
                if family is not None and each.slot == family.slot:
                    self._begun = each.handlers
                    self._durable.begin(each.handlers)
            elif each.handlers & names:
                self._left[each.identity] = each

    # -- namespaces that left ------------------------------------------------------------------

    async def prepare_removal(self, scope: str) -> None:
        """Write that the removal of a scope is about to be delivered: a program that ends before it
        is handled delivers the removal once more, and then the objects if they are read again.
        """
        record = self._scopes.get(scope)
        if self._durable and record and record.current and not self._access.problem:
            record.leaving = True
            await self._access.mark_leaving(record.identity, record.slot)

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
        record = self._records.get(stored.identity)
        if self._access.problem or (record and record.current) or not is_left():
            return
        self._left.pop(stored.identity, None)
        if record is None:
            record = ScopeRecord(stored.identity, stored.slot, stored.scope)
            self._records[stored.identity] = record
        record.slot, record.current, record.removed = stored.slot, True, True
        self._use.claims.add((stored.identity, stored.slot))
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
        if kind.reason == "scope_removed" and kind.is_whole:
            self._record_removal(scope)
        if not kind.restored and not self._stopped:
            self._record.record_list(batches)

    def _record_removal(self, scope: str) -> None:
        record = self._scopes.pop(scope, None)
        if record and record.current and not self._stopped:
            record.leaving, record.removed = False, True
        self._removal_applied.set()

    def _present(self) -> Iterator[tuple[str, ScopeRecord, CacheState]]:
        """Return an iterator over the scopes of which the cache has a state."""
        states = self._cache.scope_states()
        for scope, record in self._scopes.items():
            if (state := states.get(scope)) is not None and record.has_state(state):
                yield scope, record, state

    def _seal(self) -> Checkpoint:
        """Return the state of this moment, and the changes since the last such state."""
        rejecting = {"" if "" in self._scopes else key.namespace for key in self._cache.rejected}
        scopes = {
            scope: record.seal(state.resource_version, reread=scope in rejecting)
            for scope, record, state in self._present()
        }
        removed = frozenset(each for each in self._records.values() if each.removed)
        for each in removed:
            each.removed = False
        record, self._record = self._record, ChangeRecord()
        return Checkpoint(scopes, [record], removed)

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

    async def _run(self) -> None:
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
        if self._beginning or any(each.removed for each in self._records.values()):
            return True
        changed, stored = len(self._record) > 0, self._stored
        return any(
            changed or scope not in stored or state.resource_version != stored[scope].version
            for scope, _, state in self._present()
        )

    async def _write(self, sealed: Checkpoint) -> None:
        """Write a state. If this is cancelled, ``close`` writes the state once more."""
        parts, names = await sealed.split_changes(), sorted(self._durable.names)
        writes = [self._scope_write(each, "", names) for each in sealed.removed]
        for scope, state in sealed.scopes.items():
            changes, written, record = parts[scope], self._stored.get(scope), state.record
            if changes or record in sealed.removed or state != written:
                write = self._scope_write(record, state.version, names)
                write.reread, write.changes = state.reread, changes
                write.parts, write.outdated = record.promise(state, written)
                writes.append(write)
        if beginning := self._beginning:
            writes.append(self._scope_write(self._records[self._family], "0", names))
        if not writes or await self._access.write(writes):
            self._stored = sealed.scopes
            self._begun = beginning or self._begun
        self._sealed = None

    def _scope_write(self, record: ScopeRecord, version: str, names: Sequence[str]) -> ScopeWrite:
        return ScopeWrite(
            *(record.identity, version, False, names),
            changes={},
            slot=record.slot,
            family=self._family,
            scope=record.scope,
            leaving=record.leaving or record.removed,
        )

    @property
    def _beginning(self) -> frozenset[str]:
        """The durable names, if the file is to be told that their first state is complete."""
        known = self._family in self._records and self._cache.state.synced
        names = self._durable.names
        return names if known and names != self._begun else frozenset()

    async def close(self) -> None:
        """Write the last state and leave the file. The informer's tasks have ended."""
        try:
            if self._use.opened and not self._stopped and self._durable.idle:
                self.freeze()
                self._durable.complete()
            if self._sealed is not None and not self._access.problem and self._durable.have_handled:
                await self._write(self._sealed)
        finally:
            await self._access.close(self._use)

    def __repr__(self) -> str:
        return f"<Checkpointer of {self._name} {self._record!r} {self._problem or self._access!r}>"
