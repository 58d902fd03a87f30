"""The source and the check of one shard of a resource."""

from __future__ import annotations

from aioinformer._core.objects.resources import Resource
from aioinformer._core.sharding.assignment import ShardAssignment
from aioinformer._core.sharding.ranges import HashRanges
from aioinformer._core.sharding.shard import Shard
from aioinformer._core.sharding.shard_filter import ShardFilter
from aioinformer._runtime.reflector.lister_watcher import ListerWatcher, SupportsListOptions
from aioinformer.errors import UsageError

__all__ = ["make_shard_filter", "select_shard"]


def make_shard_filter(
    shard: Shard | ShardAssignment | None, resource: Resource
) -> ShardFilter | None:
    """Return a new filter for a shard of ``resource``; ``None`` if all objects are read.

    The filter of a group has no shards yet.

    Raises:
        UsageError: the shards are by namespace, and the objects are in none.
    """
    if shard is None or shard == Shard(0, 1):
        return None
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
