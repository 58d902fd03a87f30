"""Tests of garbage collection: background, foreground, orphan, several owners."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.errors import NotFound
from aioinformer.testing import Cluster, Features
from aioinformer.testing.cluster.registry import Preconditions


def reference(owner: dict[str, Any], *, blocking: bool = False) -> dict[str, Any]:
    metadata = owner["metadata"]
    named = {"name": metadata["name"], "uid": metadata["uid"]}
    head = {"apiVersion": owner["apiVersion"], "kind": owner["kind"]}
    return head | named | ({"blockOwnerDeletion": True} if blocking else {})


def create(
    cluster: Cluster, resource: str, name: str, *owners: dict[str, Any], **metadata: Any
) -> dict[str, Any]:
    body = {"metadata": {"name": name, "ownerReferences": list(owners), **metadata}}
    return cluster.create(resource, body)


def delete(cluster: Cluster, resource: str, name: str, propagation: str = "") -> dict[str, Any]:
    conditions = Preconditions(propagation=propagation)
    return cluster.registry.delete(resource, name, None, preconditions=conditions).to_dict()


def names(cluster: Cluster, resource: str) -> list[str]:
    return [each["metadata"]["name"] for each in cluster.objects(resource)]


@pytest.fixture
def cluster() -> Cluster:
    """Return a Deployment with a ReplicaSet with two Pods."""
    cluster = Cluster()
    deployment = create(cluster, "deployments", "web")
    replicas = create(cluster, "replicasets", "web-1", reference(deployment, blocking=True))
    for name in ("a", "b"):
        create(cluster, "pods", name, reference(replicas, blocking=True))
    return cluster


@pytest.mark.parametrize("propagation", ["", "Background"])
def test_dependents_follow_their_owner(cluster: Cluster, propagation: str) -> None:
    delete(cluster, "deployments", "web", propagation)
    for resource in ("deployments", "replicasets", "pods"):
        assert names(cluster, resource) == []


def test_watches_show_the_deletion_of_the_owner_first_in_the_background(cluster: Cluster) -> None:
    watch = cluster.watch("pods", now=0, resource_version=str(cluster.resource_version))
    deleted = delete(cluster, "replicasets", "web-1")
    lines = watch.take(0)
    assert [line[:17] for line in lines] == [b'{"type":"DELETED"'] * 2
    assert int(deleted["metadata"]["resourceVersion"]) == cluster.resource_version - 2


def test_a_foreground_deletion_deletes_dependents_first(cluster: Cluster) -> None:
    replicas = cluster.watch("replicasets", now=0, resource_version=str(cluster.resource_version))
    answer = delete(cluster, "replicasets", "web-1", "Foreground")
    assert answer["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert [line[9:14] for line in replicas.take(0)] == [b"MODIF", b"DELET"]
    assert names(cluster, "pods") == names(cluster, "replicasets") == []


def test_a_foreground_deletion_waits_for_blocking_dependents(cluster: Cluster) -> None:
    cluster.merge_patch("pods", "a", {"metadata": {"finalizers": ["x.y/z"]}})
    delete(cluster, "deployments", "web", "Foreground")
    assert names(cluster, "deployments") == ["web"]
    assert names(cluster, "replicasets") == ["web-1"]
    assert names(cluster, "pods") == ["a"]
    cluster.merge_patch("pods", "a", {"metadata": {"finalizers": None}})
    for resource in ("deployments", "replicasets", "pods"):
        assert names(cluster, resource) == []


def test_a_foreground_deletion_does_not_wait_for_other_dependents() -> None:
    cluster = Cluster()
    owner = create(cluster, "configmaps", "owner")
    create(cluster, "pods", "a", reference(owner), finalizers=["x.y/z"])
    delete(cluster, "configmaps", "owner", "Foreground")
    assert names(cluster, "configmaps") == []
    assert "deletionTimestamp" in cluster.get("pods", "a")["metadata"]


def test_an_orphan_deletion_removes_the_owner_reference_of_dependents(cluster: Cluster) -> None:
    answer = delete(cluster, "replicasets", "web-1", "Orphan")
    assert answer["metadata"]["finalizers"] == ["orphan"]
    assert names(cluster, "replicasets") == []
    assert names(cluster, "pods") == ["a", "b"]
    assert "ownerReferences" not in cluster.get("pods", "a")["metadata"]


def test_a_dependent_with_another_owner_stays() -> None:
    cluster = Cluster()
    one, two = create(cluster, "configmaps", "one"), create(cluster, "configmaps", "two")
    create(cluster, "pods", "a", reference(one), reference(two))
    delete(cluster, "configmaps", "one")
    references = cluster.get("pods", "a")["metadata"]["ownerReferences"]
    assert [each["name"] for each in references] == ["two"]
    delete(cluster, "configmaps", "two")
    assert names(cluster, "pods") == []


def test_a_reference_to_an_owner_that_never_existed_is_ignored() -> None:
    cluster = Cluster()
    absent = {"apiVersion": "v1", "kind": "ConfigMap", "name": "no", "uid": "u"}
    create(cluster, "pods", "a", absent)
    assert names(cluster, "pods") == ["a"]


def test_garbage_collection_uses_changed_owner_references() -> None:
    cluster = Cluster()
    owner = create(cluster, "configmaps", "owner")
    create(cluster, "pods", "a", reference(owner))
    create(cluster, "pods", "b")
    cluster.merge_patch("pods", "a", {"metadata": {"ownerReferences": None}})
    cluster.merge_patch("pods", "b", {"metadata": {"ownerReferences": [reference(owner)]}})
    delete(cluster, "configmaps", "owner")
    assert names(cluster, "pods") == ["a"]


def test_references_are_known_after_a_restore(cluster: Cluster) -> None:
    snapshot = cluster.snapshot()
    delete(cluster, "deployments", "web")
    cluster.restore(snapshot)
    assert names(cluster, "pods") == ["a", "b"]
    delete(cluster, "deployments", "web")
    assert names(cluster, "pods") == []


def test_garbage_collection_can_be_switched_off() -> None:
    cluster = Cluster(features=Features(garbage_collection=False))
    owner = create(cluster, "configmaps", "owner")
    create(cluster, "pods", "a", reference(owner))
    delete(cluster, "configmaps", "owner", "Foreground")
    assert names(cluster, "configmaps") == ["owner"]
    cluster.merge_patch("configmaps", "owner", {"metadata": {"finalizers": None}})
    with pytest.raises(NotFound):
        cluster.get("configmaps", "owner")
    assert names(cluster, "pods") == ["a"]
