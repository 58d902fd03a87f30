"""Watch the pods of several namespaces with the rights of a Role in each of them.

python examples/06_namespaced_roles.py NAMESPACE...

No request concerns all namespaces, so that no ClusterRole is needed: a Role with ``list`` and
``watch`` of pods in each namespace suffices. A namespace that refuses is named, and the pods of the
others are shown all the same.
"""

import asyncio
import sys
from contextlib import suppress

from aioinformer import Added, Client, Deleted, Scope, SharedInformerFactory, Updated
from aioinformer.errors import SyncTimeout


async def main(*namespaces: str) -> None:
    async with (
        Client.connect() as client,
        SharedInformerFactory(client) as informers,
    ):
        # ``Scope(labels=...)`` would select pods. A mandatory namespace has ``optional=False``, and
        # ``wait_synced`` waits until it is permitted.
        scopes = {namespace: Scope(optional=True) for namespace in namespaces or ("default",)}
        pods = informers.informer("pods", namespaces=scopes)
        try:
            await informers.wait_synced(timeout=30)
        except SyncTimeout as error:
            sys.exit(f"{error}")

        for scope in pods.health.scopes:
            count = len(pods.lister.list(namespace=scope.namespace))
            print(f"{scope.namespace}: {scope.error or f'{count} pods'}")

        async with pods.events() as events:
            async for event in events:
                match event:
                    case Added(pod, initial):
                        print("=" if initial else "+", pod.key, flush=True)
                    case Deleted(pod, reason):
                        print("-", pod.key, reason, flush=True)
                    case Updated(_, pod):
                        print("~", pod.key, flush=True)


with suppress(KeyboardInterrupt):
    asyncio.run(main(*sys.argv[1:]))
