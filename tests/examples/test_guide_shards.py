"""The code of the guide on shards, as a reader would run it."""

from __future__ import annotations

import ast
import asyncio
from pathlib import Path
from types import FunctionType
from typing import Any

from aioinformer import (
    ObjectKey,
    ReconcileContext,
    ShardGroup,
    SharedInformer,
    SharedInformerFactory,
)
from aioinformer.sharding.state.ranges import HashRanges, shard_of
from aioinformer.testing import Cluster, ClusterSource
from tests.markdown_pages import MarkdownPage
from tests.runtime.scripted_source import wait_until

GUIDE = MarkdownPage(Path(__file__).parents[2] / "examples" / "guides" / "shards.md")


async def test_the_informer_of_the_guide_reads_one_shard() -> None:
    cluster = Cluster()
    for number in range(40):
        cluster.create("pods", {"metadata": {"name": f"p{number}"}}, namespace="web")
    names: dict[str, Any] = {}
    async with SharedInformerFactory(ClusterSource(cluster)) as informers:
        names["informers"] = informers
        exec(GUIDE.block_under("One shard of an informer"), names)  # noqa: S102 - what it is for
        pods: SharedInformer = names["pods"]
        await informers.wait_synced(30)
        ranges = HashRanges.of([2], 4, "uid")
        uids = [each["metadata"]["uid"] for each in cluster.objects("pods")]
        assert {pod.uid for pod in pods.lister.list()} == {
            uid for uid in uids if ranges.has(uid, "web")
        }
        assert pods.health.shard_filter == "client"


async def test_the_controller_of_the_guide_reconciles_the_shards_of_its_replica() -> None:
    cluster = Cluster()
    for number in range(40):
        cluster.create("configmaps", {"metadata": {"name": f"c{number}"}}, namespace="web")
    source, seen = ClusterSource(cluster), set[str]()
    halved = asyncio.Event()

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
        seen.add(key.name)
        if len(seen) == 40:
            halved.set()

    names: dict[str, Any] = {"client": source, "reconcile": reconcile}
    text = GUIDE.block_under("Informers and controllers on a group")
    code = compile(text, "guide", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    running = asyncio.ensure_future(FunctionType(code, names)())
    async with asyncio.timeout(30):
        await halved.wait()  # alone, the replica holds all shards
        async with ShardGroup(source, "shop", namespace="web", identity="shop-1") as other:
            await other.wait_member(30)
            assert 0 < len(other.held) < 64
            group: ShardGroup = names["group"]
            configmaps = group.informer("configmaps")
            assert group.held.isdisjoint(other.held)
            expected = {
                f"c{number}"
                for number in range(40)
                if shard_of(uid_of(cluster, f"c{number}"), 64) in group.held
            }
            await wait_until(lambda: {o.name for o in configmaps.lister.list()} == expected)
            assert set(configmaps.health.shards) == group.held
    running.cancel()
    await asyncio.wait({running})


def uid_of(cluster: Cluster, name: str) -> str:
    found = cluster.find_object("configmaps", name, namespace="web")
    assert found is not None
    uid: str = found["metadata"]["uid"]
    return uid
