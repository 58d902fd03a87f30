"""Show which pods run on which node, from the cache: the server is asked once, not once a node.

python examples/02_index_by_node.py [NODE]
"""

import asyncio
import sys

from aioinformer import Client, SharedInformerFactory, field


async def main(*nodes: str) -> None:
    async with (
        Client.connect() as client,
        SharedInformerFactory(client) as informers,
    ):
        # What an index function gives is what a pod is found by. ``field`` makes one that reads a
        # single path and decodes nothing else; your own may be any function of a pod.
        pods = informers.informer("pods", indexers={"node": field("spec.nodeName")}).lister
        await informers.wait_synced(timeout=30)

        for node in nodes or sorted(pods.index_values("node")):
            names = sorted(str(pod.key) for pod in pods.by_index("node", node))
            print(f"{node}: {len(names)} pods: {', '.join(names)}")
        waiting = len(pods) - sum(pods.index_counts("node").values())
        print(f"{waiting} pods are on no node yet")


asyncio.run(main(*sys.argv[1:2]))
