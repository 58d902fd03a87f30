"""Pods of 400 workloads, with hashes, uuids, addresses and times as in a cluster.

``benchmarks.load.pods`` makes pods that differ in a few values, and so compress far better than
those of a cluster. Here each workload has its own images, environment, probes, volumes and labels,
and each pod its own uid, container ids, addresses and times. A pod has about 6 kB of JSON without
managedFields. The same seed gives the same bytes.
"""

from __future__ import annotations

import json
import random
import string
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["WORKLOADS", "Workload", "changed_pod", "make_pods", "make_workloads", "new_pod"]

WORKLOADS = 400
SEED = 20_261_123
NODES = 500
"""Nodes of the cluster: a hundred pods each at 50,000 pods."""

_WORDS = [
    "account", "audit", "basket", "billing", "cache", "catalog", "checkout", "cluster",
    "coupon", "courier", "customer", "delivery", "digest", "edge", "event", "export",
    "feed", "fraud", "gateway", "graph", "image", "index", "ingest", "inventory",
    "invoice", "label", "ledger", "loyalty", "mail", "market", "media", "message",
    "metrics", "notify", "offer", "order", "parcel", "partner", "payment", "policy",
    "price", "print", "profile", "proxy", "queue", "rating", "refund", "report",
    "return", "review", "reward", "router", "schedule", "search", "session", "settle",
    "shard", "ship", "signal", "stock", "stream", "supply", "tax", "token",
    "trace", "upload", "user", "vault", "wallet", "warehouse",
]  # fmt: skip
_KINDS = ("api", "worker", "consumer", "cron", "web", "sync", "store", "ingester")
_SAFE = "bcdfghjklmnpqrstvwxz2456789"
"""The letters of generated names, as Kubernetes chooses them."""


@dataclass(frozen=True, slots=True)
class Workload:
    """The fields that the pods of one Deployment have in common."""

    name: str
    namespace: str
    template_hash: str
    owner: str
    """The uid of the ReplicaSet."""
    metadata: dict[str, Any]
    spec: dict[str, Any]
    images: tuple[tuple[str, str, str], ...]
    """Name, image and digest of each container."""


def make_workloads(count: int = WORKLOADS, seed: int = SEED) -> list[Workload]:
    """Return the workloads of a cluster."""
    chance = random.Random(seed)
    return [_make_workload(chance, number) for number in range(count)]


def make_pods(pods: int, seed: int = SEED) -> Iterator[bytes]:
    """Yield the JSON of pods in the order of an API server: by namespace and name.

    Large workloads have far more pods than small ones.
    """
    workloads = make_workloads(seed=seed)
    chance = random.Random(seed + 1)
    weights = [1 / (rank + 3) for rank in range(len(workloads))]
    chosen = chance.choices(workloads, weights, k=pods)
    chosen.sort(key=lambda each: (each.namespace, each.name))
    for number, workload in enumerate(chosen):
        yield _encode(_make_pod(chance, workload, number + 1))


def changed_pod(pod: bytes, version: int, chance: random.Random) -> bytes:
    """Return the next version of a pod, in which a container was restarted."""
    body = json.loads(pod)
    body["metadata"]["resourceVersion"] = str(version)
    status = chance.choice(body["status"]["containerStatuses"])
    status["restartCount"] += 1
    status["containerID"] = f"containerd://{_hex(chance, 64)}"
    status["state"] = {"running": {"startedAt": _time(chance)}}
    for condition in body["status"]["conditions"][-2:]:
        condition["lastTransitionTime"] = _time(chance)
    return _encode(body)


