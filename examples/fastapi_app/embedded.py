"""The application's embedded cluster, whose pods change all the time.

The cluster is an embedded API server with the pods of ``aioinformer demo``. A service for a real
cluster needs nothing of this module.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime

from aioinformer import BackoffPolicy, KubeObject, fields
from aioinformer.testing import ApiServer, Cluster
from aioinformer.testing.workload.apps import create_apps
from aioinformer.testing.workload.pods import APPS
from aioinformer.testing.workload.workload import PodWorkload
from aioinformer.testing.workload.write_rate import WriteRate

__all__ = ["SHORT_BACKOFF", "Embedded", "embedded", "running_app"]

SHORT_BACKOFF = BackoffPolicy(initial=0.5, maximum=1.0, jitter=0.5, reset_after=5.0)
"""Short waits after failures, since a user stops the server on purpose and watches the recovery."""

TICK = 0.1
"""Seconds between two rounds of writes."""
BATCH = 250
"""Pods created at the start before the function yields to the loop."""
STATUS_INTERVAL = 1.0
"""Seconds between two updates of the deployments' status."""

_PHASE = fields("status.phase")


def running_app(pod: KubeObject) -> list[str]:
    """Return the application of a running pod; an index function."""
    return [pod.labels["app.kubernetes.io/name"]] if _PHASE(pod) == ("Running",) else []


class Embedded:
    """An API server with a workload in its cluster."""

    def __init__(self, *, objects: int, rate: float) -> None:
        """Prepare a cluster of about ``objects`` pods, with ``rate`` writes a second."""
        cluster = Cluster(clock=lambda: datetime.now(UTC))
        self.server = ApiServer(cluster)
        self._workload = PodWorkload(cluster, objects=objects, seed=1)
        self._objects = objects
        self._rate = rate
        self._outage: asyncio.Task[None] | None = None
        self._count_running: Callable[[], Mapping[str, int]] = dict

    def count_running(self, count: Callable[[], Mapping[str, int]]) -> None:
        """Write the numbers that ``count`` returns to the Deployments: running pods by application.

        The numbers come from an index of an informer. To list and count 50,000 pods each second
        would hold the event loop for a second.
        """
        self._count_running = count

    async def fill(self) -> None:
        """Create the initial objects."""
        create_apps(self.server.cluster, self._objects)
        populated = False
        while not populated:
            populated = self._workload.populate(BATCH)
            await asyncio.sleep(0)
        self._update_deployments()

    async def live(self) -> None:
        """Write until cancelled."""
        clock = asyncio.get_running_loop().time
        writes, updated = WriteRate(self._workload, self._rate, clock()), clock()
        while True:
            await asyncio.sleep(TICK)
            writes.make_due(clock())
            if clock() - updated >= STATUS_INTERVAL:
                self._update_deployments()
                updated = clock()

    def _update_deployments(self) -> None:
        """Write the number of running pods to the status of each deployment."""
        running = self._count_running()
        for app in APPS:
            number = running.get(app.name, 0)
            self.server.cluster.merge_patch(
                "deployments",
                app.name,
                {"status": {"readyReplicas": number, "replicas": number}},
                namespace=app.namespace,
            )

    def stop_for(self, seconds: float) -> None:
        """Stop the server for a while, as in a crash; do nothing if it is stopped already."""
        if self._outage is None or self._outage.done():
            self._outage = asyncio.create_task(self._stop(seconds), name="outage")

    async def _stop(self, seconds: float) -> None:
        await self.server.stop()
        await asyncio.sleep(seconds)
        await self.server.restart()

    async def aclose(self) -> None:
        """End a running outage."""
        if self._outage is not None:
            await _cancel(self._outage)

    def __repr__(self) -> str:
        return f"<Embedded {self.server!r} {self._workload!r}>"


@asynccontextmanager
async def embedded(*, objects: int, rate: float) -> AsyncGenerator[Embedded]:
    """Run an embedded cluster for the length of a block."""
    cluster = Embedded(objects=objects, rate=rate)
    await cluster.fill()
    async with cluster.server:
        task = asyncio.create_task(cluster.live(), name="workload of the embedded cluster")
        try:
            yield cluster
        finally:
            await cluster.aclose()
            await _cancel(task)


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
