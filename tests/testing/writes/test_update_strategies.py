"""Tests of updates without a version, of updates of missing objects, and of the status."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from aioinformer import Client, Resource
from aioinformer._core.objects.resources import find_built_in
from aioinformer.errors import Conflict, Forbidden, Invalid, NotFound
from aioinformer.testing import ApiServer, Cluster, ClusterSource, Features, PolicyRule
from aioinformer.testing.simulation.loop import run
from tests.testing.recorded_exchanges import WIDGETS

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


def named(**more: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a", **more}}


@pytest.mark.parametrize("resource", ["leases", "poddisruptionbudgets", "csinodes", WIDGETS])
def test_an_update_without_a_version_is_invalid_for_resources_that_need_one(resource: Any) -> None:
    cluster = Cluster()
    cluster.add_resource(WIDGETS)
    created = cluster.create(resource, named())
    with pytest.raises(Invalid) as caught:
        cluster.update(resource, {**named(), "spec": {"x": 1}})
    [cause] = caught.value.status.details["causes"]
    assert (cause["field"], cause["message"]) == (
        "metadata.resourceVersion",
        "Invalid value: 0: must be specified for an update",
    )
    assert cluster.update(resource, {**created, "spec": {"x": 1}})["spec"] == {"x": 1}


@pytest.mark.parametrize("resource", ["configmaps", "deployments", "services", "nodes"])
def test_an_update_without_a_version_replaces_objects_of_other_resources(resource: str) -> None:
    cluster = Cluster()
    cluster.create(resource, named())
    assert cluster.update(resource, {**named(), "spec": {"x": 1}})["spec"] == {"x": 1}


def test_the_version_zero_is_none() -> None:
    cluster = Cluster()
    cluster.create("configmaps", named(resourceVersion="0"))
    changed = cluster.update("configmaps", {**named(resourceVersion="0"), "data": {"a": "b"}})
    assert changed["data"] == {"a": "b"}
    patch = {"metadata": {"resourceVersion": "0"}, "data": {"a": "c"}}
    assert cluster.merge_patch("configmaps", "a", patch)["data"] == {"a": "c"}
    cluster.create("leases", named())
    with pytest.raises(Invalid, match="must be specified for an update"):
        cluster.update("leases", named(resourceVersion="0"))


METADATA: dict[str, Any] = {
    "labels": {"a": "b"},
    "annotations": {"a": "b"},
    "finalizers": ["a/b"],
    "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}],
}


@pytest.mark.parametrize(
    ("resource", "kept"),
    [
        (find_built_in("pods"), ("ownerReferences",)),
        (find_built_in("nodes"), ()),
        (find_built_in("deployments"), ("labels",)),
        (find_built_in("volumeattachments"), (*METADATA,)),
        (WIDGETS, (*METADATA,)),
    ],
    ids=str,
)
def test_a_write_of_the_status_changes_the_metadata_that_the_resource_allows(
    resource: Resource, kept: tuple[str, ...]
) -> None:
    cluster = Cluster(features=Features(garbage_collection=False))
    cluster.add_resource(resource, status=True)
    namespace = "default" if resource.namespaced else None

    async def main() -> None:
        objects = ClusterSource(cluster).api(resource, namespace=namespace)
        patch = {"metadata": METADATA, "status": {"x": 1}, "spec": {"x": 1}}
        for write in ("patch", "update", "apply"):
            created = await objects.create({"metadata": {"name": write}})
            if write == "patch":
                written = await objects.patch(write, patch, subresource="status")
            elif write == "update":
                body = created.to_dict()
                body |= patch | {"metadata": body["metadata"] | METADATA}
                written = await objects.update_status(body)
            else:
                config = patch | {"metadata": {"name": write, **METADATA}}
                written = await objects.apply(config, field_manager="m", subresource="status")
            found = {name: written["metadata"].get(name) for name in METADATA}
            assert found == {name: METADATA[name] for name in METADATA if name not in kept} | (
                dict.fromkeys(kept)
            )
            assert written["status"] == {"x": 1}
            assert "spec" not in written

    run(main(), seed=0)


@pytest.mark.parametrize("resource", ["leases", "services", "roles", "endpoints", "runtimeclasses"])
def test_an_update_creates_a_missing_object_of_a_few_resources(resource: str) -> None:
    cluster = Cluster()
    created = cluster.update(resource, {**named(resourceVersion="7"), "spec": {"x": 1}})
    assert created == cluster.get(resource, "a")
    assert created["spec"] == {"x": 1}
    with pytest.raises(Conflict, match=r"UID in precondition: u, UID in object meta: $"):
        cluster.update(resource, {"metadata": {"name": "b", "uid": "u"}})


@pytest.mark.parametrize("resource", ["configmaps", "deployments", "poddisruptionbudgets", WIDGETS])
def test_an_update_creates_no_object_of_other_resources(resource: Any) -> None:
    cluster = Cluster()
    cluster.add_resource(WIDGETS)
    with pytest.raises(NotFound):
        cluster.update(resource, named(resourceVersion="1"))


async def test_a_put_of_a_missing_lease_is_answered_with_201(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    async with http.put(f"{LEASES}/a?dryRun=All", json=named()) as response:
        assert response.status == 201
    assert server.cluster.find_object("leases", "a") is None
    async with http.put(f"{LEASES}/a?fieldManager=m", json={"spec": {"x": 1}}) as response:
        assert response.status == 201
        body = await response.json()
        assert (body["metadata"]["name"], body["spec"]) == ("a", {"x": 1})
        assert [each["manager"] for each in body["metadata"]["managedFields"]] == ["m"]
    async with http.put(f"{LEASES}/a", json=body) as response:
        assert response.status == 200


async def test_no_put_of_a_status_creates_the_object(http: aiohttp.ClientSession) -> None:
    path = "/api/v1/namespaces/default/services/a/status"
    async with http.put(path, json=named()) as response:
        assert response.status == 404


async def test_an_update_that_creates_an_object_needs_the_right_to_create_it() -> None:
    async with ApiServer() as server:
        ada = server.access.add_user(
            "ada", token="t", rules=[PolicyRule(verbs=["update"], resources=["leases"])]
        )
        async with Client(server.url, token="t") as client:
            leases = client.api(await client.resource("leases"), namespace="default")
            with pytest.raises(Forbidden, match='User "ada" cannot create resource "leases"'):
                await leases.update(named())
            ada.rules.append(PolicyRule(verbs=["create"], resources=["leases"]))
            assert (await leases.update(named())).name == "a"
