"""Where a factory lives: fixtures, lifespans and exit stacks, which leave as they please."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from types import ModuleType

import httpx
import pytest

from aioinformer import Client, SharedInformer, SharedInformerFactory
from aioinformer.testing import ApiServer, Cluster, ClusterSource
from tests.promises.conftest import until

EXAMPLE = Path(__file__).parent.parent / "examples" / "fastapi_service.py"


def example() -> ModuleType:
    """The service in the examples. Importing takes long, so not inside an event loop."""
    spec = importlib.util.spec_from_file_location("fastapi_service", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


service = example()


@pytest.fixture
async def pods() -> AsyncIterator[SharedInformer]:
    """Set up and torn down by pytest-asyncio, in two different tasks."""
    cluster = Cluster()
    cluster.create("pods", {"metadata": {"name": "a"}}, namespace="web")
    async with SharedInformerFactory(ClusterSource(cluster)) as informers:
        pods = informers.informer("pods")
        await informers.wait_synced(5)
        yield pods


async def test_inside_a_pytest_fixture(pods: SharedInformer) -> None:
    assert [obj.name for obj in pods.lister] == ["a"]


async def test_on_an_exit_stack_that_another_task_closes() -> None:
    stack = AsyncExitStack()
    source = ClusterSource(Cluster())
    informers = await asyncio.create_task(stack.enter_async_context(SharedInformerFactory(source)))
    await informers.wait_synced(5)
    await asyncio.create_task(stack.aclose())
    assert "ended" in repr(informers)


async def test_a_value_error_in_the_body_comes_out_as_that_value_error() -> None:
    mine = ValueError("mine")

    async def body() -> None:
        async with (
            ApiServer() as server,
            Client(server.url) as client,
            SharedInformerFactory(client) as informers,
        ):
            informers.informer("pods")
            await informers.wait_synced(5)
            raise mine

    with pytest.raises(ValueError, match="mine") as caught:
        await body()
    assert caught.value is mine


async def test_inside_a_fastapi_lifespan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with ApiServer() as server:
        body = {"metadata": {"name": "web-0"}, "spec": {"nodeName": "node-1"}}
        server.cluster.create("pods", body, namespace="web")
        monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig(tmp_path / "config")))
        transport = httpx.ASGITransport(service.app)
        async with (
            service.app.router.lifespan_context(service.app),
            httpx.AsyncClient(transport=transport, base_url="http://service") as http,
        ):
            pods: SharedInformer = service.app.state.pods
            await pods.wait_synced(10)
            assert (await http.get("/readyz")).status_code == 200
            assert (await http.get("/nodes/node-1/pods")).json() == ["web/web-0"]
            one = (await http.get("/pods/web/web-0")).json()
            assert one["spec"] == {"nodeName": "node-1"}
            assert (await http.get("/pods/web/web-1")).status_code == 404
            server.cluster.delete("pods", "web-0", namespace="web")
            await until(lambda: not len(pods.lister))
            assert (await http.get("/nodes/node-1/pods")).json() == []
