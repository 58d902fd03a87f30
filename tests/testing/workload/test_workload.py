"""Pods that come, live and go."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import msgspec

from aioinformer.testing import Cluster
from aioinformer.testing.workload.workload import PodWorkload


def churned(*, steps: int, seed: int = 0, objects: int = 100) -> tuple[Cluster, PodWorkload]:
    cluster = Cluster()
    churn = PodWorkload(
        cluster, objects=objects, seed=seed, clock=lambda: datetime(2026, 1, 1, tzinfo=UTC)
    )
    assert churn.populate(objects)
    for _ in range(steps):
        churn.step()
    return cluster, churn


def pods(cluster: Cluster) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = msgspec.json.decode(cluster.list("pods"))["items"]
    return items


def test_the_same_seed_makes_the_same_writes() -> None:
    assert churned(steps=500)[0].list("pods") == churned(steps=500)[0].list("pods")


def test_another_seed_makes_other_writes() -> None:
    assert churned(steps=500)[0].list("pods") != churned(steps=500, seed=1)[0].list("pods")


def test_a_cluster_can_be_filled_bit_by_bit() -> None:
    churn = PodWorkload(Cluster(), objects=25, seed=0)

    assert [churn.populate(10), churn.populate(10), churn.populate(10)] == [False, False, True]
    assert len(churn) == 25


def test_every_step_is_exactly_one_write() -> None:
    before, _ = churned(steps=0)
    after, _ = churned(steps=700)

    assert after.resource_version - before.resource_version == 700


def test_there_are_about_as_many_pods_as_there_shall_be() -> None:
    cluster, churn = churned(steps=2000)

    assert len(pods(cluster)) == len(churn)
    assert 85 <= len(churn) <= 115


def test_pods_are_of_the_size_of_real_ones() -> None:
    sizes = sorted(len(msgspec.json.encode(pod)) for pod in pods(churned(steps=500)[0]))

    assert 2000 <= sizes[len(sizes) // 2] <= 3000


def test_most_pods_run_and_those_that_run_have_a_node_and_an_address() -> None:
    found = pods(churned(steps=2000)[0])
    phases = Counter(pod["status"]["phase"] for pod in found)

    assert phases["Running"] > 80
    assert phases["Running"] < len(found)
    for pod in found:
        if pod["status"]["phase"] == "Running":
            assert pod["spec"]["nodeName"].startswith("node-")
            assert pod["status"]["podIP"].startswith("10.244.")


def is_ready(pod: dict[str, Any]) -> bool:
    conditions = pod["status"]["conditions"]
    return ("Ready", "True") in [(each["type"], each["status"]) for each in conditions]


def test_most_running_pods_are_ready_at_any_time_and_some_are_not() -> None:
    cluster, churn = churned(steps=0)
    counts: list[int] = []
    for _ in range(40):
        for _ in range(50):
            churn.step()
        running = [pod for pod in pods(cluster) if pod["status"]["phase"] == "Running"]
        counts.append(sum(not is_ready(pod) for pod in running))
        assert counts[-1] <= 0.15 * len(running)

    assert sum(counts) >= len(counts), "pods become unready all the time"


def test_the_containers_of_a_pod_are_as_ready_as_the_pod() -> None:
    cluster, churn = churned(steps=0)
    seen: Counter[tuple[str, bool]] = Counter()
    for _ in range(40):
        for _ in range(50):
            churn.step()
        for pod in pods(cluster):
            status = pod["status"]
            for container in status.get("containerStatuses", ()):
                assert container["ready"] == is_ready(pod)
                seen[status["phase"], container["ready"]] += 1
                assert list(container["state"]) == [
                    "running" if status["phase"] == "Running" else "terminated"
                ]

    assert set(seen) == {
        ("Running", True),
        ("Running", False),
        ("Succeeded", False),
        ("Failed", False),
    }


def test_a_pod_that_is_not_ready_becomes_ready_within_a_few_steps() -> None:
    cluster, churn = churned(steps=500)
    waiting: dict[str, int] = {}
    longest = 0
    for step in range(2000):
        churn.step()
        unready = {
            pod["metadata"]["name"]
            for pod in cluster.objects("pods")
            if pod["status"]["phase"] == "Running" and not is_ready(dict(pod))
        }
        for name in waiting.keys() - unready:
            longest = max(longest, step - waiting.pop(name))
        for name in unready - waiting.keys():
            waiting[name] = step

    assert 10 < longest < 150, "15 s at the ten writes a second of aioinformer serve"


def test_the_workload_can_consist_of_one_pod() -> None:
    _, churn = churned(steps=300, objects=1)

    assert len(churn) <= 2
