"""The source and the check of one shard of a resource."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer._core.objects.resources import Resource
from aioinformer._runtime.reflector.lister_watcher import ListerWatcher, SupportsListOptions
from aioinformer.errors import UsageError

if TYPE_CHECKING:  # for informers of shards
    from aioinformer.sharding.state.assignment import ShardAssignment
    from aioinformer.sharding.state.shard import Shard
    from aioinformer.sharding.state.shard_filter import ShardFilter


DURABLE_REFUSAL = (
    "the replica that holds a shard handles the shard's events, and the files of the other "
    "replicas don't have them; give each replica a fixed shard=Shard(index, count), or use a "
    "Controller"
)
"""The reason why no listener of an informer on a group can be durable."""


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


def make_shard_filter(
    shard: Shard | ShardAssignment | None, resource: Resource
) -> ShardFilter | None:
    """Return a new filter for a shard of ``resource``; ``None`` if all objects are read.

    The filter of a group has no shards yet.

    Raises:
        UsageError: the shards are by namespace, and the objects are in none.
    """
    if shard is None or is_whole(shard):
        return None
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
        return ShardFilter(shard.ranges)
    return ShardFilter(HashRanges.of((), shard.count, shard.by))


def select_shard(source: ListerWatcher, shard: ShardFilter | None) -> ListerWatcher:
    """Return ``source`` asking for the objects of a shard alone, if it takes list options."""
    if shard is None or not isinstance(source, SupportsListOptions):
        return source
    return source.with_list_options({"shardSelector": shard.requested.selector})
