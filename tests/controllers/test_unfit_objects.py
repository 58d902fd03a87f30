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
    KubeObject,
    ObjectKey,
    ReconcileContext,
    SharedInformerFactory,
)
from aioinformer.testing import Cluster, ClusterSource
from tests.controllers.reconcilers import (
    BACKOFF,
    BARS,
    FOOS,
    NoteRecorder,
    body_with_owner,
    create_foo,
    key,
    run_simulated,
    update_foo,
)

OURS = "example.com/cleanup"
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
        shape: dict[str, Any] = {"convert": size_of} if informer is None else informer
        foos = informers.informer(FOOS, **shape)
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
    cluster, events = make_status_cluster(bad="x"), NoteRecorder()

    async def main() -> None:
        async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
            controller.informer.lister[key]

        async with sized_foos(
            cluster, reconcile, events=events, failure_condition="Fits"
        ) as controller:
            await asyncio.sleep(300)

    run_simulated(main)
    ((name, event_type, reason, note),) = set(events.notes)  # a recorder merges equal ones
    assert (name, event_type, reason) == ("bad", "Warning", "ModelMismatch")
    assert "default/bad: convert= size_of failed: ValueError" in note


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


# -- versions that the informer rejects --------------------------------------------------------


def without_odd(obj: KubeObject) -> KubeObject:
    int(obj["spec"]["size"])
    return obj


def size_index(obj: Any) -> str:
    return str(int(obj if isinstance(obj, int) else obj["spec"]["size"]))


REJECTING: dict[str, dict[str, Any]] = {
    "an index over conversions": {"convert": size_of, "indexers": {"size": size_index}},
    "an index over objects": {"indexers": {"size": size_index}},
    "a transform": {"transform": without_odd},
    "a transform of followed namespaces": {"transform": without_odd, "namespaces": ["default"]},
}


class Finalized:
    """A reconciler with a cleanup, which records the sizes that both have seen."""

    def __init__(self) -> None:
        self.reconciled = list[object]()
        self.cleaned = list[object]()

    async def reconcile(self, key: ObjectKey, ctx: ReconcileContext) -> None:
        self.reconciled.append(None if ctx.obj is None else ctx.obj["spec"]["size"])

    async def cleanup(self, key: ObjectKey, ctx: ReconcileContext) -> None:
        assert ctx.obj is not None
        assert ctx.obj.deletion_timestamp is not None
        self.cleaned.append(ctx.obj["spec"]["size"])


@pytest.mark.parametrize("informer", REJECTING.values(), ids=REJECTING)
@pytest.mark.parametrize("restart", [False, True], ids=["while running", "over a restart"])
def test_a_cleanup_is_never_skipped_for_an_object_that_stops_fitting(
    informer: dict[str, Any], restart: bool
) -> None:
    cluster, it = make_status_cluster(a=1), Finalized()

    async def main() -> None:
        def controller() -> Any:
            return sized_foos(
                cluster, it.reconcile, informer=informer, finalizer=OURS, cleanup=it.cleanup
            )

        async with controller() as running:
            await asyncio.sleep(5)
            if not restart:
                update_foo(cluster, "a", size="x")
                await asyncio.sleep(5)
                cluster.delete(FOOS, "a")
                await asyncio.sleep(60)
                assert running.health.failing == ()
        if restart:
            update_foo(cluster, "a", size="x")
            cluster.delete(FOOS, "a")
            async with controller() as running:
                await asyncio.sleep(60)
                assert running.health.failing == ()

    run_simulated(main)
    assert it.reconciled[0] == 1
    assert "x" not in it.reconciled
    assert it.cleaned == ["x"]
    assert not list(cluster.objects(FOOS))


