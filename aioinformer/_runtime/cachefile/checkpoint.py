"""A checkpoint: a state of a cache that is to be written. Protocols of the cache it is taken of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from aioinformer._core.cachefile.change_log import LogEntry, LogRecord, make_entries
from aioinformer._core.cachefile.change_record import ChangeRecord, Changes
from aioinformer._core.cachefile.recorded_shards import SealedShards
from aioinformer._core.objects.kube_object import ObjectKey
from aioinformer._runtime.tasks.event_loop import ITEMS_PER_STEP, TimeSlice

__all__ = [
    "FRESH_SECONDS",
    "Checkpoint",
    "CheckpointedCache",
    "CheckpointedScope",
    "finish_record",
    "split_changes",
    "split_log",
]

FRESH_SECONDS = 10.0
"""Seconds after which a newer proof of freshness is written for the followers of a shared file, if
nothing else has changed."""


class CheckpointedScope(Protocol):
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


class CheckpointedCache(Protocol):
    """The cache of the informer."""

    @property
    def rejected(self) -> Mapping[ObjectKey, Exception]:
        """The objects whose newest version was rejected."""
        ...

    def scope_states(self) -> Mapping[str, CheckpointedScope]:
        """Return the state of each scope by its name."""
        ...


class Checkpoint(Struct, frozen=True):
    """A state of the cache that is to be written once the durable listeners have handled it."""

    versions: Mapping[str, str]
    """The resourceVersion of each scope."""
    rejecting: frozenset[str]
    """The scopes with rejected objects."""
    records: Sequence[ChangeRecord]
    """The changes that lead to the state; a later record has the newer ones."""
    log: LogRecord
    """The same changes in order, for the followers of a shared file."""
    synced: frozenset[str]
    """The scopes whose state is confirmed."""
    fresh: Mapping[str, float]
    """The times of the last proofs of freshness, by scope; empty if the file isn't shared."""
    shards: Mapping[str, SealedShards]
    """The shards of each scope, for an informer on a group."""

    def differs(self, scope: str, written: Checkpoint | None) -> bool:
        """Return True if more than objects of a scope differs from the state written last."""
        if written is None:
            return True
        return (
            written.versions.get(scope) != self.versions[scope]
            or (scope in written.rejecting) != (scope in self.rejecting)
            or (scope in written.synced) != (scope in self.synced)
            or written.shards.get(scope) != self.shards.get(scope)
            or self.fresh.get(scope, 0.0) - written.fresh.get(scope, 0.0) > FRESH_SECONDS
        )


async def finish_record(record: ChangeRecord) -> None:
    """Record the waiting batches of lists, in steps."""
    pace = TimeSlice()
    while not record.step():
        await pace.maybe_yield()


async def split_changes(
    sealed: Checkpoint, scope_of: Callable[[ObjectKey], str]
) -> Mapping[str, Changes]:
    """Return the newest state of each changed object of each scope."""
    parts: dict[str, Changes] = {scope: {} for scope in sealed.versions}
    for record in sealed.records:
        await finish_record(record)
        pace = TimeSlice()
        for number, (key, obj) in enumerate(record.changes.items()):
            if (part := parts.get(scope_of(key))) is not None:
                part[key] = obj
            if number % ITEMS_PER_STEP == 0:
                await pace.maybe_yield()
    return parts


async def split_log(
    sealed: Checkpoint, scope_of: Callable[[ObjectKey], str]
) -> Mapping[str, list[LogEntry]]:
    """Return the changes of each scope one by one, for followers."""
    entries: dict[str, list[LogEntry]] = {}
    pace = TimeSlice()
    for batch in sealed.log.batches:
        for entry in make_entries(batch):
            entries.setdefault(scope_of(entry.obj.key), []).append(entry)
        await pace.maybe_yield()
    return entries
