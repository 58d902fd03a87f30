"""lightkube as a peer: a list of its models, then its watch loop.

lightkube has no cache and no listeners. This program is the loop that its users write by hand, with
a dict as the cache.
"""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Any

from benchmarks.load.meter import Sample
from benchmarks.peers.tally import SETTLE, Tally, release, report

__all__ = ["measure"]

lightkube: Any = import_module("lightkube")  # type checkers run without it
models: Any = import_module("lightkube.config.models")
Pod: Any = import_module("lightkube.resources.core_v1").Pod

ALL_NAMESPACES = "*"


def measure(server: str, pods: int, events: int) -> Sample:
    """List, then watch until ``events`` events have arrived."""
    return asyncio.run(_measure(server, pods, events))


async def _measure(server: str, pods: int, events: int) -> Sample:
    config = lightkube.KubeConfig.from_one(
        cluster=models.Cluster(server=server), user=models.User()
    )
    client: Any = lightkube.AsyncClient(config=config)
    tally = Tally()
    listed = client.list(Pod, namespace=ALL_NAMESPACES)
    async for pod in listed:
        tally.add(pod.metadata.name, pod.metadata.resourceVersion, pod)
    version = listed.resourceVersion
    tally.synced(pods)
    await asyncio.sleep(SETTLE)
    tally.settled()
    release(server)
    async for _, pod in client.watch(Pod, namespace=ALL_NAMESPACES, resource_version=version):
        tally.update(pod.metadata.name, pod.metadata.resourceVersion, pod)
        if tally.delivered == events:
            break
    tally.ended()
    return tally.sample


if __name__ == "__main__":
    report(measure, __doc__ or "")
