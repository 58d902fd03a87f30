"""kubernetes_asyncio as a peer: a list that is decoded to models, then its ``Watch`` loop.

kubernetes_asyncio has no cache and no listeners. This program is the loop that its users write by
hand, without any further work.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import Any

import aiohttp
import msgspec
from kubernetes_asyncio import client, watch

from benchmarks.meter import Sample, Stopwatch
from benchmarks.pods import digest

__all__ = ["measure"]


async def measure(server: str, events: int) -> Sample:
    """List, then watch until ``events`` events have arrived."""
    api: Any = client.ApiClient(client.Configuration(host=server))  # the package has no types
    async with api:
        core: Any = client.CoreV1Api(api)
        stopwatch = Stopwatch()
        listed = await core.list_pod_for_all_namespaces()
        sync_wall, sync_cpu = stopwatch.stop()
        last = {pod.metadata.name: pod.metadata.resource_version for pod in listed.items}
        stopwatch, delivered = Stopwatch(), 0
        release = asyncio.create_task(_release(server))
        loop: Any = watch.Watch()
        async with loop:
            version = listed.metadata.resource_version
            events_since = loop.stream(core.list_pod_for_all_namespaces, resource_version=version)
            async for event in events_since:
                metadata = event["object"].metadata
                last[metadata.name] = metadata.resource_version
                delivered += 1
                if delivered == events:
                    break
        events_wall, events_cpu = stopwatch.stop()
        await release
    return Sample(
        sync_wall=sync_wall,
        sync_cpu=sync_cpu,
        events_wall=events_wall,
        events_cpu=events_cpu,
        delivered=delivered,
        digest=digest(last),
    )


async def _release(server: str) -> None:
    async with aiohttp.ClientSession(server) as session, session.post("/go"):
        pass


def main() -> None:
    """Measure and print the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", required=True)
    parser.add_argument("--events", type=int, required=True)
    arguments = parser.parse_args()
    sample = asyncio.run(measure(arguments.server, arguments.events))
    sys.stdout.buffer.write(msgspec.json.encode(sample) + b"\n")


if __name__ == "__main__":
    main()
