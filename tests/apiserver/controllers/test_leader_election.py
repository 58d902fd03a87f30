"""Electors on the real server: leases change hands, and nobody leads without a server."""

from __future__ import annotations

import asyncio
import signal
import time
from asyncio.subprocess import Process

import pytest

from aioinformer import Client, Fencing, LeaderElector
from aioinformer.errors import LeadershipLost, TransportError
from tests.apiserver.programs.elector_process import (
    LEASE_DURATION,
    RENEW_DEADLINE,
    RETRY_PERIOD,
    make_elector,
)
from tests.apiserver.programs.member_processes import running_member
from tests.apiserver.server.built_in_crds import install_leases
from tests.apiserver.server.server_process import ApiServerProcess
from tests.conftest import STALLS
from tests.cpu_time import Stopwatch
from tests.processes import send_signal

pytestmark = pytest.mark.apiserver

SLACK = 1.0
"""Seconds for which a busy machine may be late."""


async def line(process: Process, word: str) -> str:
    """Its next line that begins so; what follows in it."""
    assert process.stdout is not None
    async with asyncio.timeout(30):
        while text := (await process.stdout.readline()).decode():
            if text.startswith(word):
                return text.removeprefix(word).strip()
    raise AssertionError(f"it ended without saying {word!r}")


async def for_ever(elector: LeaderElector) -> None:
    async with elector.leading():
        await asyncio.get_running_loop().create_future()


async def test_a_follower_leads_soon_after_the_leader_releases_the_lease(
    api_server: ApiServerProcess,
) -> None:
    await install_leases(api_server)
    async with Client.connect(kubeconfig=api_server.kubeconfig) as client:
        first, second = make_elector(client, "a"), make_elector(client, "b")
        async with first.leading() as fencing:
            assert fencing == Fencing(0, "a")
            following = asyncio.create_task(for_ever(second))
            await asyncio.sleep(LEASE_DURATION + SLACK)
            assert second.fencing is None, "it is renewed"
        left = Stopwatch(STALLS)
        while not second.is_leader:  # noqa: ASYNC110 - it is seen from outside only
            await asyncio.sleep(0.01)
        assert second.leader == "b"
        assert left.seconds < 2.2 * RETRY_PERIOD + SLACK
        following.cancel()
        await asyncio.wait({following})


async def test_a_follower_leads_within_the_lease_time_after_the_leader_was_killed(
    api_server: ApiServerProcess,
) -> None:
    await install_leases(api_server)
    async with (
        Client.connect(kubeconfig=api_server.kubeconfig) as client,
        running_member("elector_process", api_server, "a") as process,
    ):
        assert await line(process, "leading") == "0/a"
        follower = make_elector(client, "b")
        following = asyncio.create_task(for_ever(follower))
        await asyncio.sleep(2 * RETRY_PERIOD * 2.2)  # it has seen who leads
        assert follower.leader == "a"
        send_signal(process, signal.SIGKILL)
        killed, awake = time.monotonic(), Stopwatch(STALLS)
        while not follower.is_leader:  # noqa: ASYNC110 - it is seen from outside only
            await asyncio.sleep(0.01)
        assert awake.seconds < LEASE_DURATION + 2.2 * RETRY_PERIOD + SLACK
        assert time.monotonic() - killed > LEASE_DURATION - RETRY_PERIOD - SLACK
        assert follower.fencing == Fencing(1, "b")
        following.cancel()
        await asyncio.wait({following})


async def test_a_leader_that_was_stopped_for_too_long_does_no_further_step_when_it_resumes(
    api_server: ApiServerProcess,
) -> None:
    await install_leases(api_server)
    async with (
        Client.connect(kubeconfig=api_server.kubeconfig) as client,
        running_member("elector_process", api_server, "a") as process,
    ):
        await line(process, "leading")
        for _ in range(3):
            await line(process, "step")
        await asyncio.sleep(0.01)  # while it waits: a step that has begun is not undone
        send_signal(process, signal.SIGSTOP)
        async with make_elector(client, "b").leading() as fencing:
            assert fencing == Fencing(1, "b")
            woken = time.monotonic()
            send_signal(process, signal.SIGCONT)
            steps = list[float]()
            assert process.stdout is not None
            while (words := (await process.stdout.readline()).decode().split())[0] == "step":
                steps.append(float(words[1]))
            assert words == ["lost"]
            assert not [step for step in steps if step > woken]


async def test_without_a_server_a_leader_stops_after_the_renew_deadline(
    api_server: ApiServerProcess,
) -> None:
    await install_leases(api_server)
    async with Client.connect(kubeconfig=api_server.kubeconfig) as client:
        elector = make_elector(client, "a")
        leading = asyncio.create_task(for_ever(elector))
        while not elector.is_leader:  # noqa: ASYNC110 - it is seen from outside only
            await asyncio.sleep(0.01)
        await api_server.kill()
        killed, awake = time.monotonic(), Stopwatch(STALLS)
        with pytest.raises(LeadershipLost, match="it was not renewed for 2 s") as caught:
            await leading
        assert awake.seconds < RENEW_DEADLINE + SLACK
        assert time.monotonic() - killed > RENEW_DEADLINE - RETRY_PERIOD - SLACK
        assert isinstance(caught.value.__cause__, TransportError)
        await api_server.start()
        async with asyncio.timeout(20), elector.leading() as fencing:
            assert fencing == Fencing(1, "a")
