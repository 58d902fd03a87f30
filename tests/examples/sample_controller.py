"""The life of Foos under the sample controller, against any server that a client can reach.

The module acts as the user of the Foos, and as the controller of the Workloads.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from aioinformer import Client, KubeObject
from aioinformer.errors import NotFound
from aioinformer.lowlevel import BUILT_IN
from examples.sample_controller.kinds import FOOS, WORKLOADS

EVENTS = next(each for each in BUILT_IN if str(each) == "events.events.k8s.io")

WAIT_TIMEOUT = 20.0
"""Seconds after which something is taken not to happen."""

NORMAL = [("Normal", reason) for reason in ("Created", "Scaled", "Synced")]


async def eventually(condition: Callable[[], Awaitable[object]]) -> None:
    """Ask the server until something is so."""
    async with asyncio.timeout(WAIT_TIMEOUT):
        while not await condition():  # noqa: ASYNC110 - what is waited for is in another process
            await asyncio.sleep(0.01)


class Foos:
    """Some Foos in the namespace ``default``, as seen and changed from outside."""

    def __init__(self, client: Client) -> None:
        self.foos = client.api(FOOS, namespace="default")
        self.workloads = client.api(WORKLOADS, namespace="default")
        self._client = client

    async def create(self, name: str, workload: str, replicas: int) -> KubeObject:
        return await self.foos.create(
            {
                "metadata": {"name": name},
                "spec": {"workloadName": workload, "replicas": replicas},
            }
        )

    async def scale(self, name: str, replicas: int) -> None:
        await self.foos.patch(name, {"spec": {"replicas": replicas}})

    async def report_available(self, workload: str, available: int) -> None:
        """Set the status like the Deployment controller does for Deployments."""
        status = {"status": {"availableReplicas": available}}
        await self.workloads.patch(workload, status, subresource="status")

    async def workload(self, name: str) -> dict[str, Any]:
        """Return a Workload, ``{}`` if there is none."""
        try:
            return (await self.workloads.get(name)).to_dict()
        except NotFound:
            return {}

    async def replicas(self, workload: str) -> int | None:
        """Return the desired replicas of a Workload, ``None`` if there is no Workload."""
        found = await self.workload(workload)
        wanted: int | None = found["spec"]["replicas"] if found else None
        return wanted

    async def available(self, name: str) -> int | None:
        """Return the available replicas in the status of a Foo."""
        status = (await self.foos.get(name)).to_dict().get("status", {})
        found: int | None = status.get("availableReplicas")
        return found

    async def event_reasons(self, name: str) -> set[tuple[str, str]]:
        """Type and reason of each Event about a Foo."""
        listed = json.loads(await self._client.get_raw(EVENTS.path("default")))
        return {
            (event["type"], event["reason"])
            for event in listed["items"]
            if event["regarding"]["name"] == name
        }


async def check_sample_controller(foos: Foos) -> None:
    """Check that a Foo gets a Workload, which follows the Foo and is created again after its
    deletion.

    The status reports the Workload. A Workload that the Foo doesn't own is left unchanged.
    """
    foo = await foos.create("example", "web", 1)
    await eventually(lambda: equals(foos.replicas("web"), 1))
    first = await foos.workload("web")
    (reference,) = first["metadata"]["ownerReferences"]
    assert (reference["uid"], reference["controller"]) == (foo.uid, True)

    await foos.report_available("web", 1)
    await eventually(lambda: equals(foos.available("example"), 1))

    await foos.scale("example", 3)
    await eventually(lambda: equals(foos.replicas("web"), 3))
    assert await foos.available("example") == 1

    await foos.workloads.delete("web")
    await eventually(lambda: foos.workload("web"))
    second = await foos.workload("web")
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    assert second["spec"]["replicas"] == 3
    await eventually(lambda: equals(foos.available("example"), 0))

    await foos.workloads.create({"metadata": {"name": "taken"}, "spec": {"replicas": 7}})
    await foos.create("late", "taken", 1)
    await eventually(lambda: contains(foos.event_reasons("late"), ("Warning", "NameTaken")))
    assert await foos.replicas("taken") == 7

    await eventually(lambda: contains(foos.event_reasons("example"), *NORMAL))


async def equals(found: Awaitable[object], expected: object) -> bool:
    return await found == expected


async def contains(found: Awaitable[set[tuple[str, str]]], *expected: tuple[str, str]) -> bool:
    return await found >= set(expected)
