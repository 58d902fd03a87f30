"""Groups of replicas: the health of a ``ShardGroup``, and the interface for users of its shards.

``ShardGroup`` and ``Shard`` themselves are in ``aioinformer``.

Example::

    from aioinformer.sharding import GroupHealth, ShardSubscription

    async def work(group: ShardGroup) -> None:
        shards: ShardSubscription = group.subscribe("my work")
        held = await shards.wait_changed(frozenset())
        shards.acknowledge(held)
        health: GroupHealth = group.health
        print(f"{health.state}: {len(held)} of {group.count} shards")
        shards.close()
"""

from aioinformer._core.sharding.assignment import ShardAssignment, ShardSubscription
from aioinformer._runtime.shardgroup.group import GroupClient
from aioinformer._runtime.shardgroup.health import GroupHealth
from aioinformer._runtime.shardgroup.subscriptions import GroupSubscription

__all__ = [
    "GroupClient",
    "GroupHealth",
    "GroupSubscription",
    "ShardAssignment",
    "ShardSubscription",
]
