"""Parts of a resource's objects, by hash: the interface for users of shards.

    Shard(0, 4)  ──▶  HashRanges  ──▶  the server's shardSelector, or the check of each object

``Shard`` is a name of ``aioinformer``. ``aioinformer.shardgroup`` has groups of replicas that share
the shards of a resource.

Example::

    from aioinformer.sharding import ShardAssignment, ShardSubscription

    async def work(assignment: ShardAssignment) -> None:
        shards: ShardSubscription = assignment.subscribe("my work")
        held = await shards.wait_changed(frozenset())
        shards.acknowledge(held)
        print(f"{len(held)} of {assignment.count} shards")
        shards.close()

    group: ShardAssignment = ShardGroup(client, "shop", namespace="web", identity="shop-0")
"""

from aioinformer.sharding.state.assignment import ShardAssignment, ShardSubscription

__all__ = ["ShardAssignment", "ShardSubscription"]
