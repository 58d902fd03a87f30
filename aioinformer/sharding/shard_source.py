"""What a reflector of one shard, or of the shards of a group, is made with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import structs

from aioinformer._core.objects.deltas import Bookmark, Delta, Replaced, StateEntry
from aioinformer._core.objects.resources import Resource
from aioinformer._runtime.reflector.delta_queue import EntryQueue
from aioinformer.errors import UsageError

if TYPE_CHECKING:  # for informers of shards
    from aioinformer.sharding.state.assignment import ShardAssignment
    from aioinformer.sharding.state.shard import Shard
    from aioinformer.sharding.state.shard_filter import ShardFilter


def is_whole(shard: Shard | ShardAssignment | None) -> bool:
    """Return True if ``shard`` is the only one of its resource: ``Shard(0, 1)``."""
    if shard is None:
        return False
    from aioinformer.sharding.state.shard import Shard  # for informers of shards

    return shard == Shard(0, 1)


def group_of(shard: Shard | ShardAssignment | None) -> ShardAssignment | None:
    if shard is None:
        return None
    from aioinformer.sharding.state.shard import Shard  # for informers of shards

    return None if isinstance(shard, Shard) else shard


def read_shard(
    shard: Shard | ShardAssignment | None, resource: Resource, queue: EntryQueue
) -> tuple[EntryQueue, ShardFilter | None]:
    """Return the queue and the filter of a reflector that reads a shard of ``resource``.

    ``queue`` is the informer's. The filter is ``None`` if all objects are read, and has no shards
    yet for a group.

    Raises:
        UsageError: the shards are by namespace, and the objects are in none.
    """
    if shard is None or is_whole(shard):
        return queue, None
    from aioinformer.sharding.state.ranges import HashRanges  # for informers of shards
    from aioinformer.sharding.state.shard import Shard
    from aioinformer.sharding.state.shard_filter import ShardFilter

    if shard.by == "namespace" and not resource.namespaced:
        example = f"Shard({shard.index}, {shard.count})" if isinstance(shard, Shard) else "a group"
        raise UsageError(
            f"{resource} are in no namespace, so that all of them would be in one shard; pass "
            f"{example} that splits by uid"
        )
    if isinstance(shard, Shard):
        return queue, ShardFilter(shard.ranges)
    chosen = ShardFilter(HashRanges.of((), shard.count, shard.by))
    return GroupQueue(queue, chosen), chosen


class GroupQueue:
    """The queue of a reflector of shards that come and go."""

    def __init__(self, queue: EntryQueue, shards: ShardFilter) -> None:
        self._queue = queue
        self._shards = shards

    def feed(self, entries: Sequence[Delta | Bookmark]) -> bool:
        return self._queue.feed(self._shards.drop_repeated(entries))

    def put(self, entry: StateEntry) -> None:
        if isinstance(entry, Replaced) and entry.reason == "vanished":
            entry = structs.replace(entry, initial=self._shards.complete_state())
        self._queue.put(entry)

    async def room(self) -> None:
        await self._queue.room()
