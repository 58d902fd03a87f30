"""The guide from client-go: both controllers keep a ConfigMap for each Deployment."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from aioinformer import Client
from aioinformer.api import ResourceApi
from aioinformer.errors import NotFound
from aioinformer.testing import ApiServer
from tests.apiserver.server.build import BuildUnavailable, build_program
from tests.markdown_pages import MarkdownPage
from tests.script_processes import running_script

GUIDE = MarkdownPage(Path(__file__).parent.parent.parent / "examples/guides/from_client_go.md")


@pytest.fixture(params=[pytest.param("Before", marks=pytest.mark.apiserver), "After"])
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """One of the two, ready to be run. Go's is built, which takes minutes once."""
    if request.param == "After":
        return GUIDE.write_script("After", tmp_path)
    source = tmp_path / "source"
    source.mkdir()
    try:
        return build_program(GUIDE.block_under("Before", language="go"), source)
    except BuildUnavailable as reason:
        pytest.skip(str(reason))


async def wait_for_data(maps: ResourceApi, data: dict[str, str]) -> None:
    """Wait until the ConfigMap exists with these data."""
    async with asyncio.timeout(30):
        while True:
            with suppress(NotFound):
                if (await maps.get("web")).get("data") == data:
                    return
            await asyncio.sleep(0.01)


@pytest.mark.clients
@pytest.mark.timeout(300)
async def test_each_deployment_has_a_config_map_that_follows_it(
    program: Path, tmp_path: Path
) -> None:
    async with ApiServer() as server, Client(server.url) as client:
        deployments = client.api("deployments", namespace="default")
        maps = client.api("configmaps", namespace="default")
        await deployments.create({"metadata": {"name": "web"}, "spec": {"replicas": 2}})
        async with running_script(program, server, tmp_path) as run:
            assert await run.read_line() == b"web: 2 replicas\n"
            made = await maps.get("web")
            assert made["data"] == {"replicas": "2"}
            (owner,) = made.owner_references
            assert (owner["kind"], owner["name"]) == ("Deployment", "web")
            assert owner["controller"] is True

            await deployments.patch("web", {"spec": {"replicas": 3}})
            # A controller may write twice while its cache doesn't show its first write yet.
            while (line := await run.read_line()) == b"web: 2 replicas\n":
                pass
            assert line == b"web: 3 replicas\n"
            assert (await maps.get("web"))["data"] == {"replicas": "3"}

            await maps.patch("web", {"data": None})  # it is repaired
            await wait_for_data(maps, {"replicas": "3"})
            await maps.delete("web")  # it comes back
            await wait_for_data(maps, {"replicas": "3"})

            await deployments.delete("web")
            while (line := await run.read_line()) == b"web: 3 replicas\n":
                pass
            assert line == b"web: gone\n"
    assert run.status == 0
