"""Lists and watches of a program without an informer, over HTTP and from a cluster in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from msgspec import Struct

from aioinformer import Client, KubeObject, Resource
from aioinformer.api import ResourceApi
from aioinformer.errors import (
    Expired,
    Forbidden,
    InvalidSelector,
    NotFound,
    NotRunning,
)
from aioinformer.testing import ApiServer, Cluster, ClusterSource, Faults


def cluster_with_pods(count: int = 3) -> Cluster:
    cluster = Cluster()
    for number in range(count):
        labels = {"app": "shop" if number % 2 else "cart"}
        metadata = {"name": f"web-{number}", "namespace": "web", "labels": labels}
        cluster.create("pods", {"metadata": metadata, "spec": {"nodeName": f"node-{number}"}})
    return cluster


@asynccontextmanager
async def pods_of(
    cluster: Cluster, *, over_http: bool, namespace: str | None = None
) -> AsyncGenerator[ResourceApi]:
    """Yield the API of a cluster's pods."""
    if not over_http:
        yield ClusterSource(cluster).api("pods", namespace=namespace)
        return
    async with ApiServer(cluster) as server, Client(server.url) as client:
        yield client.api("pods", namespace=namespace)


both = pytest.mark.parametrize("over_http", [True, False], ids=["over HTTP", "in memory"])


def names(objects: Any) -> list[str]:
    return [cast("KubeObject", obj).name for obj in objects]


@both
async def test_a_list_has_all_objects_and_the_version_to_watch_from(over_http: bool) -> None:
    cluster = cluster_with_pods()
    async with pods_of(cluster, over_http=over_http) as pods:
        listed = await pods.list(page_size=2)

        assert names(listed) == ["web-0", "web-1", "web-2"]
        async with pods.watch(listed.resource_version) as events:
            cluster.delete("pods", "web-1", namespace="web")
            event = await asyncio.wait_for(anext(events), 30)
        assert (event.type, event.obj.name) == ("DELETED", "web-1")


@both
async def test_selectors_and_namespaces_restrict_lists_and_watches(over_http: bool) -> None:
    cluster = cluster_with_pods()
    cluster.create("pods", {"metadata": {"name": "other", "labels": {"app": "shop"}}})
    async with pods_of(cluster, over_http=over_http, namespace="web") as pods:
        assert names(await pods.list(labels="app=shop")) == ["web-1"]
        assert names(await pods.list(labels={"app": ["cart"]})) == ["web-0", "web-2"]
        assert names(await pods.list(fields="spec.nodeName=node-2")) == ["web-2"]
        async with pods.watch(labels="app=shop") as events:
            cluster.merge_patch("pods", "other", {"metadata": {"labels": {"x": "y"}}})
            patch = {"metadata": {"labels": {"x": "y"}}}
            for name in ("web-0", "web-1"):
                cluster.merge_patch("pods", name, patch, namespace="web")
            event = await asyncio.wait_for(anext(events), 30)
        assert (event.type, event.obj.name) == ("MODIFIED", "web-1")


@both
async def test_a_program_reads_pages_models_and_metadata(over_http: bool) -> None:
    class Pod(Struct, frozen=True):
        spec: Any

    async with pods_of(cluster_with_pods(), over_http=over_http) as pods:
        sizes = [(len(page), page.remaining) async for page in pods.pages(page_size=2)]
        models = await pods.list(model=Pod)
        metadata = await pods.list(metadata_only=True)

    assert sizes == [(2, 1), (1, None)]
    assert models[0] == Pod({"nodeName": "node-0"})
    assert "spec" not in metadata[0]
    assert metadata[0].labels == {"app": "cart"}


async def test_the_errors_are_those_of_an_informer() -> None:
    blocked = Faults()
    blocked.status(403)
    async with (
        ApiServer(cluster_with_pods(), faults=blocked) as server,
        Client(server.url) as client,
    ):
        with pytest.raises(Forbidden):
            await client.api("pods").list()
        with pytest.raises(InvalidSelector):
            await client.api("pods").list(labels="app in")


async def test_a_watch_from_a_compacted_version_raises_expired() -> None:
    cluster = cluster_with_pods()
    async with pods_of(cluster, over_http=True) as pods:
        listed = await pods.list()
        cluster.delete("pods", "web-0", namespace="web")
        cluster.compact()
        async with pods.watch(listed.resource_version) as events:
            with pytest.raises(Expired):
                await asyncio.wait_for(anext(events), 30)


async def test_the_errors_for_wrong_use_name_the_correction() -> None:
    client = Client("http://127.0.0.1:9")
    pods = client.api("pods")
    with pytest.raises(TypeError, match=r"list\(\) has no option 'label'; did you mean 'labels'"):
        await pods.list(**cast("Any", {"label": "app=shop"}))
    for name in ("namespace", "ns", "namespaces"):
        correction = r'; write client\.api\("pods", namespace=\.\.\.\)\.list\(\.\.\.\)'
        with pytest.raises(TypeError, match=f"has no option '{name}'{correction}"):
            await pods.list(**cast("Any", {name: "web"}))
    with pytest.raises(TypeError, match=r"watch\(\) has no option 'page_size'"):
        pods.watch(**cast("Any", {"page_size": 5}))
    with pytest.raises(ValueError, match="page_size must be at least 0, not -1"):
        await pods.list(page_size=-1)
    with pytest.raises(NotRunning):
        await pods.list()


async def test_a_resource_that_is_not_served_is_not_found() -> None:
    widgets = Resource("example.com", "v1", "widgets", "Widget")
    async with ApiServer(Cluster()) as server, Client(server.url) as client:
        with pytest.raises(NotFound):
            await client.api(widgets).list()
