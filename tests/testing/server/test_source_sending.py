"""Tests of writers without sockets: the writes, and their state after faults."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from aioinformer import ObjectKey, Resource, ResourceWriter, SharedInformerFactory
from aioinformer._core.objects.resources import find_built_in
from aioinformer.errors import (
    AlreadyExists,
    Conflict,
    ConnectionFailed,
    ConnectionLost,
    FetchError,
    Forbidden,
    NotFound,
    RequestTimedOut,
    UsageError,
)
from aioinformer.testing import Cluster, ClusterSource
from aioinformer.testing.server.source import REQUEST_TIMEOUT
from aioinformer.testing.simulation.loop import run

PODS = find_built_in("pods")
WIDGETS = Resource("example.com", "v1", "widgets", "Widget")
WEB_0: dict[str, Any] = {"metadata": {"name": "web-0"}, "spec": {"x": 1}}


def run_program(program: Callable[[ResourceWriter, ClusterSource], Awaitable[None]]) -> Cluster:
    """Run a program that writes pods of one namespace; return the cluster after it."""
    cluster = Cluster()

    async def main() -> None:
        source = ClusterSource(cluster)
        await program(source.api(PODS, namespace="web"), source)

    run(main(), seed=0)
    return cluster


def test_objects_are_created_changed_and_deleted() -> None:
    async def program(pods: ResourceWriter, source: ClusterSource) -> None:
        created = await pods.create(WEB_0)
        assert created.key == ObjectKey("web", "web-0")
        with pytest.raises(AlreadyExists):
            await pods.create(WEB_0)
        changed = await pods.update({**created.to_dict(), "spec": {"x": 2}})
        with pytest.raises(Conflict):
            await pods.update(created)
        assert (await pods.patch("web-0", {"spec": {"y": 1}}))["spec"] == {"x": 2, "y": 1}
        deleted = await pods.delete("web-0", uid=changed.uid)  # a pod is the answer, as there
        assert deleted is not None
        assert deleted.key == ObjectKey("web", "web-0")
        with pytest.raises(NotFound) as caught:
            await pods.get("web-0")
        assert caught.value.phase == "write"

    run_program(program)


def test_the_status_is_written_through_its_subresource_alone() -> None:
    async def program(pods: ResourceWriter, source: ClusterSource) -> None:
        created = await pods.create({**WEB_0, "status": {"phase": "Pending"}})
        assert "status" not in created
        updated = await pods.update_status(
            {**created.to_dict(), "spec": {"x": 9}, "status": {"phase": "Running"}}
        )
        assert (updated["spec"]["x"], updated["status"]["phase"]) == (1, "Running")
        assert updated["metadata"]["generation"] == 1
        replaced = await pods.update({**updated.to_dict(), "spec": {"x": 2}, "status": {}})
        assert (replaced["status"]["phase"], replaced["metadata"]["generation"]) == ("Running", 2)

    run_program(program)


def test_a_resource_without_the_subresource_has_its_status_in_itself() -> None:
    cluster = Cluster()
    cluster.add_resource(WIDGETS)

    async def main() -> None:
        widgets = ClusterSource(cluster).api(WIDGETS, namespace="web")
        created = await widgets.create({**WEB_0, "status": {"x": 1}})
        assert created["status"] == {"x": 1}
        with pytest.raises(NotFound):
            await widgets.update_status(created)

    run(main(), seed=0)


def test_an_apply_creates_and_conflicts_and_takes_over() -> None:
    async def program(pods: ResourceWriter, source: ClusterSource) -> None:
        def containers(**images: str) -> dict[str, Any]:
            listed = [{"name": name, "image": image} for name, image in images.items()]
            return {"metadata": {"name": "web-0"}, "spec": {"containers": listed}}

        await pods.apply(containers(web="one"), field_manager="a")
        both = await pods.apply(containers(side="two"), field_manager="b")
        assert [each["name"] for each in both["spec"]["containers"]] == ["web", "side"]
        with pytest.raises(Conflict, match=r'containers\[name="web"\]\.image') as caught:
            await pods.apply(containers(web="other"), field_manager="b", force=False)
        assert not isinstance(caught.value, AlreadyExists)
        forced = await pods.apply(containers(web="other"), field_manager="b")
        assert forced["spec"]["containers"] == [{"name": "web", "image": "other"}]

    cluster = run_program(program)
    managed = cluster.get("pods", "web-0", namespace="web")["metadata"]["managedFields"]
    assert [each["manager"] for each in managed] == ["a", "b"]


def test_a_cache_waits_for_a_written_version() -> None:
    async def program(pods: ResourceWriter, source: ClusterSource) -> None:
        async with SharedInformerFactory(source, namespace="web") as informers:
            informer = informers.informer("pods")
            await informers.wait_synced(timeout=30)
            created = await pods.create(WEB_0)
            await informer.wait_for(created, timeout=5)
            assert informer.lister[created.key] == created
            changed = await pods.patch("web-0", {"spec": {"x": 2}})
            await informer.wait_for(changed, timeout=5)
            assert informer.lister[created.key]["spec"]["x"] == 2

    run_program(program)


# -- faults ------------------------------------------------------------------------------------


def test_a_write_that_the_server_did_not_accept_has_no_effect() -> None:
    async def program(pods: ResourceWriter, source: ClusterSource) -> None:
        faults: list[tuple[Callable[[], Any], type[FetchError]]] = [
            (source.faults.refuse, ConnectionFailed),
            (lambda: source.faults.reset(verb="create"), ConnectionLost),
            (lambda: source.faults.forbid(verb="create"), Forbidden),
        ]
        for fault, error in faults:
            with fault(), pytest.raises(error) as caught:
                await pods.create(WEB_0)
            assert caught.value.phase == "write"
        with source.faults.reset(verb="update"):
            await pods.create(WEB_0)  # the fault concerns updates alone

    assert run_program(program).resource_version == 2


def test_a_write_whose_answer_was_lost_has_its_effect() -> None:
    async def program(pods: ResourceWriter, source: ClusterSource) -> None:
        with source.faults.reset(verb="create", after=0), pytest.raises(ConnectionLost):
            await pods.create(WEB_0)

    assert run_program(program).get("pods", "web-0", namespace="web")["spec"] == {"x": 1}


def test_a_write_to_a_stalled_server_times_out() -> None:
    async def program(pods: ResourceWriter, source: ClusterSource) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        with source.faults.stall(), pytest.raises(RequestTimedOut) as caught:
            await pods.create(WEB_0)
        assert REQUEST_TIMEOUT <= loop.time() - started < REQUEST_TIMEOUT + 1
        assert caught.value.phase == "write"

    run_program(program)


def test_a_write_is_done_after_the_latency() -> None:
    async def program(pods: ResourceWriter, source: ClusterSource) -> None:
        with source.faults.latency(3.0):
            task = asyncio.create_task(pods.create(WEB_0))
            await asyncio.sleep(2)
            assert source.cluster.resource_version == 1
            await task
        assert source.cluster.resource_version == 2

    run_program(program)


def test_a_writer_rejects_a_namespace_for_a_cluster_scoped_resource() -> None:
    source = ClusterSource(Cluster())
    with pytest.raises(ValueError, match="cluster-scoped"):
        source.api(find_built_in("nodes"), namespace="web")


def test_usage_errors_send_no_request() -> None:
    async def program(pods: ResourceWriter, source: ClusterSource) -> None:
        with pytest.raises(UsageError):
            await pods.get("other/web-0")

    run_program(program)
