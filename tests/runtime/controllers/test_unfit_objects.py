"""Objects that don't fit ``convert=``, an index or ``transform=``: failed runs of their own keys.

Everyone who may create one object could stop an operator otherwise.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from aioinformer import (
    Controller,
    EventRecorder,
    KubeObject,
    ObjectKey,
    ReconcileContext,
    SharedInformerFactory,
)
from aioinformer._core.objects.resources import find_built_in
from aioinformer.testing import Cluster, ClusterSource
from tests.runtime.controllers.reconcilers import (
    BACKOFF,
    BARS,
    FOOS,
    body_with_owner,
    create_foo,
    key,
    run_simulated,
    update_foo,
)

OURS = "example.com/cleanup"
EVENTS = find_built_in("events.events.k8s.io")
BARS_HEAD = {"apiVersion": BARS.api_version, "kind": BARS.kind}


def size_of(obj: KubeObject) -> int:
    """Return ``spec.size``; raise a ``ValueError`` or ``KeyError`` for an object that has none."""
    return int(obj["spec"]["size"])


def make_status_cluster(**sizes: object) -> Cluster:
    """Return a cluster with these foos, whose ``spec.size`` is given."""
    cluster = Cluster()
    cluster.add_resource(FOOS, status=True)
    cluster.add_resource(BARS)
    for name, size in sizes.items():
        create_foo(cluster, name, size=size)
    return cluster


@asynccontextmanager
async def sized_foos(
    cluster: Cluster,
    reconcile: Any,
    *,
    informer: dict[str, Any] | None = None,
    owns_sized: bool = False,
    **keywords: Any,
) -> AsyncGenerator[Controller]:
    """Run a controller of foos that programs see as numbers."""
    source = ClusterSource(cluster)
    async with SharedInformerFactory(source, backoff=BACKOFF) as informers:
        foos = informers.informer(FOOS, **(informer or {"convert": size_of}))
        controller = Controller(foos, reconcile, name="it", client=source, **keywords)
        if owns_sized:
            controller.owns(informers.informer(BARS, convert=size_of))
        async with controller:
            yield controller


def conditions_of(cluster: Cluster, name: str) -> list[Any]:
    return list(cluster.get(FOOS, name).get("status", {}).get("conditions", ()))


# -- own writes --------------------------------------------------------------------------------


def test_a_run_that_writes_the_status_of_an_object_that_does_not_fit_ends_nothing() -> None:
    cluster, runs = make_status_cluster(good=1, bad="x"), list[str]()

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
        runs.append(key.name)
        await ctx.patch_status({"seen": True})

    async def main() -> None:
        async with sized_foos(cluster, reconcile) as controller:
            await asyncio.sleep(5)
            assert controller.health.state == "running"
            assert controller.health.failing == ()
            update_foo(cluster, "good", size=2)
            await asyncio.sleep(5)

    run_simulated(main)
    assert runs.count("good") == 3
    assert cluster.get(FOOS, "bad")["status"] == {"seen": True}


def test_a_failure_condition_of_an_object_that_does_not_fit_ends_nothing() -> None:
    cluster = make_status_cluster(good=1, bad="x")

    async def main() -> None:
        async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
            controller.informer.lister[key]

        async with sized_foos(cluster, reconcile, failure_condition="Fits") as controller:
            await asyncio.sleep(300)
            assert controller.health.state == "running"
            failing = controller.failing(key("bad"))
            assert failing is not None
            assert failing.error.startswith("ModelMismatch: ")
            (shown,) = conditions_of(cluster, "bad")
            assert (shown["status"], shown["reason"]) == ("False", "ReconcileFailed")
            assert "convert= size_of failed: ValueError" in shown["message"]
            assert conditions_of(cluster, "good")[0]["status"] == "True"
            version = cluster.get(FOOS, "bad")["metadata"]["resourceVersion"]
            await asyncio.sleep(3600)
            assert cluster.get(FOOS, "bad")["metadata"]["resourceVersion"] == version
            update_foo(cluster, "bad", size=3)
            await asyncio.sleep(5)
            assert controller.failing(key("bad")) is None
            assert conditions_of(cluster, "bad")[0]["status"] == "True"

    run_simulated(main)


def test_an_object_that_does_not_fit_is_one_warning_event() -> None:
    cluster = make_status_cluster(bad="x")
    cluster.add_resource(EVENTS)

    async def main() -> None:
        async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
            controller.informer.lister[key]

        source = ClusterSource(cluster)
        async with (
            EventRecorder(source.api(EVENTS), controller="example.com/it") as events,
            sized_foos(cluster, reconcile, events=events, failure_condition="Fits") as controller,
        ):
            await asyncio.sleep(300)

    run_simulated(main)
    (event,) = cluster.objects(EVENTS)
    assert (event["type"], event["reason"]) == ("Warning", "ModelMismatch")
    assert event["regarding"]["name"] == "bad"
    assert "default/bad: convert= size_of failed: ValueError" in event["note"]


@pytest.mark.parametrize("finalizers", [[], ["example.com/theirs"]], ids=["gone", "Terminating"])
def test_the_deletion_of_a_child_that_does_not_fit_ends_nothing(finalizers: list[str]) -> None:
    cluster, runs = make_status_cluster(a=1), list[str]()
    body = body_with_owner("child", "a")
    body["metadata"]["finalizers"] = finalizers
    cluster.create(BARS, body)

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
        runs.append(key.name)
        if len(runs) == 1:
            await ctx.api(BARS, namespace="default").delete("child")
        if len(runs) == 2:
            await ctx.apply({**BARS_HEAD, "metadata": {"name": "other"}, "spec": {"size": "x"}})

    async def main() -> None:
        async with sized_foos(cluster, reconcile, owns_sized=True) as controller:
            await asyncio.sleep(5)
            assert controller.health.state == "running"
            assert controller.health.failing == ()

    run_simulated(main)
    assert len(runs) >= 3


def test_a_finalizer_is_added_to_an_object_that_does_not_fit_without_a_failed_run() -> None:
    cluster, runs, errors = make_status_cluster(bad="x"), list[str](), list[Any]()

    async def record(key: ObjectKey, ctx: ReconcileContext) -> None:
        runs.append(key.name)

    async def main() -> None:
        async with sized_foos(
            cluster, record, finalizer=OURS, cleanup=record, on_error=errors.append
        ) as controller:
            await asyncio.sleep(5)
            assert controller.health.failing == ()

    run_simulated(main)
    assert "bad" in runs
    assert errors == []
