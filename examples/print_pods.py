"""Print what happens to the pods of a namespace, until Ctrl-C.

python print_pods.py [NAMESPACE]
"""

import asyncio
import sys

from aioinformer import Added, Client, Deleted, SharedInformerFactory, Updated


async def main(namespace: str) -> None:
    async with (
        Client.connect() as client,
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


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "default"))
    except KeyboardInterrupt:
        sys.exit(130)
