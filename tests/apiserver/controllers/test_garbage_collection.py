"""Owner references of an operator under the garbage collector of Kubernetes, on the real server.

The collector is that of kube-controller-manager, built from the published modules.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from aioinformer import Client, KubeObject, ObjectKey, Operator, ReconcileContext
from aioinformer.errors import NotFound
from examples.sample_controller.kinds import FOOS, WORKLOADS
from tests.apiserver.controllers.test_sample_controller import prepared
from tests.apiserver.server.build import KUBERNETES, BuildUnavailable, build_cached
from tests.apiserver.server.server_process import ApiServerProcess
from tests.examples.sample_controller import eventually

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(580)]  # a first build takes minutes

HEAD = {"apiVersion": WORKLOADS.api_version, "kind": WORKLOADS.kind}


@pytest.fixture(scope="session")
def collector_binary() -> Path:
    try:
        return build_cached(KUBERNETES / "garbage_collector", "garbage-collector")
    except BuildUnavailable as reason:
        pytest.skip(str(reason))


@asynccontextmanager
async def collecting(binary: Path, server: ApiServerProcess, log: Path) -> AsyncGenerator[None]:
    """Run the garbage collector until the end of the block."""
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *(binary, server.kubeconfig), env=os.environ, stdout=output, stderr=output
        )
    try:
        yield
    finally:
        process.kill()
        await process.wait()


def make_operator(client: Client) -> Operator:
    operator = Operator(client, name="it")

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
        # An object that is deleted in the foreground stays until its children are gone.
        if ctx.obj is not None and ctx.obj.deletion_timestamp is None:
            for name in (key.name, f"{key.name}-2"):
                await ctx.apply({**HEAD, "metadata": {"name": name}, "spec": {"replicas": 1}})

    operator.controller("foos.samples.example.com", reconcile).owns("workloads.samples.example.com")
    return operator


async def find(client: Client, name: str) -> KubeObject | None:
    try:
        return await client.api(WORKLOADS, namespace="default").get(name)
    except NotFound:
        return None


async def names(client: Client) -> list[str]:
    return [each.name for each in await client.api(WORKLOADS, namespace="default").list()]


async def test_the_children_of_a_deleted_object_are_collected_and_no_others(
    api_server: ApiServerProcess, collector_binary: Path, tmp_path: Path
) -> None:
    async with (
        prepared(api_server) as client,
        collecting(collector_binary, api_server, tmp_path / "collector.log"),
    ):
        foos = client.api(FOOS, namespace="default")
        operator = make_operator(client)
        running = asyncio.create_task(operator.run())
        await client.api(WORKLOADS, namespace="default").create(
            {**HEAD, "metadata": {"name": "unowned"}, "spec": {"replicas": 1}}
        )
        for name in ("a", "b"):
            body = {"metadata": {"name": name}, "spec": {"workloadName": name, "replicas": 1}}
            await foos.create(body)

        async def has(*wanted: str) -> bool:
            return await names(client) == sorted(wanted)

        await eventually(lambda: has("a", "a-2", "b", "b-2", "unowned"))
        collected = await find(client, "b")
        assert collected is not None
        await foos.delete("b")
        await eventually(lambda: has("a", "a-2", "unowned"))

        # The collector has deleted the children of an owner of that name, not of the new one.
        await foos.create({"metadata": {"name": "b"}, "spec": {"workloadName": "b", "replicas": 1}})
        await eventually(lambda: has("a", "a-2", "b", "b-2", "unowned"))
        made_again = await find(client, "b")
        assert made_again is not None
        assert made_again.uid != collected.uid

        await foos.delete("a", propagation="Foreground")  # the owner goes after its children

        async def is_gone() -> bool:
            return [each.name for each in await foos.list()] == ["b"]

        await eventually(is_gone)
        assert await has("b", "b-2", "unowned")
        operator.stop()
        await running
