"""Parts of controller tests: clusters in memory, simulated time, recording reconcilers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from aioinformer import (
    BackoffPolicy,
    Controller,
    ItemExponential,
    ObjectKey,
    ReconcileContext,
    Resource,
    Result,
    SharedInformer,
    SharedInformerFactory,
)
from aioinformer.controllers.own_writes import OwnWrites
from aioinformer.testing import Cluster, ClusterSource
from aioinformer.testing.simulation import run

T = TypeVar("T")

FOOS = Resource("samples.example.com", "v1", "foos", "Foo")
"""The resource that the tests reconcile."""
BARS = Resource("samples.example.com", "v1", "bars", "Bar")
"""The resource of the objects that foos own."""
REALMS = Resource("samples.example.com", "v1", "realms", "Realm", namespaced=False)

BACKOFF = BackoffPolicy(initial=0.1, maximum=1.0, jitter=0)
DOUBLING_LIMITER = ItemExponential(1.0, 1000.0)


def make_cluster(*foos: str) -> Cluster:
    """Return a cluster with these foos in its default namespace."""
    cluster = Cluster()
    add_resources(cluster)
    for name in foos:
        create_foo(cluster, name)
    return cluster


def add_resources(cluster: Cluster) -> None:
    """Let a cluster serve the resources of these tests."""
    for resource in (FOOS, BARS, REALMS):
        cluster.add_resource(resource)


def create_foo(cluster: Cluster, name: str, **spec: object) -> None:
    cluster.create(FOOS, {"metadata": {"name": name}, "spec": spec})


def update_foo(cluster: Cluster, name: str, **spec: object) -> None:
    cluster.merge_patch(FOOS, name, {"spec": spec})


def body_with_owner(
    name: str, owner: str, resource: Resource = FOOS, *, controller: bool = True
) -> Any:
    """Return the body of an object that ``owner`` owns."""
    reference = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": owner,
        "uid": f"uid-{owner}",
        "controller": controller,
    }
    return {"metadata": {"name": name, "ownerReferences": [reference]}}


def key(name: str) -> ObjectKey:
    return ObjectKey("default", name)


@asynccontextmanager
async def running_factory(cluster: Cluster) -> AsyncGenerator[SharedInformerFactory]:
    """Run a factory of informers of a cluster in memory."""
    async with SharedInformerFactory(ClusterSource(cluster), backoff=BACKOFF) as informers:
        yield informers


@asynccontextmanager
async def foo_informer(cluster: Cluster) -> AsyncGenerator[SharedInformer]:
    async with running_factory(cluster) as informers:
        yield informers.informer(FOOS)


def run_simulated(scenario: Callable[[], Coroutine[Any, Any, T]], *, seed: int = 1) -> T:
    """Run a scenario in simulated time."""
    return run(scenario(), seed=seed)


def loop_time() -> float:
    return asyncio.get_running_loop().time()


async def wait_until(condition: Callable[[], bool], *, every: float = 0.01) -> None:
    """Wait until ``condition`` holds, with a check every ``every`` seconds of simulated time."""
    while not condition():  # noqa: ASYNC110 - no single event stands for every condition
        await asyncio.sleep(every)


def own_writes_of(controller: Controller) -> OwnWrites:
    """Return the record of a controller's own writes, which no public name shows."""
    return controller._own_writes  # pyright: ignore[reportPrivateUsage]


def conditions_written_by(controller: Controller) -> int:
    """Return the number of objects whose failure condition a controller remembers."""
    condition = controller._workers._condition  # pyright: ignore[reportPrivateUsage]
    assert condition is not None
    return int(repr(condition).partition("written=")[2].rstrip(">"))


class NoteRecorder:
    """A recorder of Events of a program's own: name, type, reason and note of each."""

    def __init__(self) -> None:
        self.notes = list[tuple[str, str, str, str]]()

    def record(
        self,
        obj: Mapping[str, Any],
        event_type: str,
        reason: str,
        note: str = "",
        *,
        action: str = "",
        related: Mapping[str, Any] | None = None,
    ) -> None:
        self.notes.append((obj["metadata"]["name"], event_type, reason, note))


@dataclass(slots=True)
class RecordingReconciler:
    """A reconciler that records its runs, and returns or raises the given results."""

    duration: float = 0.0
    """Seconds that a run takes."""
    results: list[Result | Exception | None] = field(
        default_factory=list[Result | Exception | None]
    )
    """The results that the next runs return or raise; later runs return ``None``."""
    runs: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    """The name and the time of each run that began."""
    ended: list[str] = field(default_factory=list[str])
    contexts: list[ReconcileContext] = field(default_factory=list[ReconcileContext])
    active_runs: dict[ObjectKey, int] = field(default_factory=dict[ObjectKey, int])
    max_active_runs: int = 0
    cancelled: list[str] = field(default_factory=list[str])

    async def __call__(self, key: ObjectKey, ctx: ReconcileContext) -> Result | None:
        self.runs.append((key.name, round(loop_time(), 3)))
        self.contexts.append(ctx)
        self.active_runs[key] = self.active_runs.get(key, 0) + 1
        self.max_active_runs = max(self.max_active_runs, self.active_runs[key])
        try:
            await asyncio.sleep(self.duration)
        except asyncio.CancelledError:
            self.cancelled.append(key.name)
            raise
        finally:
            self.active_runs[key] -= 1
            self.ended.append(key.name)
        result = self.results.pop(0) if self.results else None
        if isinstance(result, Exception):
            raise result
        return result

    @property
    def names(self) -> list[str]:
        """The names of the reconciled objects, in the order of the runs."""
        return [name for name, _ in self.runs]

    @property
    def times(self) -> list[float]:
        """The start time of each run."""
        return [time for _, time in self.runs]

    @property
    def causes(self) -> list[list[str]]:
        """The causes of each run."""
        return [[reason.cause for reason in each.reasons] for each in self.contexts]
