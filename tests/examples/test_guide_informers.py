"""The code of the guide on informers, as a reader would run it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from aioinformer import Client, KubeObject, SharedInformer, SharedInformerFactory
from aioinformer.testing import Cluster, ClusterSource
from aioinformer.testing.simulation import run
from tests.markdown_pages import MarkdownPage

GUIDE = MarkdownPage(Path(__file__).parents[2] / "examples" / "guides" / "informers.md")


def test_a_handler_ends_the_program_by_waking_the_body_of_the_factory() -> None:
    names: dict[str, Any] = {
        "asyncio": asyncio,
        "Client": Client,
        "KubeObject": KubeObject,
        "SharedInformerFactory": SharedInformerFactory,
    }
    exec(GUIDE.block("def exit_code("), names)  # noqa: S102 - the guide's code

    async def main() -> int:
        cluster = Cluster()
        for name in ("web-0", "web-1"):
            cluster.create("pods", {"metadata": {"name": name}}, namespace="shop")
        running: asyncio.Task[int] = asyncio.create_task(names["exit_code"](ClusterSource(cluster)))
        await asyncio.sleep(1)
        cluster.delete("pods", "web-1", namespace="shop")
        await asyncio.sleep(1)
        assert not running.done()
        cluster.delete("pods", "web-0", namespace="shop")
        return await running

    assert run(main(), seed=0) == 3


@pytest.mark.parametrize("kind", ["deleted", "created again", "created again in an outage"])
def test_the_end_of_an_object_is_waited_for_after_the_cache_has_it(kind: str) -> None:
    names: dict[str, Any] = {"SharedInformer": SharedInformer}
    exec(GUIDE.block("def wait_for_end("), names)  # noqa: S102 - the guide's code
    cluster, body = Cluster(), {"metadata": {"name": "migrate"}}

    def end() -> None:
        cluster.delete("jobs", "migrate", namespace="web")
        if kind != "deleted":
            cluster.create("jobs", body, namespace="web")

    async def main() -> None:
        source = ClusterSource(cluster)
        async with SharedInformerFactory(source, namespace="web") as informers:
            jobs = informers.informer("jobs")
            waiting = asyncio.create_task(names["wait_for_end"](jobs, "migrate"))
            await asyncio.sleep(5)
            cluster.create("jobs", body, namespace="web")
            await asyncio.sleep(5)
            assert not waiting.done()
            if kind == "created again in an outage":
                with source.faults.reset():
                    await asyncio.sleep(5)
                    end()
                    cluster.compact()
                    await asyncio.sleep(5)
                    assert not waiting.done()
            else:
                end()
            await asyncio.wait_for(waiting, 60)

    run(main(), seed=0)
