"""Tests of scale, eviction and tokens over HTTP, and of deletions of collections."""

from __future__ import annotations

import zlib
from typing import Any

import aiohttp
import pytest

from aioinformer.testing import ApiServer, Cluster, Features
from tests.testing.conftest import get

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENT: dict[str, Any] = {
    "metadata": {"name": "web"},
    "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}},
    "status": {"replicas": 1},
}
MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}


async def test_a_deployment_is_scaled(server: ApiServer, http: aiohttp.ClientSession) -> None:
    created = server.cluster.create("deployments", DEPLOYMENT)
    scale = await get(http, f"{DEPLOYMENTS}/web/scale")
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert (scale["spec"], scale["status"]) == (
        {"replicas": 2},
        {"replicas": 1, "selector": "app=web"},
    )
    assert scale["metadata"]["uid"] == created["metadata"]["uid"]
    scale["spec"]["replicas"] = 5
    async with http.put(f"{DEPLOYMENTS}/web/scale", json=scale) as response:
        assert (await response.json())["spec"] == {"replicas": 5}
    async with http.put(f"{DEPLOYMENTS}/web/scale", json=scale) as response:
        assert response.status == 409  # the resourceVersion is that of the first state
    patch = b'{"spec":{"replicas":0}}'
    async with http.patch(f"{DEPLOYMENTS}/web/scale", data=patch, headers=MERGE_PATCH) as response:
        assert (await response.json())["spec"] == {"replicas": 0}
    stored = server.cluster.get("deployments", "web")
    assert stored["spec"] == {**DEPLOYMENT["spec"], "replicas": 0}
    assert stored["metadata"]["generation"] == 3


@pytest.mark.parametrize(
    ("scale", "status"),
    [
        ({"spec": {"replicas": -1}}, 422),
        ({"spec": {"replicas": "3"}}, 400),
        ({"metadata": {"name": "other"}, "spec": {"replicas": 1}}, 400),
        ({"metadata": {"uid": "other"}, "spec": {"replicas": 1}}, 409),
    ],
)
async def test_a_bad_scale_is_an_error(
    server: ApiServer, http: aiohttp.ClientSession, scale: dict[str, Any], status: int
) -> None:
    server.cluster.create("deployments", DEPLOYMENT)
    async with http.put(f"{DEPLOYMENTS}/web/scale", json=scale) as response:
        assert response.status == status, await response.text()
    assert server.cluster.get("deployments", "web")["spec"]["replicas"] == 2


async def test_a_resource_without_a_scale_is_not_found(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    async with http.get(f"{DEPLOYMENTS}/none/scale") as response:
        assert response.status == 404
    async with http.get("/apis/apps/v1/namespaces/default/daemonsets/d/scale") as response:
        assert response.status == 404
    server.cluster.create("deployments", DEPLOYMENT)
    async with http.delete(f"{DEPLOYMENTS}/web/scale") as response:
        assert response.status == 405


# -- eviction ----------------------------------------------------------------------------------


async def evict(http: aiohttp.ClientSession, name: str, **more: Any) -> tuple[int, dict[str, Any]]:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, **more}
    async with http.post(f"{PODS}/{name}/eviction", json=body) as response:
        return response.status, await response.json()


async def test_a_pod_is_evicted(server: ApiServer, http: aiohttp.ClientSession) -> None:
    server.cluster.create("pods", {"metadata": {"name": "a"}})
    status, body = await evict(http, "a")
    assert (status, body["status"], body["code"]) == (201, "Success", 201)
    assert server.cluster.find_object("pods", "a") is None
    assert (await evict(http, "a"))[0] == 404


