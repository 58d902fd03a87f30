"""The rollouts of Deployments, as the controller of a cluster would report them.

The embedded server runs no controllers. Each step brings every rollout forward by a quarter of its
pods: a pod is created in one step and available in the next. No pods are written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from aioinformer.testing.cluster.cluster import Cluster

STEPS = 4
"""The steps in which a rollout creates its pods."""
DEPLOYMENTS = "deployments.apps"


class DeploymentRollouts:
    """The status of all Deployments of a cluster; ``clock`` gives the time in conditions."""

    def __init__(
        self, cluster: Cluster, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._templates: dict[str, str] = {}
        """The newest template of each Deployment, by uid: another one begins a rollout, and another
        number of replicas does not."""
        self._ended: dict[str, str] = {}
        """The version in which each Deployment had nothing to do, by uid."""

    def step(self) -> int:
        """Bring each rollout forward; return the number of Deployments that were written."""
        present, written = set[str](), 0
        for body in list(self._cluster.objects(DEPLOYMENTS)):
            metadata = body["metadata"]
            present.add(uid := metadata["uid"])
            if self._ended.get(uid) == metadata["resourceVersion"]:
                continue
            status = self._next_status(body)
            if status is None:
                self._ended[uid] = metadata["resourceVersion"]
                continue
            name, namespace = metadata["name"], metadata["namespace"]
            self._cluster.merge_patch(DEPLOYMENTS, name, {"status": status}, namespace=namespace)
            written += 1
        for uid in self._templates.keys() - present:  # deleted Deployments
            del self._templates[uid]
            self._ended.pop(uid, None)
        return written

    def _next_status(self, body: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the status after one step, or ``None`` if the rollout is complete or paused."""
        metadata, spec, status = body["metadata"], body.get("spec", {}), body.get("status", {})
        replicas = spec.get("replicas", 1)
        template = json.dumps(spec.get("template"), sort_keys=True)
        observed = {"observedGeneration": metadata.get("generation")}
        is_observed = observed.items() <= status.items()
        last = self._templates.setdefault(metadata["uid"], template)
        if spec.get("paused"):
            return None if is_observed else observed
        if last == template and is_observed and _is_complete(status, replicas):
            return None
        self._templates[metadata["uid"]] = template
        updated = min(status.get("updatedReplicas", 0) if last == template else 0, replicas)
        counts = _next_counts(updated, status.get("replicas", 0), replicas)
        return {
            **observed,
            **counts,
            "conditions": _conditions(status, counts, replicas, self._clock()),
        }

    def __repr__(self) -> str:
        return f"<DeploymentRollouts of {len(self._templates)}>"


def complete_status(replicas: int, *, generation: int, now: datetime) -> dict[str, Any]:
    counts = _next_counts(replicas, replicas, replicas)
    conditions = _conditions({}, counts, replicas, now)
    return {"observedGeneration": generation, **counts, "conditions": conditions}


def _next_counts(updated: int, existing: int, replicas: int) -> dict[str, int]:
    """Return the numbers of pods after one step.

    The pods that were updated before are available now. As many old pods stay as the new ones don't
    replace yet.
    """
    created = min(max(1, -(-replicas // STEPS)), replicas - updated)
    old = max(0, min(existing - updated, replicas - updated - created))
    return {
        "replicas": old + updated + created,
        "updatedReplicas": updated + created,
        "readyReplicas": old + updated,
        "availableReplicas": old + updated,
        "unavailableReplicas": replicas - old - updated,
    }


def _is_complete(status: Mapping[str, Any], replicas: int) -> bool:
    names = ("replicas", "updatedReplicas", "availableReplicas")
    return all(status.get(name, 0) == replicas for name in names)


def _conditions(
    status: Mapping[str, Any], counts: Mapping[str, int], replicas: int, now: datetime
) -> list[dict[str, Any]]:
    is_available = counts["availableReplicas"] >= replicas - replicas // STEPS
    reason = "MinimumReplicasAvailable" if is_available else "MinimumReplicasUnavailable"
    is_complete = _is_complete(counts, replicas)
    progress = "NewReplicaSetAvailable" if is_complete else "ReplicaSetUpdated"
    return [
        _condition(status, "Available", str(is_available), reason, now),
        _condition(status, "Progressing", "True", progress, now),
    ]


def _condition(
    status: Mapping[str, Any], kind: str, value: str, reason: str, now: datetime
) -> dict[str, Any]:
    """Return a condition, which keeps the time of its last transition."""
    timestamp = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    conditions: list[dict[str, Any]] = status.get("conditions") or []
    old = next((each for each in conditions if each["type"] == kind), dict[str, Any]())
    same = old.get("status") == value
    return {
        "type": kind,
        "status": value,
        "reason": reason,
        "lastUpdateTime": timestamp,
        "lastTransitionTime": old.get("lastTransitionTime", timestamp) if same else timestamp,
    }
