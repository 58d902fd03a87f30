"""Controllers of a resource on a group: ``Controller("configmaps", ..., shards=group)``."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from aioinformer import (
    Controller,
    KubeObject,
    ObjectKey,
    ReconcileContext,
    Shard,
    ShardGroup,
    SharedInformerFactory,
)
from aioinformer.controllers.finalizer import FinalizedReconcile
from aioinformer.errors import PermanentError, UnknownResource, UsageError
from aioinformer.sharding.state.ranges import shard_of
from aioinformer.testing import Cluster, ClusterSource, Faults
from tests.controllers.reconcilers import (
    BARS,
    FOOS,
    RecordingReconciler,
    conditions_written_by,
    make_cluster,
    own_writes_of,
    update_foo,
)
from tests.leaderelection.electors import pause_process, run_simulated
from tests.shardgroup.shard_groups import GroupSetup, joined, loop_time, settled, until

OURS = "example.com/cleanup"


async def reconcile_nothing(key: ObjectKey, ctx: ReconcileContext) -> None:
    pass


def setup_of(count: int) -> GroupSetup:
    return GroupSetup(make_cluster(*(f"f{number}" for number in range(count))))


def shards_of(cluster: Cluster) -> dict[str, int]:
    """Return the shard of each foo."""
    found = [each["metadata"] for each in cluster.objects(FOOS)]
    return {each["name"]: shard_of(each["uid"], 16) for each in found}


def finalizers(cluster: Cluster, name: str) -> list[str]:
    found = cluster.find_object(FOOS, name, namespace="default")
    return [] if found is None else list(found["metadata"].get("finalizers") or ())


def has_no_spec(foo: KubeObject) -> bool:
    return not foo["spec"]


class Cleaner:
    """A member with a controller that has a finalizer, and a record of its cleanups."""

    def __init__(self, group: ShardGroup, log: list[str], **informer: Any) -> None:
        self.group = group
        self.informer = informer
        self.log = log
        self.hold = asyncio.Event()
        """Cleanups wait for it."""
        self.hold.set()
        self.error: BaseException | None = None

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[Controller]:
        name = self.group.identity

        async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
            assert ctx.obj is None or OURS in ctx.obj["metadata"]["finalizers"]

        async def cleanup(key: ObjectKey, ctx: ReconcileContext) -> None:
            self.log.append(f"{name} begins {key.name}")
            await self.hold.wait()
            self.log.append(f"{name} ends {key.name}")

        async with Controller(
            self.group.informer(FOOS, **self.informer),
            reconcile,
            finalizer=OURS,
            cleanup=cleanup,
            concurrency=8,
        ) as controller:
            yield controller


def test_controllers_of_a_resource_divide_its_objects_among_the_members() -> None:
    setup = setup_of(40)

    async def main() -> None:
        a, b = setup.group("a"), setup.group("b")
        seen = {"a": RecordingReconciler(), "b": RecordingReconciler()}
        async with (
            joined(a, b),
            Controller(FOOS, seen["a"], shards=a, name="a") as first,
            Controller(FOOS, seen["b"], shards=b, name="b"),
        ):
            assert first.informer is a.informer(FOOS)
            await until(lambda: len(seen["a"].runs) + len(seen["b"].runs) == 40)
            shards = shards_of(setup.cluster)
            assert {shards[name] for name in seen["a"].names} <= a.held
            assert {shards[name] for name in seen["b"].names} <= b.held

    run_simulated(main)


def test_a_controller_that_was_run_before_its_group_was_entered_can_be_run_afterwards() -> None:
    setup = setup_of(10)

    async def main() -> None:
        group, seen = setup.group("a"), RecordingReconciler()
        it = Controller(FOOS, seen, shards=group)
        with pytest.raises(UsageError, match="was not started"):
            await it.run()
        async with joined(group), it:
            await until(lambda: len(seen.runs) == 10)

    run_simulated(main)


def test_the_objects_of_a_dead_member_are_reconciled_just_after_its_lease_has_expired() -> None:
    """Detection, assignment, claim, list and reconcile take requests alone, and no waits."""
    setup, faults = setup_of(200), Faults()

    async def main() -> None:
        a, b = setup.group("a"), setup.group("b", faults=faults)
        seen = {"a": RecordingReconciler(), "b": RecordingReconciler()}
        async with (
            joined(a, b),
            Controller(FOOS, seen["a"], shards=a, name="a"),
            Controller(FOOS, seen["b"], shards=b, name="b"),
        ):
            await until(lambda: len(seen["a"].runs) + len(seen["b"].runs) == 200)
            theirs = {name for name, shard in shards_of(setup.cluster).items() if shard in b.held}
            assert len(theirs) > 20
            await asyncio.sleep(5)
            renewed = b.health.renewed
            assert renewed is not None
            expiry = loop_time() - renewed + 15
            with faults.refuse():
                await until(lambda: theirs <= set(seen["a"].names))
                assert 0 < loop_time() - expiry < 0.5
                await until(lambda: not b.held)
            faults.clear()
            await settled(a, b)

    run_simulated(main)


def test_a_member_that_leaves_ends_its_informers_before_it_releases_the_shards() -> None:
    setup = setup_of(10)

    async def main() -> None:
        a, b = setup.group("a"), setup.group("b")
        async with b:
            async with a:
                foos = a.informer(FOOS)
                await a.informers.wait_synced(30)
                await settled(a, b)
                await until(lambda: set(foos.health.shards) == set(a.held))
            assert foos.health.state == "stopped"
            assert a.health.state == "left"
            assert await until(lambda: len(b.held) == 16) < 2

    run_simulated(main)


def test_a_cleanup_under_way_ends_before_its_shard_moves_and_is_not_repeated() -> None:
    setup, log = setup_of(12), list[str]()

    async def main() -> None:
        a, b = setup.group("a"), setup.group("b")
        async with a:
            first = Cleaner(a, log)
            async with first.running():
                await until(lambda: all(finalizers(setup.cluster, f"f{n}") for n in range(12)))
                first.hold.clear()
                for number in range(8):
                    setup.cluster.delete(FOOS, f"f{number}", namespace="default")
                await until(lambda: len(log) == 8)
                async with b, Cleaner(b, log).running():
                    await until(lambda: bool(b.health.assigned))
                    await asyncio.sleep(5)
                    moving = b.health.assigned
                    assert {each.split()[0] for each in log} == {"a"}
                    first.hold.set()
                    await settled(a, b)
                    await until(lambda: len(shards_of(setup.cluster)) == 4)
                    for number in range(8, 12):
                        setup.cluster.delete(FOOS, f"f{number}", namespace="default")
                    await until(lambda: not shards_of(setup.cluster))
                    assert b.held == moving
        names = [each.split()[2] for each in log if "begins" in each]
        assert sorted(names) == sorted(f"f{number}" for number in range(12))

    run_simulated(main)


def test_a_cleanup_that_lost_its_shard_leaves_the_finalizer_to_the_next_owner(
    caplog: pytest.LogCaptureFixture,
) -> None:
    setup, log = setup_of(1), list[str]()

    async def main() -> None:
        a = setup.group("a")
        async with a:
            cleaner = Cleaner(a, log)
            async with cleaner.running() as controller:
                await until(lambda: finalizers(setup.cluster, "f0") == [OURS])
                cleaner.hold.clear()
                setup.cluster.delete(FOOS, "f0", namespace="default")
                await until(lambda: log == ["a begins f0"])
                pause_process(30)
                cleaner.hold.set()
                # The member acquires its Lease again, and cleans up once more, since the finalizer
                # is there. Now it may remove the finalizer.
                await until(lambda: not shards_of(setup.cluster))
                assert log == ["a begins f0", "a ends f0"] * 2
                assert controller.health.failed_runs == 1
                assert "ShardLost: shard" in caplog.text

    run_simulated(main)


def test_a_controller_discards_the_failing_keys_of_a_shard_that_moves_away() -> None:
    setup = setup_of(24)

    async def reject(key: ObjectKey, ctx: ReconcileContext) -> None:
        raise PermanentError("never")

    async def main() -> None:
        a, b = setup.group("a"), setup.group("b")
        async with a, Controller(FOOS, reject, shards=a) as controller:
            await until(lambda: controller.health.failing_keys == 24)
            async with b:
                await settled(a, b)
                ours = sum(shard in a.held for shard in shards_of(setup.cluster).values())
                assert 0 < ours < 24
                await until(lambda: controller.health.failing_keys == ours)

    run_simulated(main)


def without_odd(obj: KubeObject) -> KubeObject:
    if obj["spec"].get("odd"):
        raise ValueError("odd")
    return obj


def test_objects_that_no_member_has_cached_are_cleaned_up() -> None:
    """Their only version that the new members have read is rejected."""
    setup, log = setup_of(24), list[str]()

    async def main() -> None:
        a = setup.group("a")
        async with a, Cleaner(a, log).running():
            await until(lambda: all(OURS in finalizers(setup.cluster, f"f{n}") for n in range(24)))
        for number in range(24):
            update_foo(setup.cluster, f"f{number}", odd=True)
            if number % 2:
                setup.cluster.delete(FOOS, f"f{number}", namespace="default")
        b, c = setup.group("b"), setup.group("c")
        first, second = (Cleaner(each, log, transform=without_odd) for each in (b, c))
        async with joined(b, c), first.running() as it, second.running():
            await until(lambda: len(list(setup.cluster.objects(FOOS))) == 12)
            for number in range(0, 24, 2):
                setup.cluster.delete(FOOS, f"f{number}", namespace="default")
            await until(lambda: not list(setup.cluster.objects(FOOS)))
            await until(lambda: it.health.failing == ())
        assert {each.split()[0] for each in log} == {"b", "c"}
        assert len(log) == 48

    run_simulated(main)


def test_a_controller_discards_the_record_of_cleanups_of_a_shard_that_moves_away() -> None:
    """Objects that another finalizer keeps stay cached after the cleanup, and then move away."""
    gc.collect()  # the records of other tests
    setup, log = setup_of(24), list[str]()
    keep = {"metadata": {"finalizers": ["example.com/theirs"]}}

    def recorded() -> int:
        (finalized,) = (each for each in gc.get_objects() if isinstance(each, FinalizedReconcile))
        return int(repr(finalized).partition("cleaned=")[2].rstrip(">"))

    async def main() -> None:
        for name in shards_of(setup.cluster):
            setup.cluster.merge_patch(FOOS, name, keep, namespace="default")
        a, b = setup.group("a"), setup.group("b")
        async with a, Cleaner(a, log).running():
            await until(lambda: all(OURS in finalizers(setup.cluster, f"f{n}") for n in range(24)))
            for number in range(24):
                setup.cluster.delete(FOOS, f"f{number}", namespace="default")
            await until(lambda: len(log) == 48)
            await until(lambda: recorded() == 24)
            async with b:
                await settled(a, b)
                ours = sum(shard in a.held for shard in shards_of(setup.cluster).values())
                assert 0 < ours < 24
                await until(lambda: recorded() == ours)

    run_simulated(main)


def recorded(controller: Controller) -> tuple[int, int]:
    """Return the numbers of applies and of failure conditions that a controller remembers."""
    return len(own_writes_of(controller).applied), conditions_written_by(controller)


def test_a_controller_discards_the_applies_and_conditions_of_a_shard_that_moves_away() -> None:
    setup = setup_of(24)
    setup.cluster.add_resource(FOOS, status=True)
    head = {"apiVersion": BARS.api_version, "kind": BARS.kind}

    async def reject(key: ObjectKey, ctx: ReconcileContext) -> None:
        await ctx.apply(head | {"metadata": {"name": f"child-{key.name}"}})
        raise PermanentError("never")

    async def main() -> None:
        a, b = setup.group("a"), setup.group("b")
        async with a, SharedInformerFactory(ClusterSource(setup.cluster)) as informers:
            controller = Controller(FOOS, reject, shards=a, failure_condition="Reconciled")
            async with controller.owns(informers.informer(BARS)):
                await until(lambda: controller.health.failing_keys == 24)
                await asyncio.sleep(10)
                assert recorded(controller) == (24, 24)
                async with b:
                    await settled(a, b)
                    ours = sum(shard in a.held for shard in shards_of(setup.cluster).values())
                    assert 0 < ours < 24
                    await asyncio.sleep(5)
                    assert recorded(controller) == (ours, ours)

    run_simulated(main)


def test_a_controller_discards_the_writes_of_a_shard_that_has_moved_away_for_long() -> None:
    setup = setup_of(24)
    setup.cluster.create(BARS, {"metadata": {"name": "summary"}})

    async def write(key: ObjectKey, ctx: ReconcileContext) -> None:
        await ctx.api(BARS).patch("default/summary", {"spec": {"last": key.name}})

    async def main() -> None:
        a, b = setup.group("a"), setup.group("b")
        async with a, SharedInformerFactory(ClusterSource(setup.cluster)) as informers:
            controller = Controller(FOOS, write, shards=a)
            async with controller.watches(informers.informer(BARS), lambda bar: []):
                await until(lambda: controller.health.runs == 24)
                async with b:
                    await settled(a, b)
                    ours = sum(shard in a.held for shard in shards_of(setup.cluster).values())
                    assert 0 < ours < 24
                    assert len(own_writes_of(controller)) == 24, (
                        "an object may return within seconds"
                    )
                    await asyncio.sleep(150)
                    assert len(own_writes_of(controller)) == ours

    run_simulated(main)


def test_a_controller_with_a_filter_discards_its_records_of_excluded_objects_that_move() -> None:
    setup = setup_of(24)

    async def reject(key: ObjectKey, ctx: ReconcileContext) -> None:
        raise PermanentError("never")

    async def main() -> None:
        a, b = setup.group("a"), setup.group("b")
        async with (
            a,
            Controller(FOOS, reject, shards=a, filter=has_no_spec) as controller,
        ):
            await until(lambda: controller.health.failing_keys == 24)
            for name in shards_of(setup.cluster):
                update_foo(setup.cluster, name, size=1)
            await asyncio.sleep(5)
            assert controller.health.failing_keys == 24
            async with b:
                await settled(a, b)
                ours = sum(shard in a.held for shard in shards_of(setup.cluster).values())
                assert 0 < ours < 24
                await until(lambda: controller.health.failing_keys == ours)

    run_simulated(main)


def test_a_deletion_whose_reconcile_raises_a_permanent_error_is_not_remembered() -> None:
    setup, runs = setup_of(1), list[bool]()

    async def reject(key: ObjectKey, ctx: ReconcileContext) -> None:
        runs.append(ctx.obj is not None)
        if ctx.obj is None:
            raise PermanentError("never")

    async def main() -> None:
        group = setup.group("a")
        async with group, Controller(FOOS, reject, shards=group) as controller:
            await until(lambda: runs == [True])
            setup.cluster.delete(FOOS, "f0", namespace="default")
            await until(lambda: controller.health.failed_runs == 1)
            assert controller.health.failing == ()
            controller.trigger("default/f0")
            await asyncio.sleep(1)
            assert runs == [True, False], "the shard of the deleted object is forgotten, too"

    run_simulated(main)


def test_a_controller_takes_an_informer_or_a_resource_with_a_group() -> None:
    async def main() -> None:
        setup = setup_of(1)
        group = setup.group("a")
        informers = SharedInformerFactory(ClusterSource(setup.cluster))
        wrong: Any = Shard(0, 4)
        with pytest.raises(
            TypeError, match=r"for the first argument of Controller\(..., shards=group\)"
        ):
            Controller("configmaps", reconcile_nothing)
        with pytest.raises(TypeError, match=r"shards takes a ShardGroup, not Shard\("):
            Controller("configmaps", reconcile_nothing, shards=wrong)
        with pytest.raises(UsageError, match=r"foos.* is not divided into shards: pass the resou"):
            Controller(informers.informer(FOOS), reconcile_nothing, shards=group)
        with pytest.raises(UsageError, match=r"reads the shards of shop: pass the resource"):
            Controller(group.informer(FOOS), reconcile_nothing, shards=group)
        with pytest.raises(UnknownResource):
            Controller("gadgets", reconcile_nothing, shards=group)
        with pytest.raises(UsageError, match="or of the ShardGroup"):
            await Controller(FOOS, reconcile_nothing, shards=group).run()

    run_simulated(main)
