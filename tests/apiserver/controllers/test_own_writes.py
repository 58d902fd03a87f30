"""The writes of a reconciler on the real server: status, owned objects, and what it rejects.

The server has no garbage collector, which is a part of kube-controller-manager.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from aioinformer import (
    Controller,
    KubeObject,
    ObjectKey,
    ReconcileContext,
    Result,
    SharedInformerFactory,
    owner_reference,
)
from aioinformer.errors import Conflict, Invalid, NotCached
from examples.sample_controller.kinds import FOOS, WORKLOADS
from tests.apiserver.controllers.test_sample_controller import prepared
from tests.apiserver.server.server_process import ApiServerProcess

pytestmark = pytest.mark.apiserver


def workload(name: str, replicas: int) -> dict[str, Any]:
    head = {"apiVersion": WORKLOADS.api_version, "kind": WORKLOADS.kind}
    return {**head, "metadata": {"name": name}, "spec": {"replicas": replicas}}


@pytest.mark.timeout(180)
async def test_each_run_sees_the_writes_of_the_one_before(api_server: ApiServerProcess) -> None:
    seen: list[dict[str, int]] = []
    results: list[object] = []
    finished = asyncio.Event()

    async with prepared(api_server) as client, SharedInformerFactory(client) as informers:
        foos, workloads = informers.informer(FOOS), informers.informer(WORKLOADS)

        def grow(body: dict[str, Any]) -> None:
            body["spec"]["replicas"] += 1

        async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> Result | None:
            run = len(seen)
            seen.append({each.name: each["spec"]["replicas"] for each in workloads.lister})
            if run >= 5:
                finished.set()
                return None
            applied = await ctx.apply(workload(f"w{run}", run))
            results.append((await ctx.create_or_update(workload("counted", 0), grow))[0])
            results.append(await ctx.prune(workloads, keep=[applied, "counted"]))
            before = await ctx.patch_status({"observedGeneration": run})
            again = await ctx.patch_status({"observedGeneration": run})
            assert before.resource_version == again.resource_version
            return Result(requeue_after=0)

        async with Controller(foos, reconcile, name="writer").owns(workloads):
            await client.api(FOOS, namespace="default").create(
                {"metadata": {"name": "a"}, "spec": {"workloadName": "x", "replicas": 1}}
            )
            async with asyncio.timeout(60):
                await finished.wait()
            await _check_rejection(client, foos.lister["default/a"])

    assert seen[:5] == [{}, *({f"w{run}": run, "counted": run + 1} for run in range(4))]
    key = ObjectKey("default", "w0")
    assert results[:4] == ["created", (), "updated", (key,)]


async def _check_rejection(client: Any, foo: KubeObject) -> None:
    """Check that the server rejects a second controller of an object."""
    other = owner_reference(foo) | {"name": "b", "uid": "other"}
    body = workload("two", 1)
    body["metadata"]["ownerReferences"] = [owner_reference(foo), other]
    with pytest.raises(Invalid, match="in references for Foo/a and Foo/b"):
        await client.api(WORKLOADS, namespace="default").create(body)


@pytest.mark.timeout(180)
async def test_no_write_of_a_run_reaches_an_object_that_was_created_again(
    api_server: ApiServerProcess,
) -> None:
    rejected, names = list[str](), ObjectKey("default", "a")
    finished, successors = asyncio.Event(), list[KubeObject]()
    foo = {"metadata": {"name": "a"}, "spec": {"workloadName": "x", "replicas": 1}}
    typed = {"apiVersion": FOOS.api_version, "kind": FOOS.kind, "metadata": {"name": "a"}}
    status = {"status": {"observedGeneration": 7}}
    spec = {"spec": {"workloadName": "y", "replicas": 7}}
    json_patch = [{"op": "add", "path": "/status", "value": status["status"]}]

    async with prepared(api_server) as client, SharedInformerFactory(client) as informers:
        foos = informers.informer(FOOS)

        async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
            if successors:
                return
            await client.api(FOOS).delete(key)
            successors.append(await client.api(FOOS, namespace="default").create(foo))
            api = ctx.api(FOOS, namespace="default")
            writes: dict[str, Callable[[], Awaitable[object]]] = {
                "status": lambda: ctx.patch_status(status["status"]),
                "merge": lambda: api.patch("a", spec),
                "merge of status": lambda: api.patch("a", status, subresource="status"),
                "JSON of status": lambda: api.patch("a", json_patch, subresource="status"),
                "apply": lambda: ctx.apply({**typed, **spec}, owned=False),
                "apply of status": lambda: api.apply(
                    {**typed, **status}, field_manager="me", subresource="status"
                ),
                "update": lambda: api.update({**typed, **spec}),
                "update of status": lambda: api.update_status({**typed, **status}),
                "deletion": lambda: api.delete("a"),
            }
            for name, write in writes.items():
                try:
                    await write()
                except (Conflict, Invalid, NotCached):
                    rejected.append(name)
            assert rejected == list(writes)
            finished.set()

        async with Controller(foos, reconcile, name="writer"), asyncio.timeout(60):
            await client.api(FOOS, namespace="default").create(foo)
            await finished.wait()
            found = await client.api(FOOS).get(names)
    assert (found.uid, found.resource_version) == (
        successors[0].uid,
        successors[0].resource_version,
    )
