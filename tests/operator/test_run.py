"""One run of an operator: discovery that fails, failures of one part, stops, and what is left."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Hashable
from dataclasses import dataclass, field

import pytest

from aioinformer import ItemExponential, ObjectKey, ReconcileContext, Resource
from aioinformer.errors import ConnectionFailed, Forbidden, ShutdownIncomplete
from aioinformer.testing import Cluster, ClusterSource, Faults
from tests.controllers.reconcilers import (
    BARS,
    FOOS,
    RecordingReconciler,
    loop_time,
    make_cluster,
    run_simulated,
    wait_until,
)
from tests.operator.operators import make_operator, running, succeed

LEASE = "default/foo-operator"
FOO_NAME = "foos.samples.example.com"


@dataclass(frozen=True)
class UnreachableDiscovery(ClusterSource):
    """A cluster whose first answers about resources are lost."""

    asked: list[float] = field(default_factory=list[float])
    failures: int = 0

    async def resource(self, name: str) -> Resource:
        self.asked.append(loop_time())
        if len(self.asked) <= self.failures:
            raise ConnectionFailed("refused", phase="discovery")
        return await super().resource(name)


async def slow(key: ObjectKey, ctx: ReconcileContext) -> None:
    await asyncio.sleep(1000)


def test_a_server_that_can_not_be_asked_for_a_resource_is_asked_ever_less_often(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source, foos = UnreachableDiscovery(make_cluster("a"), failures=7), RecordingReconciler()

    async def main() -> None:
        operator = make_operator(source)
        operator.controller(FOO_NAME, foos)
        async with running(operator):
            await asyncio.sleep(10)
            assert operator.state == "starting"
            await wait_until(lambda: bool(foos.runs))

    caplog.set_level(logging.INFO, logger="aioinformer.operator")
    run_simulated(main)
    waits = [after - before for before, after in zip(source.asked, source.asked[1:], strict=False)]
    assert [round(wait, 3) for wait in waits] == [1, 2, 4, 8, 16, 30, 30]
    found = [each for each in caplog.messages if "the resource of" in each]
    assert found[-2:] == [
        "foo-operator can't ask the server for the resource of foos.samples.example.com, next "
        "attempt in 30 s: ConnectionFailed: refused",
        "foo-operator: the server names the resource of foos.samples.example.com, 91.0 s after "
        "the first warning",
    ]


def test_an_operator_that_waits_for_discovery_is_stopped_at_once() -> None:
    async def main() -> None:
        operator = make_operator(UnreachableDiscovery(make_cluster("a"), failures=99))
        operator.controller(FOO_NAME, succeed)
        task = asyncio.create_task(operator.run())
        await asyncio.sleep(20)
        start = loop_time()
        operator.stop()
        operator.stop()
        await task
        assert (loop_time() - start, operator.state) == (0, "stopped")

    run_simulated(main)


def test_the_unfinished_runs_of_all_controllers_are_named() -> None:
    async def main() -> None:
        cluster = make_cluster("a")
        cluster.create(BARS, {"metadata": {"name": "b"}})
        operator = make_operator(ClusterSource(cluster), shutdown_timeout=3)
        operator.controller(FOOS, slow)
        operator.controller(BARS, slow)
        task = asyncio.create_task(operator.run())
        await wait_until(
            lambda: sum(len(each.health.running) for each in operator.controllers) == 2
        )
        operator.stop()
        with pytest.raises(ShutdownIncomplete) as caught:
            await task
        assert len(caught.value.left) == 2
        assert "default/a" in str(caught.value.left)
        assert "default/b" in str(caught.value.left)

    run_simulated(main)


class BrokenLimiter(ItemExponential):
    """A rate limiter of a program that has a bug."""

    def when(self, key: Hashable, now: float) -> float:
        raise LookupError("a bug") from KeyError("the cause")


def test_the_failure_of_one_controller_cancels_the_others_and_is_raised_alone() -> None:
    runs = RecordingReconciler(duration=1000)

    async def main() -> None:
        cluster = make_cluster("a")
        cluster.create(BARS, {"metadata": {"name": "b"}})
        operator = make_operator(ClusterSource(cluster))
        operator.controller(BARS, runs)
        failing = RecordingReconciler(duration=1, results=[ValueError("fails")])
        operator.controller(FOOS, failing, backoff=BrokenLimiter(1.0, 10.0))
        with pytest.raises(LookupError, match="a bug") as caught:
            await operator.run()
        assert isinstance(caught.value.__cause__, KeyError)
        assert (runs.cancelled, operator.state) == (["b"], "failed")

    run_simulated(main)


def test_the_failure_of_an_informer_cancels_the_runs_of_every_controller() -> None:
    runs = RecordingReconciler(duration=1000)

    async def main() -> None:
        faults, cluster = Faults(), make_cluster("a")
        cluster.create(BARS, {"metadata": {"name": "b"}})
        operator = make_operator(
            ClusterSource(cluster, faults), informer_options={"fail_fast": (Forbidden,)}
        )
        operator.controller(FOOS, runs)
        operator.controller(BARS, succeed)
        task = asyncio.create_task(operator.run())
        await wait_until(lambda: bool(runs.runs))
        faults.reset(resource=BARS)
        faults.forbid(resource=BARS)
        with pytest.raises(Forbidden):
            await task
        assert runs.cancelled == ["a"]
        assert operator.controllers == ()
        assert operator.state == "failed"

    run_simulated(main)


def test_a_run_that_is_cancelled_waits_for_the_end_of_its_parts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="aioinformer.operator")

    async def main() -> None:
        operator = make_operator(ClusterSource(make_cluster("a")), leader_election=LEASE)
        operator.controller(FOOS, slow)
        task = asyncio.create_task(operator.run())
        await wait_until(lambda: bool(operator.controllers))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert operator.controllers == ()

    run_simulated(main)
    assert caplog.messages[-1] == "foo-operator has stopped"


def test_the_port_of_the_probes_is_known_while_it_is_open() -> None:
    async def main() -> None:
        operator = make_operator(ClusterSource(Cluster()), port=0, host="127.0.0.1")
        operator.controller("pods", succeed)
        ports = [operator.port]
        async with running(operator):
            await operator.wait_synced(30)
            ports.append(operator.port)
        before, during, after = (*ports, operator.port)
        assert (before, bool(during), after) == (None, True, None)

    asyncio.run(main())
