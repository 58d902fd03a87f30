"""Tests of each switch with an informer: over HTTP with a real client, and in memory.

A fault begins while the informer watches and other clients write. After the fault has ended, the
cache and the events of a listener must converge to the state of the server.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from aioinformer import BackoffPolicy, Client, SharedInformer, SharedInformerFactory
from aioinformer.testing import ApiServer, Cluster, ClusterSource, Fault, Faults
from tests.promises.conftest import wait_until
from tests.promises.event_recorder import RecordingHandler, check_event_order, states
from tests.promises.pod_workload import PodWorkload

QUICK = BackoffPolicy(initial=0.01, maximum=0.05)

SWITCHES: dict[str, Callable[[Faults], Fault]] = {
    "refuse": lambda faults: faults.refuse(),
    "reset at once": lambda faults: faults.reset(),
    "reset in the middle": lambda faults: faults.reset(after=100),
    "stall at once": lambda faults: faults.stall(),
    "stall in the middle": lambda faults: faults.stall(after=100),
    "drip": lambda faults: faults.drip(size=500, every=0.0005),
    "corrupt": lambda faults: faults.corrupt(after=2, put=b"\x00\xff"),
    "latency": lambda faults: faults.latency(0.005),
    "503": lambda faults: faults.status(503),
    "429": lambda faults: faults.status(429, verb="list"),
    "504 for watches": lambda faults: faults.status(504, verb="watch"),
    "401": lambda faults: faults.status(401),
    "forbid": lambda faults: faults.forbid(verb="list", resource="pods"),
    "410 for watches": lambda faults: faults.status(410, verb="watch", times=3),
    "drop bookmarks": lambda faults: faults.drop_bookmarks(),
    "delay bookmarks": lambda faults: faults.delay_bookmarks(1),
    "endless WatchList": lambda faults: faults.endless_watch_list(),
    "repeat bookmarks": lambda faults: faults.repeat_bookmarks(),
    "end watches": lambda faults: faults.end_watches(),
    "error event 410": lambda faults: faults.error_event(410),
    "error event 500": lambda faults: faults.error_event(500),
}
UNSEEN = ("drop bookmarks", "delay bookmarks", "endless WatchList", "repeat bookmarks")
"""The switches without an effect here: they show after a minute, or in a WatchList."""


@dataclass(slots=True)
class Harness:
    """A workload of writes, an informer of the written pods, and a listener."""

    cluster: Cluster
    faults: Faults
    workload: PodWorkload
    pods: SharedInformer
    recorder: RecordingHandler

    async def converge(self) -> None:
        """Wait until the cache and the listener agree with the server."""
        await wait_until(lambda: states(self.pods.lister) == self.workload.current_state)
        await wait_until(
            lambda: check_event_order(self.recorder.events) == self.workload.current_state
        )


@asynccontextmanager
async def harness(
    cluster: Cluster, faults: Faults, source: Client | ClusterSource
) -> AsyncGenerator[Harness]:
    workload = PodWorkload(cluster, seed=1)
    workload.apply_changes(30)
    async with SharedInformerFactory(source, backoff=QUICK) as informers:
        pods = informers.informer("pods")
        recorder = RecordingHandler(pods)
        pods.add_handler(recorder)
        await informers.wait_synced(30)
        yield Harness(cluster, faults, workload, pods, recorder)


@asynccontextmanager
async def running_over_http() -> AsyncGenerator[tuple[ApiServer, Harness]]:
    """Run the harness over HTTP."""
    async with (
        ApiServer() as server,
        Client(server.url) as client,
        harness(server.cluster, server.faults, client) as running,
    ):
        yield server, running


async def converge_after(harness: Harness, name: str) -> None:
    """Make the informer list and watch again under a fault, end the fault, wait for convergence."""
    fault = SWITCHES[name](harness.faults)
    harness.workload.apply_changes(20)
    harness.cluster.compact()  # the next watch is answered with 410, so the informer lists
    harness.faults.reset(verb="watch", times=1)
    if name not in UNSEEN:
        await wait_until(lambda: fault.hits > 0 or harness.faults.refusing)
    harness.workload.apply_changes(20)
    fault.end()
    harness.workload.apply_changes(20)
    await harness.converge()


@pytest.mark.filterwarnings("ignore:the fault .* has concerned no request")  # of UNSEEN
@pytest.mark.parametrize("name", SWITCHES)
async def test_an_informer_over_http_converges_after_each_fault(name: str) -> None:
    async with running_over_http() as (_, running):
        await converge_after(running, name)


@pytest.mark.parametrize("name", SWITCHES)
async def test_an_informer_in_memory_converges_after_each_fault(name: str) -> None:
    cluster, faults = Cluster(), Faults()
    async with harness(cluster, faults, ClusterSource(cluster, faults)) as running:
        await converge_after(running, name)


async def test_an_informer_converges_after_a_compaction() -> None:
    async with running_over_http() as (server, running):
        running.workload.apply_changes(20)
        server.cluster.compact()
        server.drop_connections()
        running.workload.apply_changes(20)
        await running.converge()


async def test_an_informer_converges_after_restarts() -> None:
    async with running_over_http() as (server, running):
        for _ in range(3):
            running.workload.apply_changes(20)
            await server.restart()
            running.workload.apply_changes(20)
        await running.converge()


async def test_an_informer_converges_after_a_rewind_once_it_lists_again() -> None:
    """A watch from a future version sends nothing, so only a list shows that time went back.

    Here the server passes the version that the informer waits for, and compacts it away.
    """
    async with running_over_http() as (server, running):
        past, then = server.cluster.snapshot(), dict(running.workload.current_state)
        running.workload.apply_changes(20)
        await running.converge()
        rewound = server.cluster.resource_version
        await server.restart(state=past)
        running.workload.current_state.clear()
        running.workload.current_state.update(then)
        while server.cluster.resource_version <= rewound:
            running.workload.apply_changes()
        server.cluster.compact()
        server.drop_connections()
        await wait_until(lambda: states(running.pods.lister) == running.workload.current_state)
