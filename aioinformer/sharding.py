"""Groups of replicas: the health of a ``ShardGroup``, and the interface for users of its shards.

Example::

    from aioinformer.sharding import (
        GroupClient, GroupHealth, GroupSubscription, ShardAssignment, ShardSubscription,
    )

    def make_group(client: GroupClient) -> ShardGroup:
        return ShardGroup(client, "shop", namespace="web", identity="shop-0")

    async def work(group: ShardGroup) -> None:
        subscription: GroupSubscription = group.subscribe("my work")
        shards: ShardSubscription = subscription
        held = await shards.wait_changed(frozenset())
        shards.acknowledge(held)
        assignment: ShardAssignment = group  # what an informer needs of a group
        health: GroupHealth = group.health
        print(f"{health.state}: {len(held)} of {assignment.count} shards")
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