@pytest.mark.parametrize("informer", REJECTING.values(), ids=REJECTING)
@pytest.mark.parametrize("finalizer", [None, OURS])
@pytest.mark.parametrize("size", [1, "x"], ids=["stops fitting", "never fitted"])
def test_a_version_that_the_informer_rejects_is_a_failed_run(
    informer: dict[str, Any], finalizer: str | None, size: object
) -> None:
    cluster, it, events = make_status_cluster(a=size), Finalized(), NoteRecorder()
    options: dict[str, Any] = {}
    if finalizer:
        options = {"finalizer": finalizer, "cleanup": it.cleanup}

    async def main() -> None:
        async with sized_foos(
            cluster,
            it.reconcile,
            informer=informer,
            events=events,
            failure_condition="Fits",
            **options,
        ) as controller:
            await asyncio.sleep(5)
            update_foo(cluster, "a", size="y")
            await asyncio.sleep(120)
            failing = controller.failing(key("a"))
            assert failing is not None
            assert "invalid literal for int() with base 10: 'y'" in failing.error
            (condition,) = conditions_of(cluster, "a")
            assert (condition["status"], condition["observedGeneration"]) == ("False", 2)
            assert failing.error.partition(":")[0] in condition["message"]
            version = cluster.get(FOOS, "a")["metadata"]["resourceVersion"]
            await asyncio.sleep(3600)
            assert cluster.get(FOOS, "a")["metadata"]["resourceVersion"] == version
            update_foo(cluster, "a", size=3)
            await asyncio.sleep(5)
            assert controller.failing(key("a")) is None
            assert conditions_of(cluster, "a")[0]["status"] == "True"

    run_simulated(main)
    assert 3 in it.reconciled
    assert not {"x", "y"} & set(it.reconciled)
    assert {event_type for _, event_type, _, _ in events.notes} == {"Warning"}


# -- objects that a controller watches ---------------------------------------------------------


def test_an_object_that_stops_fitting_affects_what_it_affected_before() -> None:
    cluster, runs, errors = make_status_cluster(a=1), list[str](), list[Any]()
    cluster.create(BARS, {"metadata": {"name": "to-a"}, "spec": {"size": 1, "to": "a"}})

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
        runs.append(key.name)

    def to_name(obj: KubeObject) -> str:
        size_of(obj)
        return str(obj["spec"]["to"])

    async def main() -> None:
        async with SharedInformerFactory(ClusterSource(cluster), backoff=BACKOFF) as informers:
            foos = informers.informer(FOOS)
            bars = informers.informer(BARS, convert=to_name)
            controller = Controller(foos, reconcile, on_error=errors.append)
            async with controller.watches(bars, lambda name: [f"default/{name}"]):
                await asyncio.sleep(5)
                for size in ("x", "y", None):
                    runs.clear()
                    if size is None:
                        cluster.delete(BARS, "to-a")
                    else:
                        cluster.merge_patch(BARS, "to-a", {"spec": {"size": size}})
                    await asyncio.sleep(5)
                    assert runs == ["a"], size

    run_simulated(main)
    assert [each.phase for each in errors] == ["trigger"] * 2


@pytest.mark.parametrize("informer", REJECTING.values(), ids=REJECTING)
def test_a_child_that_stops_fitting_is_repaired(informer: dict[str, Any]) -> None:
    cluster, runs = make_status_cluster(a=1), list[str]()

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
        runs.append(key.name)
        await ctx.apply({**BARS_HEAD, "metadata": {"name": "child"}, "spec": {"size": 1}})

    async def main() -> None:
        async with SharedInformerFactory(ClusterSource(cluster), backoff=BACKOFF) as informers:
            foos, bars = informers.informer(FOOS), informers.informer(BARS, **informer)
            async with Controller(foos, reconcile).owns(bars) as controller:
                await asyncio.sleep(5)
                cluster.merge_patch(BARS, "child", {"spec": {"size": "x"}})
                await asyncio.sleep(5)
                assert cluster.get(BARS, "child")["spec"]["size"] == 1
                assert controller.health.failing == ()
                count = len(runs)
                await asyncio.sleep(60)
                assert len(runs) == count

    run_simulated(main)
