"""A program that waits for what it needs never acts on an older state, whatever goes wrong.

Over HTTP against the embedded server. Promise 3 says that the cache is always a true past state;
here it proves so itself.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioinformer import (
    Client,
    SharedInformer,
    SharedInformerFactory,
    Verification,
    field,
    label_index,
)
from aioinformer.errors import FetchError
from aioinformer.testing import ApiServer
from tests.promises.conftest import FAST_BACKOFF, wait_until
from tests.promises.pod_workload import PodWorkload

WRITES = 25


async def count_up(server: ApiServer, pods: SharedInformer, name: str) -> None:
    """Run a controller that reads its cache: each step requires the result of the previous one."""
    cluster = server.cluster
    await pods.wait_for(cluster.create("pods", {"metadata": {"name": name}}), timeout=10)
    for number in range(WRITES):
        seen: dict[str, Any] = pods.lister[f"default/{name}"].to_dict()
        assert seen["metadata"].get("labels", {}).get("count", "0") == str(number)
        seen["metadata"]["labels"] = {"count": str(number + 1), "app": name}
        # An update of anything but the newest version is a conflict.
        shown = await pods.wait_for(cluster.update("pods", seen), timeout=10)
        assert shown is not None
        assert shown.labels["count"] == str(number + 1)
    cluster.delete("pods", name)
    gone = await pods.wait_until(f"default/{name}", lambda obj: obj is None, timeout=10)
    assert gone is None


async def prove(pods: SharedInformer, proofs: list[Verification]) -> None:
    """Verify over and over."""
    while True:
        try:
            found = await pods.verify(contents=True, timeout=5)
        except FetchError:  # the connection is gone
            await asyncio.sleep(0.002)
            continue
        assert found, str(found)
        proofs.append(found)
        await asyncio.sleep(0.002)


async def wait_for_proof(proofs: list[Verification], proving: asyncio.Task[None]) -> None:
    """Wait for the next verification, or for the end of the task that verifies."""
    proven = len(proofs)
    await wait_until(lambda: len(proofs) > proven or proving.done(), timeout=20)


@pytest.mark.parametrize("seed", [0, 1, pytest.param(2, marks=pytest.mark.simulation)])
async def test_a_program_that_waits_for_its_writes_reads_them_and_the_cache_verifies(
    seed: int, server: ApiServer, client: Client
) -> None:
    churn = PodWorkload(server.cluster, seed)
    churn.apply_changes(50)
    async with SharedInformerFactory(client, backoff=FAST_BACKOFF) as informers:
        pods = informers.informer("pods", indexers={"node": field("spec.nodeName")})
        await informers.wait_synced(30)
        proofs: list[Verification] = []
        proving = asyncio.create_task(prove(pods, proofs))
        counting = [asyncio.create_task(count_up(server, pods, f"own-{n}")) for n in range(4)]
        adding = asyncio.create_task(pods.add_index("labels", label_index()))
        rounds = 0
        while not all(task.done() for task in counting) or rounds < 6:
            churn.apply_changes(5)
            if rounds % 2:  # a verification, however slow the machine is, ends between two breaks
                await wait_for_proof(proofs, proving)
            else:
                await asyncio.sleep(0.01)
            server.drop_connections()
            await asyncio.sleep(0.01)
            if seed == 1:
                server.cluster.compact()
            rounds += 1
        await asyncio.gather(*counting, adding)
        proving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await proving
        assert len({proof.resource_version for proof in proofs}) >= 3
        assert await pods.verify(contents=True, timeout=10)
        for label, count in pods.lister.index_counts("labels").items():
            assert len(pods.lister.list(labels=label)) == count
