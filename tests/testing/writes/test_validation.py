"""Tests of the changes that an update or a patch can make, and of those that it can't."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from aioinformer import KubeObject, ObjectKey, Resource
from aioinformer._core.objects.resources import find_built_in
from aioinformer.errors import BadRequest, Conflict, Invalid
from aioinformer.testing import Cluster, ClusterSource
from aioinformer.testing.simulation.loop import run
from tests.testing.recorded_exchanges import WIDGETS


def pod(**labels: str) -> dict[str, Any]:
    return {"metadata": {"name": "web-0", "labels": labels}, "spec": {"nodeName": "node-1"}}


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    cluster.add_resource(WIDGETS)
    return cluster


def test_an_update_from_a_stale_state_is_a_conflict(cluster: Cluster) -> None:
    stale = cluster.create("pods", pod())
    cluster.merge_patch("pods", "web-0", {"metadata": {"labels": {"a": "b"}}})
    with pytest.raises(Conflict) as caught:
        cluster.update("pods", stale)
    assert caught.value.status.reason == "Conflict"
    assert caught.value.status.message == (
        'Operation cannot be fulfilled on pods "web-0": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )


def test_an_object_of_the_cache_can_be_written_back(cluster: Cluster) -> None:
    created = cluster.create("pods", pod(app="shop"))
    metadata = created["metadata"]
    cached = KubeObject(
        ObjectKey("default", "web-0"),
        metadata["uid"],
        metadata["resourceVersion"],
        msgspec.json.encode(created),
        find_built_in("pods"),
    )
    assert cluster.update("pods", cached) == created
    changed = cluster.update("pods", {**cached, "spec": {"nodeName": "node-2"}})
    assert changed["metadata"]["labels"] == {"app": "shop"}
    assert changed["spec"] == {"nodeName": "node-2"}


def test_an_update_for_a_former_object_of_that_name_is_a_conflict(cluster: Cluster) -> None:
    former = cluster.create("pods", pod())
    cluster.delete("pods", "web-0")
    cluster.create("pods", pod())
    del former["metadata"]["resourceVersion"]
    with pytest.raises(Conflict, match="UID in precondition"):
        cluster.update("pods", former)


def test_an_update_without_a_resource_version_overwrites_a_pod(cluster: Cluster) -> None:
    cluster.create("pods", pod(a="b"))
    assert cluster.update("pods", pod(c="d"))["metadata"]["labels"] == {"c": "d"}


def test_an_update_of_a_custom_resource_needs_a_resource_version(cluster: Cluster) -> None:
    cluster.create(WIDGETS, {"metadata": {"name": "w"}})
    with pytest.raises(Invalid, match=r"metadata\.resourceVersion"):
        cluster.update(WIDGETS, {"metadata": {"name": "w"}, "spec": {}})


def test_a_custom_resource_of_another_kind_is_invalid(cluster: Cluster) -> None:
    """A built-in type is answered with 400, and so is another apiVersion."""
    with pytest.raises(Invalid) as caught:
        cluster.create(WIDGETS, {"kind": "Gadget", "metadata": {"name": "w"}})
    [cause] = caught.value.status.details["causes"]
    assert cause["field"] == "kind"
    assert cause["message"] == 'Invalid value: "Gadget": must be Widget'
    with pytest.raises(BadRequest):
        cluster.create(WIDGETS, {"apiVersion": "example.com/v2", "metadata": {"name": "w"}})


def test_a_write_without_changes_does_not_change_the_version(cluster: Cluster) -> None:
    created = cluster.create("pods", pod(a="b"))
    before = cluster.resource_version
    assert cluster.update("pods", created) == created
    assert cluster.merge_patch("pods", "web-0", {"metadata": {"labels": {"a": "b"}}}) == created
    assert cluster.resource_version == before


def test_the_generation_counts_changes_of_the_spec_alone(cluster: Cluster) -> None:
    cluster.create("pods", pod())
    labelled = cluster.merge_patch("pods", "web-0", {"metadata": {"labels": {"a": "b"}}})
    reported = cluster.merge_patch("pods", "web-0", {"status": {"phase": "Running"}})
    moved = cluster.merge_patch("pods", "web-0", {"spec": {"nodeName": "node-2"}})
    generations = [one["metadata"]["generation"] for one in (labelled, reported, moved)]
    assert generations == [1, 1, 2]


def test_the_metadata_of_the_server_can_not_be_changed(cluster: Cluster) -> None:
    created = cluster.create("pods", pod())
    forged = {
        "creationTimestamp": "2000-01-01T00:00:00Z",
        "generation": 9,
        "deletionTimestamp": "x",
    }
    patched = cluster.merge_patch("pods", "web-0", {"metadata": forged, "spec": {"a": 1}})
    assert patched["metadata"]["creationTimestamp"] == created["metadata"]["creationTimestamp"]
    assert patched["metadata"]["generation"] == 2
    assert "deletionTimestamp" not in patched["metadata"]


@pytest.mark.parametrize(("field", "value"), [("name", "other"), ("namespace", "elsewhere")])
def test_an_object_can_not_be_renamed_or_moved(cluster: Cluster, field: str, value: str) -> None:
    cluster.create("pods", pod())
    with pytest.raises(BadRequest, match="does not match the"):
        cluster.merge_patch("pods", "web-0", {"metadata": {field: value}})


@pytest.mark.parametrize(
    "resource",
    [
        find_built_in("nodes"),
        find_built_in("namespaces"),
        Resource("example.com", "v1", "zones", "Zone", namespaced=False),
    ],
    ids=str,
)
def test_the_status_of_a_cluster_scoped_object_is_updated_patched_and_applied(
    resource: Resource,
) -> None:
    cluster = Cluster()
    cluster.add_resource(resource, status=True)

    async def main() -> None:
        objects = ClusterSource(cluster).api(resource)
        created = await objects.create({"metadata": {"name": "a"}, "spec": {"x": 1}})
        updated = await objects.update_status({**created.to_dict(), "status": {"x": 1}})
        assert updated["status"] == {"x": 1}
        patched = await objects.patch("a", {"status": {"y": 2}}, subresource="status")
        assert patched["status"] == {"x": 1, "y": 2}
        config = {"metadata": {"name": "a"}, "status": {"z": 3}}
        applied = await objects.apply(config, field_manager="m", subresource="status")
        assert applied["status"] == {"x": 1, "y": 2, "z": 3}
        assert applied["spec"] == {"x": 1}
        assert "namespace" not in applied["metadata"]

    run(main(), seed=0)


def test_the_namespace_in_the_body_of_a_cluster_scoped_object_is_dropped(cluster: Cluster) -> None:
    created = cluster.create("nodes", {"metadata": {"name": "a", "namespace": "web"}})
    assert "namespace" not in created["metadata"]
    created["metadata"]["namespace"] = "web"
    assert "namespace" not in cluster.update("nodes", {**created, "spec": {}})["metadata"]


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({"a": "foo"}, {"a": {"b": {"c": None}}}, {"a": {"b": {}}}),
    ],
)
def test_a_merge_patch_follows_the_rfc(
    cluster: Cluster, target: dict[str, Any], patch: dict[str, Any], result: dict[str, Any]
) -> None:
    """The examples of RFC 7396, appendix A, that an object can hold."""
    cluster.create("pods", pod() | {"spec": target})
    assert cluster.merge_patch("pods", "web-0", {"spec": patch})["spec"] == result
