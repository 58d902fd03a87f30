"""Controllers on a group: keys of held shards are reconciled, once at a time, and none is lost."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from aioinformer import (
    Controller,
    KubeObject,
    ObjectKey,
    ReconcileContext,
    Result,
    SharedInformer,
    SharedInformerFactory,
)
from aioinformer.errors import ShardLost
from aioinformer.sharding.state.ranges import shard_of
from aioinformer.testing import Cluster, ClusterSource
from tests.controllers.reconcilers import (
    BACKOFF,
    BARS,
    DOUBLING_LIMITER,
    FOOS,
    RecordingReconciler,
    body_with_owner,
    create_foo,
    make_cluster,
    run_simulated,
    running_factory,
    update_foo,
    wait_until,
)
from tests.sharding.memory_assignment import MemoryAssignment

COUNT = 8


def shard_of_foo(cluster: Cluster, name: str) -> int:
    found = cluster.find_object(FOOS, name, namespace="default")
    assert found is not None
    return shard_of(found["metadata"]["uid"], COUNT)


def foos_by_shard(cluster: Cluster) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for each in cluster.objects(FOOS):
        metadata = each["metadata"]
        found.setdefault(shard_of(metadata["uid"], COUNT), []).append(metadata["name"])
    return found


def many_foos(count: int = 40) -> Cluster:
    cluster = make_cluster(*(f"f{number}" for number in range(count)))
    cluster.add_resource(FOOS, status=True)
    return cluster


@asynccontextmanager
async def foos_of(
    cluster: Cluster, group: MemoryAssignment
) -> AsyncGenerator[tuple[SharedInformerFactory, SharedInformer]]:
    async with running_factory(cluster) as informers:
        yield informers, informers.informer(FOOS, shard=group)


MANY = 10_000


@pytest.fixture(name="many")
def cluster_of_many() -> Cluster:
    """Return a cluster with many foos. It takes half a second to make: no loop waits for it."""
    return many_foos(MANY)


async def test_many_keys_of_shards_that_move_away_are_discarded_in_steps(many: Cluster) -> None:
    """Discarded keys don't suspend the worker, so that it yields to the loop by time."""
    count, go_on = MANY, asyncio.Event()
    group = MemoryAssignment(COUNT, assigned=range(COUNT))

    async def wait(key: ObjectKey, ctx: ReconcileContext) -> None:
        await go_on.wait()

    async with (
        foos_of(many, group) as (_, foos),
        Controller(foos, wait, concurrency=1) as controller,
        asyncio.timeout(60),
    ):
        # The first run starts, and the other keys wait.
        await wait_until(lambda: len(controller.health.running) == 1)
        await wait_until(lambda: controller.health.waiting == count - 1)
        group.assign([])  # the only run that is under way delays the move
        await asyncio.sleep(0.01)
        go_on.set()
        waiting, discarded = [count], list[int]()
        while waiting[-1]:
            await asyncio.sleep(0)
            waiting.append(controller.health.waiting)
            discarded.append(waiting[-2] - waiting[-1])
        assert controller.health.runs == 1
        assert max(discarded) < count / 2


def test_only_keys_of_held_shards_are_reconciled() -> None:
    async def scenario() -> None:
        cluster, reconcile = many_foos(), RecordingReconciler()
        by_shard = foos_by_shard(cluster)
        group = MemoryAssignment(COUNT, assigned=[0, 3])
        async with foos_of(cluster, group) as (_, foos), Controller(foos, reconcile):
            await wait_until(lambda: len(reconcile.runs) == len(by_shard[0] + by_shard[3]))
            assert sorted(reconcile.names) == sorted(by_shard[0] + by_shard[3])
            reconcile.runs.clear()
            group.assign([3, 4])
            await wait_until(lambda: group.working == {3, 4})
            await wait_until(lambda: len(reconcile.runs) == len(by_shard[4]))
            for name in [*by_shard[0], *by_shard[3]]:
                update_foo(cluster, name, size=2)
            await asyncio.sleep(1)
            assert sorted(reconcile.names) == sorted(by_shard[4] + by_shard[3])

    run_simulated(scenario)


