"""Groups on the real server: members share shards, leave, and are killed or stopped."""

from __future__ import annotations

import asyncio
import signal
import time
from asyncio.subprocess import Process

import pytest

from aioinformer import Client, ShardGroup
from tests.apiserver.programs.group_process import LEASE_DURATION, make_group
from tests.apiserver.programs.member_processes import running_member
from tests.apiserver.server.built_in_crds import install_leases
from tests.apiserver.server.server_process import ApiServerProcess
from tests.conftest import STALLS
from tests.cpu_time import Stopwatch
from tests.processes import send_signal

pytestmark = pytest.mark.apiserver

ALL = frozenset(range(64))


async def read_held(process: Process) -> frozenset[int]:
    """Return the shards of the next line that a member prints."""
    assert process.stdout is not None
    async with asyncio.timeout(30):
        line = (await process.stdout.readline()).decode()
    return frozenset(map(int, line.split()))


async def until_held(group: ShardGroup, shards: frozenset[int], *, seconds: float = 30) -> None:
    """Wait until a member holds these shards."""
    async with asyncio.timeout(seconds):
        while group.held != shards:  # noqa: ASYNC110 - it is seen from outside only
            await asyncio.sleep(0.01)


async def test_the_shards_of_a_leaving_member_are_taken_over_before_its_lease_expires(
    api_server: ApiServerProcess,
) -> None:
    await install_leases(api_server)
    async with Client.connect(kubeconfig=api_server.kubeconfig) as client:
        first, second = make_group(client, "a"), make_group(client, "b")
        async with first:
            async with second:
                await until_held(first, ALL - await second.wait_member(timeout=30))
                assert second.held
            left = Stopwatch(STALLS)
            await until_held(first, ALL)
            # The lease of a member that is killed lasts for as long.
            assert left.seconds < LEASE_DURATION


async def test_the_shards_of_a_killed_member_are_taken_over(api_server: ApiServerProcess) -> None:
    await install_leases(api_server)
    async with (
        Client.connect(kubeconfig=api_server.kubeconfig) as client,
        make_group(client, "a") as group,
    ):
        await group.wait_member(timeout=30)
        async with running_member("group_process", api_server, "b") as process:
            shards = await read_held(process)
            assert shards
            assert not shards & group.held
            send_signal(process, signal.SIGKILL)
            killed = time.monotonic()
            await until_held(group, ALL, seconds=LEASE_DURATION + 5)
            assert time.monotonic() - killed > LEASE_DURATION - 1.5


async def test_a_member_that_was_stopped_for_longer_than_its_lease_has_no_shard_when_it_resumes(
    api_server: ApiServerProcess,
) -> None:
    await install_leases(api_server)
    async with (
        Client.connect(kubeconfig=api_server.kubeconfig) as client,
        make_group(client, "a") as group,
    ):
        await group.wait_member(timeout=30)
        async with running_member("group_process", api_server, "b") as process:
            shards = await read_held(process)
            send_signal(process, signal.SIGSTOP)
            await until_held(group, ALL, seconds=LEASE_DURATION + 5)
            send_signal(process, signal.SIGCONT)
            assert await read_held(process) == frozenset()
            assert await read_held(process) == shards  # it joins again
            await until_held(group, ALL - shards)
