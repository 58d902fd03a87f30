"""The recorder: restores the states of one informer, and keeps the file behind its cache.

The pump passes the events of each step to the recorder, which keeps the newest state of each
changed object. Every second the recorder takes these states together with the resourceVersions that
the cache has applied: both belong to one moment, since nothing is awaited in between. The file's
thread writes them in one transaction.

With durable listeners a state is written later: a mark is put behind the events that lead to the
state, and the state is written once every durable listener has passed its mark. Meanwhile later
changes are recorded apart. So a listener that hangs holds back the file and makes the recorder keep
no more than two states of each object.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from aioinformer._core.cachefile.change_record import ChangeRecord, Changes
from aioinformer._core.cachefile.identity import scope_identity
from aioinformer._core.codec.shape import Transform
from aioinformer._core.objects.kube_object import Event, KubeObject, ObjectKey
from aioinformer._runtime.cachefile.cache_file import CacheFile
from aioinformer._runtime.cachefile.file_access import log
from aioinformer._runtime.cachefile.stored_scope import ScopeWrite
from aioinformer._runtime.delivery.durable_position import DurablePosition
from aioinformer._runtime.delivery.listener import Listener
from aioinformer._runtime.reflector.delta_queue import EntryQueue
from aioinformer._runtime.reflector.lister_watcher import ListerWatcher, SupportsCacheFile
from aioinformer._runtime.reflector.reflector import Reflector
from aioinformer._runtime.tasks.event_loop import ITEMS_PER_STEP, TimeSlice
from aioinformer.errors import UsageError

__all__ = ["RecordedCache", "RecordedState", "Recorder"]

MARK_SECONDS = 0.02
"""Seconds after which marks are looked at for the first time: most handlers have passed them."""


class RecordedState(Protocol):
    """The state of one scope."""

    @property
    def resource_version(self) -> str:
        """The version up to which everything was applied."""
        ...

    @property
    def synced(self) -> bool:
        """True once a whole state of the server was applied."""
        ...

    @property
    def restored(self) -> bool:
        """True if the state comes from the file and was not confirmed."""
        ...


class RecordedCache(Protocol):
    """The cache of the informer."""

    @property
    def rejected(self) -> Mapping[ObjectKey, Exception]:
        """The objects whose newest version was rejected."""
        ...

    def scope_states(self) -> Mapping[str, RecordedState]:
        """Return the state of each scope by its name."""
        ...


class _Sealed(Struct, frozen=True):
    """A state of the cache that is to be written once the durable listeners have handled it."""

    versions: Mapping[str, str]
    """The resourceVersion of each scope."""
    rejecting: frozenset[str]
    """The scopes with rejected objects."""
    records: Sequence[ChangeRecord]
    """The changes that lead to the state; a later record has the newer ones."""


class Recorder:
    """The recorder of one informer."""

    def __init__(
        self,
        name: str,
        file: CacheFile,
        cache: RecordedCache,
        *,
        selection: Mapping[str, str],
        transform: Transform | None,
        refusal: str,
    ) -> None:
        """Make the recorder of an informer that has not started.

        Args:
            name: the informer's name, for logs.
            file: the options of the file.
            cache: the informer's cache.
            selection: what selects the objects or changes their stored form, besides the source.
            transform: the informer's ``transform=``.
            refusal: the reason why the file can't be used; empty if it can.
        """
        self.positioned: list[Listener] = []
        """The durable listeners."""
        self._name = name
        self._file = file
        self._access = file.access()
        self._cache = cache
        self._selection = {**selection, "version": file.version}
        self._transform = transform
        self._refusal = refusal
        self._record = ChangeRecord()
        self._identities: dict[str, str] = {}
        self._written: dict[str, float] = {}
        """The times at which the restored states were written, by scope."""
        self._stored: tuple[Mapping[str, str], frozenset[str]] | None = None
        """The versions and the scopes with rejected objects, as last written."""
        self._sealed: _Sealed | None = None
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
        """Write only states that ``listener`` has handled, under the name of ``position``.

        Raises:
            UsageError: the file can't be used for these objects, the informer has started, or the
                name is taken.
        """
        name = position.name
        if self._refusal:
            raise UsageError(f"durable={name!r} needs the cache file: {self._refusal}")
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

    async def restore_and_run(self, reflector: Reflector, queue: EntryQueue, scope: str) -> None:
        """Run a reflector, and continue the stored state of its scope if there is one.

        Args:
            reflector: the reflector.
            queue: the queue that the reflector feeds.
            scope: the name of the scope.
        """
        self._started = True
        stored = await self._restore(reflector.source, queue, scope)
        if stored is None:
            await reflector.run()
        else:
            version, reread = stored
            resume, list_from = ("", version) if reread else (version, "")
            await reflector.run(resume_from=resume, not_older_than=list_from, restored=True)

    async def _restore(
        self, source: ListerWatcher, queue: EntryQueue, scope: str
    ) -> tuple[str, bool] | None:
        """Queue the stored state of a scope.

        Returns:
            The version of the state, and True if a list is needed; ``None`` if nothing is stored.
        """
        identity = await self._open(source, scope)
        if not identity:
            return None
        stored = await self._access.read_scope(identity)
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
        return stored.version, stored.reread

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
        """True if no further change is to be recorded."""
        return bool(self._refusal or self._access.problem or self._frozen)

    def record(self, events: Sequence[Event]) -> None:
        """Record the events of one step of the pump."""
        if not self._stopped:
            self._record.record(events)

    def record_list(self, batches: Sequence[Sequence[Event]], *, restored: bool) -> None:
        """Record the changes of a list; those of a restored state are in the file already."""
        if not restored and not self._stopped:
            self._record.record_list(batches)

    def _seal(self) -> _Sealed:
        """Return the state of this moment, and the changes since the last such state."""
        states = self._cache.scope_states()
        versions = {
            scope: states[scope].resource_version
            for scope, identity in self._identities.items()
            if identity and scope in states and (states[scope].synced or states[scope].restored)
        }
        rejecting = frozenset(map(self._scope_of, self._cache.rejected))
        record, self._record = self._record, ChangeRecord()
        return _Sealed(versions, rejecting, [record])

    def _scope_of(self, key: ObjectKey) -> str:
        return "" if "" in self._identities else key.namespace

    def freeze(self) -> None:
        """Take the last state that all durable listeners will have handled: one is being closed.

        Later changes are not recorded, since that listener doesn't receive them.
        """
        if self._stopped:
            return
        later, earlier = self._seal(), self._sealed
        records = later.records if earlier is None else [*earlier.records, *later.records]
        self._sealed = _Sealed(later.versions, later.rejecting, records)
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
        await _finish_record(self._record)
        if self._sealed is None and not self._stopped and self._has_news:
            self._sealed = self._seal()
            if self.positioned:
                self._put_marks()
                await asyncio.sleep(min(MARK_SECONDS, self._file.interval))
        if self._sealed is not None and self._all_handled:
            await self._write(self._sealed)

    @property
    def _has_news(self) -> bool:
        """True if the cache shows another state than the last written one."""
        states = self._cache.scope_states()
        if len(self._record) or self._stored is None:
            return any(state.synced or state.restored for state in states.values())
        versions = self._stored[0]
        return any(
            states[scope].resource_version != versions.get(scope)
            for scope, identity in self._identities.items()
            if identity and scope in states
        )

    async def _write(self, sealed: _Sealed) -> None:
        """Write a state. If this is cancelled, ``close`` writes the state once more."""
        parts: dict[str, Changes] = {scope: {} for scope in sealed.versions}
        for record in sealed.records:
            await _finish_record(record)
            pace = TimeSlice()
            for number, (key, obj) in enumerate(record.changes.items()):
                if (part := parts.get(self._scope_of(key))) is not None:
                    part[key] = obj
                if number % ITEMS_PER_STEP == 0:
                    await pace.maybe_yield()
        names = [each.position.name for each in self.positioned if each.position is not None]
        writes = [
            ScopeWrite(self._identities[scope], version, scope in sealed.rejecting, names, changes)
            for scope, version in sealed.versions.items()
            if (changes := parts[scope]) or self._stored is None or self._differs(sealed, scope)
        ]
        if await self._access.write(writes):
            self._stored = (sealed.versions, sealed.rejecting)
        self._sealed = None

    def _differs(self, sealed: _Sealed, scope: str) -> bool:
        versions, rejecting = self._stored or ({}, frozenset())
        return (
            versions.get(scope) != sealed.versions[scope]
            or (scope in rejecting) != (scope in sealed.rejecting)
        )  # fmt: skip

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
        return f"<Recorder of {self._name} {self._record!r} {self.problem or self._access!r}>"


async def _finish_record(record: ChangeRecord) -> None:
    """Record the waiting batches of lists, in steps."""
    pace = TimeSlice()
    while not record.step():
        await pace.maybe_yield()
