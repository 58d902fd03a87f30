"""The life of Sites under the operator of ``examples/operator_app``, on a cluster in memory."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aioinformer import Operator, Resource
from aioinformer.errors import NotFound
from aioinformer.testing import Cluster, load_manifests, running_operator
from aioinformer.testing.simulation import Simulation
from examples.operator_app.app import CONFIGMAPS, DEPLOYMENTS, SITES, make_operator

__all__ = ["CRD", "Purges", "Sites", "sites_converge"]

CRD = Path(__file__).parents[2] / "examples" / "operator_app" / "crd.yaml"


@dataclass(slots=True)
class Purges:
    """The cache outside of the cluster, which may fail."""

    names: list[str] = field(default_factory=list[str])
    failures: int = 0

    async def __call__(self, site: str) -> None:
        await asyncio.sleep(0.01)
        if self.failures:
            self.failures -= 1
            raise ConnectionError("the content delivery network doesn't answer")
        self.names.append(site)


class Sites:
    """The Sites of a cluster, as their user and the Deployment controller change them."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        load_manifests(cluster, CRD)

    def create(self, name: str, page: str = "hello", pods: int = 1) -> None:
        body = {"metadata": {"name": name}, "spec": {"page": page, "pods": pods}}
        self.cluster.create(SITES, body)

    def change(self, name: str, **spec: Any) -> None:
        self.cluster.merge_patch(SITES, name, {"spec": spec})

    def delete(self, name: str) -> None:
        self.cluster.delete(SITES, name)

    def report_available(self, name: str) -> None:
        """Set the status of a Deployment as its controller does."""
        deployment = self.deployment(name)
        if deployment is not None:
            status = {"status": {"availableReplicas": deployment["spec"]["replicas"]}}
            self.cluster.merge_patch(DEPLOYMENTS, name, status)

    def get(self, name: str) -> dict[str, Any] | None:
        return self.find(SITES, name)

    def page(self, name: str) -> str | None:
        found = self.find(CONFIGMAPS, name)
        return None if found is None else found["data"]["index.html"]

    def deployment(self, name: str) -> dict[str, Any] | None:
        return self.find(DEPLOYMENTS, name)

    def ready(self, name: str) -> dict[str, Any]:
        """Return the condition Ready."""
        return self.condition(name, "Ready")

    def condition(self, name: str, condition_type: str) -> dict[str, Any]:
        """Return a condition of a Site."""
        site = self.get(name)
        assert site is not None
        conditions = site.get("status", {}).get("conditions", [])
        (found,) = [each for each in conditions if each["type"] == condition_type]
        return dict(found)

    def event_reasons(self, name: str) -> list[str]:
        listed = json.loads(self.cluster.list("events.events.k8s.io"))["items"]
        return [each["reason"] for each in listed if each["regarding"]["name"] == name]

    def find(self, resource: Resource, name: str) -> dict[str, Any] | None:
        try:
            return self.cluster.get(resource, name)
        except NotFound:
            return None


async def sites_converge(simulation: Simulation) -> None:
    """Create, change, break and delete Sites while faults occur; then compare with the wish.

    The model is a table of the page and the pods of each Site that exists.
    """
    random, sites, purges = simulation.random, Sites(simulation.cluster), Purges()
    wanted: dict[str, tuple[str, int]] = {}
    deleted = set[str]()
    operator: Operator = make_operator(simulation.source, purges)

    async with running_operator(operator, timeout=None):
        for step in range(40):
            await asyncio.sleep(random.uniform(0, 12))
            _take_step(step, sites, wanted, deleted, simulation)
        await simulation.settled()
        # A fault may damage the body of an object behind its metadata. The object stays cached, and
        # can't be opened, until it changes or a comparison with the server repairs the cache.
        for resource in (SITES, CONFIGMAPS, DEPLOYMENTS):
            await operator.informers.informer(resource).verify(repair=True)
        for name in wanted:
            sites.report_available(name)
        await simulation.cluster.settled(operator, timeout=None)
        for name, (page, pods) in wanted.items():
            assert sites.page(name) == page, name
            deployment = sites.deployment(name)
            assert deployment is not None
            assert deployment["spec"]["replicas"] == pods, name
            ready, site = sites.ready(name), sites.get(name)
            assert site is not None
            assert ready["status"] == "True", (name, site["status"], deployment.get("status"))
            assert ready["observedGeneration"] == site["metadata"]["generation"]
            reconciled = sites.condition(name, "Synced")
            assert reconciled["status"] == "True", reconciled
        for name in deleted - set(wanted):
            assert (sites.get(name), sites.page(name), sites.deployment(name)) == (None,) * 3
            assert name in purges.names, f"{name} was deleted without its cleanup"


def _take_step(
    step: int,
    sites: Sites,
    wanted: dict[str, tuple[str, int]],
    deleted: set[str],
    simulation: Simulation,
) -> None:
    """Change one thing in the cluster, and the model with it."""
    random = simulation.random
    name, page, pods = f"site-{random.randrange(5)}", f"page {step}", random.randrange(4)
    if name not in wanted:
        if sites.get(name) is None:  # a deleted Site remains until its cleanup has succeeded
            sites.create(name, page, pods)
            wanted[name] = page, pods
        return
    match random.choice(("change", "change", "available", "break", "delete")):
        case "change":
            sites.change(name, page=page, pods=pods)
            wanted[name] = page, pods
        case "available":
            sites.report_available(name)
        case "break":  # another program deletes a child
            resource = random.choice((CONFIGMAPS, DEPLOYMENTS))
            if sites.find(resource, name) is not None:
                simulation.cluster.delete(resource, name)
        case _:
            sites.delete(name)
            del wanted[name]
            deleted.add(name)
