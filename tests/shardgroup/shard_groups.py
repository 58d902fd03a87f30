"""Groups on a cluster in memory, in simulated time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aioinformer import Metrics, ShardGroup
from aioinformer.sharding.state.assignment import ShardAssignment, ShardSubscription
from aioinformer.testing import Cluster, ClusterSource, Faults


@dataclass(slots=True)
class GroupSetup:
    """A cluster, and the groups on it."""

    cluster: Cluster = field(default_factory=Cluster)

    def group(
        self,
        identity: str,
        *,
        faults: Faults | None = None,
        shards: int = 16,
        metrics: Metrics | None = None,
        shutdown_timeout: float = 10.0,
    ) -> ShardGroup:
        """Return a member, with faults of its own."""
        return ShardGroup(
            ClusterSource(self.cluster, faults or Faults()),
            "shop",
            namespace="web",
            identity=identity,
            shards=shards,
            metrics=metrics,
            shutdown_timeout=shutdown_timeout,
        )

    def lease(self, name: str) -> dict[str, Any]:
        """Return a Lease."""
        return self.cluster.get("leases", name, namespace="web")

    def held(self, identity: str) -> str:
        """Return the shards that a member states in its Lease, as text."""
        notes = self.lease(f"shop.{identity}")["metadata"]["annotations"]
        return str(notes["aioinformer/shards-held"])


@asynccontextmanager
async def joined(*groups: ShardGroup) -> AsyncGenerator[None]:
    """Enter groups, and wait until each shard has an owner."""
    async with AsyncExitStack() as stack:
        for group in groups:
            await stack.enter_async_context(group)
        await settled(*groups)
        yield


async def settled(*groups: ShardGroup) -> None:
    """Wait until the groups are all members, and each works on its shards."""
    names = tuple(sorted(group.identity for group in groups))
    await until(
        lambda: (
            all(
                group.health.members == names and group.held == group.health.assigned
                for group in groups
            )
            and sum(len(group.held) for group in groups) == groups[0].count
        )
    )


async def until(condition: Callable[[], bool], *, seconds: float = 60.0) -> float:
    """Wait until a condition holds. Return the seconds that it took."""
    start = loop_time()
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - it is seen from outside only
            await asyncio.sleep(0.01)
    return loop_time() - start


def loop_time() -> float:
    return asyncio.get_running_loop().time()


class Worker:
    """A user of a group that works on its shards, and takes time to end."""

    def __init__(self, group: ShardAssignment, *, end_seconds: float = 0.0) -> None:
        self.group = group
        self.shards: ShardSubscription = group.subscribe("worker")
        self.end_seconds = end_seconds
        self.working: frozenset[int] = frozenset()

    async def run(self) -> None:
        """Work on the assigned shards until this is cancelled."""
        known = frozenset[int]()
        try:
            while True:
                known = await self.shards.wait_changed(known)
                self._work_on(self.working | known)
                if self.working - known:
                    await asyncio.sleep(self.end_seconds)
                    self._work_on(self.working & known)
        finally:
            self.working = frozenset()
            self.shards.close()

    def _work_on(self, shards: Collection[int]) -> None:
        self.working = frozenset(shards)
        self.shards.acknowledge(shards)
