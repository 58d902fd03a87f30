"""The code of the guide on shards, as a reader would run it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aioinformer import SharedInformer, SharedInformerFactory
from aioinformer._core.sharding.ranges import HashRanges
from aioinformer.testing import Cluster, ClusterSource
from tests.markdown_pages import MarkdownPage

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
