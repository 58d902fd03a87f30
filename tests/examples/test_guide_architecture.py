"""The code of the page on architecture, as a reader would run it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from aioinformer import SharedInformer, SharedInformerFactory
from aioinformer.testing import Cluster, ClusterSource
from aioinformer.testing.simulation import run
from tests.markdown_pages import MarkdownPage
from tests.runtime.virtual_waits import until

PAGE = Path(__file__).parents[2] / "examples" / "guides" / "architecture.md"


def test_the_feature_of_the_page_counts_changes_and_watches_the_age_of_the_cache() -> None:
    code = MarkdownPage(PAGE).block_under("A feature")
    assert len(code.splitlines()) <= 40

    async def main() -> None:
        cluster = Cluster()
        source = ClusterSource(cluster)
        cluster.create("pods", {"metadata": {"name": "a"}}, namespace="web")
        async with SharedInformerFactory(source) as informers:
            names: dict[str, Any] = {"informers": informers}
            exec(code, names)  # noqa: S102 - what it is for
            pods: SharedInformer = names["pods"]
            await pods.wait_synced(timeout=30)
            cluster.create("pods", {"metadata": {"name": "b"}}, namespace="web")
            await until(lambda: names["activity"].changes == {"web": 2})
            assert pods.health.ok
            source.faults.drop_bookmarks()
            await until(lambda: not pods.health.ok)
            assert pods.synced

    run(main(), seed=1)


def test_every_module_that_the_page_names_exists() -> None:
    targets = re.findall(r"\]\((\.\./[^)#]+)", PAGE.read_text())
    assert len(targets) > 20
    assert not [each for each in targets if not (PAGE.parent / each).exists()]
