"""Show the images on each node with your own typed model; the cache keeps its fields only.

python examples/03_typed_model.py [NODE]
"""

import asyncio
import sys

from msgspec import Struct

from aioinformer import Client, SharedInformerFactory


# Fields that aren't declared are neither built nor kept. The structs are frozen, since all readers
# share the same object. With gc=False, Python's garbage collector does not visit them, which is
# right for structs of strings, numbers and other such structs, in tuples.
class Metadata(Struct, frozen=True, gc=False):
    """The name of a pod."""

    name: str
    namespace: str


class Container(Struct, frozen=True, gc=False):
    """A container of a pod."""

    image: str


class Spec(Struct, frozen=True, gc=False):
    """The specification of a pod."""

    containers: tuple[Container, ...] = ()
    nodeName: str = "(no node yet)"  # noqa: N815 - the key in the JSON


class Pod(Struct, frozen=True, gc=False):
    """The parts of a pod that this program reads."""

    metadata: Metadata
    spec: Spec


async def main(*nodes: str) -> None:
    async with Client.connect() as client, SharedInformerFactory(client) as informers:
        # A SharedInformer[Pod]: its handlers, streams, filters and index functions have a Pod too.
        pods = informers.informer("pods", model=Pod)
        await pods.add_index("node", lambda pod: pod.spec.nodeName)
        await informers.wait_synced(timeout=30)

        for node in nodes or sorted(pods.lister.index_values("node")):
            found = pods.lister.by_index("node", node)
            images = {container.image for pod in found for container in pod.spec.containers}
            print(f"{node}: {', '.join(sorted(images)) or 'nothing'}")
        for key in pods.health.rejected:  # pods that don't fit the model
            print(f"{key} does not fit the model")


asyncio.run(main(*sys.argv[1:2]))
