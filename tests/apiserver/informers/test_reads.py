"""Lists, watches and collections without an informer, against the real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from aioinformer import Client
from aioinformer.api import ResourceApi
from aioinformer.errors import NotFound
from tests.apiserver.server.server_process import ApiServerProcess

pytestmark = pytest.mark.apiserver


@pytest.fixture
async def client(api_server: ApiServerProcess) -> AsyncIterator[Client]:
    async with Client.connect(kubeconfig=api_server.kubeconfig) as client:
        yield client


@pytest.fixture
async def widgets(client: Client) -> ResourceApi:
    widgets = client.api(await client.resource("widgets"), namespace="default")
    for number in range(5):
        labels = {"parity": "odd" if number % 2 else "even"}
        await widgets.create({"metadata": {"name": f"w{number}", "labels": labels}})
    return widgets


async def test_a_list_is_read_whole_by_pages_and_as_metadata(widgets: ResourceApi) -> None:
    listed = await widgets.list(page_size=2)
    pages = [page async for page in widgets.pages(page_size=2)]
    metadata = await widgets.list(metadata_only=True)

    assert [obj.name for obj in listed] == ["w0", "w1", "w2", "w3", "w4"]
    assert [(len(page), page.remaining) for page in pages] == [(2, 3), (2, 1), (1, None)]
    assert {page.resource_version for page in pages} == {pages[0].resource_version}
    assert [obj.uid for obj in metadata] == [obj.uid for obj in listed]


async def test_a_watch_begins_after_a_list_without_a_gap(widgets: ResourceApi) -> None:
    listed = await widgets.list(labels="parity=odd")
    await widgets.delete("w1")
    await widgets.patch("w0", {"metadata": {"labels": {"parity": "odd"}}})
    async with widgets.watch(listed.resource_version, labels="parity=odd") as events:
        found = [await asyncio.wait_for(anext(events), 20) for _ in range(2)]

    assert [(event.type, event.obj.name) for event in found] == [("DELETED", "w1"), ("ADDED", "w0")]


async def test_a_collection_is_deleted_by_its_selector(widgets: ResourceApi) -> None:
    await widgets.delete_collection(labels="parity=even")

    assert [obj.name for obj in await widgets.list()] == ["w1", "w3"]


async def test_discovery_returns_a_list_of_resources_that_can_be_searched(
    client: Client, widgets: ResourceApi
) -> None:
    served = await client.discover()

    (found,) = served.find(name="widget", group=widgets.resource.group)
    assert found.resource == widgets.resource
    assert {"list", "watch", "deletecollection"} <= (found.verbs or set())
    with pytest.raises(NotFound):
        await widgets.get_scale("w0")
