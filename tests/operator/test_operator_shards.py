"""Operators whose controllers are spread over the replicas: ``controller(..., shards=group)``."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioinformer import Client, KubeObject, Operator, Resource, ShardGroup
from aioinformer.errors import NotRunning, UsageError
from aioinformer.sharding.feature import GroupFeature
from aioinformer.sharding.state.ranges import ShardKey, shard_of
from aioinformer.testing import ApiServer, Cluster, ClusterSource, Faults
from tests.controllers.reconcilers import (
    BARS,
    FOOS,
    RecordingReconciler,
    body_with_owner,
    loop_time,
    make_cluster,
    run_simulated,
    update_foo,
    wait_until,
)
from tests.operator.operators import (
    answered,
    get,
    make_builder,
    make_operator,
    opened,
    running,
    succeed,
)

LEASE = "default/foo-operator"
SHARDS = 16


def foos(count: int) -> Cluster:
    return make_cluster(*(f"f{number}" for number in range(count)))


def shards_of(cluster: Cluster) -> dict[str, int]:
    """Return the shard of each foo."""
    found = [each["metadata"] for each in cluster.objects(FOOS)]
    return {each["name"]: shard_of(each["uid"], SHARDS) for each in found}


class ShardedReplica:
    """One replica of an operator whose controller of foos has a group."""

    def __init__(
        self,
        cluster: Cluster,
        identity: str,
        *,
        duration: float = 0.0,
        by: ShardKey = "uid",
        faults: Faults | None = None,
        resource: str | Resource = FOOS,
        **keywords: Any,
    ) -> None:
        source = ClusterSource(cluster, faults or Faults())
        self.group = ShardGroup(
            source, "foos", namespace="web", identity=identity, shards=SHARDS, by=by
        )
        self.runs = RecordingReconciler(duration=duration)
        self.operator = Operator(source, name="foo-operator", identity=identity, **keywords)
        self.foos = self.operator.controller(resource, self.runs, shards=self.group)


async def settled(*replicas: ShardedReplica) -> None:
    """Wait until the replicas are the members, and each works on its shards."""
    names = tuple(sorted(each.group.identity for each in replicas))
    groups = [each.group for each in replicas]
    await wait_until(
        lambda: (
            all(group.health.members == names for group in groups)
            and sum(len(group.held) for group in groups) == SHARDS
        )
    )


def test_replicas_divide_the_objects_and_one_takes_over_when_another_stops() -> None:
    cluster = foos(40)

    async def main() -> None:
        one, two = ShardedReplica(cluster, "one"), ShardedReplica(cluster, "two")
        async with running(two.operator):
            async with running(one.operator) as ending:
                await settled(one, two)
                await asyncio.sleep(1)
                one.runs.runs.clear()
                two.runs.runs.clear()
                for name, shard in shards_of(cluster).items():
                    assert shard in one.group.held | two.group.held
                    update_foo(cluster, name, size=2)
                await asyncio.sleep(2)
                shards = shards_of(cluster)
                assert {shards[name] for name in one.runs.names} <= one.group.held
                assert {shards[name] for name in two.runs.names} <= two.group.held
                assert sorted(one.runs.names + two.runs.names) == sorted(shards)
                assert one.operator.state == two.operator.state == "running"
                assert "group foos: member" in str(one.operator.health)
                moved = {name for name in shards if shards[name] in one.group.held}
                two.runs.runs.clear()
                stopped = loop_time()
                one.operator.stop()
                await ending
                await wait_until(lambda: len(two.group.held) == SHARDS)
                assert loop_time() - stopped < 2
                assert one.group.health.state == "left"
            await wait_until(lambda: set(two.runs.names) == moved)
        assert two.group.health.state == "left"

    run_simulated(main)


def test_a_group_may_be_declared_before_the_event_loop_runs() -> None:
    cluster = foos(3)
    replica = ShardedReplica(cluster, "one")

    async def main() -> None:
        async with running(replica.operator):
            await replica.operator.wait_synced(30)
            await wait_until(lambda: len(replica.runs.names) == 3)

    run_simulated(main)
    assert cluster.get("leases", "foos.one", namespace="web")["spec"]["holderIdentity"] == ""


def test_a_stop_finishes_the_runs_before_the_shards_are_released() -> None:
    cluster = foos(8)

    async def main() -> None:
        one, two = ShardedReplica(cluster, "one", duration=5), ShardedReplica(cluster, "two")
        async with running(one.operator) as ending:
            await wait_until(lambda: bool(one.runs.names))
            one.operator.stop()
            began = loop_time()
            async with running(two.operator):
                await ending
                assert 4 < loop_time() - began < 6
                assert not one.runs.cancelled
                await settled(two)
                assert min(two.runs.times) >= began + 4

    run_simulated(main)


def test_a_cancellation_cancels_the_runs_and_releases_the_shards() -> None:
    cluster = foos(4)

    async def main() -> None:
        one, two = ShardedReplica(cluster, "one", duration=100), ShardedReplica(cluster, "two")
        task = asyncio.create_task(one.operator.run())
        await wait_until(lambda: bool(one.runs.names))
        async with running(two.operator):
            await wait_until(lambda: "two" in one.group.health.members)
            began = loop_time()
            task.cancel()
            await asyncio.wait({task})
            assert task.cancelled()
            await settled(two)
            assert loop_time() - began < 2
        assert one.runs.cancelled

    run_simulated(main)


def test_a_resource_whose_name_is_resolved_by_the_server_is_divided() -> None:
    cluster = foos(20)

    async def main() -> None:
        one, two = (
            ShardedReplica(cluster, name, resource="foos.samples.example.com")
            for name in ("one", "two")
        )
        async with running(one.operator), running(two.operator):
            await settled(one, two)
            await wait_until(
                lambda: (
                    one.foos.informer.health.objects + two.foos.informer.health.objects == 20
                    and bool(one.foos.informer.health.objects)
                )
            )

    run_simulated(main)


# -- children ------------------------------------------------------------------------------------


def test_children_in_any_shard_trigger_their_owners_in_the_shards_of_the_replica() -> None:
    cluster = foos(12)

    async def main() -> None:
        one, two = ShardedReplica(cluster, "one"), ShardedReplica(cluster, "two")
        for each in (one, two):
            each.foos.owns(BARS)
        async with running(one.operator), running(two.operator):
            await settled(one, two)
            await asyncio.sleep(1)
            one.runs.runs.clear()
            two.runs.runs.clear()
            for name in shards_of(cluster):
                cluster.create(BARS, body_with_owner(f"child-{name}", name))
            await asyncio.sleep(2)
            shards = shards_of(cluster)
            assert sorted(one.runs.names + two.runs.names) == sorted(shards)
            assert {shards[name] for name in one.runs.names} <= one.group.held

    run_simulated(main)


def test_children_are_divided_too_if_the_group_is_divided_by_namespace() -> None:
    cluster = make_cluster()
    for number in range(20):
        for resource in (FOOS, BARS):
            cluster.create(resource, {"metadata": {"name": "a", "namespace": f"ns-{number}"}})

    async def main() -> None:
        one, two = (ShardedReplica(cluster, name, by="namespace") for name in ("one", "two"))
        for each in (one, two):
            each.foos.owns(BARS).watches("configmaps", _no_keys)
        async with running(one.operator), running(two.operator):
            await settled(one, two)
            for each in (one, two):
                await each.operator.wait_synced(30)
            await wait_until(lambda: _bars(one) + _bars(two) == 20)
            assert 0 < _bars(one) < 20
            assert {each.name for each in one.operator.informers} == {
                "foos.samples.example.com where shards of foos",
                "bars.samples.example.com where shards of foos",
                "configmaps",
            }

    run_simulated(main)


def _bars(replica: ShardedReplica) -> int:
    health = replica.operator.health.informers
    (found,) = (each.objects for name, each in health.items() if name.startswith("bars"))
    return found


def _no_keys(obj: KubeObject) -> list[str]:
    return []


# -- with a leader election ----------------------------------------------------------------------


def test_controllers_without_shards_run_on_the_leader_alone() -> None:
    cluster = foos(20)
    cluster.create(BARS, {"metadata": {"name": "bar"}})

    async def main() -> None:
        one, two = (ShardedReplica(cluster, name, leader_election=LEASE) for name in ("one", "two"))
        led = {each: RecordingReconciler() for each in (one, two)}
        for each in (one, two):
            each.operator.controller(BARS, led[each])
        async with running(one.operator) as first:
            await wait_until(lambda: one.operator.is_leader)
            async with running(two.operator) as second:
                await settled(one, two)
                await asyncio.sleep(1)
                assert (led[one].names, led[two].names) == (["bar"], [])
                assert [each.name for each in two.operator.controllers] == [str(FOOS)]
                assert len(one.operator.controllers) == 2
                assert one.runs.names
                assert two.runs.names
                assert (two.operator.state, two.operator.is_leader) == ("running", False)
                # A leader that stops gives both away.
                stopped = loop_time()
                one.operator.stop()
                await first
                await settled(two)
                assert loop_time() - stopped < 2
                await wait_until(lambda: two.operator.is_leader)
                await wait_until(lambda: led[two].names == ["bar"])
                stopped = loop_time()
                two.operator.stop()
                await second
                assert loop_time() - stopped < 2

    run_simulated(main)
    for name in ("foo-operator", "foos.one", "foos.two"):
        namespace = "default" if name == "foo-operator" else "web"
        assert cluster.get("leases", name, namespace=namespace)["spec"]["holderIdentity"] == ""


def test_a_replica_that_does_not_lead_stops_with_its_sharded_runs_finished() -> None:
    cluster = foos(8)

    async def main() -> None:
        one, two = (
            ShardedReplica(cluster, name, leader_election=LEASE, duration=3)
            for name in ("one", "two")
        )
        for each in (one, two):
            each.operator.controller(BARS, succeed)
        async with running(one.operator):
            await wait_until(lambda: one.operator.is_leader)
            async with running(two.operator) as second:
                await wait_until(lambda: bool(two.runs.names))
                two.operator.stop()
                await second
                assert not two.runs.cancelled
                assert one.operator.is_leader

    run_simulated(main)


def test_a_replica_that_loses_the_lease_of_the_election_keeps_its_shards() -> None:
    cluster = foos(8)

    async def main() -> None:
        one = ShardedReplica(cluster, "one", leader_election=LEASE)
        led = RecordingReconciler()
        one.operator.controller(BARS, led)
        async with running(one.operator):
            await settled(one)
            await wait_until(lambda: one.operator.is_leader)
            taken = cluster.get("leases", "foo-operator", namespace="default")
            taken["spec"] |= {"holderIdentity": "other", "leaseDurationSeconds": 5}
            cluster.update("leases", taken)
            await wait_until(lambda: not one.operator.is_leader)
            assert [each.name for each in one.operator.controllers] == [str(FOOS)]
            assert len(one.group.held) == SHARDS
            await wait_until(lambda: one.operator.is_leader, every=0.5)
            assert len(one.operator.controllers) == 2

    run_simulated(main)


# -- mistakes, and who owns the group ------------------------------------------------------------


async def test_a_declaration_that_no_set_of_replicas_can_run_is_rejected() -> None:
    cluster = foos(1)
    one = ShardedReplica(cluster, "one")
    wrong: Any = 4
    with pytest.raises(TypeError, match="shards takes a ShardGroup, not 4"):
        one.operator.controller("pods", succeed, shards=wrong)
    with pytest.raises(UsageError, match="is not divided into shards: pass the resource"):
        one.operator.controller(one.operator.informers.informer(BARS), succeed, shards=one.group)
    one.operator.controller("configmaps", succeed)
    with pytest.raises(UsageError, match=r"foos.* has shards=.*all objects of .* configmaps: pass"):
        await one.operator.run()
    two = ShardedReplica(cluster, "two", leader_election=LEASE)
    with pytest.raises(UsageError, match="there is nothing to lead: leave leader_election= out"):
        await two.operator.run()
    assert not list(cluster.objects("leases"))


def test_a_controller_of_an_informer_with_a_group_and_a_selector_is_sharded() -> None:
    cluster = make_cluster()
    for number in range(20):
        labels = {"team": "red"} if number % 2 else {}
        cluster.create(FOOS, {"metadata": {"name": f"f{number}", "labels": labels}})

    async def main() -> None:
        source = ClusterSource(cluster)
        group = ShardGroup(source, "foos", namespace="web", identity="one", shards=SHARDS)
        operator, runs = Operator(source, name="foo-operator"), RecordingReconciler()
        red = operator.informers.informer(FOOS, labels="team=red", shard=group)
        operator.controller(red, runs)
        async with running(operator):
            await wait_until(lambda: len(runs.names) == 10)
            assert operator.health.groups["foos"].state == "member"
        assert group.health.state == "left"

    run_simulated(main)


def test_an_operator_does_not_leave_a_group_that_the_program_has_entered() -> None:
    cluster = foos(4)

    async def main() -> None:
        one = ShardedReplica(cluster, "one")
        async with one.group:
            async with running(one.operator):
                await wait_until(lambda: len(one.runs.names) == 4)
            assert one.group.health.state == "member"
            assert len(one.group.held) == SHARDS

    run_simulated(main)


@pytest.mark.parametrize("elsewhere", [False, True])
def test_an_election_on_a_lease_of_a_group_of_the_operator_is_refused_in_one_cluster(
    elsewhere: bool,
) -> None:
    lease = "web/foos.one"

    async def main() -> None:
        one = ShardedReplica(make_cluster(), "one", leader_election=lease)
        operator, group = one.operator, one.group
        if elsewhere:
            source = ClusterSource(make_cluster())
            operator = Operator(source, name="it", identity="one", leader_election=lease)
            operator.controller(FOOS, succeed, shards=group)
        operator.controller(BARS, succeed)
        if elsewhere:
            async with running(operator):
                await wait_until(lambda: operator.is_leader and len(group.held) == SHARDS)
        else:
            text = f"the election {lease} uses a Lease of the shard group web/foos"
            with pytest.raises(UsageError, match=text):
                await operator.run()

    run_simulated(main)


async def test_waiting_for_an_operator_that_refuses_its_groups_ends() -> None:
    one = ShardedReplica(make_cluster(), "one")
    one.operator.controller(BARS, succeed)
    run = asyncio.create_task(one.operator.run())
    with pytest.raises(NotRunning, match="the operator foo-operator has ended"):
        await one.operator.wait_synced()
    with pytest.raises(UsageError, match=r"pass shards= for .*bars"):
        await run


def test_a_candidate_that_waits_for_the_lease_is_cancelled_while_sharded_runs_finish() -> None:
    runs = RecordingReconciler(duration=5)

    async def main() -> None:
        cluster = make_cluster("a")
        source = ClusterSource(cluster)
        first = make_operator(source, leader_election=LEASE, identity="first")
        first.controller(BARS, succeed)
        group = ShardGroup(source, "shop", namespace="default", identity="a", shards=4)
        second = make_operator(source, leader_election=LEASE, identity="second")
        second.controller(BARS, succeed)
        second.controller(FOOS, runs, shards=group)
        async with running(first):
            await first.wait_synced(30)
            task = asyncio.create_task(second.run())
            await wait_until(lambda: bool(runs.runs))
            second.stop()
            await task
        assert (runs.ended, runs.cancelled) == (["a"], [])

    run_simulated(main)


def test_an_operator_lists_the_informers_of_its_groups_too() -> None:
    async def main() -> None:
        source = ClusterSource(make_cluster("a"))
        group = ShardGroup(source, "shop", namespace="default", identity="a", shards=4)
        operator = make_operator(source)
        operator.controller(FOOS, succeed, shards=group)
        group.informer("pods")
        async with running(operator):
            await operator.wait_synced(30)
            health = operator.health
            assert [*health.groups] == ["shop"]
            names = sorted(name.partition(" ")[0] for name in health.informers)
            assert names == [str(FOOS), "pods"]

    run_simulated(main)


@pytest.mark.parametrize(
    ("sharded", "whole", "elects", "text"),
    [
        (True, True, False, "pass shards= for .*bars.* too, or leader_election="),
        (True, False, True, "there is nothing to lead: leave leader_election= out"),
    ],
)
def test_a_division_of_work_that_no_replica_can_keep_ends_before_anything_is_sent(
    *, sharded: bool, whole: bool, elects: bool, text: str
) -> None:
    async def main() -> None:
        cluster = make_cluster("a")
        source = ClusterSource(cluster)
        before = cluster.resource_version
        operator = make_operator(source, leader_election=LEASE if elects else None)
        group = ShardGroup(source, "shop", namespace="default", identity="a", shards=4)
        if sharded:
            operator.controller(FOOS, succeed, shards=group)
        if whole:
            operator.controller(BARS, succeed)
        with pytest.raises(UsageError, match=text):
            await operator.run()
        assert cluster.resource_version == before

    run_simulated(main)


def test_children_are_divided_only_if_the_group_is_divided_by_namespace() -> None:
    async def main() -> None:
        source = ClusterSource(make_cluster())
        for by in ("uid", "namespace"):
            chosen: Any = by
            group = ShardGroup(source, "shop", namespace="web", identity="a", by=chosen)
            builder = make_builder(source, FOOS, shards=group).owns(BARS)
            assert builder.shards is group
            shared: Any = builder._informers  # pyright: ignore[reportPrivateUsage]
            divided = {
                each.resource.plural: each.find_feature(GroupFeature) is not None for each in shared
            }
            assert divided == {"foos": True, "bars": by == "namespace"}

    run_simulated(main)


def test_the_group_of_an_informer_is_that_of_its_controller() -> None:
    async def main() -> None:
        source = ClusterSource(make_cluster())
        group = ShardGroup(source, "shop", namespace="web", identity="a")
        assert make_builder(source, group.informer(FOOS)).shards is group
        assert make_builder(source, FOOS).shards is None

    run_simulated(main)


async def test_a_replica_is_ready_when_it_is_a_member_of_the_group_of_its_controllers() -> None:
    faults = Faults()
    async with ApiServer(make_cluster(), faults=faults) as server:
        client = Client(server.url)
        group = ShardGroup(client, "it", namespace="default", identity="one", shards=4)
        operator = Operator(client, name="it", port=0, host="127.0.0.1")
        operator.controller("configmaps", succeed, shards=group)
        down = faults.status(503, resource="leases")
        async with running(operator):
            await opened(operator)
            answer = await answered(operator, lambda wrong: "group it" in wrong)
            assert answer["wrong"]["group it"].startswith("joining")
            assert (await get(operator, "/livez"))[0] == 200
            down.end()
            answer = await answered(operator, lambda wrong: not wrong)
            assert "group it: member" in answer["health"]["operator"]


async def test_a_replica_whose_group_has_failed_is_not_alive() -> None:
    class BrokenSource(ClusterSource):
        def api(self, resource: str | Resource, *, namespace: str | None = None) -> Any:
            return None

    async with ApiServer(make_cluster()) as server:
        group = ShardGroup(BrokenSource(Cluster()), "it", namespace="default", identity="one")
        operator = Operator(Client(server.url), name="it", port=0, host="127.0.0.1")
        operator.controller("configmaps", succeed, shards=group)
        async with running(operator) as task:
            await opened(operator)
            answer = await answered(operator, lambda wrong: "group it" in wrong, path="/livez")
            assert answer["wrong"]["group it"].startswith("failed")
        with pytest.raises(AttributeError, match="'NoneType' object has no attribute 'get'"):
            task.result()
        assert operator.state == "failed"
