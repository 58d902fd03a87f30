"""Tests of CustomResourceDefinitions: what is served, pruned, defaulted, validated and deleted."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import aiohttp
import msgspec
import pytest

from aioinformer import Client, ObjectKey, SharedInformerFactory
from aioinformer.errors import BadRequest, Invalid, NotFound, UnknownResource
from aioinformer.testing import ApiServer, Cluster

SPEC: dict[str, Any] = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1},
        "color": {"type": "string", "default": "red"},
        "replicas": {"type": "integer"},
    },
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"spec": SPEC, "status": {"type": "object"}},
}
VERSION: dict[str, Any] = {
    "name": "v1",
    "served": True,
    "storage": True,
    "schema": {"openAPIV3Schema": SCHEMA},
    "subresources": {
        "status": {},
        "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
    },
    "additionalPrinterColumns": [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {
            "name": "Ready",
            "type": "string",
            "jsonPath": '.status.conditions[?(@.type=="Ready")].status',
        },
    ],
}
DEFINITION: dict[str, Any] = {
    "metadata": {"name": "sizes.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "sizes", "kind": "Size", "shortNames": ["sz"], "categories": ["all"]},
        "versions": [VERSION],
    },
}
DEFINITIONS = "customresourcedefinitions"


def definition(**version: Any) -> dict[str, Any]:
    """Return the definition with another version."""
    changed = deepcopy(DEFINITION)
    changed["spec"]["versions"] = [VERSION | version]
    return changed


def size(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"size": 1, **spec}}


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    cluster.create(DEFINITIONS, DEFINITION)
    return cluster


def test_a_definition_is_served_at_once_and_established(cluster: Cluster) -> None:
    created = cluster.create("sizes", size("a", unknown=1))
    assert created["spec"] == {"size": 1, "color": "red"}
    status = cluster.get(DEFINITIONS, "sizes.example.com")["status"]
    assert [each["type"] for each in status["conditions"]] == ["NamesAccepted", "Established"]
    assert status["acceptedNames"]["listKind"] == "SizeList"
    assert status["storedVersions"] == ["v1"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"size": 0}, "spec.size in body should be greater than or equal to 1"),
        ({"size": "x"}, 'spec.size in body must be of type integer: "string"'),
        ({"size": 1, "color": None, "replicas": "x"}, "spec.replicas"),
        ({}, "spec.size: Required value"),
    ],
)
def test_an_object_that_breaks_the_schema_is_rejected(
    cluster: Cluster, spec: dict[str, Any], message: str
) -> None:
    with pytest.raises(Invalid, match=message):
        cluster.create("sizes", {"metadata": {"name": "a"}, "spec": spec})
    cluster.create("sizes", size("a"))
    with pytest.raises(Invalid):
        cluster.merge_patch("sizes", "a", {"spec": {"size": 0}})
    assert cluster.get("sizes", "a")["spec"]["size"] == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metadata": {"name": "x.example.com"}}, "must be spec.names.plural"),
        ({"spec": DEFINITION["spec"] | {"versions": []}}, "exactly one version"),
        (definition(storage=False), "exactly one version"),
        (definition(schema=None), "schemas are required"),
        (definition(schema={"openAPIV3Schema": {"type": "nope"}}), "nope"),
    ],
)
def test_a_bad_definition_is_rejected(change: dict[str, Any], message: str) -> None:
    cluster = Cluster()
    with pytest.raises(Invalid, match=message):
        cluster.create(DEFINITIONS, DEFINITION | change)
    with pytest.raises(UnknownResource):
        cluster.list("sizes")


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"names": {"plural": "sizes", "kind": "Size", "shortNames": 5}}, BadRequest),
        ({"names": {"plural": "sizes", "kind": "Size", "categories": "all"}}, BadRequest),
        ({"names": 5}, BadRequest),
        ({"versions": 5}, BadRequest),
        ({"versions": [5]}, BadRequest),
        ({"versions": [VERSION | {"subresources": 5}]}, BadRequest),
        ({"versions": [VERSION | {"additionalPrinterColumns": [5]}]}, BadRequest),
        ({"versions": [VERSION | {"name": None}]}, Invalid),
        ({"versions": [VERSION | {"name": "v 1"}]}, Invalid),
        ({"group": "", "scope": 5}, BadRequest),
    ],
    ids=str,
)
def test_a_definition_with_a_wrong_type_is_rejected_and_not_stored(
    spec: dict[str, Any], error: type[Exception]
) -> None:
    cluster = Cluster()
    with pytest.raises(error):
        cluster.create(DEFINITIONS, {**DEFINITION, "spec": DEFINITION["spec"] | spec})
    with pytest.raises(BadRequest):
        cluster.create(DEFINITIONS, {**DEFINITION, "spec": 5})
    cluster.create(DEFINITIONS, DEFINITION)
    assert cluster.create("sizes", size("a"))["spec"]["size"] == 1


def test_a_changed_schema_changes_the_served_objects_under_the_same_versions(
    cluster: Cluster,
) -> None:
    before = cluster.create("sizes", size("a"))
    watch = cluster.watch("sizes", now=0, resource_version=str(cluster.resource_version))
    pods = cluster.watch("pods", now=0, resource_version=str(cluster.resource_version))
    schema = deepcopy(SCHEMA)
    schema["properties"]["spec"]["properties"]["shape"] = {"type": "string", "default": "round"}
    del schema["properties"]["spec"]["properties"]["color"]
    patch = {"spec": definition(schema={"openAPIV3Schema": schema})["spec"]}
    cluster.merge_patch(DEFINITIONS, "sizes.example.com", patch)
    after = cluster.get("sizes", "a")
    assert after["metadata"] == before["metadata"]
    assert after["spec"] == {"size": 1, "shape": "round"}
    watch.take(0)
    assert watch.ended
    assert not pods.ended
    version = before["metadata"]["resourceVersion"]
    (line,) = cluster.watch("sizes", now=0, resource_version=version).take(0)
    assert b'"code":410' in line
    assert cluster.watch("pods", now=0, resource_version=version).take(0) == []


def test_a_deleted_definition_deletes_its_objects(cluster: Cluster) -> None:
    cluster.create("sizes", size("a"))
    watch = cluster.watch("sizes", now=0, resource_version=str(cluster.resource_version))
    deleted = cluster.delete(DEFINITIONS, "sizes.example.com")
    assert deleted["metadata"]["finalizers"]
    assert [line[9:16] for line in watch.take(0)] == [b"DELETED"]
    assert watch.ended
    with pytest.raises(NotFound):
        cluster.get(DEFINITIONS, "sizes.example.com")
    with pytest.raises(UnknownResource):
        cluster.list("sizes")
    cluster.create(DEFINITIONS, DEFINITION)
    assert b'"items":[]' in cluster.list("sizes")


def test_a_definition_waits_for_the_finalizers_of_its_objects(cluster: Cluster) -> None:
    cluster.create(
        "sizes", {"metadata": {"name": "a", "finalizers": ["x.y/z"]}, "spec": {"size": 1}}
    )
    cluster.delete(DEFINITIONS, "sizes.example.com")
    assert "deletionTimestamp" in cluster.get(DEFINITIONS, "sizes.example.com")["metadata"]
    cluster.merge_patch("sizes", "a", {"metadata": {"finalizers": None}})
    with pytest.raises(NotFound):
        cluster.get(DEFINITIONS, "sizes.example.com")


def test_all_versions_show_the_same_objects() -> None:
    cluster = Cluster()
    two = deepcopy(DEFINITION)
    old: dict[str, Any] = VERSION | {
        "name": "v1beta1",
        "storage": False,
        "additionalPrinterColumns": [],
    }
    two["spec"]["versions"] = [VERSION, old]
    cluster.create(DEFINITIONS, two)
    v1, beta = (each for each in cluster.resources if each.plural == "sizes")
    assert (v1.version, beta.version) == ("v1", "v1beta1")
    watch = cluster.watch(beta, now=0, resource_version=str(cluster.resource_version))
    created = cluster.create(v1, size("a"))
    shown = cluster.get(beta, "a")
    assert shown == created | {"apiVersion": "example.com/v1beta1"}
    changed = cluster.merge_patch(beta, "a", {"spec": {"size": 5}})
    assert changed["apiVersion"] == "example.com/v1beta1"
    assert cluster.get(v1, "a")["spec"]["size"] == 5
    types = [msgspec.json.decode(line) for line in watch.take(0)]
    assert [each["type"] for each in types] == ["ADDED", "MODIFIED"]
    assert {each["object"]["apiVersion"] for each in types} == {"example.com/v1beta1"}
    cluster.delete(beta, "a")
    with pytest.raises(NotFound):
        cluster.get(v1, "a")
    snapshot = cluster.snapshot()
    cluster.create(beta, size("b"))
    cluster.restore(snapshot)
    cluster.create(beta, size("c", unknown=1))
    assert cluster.get(v1, "c")["spec"] == {"size": 1, "color": "red"}


def test_a_cluster_restored_to_its_beginning_serves_no_custom_resource(cluster: Cluster) -> None:
    cluster.create("sizes", size("a"))
    cluster.restore()
    with pytest.raises(UnknownResource):
        cluster.list("sizes")
    cluster.create(DEFINITIONS, DEFINITION)
    assert b'"items":[]' in cluster.list("sizes")


def test_tables_have_the_columns_of_the_definition(cluster: Cluster) -> None:
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    schema = deepcopy(SCHEMA)
    schema["properties"]["status"] = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
    }
    patch = {"spec": definition(schema={"openAPIV3Schema": schema})["spec"]}
    cluster.merge_patch(DEFINITIONS, "sizes.example.com", patch)
    cluster.create("sizes", size("a") | {"status": ready})
    cluster.create("sizes", size("b"))
    table = msgspec.json.decode(cluster.list("sizes", form="table"))
    assert [each["name"] for each in table["columnDefinitions"]] == ["Name", "Size", "Ready"]
    assert [row["cells"] for row in table["rows"]] == [["a", 1, "True"], ["b", 1, None]]


async def test_a_definition_over_http_is_discovered_watched_and_scaled() -> None:
    async with ApiServer() as server, Client(server.url) as client:
        await client.api(DEFINITIONS).create(DEFINITION)
        sizes = await client.resource("sizes")
        assert sizes.short_names == ("sz",)
        async with SharedInformerFactory(client) as informers:
            informer = informers.informer(sizes)
            await informer.wait_synced(timeout=30)
            created = await client.api(sizes).create(
                size("a", replicas=2) | {"metadata": {"name": "a", "namespace": "default"}}
            )
            await informer.wait_for(created, timeout=10)
            assert informer.lister[ObjectKey("default", "a")]["spec"]["color"] == "red"
        path = "/apis/example.com/v1/namespaces/default/sizes/a/scale"
        async with aiohttp.ClientSession(server.url) as http, http.get(path) as response:
            assert (await response.json())["spec"] == {"replicas": 2}


# -- events ------------------------------------------------------------------------------------


def test_the_events_of_both_groups_are_one_store() -> None:
    cluster = Cluster()
    new = "events.events.k8s.io"
    watch = cluster.watch(new, now=0, resource_version=str(cluster.resource_version))
    cluster.create(
        "events",
        {
            "metadata": {"name": "a"},
            "involvedObject": {"kind": "Pod", "name": "p"},
            "message": "hello",
            "source": {"component": "c"},
            "count": 1,
            "reason": "R",
        },
    )
    event = cluster.get(new, "a")
    assert event["apiVersion"] == "events.k8s.io/v1"
    assert (event["note"], event["regarding"]["name"], event["reason"]) == ("hello", "p", "R")
    assert event["deprecatedSource"] == {"component": "c"}
    cluster.merge_patch(new, "a", {"note": "bye", "reportingController": "x"})
    core = cluster.get("events", "a")
    assert (core["message"], core["reportingComponent"], core["apiVersion"]) == ("bye", "x", "v1")
    cluster.delete("events", "a")
    assert [line[9:14] for line in watch.take(0)] == [b"ADDED", b"MODIF", b"DELET"]
    assert list(cluster.objects(new)) == []
