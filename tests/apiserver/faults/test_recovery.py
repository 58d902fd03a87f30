"""The time until fifteen informers show the state of a real API server that was killed."""

from __future__ import annotations

import asyncio
import random
from statistics import median
from typing import Any

import pytest

from aioinformer import Client, Resource, SharedInformer, SharedInformerFactory
from tests.apiserver.server.server_process import AdminClient, ApiServerProcess

pytestmark = pytest.mark.apiserver

WIDGETS = Resource("example.com", "v1", "widgets", "Widget", short_names=("wd",))
INFORMERS = 15
DOWN = 20.0
"""Seconds."""


def widget(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"size": random.randrange(1000), "colour": "red"},
    }


async def wait_for_object(informer: SharedInformer, name: str) -> float:
    """Wait until the informer's cache holds an object; return the time of that."""
    await informer.wait_until(name, lambda found: found is not None, timeout=60)
    return asyncio.get_running_loop().time()


@pytest.mark.timeout(150)
async def test_fifteen_informers_are_fresh_seconds_after_the_server_is_ready(
    api_server: ApiServerProcess, admin: AdminClient
) -> None:
    await admin.create(widget("first"), namespace="web")
    problems: list[str] = []
    async with (
        Client.connect(kubeconfig=api_server.kubeconfig) as client,
        SharedInformerFactory(
            client, namespace="web", on_error=lambda problem: problems.append(problem.cause)
        ) as informers,
    ):
        # Selectors that differ make informers that differ.
        each = [informers.informer(WIDGETS, labels=f"!absent-{n}") for n in range(INFORMERS)]
        await informers.wait_synced(timeout=30)
        await api_server.kill()
        await asyncio.sleep(DOWN)
        await api_server.start()
        ready = asyncio.get_running_loop().time()
        async with AdminClient(api_server) as again:
            await again.create(widget("second"), namespace="web")
        fresh = sorted(
            at - ready for at in await asyncio.gather(*(wait_for_object(i, "second") for i in each))
        )
    refused = problems.count("unreachable")
    print(f"fresh: {[f'{seconds:.1f}' for seconds in fresh]} s, {refused} refused")  # noqa: T201
    assert median(fresh) <= 3.0
    assert fresh[-1] <= 8.0
    assert refused <= 6 * INFORMERS
