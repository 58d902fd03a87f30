"""The kopf program of the guide that compares operators, on the embedded server."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from aioinformer import Resource
from aioinformer.testing import ApiServer, Cluster
from tests.examples.site_operator import Sites
from tests.markdown_pages import MarkdownPage, find_blocks

pytestmark = pytest.mark.clients

GUIDE = MarkdownPage(Path(__file__).parents[2] / "examples" / "guides" / "operators.md")
PEERINGS = (
    Resource("kopf.dev", "v1", "clusterkopfpeerings", "ClusterKopfPeering", namespaced=False),
    Resource("kopf.dev", "v1", "kopfpeerings", "KopfPeering"),
)
NETWORK = "def purge(name):\n    print('purged', name, flush=True)\n"


@asynccontextmanager
async def running_kopf(server: ApiServer, folder: Path) -> AsyncGenerator[Path]:
    """Run the program as ``kopf run`` does; give the file of its output."""
    (program,) = find_blocks(GUIDE.section("kopf"), "python")
    (folder / "program.py").write_text(program.replace("start_http_server(8080)", "pass"))
    (folder / "delivery_network.py").write_text(NETWORK)
    kubeconfig, output = server.kubeconfig(folder / "kubeconfig"), folder / "output"
    with output.open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "kopf", "run", "--all-namespaces", folder / "program.py"),
            env=os.environ | {"KUBECONFIG": str(kubeconfig), "PYTHONPATH": str(folder)},
            stdout=log,
            stderr=asyncio.subprocess.STDOUT,
        )
    try:
        yield output
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def text_of(output: Path) -> str:
    return output.read_text()


async def until(condition: Callable[[], bool], output: Path) -> None:
    try:
        async with asyncio.timeout(60):
            while not condition():  # noqa: ASYNC110 - what is waited for has no event
                await asyncio.sleep(0.05)
    except TimeoutError:
        pytest.fail(text_of(output)[-3000:])


async def test_the_kopf_program_of_the_guide_works(tmp_path: Path) -> None:
    cluster = Cluster()
    sites = Sites(cluster)
    for each in PEERINGS:
        cluster.add_resource(each)
    cluster.create(PEERINGS[0], {"metadata": {"name": "sites"}})

    def is_ready() -> bool:
        site = sites.get("tea")
        return site is not None and '"reason": "Available"' in json.dumps(site)

    async with ApiServer(cluster) as server, running_kopf(server, tmp_path) as output:
        sites.create("tea", page="hot", pods=2)
        await until(lambda: sites.page("tea") == "hot" and bool(sites.deployment("tea")), output)
        sites.report_available("tea")
        await until(is_ready, output)
        sites.delete("tea")
        await until(lambda: sites.get("tea") is None, output)
        assert "purged tea" in text_of(output)
