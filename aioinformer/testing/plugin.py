"""pytest fixtures: a cluster, a server on it, and informers of it.

Opt in from a ``conftest.py``; nothing happens to a test run that doesn't ask::

    pytest_plugins = ["aioinformer.testing.plugin"]

Then a test asks for ``cluster`` to say what there is, and for ``informers`` (no sockets, quick) or
``api_server`` (over HTTP, for code that makes its own ``Client``). All three are new for every
test and gone after it. It needs pytest-asyncio: ``pip install '.[testing]'``, from a checkout.
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
"""Waits after failures that suit a test: an outage that it makes is over in milliseconds."""


@pytest.fixture
def cluster() -> Cluster:
    """What an API server holds: empty, to be filled by the test."""
    return Cluster()


@pytest_asyncio.fixture
async def api_server(cluster: Cluster) -> AsyncIterator[ApiServer]:
    """``cluster`` over HTTP; ``api_server.url`` and ``api_server.kubeconfig(path)`` reach it."""
    async with ApiServer(cluster) as server:
        yield server


@pytest_asyncio.fixture
async def informers(cluster: Cluster) -> AsyncIterator[SharedInformerFactory]:
    """A running factory whose informers list and watch ``cluster`` in memory."""
    async with SharedInformerFactory(ClusterSource(cluster), backoff=FAST_BACKOFF) as factory:
        yield factory
