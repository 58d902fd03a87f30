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


def test_the_workload_can_consist_of_one_pod() -> None:
    _, churn = churned(steps=300, objects=1)

    assert len(churn) <= 2
