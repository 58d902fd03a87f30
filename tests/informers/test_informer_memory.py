"""The estimate of an informer's memory."""

from __future__ import annotations

from aioinformer import Feature, SharedInformer, SharedInformerFactory
from aioinformer._core.cache.memory import DECODED_FACTOR
from aioinformer.testing import Cluster, ClusterSource
from tests.runtime.informers import (
    cluster_with_pods,
    label_pod,
    pod_informer,
    running_informer,
)
from tests.runtime.scripted_source import wait_until

NAMES = ("web-0", "web-1", "web-2")


def json_bytes(informer: SharedInformer) -> int:
    return sum(len(obj.raw) for obj in informer.lister)


async def test_the_estimate_follows_added_changed_and_deleted_objects() -> None:
    cluster = cluster_with_pods(*NAMES)
    async with running_informer(pod_informer(cluster)) as informer:
        before = informer.memory()
        assert before.objects == len(NAMES)
        assert before.json_bytes == json_bytes(informer)
        assert before.overhead_bytes > 0

        label_pod(cluster, "web-0", "x" * 60)
        await wait_until(lambda: informer.memory().json_bytes > before.json_bytes)
        assert informer.memory().json_bytes == json_bytes(informer)

        cluster.delete("pods", "web-1")
        await wait_until(lambda: informer.memory().objects == len(NAMES) - 1)
        assert informer.memory().json_bytes == json_bytes(informer)


async def test_the_estimate_includes_decoded_bodies() -> None:
    async with running_informer(pod_informer(cluster_with_pods(*NAMES))) as informer:
        assert informer.memory().open_bytes == 0
        obj = next(iter(informer.lister))
        assert obj["metadata"]

        assert informer.memory().open_bytes == DECODED_FACTOR * len(obj.raw)


async def test_the_estimate_includes_events_in_a_mailbox() -> None:
    cluster = cluster_with_pods(*NAMES)
    async with running_informer(pod_informer(cluster)) as informer, informer.events() as events:
        for _ in NAMES:
            await anext(events)
        assert informer.memory().pending_bytes == 0

        for name in NAMES:
            label_pod(cluster, name, "new")
        await wait_until(lambda: informer.memory().pending_bytes > json_bytes(informer) / 2)


async def test_the_estimate_is_the_sum_over_several_namespaces() -> None:
    cluster = Cluster()
    for namespace in ("a", "b"):
        cluster.create("pods", {"metadata": {"name": "web-0"}}, namespace=namespace)
    async with SharedInformerFactory(ClusterSource(cluster)) as informers:
        pods = informers.informer("pods", namespaces=["a", "b"])
        await pods.wait_synced(timeout=30)
        memory = pods.memory()

        assert memory.objects == 2
        assert memory.json_bytes == json_bytes(pods)
        assert memory.total == memory.json_bytes + memory.overhead_bytes


async def test_the_estimate_includes_what_features_keep() -> None:
    class Thousand(Feature):
        @property
        def memory_bytes(self) -> int:
            return 1000

    async with SharedInformerFactory(ClusterSource(cluster_with_pods(*NAMES))) as informers:
        plain = informers.informer("pods")
        other = informers.informer("pods", managed_fields=True, features=(Thousand,))
        await informers.wait_synced(timeout=30)
        assert other.memory().pending_bytes == plain.memory().pending_bytes + 1000
