"""The server of the soak test: pods that change at a rate, and a disturbance each 45 seconds.

    python -m benchmarks.soak.server --objects N --rate N

It prints its URL, and serves until its standard input is closed. Twenty times a second it changes
the pod ``soak/stamp``, whose annotation ``sent`` is the time of the write in nanoseconds of the
machine's monotonic clock, which all processes share. The disturbances in turn are: all watches
end; all watches break; the history is compacted and all watches end, so that the informers list
again; all watches end and requests are answered with 503 for a moment.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Callable, Sequence

from aioinformer.testing import ApiServer, Cluster
from aioinformer.testing.faults.faults import Fault
from aioinformer.testing.workload.apps import create_apps
from aioinformer.testing.workload.workload import PodWorkload
from aioinformer.testing.workload.write_rate import WriteRate

__all__ = ["STAMP", "STAMP_NAMESPACE"]

STAMP, STAMP_NAMESPACE = "stamp", "soak"
TICK = 0.02
STAMP_EVERY = 0.05
DISTURB_EVERY = 45.0
"""Seconds. Twenty of them without a failure end an outage, so that waits don't grow."""
SHORT = 0.01
"""Seconds for which a fault is on. Requests that follow a fault meet none."""


async def write(cluster: Cluster, workload: PodWorkload, rate: float) -> None:
    """Make the writes of the workload at the rate, and the stamps."""
    clock = asyncio.get_running_loop().time
    writes, due = WriteRate(workload, rate, clock()), clock()
    while True:
        await asyncio.sleep(TICK)
        writes.make_due(clock())
        if clock() >= due:
            due = clock() + STAMP_EVERY
            stamp = {"metadata": {"annotations": {"sent": str(time.monotonic_ns())}}}
            cluster.merge_patch("pods", STAMP, stamp, namespace=STAMP_NAMESPACE)


async def disturb(server: ApiServer) -> None:
    """Cause one disturbance after the other, for ever."""
    faults = server.faults

    def expire() -> Fault:
        server.cluster.compact()
        return faults.end_watches()

    disturbances: tuple[Callable[[], Sequence[Fault]], ...] = (
        lambda: [faults.end_watches()],
        lambda: [faults.reset(verb="watch")],
        lambda: [expire()],
        lambda: [faults.end_watches(), faults.status(503)],
    )
    while True:
        for switch_on in disturbances:
            await asyncio.sleep(DISTURB_EVERY)
            faults_on = switch_on()
            await asyncio.sleep(SHORT)
            for fault in faults_on:
                fault.end()


async def serve(objects: int, rate: float) -> None:
    """Serve until the standard input is closed."""
    cluster = Cluster()
    create_apps(cluster, objects)
    workload = PodWorkload(cluster, objects=objects, seed=0)
    workload.populate(objects)
    metadata = {"name": STAMP, "namespace": STAMP_NAMESPACE}
    cluster.create("namespaces", {"metadata": {"name": STAMP_NAMESPACE}})
    cluster.create("pods", {"metadata": metadata, "spec": {"containers": list[object]()}})
    async with ApiServer(cluster) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        async with asyncio.TaskGroup() as tasks:
            running = [
                tasks.create_task(write(cluster, workload, rate)),
                tasks.create_task(disturb(server)),
            ]
            await asyncio.to_thread(sys.stdin.read)
            for task in running:
                task.cancel()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--objects", type=int, required=True)
    parser.add_argument("--rate", type=float, required=True)
    options = parser.parse_args()
    asyncio.run(serve(options.objects, options.rate))
