"""Show what runs on which node, with a model of one's own: typed, and only that is kept.

python examples/03_typed_model.py [NODE]
"""

import asyncio
import sys

from msgspec import Struct

from aioinformer import Client, SharedInformerFactory


# What isn't declared here is neither built nor kept. Frozen, since every reader gets the same
# object, and with gc=False, since Python's garbage collector need not visit thousands of pods:
# that is right for whatever holds only strings, numbers and structs like these, in tuples.
class Metadata(Struct, frozen=True, order=True, gc=False):
    namespace: str
    name: str


class Container(Struct, frozen=True, gc=False):
    image: str


class Spec(Struct, frozen=True, gc=False):
    containers: tuple[Container, ...] = ()
    nodeName: str = "(no node yet)"  # noqa: N815 - the key in the JSON


class Pod(Struct, frozen=True, gc=False):
    metadata: Metadata
    spec: Spec


def node_of(pod: Pod) -> str:
    return pod.spec.nodeName


async def main(*nodes: str) -> None:
    async with (
        Client.connect() as client,
        SharedInformerFactory(client) as informers,
    ):
        # A SharedInformer[Pod]: handlers, events, filters and index functions get a Pod as well.
        pods = informers.informer("pods", model=Pod, indexers={"node": node_of})
        await informers.wait_synced(timeout=30)

        for node in nodes or sorted(pods.lister.index_values("node")):
            for pod in sorted(pods.lister.by_index("node", node), key=lambda pod: pod.metadata):
                images = ", ".join(container.image for container in pod.spec.containers)
                print(
                    f"{node}: {pod.metadata.namespace}/{pod.metadata.name}: {images or 'nothing'}"
                )

        # A pod that doesn't fit the model is left out, and listed here, as long as that is so.
        for key in pods.health.rejected:
            print(f"{key} doesn't fit")


asyncio.run(main(*sys.argv[1:2]))
