"""The guide from kopf: both operators keep a ConfigMap for each Shop, and count its pods."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from aioinformer import Client, Resource
from aioinformer.testing import ApiServer, Cluster
from tests.markdown_pages import MarkdownPage
from tests.promises.conftest import wait_until
from tests.script_processes import RunningScript, running_script

GUIDE = MarkdownPage(Path(__file__).parent.parent.parent / "examples/guides/from_kopf.md")
SHOPS = Resource("example.com", "v1", "shops", "Shop")


class Operated:
    """A cluster with shops, and an operator that looks after them."""

    def __init__(self, server: ApiServer, client: Client, run: RunningScript) -> None:
        self.server = server
        self.shops = client.api(SHOPS, namespace="default")
        self.maps = client.api("configmaps", namespace="default")
        self.run = run

    async def wait_for_line(self, line: str) -> None:
        """Wait until the operator has printed ``line``."""
        async with asyncio.timeout(40):
            while (text := (await self.run.read_line()).decode()) != f"{line}\n":
                assert text, f"the operator ended without {line!r}"

    def items(self, resource: str) -> list[dict[str, Any]]:
        """Return the object's data on the server."""
        items: list[dict[str, Any]] = json.loads(self.server.cluster.list(resource))["items"]
        return items

    @property
    def mottos(self) -> dict[str, str]:
        """The data of the ConfigMaps."""
        return {
            each["metadata"]["name"]: each["data"]["motto"] for each in self.items("configmaps")
        }


@asynccontextmanager
async def operated(half: str, folder: Path) -> AsyncGenerator[Operated]:
    cluster = Cluster()
    cluster.add_resource(SHOPS, status=True)
    async with (
        ApiServer(cluster) as server,
        Client(server.url) as client,
        running_script(GUIDE.write_script(half, folder), server, folder) as run,
    ):
        operator = Operated(server, client, run)
        await operator.shops.create({"metadata": {"name": "tea"}, "spec": {"motto": "hot"}})
        yield operator


@pytest.mark.clients
async def test_each_shop_has_a_config_map_that_follows_it(tmp_path: Path) -> None:
    await asyncio.gather(
        *[_followed(half, tmp_path) for half in ("Before", "After")], _counted(tmp_path)
    )


async def _followed(half: str, tmp_path: Path) -> None:
    folder = tmp_path / half
    folder.mkdir()
    async with operated(half, folder) as it:
        await it.wait_for_line("tea: hot")
        assert it.mottos == {"tea": "hot"}
        (owner,) = (await it.maps.get("tea")).owner_references
        assert (owner["kind"], owner["name"], owner["controller"]) == ("Shop", "tea", True)

        await it.shops.patch("tea", {"spec": {"motto": "hotter"}})
        await it.wait_for_line("tea: hotter")
        assert it.mottos == {"tea": "hotter"}

        pod: dict[str, Any] = {"metadata": {"name": "tea-0", "labels": {"shop": "tea"}}}
        it.server.cluster.create("pods", pod, namespace="default")
        await it.wait_for_line("tea: 1 pods")

        marked = half == "Before"
        shop = await it.shops.get("tea")
        assert any("kopf" in name for name in shop.annotations) is marked
        assert bool(shop["metadata"].get("finalizers")) is marked
        if half == "After":
            await it.maps.patch("tea", {"data": None})
            await it.wait_for_line("tea: hotter")
            assert it.mottos == {"tea": "hotter"}, "what others empty is filled"
            await it.maps.delete("tea")
            await it.wait_for_line("tea: hotter")
            assert it.mottos == {"tea": "hotter"}, "what others delete comes back"

        await it.shops.delete("tea")
        await it.wait_for_line("tea: closed")
        await wait_until(lambda: not it.items("shops"))
    assert it.run.status == 0


async def _counted(tmp_path: Path) -> None:
    """Halfway: kopf's handlers read a cache."""
    async with operated("One step at a time", tmp_path) as it:
        await it.wait_for_line("tea: 0 pods")
        for name in ("tea-0", "tea-1"):
            pod = {"metadata": {"name": name, "labels": {"shop": "tea"}}}
            it.server.cluster.create("pods", pod, namespace="default")
        for motto in map(str, range(100)):
            await it.shops.patch("tea", {"spec": {"motto": motto}})
            if await it.run.read_line() == b"tea: 2 pods\n":
                break
        else:
            raise AssertionError("it never saw both")
    assert (it.run.status, "Unclosed" in it.run.stderr) == (0, False)
