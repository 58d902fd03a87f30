"""Candidates for a Lease of a cluster in memory, in simulated time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from aioinformer import LeaderElector, Metrics
from aioinformer._core.objects.resources import find_built_in
from aioinformer.errors import NotFound
from aioinformer.testing import Cluster, ClusterSource, Faults
from aioinformer.testing.simulation import SimulatedLoop

T = TypeVar("T")

LEASES = find_built_in("leases")
KEY = "web/controller"


class PausableLoop(SimulatedLoop):
    """A loop whose process can be stopped: time goes by, and nothing runs."""

    def pause_for(self, seconds: float) -> None:
        """As SIGSTOP and SIGCONT do, or a callback that takes so long."""
        self._now += seconds


def run_simulated(main: Callable[[], Awaitable[T]], *, seed: int = 1) -> T:
    """Run ``main`` in such a loop; nothing must be left when it has ended."""

    async def alone() -> T:
        result = await main()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"tasks left behind: {left}"
        return result

    with asyncio.Runner(loop_factory=lambda: PausableLoop(seed=seed)) as runner:
        return runner.run(alone())


def pause_process(seconds: float) -> None:
    """Stop the process that this runs in."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, PausableLoop)
    loop.pause_for(seconds)


def loop_time() -> float:
    return asyncio.get_running_loop().time()


@dataclass(slots=True)
class ElectionSetup:
    """A cluster, what goes wrong with it, and who runs for its Lease."""

    cluster: Cluster = field(default_factory=Cluster)
    faults: Faults = field(default_factory=Faults)

    def elector(
        self,
        identity: str = "a",
        *,
        faults: Faults | None = None,
        lease_duration: float = 15.0,
        renew_deadline: float = 10.0,
        retry_period: float = 2.0,
        release_on_exit: bool = True,
        on_new_leader: Callable[[str], None] | None = None,
        metrics: Metrics | None = None,
    ) -> LeaderElector:
        """A candidate, whose requests suffer from ``faults`` or those of everybody."""
        source = ClusterSource(self.cluster, faults or self.faults)
        return LeaderElector(
            source.api(LEASES),
            KEY,
            identity=identity,
            lease_duration=lease_duration,
            renew_deadline=renew_deadline,
            retry_period=retry_period,
            release_on_exit=release_on_exit,
            on_new_leader=on_new_leader,
            metrics=metrics,
        )

    @property
    def lease(self) -> dict[str, Any]:
        """As it is."""
        return self.cluster.get("leases", "controller", namespace="web")

    @property
    def holder(self) -> str | None:
        """Who holds it; ``None`` if there is none."""
        try:
            return str(self.lease["spec"]["holderIdentity"])
        except NotFound:
            return None

    @property
    def lease_version(self) -> str:
        """Of the Lease: it changes with each write."""
        return str(self.lease["metadata"]["resourceVersion"])

    def update_lease(self, **fields: object) -> None:
        """Somebody else writes the Lease's spec."""
        self.cluster.merge_patch("leases", "controller", {"spec": fields}, namespace="web")


async def wait_forever() -> None:
    await asyncio.get_running_loop().create_future()
