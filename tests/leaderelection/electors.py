"""Candidates for a Lease of a cluster in memory, in simulated time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from aioinformer import LeaderElector, Metrics, Problem
from aioinformer._core.objects.resources import find_built_in
from aioinformer.errors import NotFound
from aioinformer.testing import Cluster, ClusterSource, Faults
from aioinformer.testing.simulation import SimulatedLoop

T = TypeVar("T")

LEASES = find_built_in("leases")
KEY = "web/controller"


class PausableLoop(SimulatedLoop):
    """A simulated loop whose process can be paused: time passes, and no task runs."""

    def pause_for(self, seconds: float) -> None:
        """Pause the process, like SIGSTOP and SIGCONT, or like a long callback."""
        self._now += seconds


def run_simulated(main: Callable[[], Awaitable[T]], *, seed: int = 1) -> T:
    """Run ``main`` in a pausable loop, and assert that no task is left at its end."""

    async def checked() -> T:
        result = await main()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"tasks left behind: {left}"
        return result

    with asyncio.Runner(loop_factory=lambda: PausableLoop(seed=seed)) as runner:
        return runner.run(checked())


def pause_process(seconds: float) -> None:
    """Pause the process of the running loop."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, PausableLoop)
    loop.pause_for(seconds)


def loop_time() -> float:
    return asyncio.get_running_loop().time()


@dataclass(slots=True)
class ElectionSetup:
    """A cluster with faults, and the candidates for its Lease."""

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
        on_error: Callable[[Problem], None] | None = None,
    ) -> LeaderElector:
        """Return a candidate, with faults of its own or those of the setup."""
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
            on_error=on_error,
        )

    @property
    def lease(self) -> dict[str, Any]:
        """The Lease."""
        return self.cluster.get("leases", "controller", namespace="web")

    @property
    def holder(self) -> str | None:
        """The identity of the Lease's holder; ``None`` if there is no Lease."""
        try:
            return str(self.lease["spec"]["holderIdentity"])
        except NotFound:
            return None

    @property
    def lease_version(self) -> str:
        """The resourceVersion of the Lease, which changes with each write."""
        return str(self.lease["metadata"]["resourceVersion"])

    def update_lease(self, **fields: object) -> None:
        """Write the Lease's spec, as another client."""
        self.cluster.merge_patch("leases", "controller", {"spec": fields}, namespace="web")


async def wait_forever() -> None:
    await asyncio.get_running_loop().create_future()
