"""Controllers of informers that keep a part of each object: nothing is compared with what is not
kept, since it would remove what other programs have written.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
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
from aioinformer.errors import PermanentError, UsageError
from aioinformer.testing import Cluster, ClusterSource
from tests.controllers.reconcilers import BACKOFF, FOOS, create_foo, key, run_simulated

OURS, THEIRS = "example.com/cleanup", "example.com/theirs"
THEIR_STATUS = {
    "conditions": [{"type": "Ready", "status": "True", "reason": "Fine"}],
    "nodes": ["n1"],
    "count": 1,
}


def without_status(obj: KubeObject) -> Mapping[str, Any]:
    return {name: part for name, part in obj.items() if name != "status"}


def without_conditions(obj: KubeObject) -> Mapping[str, Any]:
    return obj.to_dict() | {"status": {"count": 7}}


def without_finalizers(obj: KubeObject) -> Mapping[str, Any]:
    body = obj.to_dict()
    body["metadata"].pop("finalizers", None)
    return body


PARTIAL: dict[str, dict[str, Any]] = {
    "metadata": {"metadata_only": True},
    "no status": {"transform": without_status},
    "another status": {"transform": without_conditions},
    "metadata as text": {"metadata_only": True, "convert": repr},
}
partial = pytest.mark.parametrize("informer", PARTIAL.values(), ids=PARTIAL)


def make_foo_cluster() -> Cluster:
    cluster = Cluster()
    cluster.add_resource(FOOS, status=True)
    create_foo(cluster, "a", size=1)
    cluster.merge_patch(FOOS, "a", {"status": THEIR_STATUS})
    return cluster


@asynccontextmanager
async def running(
    cluster: Cluster, reconcile: Any, informer: Mapping[str, Any], **keywords: Any
) -> AsyncGenerator[Controller]:
    source = ClusterSource(cluster)
    async with SharedInformerFactory(source, backoff=BACKOFF) as informers:
        foos = informers.informer(FOOS, **informer)
        async with Controller(foos, reconcile, name="it", client=source, **keywords) as it:
            yield it


def status_of(cluster: Cluster) -> Any:
    return cluster.get(FOOS, "a")["status"]


def types_of(cluster: Cluster) -> list[str]:
    return [each["type"] for each in status_of(cluster)["conditions"]]


@partial
@pytest.mark.parametrize("seconds", [0, 3])
def test_a_condition_leaves_those_of_other_programs_and_is_written_once(
    informer: Mapping[str, Any], seconds: float
) -> None:
    cluster, runs = make_foo_cluster(), list[str]()

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
        runs.append(key.name)
        await asyncio.sleep(seconds)
        await ctx.set_condition("Synced", True, reason="Done", fields={"nodes": ["n1"]})

    async def main() -> None:
        async with running(cluster, reconcile, informer):
            await asyncio.sleep(60)
            count = len(runs)
            assert count <= 2
            cluster.merge_patch(
                FOOS,
                "a",
                {"status": {"conditions": [*status_of(cluster)["conditions"], {"type": "Third"}]}},
            )
            await asyncio.sleep(60)
            assert len(runs) == count + 1

    run_simulated(main)
    assert types_of(cluster) == ["Ready", "Synced", "Third"]
    assert (status_of(cluster)["nodes"], status_of(cluster)["count"]) == (["n1"], 1)


@partial
def test_a_failure_condition_leaves_those_of_other_programs(informer: Mapping[str, Any]) -> None:
    cluster, fail = make_foo_cluster(), [True]

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
        await asyncio.sleep(2)
        if fail:
            raise PermanentError("never")

    async def main() -> None:
        async with running(cluster, reconcile, informer, failure_condition="Synced") as it:
            await asyncio.sleep(60)
            assert types_of(cluster) == ["Ready", "Synced"]
            assert status_of(cluster)["conditions"][1]["message"] == "PermanentError: never"
            version = cluster.resource_version
            await asyncio.sleep(3600)
            assert cluster.resource_version == version
            fail.clear()
            it.trigger(key("a"))
            await asyncio.sleep(60)
            assert status_of(cluster)["conditions"][1]["status"] == "True"

    run_simulated(main)
    assert types_of(cluster) == ["Ready", "Synced"]


@partial
def test_a_status_is_compared_with_the_servers(informer: Mapping[str, Any]) -> None:
    cluster, versions = make_foo_cluster(), list[int]()

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
        if versions:
            return
        await ctx.patch_status({"count": 1, "nodes": ["n1"]})
        versions.append(cluster.resource_version)
        await ctx.patch_status({"count": 7})
        await ctx.patch_status({"count": 7, "nodes": ["n1"]})

    async def main() -> None:
        before = cluster.resource_version
        async with running(cluster, reconcile, informer):
            await asyncio.sleep(1)
        assert versions[0] == before

    run_simulated(main)
    assert status_of(cluster) == {**THEIR_STATUS, "count": 7}


def test_an_object_that_is_deleted_meanwhile_has_no_condition() -> None:
    cluster, errors = make_foo_cluster(), list[Any]()

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
        if ctx.obj is not None:
            cluster.delete(FOOS, "a")
            await ctx.set_condition("Synced", True, reason="Done")

    async def main() -> None:
        async with running(
            cluster, reconcile, {"metadata_only": True}, on_error=errors.append
        ) as it:
            await asyncio.sleep(60)
            assert it.health.failing == ()

    run_simulated(main)
    assert [type(each.error).__name__ for each in errors] == ["NotCached"]
    assert list(cluster.objects(FOOS)) == []


# -- finalizers --------------------------------------------------------------------------------


@pytest.mark.parametrize("finalizers", [[], [OURS], [THEIRS]])
def test_a_transform_that_removes_the_finalizers_is_an_error_and_skips_no_cleanup(
    finalizers: list[str],
) -> None:
    cluster, runs, errors = make_foo_cluster(), list[str](), list[Any]()
    if finalizers:
        cluster.merge_patch(FOOS, "a", {"metadata": {"finalizers": finalizers}})

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
        runs.append("reconcile" if ctx.obj else "absent")

    async def cleanup(key: ObjectKey, ctx: ReconcileContext) -> None:
        runs.append("cleanup")

    async def main() -> None:
        async with running(
            cluster,
            reconcile,
            {"transform": without_finalizers},
            finalizer=OURS,
            cleanup=cleanup,
            on_error=errors.append,
        ) as it:
            await asyncio.sleep(60)
            assert it.health.failing
            assert cluster.get(FOOS, "a")["metadata"]["finalizers"] == (finalizers or [OURS])
            cluster.delete(FOOS, "a")
            await asyncio.sleep(60)
            assert it.health.failing == ()

    run_simulated(main)
    if finalizers != [THEIRS]:
        assert runs[0] == "cleanup"
        assert set(runs[1:]) == {"absent"}
    assert {type(each.error) for each in errors} == {UsageError}
    assert "transform= must keep metadata.finalizers" in str(errors[0].error)


def test_a_finalizer_of_an_informer_of_metadata_leaves_those_of_other_programs() -> None:
    cluster, cleaned = make_foo_cluster(), list[str]()
    cluster.merge_patch(FOOS, "a", {"metadata": {"finalizers": [THEIRS]}})

    async def nothing(key: ObjectKey, ctx: ReconcileContext) -> None:
        pass

    async def cleanup(key: ObjectKey, ctx: ReconcileContext) -> None:
        cleaned.append(key.name)

    async def main() -> None:
        async with running(
            cluster, nothing, {"metadata_only": True}, finalizer=OURS, cleanup=cleanup
        ):
            await asyncio.sleep(60)
            assert cluster.get(FOOS, "a")["metadata"]["finalizers"] == [THEIRS, OURS]
            cluster.delete(FOOS, "a")
            await asyncio.sleep(60)

    run_simulated(main)
    assert cleaned == ["a"]
    assert cluster.get(FOOS, "a")["metadata"]["finalizers"] == [THEIRS]
