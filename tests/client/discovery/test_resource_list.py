"""The list of everything that a server serves."""

from __future__ import annotations

from typing import Any, cast

import pytest

from aioinformer import Client
from aioinformer.api import ResourceList
from aioinformer.errors import NotRunning
from aioinformer.testing import ApiServer, Cluster
from tests.client.discovery_servers import GROUPS, DocumentServer, client_of


async def recorded() -> ResourceList:
    """Return the resources of the recorded aggregated document of a real server."""
    async with client_of(DocumentServer({"/api": 403, "/api/v1": 403, "/apis": GROUPS})) as client:
        return await client.discover()


def plurals(found: ResourceList) -> set[str]:
    return {each.resource.plural for each in found}


async def test_resources_are_found_by_each_of_their_properties() -> None:
    served = await recorded()

    assert plurals(served.find(name="deploy")) == {"deployments"}
    assert plurals(served.find(kind="Deployment")) == {"deployments"}
    assert plurals(served.find(name="Deployments", group="apps")) == {"deployments"}
    assert not served.find(name="deployments", group="batch")
    assert "deployments" in plurals(served.find(category="all"))
    assert "clusterroles" not in plurals(served.find(namespaced=True))
    assert "clusterroles" in plurals(served.find(namespaced=False, verbs=["list", "watch"]))
    assert "subjectaccessreviews" not in plurals(served.find(verbs=["list"]))


async def test_the_result_of_a_search_can_be_searched_and_names_unread_documents() -> None:
    found = (await recorded()).find(group="apps").find(verbs=["watch"], category="all")

    assert "deployments" in plurals(found)
    assert found.unread == ("/api/v1",)
    assert repr(found[:0]) == "()"
    assert "1 document unread" in repr(found)


async def test_a_text_in_the_place_of_verbs_is_an_error() -> None:
    served = await recorded()
    with pytest.raises(TypeError, match=r"verbs=\['watch'\]"):
        served.find(verbs=cast("Any", "watch"))


async def test_a_client_lists_what_its_server_serves() -> None:
    async with ApiServer(Cluster()) as server, Client(server.url) as client:
        served = await client.discover()
        pods = served.find(name="po", group="")
        assert [each.resource.kind for each in pods] == ["Pod"]
        assert not served.unread
    with pytest.raises(NotRunning):
        await Client(server.url).discover()
