"""The lines of a watch of pods, in two patterns of change.

``random_changes`` changes another pod each time: of many pods, hardly one changes twice within
seconds. ``rollouts`` replaces pods, as a Deployment does: most events of a cluster are of pods that
start or end, and such a pod changes several times within seconds. The same seed gives the same
lines.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

from benchmarks.load.workloads import changed_pod, new_pod

__all__ = ["FIRST_VERSION", "random_changes", "rollouts"]

FIRST_VERSION = 20_000_001
"""The version of the first change: greater than those of all pods of ``make_pods``."""
SEED = 7


def random_changes(pods: Sequence[bytes], seed: int = SEED) -> Iterator[bytes]:
    """Yield changes of random pods, without end."""
    chance, pods = random.Random(seed), list(pods)
    version = FIRST_VERSION
    while True:
        which = chance.randrange(len(pods))
        pods[which] = changed_pod(pods[which], version, chance)
        yield _line("MODIFIED", json.loads(pods[which]), version)
        version += 1


def rollouts(pods: Sequence[bytes], concurrent: int, seed: int = SEED) -> Iterator[bytes]:
    """Yield the changes of random pods that are replaced by new ones, without end.

    Args:
        pods: the JSON of all pods.
        concurrent: pods that are replaced at the same time; each of them changes in turn.
        seed: chooses the pods.
    """
    chance, pods = random.Random(seed), list(pods)
    free = list(range(len(pods)))
    chance.shuffle(free)
    version = FIRST_VERSION
    running: list[Iterator[tuple[str, dict[str, Any]]]] = [iter(())] * concurrent
    places: list[int] = [free.pop() for _ in running]
    while True:
        for number, changes in enumerate(running):
            change = next(changes, None)
            if change is None:  # this pod is replaced: begin with another one
                free.insert(0, places[number])
                places[number] = which = free.pop()
                old = json.loads(pods[which])
                new = new_pod(old, chance)
                pods[which] = json.dumps(new, separators=(",", ":")).encode()
                running[number] = replacement(old, new)
                change = next(running[number])
            yield _line(*change, version)
            version += 1


def replacement(old: dict[str, Any], new: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the events of a pod that replaces another one, by their type and object.

    They are those of a ReplicaSet, the scheduler, a network plug-in and a kubelet.
    """
    starting = deepcopy(new)
    status, annotations = starting["status"], starting["metadata"]["annotations"]
    node, network = starting["spec"].pop("nodeName"), annotations.popitem()
    starting["status"] = {"phase": "Pending", "qosClass": status["qosClass"]}
    yield "ADDED", starting
    starting["spec"]["nodeName"] = node
    starting["status"]["conditions"] = [status["conditions"][-1]]
    yield "MODIFIED", starting
    annotations.update([network])
    yield "MODIFIED", starting
    starting["status"] = _unready(status, {"waiting": {"reason": "ContainerCreating"}})
    starting["status"]["phase"] = "Pending"
    yield "MODIFIED", starting
    started = status["containerStatuses"][0]["state"]
    starting["status"] = _unready(status, started)
    yield "MODIFIED", starting
    yield "MODIFIED", new
    ending = deepcopy(old)
    ending["metadata"]["deletionTimestamp"] = new["metadata"]["creationTimestamp"]
    ending["metadata"]["deletionGracePeriodSeconds"] = 30
    yield "MODIFIED", ending
    ending["status"] = _unready(ending["status"], {"terminated": {"exitCode": 0}})
    yield "MODIFIED", ending
    yield "DELETED", ending


def _unready(status: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
    """Return the status of a pod whose containers are not ready, and in this state."""
    changed = deepcopy(status)
    for condition in changed["conditions"]:
        if condition["type"] in ("Ready", "ContainersReady"):
            condition.update(status="False", reason="ContainersNotReady")
    for container in changed["containerStatuses"]:
        container.update(state=state, ready=False, started="running" in state)
    return changed


def _line(kind: str, pod: dict[str, Any], version: int) -> bytes:
    metadata = {**pod["metadata"], "resourceVersion": str(version)}
    body = {"kind": "Pod", "apiVersion": "v1", **pod, "metadata": metadata}
    return json.dumps({"type": kind, "object": body}, separators=(",", ":")).encode() + b"\n"
