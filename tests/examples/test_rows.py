"""The row of an object on the live page: a status, its tone, and details."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aioinformer import SharedInformer, SharedInformerFactory
from aioinformer.testing import Cluster, ClusterSource
from examples.fastapi_app.rows import row


async def shown(resource: str, body: dict[str, Any], *, delete: bool = False) -> dict[str, Any]:
    """Return the row of an object, which may be marked for deletion."""
    cluster = Cluster()
    finalizers = {"finalizers": ["example.com/wait"]} if delete else {}
    metadata = {"name": "x", "labels": {"app": "shop"}} | finalizers
    cluster.create(resource, {"metadata": metadata} | body)
    if delete:
        cluster.delete(resource, "x")
    async with SharedInformerFactory(ClusterSource(cluster)) as informers:
        informer: SharedInformer = informers.informer(resource)
        await informer.wait_synced(30)
        (obj,) = informer.lister
        found: dict[str, Any] = json.loads(row(informer, obj))
        return found


def pod(phase: str, *, ready: str = "True", waiting: str = "", restarts: int = 0) -> dict[str, Any]:
    running: dict[str, Any] = {"running": {}}
    state = {"waiting": {"reason": waiting}} if waiting else running
    containers: list[dict[str, Any]] = [{"restartCount": restarts, "state": state}]
    conditions = [{"type": "Ready", "status": ready}]
    status = {"phase": phase, "containerStatuses": containers, "conditions": conditions}
    return {"spec": {"nodeName": "node-1"}, "status": status}


def node(ready: str, **spec: bool) -> dict[str, Any]:
    info = {"kubeletVersion": "v1.36.1"}
    conditions = [{"type": "Ready", "status": ready}]
    return {"spec": spec, "status": {"conditions": conditions, "nodeInfo": info}}


def deployment(wanted: int, ready: int) -> dict[str, Any]:
    return {"spec": {"replicas": wanted}, "status": {"readyReplicas": ready}}


NOWHERE = "not placed yet"

CASES: list[tuple[str, dict[str, Any], tuple[str, str, str]]] = [
    ("pods", pod("Running"), ("Running", "good", "node-1")),
    ("pods", pod("Running", restarts=2), ("Running", "good", "node-1 · 2 restarts")),
    ("pods", pod("Running", ready="False"), ("Not ready", "wait", "node-1")),
    (
        "pods",
        pod("Running", waiting="CrashLoopBackOff", restarts=1),
        ("CrashLoopBackOff", "bad", "node-1 · 1 restart"),
    ),
    ("pods", pod("Pending", waiting="ContainerCreating"), ("ContainerCreating", "wait", "node-1")),
    ("pods", {"status": {"phase": "Failed", "reason": "Evicted"}}, ("Evicted", "bad", NOWHERE)),
    ("pods", {"status": {"phase": "Succeeded"}}, ("Succeeded", "done", NOWHERE)),
    ("nodes", node("True"), ("Ready", "good", "v1.36.1")),
    ("nodes", node("Unknown"), ("Not ready", "bad", "v1.36.1")),
    ("nodes", node("True", unschedulable=True), ("Cordoned", "wait", "v1.36.1")),
    ("deployments", deployment(3, 3), ("Available", "good", "3 of 3 up")),
    ("deployments", deployment(3, 1), ("Progressing", "wait", "1 of 3 up")),
    ("deployments", deployment(3, 0), ("Progressing", "bad", "0 of 3 up")),
    ("deployments", {}, ("Progressing", "bad", "0 of 1 up")),
    (
        "services",
        {"spec": {"type": "NodePort", "clusterIP": "10.96.0.1", "ports": [{"port": 80}]}},
        ("NodePort", "good", "10.96.0.1 · 80/TCP"),
    ),
    ("jobs", {"status": {"active": 1}}, ("Running", "good", "1 active, 0 done, 0 failed")),
    ("jobs", {"status": {"failed": 1}}, ("Failed", "bad", "0 active, 0 done, 1 failed")),
    ("configmaps", {"data": {"a": "b"}}, ("", "", "")),
]


@pytest.mark.parametrize(("resource", "body", "look"), CASES)
async def test_a_row_has_the_status_tone_and_detail_of_its_object(
    resource: str, body: dict[str, Any], look: tuple[str, str, str]
) -> None:
    found = await shown(resource, body)
    assert (found["status"], found["tone"], found["detail"]) == look
    assert (found["of"], found["name"], found["labels"]) == (resource, "x", {"app": "shop"})


async def test_an_object_that_is_being_deleted_is_terminating() -> None:
    found = await shown("pods", pod("Running"), delete=True)
    assert (found["status"], found["tone"]) == ("Terminating", "wait")


@pytest.mark.parametrize("resource", ["secrets", "configmaps"])
async def test_a_row_does_not_contain_the_data_of_its_object(resource: str) -> None:
    found = await shown(resource, {"data": {"password": "aHVudGVyMg=="}})
    assert "aHVudGVyMg" not in json.dumps(found)
    assert "password" not in json.dumps(found)


async def test_a_pod_without_a_status_has_a_row() -> None:
    found = await shown("pods", {})
    assert found["status"] in ("Unknown", "Pending"), "an API server sets Pending"
