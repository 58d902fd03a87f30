"""Write an object, and read it back from the cache as soon as the cache has it.

python examples/05_wait_for_own_write.py [NAMESPACE]

A cache is always a little behind: who writes and reads at once may see what was before, and do
things twice. Waiting for one's own write takes a few milliseconds, and makes that impossible.
"""

import asyncio
import sys

from aioinformer import Client, SharedInformerFactory


async def main(namespace: str = "default") -> None:
    async with (
        Client.connect() as client,
        SharedInformerFactory(client, namespace=namespace) as informers,
    ):
        informer = informers.informer("configmaps")
        await informers.wait_synced(timeout=30)
        maps = client.api(informer.resource, namespace=namespace)

        written = await maps.create(
            {"metadata": {"generateName": "example-"}, "data": {"visits": "1"}}
        )
        await informer.wait_for(written, timeout=5)  # or ``CacheWaitTimeout``, which says why
        print("created:", informer.lister[written.key]["data"]["visits"], "visit")

        changed = await maps.patch(written.key, {"data": {"visits": "2"}})
        await informer.wait_for(changed, timeout=5)
        print("changed:", informer.lister[written.key]["data"]["visits"], "visits")

        await maps.delete(written.key)
        await informer.wait_until(written.key, lambda found: found is None, timeout=5)
        print("deleted:", informer.lister.get(written.key) is None)


asyncio.run(main(*sys.argv[1:2]))
