"""An operator with a finalizer and owned objects on the real server."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from aioinformer import Client, KubeObject, ObjectKey, Operator, ReconcileContext
from aioinformer.errors import NotFound
from aioinformer.lowlevel import BUILT_IN
from examples.sample_controller.kinds import FOOS, WORKLOADS
from tests.apiserver.controllers.test_sample_controller import prepared
from tests.apiserver.server.server_process import ApiServerProcess
from tests.examples.sample_controller import eventually

pytestmark = pytest.mark.apiserver

OURS, THEIRS = "example.com/cleanup", "example.com/theirs"
EVENTS = next(each for each in BUILT_IN if str(each) == "events.events.k8s.io")


class Life:
    """A Foo on the server, as seen from outside of the operator."""

    def __init__(self, client: Client) -> None:
        self.foos = client.api(FOOS, namespace="default")
        self.workloads = client.api(WORKLOADS, namespace="default")
        self._client = client

    async def finalizers(self) -> list[str] | None:
        """Return the finalizers of the Foo; ``None`` if there is no Foo."""
        try:
            found: Any = (await self.foos.get("a"))["metadata"].get("finalizers")
        except NotFound:
            return None
        return list(found or ())

    async def has(self, *finalizers: str) -> bool:
        return await self.finalizers() == list(finalizers)

    async def is_gone(self) -> bool:
        return await self.finalizers() is None

    async def workload(self) -> KubeObject | None:
        try:
            return await self.workloads.get("web")
        except NotFound:
            return None

    async def event_reasons(self) -> set[str]:
        listed = json.loads(await self._client.get_raw(EVENTS.path("default")))
        return {each["reason"] for each in listed["items"]}


def make_operator(client: Client, cleanups: list[str]) -> Operator:
    operator = Operator(client, name="it", leader_election="default/it", identity="one")

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
        if ctx.obj is not None:
            assert OURS in ctx.obj["metadata"]["finalizers"]
            head = {"apiVersion": WORKLOADS.api_version, "kind": WORKLOADS.kind}
            replicas = ctx.obj["spec"]["replicas"]
            await ctx.apply({**head, "metadata": {"name": "web"}, "spec": {"replicas": replicas}})

    async def cleanup(key: ObjectKey, ctx: ReconcileContext) -> None:
        cleanups.append(key.name)
        if len(cleanups) == 1:
            raise RuntimeError("the first attempt fails")
        await ctx.api(WORKLOADS).delete(ObjectKey(key.namespace, "web"))

    # The server is asked for the names.
    operator.controller(
        "foos.samples.example.com", reconcile, finalizer=OURS, cleanup=cleanup
    ).owns("workloads.samples.example.com")  # fmt: skip
    return operator


@pytest.mark.timeout(180)
@pytest.mark.parametrize("others", [(), (THEIRS,)], ids=["alone", "with another's"])
async def test_an_operator_adds_its_finalizer_and_cleans_up_before_the_deletion(
    api_server: ApiServerProcess, others: tuple[str, ...]
) -> None:
    cleanups = list[str]()
    async with prepared(api_server) as client:
        operator, life = make_operator(client, cleanups), Life(client)
        running = asyncio.create_task(operator.run())
        metadata = {"name": "a", "finalizers": list(others)}
        await life.foos.create(
            {"metadata": metadata, "spec": {"workloadName": "web", "replicas": 1}}
        )
        await eventually(life.workload)
        assert await life.has(*others, OURS)
        first = await life.workload()

        await life.workloads.delete("web")  # the operator creates its child again
        await eventually(life.workload)
        second = await life.workload()
        assert first is not None
        assert second is not None
        assert first.uid != second.uid

        await life.foos.delete("a")
        await eventually(life.is_gone if not others else lambda: life.has(*others))
        assert cleanups == ["a", "a"]
        assert await life.workload() is None
        await eventually(lambda: _contains(life, "CleanupFailed"))
        if others:
            await life.foos.patch("a", {"metadata": {"finalizers": []}})
            await eventually(life.is_gone)
        assert operator.controllers[0].health.failed_runs == 1
        operator.stop()
        await running


async def _contains(life: Life, reason: str) -> bool:
    return reason in await life.event_reasons()