def test_a_shard_moves_away_after_the_last_reconcile_of_its_keys() -> None:
    async def scenario() -> None:
        cluster = many_foos()
        by_shard = foos_by_shard(cluster)
        name = by_shard[0][0]
        group = MemoryAssignment(COUNT, assigned=[0])
        seen: list[str] = []
        finish = asyncio.Event()

        async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
            if key.name == name:
                seen.append("begins")
                await finish.wait()
                assert ctx.obj is not None, "the object stays cached during its reconcile"
                await ctx.patch_status({"done": True})
                seen.append("ends")

        async with (
            foos_of(cluster, group) as (_, foos),
            Controller(foos, reconcile, concurrency=50) as controller,
        ):
            deleted: list[str] = []

            @foos.on_delete
            def on_delete(obj: object, *, reason: str) -> None:
                deleted.append(reason)

            await wait_until(lambda: seen == ["begins"])
            await wait_until(lambda: controller.health.runs == len(by_shard[0]) - 1)
            group.assign([])
            await asyncio.sleep(5)
            assert group.working == {0}
            assert foos.lister.get(f"default/{name}") is not None
            assert deleted == []
            finish.set()
            await wait_until(lambda: not group.working)
            await wait_until(lambda: len(deleted) == len(by_shard[0]))
            assert seen == ["begins", "ends"]
            assert set(deleted) == {"scope_removed"}
            await asyncio.sleep(5)
            assert seen == ["begins", "ends"], "no reconcile takes the move for a deletion"
            stored = cluster.find_object(FOOS, name, namespace="default")
            assert stored is not None
            assert stored["status"] == {"done": True}

    run_simulated(scenario)


def test_a_reconcile_without_its_shard_cannot_write() -> None:
    async def scenario() -> None:
        cluster = many_foos()
        by_shard = foos_by_shard(cluster)
        name = by_shard[0][0]
        group = MemoryAssignment(COUNT, assigned=[0])
        errors: list[ShardLost] = []
        begun, resume = asyncio.Event(), asyncio.Event()

        async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
            if key.name != name or errors:
                return
            begun.set()
            await resume.wait()
            head = {"apiVersion": FOOS.api_version, "kind": FOOS.kind}
            for write in (
                ctx.patch_status({"phase": "stale"}),
                ctx.api(FOOS).patch(key, {"spec": {"stale": True}}),
                ctx.apply(head | {"metadata": {"name": "child"}}),
            ):
                with pytest.raises(ShardLost) as caught:
                    await write
                errors.append(caught.value)

        async with foos_of(cluster, group) as (_, foos), Controller(foos, reconcile):
            await begun.wait()
            group.lost = frozenset([0])  # the Lease has expired: the process was paused
            group.assign([])
            version = cluster.resource_version
            resume.set()
            await wait_until(lambda: len(errors) == 3)
            assert {error.shard for error in errors} == {0}
            assert cluster.resource_version == version
            await wait_until(lambda: not group.working)

    run_simulated(scenario)


def test_an_object_that_is_deleted_during_its_reconcile_is_reconciled_once_more() -> None:
    async def scenario() -> None:
        cluster = many_foos()
        name = foos_by_shard(cluster)[2][0]
        group = MemoryAssignment(COUNT, assigned=[2])
        reconcile = RecordingReconciler(duration=5.0)
        async with foos_of(cluster, group) as (_, foos), Controller(foos, reconcile, concurrency=9):
            await wait_until(lambda: name in reconcile.names)
            cluster.delete(FOOS, name, namespace="default")
            await asyncio.sleep(60)
            causes = [
                each
                for run, each in zip(reconcile.names, reconcile.causes, strict=True)
                if run == name
            ]
            assert causes == [["initial"], ["deleted"]]

    run_simulated(scenario)


def test_a_deletion_during_a_reconcile_is_not_reconciled_after_its_shard_has_moved_away() -> None:
    async def scenario() -> None:
        cluster = many_foos()
        name = foos_by_shard(cluster)[2][0]
        group = MemoryAssignment(COUNT, assigned=[2])
        reconcile = RecordingReconciler(duration=5.0)
        async with (
            foos_of(cluster, group) as (_, foos),
            Controller(foos, reconcile, concurrency=9) as controller,
        ):
            await wait_until(lambda: name in reconcile.names)
            cluster.delete(FOOS, name, namespace="default")
            await asyncio.sleep(1)
            group.assign([])
            await wait_until(lambda: not group.working)
            group.assign([2])
            await wait_until(lambda: group.working == {2})
            controller.trigger(f"default/{name}")
            await asyncio.sleep(60)
            assert reconcile.names.count(name) == 1

    run_simulated(scenario)


