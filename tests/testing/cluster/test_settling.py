"""``Cluster.settled``: nothing is left to be done, over HTTP, in memory and in simulated time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioinformer import (
    Client,
    Controller,
    ObjectKey,
    Operator,
    ReconcileContext,
    Result,
    SharedInformerFactory,
)
from aioinformer.errors import (
    NotRunning,
    PermanentError,
    ShutdownIncomplete,
    SyncTimeout,
    UsageError,
)
from aioinformer.testing import ApiServer, Cluster, ClusterSource, running_operator
from tests.controllers.reconcilers import (
    BACKOFF,
    BARS,
    FOOS,
    RecordingReconciler,
    create_foo,
    loop_time,
    make_cluster,
    run_simulated,
    update_foo,
)

LEASE = "default/foo-operator"


async def copy_name(key: ObjectKey, ctx: ReconcileContext) -> None:
    """Keep a ConfigMap for each foo."""
    await asyncio.sleep(0.01)
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"of-{key.name}"}}
    await ctx.apply(body)


async def test_the_effect_of_a_change_is_there_over_http() -> None:
    cluster = make_cluster()
    async with ApiServer(cluster) as server, Client(server.url) as client:
        operator = Operator(client, name="foo-operator", leader_election=LEASE)
        operator.controller(FOOS, copy_name, name="foos").owns("configmaps")
        cluster.track(operator)
        async with running_operator(operator):
            for name in ("a", "b", "c"):
                create_foo(cluster, name)
                await cluster.settled()
                assert cluster.get("configmaps", f"of-{name}")["metadata"]["ownerReferences"]
                cluster.delete("configmaps", f"of-{name}")
                await cluster.settled()
                assert cluster.get("configmaps", f"of-{name}")


async def test_the_error_without_a_program_names_the_argument_to_pass() -> None:
    with pytest.raises(UsageError, match=r"settled\(\) needs the programs to wait for"):
        await Cluster().settled()


@pytest.mark.parametrize("program", ["foos", None, ClusterSource(Cluster())])
async def test_the_error_of_something_else_names_what_can_be_waited_for(program: Any) -> None:
    with pytest.raises(TypeError, match=r"settled\(\) takes Operators, .* and informers, not "):
        await Cluster().settled(program)


def test_informers_with_selectors_and_controllers_are_waited_for() -> None:
    cluster, runs = make_cluster("a"), RecordingReconciler(duration=3)

    async def main() -> None:
        source = ClusterSource(cluster)
        async with SharedInformerFactory(source, backoff=BACKOFF) as informers:
            foos = informers.informer(FOOS)
            bars = informers.informer(BARS, labels="no=such")
            async with Controller(foos, runs).owns(bars) as controller:
                await cluster.settled(controller)
                assert (runs.names, runs.ended) == (["a"], ["a"])
                update_foo(cluster, "a", size=1)
                cluster.create(BARS, {"metadata": {"name": "unselected"}})
                await cluster.settled(controller)
                assert runs.ended == ["a", "a"]
                await cluster.settled(informers)
                await cluster.settled(foos)
                assert foos.lister.resource_version == str(cluster.resource_version)
                assert controller.informers == (foos, bars)

    run_simulated(main)


def test_the_error_names_the_key_whose_run_hangs_first() -> None:
    cluster = make_cluster("a", "b")

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> Result:
        if key.name == "a":
            await asyncio.sleep(1000)
        return Result(requeue_after=3600)

    async def main() -> None:
        operator = Operator(ClusterSource(cluster), name="op", shutdown_timeout=0)
        operator.controller(FOOS, reconcile).owns(BARS)
        async with running_operator(operator):
            await asyncio.sleep(1)
            with pytest.raises(SyncTimeout) as caught:
                await cluster.settled(operator, timeout=2)
            assert str(caught.value).startswith(
                "not settled after 2 s: foos.samples.example.com: the run of default/a has lasted"
            )
            assert list(caught.value.unsynced) == ["foos.samples.example.com"]
            health = operator.controllers[0].health
            assert (health.waiting, health.delayed) == (1, 1)
            assert str(health) == (
                "running, 1 run, 0 keys waiting, 1 delayed; default/a has been running for 3.0 s"
            )

    with pytest.raises(ShutdownIncomplete):
        run_simulated(main)


def test_watches_stay_open_after_a_program_was_settled(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster, runs = make_cluster("a"), RecordingReconciler()

    async def main() -> None:
        async with SharedInformerFactory(ClusterSource(cluster), backoff=BACKOFF) as informers:
            foos = informers.informer(FOOS)
            async with Controller(foos, runs) as controller:
                for size in range(20):
                    update_foo(cluster, "a", size=size)
                    await cluster.settled(controller)
                    await asyncio.sleep(0.5)
                await asyncio.sleep(120)
                informers.informer(BARS)
                await asyncio.sleep(120)
                assert foos.health.state == "watching"

    run_simulated(main)
    assert "idle timeout" not in caplog.text


def test_a_fault_delays_the_settled_state() -> None:
    cluster, runs = make_cluster("a"), RecordingReconciler()

    async def main() -> None:
        source = ClusterSource(cluster)
        async with (
            SharedInformerFactory(source, backoff=BACKOFF) as informers,
            Controller(informers.informer(FOOS), runs) as controller,
        ):
            await cluster.settled(controller)
            began = loop_time()
            fault = source.faults.stall(verb="watch", after=0)
            asyncio.get_running_loop().call_later(5, fault.end)
            update_foo(cluster, "a", size=1)
            with pytest.raises(SyncTimeout, match=r"foos\.samples\.example\.com"):
                await cluster.settled(controller, timeout=3)
            await cluster.settled(controller, timeout=120)
            assert loop_time() - began >= 5
            assert runs.names == ["a", "a"]

    run_simulated(main)


def test_a_failing_key_is_not_settled_before_its_retry_succeeds() -> None:
    cluster = make_cluster("a")
    runs = RecordingReconciler(results=[RuntimeError("once"), RuntimeError("twice")])

    async def main() -> None:
        async with (
            SharedInformerFactory(ClusterSource(cluster), backoff=BACKOFF) as informers,
            Controller(informers.informer(FOOS), runs) as controller,
        ):
            await cluster.settled(controller)
            assert len(runs.names) == 3

    run_simulated(main)


def test_a_periodic_requeue_and_a_permanent_error_are_settled() -> None:
    cluster = make_cluster("a", "b")

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> Result:
        if key.name == "b":
            raise PermanentError("never")
        return Result(requeue_after=3600)

    async def main() -> None:
        async with (
            SharedInformerFactory(ClusterSource(cluster), backoff=BACKOFF) as informers,
            Controller(informers.informer(FOOS), reconcile) as controller,
        ):
            await cluster.settled(controller)
            assert controller.health.runs == 2

    run_simulated(main)


def test_an_operator_is_settled_when_it_leads_or_another_replica_does() -> None:
    cluster, runs = make_cluster("a"), RecordingReconciler()

    def make_replica(identity: str) -> Operator:
        source = ClusterSource(cluster)
        operator = Operator(source, name="op", leader_election=LEASE, identity=identity)
        operator.controller(FOOS, runs, name="foos")
        return operator

    async def main() -> None:
        async with running_operator(make_replica("one")) as one:
            await cluster.settled(one)
            assert (one.state, runs.names) == ("running", ["a"])
            async with running_operator(make_replica("two")) as two:
                await cluster.settled(one, two)
                assert (two.state, two.health.leader) == ("waiting", "one")
        with pytest.raises(NotRunning, match="doesn't run: stopped"):
            await cluster.settled(one)

    run_simulated(main)


def test_events_are_sent_before_an_operator_is_settled() -> None:
    cluster = make_cluster("a")

    async def main() -> None:
        operator = Operator(ClusterSource(cluster), name="op")

        async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
            foo = operator.informers.informer(FOOS).lister[key]
            operator.events.record(foo, "Normal", "Seen", "saw it")

        operator.controller(FOOS, reconcile, name="foos")
        async with running_operator(operator):
            await cluster.settled(operator)
            assert b'"Seen"' in cluster.list("events.events.k8s.io")

    run_simulated(main)
