"""A durable handler of one shard of several namespaces, of which metadata alone is read."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

from aioinformer import Added, CacheFile, Deleted, Event, Shard, SharedInformerFactory
from aioinformer.testing import Cluster, ClusterSource
from aioinformer.testing.simulation import run
from tests.runtime.informers import FAST_BACKOFF
from tests.simulation.pairs.threads import simulated_threads

LIVES = (["a", "b"], ["a"], ["a", "b", "c"], ["b"], ["a", "b"])
"""The namespaces in each life of the program."""


class Audit:
    """What a durable handler knows, which outlives its program."""

    def __init__(self) -> None:
        self.uids: set[str] = set()

    def handle(self, event: Event) -> None:
        uid = event.obj.uid
        assert isinstance(event, Added) == (uid not in self.uids), event
        if isinstance(event, Deleted):
            self.uids.remove(uid)
        else:
            self.uids.add(uid)


def test_a_durable_handler_of_a_shard_knows_its_objects_across_restarts(tmp_path: Path) -> None:
    random, audit = Random(1), Audit()

    async def program() -> None:
        cluster = Cluster(seed=1)
        for number in range(20):
            put(cluster, "a", number)
            put(cluster, "b", number)
        for life, namespaces in enumerate(LIVES):
            informers = SharedInformerFactory(
                ClusterSource(cluster),
                cache=CacheFile(tmp_path / "cache.db", interval=0.5),
                backoff=FAST_BACKOFF,
            )
            pods = informers.informer(
                "pods", shard=Shard(1, 3), namespaces=namespaces, metadata_only=True
            )
            pods.add_handler(audit.handle, durable="audit")
            async with informers:
                await pods.wait_synced(timeout=30)
                await asyncio.sleep(90)
                pods.remove_namespace(namespaces[0])
                await asyncio.sleep(5)
                assert audit.uids == {pod.uid for pod in pods.lister}
                pods.add_namespace(namespaces[0])
                await asyncio.sleep(5)
                assert audit.uids == {pod.uid for pod in pods.lister}
                assert await pods.verify(timeout=100)
                assert pods.health.cache_problem == ""
            for number in range(10):
                namespace = random.choice("abc")
                put(cluster, namespace, 100 * (life + 1) + number)
                left = list(cluster.objects("pods", namespace=namespace))
                name = random.choice(left)["metadata"]["name"]
                cluster.delete("pods", name, namespace=namespace)

    with simulated_threads(random):
        run(program(), seed=1)


def put(cluster: Cluster, namespace: str, number: int) -> None:
    cluster.create("pods", {"metadata": {"name": f"p{number}"}}, namespace=namespace)
