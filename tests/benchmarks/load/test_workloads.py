"""The pods of many workloads: the same bytes each time, and as different as those of a cluster."""

from __future__ import annotations

import json
import random

from benchmarks.load.workloads import changed_pod, make_pods

PODS = 300


def test_the_same_seed_gives_the_same_bytes() -> None:
    assert list(make_pods(20)) == list(make_pods(20))
    assert list(make_pods(20, seed=1)) != list(make_pods(20))


def test_each_pod_has_values_of_its_own() -> None:
    pods = [json.loads(raw) for raw in make_pods(PODS)]
    values = [
        [pod["metadata"]["uid"] for pod in pods],
        [pod["status"]["containerStatuses"][0]["containerID"] for pod in pods],
        [pod["metadata"]["annotations"]["cni.projectcalico.org/containerID"] for pod in pods],
    ]
    assert [len(set(each)) for each in values] == [PODS] * 3
    assert len({pod["metadata"]["labels"]["app"] for pod in pods}) > 50
    keys = [(pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in pods]
    assert len(set(keys)) == PODS


def test_a_change_is_a_newer_version_of_the_same_pod() -> None:
    before = next(make_pods(1))
    after = changed_pod(before, 99_000_000, random.Random(1))
    old, new = json.loads(before), json.loads(after)
    assert new["metadata"].pop("resourceVersion") == "99000000"
    del old["metadata"]["resourceVersion"]
    assert new["metadata"] == old["metadata"]
    assert new["spec"] == old["spec"]
    assert new["status"] != old["status"]
    assert abs(len(after) - len(before)) < 10
