"""The objects around the pods."""

from __future__ import annotations

import json

from aioinformer.testing import Cluster
from aioinformer.testing.workload.apps import create_apps
from aioinformer.testing.workload.workload import PodWorkload


def test_every_pod_has_a_node_a_namespace_and_a_deployment() -> None:
    cluster = Cluster()
    create_apps(cluster, 200)
    PodWorkload(cluster, objects=200, seed=0).populate(200)

    listed = {
        resource: json.loads(cluster.list(resource))["items"]
        for resource in ("pods", "nodes", "namespaces", "deployments", "services")
    }
    named = {
        resource: {item["metadata"]["name"] for item in items} for resource, items in listed.items()
    }
    for pod in listed["pods"]:
        assert pod["metadata"]["namespace"] in named["namespaces"]
        assert pod["metadata"]["labels"]["app.kubernetes.io/name"] in named["deployments"]
        assert pod["spec"].get("nodeName") in {None, *named["nodes"]}
    assert named["services"] == named["deployments"]
    replicas = sum(each["spec"]["replicas"] for each in listed["deployments"])
    assert 180 <= replicas <= 200
