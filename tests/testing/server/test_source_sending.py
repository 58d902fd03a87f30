"""Writers of a cluster without sockets: what is done, and what faults leave in doubt."""

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


def written(act: Callable[[ResourceWriter, ClusterSource], Awaitable[None]]) -> Cluster:
    """The cluster after a program that writes pods of one namespace."""
    cluster = Cluster()

    async def main() -> None:
        source = ClusterSource(cluster)
        await act(source.api(PODS, namespace="web"), source)

    run(main(), seed=0)
    return cluster


def test_objects_live_from_create_to_delete() -> None:
    async def act(pods: ResourceWriter, source: ClusterSource) -> None:
        made = await pods.create(WEB_0)
        assert made.key == ObjectKey("web", "web-0")
        with pytest.raises(AlreadyExists):
            await pods.create(WEB_0)
        changed = await pods.update({**made.to_dict(), "spec": {"x": 2}})
        with pytest.raises(Conflict):
            await pods.update(made)
        assert (await pods.patch("web-0", {"spec": {"y": 1}}))["spec"] == {"x": 2, "y": 1}
        assert await pods.delete("web-0", uid=changed.uid) is None
        with pytest.raises(NotFound) as caught:
            await pods.get("web-0")
        assert caught.value.phase == "write"

    written(act)


def test_the_status_is_written_through_its_subresource_alone() -> None:
    async def act(pods: ResourceWriter, source: ClusterSource) -> None:
        made = await pods.create({**WEB_0, "status": {"phase": "Pending"}})
        assert "status" not in made
        told = await pods.update_status(
            {**made.to_dict(), "spec": {"x": 9}, "status": {"phase": "Running"}}
        )
        assert (told["spec"]["x"], told["status"]["phase"]) == (1, "Running")
        assert told["metadata"]["generation"] == 1
        kept = await pods.update({**told.to_dict(), "spec": {"x": 2}, "status": {}})
        assert (kept["status"]["phase"], kept["metadata"]["generation"]) == ("Running", 2)

    written(act)


def test_a_resource_without_the_subresource_has_its_status_in_itself() -> None:
    cluster = Cluster()
    cluster.add_resource(WIDGETS)

    async def main() -> None:
        widgets = ClusterSource(cluster).api(WIDGETS, namespace="web")
        made = await widgets.create({**WEB_0, "status": {"x": 1}})
        assert made["status"] == {"x": 1}
        with pytest.raises(NotFound):
            await widgets.update_status(made)

    run(main(), seed=0)


def test_an_apply_creates_and_conflicts_and_takes_over() -> None:
    async def act(pods: ResourceWriter, source: ClusterSource) -> None:
        def containers(**images: str) -> dict[str, Any]:
            listed = [{"name": name, "image": image} for name, image in images.items()]
            return {"metadata": {"name": "web-0"}, "spec": {"containers": listed}}

        await pods.apply(containers(web="one"), manager="a")
        both = await pods.apply(containers(side="two"), manager="b")
        assert [each["name"] for each in both["spec"]["containers"]] == ["web", "side"]
        with pytest.raises(Conflict, match=r'containers\[name="web"\]\.image') as caught:
            await pods.apply(containers(web="other"), manager="b")
        assert not isinstance(caught.value, AlreadyExists)
        forced = await pods.apply(containers(web="other"), manager="b", force=True)
        assert forced["spec"]["containers"] == [{"name": "web", "image": "other"}]

    cluster = written(act)
    managed = cluster.get("pods", "web-0", namespace="web")["metadata"]["managedFields"]
    assert [each["manager"] for each in managed] == ["a", "b"]


def test_what_was_written_is_waited_for_in_a_cache() -> None:
    async def act(pods: ResourceWriter, source: ClusterSource) -> None:
        async with SharedInformerFactory(source, namespace="web") as informers:
            informer = informers.informer("pods")
            await informers.wait_synced(timeout=5)
            made = await pods.create(WEB_0)
            await informer.wait_for(made, timeout=5)
            assert informer.lister[made.key] == made
            changed = await pods.patch("web-0", {"spec": {"x": 2}})
            await informer.wait_for(changed, timeout=5)
            assert informer.lister[made.key]["spec"]["x"] == 2

    written(act)


# -- faults ------------------------------------------------------------------------------------


def test_what_is_refused_was_not_done() -> None:
    async def act(pods: ResourceWriter, source: ClusterSource) -> None:
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
            await pods.create(WEB_0)  # not among those that it concerns

    assert written(act).resource_version == 2


def test_what_breaks_in_the_answer_was_done() -> None:
    async def act(pods: ResourceWriter, source: ClusterSource) -> None:
        with source.faults.reset(verb="create", after=0), pytest.raises(ConnectionLost):
            await pods.create(WEB_0)

    assert written(act).get("pods", "web-0", namespace="web")["spec"] == {"x": 1}


def test_a_server_that_falls_silent_is_given_up() -> None:
    async def act(pods: ResourceWriter, source: ClusterSource) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        with source.faults.stall(), pytest.raises(RequestTimedOut) as caught:
            await pods.create(WEB_0)
        assert REQUEST_TIMEOUT <= loop.time() - started < REQUEST_TIMEOUT + 1
        assert caught.value.phase == "write"

    written(act)


def test_latency_passes_before_it_is_done() -> None:
    async def act(pods: ResourceWriter, source: ClusterSource) -> None:
        with source.faults.latency(3.0):
            task = asyncio.create_task(pods.create(WEB_0))
            await asyncio.sleep(2)
            assert source.cluster.resource_version == 1
            await task
        assert source.cluster.resource_version == 2

    written(act)


def test_a_namespace_that_can_not_be_is_refused_when_the_writer_is_made() -> None:
    source = ClusterSource(Cluster())
    with pytest.raises(ValueError, match="cluster-scoped"):
        source.api(find_built_in("nodes"), namespace="web")


def test_usage_errors_send_nothing() -> None:
    async def act(pods: ResourceWriter, source: ClusterSource) -> None:
        with pytest.raises(UsageError):
            await pods.get("other/web-0")

    written(act)
