"""Groups of replicas that share shards: the health of a ``ShardGroup``, and the interface for code
that works on shards.

    Leases ──informer──▶ membership ──▶ subscriptions ──▶ informers and controllers on the group
      ▲                       │
      └── renewals, claims, assignments

Example::

    from aioinformer.shardgroup import GroupClient, GroupHealth, GroupSubscription

    def make_group(client: GroupClient) -> ShardGroup:
        return ShardGroup(client, "shop", namespace="web", identity="shop-0")

    async def work(group: ShardGroup) -> None:
        subscription: GroupSubscription = group.subscribe("my work")
        held = await subscription.wait_changed(frozenset())
        subscription.acknowledge(held)
        health: GroupHealth = group.health
        print(f"{health.state}: {len(held)} of {group.count} shards")
        subscription.close()
"""

from aioinformer.shardgroup.group import GroupClient
from aioinformer.shardgroup.health import GroupHealth
from aioinformer.shardgroup.subscriptions import GroupSubscription

__all__ = ["GroupClient", "GroupHealth", "GroupSubscription"]
