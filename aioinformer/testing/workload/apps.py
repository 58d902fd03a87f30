"""The objects around the pods of a workload: nodes, namespaces, Deployments and Services."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.workload.pods import APPS, NODES, App, pod_template
from aioinformer.testing.workload.rollouts import complete_status

SYSTEM_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


def create_apps(cluster: Cluster, pods: int) -> None:
    """Create the nodes, and applications whose Deployments have about ``pods`` replicas in sum."""
    for number, name in enumerate(NODES):
        cluster.create("nodes", _node(name, zone=f"z{number % 3 + 1}"))
    for name in (*SYSTEM_NAMESPACES, *sorted({app.namespace for app in APPS})):
        cluster.create("namespaces", {"metadata": {"name": name}, "status": {"phase": "Active"}})
    weights = sum(app.weight for app in APPS)
    for number, app in enumerate(APPS):
        body = _deployment(app, replicas=pods * app.weight // weights, now=cluster.now())
        cluster.create("deployments", body)
        cluster.create("services", _service(app, address=f"10.96.12.{number + 10}"))


def _node(name: str, *, zone: str) -> dict[str, Any]:
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    info = {"kubeletVersion": "v1.36.1", "osImage": "Debian GNU/Linux 12 (bookworm)"}
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone}
    status = {"conditions": [ready], "nodeInfo": info}
    return {"metadata": {"name": name, "labels": labels}, "status": status}


def _labels(app: App) -> dict[str, str]:
    return {"app.kubernetes.io/name": app.name, "app.kubernetes.io/part-of": app.namespace}


def _metadata(app: App) -> dict[str, Any]:
    return {"name": app.name, "namespace": app.namespace, "labels": _labels(app)}


def _deployment(app: App, *, replicas: int, now: datetime) -> dict[str, Any]:
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": _labels(app)},
        "template": pod_template(app),
    }
    status = complete_status(replicas, generation=1, now=now)
    return {"metadata": _metadata(app), "spec": spec, "status": status}


def _service(app: App, *, address: str) -> dict[str, Any]:
    ports = [{"name": "http", "port": app.port, "protocol": "TCP"}]
    spec = {"type": "ClusterIP", "clusterIP": address, "ports": ports, "selector": _labels(app)}
    return {"metadata": _metadata(app), "spec": spec}
