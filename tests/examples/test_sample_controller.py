"""The sample controller against the embedded server: what Foos get, and two replicas of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml

from aioinformer import Client, Operator
from aioinformer.testing import ApiServer, Cluster
from examples.sample_controller.controller import make_operator
from examples.sample_controller.kinds import FOOS, WORKLOADS
from examples.sample_controller.settings import Settings
from tests.examples.sample_controller import Foos, check_sample_controller, equals, eventually
from tests.promises.conftest import wait_until

FOLDER = Path(__file__).parent.parent.parent / "examples" / "sample_controller"


@pytest.fixture
async def client() -> AsyncGenerator[Client]:
    cluster = Cluster()
    for resource in (FOOS, WORKLOADS):
        cluster.add_resource(resource, status=True)
    async with ApiServer(cluster) as server, Client(server.url) as client:
        yield client


def replica(client: Client, identity: str) -> Operator:
    times = ("--lease-duration=30", "--renew-deadline=20", "--retry-period=0.02")
    return make_operator(client, Settings.parse(["--identity", identity, *times]))


@asynccontextmanager
async def running(it: Operator) -> AsyncGenerator[asyncio.Task[None]]:
    """Run a replica until the block ends."""
    task = asyncio.create_task(it.run())
    try:
        yield task
    finally:
        it.stop()
        await task


async def test_a_foo_gets_a_workload_that_follows_it(client: Client) -> None:
    async with running(replica(client, "a")):
        await check_sample_controller(Foos(client))


async def test_the_garbage_collector_deletes_the_workload_of_a_deleted_foo(client: Client) -> None:
    async with running(replica(client, "a")):
        foos = Foos(client)
        await foos.create("example", "web", 1)
        await eventually(lambda: foos.workload("web"))
        await foos.foos.delete("example")
        await eventually(lambda: equals(foos.workload("web"), {}))


async def test_a_second_replica_leads_after_the_first_one_stops(client: Client) -> None:
    foos, first, second = Foos(client), replica(client, "a"), replica(client, "b")
    async with running(first) as working:
        await wait_until(lambda: first.is_leader)
        async with running(second):
            await foos.create("example", "web", 1)
            await eventually(lambda: foos.workload("web"))
            assert not second.is_leader
            first.stop()
            await working  # it finishes what it does, and gives the lease back
            # Before the lease would be over.
            await wait_until(lambda: second.is_leader, timeout=20)
            await foos.workloads.delete("web")
            await eventually(lambda: foos.workload("web"))


async def test_a_replica_that_does_not_lead_stops_at_once(client: Client) -> None:
    first, second = replica(client, "a"), replica(client, "b")
    async with running(first):
        await wait_until(lambda: first.is_leader)
        async with running(second) as waiting:
            await asyncio.sleep(0.05)
            second.stop()
            await asyncio.wait({waiting}, timeout=20)
            assert waiting.done()
        assert first.is_leader


def test_the_definitions_are_those_of_the_kinds() -> None:
    definitions = list(yaml.safe_load_all((FOLDER / "crds.yaml").read_text()))
    for resource, crd in zip((FOOS, WORKLOADS), definitions, strict=True):
        spec = crd["spec"]
        assert crd["metadata"]["name"] == str(resource)
        assert (spec["group"], spec["names"]["kind"]) == (resource.group, resource.kind)
        (version,) = spec["versions"]
        assert version["name"] == resource.version
        assert "status" in version["subresources"]
    foo = yaml.safe_load((FOLDER / "foo.yaml").read_text())
    assert (foo["apiVersion"], foo["kind"]) == (FOOS.api_version, FOOS.kind)


def test_the_command_line_has_the_options_of_the_operator() -> None:
    settings = Settings.parse(["--identity", "a", "-n", "web", "--lease-duration", "5"])
    assert settings.operator["leader_election"] == "default/sample-controller"
    assert {"identity": "a", "namespace": "web", "lease_duration": 5.0}.items() <= (
        settings.operator.items()
    )
