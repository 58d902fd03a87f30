"""Discovery against the real API server: names, and a resource that goes, comes and changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from copy import deepcopy

import pytest
from msgspec.structs import astuple

from aioinformer import Client, Resource
from aioinformer._core.listwatch.reflector_requests import ListRequest
from aioinformer.errors import NotFound, UnknownResource
from tests.apiserver.server.server_process import (
    WIDGET_CRD,
    AdminClient,
    ApiServerProcess,
    Json,
    install_crd,
    wait_until,
)

pytestmark = pytest.mark.apiserver

CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = Resource("example.com", "v1", "widgets", "Widget", short_names=("wd",))

SOON = 15.0
"""Seconds for a change of a definition to arrive everywhere: the server takes one or two."""


@pytest.fixture
async def client(api_server: ApiServerProcess) -> AsyncIterator[Client]:
    async with Client.connect(kubeconfig=api_server.kubeconfig) as client:
        # A server that has just started serves the widgets before its discovery shows them.
        await served(client, lambda found: found is not None)
        yield client


async def served(client: Client, expected: Callable[[Resource | None], bool]) -> Resource | None:
    """Wait until the server serves the resource as expected, and return the resource."""

    async def arrived() -> bool:
        return expected(await client.served(WIDGETS))

    async with asyncio.timeout(SOON):
        await wait_until(arrived)
    return await client.served(WIDGETS)


@pytest.mark.parametrize(
    "name",
    ["widgets", "widget", "wd", "Widget", "widgets.example.com", "wd.v1.example.com"],
)
async def test_a_custom_resource_is_found_by_each_of_its_names(client: Client, name: str) -> None:
    assert await client.resource(name) == WIDGETS


async def test_an_unknown_name_suggests_a_similar_one(client: Client) -> None:
    with pytest.raises(UnknownResource, match=r"'widgetz' \(did you mean widgets\?\)"):
        await client.resource("widgetz")


async def test_a_resource_is_not_served_from_its_removal_until_it_is_installed_again(
    client: Client, api_server: ApiServerProcess, admin: AdminClient
) -> None:
    assert await client.served(WIDGETS) == WIDGETS
    await admin.request("DELETE", f"{CRD}/widgets.example.com")

    assert await served(client, lambda found: found is None) is None
    reader = client.lister_watcher(WIDGETS)
    with pytest.raises(NotFound):
        async with reader.list(ListRequest()):
            pytest.fail("it is listed, and said not to be served")
    await install_crd(api_server, WIDGET_CRD)
    # What was answered is remembered for two seconds, for all who ask.
    assert await served(client, lambda found: found is not None) == WIDGETS
    assert await reader.discover() == WIDGETS


async def test_a_resource_whose_version_is_not_served_any_more_is_found_in_the_other_version(
    client: Client, admin: AdminClient
) -> None:
    """Two versions with one storage, of which then one alone is served."""
    definition = await _changed(admin, [_version("v1", storage=True), _version("v2")])
    await served(client, lambda found: found == WIDGETS)
    definition["spec"]["versions"][0]["served"] = False
    await admin.request("PUT", f"{CRD}/widgets.example.com", body=definition)

    found = await served(client, lambda found: found is None or found.version != "v1")
    expected = Resource("example.com", "v2", "widgets", "Widget", short_names=("wd",))
    assert found is not None
    assert astuple(found) == astuple(expected)


async def _changed(admin: AdminClient, versions: list[Json]) -> Json:
    definition = await admin.request("GET", f"{CRD}/widgets.example.com")
    definition["spec"]["versions"] = versions
    return await admin.request("PUT", f"{CRD}/widgets.example.com", body=definition)


def _version(name: str, *, storage: bool = False) -> Json:
    version: Json = deepcopy(WIDGET_CRD["spec"]["versions"][0])
    return {**version, "name": name, "storage": storage}
