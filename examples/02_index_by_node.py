"""Show the pods of each node from an index of the cache, with one list request for all nodes.

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
        # An index function returns the value under which a pod is found. ``field`` returns an index
        # function that reads one path and decodes nothing else. Any function of a pod works too.
        pods = informers.informer("pods", indexers={"node": field("spec.nodeName")}).lister
        await informers.wait_synced(timeout=30)

        for node in nodes or sorted(pods.index_values("node")):
            names = sorted(str(pod.key) for pod in pods.by_index("node", node))
            print(f"{node}: {len(names)} of {len(pods)} pods: {', '.join(names)}")
        unassigned = len(pods) - sum(pods.index_counts("node").values())
        print(f"on no node yet: {unassigned} of {len(pods)} pods")


asyncio.run(main(*sys.argv[1:2]))
