"""kubernetes_asyncio as a peer: a list that is decoded to models, then its ``Watch`` loop.

kubernetes_asyncio has no cache and no listeners. This program is the loop that its users write by
hand, with a dict as the cache.
"""

from __future__ import annotations

import asyncio
from typing import Any

from kubernetes_asyncio import client, watch

from benchmarks.load.meter import Sample
from benchmarks.peers.tally import SETTLE, Tally, release, report

__all__ = ["measure"]


def measure(server: str, pods: int, events: int) -> Sample:
    """List, then watch until ``events`` events have arrived."""
    return asyncio.run(_measure(server, pods, events))


async def _measure(server: str, pods: int, events: int) -> Sample:
    api: Any = client.ApiClient(client.Configuration(host=server))  # the package has no types
    async with api:
        core: Any = client.CoreV1Api(api)
        tally = Tally()
        listed = await core.list_pod_for_all_namespaces()
        version = listed.metadata.resource_version
        for pod in listed.items:
            tally.add(pod.metadata.name, pod.metadata.resource_version, pod)
        tally.synced(pods)
        del listed
        await asyncio.sleep(SETTLE)
        tally.settled()
        release(server)
        loop: Any = watch.Watch()
        async with loop:
            stream = loop.stream(core.list_pod_for_all_namespaces, resource_version=version)
            async for event in stream:
                pod = event["object"]
                tally.update(pod.metadata.name, pod.metadata.resource_version, pod)
                if tally.delivered == events:
                    break
        tally.ended()
    return tally.sample


if __name__ == "__main__":
    report(measure, __doc__ or "")
