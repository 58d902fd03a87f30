"""Change the image of a deployment, and wait until the new version runs everywhere.

python examples/08_wait_for_rollout.py [DEPLOYMENT [IMAGE [NAMESPACE]]]

The deployment's first container gets the image. The wait has the rules of ``kubectl rollout
status``. It uses the watch of an informer, so that a deployment script of many services needs one
connection for all of them.
"""

import asyncio
import sys

from aioinformer import Client, SharedInformerFactory
from aioinformer.conditions import rollout_complete
from aioinformer.errors import CacheWaitTimeout, NotFound


async def main(name: str = "web", image: str = "nginx", namespace: str = "default") -> None:
    async with (
        Client.connect() as client,
        SharedInformerFactory(client, namespace=namespace) as informers,
    ):
        deployments = informers.informer("deployments")
        await informers.wait_synced(timeout=30)
        api = client.api(deployments.resource, namespace=namespace)

        path = "/spec/template/spec/containers/0/image"
        try:
            written = await api.patch(name, [{"op": "replace", "path": path, "value": image}])
        except NotFound as error:
            sys.exit(f"not changed: {error}")
        # The cache must not show the old version, whose rollout was complete.
        await deployments.wait_for(written, timeout=10)
        print("changed:", name, "to", image)
        try:
            done = await deployments.wait_until(written.key, rollout_complete, timeout=300)
        except CacheWaitTimeout as error:
            sys.exit(f"not rolled out: {error}")
        print("rolled out:", done["status"]["updatedReplicas"], "replicas of", image)


asyncio.run(main(*sys.argv[1:4]))
