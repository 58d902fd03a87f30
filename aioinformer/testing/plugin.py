"""pytest fixtures: a cluster, a server for it, and informers of it.

A ``conftest.py`` opts in; a test run that doesn't name this module is not affected::

    pytest_plugins = ["aioinformer.testing.plugin"]

A test then fills ``cluster``, and uses ``informers`` (without sockets, quick) or ``api_server``
(over HTTP, for code that makes its own ``Client``). Each test has its own three fixtures, which
end with it. The module needs pytest-asyncio: ``pip install '.[testing]'``, from a checkout.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from aioinformer._core.listwatch.backoff import BackoffPolicy
from aioinformer._runtime.informer.factory import SharedInformerFactory
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.server.server import ApiServer
from aioinformer.testing.server.source import ClusterSource

__all__ = ["api_server", "cluster", "informers"]

FAST_BACKOFF = BackoffPolicy(initial=0.01, maximum=0.1)
"""Waits after failures that are short enough for a test: an informer reconnects in milliseconds."""


@pytest.fixture
def cluster() -> Cluster:
    """Return an empty cluster, which the test fills."""
    return Cluster()


@pytest_asyncio.fixture
async def api_server(cluster: Cluster) -> AsyncIterator[ApiServer]:
    """Serve ``cluster`` over HTTP, at ``api_server.url`` and ``api_server.kubeconfig(path)``."""
    async with ApiServer(cluster) as server:
        yield server


@pytest_asyncio.fixture
async def informers(cluster: Cluster) -> AsyncIterator[SharedInformerFactory]:
    """Run a factory whose informers list and watch ``cluster`` in memory."""
    async with SharedInformerFactory(ClusterSource(cluster), backoff=FAST_BACKOFF) as factory:
        yield factory
