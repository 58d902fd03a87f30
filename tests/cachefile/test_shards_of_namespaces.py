"""A cache file, a group and several namespaces together, in seeded histories with restarts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from aioinformer import Added, CacheFile, Deleted, Event, SharedInformerFactory
from aioinformer.lowlevel import Feature, Replaced
from aioinformer.testing import Cluster, ClusterSource
from aioinformer.testing.simulation import run
from tests.runtime.informers import FAST_BACKOFF
from tests.sharding.memory_assignment import MemoryAssignment
from tests.sharding.test_group_reflectors import keys, put_in, selected
from tests.simulation.pairs.threads import simulated_threads

NAMESPACES = ("a", "b", "c")
LIVES = 4


class Follower(Feature):
    """Follows the cache by what an observer receives, and by what a handler receives."""

    def __init__(self) -> None:
        self.uids: set[str] = set()
        self.handled: set[str] = set()

    def record(self, events: Sequence[Event]) -> None:
        for event in events:
            follow(self.uids, event)

    def record_list(self, batches: Sequence[Sequence[Event]], kind: Replaced) -> None:
        for batch in batches:
            self.record(batch)

    async def prepare_removal(self, scope: str) -> None: ...

    def handle(self, event: Event) -> None:
        follow(self.handled, event)


def follow(uids: set[str], event: Event) -> None:
    uid = event.obj.uid
    if isinstance(event, Added):
        assert uid not in uids, f"{event!r} is received twice"
        uids.add(uid)
    else:
        assert uid in uids, f"{event!r} concerns an unknown object"
        if isinstance(event, Deleted):
            uids.remove(uid)


class Program:
    """One life of a program: an informer with all three features, whose parts come and go."""

    def __init__(self, cluster: Cluster, path: Path, random: Random) -> None:
        self.cluster, self.random = cluster, random
        self.group = MemoryAssignment(assigned=self.draw_shards())
        self.read: list[str] = random.sample(NAMESPACES, random.randrange(1, 4))
        self.follower = Follower()
        self.informers = SharedInformerFactory(
            ClusterSource(cluster), cache=CacheFile(path, interval=0.5), backoff=FAST_BACKOFF
        )
        self.pods = self.informers.informer(
            "pods", shard=self.group, namespaces=self.read, features=(lambda: self.follower,)
        )
        self.pods.add_handler(self.follower.handle, overflow="block")

    def draw_shards(self) -> list[int]:
        return self.random.sample(range(8), self.random.randrange(9))

    async def live(self) -> None:
        async with self.informers:
            for _ in range(12):
                self.change()
                await asyncio.sleep(self.random.choice((0.0, 0.01, 0.3, 2.0)))
            await asyncio.sleep(self.random.choice((0.0, 90.0)))
            if self.random.random() < 0.7:
                await self.judge()

    def change(self) -> None:
        """Write, move shards, or add or remove a namespace."""
        match self.random.randrange(5):
            case 0:
                self.group.assign(self.draw_shards())
            case 1 if len(self.read) > 1:
                self.pods.remove_namespace(self.read.pop())
            case 2 if left := sorted({*NAMESPACES} - {*self.read}):
                self.read.append(left[0])
                self.pods.add_namespace(left[0])
            case _:
                write(self.cluster, self.random)

    async def judge(self) -> None:
        """Compare the cache with the server, and both followers with the cache."""
        await asyncio.sleep(90)
        shown = selected(self.cluster, self.read, self.group.assigned)
        assert keys(self.pods) == shown
        assert self.pods.health.cache_problem == ""
        uids = {pod.uid for pod in self.pods.lister}
        assert self.follower.uids == uids
        assert self.follower.handled == uids
        assert await self.pods.verify(repair=True, timeout=120)


def write(cluster: Cluster, random: Random) -> None:
    namespace = random.choice(NAMESPACES)
    pods = list(cluster.objects("pods", namespace=namespace))
    if pods and random.random() < 0.5:
        cluster.delete("pods", random.choice(pods)["metadata"]["name"], namespace=namespace)
    elif len(pods) < 40:
        put_in(cluster, namespace, cluster_number(cluster))


def cluster_number(cluster: Cluster) -> int:
    """Return a number that names a new pod."""
    names = [int(each["metadata"]["name"][1:]) for each in cluster.objects("pods")]
    return max(names, default=0) + 1


@pytest.mark.parametrize(
    "seed",
    [*range(4), *(pytest.param(each, marks=pytest.mark.simulation) for each in range(4, 200))],
)
def test_shards_of_namespaces_are_right_across_restarts(seed: int, tmp_path: Path) -> None:
    random: Any = Random(seed)

    async def program() -> None:
        cluster = Cluster(seed=seed, window=random.choice((30, 10_000)))
        for number in range(20):
            put_in(cluster, random.choice(NAMESPACES), number)
        for _ in range(LIVES):
            await Program(cluster, tmp_path / "cache.db", random).live()
            for _ in range(random.randrange(20)):
                write(cluster, random)

    with simulated_threads(random):
        run(program(), seed=seed)
