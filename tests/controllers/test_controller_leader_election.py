"""Controllers under leader election: two replicas, of which one reconciles at any time."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from aioinformer import (
    BackoffPolicy,
    Controller,
    LeaderElector,
    ObjectKey,
    ReconcileContext,
    SharedInformerFactory,
)
from aioinformer._core.objects.resources import find_built_in
from aioinformer.errors import LeadershipLost
from aioinformer.testing import Cluster, ClusterSource, Faults
from tests.controllers.reconcilers import (
    FOOS,
    loop_time,
    make_cluster,
    run_simulated,
    update_foo,
    wait_until,
)

LEASES = find_built_in("leases")


@dataclass(slots=True)
class Stage:
    """Replicas with an elector and a controller each, and a record of their runs."""

    at_work: set[str] = field(default_factory=set[str])
    spans: list[tuple[str, float, float]] = field(default_factory=list[tuple[str, float, float]])
    """Every run: its replica, its start and its end."""
    together: bool = False
    """True if two replicas ever reconciled at once."""


class Replica:
    """An elector, an informer, and a controller for each term."""

    def __init__(self, name: str, cluster: Cluster, stage: Stage, *, takes: float) -> None:
        self.faults = Faults()
        self.lost: list[float] = []
        self.elector = LeaderElector(
            ClusterSource(cluster, self.faults).api(LEASES), "default/it", identity=name
        )
        self._source = ClusterSource(cluster, self.faults)
        self._name = name
        self._stage = stage
        self._takes = takes

    async def run(self, *, after: float = 0) -> None:
        await asyncio.sleep(after)
        backoff = BackoffPolicy(initial=0.5, maximum=2)
        async with SharedInformerFactory(self._source, backoff=backoff) as informers:
            foos = informers.informer(FOOS)
            while True:
                try:
                    async with self.elector.leading():
                        await Controller(foos, self.reconcile, name=self._name).run()
                except LeadershipLost:
                    self.lost.append(loop_time())

    async def reconcile(self, key: ObjectKey, ctx: ReconcileContext) -> None:
        stage, began = self._stage, loop_time()
        stage.together |= bool(stage.at_work - {self._name})
        stage.at_work.add(self._name)
        try:
            await asyncio.sleep(self._takes)
        finally:
            stage.at_work.discard(self._name)
            stage.spans.append((self._name, began, loop_time()))


@pytest.mark.parametrize("seed", range(5))
def test_runs_are_cancelled_before_another_replica_begins(seed: int) -> None:
    cluster, stage = make_cluster("a"), Stage()

    async def main() -> None:
        first, second = (Replica(name, cluster, stage, takes=1000) for name in ("one", "two"))
        tasks = [asyncio.create_task(first.run())]
        await wait_until(lambda: stage.at_work == {"one"}, every=0.1)
        tasks.append(asyncio.create_task(second.run()))
        await asyncio.sleep(5)
        cut = loop_time()
        with first.faults.refuse():
            await wait_until(lambda: stage.at_work == {"two"}, every=0.1)
        ((_, _, ended),) = stage.spans
        assert first.lost == [ended]  # cancelled, and only then reported
        assert ended - cut <= 10.0  # the renew deadline
        assert 15.0 - 10.0 - 2.0 <= loop_time() - ended <= 15.0
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    run_simulated(main, seed=seed)
    assert not stage.together


def test_a_controller_that_is_stopped_releases_the_lease_when_its_runs_have_ended() -> None:
    cluster, stage = make_cluster("a"), Stage()

    async def main() -> None:
        second = Replica("two", cluster, stage, takes=1)
        source = ClusterSource(cluster)
        elector = LeaderElector(source.api(LEASES), "default/it", identity="one")
        async with SharedInformerFactory(source) as informers:
            first = Replica("one", cluster, stage, takes=4)
            it = Controller(informers.informer(FOOS), first.reconcile)
            asyncio.get_running_loop().call_later(1, it.stop)
            waiting = asyncio.create_task(second.run(after=0.5))
            await elector.run(it.run)
            assert loop_time() == 4.0
            await wait_until(lambda: second.elector.is_leader, every=0.1)
            assert loop_time() < 4.0 + 2 * 2.2
            update_foo(cluster, "a", size=1)
            await asyncio.sleep(3)
            waiting.cancel()
            with suppress(asyncio.CancelledError):
                await waiting

    run_simulated(main)
    assert [name for name, _, _ in stage.spans] == ["one", "two", "two"]
    assert not stage.together


def test_the_lease_is_held_until_runs_have_ended_that_ignore_their_cancellation(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster, ends = make_cluster("a"), list[float]()

    async def deaf(key: ObjectKey, ctx: ReconcileContext) -> None:
        until = loop_time() + 60
        while loop_time() < until:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(until - loop_time())
        ends.append(loop_time())

    async def main() -> None:
        source = ClusterSource(cluster)
        elector = LeaderElector(source.api(LEASES), "default/it", identity="one")
        async with SharedInformerFactory(source) as informers:
            foos = informers.informer(FOOS)
            it = Controller(foos, deaf, name="it", shutdown_timeout=3)
            leading = asyncio.create_task(elector.run(it.run))
            await asyncio.sleep(1)
            for _ in range(3):
                leading.cancel()
                await asyncio.sleep(10)
            assert elector.is_leader
            await asyncio.wait({leading})
            assert leading.cancelled()
            assert ends == [loop_time()]
            assert cluster.get("leases", "it", namespace="default")["spec"]["holderIdentity"] == ""

    run_simulated(main)
    assert (
        "it: the run of default/a has not ended after 11 s, although it was cancelled"
        in caplog.text
    )


def test_runs_may_take_their_time_to_end_when_leadership_was_lost() -> None:
    """The loop has other things to do meanwhile than to cancel who waits for them."""
    cluster, ends = make_cluster("a"), list[float]()

    async def tidy(key: ObjectKey, ctx: ReconcileContext) -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            await asyncio.sleep(3)
            ends.append(loop_time())

    async def main() -> None:
        source = ClusterSource(cluster)
        elector = LeaderElector(source.api(LEASES), "default/it", identity="one")
        async with SharedInformerFactory(source) as informers:
            it = Controller(informers.informer(FOOS), tidy)
            leading = asyncio.create_task(elector.run(it.run))
            await asyncio.sleep(1)
            other = {"spec": {"holderIdentity": "other"}}
            cluster.merge_patch("leases", "it", other, namespace="default")
            await asyncio.wait({leading})
            assert isinstance(leading.exception(), LeadershipLost)
            assert ends == [loop_time()] == [2.0 + 3.0]

    run_simulated(main)