@pytest.mark.parametrize(
    "result", [Result(requeue_after=1), Result(requeue=True), RuntimeError("try again")]
)
def test_a_deletion_whose_run_asks_for_another_run_is_reconciled_again(
    result: Result | Exception,
) -> None:
    async def scenario() -> None:
        cluster = many_foos()
        name = foos_by_shard(cluster)[2][0]
        group = MemoryAssignment(COUNT, assigned=[2])
        reconcile = RecordingReconciler()
        async with foos_of(cluster, group) as (_, foos), Controller(foos, reconcile) as controller:
            await wait_until(lambda: name in reconcile.names)
            await wait_until(lambda: not controller.health.waiting)
            reconcile.runs.clear()
            reconcile.results = [result, result]
            cluster.delete(FOOS, name, namespace="default")
            await asyncio.sleep(60)
            assert reconcile.names == [name] * 3
            controller.trigger(f"default/{name}")
            await asyncio.sleep(1)
            assert reconcile.names == [name] * 3, "the last run has ended the deletion"

    run_simulated(scenario)


def test_a_request_during_the_reconcile_of_a_deletion_is_followed_by_another_run() -> None:
    async def scenario() -> None:
        cluster = many_foos()
        name = foos_by_shard(cluster)[2][0]
        group = MemoryAssignment(COUNT, assigned=[2])
        reconcile = RecordingReconciler()
        async with foos_of(cluster, group) as (informers, foos):
            bars = informers.informer(BARS)
            async with Controller(foos, reconcile).owns(bars) as controller:
                await wait_until(lambda: name in reconcile.names)
                await wait_until(lambda: not controller.health.waiting)
                reconcile.runs.clear()
                reconcile.contexts.clear()
                reconcile.duration = 5.0
                cluster.delete(FOOS, name, namespace="default")
                await asyncio.sleep(1)
                controller.trigger(f"default/{name}")
                await asyncio.sleep(5)
                cluster.create(BARS, body_with_owner("b", name), namespace="default")
                await asyncio.sleep(60)
                assert reconcile.causes == [["deleted"], ["request"], ["added"]]

    run_simulated(scenario)


def is_small(foo: KubeObject) -> bool:
    return bool(foo["spec"].get("size", 0) < 5)


def test_an_object_that_leaves_the_filter_and_is_deleted_while_its_key_waits_is_reconciled() -> (
    None
):
    """The filter shows the change as a deletion, and the real deletion no more."""

    async def scenario() -> None:
        cluster = many_foos()
        other, name = foos_by_shard(cluster)[2][:2]
        group = MemoryAssignment(COUNT, assigned=[2])
        reconcile = RecordingReconciler()
        async with (
            foos_of(cluster, group) as (_, foos),
            Controller(foos, reconcile, filter=is_small, concurrency=1) as controller,
        ):
            await controller.wait_synced(5)
            await wait_until(lambda: controller.health.runs == len(foos.lister.list()) > 0)
            reconcile.runs.clear()
            reconcile.duration = 5.0
            controller.trigger(f"default/{other}")
            await asyncio.sleep(1)
            update_foo(cluster, name, size=7)
            await asyncio.sleep(1)
            cluster.delete(FOOS, name, namespace="default")
            await asyncio.sleep(60)
            assert reconcile.names == [other, name]

    run_simulated(scenario)


def test_a_requeue_of_an_object_that_leaves_the_filter_and_is_deleted_is_reconciled() -> None:
    async def scenario() -> None:
        cluster = many_foos()
        name = foos_by_shard(cluster)[2][0]
        group = MemoryAssignment(COUNT, assigned=[2])
        reconcile = RecordingReconciler()
        async with (
            foos_of(cluster, group) as (_, foos),
            Controller(foos, reconcile, filter=is_small) as controller,
        ):
            await controller.wait_synced(5)
            await wait_until(lambda: controller.health.runs == len(foos.lister.list()) > 0)
            reconcile.runs.clear()
            reconcile.results = [Result(requeue_after=30)]
            update_foo(cluster, name, size=7)
            await wait_until(lambda: reconcile.names == [name])
            cluster.delete(FOOS, name, namespace="default")
            await asyncio.sleep(60)
            assert reconcile.names == [name, name]

    run_simulated(scenario)