def new_pod(pod: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """Return another pod of the same workload."""
    body: dict[str, Any] = json.loads(_encode(pod))
    metadata, status, created = body["metadata"], body["status"], _time(chance)
    metadata["name"] = metadata["generateName"] + _letters(chance, 5)
    metadata["uid"] = _uuid(chance)
    metadata["creationTimestamp"] = status["startTime"] = created
    metadata["annotations"]["cni.projectcalico.org/containerID"] = _hex(chance, 64)
    address = _address(chance, 10)
    status.update(hostIP=_address(chance, 10), podIP=address, podIPs=[{"ip": address}])
    for condition in status["conditions"]:
        condition["lastTransitionTime"] = _time(chance)
    for container in status["containerStatuses"]:
        container["state"] = {"running": {"startedAt": _time(chance)}}
        container["containerID"] = f"containerd://{_hex(chance, 64)}"
        container["restartCount"] = 0
    return body


def _encode(body: dict[str, Any]) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()


# -- random values -----------------------------------------------------------------------------


def _hex(chance: random.Random, digits: int) -> str:
    return f"{chance.getrandbits(4 * digits):0{digits}x}"


def _uuid(chance: random.Random) -> str:
    text = _hex(chance, 32)
    variant = chance.choice("89ab")
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{variant}{text[17:20]}-{text[20:]}"


def _letters(chance: random.Random, count: int) -> str:
    return "".join(chance.choices(_SAFE, k=count))


def _time(chance: random.Random) -> str:
    day, clock = chance.randrange(1, 23), chance.randrange(86_400)
    return f"2026-11-{day:02d}T{clock // 3600:02d}:{clock // 60 % 60:02d}:{clock % 60:02d}Z"


def _address(chance: random.Random, first: int) -> str:
    return f"{first}.{chance.randrange(256)}.{chance.randrange(256)}.{chance.randrange(1, 255)}"


# -- one workload ------------------------------------------------------------------------------


def _make_workload(chance: random.Random, number: int) -> Workload:
    name = f"{chance.choice(_WORDS)}-{chance.choice(_WORDS)}-{chance.choice(_KINDS)}"
    team = chance.choice(_WORDS)
    registry = f"registry.example.com/{team}"
    version = f"{chance.randrange(1, 9)}.{chance.randrange(40)}.{chance.randrange(20)}"
    images = [(name, f"{registry}/{name}:{version}-{_hex(chance, 7)}")]
    images += [
        (side, f"registry.example.com/platform/{side}:v{chance.randrange(1, 4)}.{minor}.0")
        for side, minor in (("istio-proxy", 22), ("log-agent", 9))
        if chance.random() < 0.5
    ]
    labels = {
        "app": name, "app.kubernetes.io/name": name, "app.kubernetes.io/part-of": team,
        "app.kubernetes.io/version": version, "example.com/team": team,
        "example.com/cost-center": str(chance.randrange(1000, 9999)),
        "tier": chance.choice(("frontend", "backend", "data")),
    }  # fmt: skip
    annotations = {
        "checksum/config": _hex(chance, 64),
        "checksum/secret": _hex(chance, 64),
        "prometheus.io/scrape": "true", "prometheus.io/port": str(chance.randrange(8000, 9999)),
        "example.com/git-commit": _hex(chance, 40),
        "kubectl.kubernetes.io/restartedAt": _time(chance),
    }  # fmt: skip
    return Workload(
        name=name,
        namespace=f"{team}-{number % 40:02d}",
        template_hash=_letters(chance, 10),
        owner=_uuid(chance),
        metadata={"labels": labels, "annotations": annotations},
        spec=_make_spec(chance, name, images),
        images=tuple((*each, f"sha256:{_hex(chance, 64)}") for each in images),
    )


def _make_spec(chance: random.Random, name: str, images: list[tuple[str, str]]) -> dict[str, Any]:
    port = chance.randrange(3000, 9999)
    return {
        "containers": [_make_container(chance, *each, port) for each in images],
        "restartPolicy": "Always", "terminationGracePeriodSeconds": chance.choice((30, 60, 120)),
        "dnsPolicy": "ClusterFirst", "serviceAccountName": name, "serviceAccount": name,
        "securityContext": {"fsGroup": chance.randrange(1000, 9999), "runAsNonRoot": True},
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 100, "podAffinityTerm": {
                "labelSelector": {"matchLabels": {"app": name}},
                "topologyKey": "topology.kubernetes.io/zone"}}]}},
        "schedulerName": "default-scheduler",
        "tolerations": [
            {"key": f"node.kubernetes.io/{each}", "operator": "Exists", "effect": "NoExecute",
             "tolerationSeconds": 300} for each in ("not-ready", "unreachable")],
        "priorityClassName": f"tier-{chance.randrange(4)}", "priority": 1000,
        "enableServiceLinks": False, "preemptionPolicy": "PreemptLowerPriority",
    }  # fmt: skip


