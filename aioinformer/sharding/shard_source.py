"""What a reflector of one shard, or of the shards of a group, is made with."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from aioinformer._core.objects.deltas import Bookmark, Delta, Replaced, StateEntry
from aioinformer._core.objects.resources import Resource
from aioinformer._runtime.reflector.delta_queue import EntryQueue
from aioinformer.errors import UsageError
from aioinformer.sharding.state.assignment import ShardAssignment
from aioinformer.sharding.state.ranges import HashRanges
from aioinformer.sharding.state.shard import Shard
from aioinformer.sharding.state.shard_filter import ShardFilter

DURABLE_REFUSAL = (
    "the replica that holds a shard handles the shard's events, and the files of the other "
    "replicas don't have them; give each replica a fixed shard=Shard(index, count), or use a "
    "Controller"
)
"""The reason why no listener of an informer on a group can be durable."""


def is_whole(shard: Shard | ShardAssignment) -> bool:
    """Return True if ``shard`` is the only one of its resource: ``Shard(0, 1)``."""
    return shard == Shard(0, 1)


def read_shard(
    shard: Shard | ShardAssignment, resource: Resource, queue: EntryQueue
) -> tuple[EntryQueue, ShardFilter]:
    """Return the queue and the filter of a reflector that reads a shard of ``resource``.

    ``queue`` is the informer's. The filter of a group has no shards yet.

    Raises:
        UsageError: the shards are by namespace, and the objects are in none.
    """
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
