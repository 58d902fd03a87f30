"""Print the pods of a namespace, or of all namespaces, then their changes, until Ctrl-C.

python examples/01_print_pods.py [NAMESPACE]
"""

import asyncio
import sys
from contextlib import suppress

from aioinformer import ALL_NAMESPACES, Added, Client, Deleted, SharedInformerFactory, Updated


async def main(namespace: str = ALL_NAMESPACES) -> None:
    async with (
        Client.connect() as client,  # kubeconfig, else the pod's own credentials
        SharedInformerFactory(client, namespace=namespace) as informers,
        informers.informer("pods").events() as events,
    ):
        async for event in events:
            match event:
                case Added(pod, initial):
                    print("=" if initial else "+", pod.key)
                case Updated(old, new):
                    print("~", new.key, old.resource_version, "->", new.resource_version)
                case Deleted(pod, reason):
                    print("-", pod.key, reason)


with suppress(KeyboardInterrupt):
    asyncio.run(main(*sys.argv[1:2]))