async def test_a_disruption_budget_limits_evictions(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    budget = {
        "metadata": {"name": "b"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": 1, "desiredHealthy": 1, "currentHealthy": 2},
    }
    server.cluster.create("poddisruptionbudgets", budget)
    for name in ("a", "b"):
        server.cluster.create("pods", {"metadata": {"name": name, "labels": {"app": "web"}}})
    server.cluster.create("pods", {"metadata": {"name": "c"}})
    assert (await evict(http, "a", deleteOptions={"preconditions": {"uid": "x"}}))[0] == 409
    server.cluster.merge_patch("poddisruptionbudgets", "b", {"status": {"disruptionsAllowed": 1}})
    assert (await evict(http, "a"))[0] == 201
    status, body = await evict(http, "b")
    assert (status, body["reason"]) == (429, "TooManyRequests")
    assert body["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    assert (await evict(http, "c"))[0] == 201
    server.cluster.create("poddisruptionbudgets", {**budget, "metadata": {"name": "b2"}})
    assert (await evict(http, "b"))[0] == 500


# -- collections, HEAD, documents --------------------------------------------------------------


async def test_a_collection_is_deleted(server: ApiServer, http: aiohttp.ClientSession) -> None:
    for name, labels in (("a", {"app": "web"}), ("b", {"app": "web"}), ("c", {})):
        server.cluster.create("pods", {"metadata": {"name": name, "labels": labels}})
    async with http.delete(f"{PODS}?labelSelector=app%3Dweb") as response:
        assert response.status == 200
        deleted = await response.json()
    assert deleted["kind"] == "PodList"
    assert [each["metadata"]["name"] for each in deleted["items"]] == ["a", "b"]
    assert [each["metadata"]["name"] for each in server.cluster.objects("pods")] == ["c"]
    assert b'"name":"c"' in server.cluster.delete_collection("pods", namespace="default")
    assert list(server.cluster.objects("pods")) == []


async def test_a_head_has_no_body_and_leaves_the_connection_usable(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    """Custom resources answer HEAD; routes of built-in resources and documents have none."""
    for path, status in ((PODS, 405), ("/version", 405), ("/healthz", 200), ("/nowhere", 404)):
        for _ in range(2):
            async with http.head(path) as response:
                assert (response.status, await response.read()) == (status, b"")
    assert (await get(http, PODS))["kind"] == "PodList"


async def test_resources_have_their_categories(http: aiohttp.ClientSession) -> None:
    found = {each["name"]: each for each in (await get(http, "/api/v1"))["resources"]}
    assert found["pods"]["categories"] == ["all"]
    assert "categories" not in found["secrets"]


async def test_the_version_has_every_field(http: aiohttp.ClientSession) -> None:
    version = await get(http, "/version")
    fields = {"gitVersion", "gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler"}
    assert fields <= version.keys()
    assert all(version.values())


async def test_the_error_for_protobuf_names_the_settings_of_clients(
    http: aiohttp.ClientSession,
) -> None:
    headers = {"Content-Type": "application/vnd.kubernetes.protobuf"}
    async with http.post(PODS, data=b"k8s\0", headers=headers) as response:
        assert response.status == 415
        assert "rest.Config.ContentType" in (await response.json())["message"]


async def test_the_old_form_of_a_watch_starts_with_the_objects(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    for name in ("a", "b"):
        server.cluster.create("pods", {"metadata": {"name": name}})
    for path, count in (
        ("/api/v1/watch/pods", 2),
        ("/api/v1/watch/namespaces/default/pods", 2),
        ("/api/v1/watch/namespaces/default/pods/b", 1),
    ):
        async with http.get(f"{path}?timeoutSeconds=1") as response:
            lines = [await response.content.readline() for _ in range(count)]
        assert [line[:15] for line in lines] == [b'{"type":"ADDED"'] * count


async def test_each_gzip_member_of_a_watch_list_is_flushed_before_its_end() -> None:
    """Go's reader holds back what comes after the last flush of a member (zlib's sync mark)."""
    async with ApiServer(Cluster(features=Features(minor=37))) as server:
        server.cluster.create("pods", {"metadata": {"name": "a"}})
        query = (
            "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
            "&allowWatchBookmarks=true&timeoutSeconds=1"
        )
        async with aiohttp.ClientSession(server.url, auto_decompress=False) as http:
            headers = {"Accept-Encoding": "gzip"}
            async with http.get(f"{PODS}?{query}", headers=headers) as response:
                rest = await response.read()
    members = 0
    while rest:
        reader = zlib.decompressobj(zlib.MAX_WBITS | 16)
        reader.decompress(rest)
        member = rest[: len(rest) - len(reader.unused_data)]
        assert b"\x00\x00\xff\xff" in member[:-8]
        rest, members = reader.unused_data, members + 1
    assert members >= 1