def _make_container(chance: random.Random, name: str, image: str, port: int) -> dict[str, Any]:
    def probe(path: str) -> dict[str, Any]:
        return {
            "httpGet": {"path": path, "port": port, "scheme": "HTTP"},
            "initialDelaySeconds": chance.randrange(3, 30), "timeoutSeconds": 2,
            "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3,
        }  # fmt: skip

    variables = chance.sample(_WORDS, chance.randrange(4, 10))
    return {
        "name": name, "image": image,
        "ports": [{"name": "http", "containerPort": port, "protocol": "TCP"}],
        "env": [
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1",
                                                         "fieldPath": "status.podIP"}}},
            *({"name": f"{each.upper()}_URL",
               "value": f"http://{each}-{chance.choice(_KINDS)}.{each}.svc:{port}/v1"}
              for each in variables),
            {"name": "SECRET_TOKEN", "valueFrom": {"secretKeyRef": {
                "name": f"{name}-token", "key": "token"}}},
        ],
        "resources": {
            "limits": {"memory": f"{chance.randrange(1, 32) * 128}Mi"},
            "requests": {"cpu": f"{chance.randrange(1, 40) * 50}m",
                         "memory": f"{chance.randrange(1, 32) * 128}Mi"}},
        "livenessProbe": probe("/healthz"), "readinessProbe": probe("/readyz"),
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
        "securityContext": {"capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True,
                            "allowPrivilegeEscalation": False},
    }  # fmt: skip


# -- one pod -----------------------------------------------------------------------------------


def _make_pod(chance: random.Random, workload: Workload, version: int) -> dict[str, Any]:
    replica_set = f"{workload.name}-{workload.template_hash}"
    token = f"kube-api-access-{''.join(chance.choices(string.ascii_lowercase, k=5))}"
    created = _time(chance)
    metadata = {
        "name": f"{replica_set}-{_letters(chance, 5)}", "generateName": f"{replica_set}-",
        "namespace": workload.namespace, "uid": _uuid(chance),
        "resourceVersion": str(10_000_000 + version), "creationTimestamp": created,
        "labels": {**workload.metadata["labels"], "pod-template-hash": workload.template_hash},
        "annotations": {**workload.metadata["annotations"],
                        "cni.projectcalico.org/containerID": _hex(chance, 64)},
        "ownerReferences": [{
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": replica_set,
            "uid": workload.owner, "controller": True, "blockOwnerDeletion": True}],
    }  # fmt: skip
    mount = {
        "name": token, "readOnly": True,
        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
    }  # fmt: skip
    containers = [{**each, "volumeMounts": [mount]} for each in workload.spec["containers"]]
    node = f"ip-10-{chance.randrange(NODES) % 8}-{chance.randrange(NODES)}.eu-1.compute.internal"
    spec = {
        "volumes": [_token_volume(token)], **workload.spec, "containers": containers,
        "nodeName": node,
    }  # fmt: skip
    return {"metadata": metadata, "spec": spec, "status": _make_status(chance, workload, created)}


def _token_volume(name: str) -> dict[str, Any]:
    return {"name": name, "projected": {"defaultMode": 420, "sources": [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt",
                       "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {
            "apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
    ]}}  # fmt: skip


def _make_status(chance: random.Random, workload: Workload, created: str) -> dict[str, Any]:
    address = _address(chance, 10)
    types = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    return {
        "phase": "Running",
        "conditions": [{"type": each, "status": "True", "lastProbeTime": None,
                        "lastTransitionTime": _time(chance)} for each in types],
        "hostIP": _address(chance, 10), "podIP": address, "podIPs": [{"ip": address}],
        "startTime": created,
        "containerStatuses": [{
            "name": name, "state": {"running": {"startedAt": _time(chance)}}, "lastState": {},
            "ready": True, "restartCount": chance.choice((0, 0, 0, 1, 4)), "image": image,
            "imageID": f"{image.rpartition(':')[0]}@{digest}",
            "containerID": f"containerd://{_hex(chance, 64)}", "started": True,
        } for name, image, digest in workload.images],
        "qosClass": "Burstable",
    }  # fmt: skip
