"""The guide from kubernetes_asyncio: before and after do the same, whatever the server does."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from kubernetes_asyncio.client import ApiClient, Configuration

from aioinformer.testing import ApiServer
from tests.markdown_pages import MarkdownPage
from tests.script_processes import RunningScript, running_script

GUIDE = MarkdownPage(
    Path(__file__).parent.parent.parent / "examples/guides/from_kubernetes_asyncio.md"
)


def pod(server: ApiServer, name: str) -> None:
    body: dict[str, Any] = {"metadata": {"name": name}}
    body["spec"] = {"nodeName": "node-1", "containers": []}
    server.cluster.create("pods", body, namespace="default")


@pytest.mark.clients
async def test_both_programs_print_changes(tmp_path: Path) -> None:
    async with ApiServer() as server, both(server, tmp_path) as runs:
        await _read_one_change(server, runs)
        server.cluster.delete("pods", "web-1", namespace="default")
        for run in runs:
            assert await run.read_line() == b"deleted web-1\n"
    assert [run.status for run in runs] == [0, 0]


@pytest.mark.apiserver  # both wait for real before they try again, seconds
@pytest.mark.clients
async def test_both_programs_print_changes_after_a_restart_that_compacted_the_version(
    tmp_path: Path,
) -> None:
    async with ApiServer() as server, both(server, tmp_path) as runs:
        await _read_one_change(server, runs)

        await server.stop()
        server.cluster.delete("pods", "web-1", namespace="default")
        pod(server, "web-2")
        server.cluster.compact()
        await server.start()

        for run in runs:
            lines = sorted([await run.read_line() for _ in range(2)])
            assert lines == [b"added web-2\n", b"deleted web-1\n"]
    assert [run.status for run in runs] == [0, 0]


@asynccontextmanager
async def both(
    server: ApiServer, folder: Path
) -> AsyncGenerator[tuple[RunningScript, RunningScript]]:
    """Run the guide's programs before and after side by side, on two pods."""
    for name in ("web-0", "web-1"):
        pod(server, name)
    async with (
        running_script(GUIDE.write_script("Before", folder), server, folder) as before,
        running_script(GUIDE.write_script("After", folder), server, folder) as after,
    ):
        yield before, after


async def _read_one_change(server: ApiServer, runs: tuple[RunningScript, RunningScript]) -> None:
    for run in runs:
        lines = sorted([await run.read_line() for _ in range(2)])
        assert lines == [b"added web-0\n", b"added web-1\n"]
    patch = {"spec": {"nodeName": "node-2"}}
    server.cluster.merge_patch("pods", "web-0", patch, namespace="default")
    for run in runs:
        assert await run.read_line() == b"changed web-0 on node-2\n"


async def test_the_code_of_the_guide_works_with_a_client_and_models_of_kubernetes_asyncio() -> None:
    names: dict[str, Any] = {}
    exec(GUIDE.block_under("Keeping what you have"), names)  # noqa: S102 - what it is for
    async with ApiServer() as server:
        pod(server, "web-0")
        api = ApiClient(Configuration(host=server.url))
        try:
            assert await names["nodes_of_pods"](api) == {"web-0": "node-1"}
        finally:
            await api.close()
