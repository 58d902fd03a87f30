"""The sample controller on the real server, as two processes; the leader is killed."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml

from aioinformer import Client
from tests.apiserver.server.built_in_crds import install_events, install_leases
from tests.apiserver.server.server_process import ApiServerProcess, install_crd
from tests.conftest import STALLS
from tests.cpu_time import Stopwatch
from tests.examples.sample_controller import Foos, check_sample_controller, eventually
from tests.processes import send_signal, start_process

pytestmark = pytest.mark.apiserver

ROOT = Path(__file__).parents[3]
CRDS = ROOT / "examples" / "sample_controller" / "crds.yaml"

LEASE = 3.0
RETRY = 0.25
SLACK = 2.0
"""Seconds for which a busy machine may be late."""


@asynccontextmanager
async def replica(server: ApiServerProcess, identity: str) -> AsyncGenerator[Process]:
    """Run the program in a process of its own, which is killed at the end."""
    times = ("--lease-duration", LEASE, "--renew-deadline", 2.0, "--retry-period", RETRY)
    process = await start_process(
        sys.executable,
        *("-m", "examples.sample_controller"),
        *("--kubeconfig", str(server.kubeconfig), "--identity", identity),
        *map(str, times),
        stderr=PIPE,
        cwd=ROOT,
    )
    try:
        yield process
    finally:
        send_signal(process, signal.SIGKILL)
        await process.communicate()


async def leads(process: Process) -> None:
    """Wait until it says that it leads."""
    lines = list[str]()
    assert process.stderr is not None
    async with asyncio.timeout(20):
        while line := (await process.stderr.readline()).decode():
            lines.append(line)
            if " leads default/sample-controller" in line:
                return
    raise AssertionError(f"it ended without leading: {''.join(lines)}")


@asynccontextmanager
async def prepared(server: ApiServerProcess) -> AsyncGenerator[Client]:
    """Return a client of a server that has the definitions that the program needs."""
    await install_leases(server)
    await install_events(server)
    for crd in yaml.safe_load_all(CRDS.read_text()):
        await install_crd(server, crd)
    async with Client.connect(kubeconfig=server.kubeconfig) as client:
        yield client


@pytest.mark.timeout(180)
async def test_the_second_of_two_replicas_takes_over_when_the_first_is_killed(
    api_server: ApiServerProcess,
) -> None:
    async with prepared(api_server) as client, replica(api_server, "a") as first:
        foos = Foos(client)
        await leads(first)
        async with replica(api_server, "b") as second:
            await check_sample_controller(foos)

            send_signal(first, signal.SIGKILL)
            killed = Stopwatch(STALLS)
            await foos.scale("example", 5)
            await leads(second)
            assert killed.seconds < LEASE + 2.2 * RETRY + SLACK
            await eventually(lambda: _at(foos, "web", 5))
            await foos.workloads.delete("web")
            await eventually(lambda: foos.workload("web"))

            send_signal(second, signal.SIGTERM)
            async with asyncio.timeout(10):
                assert await second.wait() == 0
            lease = await client.api("leases").get("default/sample-controller")
            assert not lease["spec"].get("holderIdentity")
            assert lease["spec"]["leaseTransitions"] >= 1


async def _at(foos: Foos, workload: str, replicas: int) -> bool:
    return await foos.replicas(workload) == replicas
