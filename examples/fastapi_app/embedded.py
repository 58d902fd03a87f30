"""A cluster of the application's own, that never rests: pods come, live and go.

It is the embedded API server, and its pods are those of ``aioinformer demo``. Who runs the
application against a real cluster needs nothing of this.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any

import msgspec

from aioinformer import BackoffPolicy
from aioinformer._cli.demo.pods import APPS, NODES
from aioinformer._cli.demo.workload import PodWorkload
from aioinformer.testing import ApiServer, Cluster

__all__ = ["IMPATIENT", "Embedded", "embedded"]

IMPATIENT = BackoffPolicy(initial=0.5, maximum=1.0, jitter=0.5, reset_after=5.0)
"""Waits after failures: somebody stopped the server on purpose, and looks at what happens."""

TICK = 0.1
"""Seconds between two rounds of writes."""
BATCH = 250
"""Pods created at first between two looks at the loop."""
RECKONING = 1.0
"""Seconds between two times that deployments are brought up to date."""

_Phases = msgspec.json.Decoder(dict[str, Any])


class Embedded:
    """An API server, and what happens in its cluster."""

    def __init__(self, *, objects: int, rate: float) -> None:
        """Prepare a cluster of about so many pods, with so many writes a second."""
        cluster = Cluster(clock=lambda: datetime.now(UTC))
        self.server = ApiServer(cluster)
        self._churn = PodWorkload(cluster, objects=objects, seed=1)
        self._objects = objects
        self._rate = rate
        self._away: asyncio.Task[None] | None = None

    async def fill(self) -> None:
        """Create what is there at first."""
        _furnish(self.server.cluster, self._objects)
        filled = False
        while not filled:
            filled = self._churn.populate(BATCH)
            await asyncio.sleep(0)
        self._reckon()

    async def live(self) -> None:
        """Write until cancelled."""
        clock = asyncio.get_running_loop().time
        start, written, reckoned = clock(), 0, clock()
        while True:
            await asyncio.sleep(TICK)
            due = int((clock() - start) * self._rate)
            for _ in range(min(due - written, BATCH)):
                self._churn.step()
            written = due
            if clock() - reckoned >= RECKONING:
                self._reckon()
                reckoned = clock()

    def _reckon(self) -> None:
        """Have the deployments say how many of their pods are running."""
        cluster = self.server.cluster
        pods = _Phases.decode(cluster.list("pods", fields="status.phase=Running"))["items"]
        running = Counter(pod["metadata"]["labels"]["app.kubernetes.io/name"] for pod in pods)
        for app in APPS:
            status = {"readyReplicas": running[app.name], "replicas": running[app.name]}
            cluster.merge_patch(
                "deployments", app.name, {"status": status}, namespace=app.namespace
            )

    def stop_for(self, seconds: float) -> None:
        """Have the server be gone for a while, as in a crash; nothing if it is gone already."""
        if self._away is None or self._away.done():
            self._away = asyncio.create_task(self._stop(seconds), name="outage")

    async def _stop(self, seconds: float) -> None:
        await self.server.stop()
        await asyncio.sleep(seconds)
        await self.server.restart()

    async def aclose(self) -> None:
        """End an outage that goes on."""
        if self._away is not None:
            await _cancel(self._away)

    def __repr__(self) -> str:
        return f"<Embedded {self.server!r} {self._churn!r}>"


@asynccontextmanager
async def embedded(*, objects: int, rate: float) -> AsyncGenerator[Embedded]:
    """An embedded cluster that lives for as long as the block does."""
    cluster = Embedded(objects=objects, rate=rate)
    await cluster.fill()
    async with cluster.server:
        life = asyncio.create_task(cluster.live(), name="life of the embedded cluster")
        try:
            yield cluster
        finally:
            await cluster.aclose()
            await _cancel(life)


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def _furnish(cluster: Cluster, objects: int) -> None:
    """Nodes, deployments and services for about so many pods."""
    weights = sum(app.weight for app in APPS)
    for name in NODES:
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        info = {"kubeletVersion": "v1.36.1", "osImage": "Debian GNU/Linux 12 (bookworm)"}
        labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"z{name[-1]}"}
        status = {"conditions": [ready], "nodeInfo": info}
        cluster.create("nodes", {"metadata": {"name": name, "labels": labels}, "status": status})
    for number, app in enumerate(APPS):
        labels = {"app.kubernetes.io/name": app.name, "app.kubernetes.io/part-of": app.namespace}
        metadata = {"name": app.name, "namespace": app.namespace, "labels": labels}
        spec: dict[str, Any] = {
            "replicas": objects * app.weight // weights,
            "selector": {"matchLabels": labels},
        }
        cluster.create("deployments", {"metadata": metadata, "spec": spec})
        ports = [{"name": "http", "port": app.port, "protocol": "TCP"}]
        spec = {"type": "ClusterIP", "clusterIP": f"10.96.12.{number + 10}", "ports": ports}
        cluster.create("services", {"metadata": metadata, "spec": spec | {"selector": labels}})
