"""Tests of discovery in both forms, compared with a real server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import msgspec
import pytest
import pytest_asyncio
from msgspec.structs import replace

from aioinformer.testing import ApiServer
from tests.client.recordings import read_recording
from tests.testing.recorded_exchanges import WIDGETS, recorded_target

AGGREGATED = {
    "Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json"
}


@pytest_asyncio.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer() as server:
        server.cluster.add_resource(WIDGETS)
        yield server


@pytest_asyncio.fixture
async def http(server: ApiServer) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(server.url) as session:
        yield session


async def get(
    http: aiohttp.ClientSession, path: str, headers: dict[str, str] | None = None
) -> dict[str, Any]:
    async with http.get(path, headers=headers) as response:
        assert response.status == 200
        document: dict[str, Any] = await response.json()
        return document


def comparable(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an entry without the keys that this server lacks."""
    missing = ("storageVersionHash", "subresources")
    return {key: value for key, value in entry.items() if key not in missing}


@pytest.mark.parametrize("name", ["01-core-v1-resources", "03-group-version-resources"])
async def test_a_group_version_lists_its_resources_as_a_real_server_does(
    http: aiohttp.ClientSession, name: str
) -> None:
    """Recordings 01 and 03, without the resources that can't be listed."""
    expected = msgspec.json.decode(read_recording(name).body)
    document = await get(http, recorded_target(name))
    assert list(document) == list(expected)
    assert document["groupVersion"] == expected["groupVersion"]
    listed = [one for one in expected["resources"] if "watch" in one["verbs"]]
    whole = [one for one in document["resources"] if "/" not in one["name"]]
    assert [comparable(one) for one in whole] == [comparable(one) for one in listed]


@pytest.mark.parametrize("name", ["01-core-v1-resources", "03-group-version-resources"])
async def test_subresources_are_listed_after_their_resource(
    http: aiohttp.ClientSession, name: str
) -> None:
    expected = msgspec.json.decode(read_recording(name).body)["resources"]
    found = (await get(http, recorded_target(name)))["resources"]
    parts = [one for one in found if "/" in one["name"]]
    served = ("/status", "/scale", "/eviction", "/token")
    wanted = [one for one in expected if one["name"].endswith(served)]
    assert parts == wanted
    assert [list(one) for one in parts] == [list(one) for one in wanted]
    for part in parts:
        names = [one["name"].partition("/")[0] for one in found]
        place = [one["name"] for one in found].index(part["name"])
        assert names[place - 1] == names[place]


async def test_the_aggregated_form_has_the_status_within_the_resource(
    http: aiohttp.ClientSession, server: ApiServer
) -> None:
    """Recording 02; a custom resource repeats its group and version."""
    server.cluster.add_resource(WIDGETS, status=True)
    expected = msgspec.json.decode(read_recording("02-aggregated-discovery").body)
    document = await get(http, "/apis", AGGREGATED)

    def parts(document: dict[str, Any]) -> dict[str, list[Any]]:
        return {
            f"{resource['resource']}.{item['metadata']['name']}": [
                part for part in resource.get("subresources", ()) if part["subresource"] == "status"
            ]
            for item in document["items"]
            for version in item["versions"]
            for resource in version["resources"]
        }

    found = parts(document)
    [widget] = found.pop("widgets.example.com")
    assert widget["responseKind"] == {"group": "example.com", "version": "v1", "kind": "Widget"}
    assert found == {name: part for name, part in parts(expected).items() if name in found}


async def test_the_aggregated_form_has_every_group_in_one_document(
    http: aiohttp.ClientSession,
) -> None:
    """Recording 02."""
    expected = msgspec.json.decode(read_recording("02-aggregated-discovery").body)
    async with http.get("/apis", headers=AGGREGATED) as response:
        assert (
            response.headers["Content-Type"]
            == read_recording("02-aggregated-discovery").headers["Content-Type"]
        )
        document = await response.json()
    assert list(document) == list(expected)
    found = {item["metadata"]["name"]: item["versions"] for item in document["items"]}
    known = {item["metadata"]["name"]: item["versions"] for item in expected["items"]}
    apps, apps_known = found["apps"][0], known["apps"][0]
    assert list(apps) == list(apps_known)
    assert [comparable(one) for one in apps["resources"]] == [
        comparable(one) for one in apps_known["resources"]
    ]
    [widgets] = found["example.com"][0]["resources"]
    assert widgets["responseKind"] == {"group": "example.com", "version": "v1", "kind": "Widget"}


async def test_the_core_group_is_aggregated_under_its_own_root(
    http: aiohttp.ClientSession,
) -> None:
    document = await get(http, "/api", AGGREGATED)
    [item] = document["items"]
    assert [version["version"] for version in item["versions"]] == ["v1"]


async def test_the_legacy_form_leads_from_groups_to_versions_to_resources(
    http: aiohttp.ClientSession,
) -> None:
    assert (await get(http, "/api"))["versions"] == ["v1"]
    groups = (await get(http, "/apis"))["groups"]
    [widgets] = [group for group in groups if group["name"] == "example.com"]
    assert widgets["preferredVersion"] == {"groupVersion": "example.com/v1", "version": "v1"}
    assert (await get(http, "/apis/example.com"))["kind"] == "APIGroup"
    [entry] = (await get(http, "/apis/example.com/v1"))["resources"]
    assert (entry["name"], entry["kind"], entry["namespaced"]) == ("widgets", "Widget", True)


@pytest.mark.parametrize("path", ["/apis/nope", "/apis/nope/v1", "/api/v2"])
async def test_an_unknown_group_is_a_plain_text_404(http: aiohttp.ClientSession, path: str) -> None:
    async with http.get(path) as response:
        assert response.status == 404
        assert response.content_type == "text/plain"


async def test_the_server_answers_requests_for_health_and_version(
    http: aiohttp.ClientSession,
) -> None:
    for path in ("/healthz", "/readyz", "/livez"):
        async with http.get(path) as response:
            assert await response.text() == "ok"
    assert (await get(http, "/version"))["major"] == "1"


# -- resources that come, go and change --------------------------------------------------------


async def test_a_removed_resource_is_in_no_document(
    http: aiohttp.ClientSession, server: ApiServer
) -> None:
    server.cluster.remove_resource(WIDGETS)
    aggregated = await get(http, "/apis", AGGREGATED)
    legacy = await get(http, "/apis")

    assert "example.com" not in {item["metadata"]["name"] for item in aggregated["items"]}
    assert "example.com" not in {group["name"] for group in legacy["groups"]}
    for path in ("/apis/example.com", "/apis/example.com/v1"):
        async with http.get(path) as response:
            assert (response.status, response.content_type) == (404, "text/plain")


async def test_the_preferred_version_is_the_most_stable_and_then_the_newest(
    http: aiohttp.ClientSession, server: ApiServer
) -> None:
    """The order of apimachinery's ``CompareKubeAwareVersionStrings``, not that of registration."""
    for version in ("foo", "v1alpha1", "v2beta1", "v2", "v10"):
        server.cluster.add_resource(replace(WIDGETS, version=version))
    ordered = ["v10", "v2", "v1", "v2beta1", "v1alpha1", "foo"]

    group = await get(http, "/apis/example.com")
    assert group["preferredVersion"]["version"] == "v10"
    assert [each["version"] for each in group["versions"]] == ordered
    items = (await get(http, "/apis", AGGREGATED))["items"]
    [versions] = [each["versions"] for each in items if each["metadata"]["name"] == "example.com"]
    assert [each["version"] for each in versions] == ordered
