"""Find pods by their labels: with an index at once, without an index by visiting each pod.

python examples/04_label_index.py [SELECTOR]
"""

import asyncio
import sys

from aioinformer import Client, SharedInformerFactory, label_index

NAME, PART_OF = "app.kubernetes.io/name", "app.kubernetes.io/part-of"


async def main(selector: str = f"{PART_OF}=shop") -> None:
    async with (
        Client.connect() as client,
        SharedInformerFactory(client) as informers,
    ):
        pods = informers.informer("pods", indexers={"labels": label_index(NAME, PART_OF)}).lister
        await informers.wait_synced(timeout=30)

        # A selector uses the index: each of these calls visits only the pods with that label.
        for label in sorted(pods.index_values("labels")):
            print(f"{label}: {len(pods.list(labels=label))} of {len(pods)} pods")

        # Any selector of kubectl works without an index too. ``scan`` visits every pod, and yields
        # to the event loop every few milliseconds.
        async for pod in pods.scan(labels=selector):
            print(f"{selector} selects {pod.key}")

        # The selector of a Deployment or a Service can be passed unchanged.
        shops = pods.list(labels={"matchLabels": {PART_OF: "shop"}})
        print(f"{len(shops)} pods are part of the shop")


asyncio.run(main(*sys.argv[1:2]))
