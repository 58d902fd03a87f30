"""Interruptions of the demo's server, and the description of the recovery."""

from __future__ import annotations

from aioinformer import Health, Problem
from aioinformer._cli.demo.interruptions import DemoFaults
from aioinformer.errors import ConnectionLost
from aioinformer.testing import ApiServer


def health(*, well: bool) -> Health:
    return Health(
        state="watching" if well else "waiting",
        since=0.0,
        error=None if well else ConnectionLost("broken off", phase="watch"),
        retry_in=None if well else 0.5,
        synced=True,
        resource_version="1",
        objects=0,
        rejected=(),
        blocked_by=(),
    )


WELL, ILL = health(well=True), health(well=False)
PROBLEM = Problem(
    informer="pods",
    phase="watch",
    cause="connection_lost",
    error=ConnectionLost("reset", phase="watch"),
)


async def test_no_fault_happens_in_the_first_seconds() -> None:
    async with ApiServer() as server:
        interruptions = DemoFaults(server, seconds=0)
        await interruptions.step(3.9, WELL)

        assert interruptions.describe(3.9) == ""
        assert not interruptions.recovering


async def test_recovery_is_measured_after_the_informer_has_reported_the_failure() -> None:
    async with ApiServer() as server:
        interruptions = DemoFaults(server, seconds=0)
        await interruptions.step(4.0, WELL)
        await interruptions.step(4.02, WELL)
        assert interruptions.describe(4.1) == "connections dropped 0.1 s ago, recovering"

        await interruptions.step(4.1, ILL)
        await interruptions.step(4.7, WELL)

        assert interruptions.describe(5.0) == "connections dropped 1.0 s ago, recovered in 0.7 s"
        assert repr(interruptions) == "<DemoFaults 1, 1 recovered>"


async def test_an_informer_that_watches_again_at_once_has_recovered() -> None:
    async with ApiServer() as server:
        interruptions = DemoFaults(server, seconds=0)
        await interruptions.step(4.0, WELL)
        interruptions.notice(PROBLEM)
        await interruptions.step(4.02, WELL)

        assert interruptions.recovered == 1
        assert not interruptions.recovering


async def test_the_second_fault_compacts_the_history() -> None:
    async with ApiServer() as server:
        before = server.cluster.create("nodes", {"metadata": {"name": "n1"}})
        server.cluster.create("nodes", {"metadata": {"name": "n2"}})
        interruptions = DemoFaults(server, seconds=0)
        await interruptions.step(4.0, WELL)
        await interruptions.step(12.0, WELL)

        version = before["metadata"]["resourceVersion"]
        watch = server.cluster.watch("nodes", now=0, resource_version=version)
        assert b'"code":410' in watch.take(0)[0]


async def test_the_third_fault_stops_the_server_for_a_while() -> None:
    async with ApiServer() as server:
        interruptions = DemoFaults(server, seconds=0)
        for now in (4.0, 12.0, 20.0):
            await interruptions.step(now, WELL)
        assert not server.running

        await interruptions.step(21.6, ILL)
        assert server.running


async def test_no_fault_happens_shortly_before_the_end_and_the_server_is_restored() -> None:
    async with ApiServer() as server:
        interruptions = DemoFaults(server, seconds=20.5)
        for now in (4.0, 12.0, 20.0):
            await interruptions.step(now, WELL)
        assert interruptions.count == 2

        await server.stop()
        await interruptions.restore_server()
        assert server.running


async def test_a_short_demo_is_interrupted_early() -> None:
    async with ApiServer() as server:
        interruptions = DemoFaults(server, seconds=2)
        await interruptions.step(0.8, WELL)

        assert interruptions.count == 1
