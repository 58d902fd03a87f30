"""Show which images run on which node, with a model of one's own: typed, and all that is kept.

python examples/03_typed_model.py [NODE]
"""

import asyncio
import sys

from msgspec import Struct

from aioinformer import Client, SharedInformerFactory


# What isn't declared is neither built nor kept. Frozen, since all who read get the same object,
# and with gc=False, so that Python's garbage collector needn't visit each of them: right for
# whatever holds strings, numbers and other such structs, in tuples.
class Metadata(Struct, frozen=True, gc=False):
    """What a pod is called."""

    name: str
    namespace: str


class Container(Struct, frozen=True, gc=False):
    """What a pod runs."""

    image: str


class Spec(Struct, frozen=True, gc=False):
    """What a pod is to be."""

    containers: tuple[Container, ...] = ()
    nodeName: str = "(no node yet)"  # noqa: N815 - the key in the JSON


class Pod(Struct, frozen=True, gc=False):
    """A pod, as far as this program is interested."""

    metadata: Metadata
    spec: Spec


async def main(*nodes: str) -> None:
    async with Client.connect() as client, SharedInformerFactory(client) as informers:
        # A SharedInformer[Pod]: its handlers, streams, filters and index functions get a Pod too.
        pods = informers.informer("pods", model=Pod)
        await pods.add_index("node", lambda pod: pod.spec.nodeName)
        await informers.wait_synced(timeout=30)

        for node in nodes or sorted(pods.lister.index_values("node")):
            found = pods.lister.by_index("node", node)
            images = {container.image for pod in found for container in pod.spec.containers}
            print(f"{node}: {', '.join(sorted(images)) or 'nothing'}")
        for key in pods.health.rejected:  # what doesn't fit is left out, and listed, until it does
            print(f"{key} is not as expected")


asyncio.run(main(*sys.argv[1:2]))
