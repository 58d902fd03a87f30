"""A checkpoint: a state of a cache that is to be written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from aioinformer._core.objects.kube_object import ObjectKey
from aioinformer._runtime.tasks.event_loop import ITEMS_PER_STEP, TimeSlice
from aioinformer.cachefile.state.change_record import ChangeRecord, Changes
from aioinformer.cachefile.state.recorded_shards import SealedShards


class Checkpoint(Struct, frozen=True):
    """A state of the cache that is to be written once the durable listeners have handled it."""

    versions: Mapping[str, str]
    rejecting: frozenset[str]
    """The scopes with rejected objects."""
    records: Sequence[ChangeRecord]
    """The changes that lead to the state; a later record has the newer ones."""
    shards: Mapping[str, SealedShards]
    """The shards of each scope, for an informer on a group."""
    removed: frozenset[str] = frozenset()
    """The identities of scopes that were removed. A scope may have returned since, with all of its
    objects among the changes."""
    identities: Mapping[str, str] = {}
    """The identity of each scope in ``versions``."""

    def differs(self, scope: str, written: Checkpoint | None) -> bool:
        """Return True if more than objects of a scope differs from the state written last."""
        if written is None:
            return True
        return (
            written.versions.get(scope) != self.versions[scope]
            or written.identities.get(scope) != self.identities.get(scope)
            or (scope in written.rejecting) != (scope in self.rejecting)
            or written.shards.get(scope) != self.shards.get(scope)
        )


async def finish_record(record: ChangeRecord) -> None:
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
