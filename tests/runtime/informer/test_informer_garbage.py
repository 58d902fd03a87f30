"""The memory of a factory that was left."""

from __future__ import annotations

import asyncio
import gc
import weakref

from aioinformer import Client, SharedInformer, SharedInformerFactory
from aioinformer.testing import ApiServer, Cluster
from tests.runtime.informers import cluster_with_pods


async def enter_factory(client: Client) -> weakref.ref[SharedInformer]:
    """Enter and leave a factory with one informer, and return a weak reference to that one."""
    async with SharedInformerFactory(client) as informers:
        pods = informers.informer("pods", indexers={"name": lambda pod: pod.name})
        pods.add_handler(lambda event: None)
        async with pods.events():
            await informers.wait_synced(timeout=30)
        return weakref.ref(pods)


async def test_a_collection_frees_the_informers_of_a_factory_that_was_left() -> None:
    cluster: Cluster = cluster_with_pods("a", "b")
    async with ApiServer(cluster) as server, Client(server.url) as client:
        left = [await enter_factory(client) for _ in range(3)]
        async with asyncio.timeout(30):
            while any(each() is not None for each in left):
                gc.collect()
                await asyncio.sleep(0.05)  # transports end in the next turns of the loop
        assert [each() for each in left] == [None] * 3
