"""The life of a Site under one operator, step by step, with the time that each step takes.

The life is the same for every framework, and reads nothing but the cluster and the output of the
program. Each step waits until the cluster shows its result.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aioinformer import Resource
from aioinformer.errors import NotFound
from aioinformer.testing import ApiServer, Cluster, load_manifests
from examples.operator_app.app import CONFIGMAPS, DEPLOYMENTS, SITES
from examples.operators_compared.programs import RunningProgram, running

__all__ = ["LifeFailed", "LifeReport", "live"]

CRD = Path(__file__).parents[1] / "operator_app" / "crd.yaml"
PEERINGS = (
    Resource("kopf.dev", "v1", "clusterkopfpeerings", "ClusterKopfPeering", namespaced=False),
    Resource("kopf.dev", "v1", "kopfpeerings", "KopfPeering"),
)
"""kopf's resources for its election."""
FINALIZER = "example.com/purge"
STEP_TIMEOUT = 60.0
QUIET_TIMEOUT = 240.0
"""A program may need minutes to handle many Sites."""
QUIET_SECONDS = 3.0
"""Seconds without writes after which an operator counts as quiet."""


class LifeFailed(Exception):
    """A program did not do a step in time. The message has the step and the program's output."""


@dataclass(slots=True)
class LifeReport:
    """The results of one life."""

    seconds: dict[str, float] = field(default_factory=dict[str, float])
    """The seconds of each step."""
    memory: dict[int, int] = field(default_factory=dict[int, int])
    """Resident bytes of the process, by the number of Sites."""
    processor: float = 0.0
    """The seconds of CPU of the process."""
    exit_code: int | None = None
    """The exit code after SIGTERM."""


class _Life:
    def __init__(self, cluster: Cluster, program: RunningProgram) -> None:
        self.report = LifeReport()
        self._cluster = cluster
        self._program = program

    async def step(self, name: str, reached: Callable[[], bool]) -> None:
        """Wait for the result of a step."""
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            async with asyncio.timeout(STEP_TIMEOUT):
                while not reached():  # noqa: ASYNC110 - the cluster in memory has no event for it
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise LifeFailed(f"{name}:\n{self._program.text[-3000:]}") from None
        self.report.seconds[name] = clock() - began

    async def quiet(self) -> None:
        """Wait until nobody writes to Sites and their children."""
        before, clock = self._versions(), asyncio.get_running_loop().time
        began = since = clock()
        while clock() - since < QUIET_SECONDS:
            await asyncio.sleep(0.1)
            if (now := self._versions()) != before:
                before, since = now, clock()
            if clock() - began > QUIET_TIMEOUT:
                raise LifeFailed(f"the operator writes all the time:\n{self._program.text[-3000:]}")

    def find(self, resource: Resource, name: str) -> dict[str, Any]:
        """Return an object; an empty one if it does not exist."""
        try:
            return self._cluster.get(resource, name)
        except NotFound:
            return {}

    def condition(self, name: str) -> dict[str, Any]:
        """Return the condition Ready of a Site."""
        conditions = self.find(SITES, name).get("status", {}).get("conditions", [])
        return next((each for each in conditions if each["type"] == "Ready"), dict[str, Any]())

    def page(self, name: str) -> str | None:
        """Return the page in the ConfigMap of a Site."""
        page: str | None = self.find(CONFIGMAPS, name).get("data", {}).get("index.html")
        return page

    def events(self) -> list[str]:
        """Return the reasons of the Events of all objects, of both APIs."""
        found = list[str]()
        for resource in ("events", "events.events.k8s.io"):
            found += [each["reason"] for each in json.loads(self._cluster.list(resource))["items"]]
        return found

    def create(self, name: str, page: str = "hot") -> None:
        """Create a Site of two pods."""
        self._cluster.create(SITES, {"metadata": {"name": name}, "spec": {"page": page, "pods": 2}})

    def _versions(self) -> list[str]:
        return [
            each["metadata"]["resourceVersion"]
            for resource in (SITES, CONFIGMAPS, DEPLOYMENTS)
            for each in json.loads(self._cluster.list(resource))["items"]
        ]


async def live(command: list[str], folder: Path, *, extra_sites: int = 0) -> LifeReport:
    """Run a program through the life of a Site on an API server of its own.

    Args:
        command: the program and its arguments.
        folder: a folder for the kubeconfig and the program's output.
        extra_sites: create so many more Sites, and measure the memory with them.

    Raises:
        LifeFailed: the program did not do a step within a minute.
    """
    cluster = Cluster()
    load_manifests(cluster, CRD)
    for each in PEERINGS:
        cluster.add_resource(each)
    cluster.create(PEERINGS[0], {"metadata": {"name": "sites"}})
    async with ApiServer(cluster) as server:
        kubeconfig = server.kubeconfig(folder / "kubeconfig")
        async with running(command, kubeconfig, folder) as program:
            life = _Life(cluster, program)
            await _one_site(life, cluster, program)
            if extra_sites:
                await _many_sites(life, program, extra_sites)
            life.report.processor = program.processor
            clock = asyncio.get_running_loop().time
            began = clock()
            async with asyncio.timeout(STEP_TIMEOUT):
                life.report.exit_code = await program.stop()
            life.report.seconds["ends after SIGTERM"] = clock() - began
            return life.report


async def _one_site(life: _Life, cluster: Cluster, program: RunningProgram) -> None:
    life.create("tea")
    await life.step(
        "starts, and makes the children",
        lambda: life.page("tea") == "hot" and bool(life.find(DEPLOYMENTS, "tea")),
    )
    site = life.find(SITES, "tea")
    for resource in (CONFIGMAPS, DEPLOYMENTS):
        (owner,) = life.find(resource, "tea")["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("Site", site["metadata"]["uid"]), owner
    assert FINALIZER in site["metadata"]["finalizers"], site
    await life.step("shows Ready=False", lambda: life.condition("tea").get("status") == "False")
    cluster.merge_patch(DEPLOYMENTS, "tea", {"status": {"availableReplicas": 2}})
    await life.step("shows Ready=True", lambda: life.condition("tea").get("status") == "True")
    ready = life.condition("tea")
    assert ready["observedGeneration"] == life.find(SITES, "tea")["metadata"]["generation"], ready
    await life.step("records the Event", lambda: "Available" in life.events())
    await life.quiet()
    life.report.memory[1] = program.memory
    assert life.condition("tea")["lastTransitionTime"] == ready["lastTransitionTime"]
    cluster.merge_patch(SITES, "tea", {"spec": {"page": "iced"}})
    await life.step("changes the page", lambda: life.page("tea") == "iced")
    cluster.delete(CONFIGMAPS, "tea")
    await life.step("makes a deleted child again", lambda: life.page("tea") == "iced")
    cluster.merge_patch(SITES, "tea", {"spec": {"page": ""}})
    await life.quiet()  # an empty page is an error that no retry cures
    assert life.page("tea") == "iced"
    cluster.delete(SITES, "tea")
    await life.step("cleans up before the end", lambda: not life.find(SITES, "tea"))
    assert "purged" in program.text, program.text


async def _many_sites(life: _Life, program: RunningProgram, number: int) -> None:
    names = [f"site-{each}" for each in range(number)]
    for each in names:
        life.create(each)
    await life.step(
        f"makes the children of {number} Sites",
        lambda: all(life.find(DEPLOYMENTS, each) and life.condition(each) for each in names),
    )
    await life.quiet()
    life.report.memory[number] = program.memory
