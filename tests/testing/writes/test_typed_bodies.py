"""Tests of bodies whose known fields have the wrong type: the answer is a Status with 400."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from aioinformer.testing import ApiServer

CORE = "/api/v1/namespaces/default"
DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments/a"
SCALE = f"{DEPLOYMENT}/scale"
EVICTION = f"{CORE}/pods/a/eviction"
TOKEN = f"{CORE}/serviceaccounts/a/token"
JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


def with_metadata(**metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "b", **metadata}}


@pytest.mark.parametrize(
    ("method", "path", "body", "kind"),
    [
        ("POST", f"{CORE}/pods", with_metadata(ownerReferences=5), ""),
        ("POST", f"{CORE}/pods", with_metadata(ownerReferences={"uid": "x"}), ""),
        ("POST", f"{CORE}/pods", with_metadata(ownerReferences=["x"]), ""),
        ("POST", f"{CORE}/pods", with_metadata(ownerReferences=[{"name": 5}]), ""),
        ("POST", f"{CORE}/pods", with_metadata(managedFields=5), ""),
        ("POST", f"{CORE}/pods", with_metadata(managedFields=[{"manager": 5}]), ""),
        ("PUT", SCALE, {"spec": 5}, ""),
        ("PUT", SCALE, {"metadata": 5}, ""),
        ("PATCH", SCALE, {"spec": 5}, MERGE),
        ("POST", EVICTION, {"metadata": 5}, ""),
        ("POST", EVICTION, {"deleteOptions": 5}, ""),
        ("POST", EVICTION, {"deleteOptions": {"preconditions": {"uid": 5}}}, ""),
        ("POST", TOKEN, {"spec": 5}, ""),
        ("POST", TOKEN, {"spec": {"expirationSeconds": "x"}}, ""),
        ("POST", TOKEN, {"spec": {"audiences": "x"}}, ""),
        ("PATCH", f"{CORE}/pods/a", [{"op": [1], "path": "/spec"}], JSON_PATCH),
        ("PATCH", f"{CORE}/pods/a", [{"op": "add", "path": 5}], JSON_PATCH),
        ("PATCH", f"{CORE}/pods/a", {"spec": {"$retainKeys": 5}}, STRATEGIC),
        ("PATCH", f"{CORE}/pods/a", {"spec": {"$retainKeys": ["y"], "x": 1}}, STRATEGIC),
        (
            "PATCH",
            f"{CORE}/pods/a",
            {"metadata": {"$deleteFromPrimitiveList/finalizers": 5}},
            STRATEGIC,
        ),
    ],
    ids=str,
)
async def test_a_field_with_the_wrong_type_is_answered_with_400(
    server: ApiServer, http: aiohttp.ClientSession, method: str, path: str, body: Any, kind: str
) -> None:
    server.cluster.create("pods", {"metadata": {"name": "a", "finalizers": ["a/b"]}})
    server.cluster.create("deployments", {"metadata": {"name": "a"}})
    server.cluster.create("serviceaccounts", {"metadata": {"name": "a"}})
    before = server.cluster.resource_version
    headers = {"Content-Type": kind} if kind else {}
    async with http.request(method, path, json=body, headers=headers) as response:
        answer = await response.json()
        assert (response.status, answer["reason"]) == (400, "BadRequest"), answer
    assert server.cluster.resource_version == before


async def test_a_patch_to_a_wrong_type_is_answered_with_the_patched_object(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    server.cluster.create("pods", {"metadata": {"name": "a"}})
    patch = {"metadata": {"ownerReferences": 5}}
    async with http.patch(
        f"{CORE}/pods/a", json=patch, headers={"Content-Type": MERGE}
    ) as response:
        status = await response.json()
    assert (response.status, status["reason"]) == (422, "Invalid")
    [cause] = status["details"]["causes"]
    assert cause["field"] == "patch"
    assert '\\"ownerReferences\\":5' in cause["message"]


async def test_a_strategic_patch_of_a_list_leaves_items_of_other_types(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    server.cluster.create("pods", {"metadata": {"name": "a"}, "spec": {"volumes": ["odd"]}})
    patch = {"spec": {"volumes": [{"name": "v"}]}}
    headers = {"Content-Type": STRATEGIC}
    async with http.patch(f"{CORE}/pods/a", json=patch, headers=headers) as response:
        assert (await response.json())["spec"]["volumes"] == ["odd", {"name": "v"}]
