"""Report the ConfigMaps that no pod mentions, without reading what the ConfigMaps contain.

python examples/07_unused_configmaps.py [NAMESPACE]

ConfigMaps may be large, and the report needs their names and ages only. An informer with
``metadata_only=True`` asks the server for the metadata alone.
"""

import asyncio
import sys
from collections.abc import Iterator
from typing import Any

from aioinformer import ALL_NAMESPACES, Client, KubeObject, ObjectKey, SharedInformerFactory


def mentioned_configmaps(pod: KubeObject) -> Iterator[str]:
    """Yield the names of the ConfigMaps that a pod mounts or reads its environment from."""
    spec: dict[str, Any] = pod.to_dict().get("spec", {})
    for volume in spec.get("volumes", []):
        for source in (volume, *volume.get("projected", {}).get("sources", [])):
            if "configMap" in source:
                yield source["configMap"]["name"]
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(kind, []):
            for source in container.get("envFrom", []):
                if "configMapRef" in source:
                    yield source["configMapRef"]["name"]
            for variable in container.get("env", []):
                if reference := variable.get("valueFrom", {}).get("configMapKeyRef"):
                    yield reference["name"]


async def main(namespace: str = ALL_NAMESPACES) -> None:
    async with (
        Client.connect() as client,
        SharedInformerFactory(client, namespace=namespace) as informers,
    ):
        pods = informers.informer("pods").lister
        configmaps = informers.informer("configmaps", metadata_only=True).lister
        await informers.wait_synced(timeout=60)

        used = {
            ObjectKey(pod.namespace, name)
            for pod in pods.list()
            for name in mentioned_configmaps(pod)
        }
        # A ConfigMap with an owner is removed by Kubernetes together with the owner.
        unused = [
            each for each in configmaps.list() if each.key not in used and not each.owner_references
        ]
        for each in sorted(unused, key=lambda found: found.key):
            print(f"{each.key}, created {each.creation_timestamp or 'at an unknown time'}")
        print(f"{len(unused)} of {len(configmaps)} ConfigMaps are mentioned by no pod")


asyncio.run(main(*sys.argv[1:2]))
