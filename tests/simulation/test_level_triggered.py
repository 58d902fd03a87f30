"""A reconciler that brings a copy to the state of the server gets there, whatever happens.

Random writes and faults in simulated time; at the end the copy is equal to the server, although
events were lost, merged and delivered twice, runs failed, took long and were cancelled, and owners
changed. And never were there two runs of one key at once.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from aioinformer import (
    BackoffPolicy,
    Controller,
    ItemExponential,
    KubeObject,
    ObjectKey,
    ReconcileContext,
    Result,
    SharedInformer,
    SharedInformerFactory,
)
from aioinformer.errors import ServerError
from aioinformer.testing import Cluster, ClusterSource
from aioinformer.testing.simulation import FaultKind, Simulation, run, simulate
from tests.controllers.reconcilers import (
    BARS,
    FOOS,
    add_resources,
    body_with_owner,
    key,
    make_cluster,
)

NAMES = [f"foo-{i}" for i in range(6)]
CHILDREN = [f"bar-{i}" for i in range(8)]

KINDS: tuple[FaultKind, ...] = (
    "refuse",
    "reset",
    "stall",
    "latency",
    "status",
    "error_event",
    "end_watches",
    "compact",
)
"""The faults of the histories."""

Copy = Mapping[ObjectKey, tuple[object, tuple[str, ...]]]
"""Of each foo its spec and the names of what it owns."""


def owner(bar: Mapping[str, Any]) -> str:
    references = bar["metadata"].get("ownerReferences") or [{"name": ""}]
    name: str = references[0]["name"]
    return name


class Copier:
    """Reconciles a foo by copying what it finds in the caches; at times it fails, or is slow."""

    def __init__(self, foos: SharedInformer, bars: SharedInformer, chance: random.Random) -> None:
        self.copy: dict[ObjectKey, tuple[object, tuple[str, ...]]] = {}
        self.running: set[ObjectKey] = set()
        self.overlaps = 0
        self.runs = 0
        self._foos = foos
        self._bars = bars
        self._chance = chance

    async def __call__(self, key: ObjectKey, ctx: ReconcileContext) -> Result | None:
        self.overlaps += key in self.running
        self.running.add(key)
        self.runs += 1
        try:
            # What is read is written only later, as by a request: an event comes in between.
            found = self._found(key)
            await asyncio.sleep(self._chance.choice((0, 0.001, 0.5, 3, 20)))
            if self._chance.random() < 0.2:
                raise self._chance.choice((ValueError("no"), asyncio.CancelledError()))
            self._write(key, found)
        finally:
            self.running.discard(key)
        if self._chance.random() < 0.1:
            return Result(requeue=True)
        return Result(requeue_after=5) if self._chance.random() < 0.1 else None

    def _found(self, key: ObjectKey) -> tuple[object, tuple[str, ...]] | None:
        foo = self._foos.lister.get(key)
        if foo is None:
            return None
        children = [bar.name for bar in self._bars.lister if owner(bar) == key.name]
        return foo.to_dict()["spec"], tuple(sorted(children))

    def _write(self, key: ObjectKey, found: tuple[object, tuple[str, ...]] | None) -> None:
        if found is None:
            self.copy.pop(key, None)
        else:
            self.copy[key] = found


def expected_copy(cluster: Cluster) -> Copy:
    """Return the state that the copy should have."""
    foos, bars = (existing(cluster, resource) for resource in (FOOS, BARS))
    return {
        key(name): (
            foo["spec"],
            tuple(sorted(child for child, bar in bars.items() if owner(bar) == name)),
        )
        for name, foo in foos.items()
    }


def existing(cluster: Cluster, resource: Any) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name in (*NAMES, *CHILDREN):
        try:
            found[name] = cluster.get(resource, name)
        except ServerError:
            continue
    return found


def write(cluster: Cluster, chance: random.Random) -> None:
    """Create, change or delete something, or give it to another owner."""
    name, child = chance.choice(NAMES), chance.choice(CHILDREN)
    writes: tuple[Callable[[], object], ...] = (
        lambda: cluster.create(FOOS, {"metadata": {"name": name}, "spec": {"size": 0}}),
        lambda: cluster.merge_patch(FOOS, name, {"spec": {"size": chance.randrange(100)}}),
        lambda: cluster.delete(FOOS, name),
        lambda: cluster.create(BARS, body_with_owner(child, name)),
        lambda: cluster.merge_patch(BARS, child, body_with_owner(child, name)),
        lambda: cluster.delete(BARS, child),
    )
    try:
        chance.choice(writes)()
    except ServerError:
        return  # it is there already, or it isn't


async def copy_all(
    simulation: Simulation, copiers: list[Copier], problems: set[type[Exception]]
) -> None:
    """Copy a cluster in which much is written while faults occur, and compare at the end."""
    chance, cluster = simulation.random, simulation.cluster
    add_resources(cluster)
    backoff = BackoffPolicy(initial=0.5, maximum=5)
    async with SharedInformerFactory(simulation.source, backoff=backoff) as informers:
        foos, bars = informers.informer(FOOS), informers.informer(BARS)
        copier = Copier(foos, bars, chance)
        copiers.append(copier)
        async with Controller(
            foos,
            copier,
            concurrency=chance.randint(1, 4),
            timeout=10,
            backoff=ItemExponential(0.1, 10),
            on_error=lambda problem: problems.add(type(problem.error)),
        ).owns(bars) as controller:
            for _ in range(40):
                for _ in range(chance.randrange(8)):
                    write(cluster, chance)
                await asyncio.sleep(chance.choice((0, 0.01, 1, 10)))
            await simulation.settled()
            health = controller.health
            assert (health.waiting, health.failing_keys, health.running) == (0, 0, {})
    assert copier.copy == expected_copy(cluster)
    assert copier.overlaps == 0


def check(seeds: range) -> None:
    copiers, problems = list[Copier](), set[type[Exception]]()

    async def copies(simulation: Simulation) -> None:
        await copy_all(simulation, copiers, problems)

    # Silent watches are noticed after more than 600 s, and then everything settles.
    simulate(copies, seeds=seeds, kinds=KINDS, settle=1500, cost=0.0001)
    assert sum(each.runs for each in copiers) > 20 * len(seeds)
    assert len(problems) >= 3  # a run raised, was cancelled by itself, and took too long


def test_the_copy_is_equal_to_the_server_in_the_end() -> None:
    check(range(6))


@pytest.mark.simulation
def test_the_copy_is_equal_to_the_server_in_the_end_of_many_histories() -> None:
    check(range(6, 306))


def test_a_reconciler_without_events_of_children_does_not_reach_the_state_of_the_server() -> None:
    """The check can fail."""

    async def main() -> bool:
        cluster = make_cluster("foo-0")
        async with SharedInformerFactory(ClusterSource(cluster)) as informers:
            foos, bars = informers.informer(FOOS), informers.informer(BARS)
            copier = Copier(foos, bars, random.Random(1))
            async with Controller(foos, copier).watches(bars, no_foos):
                await asyncio.sleep(60)
                cluster.create(BARS, body_with_owner("bar-0", "foo-0"))
                await asyncio.sleep(600)
        return copier.copy == expected_copy(cluster)

    assert not run(main(), seed=1)


def no_foos(obj: KubeObject) -> tuple[str, ...]:
    return ()
