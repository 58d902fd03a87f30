"""The checkpointer: restores the states of one informer, and keeps the file behind its cache.

It keeps the newest state of each object that the pump has changed. Every second it takes these
states with the applied resourceVersions, of one moment, as a checkpoint, which the file's thread
writes in one transaction. A mark behind the events that lead to the checkpoint delays the write
until every durable listener has passed it. Meanwhile later changes are recorded apart.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from aioinformer._core.cache.protocols import ObjectCache
from aioinformer._core.cachefile.change_record import ChangeRecord
from aioinformer._core.cachefile.identity import scope_identity
from aioinformer._core.cachefile.recorded_shards import RecordedShards
from aioinformer._core.codec.shape import Transform
from aioinformer._core.objects.deltas import Replaced
from aioinformer._core.objects.kube_object import Event, KubeObject, ObjectKey
from aioinformer._core.sharding.assignment import ShardAssignment
from aioinformer._runtime.cachefile.cache_file import CacheFile
from aioinformer._runtime.cachefile.checkpoint import Checkpoint, finish_record, split_changes
from aioinformer._runtime.cachefile.file_access import log
from aioinformer._runtime.cachefile.stored_scope import ScopeWrite, ShardsWrite, StoredScope
from aioinformer._runtime.cachefile.stored_shards import StoredShards, shards_to_write
from aioinformer._runtime.delivery.durable_position import DurablePosition
from aioinformer._runtime.delivery.listener import Listener
from aioinformer._runtime.reflector.delta_queue import InformerQueue
from aioinformer._runtime.reflector.lister_watcher import ListerWatcher, SupportsCacheFile
from aioinformer._runtime.reflector.reflector import Reflector
from aioinformer.errors import UsageError

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
    ) -> None:
        """Make the checkpointer of an informer that has not started.

        ``selection`` is what selects the objects or changes their stored form, besides the source
        and ``transform``; ``refusal`` is the reason why the file can't be used, or empty.
        """
        self.positioned: list[Listener] = []
        self._name = name
        self._file = file
        self._access = file.access()
        self._cache = cache
        self._selection = {**selection, "version": file.version}
        self._transform = transform
        self._refusal = refusal
        self._group = group
        self._shards: dict[str, RecordedShards] = {}
        """The shards of each scope of a group's informer."""
        self._stored_shards: dict[str, StoredShards] = {}
        self._record = ChangeRecord()
        self._identities: dict[str, str] = {}
        self._written: dict[str, float] = {}
        """The times at which the restored states were written, by scope."""
        self._stored: Checkpoint | None = None
        """The state that was last written; its changes don't count."""
        self._sealed: Checkpoint | None = None
        self._opening = asyncio.Lock()
        self._started = self._opened = self._frozen = self._refusal_logged = False

    # -- health --------------------------------------------------------------------------------

    @property
    def problem(self) -> str:
        """The reason why the file isn't used, or doesn't advance; empty if there is none."""
        if self._refusal or self._access.problem:
            return self._refusal or self._access.problem
        closed = [each.name for each in self.positioned if each.closed]
        if self._frozen and closed:
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
        if any(each.position and each.position.name == name for each in self.positioned):
            raise UsageError(f"durable={name!r} is the name of another listener of {self._name}")
        listener.position, position.on_closing = position, self.freeze
        self.positioned.append(listener)

    # -- restoring -----------------------------------------------------------------------------

    async def restore_and_run(self, reflector: Reflector, queue: InformerQueue, scope: str) -> None:
        """Run a reflector, and continue the stored state of its scope if there is one."""
        self._started = True
        stored = await self._restore(reflector.source, queue, scope)
        if stored is None:
            await reflector.run()
        elif stored.reread:
            await reflector.run(not_older_than=stored.version)
        else:
            await reflector.run(resume_from=stored.version, restored=True)

    async def _restore(
        self, source: ListerWatcher, queue: InformerQueue, scope: str
    ) -> StoredScope | None:
        """Queue the stored state of a scope. Return it; ``None`` if nothing is stored."""
        stored = await self._read_scope(source, scope)
        if stored is None:
            return None
        objects: list[KubeObject] = []
        async for batch in self._access.read_objects(stored, source.resource):
            objects += batch
        if self._access.problem:
            return None
        for listener in self.positioned:
            if listener.position is not None and listener.position.name in stored.handlers:
                listener.position.known_scopes.add(scope)
        self._forget_handlers(stored.handlers)
        self._written[scope] = stored.written
        queue.restore(objects, stored.version)
        return stored

    async def open_shards(self, source: ListerWatcher, scope: str) -> StoredShards | None:
        """Return the shards that the file has of one scope of a group; ``None`` for none."""
        group = self._group
        if group is None:
            raise AssertionError("an informer without a group has no shards that come and go")
        self._started, self._shards[scope] = True, RecordedShards(group.count)
        stored = await self._read_scope(source, scope)
        if stored is None:
            return None
        self._stored_shards[scope] = StoredShards(self._access, stored, source.resource, group)
        return self._stored_shards[scope]

    async def _read_scope(self, source: ListerWatcher, scope: str) -> StoredScope | None:
        """Open the file, and return the stored state of a scope; ``None`` if there is none."""
        identity = await self._open(source, scope)
        return await self._access.read_scope(identity) if identity else None

    async def _open(self, source: ListerWatcher, scope: str) -> str:
        """Return the identity of a scope that can be restored and recorded; else an empty text."""
        if self._refusal:
            self._log_refusal()
            return ""
        if scope in self._identities:
            # A scope that is read again after its removal. Its stored state stays as it is, since
            # the changes from that state to the next one are not known as a whole.
            self._identities[scope] = ""
            return ""
        if not isinstance(source, SupportsCacheFile):
            self._refusal = f"{source!r} says neither its cluster nor its selection"
            self._log_refusal()
            return ""
        async with self._opening:  # the scopes of an informer are restored at the same time
            if not self._opened:
                self._opened = True
                await self._access.open(source.cluster_identity)
        identity = scope_identity(
            source.resource, {**self._selection, **source.selection}, self._transform
        )
        if identity in self._access.identities:
            self._refusal = "another informer of this program keeps the same objects in the file"
            self._log_refusal()
            return ""
        self._access.identities.add(identity)
        self._identities[scope] = identity
        return "" if self._access.problem else identity

    def _log_refusal(self) -> None:
        if not self._refusal_logged:
            self._refusal_logged = True
            log.warning("%s: %s; going on without the cache file", self._name, self._refusal)

    def _forget_handlers(self, stored: frozenset[str]) -> None:
        present = {each.position.name for each in self.positioned if each.position is not None}
        for name in sorted(stored - present):
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
        if not kind.restored and not self._stopped:
            self._record.record_list(batches)

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
        return Checkpoint(versions, rejecting, [record], shards)

    def _recorded_scopes(self) -> list[str]:
        states = self._cache.scope_states()
        return [
            scope for scope, identity in self._identities.items() if identity and scope in states
        ]

    def _scope_of(self, key: ObjectKey) -> str:
        return "" if "" in self._identities else key.namespace

    def freeze(self) -> None:
        """Take the last state that all durable listeners will handle, since one of them closes."""
        if self._stopped:
            return
        later, earlier = self._seal(), self._sealed
        records = later.records if earlier is None else [*earlier.records, *later.records]
        self._sealed = replace(later, records=records)
        self._frozen = True
        self._put_marks()

    def _put_marks(self) -> None:
        for listener in self.positioned:
            listener.mark()

    @property
    def _all_handled(self) -> bool:
        """True if every durable listener has handled the sealed state."""
        return all(
            not each.mailbox.marks_pending or (each.position is not None and each.position.handled)
            for each in self.positioned
        )

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
        if self._sealed is None and not self._stopped and self._has_unwritten_state:
            self._sealed = self._seal()
            if self.positioned:
                self._put_marks()
                await asyncio.sleep(min(MARK_SECONDS, self._file.interval))
        if self._sealed is not None and self._all_handled:
            await self._write(self._sealed)

    @property
    def _has_unwritten_state(self) -> bool:
        """True if the cache shows another state than the last written one."""
        states, scopes, stored = self._cache.scope_states(), self._recorded_scopes(), self._stored
        if len(self._record) or stored is None:
            return any(states[scope].synced or states[scope].restored for scope in scopes)
        if not stored.versions.keys() <= set(scopes):
            return True  # a namespace was removed
        return any(states[scope].resource_version != stored.versions.get(scope) for scope in scopes)

    async def _write(self, sealed: Checkpoint) -> None:
        """Write a state. If this is cancelled, ``close`` writes the state once more."""
        parts = await split_changes(sealed, self._scope_of)
        names = [each.position.name for each in self.positioned if each.position is not None]
        writes = [
            ScopeWrite(
                *(self._identities[scope], version, scope in sealed.rejecting, names, changes),
                shards=self._shards_to_write(scope, sealed),
            )
            for scope, version in sealed.versions.items()
            if (changes := parts[scope]) or sealed.differs(scope, self._stored)
        ]
        if not writes or await self._access.write(writes):
            self._stored = replace(sealed, records=())
        self._sealed = None

    def _shards_to_write(self, scope: str, sealed: Checkpoint) -> ShardsWrite | None:
        group, stored = self._group, self._stored_shards.get(scope)
        return (
            None if group is None else shards_to_write(scope, self._stored, sealed, stored, group)
        )

    async def close(self) -> None:
        """Write the last state and leave the file. The informer's tasks have ended."""
        if not self._opened:
            return
        try:
            idle = all(each.position is not None and each.idle for each in self.positioned)
            if not self._stopped and idle:
                self.freeze()
                for listener in self.positioned:
                    if listener.position is not None:
                        listener.position.handled = True
            if self._sealed is not None and not self._access.problem and self._all_handled:
                await self._write(self._sealed)
        finally:
            self._access.identities -= set(self._identities.values())
            await self._access.close()

    def __repr__(self) -> str:
        return f"<Checkpointer of {self._name} {self._record!r} {self.problem or self._access!r}>"