def test_a_deletion_that_only_the_finalizer_needs_to_see_is_reconciled_despite_the_filter() -> None:
    async def scenario() -> None:
        cluster = many_foos()
        name = foos_by_shard(cluster)[2][0]
        group = MemoryAssignment(COUNT, assigned=[2])
        reconcile, cleaned = RecordingReconciler(), list[str]()

        async def cleanup(key: ObjectKey, ctx: ReconcileContext) -> None:
            cleaned.append(key.name)

        async with (
            foos_of(cluster, group) as (_, foos),
            Controller(
                foos, reconcile, filter=is_small, finalizer="example.com/ours", cleanup=cleanup
            ) as controller,
        ):
            await controller.wait_synced(5)
            await wait_until(lambda: controller.health.runs >= len(foos.lister.list()) > 0)
            await asyncio.sleep(5)
            update_foo(cluster, name, size=7)
            await asyncio.sleep(5)
            reconcile.runs.clear()
            cluster.delete(FOOS, name, namespace="default")
            await asyncio.sleep(60)
            assert cleaned == [name]
            assert reconcile.names == [name], "as by a controller without a group"

    run_simulated(scenario)


def test_a_deletion_is_not_reconciled_once_the_new_object_of_that_name_has_moved_away() -> None:
    async def scenario() -> None:
        cluster = many_foos()
        group = MemoryAssignment(COUNT, assigned=range(COUNT))
        reconcile = RecordingReconciler()
        async with (
            foos_of(cluster, group) as (_, foos),
            Controller(foos, reconcile, concurrency=1) as controller,
        ):
            await wait_until(lambda: controller.health.runs == 40)
            reconcile.runs.clear()
            reconcile.duration = 5.0
            controller.trigger("default/f0")
            kept, before = shard_of_foo(cluster, "f0"), shard_of_foo(cluster, "f1")
            await asyncio.sleep(1)
            moved = before
            while moved in (kept, before):
                cluster.delete(FOOS, "f1", namespace="default")
                create_foo(cluster, "f1")
                moved = shard_of_foo(cluster, "f1")
            await asyncio.sleep(1)
            group.assign(set(range(COUNT)) - {moved})
            await asyncio.sleep(60)
            assert reconcile.names == ["f0"]
            assert controller.health.waiting == 0

    run_simulated(scenario)


@pytest.mark.parametrize("seed", range(6))
def test_the_last_reconcile_of_each_key_sees_the_last_state_whatever_happens_during_runs(
    seed: int,
) -> None:
    """Objects come and go while their keys wait, run, and are to run again. No shard moves."""
    rng = random.Random(seed)

    async def scenario() -> None:
        cluster = many_foos(8)
        mine = frozenset(rng.sample(range(COUNT), 5))
        seen: dict[str, bool] = {}
        """True if the last run of a key saw an object that passes the filter."""

        async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> Result | None:
            seen[key.name] = ctx.obj is not None and is_small(ctx.obj)
            await asyncio.sleep(rng.choice([0.0, 0.5, 3.0]))
            if rng.random() < 0.2:
                raise RuntimeError("try again")
            return rng.choice([None, None, Result(requeue=True), Result(requeue_after=2.0)])

        group = MemoryAssignment(COUNT, assigned=mine)
        async with (
            foos_of(cluster, group) as (_, foos),
            Controller(foos, reconcile, concurrency=3, filter=is_small, backoff=DOUBLING_LIMITER),
        ):
            for step in range(200):
                name = f"f{rng.randrange(8)}"
                if cluster.find_object(FOOS, name, namespace="default") is None:
                    create_foo(cluster, name, size=step % 7)
                elif rng.random() < 0.5:
                    cluster.delete(FOOS, name, namespace="default")
                else:
                    update_foo(cluster, name, size=step % 7)
                await asyncio.sleep(rng.random() * 2)
            await asyncio.sleep(600)
            left = {each["metadata"]["name"] for each in cluster.objects(FOOS)}
            assert {name for name, present in seen.items() if present} <= left

    run_simulated(scenario, seed=seed)


def test_delayed_keys_of_a_shard_that_moved_away_are_discarded() -> None:
    async def scenario() -> None:
        cluster = many_foos()
        by_shard = foos_by_shard(cluster)
        group = MemoryAssignment(COUNT, assigned=[1])
        results: list[Result | Exception | None] = [Result(requeue_after=10.0)]
        results += [RuntimeError("no")] * 50
        reconcile = RecordingReconciler(results=results)
        async with foos_of(cluster, group) as (_, foos), Controller(foos, reconcile) as controller:
            await wait_until(lambda: len(reconcile.runs) >= len(by_shard[1]))
            group.assign([])
            await wait_until(lambda: not group.working)
            reconcile.runs.clear()
            await asyncio.sleep(60)
            assert reconcile.runs == []
            assert controller.health.waiting == 0
            assert not controller.health.failing

    run_simulated(scenario)


