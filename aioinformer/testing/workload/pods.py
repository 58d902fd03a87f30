"""Bodies of pods: 2 to 3 kB each, as in the cluster of a small web shop.

A pod is created like a pod of a Deployment, is assigned to a node, runs, becomes ready or not
ready, restarts, and ends. Each of these steps is a function from body to body.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, TypeAlias

PodBody: TypeAlias = dict[str, Any]

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""The characters of the suffix that Kubernetes adds to generated names."""


@dataclass(frozen=True, slots=True)
class App:
    namespace: str
    name: str
    revision: str
    """The hash of its ReplicaSet."""
    port: int
    weight: int
    """The share of the pods, relative to the other weights."""


APPS = (
    App("shop", "web", "7d9f8c6b54", 8080, 9),
    App("shop", "cart", "5b6c9f7d88", 8081, 5),
    App("shop", "catalog", "6f4d5c9b7f", 8082, 4),
    App("payments", "gateway", "84c7d6f59b", 8443, 4),
    App("payments", "ledger", "59d8b7c6f4", 9090, 2),
    App("search", "query", "7c5f9d8b6b", 9200, 4),
    App("search", "indexer", "66b9c7d5f8", 9300, 2),
    App("media", "thumbnailer", "9f7b6d5c84", 8000, 4),
    App("identity", "login", "5d9c8b7f6d", 8444, 3),
    App("batch", "report", "6b8f7d9c55", 7000, 2),
    App("monitoring", "prober", "8c6d5f7b9b", 9115, 2),
)

NODES = tuple(f"node-{number:02}" for number in range(1, 13))


def create_pod(app: App, random: Random) -> PodBody:
    """Return a pod without a node. The random suffix makes an existing name improbable."""
    suffix = "".join(random.choices(_LETTERS, k=5))
    return {
        "metadata": {
            "name": f"{app.name}-{app.revision}-{suffix}",
            "namespace": app.namespace,
            "labels": _labels(app),
            "annotations": {
                "prometheus.io/scrape": "true",
                "prometheus.io/port": str(app.port),
                "kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z",
            },
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": f"{app.name}-{app.revision}",
                    "uid": f"{random.getrandbits(32):08x}-52f4-4c8e-9d4b-3b1f0c6a7e21",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "containers": [_container(app)],
            "volumes": [{"name": "config", "configMap": {"name": app.name, "defaultMode": 420}}],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": app.name,
            "schedulerName": "default-scheduler",
            "tolerations": [_toleration("not-ready"), _toleration("unreachable")],
        },
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }


def pod_template(app: App) -> PodBody:
    labels = {name: text for name, text in _labels(app).items() if name != "pod-template-hash"}
    return {"metadata": {"labels": labels}, "spec": {"containers": [_container(app)]}}


def _labels(app: App) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": app.name,
        "app.kubernetes.io/part-of": app.namespace,
        "app.kubernetes.io/managed-by": "Helm",
        "pod-template-hash": app.revision,
    }


def _toleration(condition: str) -> PodBody:
    key = f"node.kubernetes.io/{condition}"
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}


def _container(app: App) -> PodBody:
    return {
        "name": app.name,
        "image": _image(app),
        "ports": [{"name": "http", "containerPort": app.port, "protocol": "TCP"}],
        "env": [
            {"name": "LOG_LEVEL", "value": "info"},
            {"name": "DATABASE_HOST", "value": f"postgres.{app.namespace}.svc.cluster.local"},
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        ],
        "resources": {
            "requests": {"cpu": "100m", "memory": "128Mi"},
            "limits": {"memory": "256Mi"},
        },
        "volumeMounts": [{"name": "config", "mountPath": "/etc/app", "readOnly": True}],
        "readinessProbe": _probe("/ready", 5),
        "livenessProbe": _probe("/live", 20),
        "imagePullPolicy": "IfNotPresent",
        "terminationMessagePath": "/dev/termination-log",
    }


def _image(app: App) -> str:
    return f"registry.example/{app.namespace}/{app.name}:v1.{app.port % 100}"


def _probe(path: str, period: int) -> PodBody:
    return {
        "httpGet": {"path": path, "port": "http", "scheme": "HTTP"},
        "periodSeconds": period,
        "timeoutSeconds": 1,
        "failureThreshold": 3,
    }


# -- the life of a pod -------------------------------------------------------------------------


def assign_node(pod: PodBody, node: str, timestamp: str) -> PodBody:
    """Return the pod with a node, not running yet."""
    status = pod["status"] | {"conditions": [_make_condition("PodScheduled", "True", timestamp)]}
    return pod | {"spec": pod["spec"] | {"nodeName": node}, "status": status}


def start_pod(pod: PodBody, address: str, timestamp: str) -> PodBody:
    container = pod["spec"]["containers"][0]
    state = {
        "name": container["name"],
        "image": container["image"],
        "imageID": f"{container['image']}@sha256:{'4f' * 32}",
        "ready": True,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": timestamp}},
    }
    conditions = [
        _make_condition(kind, "True", timestamp)
        for kind in ("PodScheduled", "Initialized", "Ready")
    ]
    running = {
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": timestamp,
        "conditions": conditions,
        "containerStatuses": [state],
    }
    return pod | {"status": pod["status"] | running}


def toggle_ready(pod: PodBody, timestamp: str) -> PodBody:
    container: Mapping[str, Any] = pod["status"]["containerStatuses"][0]
    ready = not is_ready(pod)
    return _with_status(
        pod,
        conditions=_change_ready(pod, ready, "ContainersNotReady", timestamp),
        containerStatuses=[{**container, "ready": ready}],
    )


def is_ready(pod: PodBody) -> bool:
    last = pod["status"].get("conditions", [{}])[-1]
    return (last.get("type"), last.get("status")) == ("Ready", "True")


def restart_pod(pod: PodBody, timestamp: str) -> PodBody:
    container: Mapping[str, Any] = pod["status"]["containerStatuses"][0]
    restarted = {
        "restartCount": container["restartCount"] + 1,
        "state": {"running": {"startedAt": timestamp}},
        "lastState": {
            "terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": timestamp}
        },
    }
    return _with_status(pod, containerStatuses=[{**container, **restarted}])


def end_pod(pod: PodBody, phase: str, timestamp: str) -> PodBody:
    """Return the pod with the phase ``Succeeded`` or ``Failed``."""
    container: Mapping[str, Any] = pod["status"]["containerStatuses"][0]
    failed = phase == "Failed"
    terminated = {
        "exitCode": int(failed),
        "reason": "Error" if failed else "Completed",
        "startedAt": container["state"]["running"]["startedAt"],
        "finishedAt": timestamp,
    }
    ended = {"ready": False, "started": False, "state": {"terminated": terminated}}
    return _with_status(
        pod,
        phase=phase,
        conditions=_change_ready(pod, False, "PodFailed" if failed else "PodCompleted", timestamp),
        containerStatuses=[{**container, **ended}],
    )


def _change_ready(pod: PodBody, ready: bool, reason: str, timestamp: str) -> list[PodBody]:
    *others, _ = pod["status"]["conditions"]
    condition = _make_condition("Ready", str(ready), timestamp)
    return [*others, condition if ready else condition | {"reason": reason}]


def _with_status(pod: PodBody, **changes: object) -> PodBody:
    return pod | {"status": pod["status"] | changes}


def _make_condition(kind: str, status: str, timestamp: str) -> PodBody:
    return {"type": kind, "status": status, "lastProbeTime": None, "lastTransitionTime": timestamp}
