"""kr8s as a peer: a list of its objects in pages of 100, then its watch loop.

kr8s has no cache and no listeners. This program is the loop that its users write by hand, with a
dict as the cache.
"""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Any

from benchmarks.load.meter import Sample
from benchmarks.peers.tally import SETTLE, Tally, release, report

__all__ = ["measure"]

kr8s: Any = import_module("kr8s.asyncio")  # type checkers run without it
Pod: Any = import_module("kr8s.asyncio.objects").Pod
ALL_NAMESPACES: Any = import_module("kr8s").ALL


def measure(server: str, pods: int, events: int) -> Sample:
    """List, then watch until ``events`` events have arrived."""
    return asyncio.run(_measure(server, pods, events))


async def _measure(server: str, pods: int, events: int) -> Sample:
    api: Any = await kr8s.api(url=server)
    tally = Tally()
    version = ""
    async for pod in api.get(Pod, namespace=ALL_NAMESPACES):
        version = pod.metadata.resourceVersion
        tally.add(pod.metadata.name, version, pod)
    tally.synced(pods)
    await asyncio.sleep(SETTLE)
    tally.settled()
    release(server)
    # kr8s doesn't return the version of a list; its users watch since the last object's.
    async for _, pod in api.watch(Pod, namespace=ALL_NAMESPACES, since=version):
        tally.update(pod.metadata.name, pod.metadata.resourceVersion, pod)
        if tally.delivered == events:
            break
    tally.ended()
    return tally.sample


if __name__ == "__main__":
    report(measure, __doc__ or "")
