"""The state of shards that move in, which is read beside the watch of the other shards.

A listed state is passed on at once. A restored state is as old as the cache file: the changes since
are applied here, and the state is passed on once the server has confirmed that it is complete.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from typing import Protocol

from aioinformer._core.objects.deltas import Bookmark, Confirmed, Delta, Replaced, StateEntry
from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.stored import ExcludedObject
from aioinformer._runtime.reflector.lister_watcher import ListerWatcher
from aioinformer.sharding.state.ranges import HashRanges


class RestorableShards(Protocol):
    """The shards of one scope that a cache file has of an earlier run."""

    @property
    def version(self) -> str: ...

    @property
    def problem(self) -> str:
        """The reason why the file is no longer used; empty while the file is used."""
        ...

    def find(self, shards: frozenset[int]) -> frozenset[int]: ...

    def discard(self, shards: frozenset[int]) -> None:
        """Restore these shards no more: the cache holds a later state of them."""

    def read(self, ranges: HashRanges) -> AsyncIterator[list[KubeObject]]:
        """Return the objects of shards in lists. After a problem the iterator ends early."""
        ...


class OpenShards(Protocol):
    async def __call__(self, source: ListerWatcher, scope: str) -> RestorableShards | None:
        """Return the shards that the file has of a scope; ``None`` if it has none.

        ``source`` is that of the objects of all shards.
        """
        ...


class PublishGained(Protocol):
    def __call__(self, objects: Collection[KubeObject], version: str, *, follows: bool) -> bool:
        """Receive the whole state of gained shards, and end the reflector that reads it.

        Return False if the state is too old. If a later state ``follows`` with the next change,
        that one is passed on again.
        """
        ...


class GainedState:
    """An ``EntryQueue`` that collects the state of gained shards, and passes the state on."""

    def __init__(self, publish: PublishGained) -> None:
        self._publish: PublishGained | None = publish
        self._objects: dict[ObjectKey, KubeObject] = {}
        """The restored objects, with the changes since."""
        self._version = ""
        self._confirmed = False

    async def restore_from(self, stored: RestorableShards, ranges: HashRanges) -> None:
        async for batch in stored.read(ranges):
            self._objects.update({obj.key: obj for obj in batch})
        self._version = stored.version

    def feed(self, entries: Sequence[Delta | Bookmark]) -> bool:
        """Apply changes to a restored state; never full. Changes to a listed state are dropped: the
        watch of all shards repeats them.
        """
        for entry in entries:
            if isinstance(entry, Bookmark):
                self._version = entry.resource_version or self._version
                continue
            obj = entry.obj
            self._version = obj.resource_version or self._version
            if entry.kind == "Deleted" or (type(obj) is ExcludedObject and obj.error is None):
                self._objects.pop(obj.key, None)
            else:
                self._objects[obj.key] = obj  # a rejected version counts as in a list
        if self._confirmed:
            self._offer(self._objects.values(), follows=True)
        return False

    def put(self, entry: StateEntry) -> None:
        """Pass a restored state on once it is as new as the server's was, and a listed state at
        once: after a restored one, the server didn't know that version.
        """
        if isinstance(entry, Confirmed):
            self._confirmed = True
            self._offer(self._objects.values(), follows=True)
        elif isinstance(entry, Replaced):
            self._objects, self._version = {}, entry.resource_version
            self._offer(entry.objects, follows=False)

    def _offer(self, objects: Collection[KubeObject], *, follows: bool) -> None:
        publish, self._publish = self._publish, None
        if publish is not None and not publish(objects, self._version, follows=follows):
            self._publish = publish

    async def room(self) -> None: ...

    def __repr__(self) -> str:
        return f"<GainedState of {len(self._objects)} restored objects, {self._version}>"
