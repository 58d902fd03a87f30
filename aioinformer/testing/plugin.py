"""pytest fixtures: a cluster, an API server for it, clients and informers of it.

A ``conftest.py`` opts in::

    pytest_plugins = ["aioinformer.testing.plugin"]

cluster             an empty ``Cluster``, which the test fills
api_server          ``cluster`` over HTTP, in the event loop of an ``async`` test
api_server_thread   ``cluster`` over HTTP, in a thread: for tests that are not ``async``
kubeconfig          a kubeconfig file of that server, which ``$KUBECONFIG`` names during the test
client              a ``Client`` of ``api_server``
informers           a factory whose informers list and watch ``cluster`` without sockets
run_operator        runs an ``Operator`` until the end of the test, for ``await cluster.settled()``

Each test has its own. The module is not a ``pytest11`` entry point: pytest would load it in every
test run of an environment, also of projects with fixtures of these names. The ``async`` fixtures
need pytest-asyncio: ``pip install 'aioinformer[testing]'``.

Example::

    from aioinformer import Operator
    from aioinformer.testing import ClusterSource
    from aioinformer.testing.plugin import RunOperator

    async def test_the_pods_of_the_shop(api_server, client, informers):
        api_server.cluster.create("pods", {"metadata": {"name": "web-0"}})
        pods = informers.informer("pods")
        await pods.wait_synced(timeout=30)
        assert [pod.name for pod in pods.lister] == ["web-0"]
        assert len(await client.api("pods").list()) == 1

    async def test_an_operator(cluster, run_operator: RunOperator):
        async def reconcile(key, run):
            child = {"apiVersion": "v1", "kind": "ConfigMap"}
            await run.apply(child | {"metadata": {"name": key.name}})

        operator = Operator(ClusterSource(cluster), name="shop-operator")
        operator.controller("pods", reconcile)
        await run_operator(operator)
        cluster.create("pods", {"metadata": {"name": "tea"}})
        await cluster.settled()
        assert cluster.get("configmaps", "tea")

    def test_a_synchronous_program(api_server_thread, kubeconfig):
        assert api_server_thread.url in kubeconfig.read_text()
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest
import pytest_asyncio

if TYPE_CHECKING:
    from aioinformer import Client, Operator, SharedInformerFactory
    from aioinformer.testing import ApiServer, ApiServerThread, Cluster

__all__ = [
    "RunOperator",
    "api_server",
    "api_server_thread",
    "client",
    "cluster",
    "informers",
    "kubeconfig",
    "run_operator",
]


def pytest_configure(config: pytest.Config) -> None:
    """Make a fault that has concerned no request an error of its test (``UnusedFault``)."""
    # By its text, because the name of the class would load the server. In the first place, so that
    # the project's own filters decide.
    filters: list[str] = config.getini("filterwarnings")
    filters.insert(0, "error:the fault .* has concerned no request:UserWarning")


class RunOperator(Protocol):
    """The fixture ``run_operator``: ``await run_operator(operator)``."""

    async def __call__(self, operator: Operator, *, timeout: float | None = 10.0) -> None:
        """Start an operator, and return when its informers are synced.

        Raises:
            SyncTimeout: not within ``timeout`` seconds.
            NotRunning: the operator has ended; the ``__cause__`` is its error.
        """


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """Return an empty cluster, which the test fills.

    With ``api_server_thread``, the methods of the cluster run in the server's thread.
    """
    if _is_threaded(request):
        thread: ApiServerThread = request.getfixturevalue("api_server_thread")
        return thread.cluster
    from aioinformer.testing import Cluster

    return Cluster()


@pytest_asyncio.fixture
async def api_server(cluster: Cluster) -> AsyncIterator[ApiServer]:
    """Serve ``cluster`` over HTTP, at ``api_server.url`` and ``api_server.kubeconfig(path)``."""
    from aioinformer.testing import ApiServer

    async with ApiServer(cluster) as server:
        yield server


@pytest.fixture
def api_server_thread() -> Iterator[ApiServerThread]:
    """Serve ``cluster`` over HTTP in a thread, for synchronous tests and synchronous clients."""
    from aioinformer.testing import ApiServerThread, Cluster

    with ApiServerThread(Cluster()) as server:
        yield server


@pytest.fixture
def kubeconfig(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Return the kubeconfig of the server, and set ``$KUBECONFIG`` to its path for the test.

    The server is ``api_server`` in an ``async`` test without ``api_server_thread``, else that one.
    """
    server: ApiServer | ApiServerThread = request.getfixturevalue(
        "api_server_thread" if _is_threaded(request) else "api_server"
    )
    path = server.kubeconfig(tmp_path / "kubeconfig")
    monkeypatch.setenv("KUBECONFIG", str(path))
    return path


@pytest_asyncio.fixture
async def client(api_server: ApiServer) -> AsyncIterator[Client]:
    """Return an open client of ``api_server``."""
    from aioinformer import Client

    async with Client(api_server.url) as client:
        yield client


@pytest_asyncio.fixture
async def informers(cluster: Cluster) -> AsyncIterator[SharedInformerFactory]:
    """Run a factory whose informers list and watch ``cluster`` in memory."""
    from aioinformer import BackoffPolicy, SharedInformerFactory
    from aioinformer.testing import ClusterSource

    # An informer reconnects in milliseconds, as a test wants it.
    backoff = BackoffPolicy(initial=0.01, maximum=0.1)
    async with SharedInformerFactory(ClusterSource(cluster), backoff=backoff) as factory:
        yield factory


@pytest_asyncio.fixture
async def run_operator(cluster: Cluster) -> AsyncIterator[RunOperator]:
    """Run operators until the end of the test, which fails if one of them has failed.

    The operators use a client of ``api_server``, or ``ClusterSource(cluster)``.
    """
    from aioinformer.testing import running_operator

    async with AsyncExitStack() as stack:

        async def start(operator: Operator, *, timeout: float | None = 10.0) -> None:
            await stack.enter_async_context(running_operator(operator, timeout=timeout))
            cluster.track(operator)

        yield start


def _is_threaded(request: pytest.FixtureRequest) -> bool:
    names = request.fixturenames
    if "api_server_thread" in names:
        return True
    is_async = isinstance(request.node, pytest.Function) and pytest_asyncio.is_async_test(
        request.node
    )
    return "kubeconfig" in names and not is_async
