"""Find pods by their labels: with an index at once, without an index by visiting each pod.

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

        # A selector uses the index: each of these calls visits only the pods with that label.
        for label in sorted(pods.index_values("labels")):
            print(f"{label}: {len(pods.list(labels=label))} of {len(pods)} pods")

        # Any selector of kubectl works without an index too. ``scan`` visits every pod, and yields
        # to the event loop every few milliseconds.
        async for pod in pods.scan(labels=selector):
            print(f"{selector} selects {pod.key}")

        # The selector of a Deployment or a Service can be passed unchanged.
        shops = pods.list(labels={"matchLabels": {"app": "shop"}})
        print(f"{len(shops)} pods are of the app shop")


asyncio.run(main(*sys.argv[1:2]))
