"""Groups of replicas: the health of a ``ShardGroup``, and the interface for users of its shards.

    Shard(0, 4)  ──▶  HashRanges  ──▶  the server's shardSelector, or the check of each object
    Leases ──informer──▶ membership ──▶ subscriptions ──▶ informers and controllers on the group
      ▲                       │
      └── renewals, claims, assignments

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

from typing import TYPE_CHECKING

from aioinformer._lazy_names import lazy_names

if TYPE_CHECKING:  # so that a program with a static shard does not load groups
    from aioinformer.sharding.group import GroupClient
    from aioinformer.sharding.health import GroupHealth
    from aioinformer.sharding.state.assignment import ShardAssignment, ShardSubscription
    from aioinformer.sharding.subscriptions import GroupSubscription
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "group": "GroupClient",
            "health": "GroupHealth",
            "state.assignment": "ShardAssignment ShardSubscription",
            "subscriptions": "GroupSubscription",
        },
    )

__all__ = [
    "GroupClient",
    "GroupHealth",
    "GroupSubscription",
    "ShardAssignment",
    "ShardSubscription",
]
