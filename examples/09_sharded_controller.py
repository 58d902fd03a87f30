"""Share the reconciles of a resource among replicas, each of which works on its shards.

python examples/09_sharded_controller.py REPLICA [RESOURCE]

Start the program several times, each time with another name of the replica. Each object is
reconciled by one replica at a time: here the replica writes its name into an annotation. When a
replica ends or dies, the others take its objects over.
"""

import asyncio
import sys
from contextlib import suppress

from aioinformer import (
    Client,
    Controller,
    ObjectKey,
    ReconcileContext,
    ShardGroup,
)

ANNOTATION = "example.com/reconciled"


async def main(replica: str = "replica-a", name: str = "configmaps") -> None:
    async with (
        Client.connect() as client,
        ShardGroup(client, "example-09", namespace="default", identity=replica) as group,
    ):
        resource = await client.resource(name)

        async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
            if ctx.obj is None:
                print("-", key, flush=True)
                return
            # The object's own state decides, so that a second reconcile changes nothing.
            wanted = f"{replica} {ctx.obj.labels.get('version', '')}".strip()
            if ctx.obj.annotations.get(ANNOTATION) != wanted:
                # Without the shard this raises ShardLost and sends nothing.
                patch = {"metadata": {"annotations": {ANNOTATION: wanted}}}
                await ctx.api(resource).patch(key, patch)
                print("=", key, flush=True)

        # The controller's cache has the objects of this replica's shards alone.
        await Controller(resource, reconcile, shards=group, name="example-09").run()


with suppress(KeyboardInterrupt):  # Ctrl-C: the replica gives its shards away before it ends
    asyncio.run(main(*sys.argv[1:]))
