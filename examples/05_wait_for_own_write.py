"""Write an object, and read it back from the cache as soon as the cache has it.

python examples/05_wait_for_own_write.py [NAMESPACE]

A cache is always a little behind the server. A program that reads directly after a write may read
the old state, and repeat its work. Waiting for its own write takes a few milliseconds and prevents
that.
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
        await informer.wait_for(
            written, timeout=5
        )  # or ``CacheWaitTimeout``, which names the reason
        print("created:", informer.lister[written.key]["data"]["visits"], "visit")

        patched = await maps.patch(written.key, {"data": {"visits": "2"}})
        await informer.wait_for(patched, timeout=5)
        print("changed:", informer.lister[written.key]["data"]["visits"], "visits")

        await maps.delete(written.key)
        await informer.wait_until(written.key, lambda obj: obj is None, timeout=5)
        print("deleted:", informer.lister.get(written.key) is None)


asyncio.run(main(*sys.argv[1:2]))
