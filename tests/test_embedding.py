"""Factories in fixtures, lifespans and exit stacks, which another task may leave."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest

from aioinformer import Client, SharedInformer, SharedInformerFactory
from aioinformer.errors import UsageError
from aioinformer.testing import ApiServer, Cluster, ClusterSource
from examples.fastapi_app.app import create_app
from examples.fastapi_app.settings import Settings
from tests.promises.conftest import wait_until
from tests.runtime.scripted_source import PODS


@pytest.fixture
async def pods() -> AsyncIterator[SharedInformer]:
    """Set up and torn down by pytest-asyncio, in two different tasks."""
    cluster = Cluster()
    cluster.create("pods", {"metadata": {"name": "a"}}, namespace="web")
    async with SharedInformerFactory(ClusterSource(cluster)) as informers:
        pods = informers.informer("pods")
        await informers.wait_synced(30)
        yield pods


async def test_a_factory_works_inside_a_pytest_fixture(pods: SharedInformer) -> None:
    assert [obj.name for obj in pods.lister] == ["a"]


async def test_a_factory_works_on_an_exit_stack_that_another_task_closes() -> None:
    stack = AsyncExitStack()
    source = ClusterSource(Cluster())
    informers = await asyncio.create_task(stack.enter_async_context(SharedInformerFactory(source)))
    await informers.wait_synced(30)
    await asyncio.create_task(stack.aclose())
    assert "ended" in repr(informers)


async def test_a_value_error_in_the_body_is_raised_unchanged() -> None:
    mine = ValueError("mine")

    async def body() -> None:
        async with (
            ApiServer() as server,
            Client(server.url) as client,
            SharedInformerFactory(client) as informers,
        ):
            informers.informer("pods")
            await informers.wait_synced(30)
            raise mine

    with pytest.raises(ValueError, match="mine") as caught:
        await body()
    assert caught.value is mine


async def test_a_factory_works_inside_a_fastapi_lifespan(tmp_path: Path) -> None:
    async with ApiServer() as server:
        body = {"metadata": {"name": "web-0"}, "spec": {"nodeName": "node-1"}}
        server.cluster.create("pods", body, namespace="web")
        kubeconfig = str(server.kubeconfig(tmp_path / "config"))
        app = create_app(Settings(cluster=True, kubeconfig=kubeconfig))
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://localhost") as http,
        ):
            pods: SharedInformer = app.state.live.informers["pods"]
            await pods.wait_synced(30)
            assert (await http.get("/api/on-node/node-1")).json() == ["web/web-0"]
            one = (await http.get("/api/pods/web/web-0")).json()
            assert one["spec"] == {"nodeName": "node-1"}
            server.cluster.delete("pods", "web-0", namespace="web")
            await wait_until(lambda: not len(pods.lister))
            assert (await http.get("/api/on-node/node-1")).json() == []


def test_a_coroutine_outside_of_asyncio_raises_an_error_that_names_asyncio() -> None:
    """No loop of asyncio runs here, as when trio runs the coroutine."""
    client = Client("http://127.0.0.1:1")
    source = ClusterSource(Cluster())
    pods = SharedInformer(source.lister_watcher(PODS, namespace=None, labels="", fields=""))
    for work in (client.__aenter__(), SharedInformerFactory(source).__aenter__(), pods.run()):
        with pytest.raises(UsageError, match="such as trio, runs this coroutine: start"):
            work.send(None)
    assert "opening" not in repr(client)
