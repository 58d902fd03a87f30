"""Comparisons of a cache with a server, without an informer."""

from __future__ import annotations

import pytest

from aioinformer import Indexer, KubeObject, ListRequest
from aioinformer._core.codec.list_decoder import ListDecoder
from aioinformer._core.objects.deltas import Replaced
from aioinformer._runtime.informer.reflectors import ScopePart
from aioinformer._runtime.informer.waiters import CacheWaiters
from aioinformer.testing import Cluster, ClusterSource
from aioinformer.verification.verifier import verify
from tests.runtime.informers import cluster_with_pods
from tests.runtime.scripted_source import PODS, pod


async def listed(cluster: Cluster) -> list[KubeObject]:
    """Return the server's objects as a reflector would read them."""
    decoder, found = ListDecoder(PODS), list[KubeObject]()
    async with ClusterSource(cluster).lister_watcher(PODS).list(ListRequest("0")) as chunks:
        async for chunk in chunks:
            found += decoder.feed(chunk)
    return [*found, *decoder.close()[0]]


def holding(objects: list[KubeObject], version: int) -> Indexer:
    """Return a cache of these objects at that version."""
    indexer = Indexer()
    replacement = indexer.replace(Replaced(tuple(objects), str(version)))
    while not replacement.step(64):
        pass
    replacement.commit()
    return indexer


def part_of(cluster: Cluster, indexer: Indexer) -> ScopePart:
    return ScopePart(ClusterSource(cluster).lister_watcher(PODS), indexer, None)


@pytest.mark.client_go(48)
async def test_each_kind_of_difference_is_found() -> None:
    cluster = cluster_with_pods("a", "b", "c", "d")
    _, b, c, d = await listed(cluster)
    wrong = [
        KubeObject(b.key, b.uid, b.resource_version, b'{"metadata":{}}', b.resource),
        KubeObject(c.key, c.uid, "1", c.raw, c.resource),
        KubeObject(d.key, "another", d.resource_version, d.raw, d.resource),
        pod("e", 1),
    ]
    indexer = holding(wrong, cluster.resource_version)
    part, waits = part_of(cluster, indexer), CacheWaiters(indexer, "pods")
    results = {
        contents: await verify(part, waits, contents=contents, managed_fields=False)
        for contents in (False, True)
    }
    found = {contents: result for contents, result in results.items() if result is not None}

    shallow = {"a": "missing", "c": "version", "d": "uid", "e": "surplus"}
    assert {key.name: how for key, how in found[False].differences.items()} == shallow
    deep = shallow | {"b": "content"}
    assert {key.name: how for key, how in found[True].differences.items()} == deep


async def test_a_verification_compares_the_server_state_at_the_version_of_the_cache() -> None:
    cluster = cluster_with_pods("a", "b")
    indexer = holding(await listed(cluster), cluster.resource_version)
    cluster.create("pods", {"metadata": {"name": "c"}})
    cluster.delete("pods", "a")

    part, waits = part_of(cluster, indexer), CacheWaiters(indexer, "pods")
    found = await verify(part, waits, contents=True, managed_fields=False)
    assert found
    assert found.objects == 2
