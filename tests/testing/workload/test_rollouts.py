"""The rollouts that the status of Deployments reports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from aioinformer import KubeObject, Resource
from aioinformer.conditions import condition_true, rollout_complete
from aioinformer.testing import Cluster
from aioinformer.testing.workload.apps import create_apps
from aioinformer.testing.workload.rollouts import DeploymentRollouts
from tests.core.builders import make_object

DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")


def create(cluster: Cluster, replicas: int = 8) -> None:
    containers = [{"name": "c", "image": "web:1"}]
    spec = {"replicas": replicas, "template": {"spec": {"containers": containers}}}
    cluster.create("deployments", {"metadata": {"name": "web"}, "spec": spec}, namespace="shop")


def change(cluster: Cluster, **spec: Any) -> None:
    cluster.merge_patch("deployments", "web", {"spec": spec}, namespace="shop")


def new_template(image: str) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "c", "image": image}]}}


def web(cluster: Cluster) -> KubeObject:
    return make_object(cluster.get("deployments", "web", namespace="shop"), resource=DEPLOYMENTS)


def status(cluster: Cluster) -> dict[str, Any]:
    found: dict[str, Any] = cluster.get("deployments", "web", namespace="shop")["status"]
    return found


def numbers_until_complete(
    cluster: Cluster, rollouts: DeploymentRollouts
) -> Iterator[tuple[int, int, int]]:
    """Yield the numbers of pods, of updated and of available ones after each step."""
    for _ in range(20):
        if not rollouts.step():
            return
        found = status(cluster)
        yield found["replicas"], found["updatedReplicas"], found["availableReplicas"]
    pytest.fail("the rollout doesn't end")


def test_a_new_deployment_becomes_available_step_by_step() -> None:
    cluster = Cluster()
    create(cluster)
    rollouts = DeploymentRollouts(cluster)
    assert list(numbers_until_complete(cluster, rollouts)) == [
        (2, 2, 0),
        (4, 4, 2),
        (6, 6, 4),
        (8, 8, 6),
        (8, 8, 8),
    ]
    assert rollout_complete(web(cluster))
    assert condition_true("Available")(web(cluster))


def test_a_new_template_replaces_the_pods_of_the_old_one() -> None:
    cluster = Cluster()
    create(cluster)
    rollouts = DeploymentRollouts(cluster)
    list(numbers_until_complete(cluster, rollouts))
    available_since = status(cluster)["conditions"][0]["lastTransitionTime"]
    change(cluster, template=new_template("web:2"))
    assert not rollout_complete(web(cluster))
    assert list(numbers_until_complete(cluster, rollouts)) == [
        (8, 2, 6),
        (8, 4, 6),
        (8, 6, 6),
        (8, 8, 6),
        (8, 8, 8),
    ]
    assert rollout_complete(web(cluster))
    assert status(cluster)["conditions"][0]["lastTransitionTime"] == available_since


@pytest.mark.parametrize(("replicas", "updated"), [(3, [3]), (10, [10, 10]), (0, [0])])
def test_another_number_of_replicas_keeps_the_pods_that_there_are(
    replicas: int, updated: list[int]
) -> None:
    cluster = Cluster()
    create(cluster)
    rollouts = DeploymentRollouts(cluster)
    list(numbers_until_complete(cluster, rollouts))
    change(cluster, replicas=replicas)
    assert [numbers[1] for numbers in numbers_until_complete(cluster, rollouts)] == updated
    assert rollout_complete(web(cluster))


def test_a_paused_deployment_is_observed_and_waits() -> None:
    cluster = Cluster()
    create(cluster)
    rollouts = DeploymentRollouts(cluster)
    list(numbers_until_complete(cluster, rollouts))
    change(cluster, paused=True, template=new_template("web:2"))
    assert list(numbers_until_complete(cluster, rollouts)) == [(8, 8, 8)]
    change(cluster, paused=False)
    assert next(numbers_until_complete(cluster, rollouts)) == (8, 2, 6)


def test_a_complete_rollout_is_not_written_again_and_a_deleted_one_is_discarded() -> None:
    cluster = Cluster()
    create(cluster)
    rollouts = DeploymentRollouts(cluster)
    list(numbers_until_complete(cluster, rollouts))
    version = cluster.resource_version
    assert rollouts.step() == 0
    assert cluster.resource_version == version
    cluster.delete("deployments", "web", namespace="shop")
    rollouts.step()
    assert repr(rollouts) == "<DeploymentRollouts of 0>"


def test_the_deployments_of_the_workload_are_rolled_out_at_the_start() -> None:
    cluster = Cluster()
    create_apps(cluster, 200)
    assert all(
        rollout_complete(make_object(each, resource=DEPLOYMENTS))
        for each in cluster.objects("deployments")
    )
    assert DeploymentRollouts(cluster).step() == 0
