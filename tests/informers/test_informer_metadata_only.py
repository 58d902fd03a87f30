"""Informers with ``metadata_only=True``, over HTTP and without sockets."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from aioinformer import (
    Added,
    Client,
    Deleted,
    KubeObject,
    Shape,
    SharedInformer,
    SharedInformerFactory,
)
from aioinformer.testing import ApiServer, Cluster, ClusterSource, Features
from tests.client.recordings import read_recording
from tests.client.servers import http_server, replay_response, start_response
from tests.runtime.informers import FAST_BACKOFF, cluster_with_pods, running_informer
from tests.runtime.scripted_source import (
    body,
    list_response,
    modified,
    scripted_lister_watcher,
    watch_response,
)


def create(server: ApiServer, name: str) -> None:
    server.cluster.create(
        "pods", {"metadata": {"name": name, "labels": {"app": "shop"}}, "spec": {"nodeName": "n"}}
    )


def is_version_6(obj: KubeObject | None) -> bool:
    return obj is not None and obj.resource_version == "6"


@pytest.mark.client_go(134)
@pytest.mark.parametrize("watch_list", [True, False], ids=["WatchList", "LIST"])
async def test_the_server_sends_metadata_on_list_and_watch(watch_list: bool) -> None:
    async with ApiServer(Cluster(features=Features(watch_list=watch_list))) as server:
        create(server, "web-0")
        async with Client(server.url) as client, SharedInformerFactory(client) as informers:
            pods = informers.informer("pods", metadata_only=True)
            await informers.wait_synced(timeout=30)
            assert pods.health.strategy == ("watchlist" if watch_list else "list")
            async with pods.events() as events:
                create(server, "web-1")
                received = [await asyncio.wait_for(anext(events), 10) for _ in range(2)]
            assert received == [
                Added(pods.lister["default/web-0"], initial=True),
                Added(pods.lister["default/web-1"]),
            ]
            for pod in pods.lister.list(labels="app=shop"):
                assert pod.raw.startswith(b'{"metadata":{"name":"web-')
                assert set(pod) == {"apiVersion", "kind", "metadata"}
                assert (pod["apiVersion"], pod["kind"]) == ("v1", "Pod")
            assert await pods.verify(contents=True)
            written = await client.api("pods").patch(
                "default/web-0", {"metadata": {"labels": {"app": "bakery"}}}
            )
            found = await pods.wait_for(written, timeout=10)
            assert found is not None
            assert found.labels["app"] == "bakery"
            assert await pods.wait_for(found, timeout=10) is found


async def test_metadata_and_whole_objects_are_two_informers() -> None:
    cluster = cluster_with_pods("web-0")
    async with SharedInformerFactory(ClusterSource(cluster)) as informers:
        whole = informers.informer("pods")
        metadata = informers.informer("pods", metadata_only=True)
        assert informers.informer("po", metadata_only=True) is metadata
        assert informers.informer("pods", metadata_only=False) is whole
        await informers.wait_synced(timeout=30)
        assert metadata.name == "pods with metadata only"
        assert "status" not in metadata.lister["default/web-0"]
        assert len(whole.lister["default/web-0"].raw) > len(metadata.lister["default/web-0"].raw)


async def test_whole_objects_of_a_server_without_the_metadata_form_are_reduced() -> None:
    accepted: list[str] = []

    async def serve(request: web.Request) -> web.StreamResponse:
        accepted.append(request.headers["Accept"])
        if "watch" not in request.query:
            return replay_response(read_recording("13-list-rv0"))
        response = await start_response(request, read_recording("30-watch-from-rv").body)
        await asyncio.Event().wait()  # until the client closes the connection
        return response

    async with (
        http_server(serve) as url,
        Client(url) as client,
        SharedInformerFactory(client, watch_list=False) as informers,
    ):
        pods = informers.informer("pods", namespace="default", metadata_only=True)
        async with pods.events() as events:
            async for event in events:
                assert set(event.obj) == {"apiVersion", "kind", "metadata"}
                if isinstance(event, Deleted) and event.obj.name == "web-50":
                    break
        assert len(pods.lister) == 8
        assert accepted == [
            f"application/json;as=PartialObjectMetadata{form};g=meta.k8s.io;v=v1,application/json"
            for form in ("List", "")
        ]


async def test_whole_objects_of_a_source_without_the_metadata_form_are_reduced() -> None:
    source = scripted_lister_watcher(
        list_response(body("web-0", 5, size=9), version="5"),
        watch_response(modified("web-0", 6), never_ends=True),
    )
    informer = SharedInformer(source, shape=Shape.of(metadata_only=True), backoff=FAST_BACKOFF)
    async with running_informer(informer):
        found = await informer.wait_until("web/web-0", is_version_6, timeout=10)
        assert found is not None
        assert set(found) == {"apiVersion", "kind", "metadata"}