def test_children_trigger_owners_of_held_shards_alone() -> None:
    async def scenario() -> None:
        cluster = many_foos(16)
        by_shard = foos_by_shard(cluster)
        group = MemoryAssignment(COUNT, assigned=by_shard)
        mine = min(by_shard)
        group.assigned = frozenset([mine])
        reconcile = RecordingReconciler()
        async with foos_of(cluster, group) as (informers, foos):
            bars = informers.informer(BARS)
            async with Controller(foos, reconcile).owns(bars):
                await wait_until(lambda: len(reconcile.runs) == len(by_shard[mine]))
                reconcile.runs.clear()
                for number in range(16):
                    body = body_with_owner(f"b{number}", f"f{number}")
                    cluster.create(BARS, body, namespace="default")
                await wait_until(lambda: len(bars.lister.list()) == 16)
                await asyncio.sleep(1)
                assert sorted(set(reconcile.names)) == sorted(by_shard[mine])

    run_simulated(scenario)


# -- several members -----------------------------------------------------------------------------


@dataclass
class Members:
    """Members that share the shards, and the group that moves a shard when its user has ended."""

    cluster: Cluster
    at_work: dict[str, str] = field(default_factory=dict[str, str])
    """The member that reconciles an object, by uid."""
    done: dict[str, int] = field(default_factory=dict[str, int])
    """The greatest size of each object that was reconciled."""
    together: list[str] = field(default_factory=list[str])

    async def run(self, name: str, group: MemoryAssignment, rng: random.Random) -> None:
        async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
            obj = ctx.obj
            if obj is None:
                return
            uid = obj.uid
            if uid in self.at_work:
                self.together.append(f"{key} at {name} and {self.at_work[uid]}")
            self.at_work[uid] = name
            try:
                await asyncio.sleep(rng.random() * 3)
                current = ctx.obj
                assert current is not None, "neither deleted nor moved during the reconcile"
                size = current["spec"].get("size", 0)
                await ctx.patch_status({"by": name, "size": size})
                self.done[key.name] = max(self.done.get(key.name, 0), size)
            finally:
                self.at_work.pop(uid, None)

        source = ClusterSource(self.cluster)
        async with SharedInformerFactory(source, backoff=BACKOFF) as informers:
            foos = informers.informer(FOOS, shard=group)
            async with Controller(foos, reconcile, name=name, concurrency=8):
                await asyncio.get_running_loop().create_future()


def worked_on(groups: Iterable[MemoryAssignment]) -> set[int]:
    return {shard for group in groups for shard in group.working}


@pytest.mark.parametrize(
    "seed",
    [
        *range(4),
        *(pytest.param(seed, marks=pytest.mark.simulation) for seed in range(4, 12)),
    ],
)
def test_members_that_exchange_shards_reconcile_every_object_and_never_twice_at_once(
    seed: int,
) -> None:
    rng = random.Random(seed)

    async def scenario() -> None:
        cluster = many_foos(24)
        members = Members(cluster)
        groups = {name: MemoryAssignment(COUNT, name=name) for name in ("a", "b", "c")}
        owners = {shard: rng.choice("abc") for shard in range(COUNT)}
        tasks = [
            asyncio.create_task(members.run(name, group, rng)) for name, group in groups.items()
        ]

        def assign() -> None:
            """Give a shard to its owner once no other member works on it."""
            for name, group in groups.items():
                others = [each for other, each in groups.items() if other != name]
                taken = frozenset[int]().union(*(each.working | each.assigned for each in others))
                mine = {shard for shard, owner in owners.items() if owner == name}
                kept = mine & group.assigned
                group.assign(kept | (mine - taken))

        for step in range(60):
            if rng.random() < 0.4:
                for shard in rng.sample(range(COUNT), 3):
                    owners[shard] = rng.choice("abc")
            if rng.random() < 0.8:
                update_foo(cluster, f"f{rng.randrange(24)}", size=step + 1)
            if rng.random() < 0.2:
                create_foo(cluster, f"n{step}", size=1)
            assign()
            await asyncio.sleep(rng.random())
        sizes = {
            each["metadata"]["name"]: each["spec"].get("size", 0) for each in cluster.objects(FOOS)
        }
        async with asyncio.timeout(300):
            while members.done != sizes or worked_on(groups.values()) != set(range(COUNT)):
                assign()
                await asyncio.sleep(0.1)
        assert members.together == []
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    run_simulated(scenario, seed=seed)
