"""Find pods by their labels: with an index at once, without one by looking at each.

python examples/04_label_index.py [SELECTOR]
"""

import asyncio
import sys

from aioinformer import Client, SharedInformerFactory, label_index


async def main(selector: str = "app") -> None:
    async with (
        Client.connect() as client,
        SharedInformerFactory(client) as informers,
    ):
        pods = informers.informer("pods", indexers={"labels": label_index("app", "tier")}).lister
        await informers.wait_synced(timeout=30)

        # A selector finds the index by itself: each of these looks at the pods with that label,
        # however many others there are.
        for label in sorted(pods.index_values("labels")):
            print(f"{label}: {len(pods.list(labels=label))} of {len(pods)} pods")

        # Any selector that kubectl takes works without an index too. ``scan`` gives way to the
        # rest of the program while it looks at every pod.
        async for pod in pods.scan(labels=selector):
            print(f"{selector} selects {pod.key}")

        # The selector of a Deployment or a Service can be handed on as it is.
        shops = pods.list(labels={"matchLabels": {"app": "shop"}})
        print(f"{len(shops)} pods are of the app shop")


asyncio.run(main(*sys.argv[1:2]))
