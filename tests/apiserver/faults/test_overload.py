"""An informer beside greedy clients, on a real API server that serves one request at a time."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from aioinformer import Client, Resource, SharedInformerFactory
from aioinformer.errors import TooManyRequests
from tests.apiserver.server.server_process import AdminClient, ApiServerProcess
from tests.processes import start_process
from tests.promises.conftest import wait_until

pytestmark = pytest.mark.apiserver

INFORMED = Resource("example.com", "v1", "widgets", "Widget", short_names=("wd",))
GREEDY = 40
"""Clients that list all widgets again and again, without a pause."""
MANY = 300


@pytest.fixture
async def busy_server(
    apiserver_binary: Path, data_with_widgets: Path, tmp_path: Path
) -> AsyncGenerator[ApiServerProcess]:
    """Run a server that serves one reading request at a time."""
    data = tmp_path / "apiserver"
    shutil.copytree(data_with_widgets, data, ignore=shutil.ignore_patterns("*.log"))
    server = ApiServerProcess(apiserver_binary, data, "--max-requests-inflight=1")
    await server.start()
    try:
        yield server
    finally:
        await server.kill()
        shutil.rmtree(data / "etcd")


@asynccontextmanager
async def greedy_clients(server: ApiServerProcess) -> AsyncGenerator[dict[str, int]]:
    """Keep the server busy; yield what are the numbers of its answers by status afterwards."""
    answers: dict[str, int] = {}
    module = "tests.apiserver.programs.greedy_process"
    process = await start_process(
        sys.executable,
        *("-m", module, server.url, str(server.ca_file), str(GREEDY)),
        stdin=PIPE,
        stdout=PIPE,
    )
    try:
        await asyncio.sleep(2)  # until all clients are connected
        yield answers
    finally:
        output, _ = await process.communicate(b"")  # closes its input
        answers |= json.loads(output)


def widget(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"payload": "x" * 3000},
    }


async def create_widgets(server: ApiServerProcess) -> None:
    async with AdminClient(server) as admin:
        for start in range(0, MANY, 20):
            names = [f"w-{number}" for number in range(start, start + 20)]
            await asyncio.gather(*(admin.create(widget(each), namespace="web") for each in names))


@pytest.mark.timeout(120)
async def test_a_watch_list_is_complete_beside_greedy_clients(
    busy_server: ApiServerProcess,
) -> None:
    await create_widgets(busy_server)
    async with (
        greedy_clients(busy_server) as answers,
        Client.connect(kubeconfig=busy_server.kubeconfig) as client,
        SharedInformerFactory(client) as informers,
    ):
        widgets = informers.informer(INFORMED)
        await informers.wait_synced(30)  # the limit is for short requests, not for watches
    assert len(widgets.lister) == MANY
    assert answers["429"] > 0


@pytest.mark.timeout(120)
async def test_rejected_lists_give_advice_and_succeed_after_the_load(
    busy_server: ApiServerProcess,
) -> None:
    await create_widgets(busy_server)
    problems: list[BaseException] = []
    async with (
        Client.connect(kubeconfig=busy_server.kubeconfig) as client,
        SharedInformerFactory(
            client, watch_list=False, on_error=lambda each: problems.append(each.error)
        ) as informers,
    ):
        async with greedy_clients(busy_server):
            widgets = informers.informer(INFORMED)
            await wait_until(lambda: len(problems) >= 2 or widgets.synced, timeout=40)
        await informers.wait_synced(40)
        assert len(widgets.lister) == MANY
    refused = [each for each in problems if isinstance(each, TooManyRequests)]
    assert all("the User-Agent in its audit log" in str(each) for each in refused)
