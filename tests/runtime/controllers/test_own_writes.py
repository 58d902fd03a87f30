"""The next run of a key sees the writes of the last one."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioinformer import (
    Controller,
    ItemExponential,
    ObjectKey,
    ReconcileContext,
    Result,
    SharedInformerFactory,
)
from aioinformer.testing import Cluster, ClusterSource
from tests.runtime.controllers.reconcilers import (
    BACKOFF,
    BARS,
    FOOS,
    create_foo,
    key,
    loop_time,
    make_cluster,
    own_writes_of,
    run_simulated,
    update_foo,
    wait_until,
)

CHILD = {"apiVersion": BARS.api_version, "kind": BARS.kind, "metadata": {"name": "child"}}


def applied(size: int) -> dict[str, object]:
    return {**CHILD, "spec": {"size": size}}


@pytest.mark.parametrize("silence", [0.5, 8.0])
def test_a_run_waits_until_the_cache_shows_the_child_that_the_last_run_wrote(
    silence: float,
) -> None:
    """Watches stall while the first run writes, and the second one is requested at once."""
    cluster, seen, times = make_cluster("a"), list[object](), list[float]()

    async def main() -> None:
        source = ClusterSource(cluster)
        async with SharedInformerFactory(source, backoff=BACKOFF) as informers:
            foos, bars = informers.informer(FOOS), informers.informer(BARS)

            async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> Result | None:
                child = bars.lister.get(ObjectKey("default", "child"))
                seen.append(None if child is None else child["spec"]["size"])
                times.append(loop_time())
                if len(seen) > 3:
                    return None
                await ctx.apply(applied(len(seen)))
                return Result(requeue_after=0)

            async with Controller(foos, reconcile).owns(bars):
                await wait_until(lambda: bool(seen))
                with source.faults.stall(verb="watch", after=0):
                    await asyncio.sleep(silence)
                await asyncio.sleep(60)

    run_simulated(main)
    assert seen[:4] == [None, 1, 2, 3]


def test_a_run_waits_for_its_own_status_and_for_deletions() -> None:
    cluster = Cluster()
    cluster.add_resource(FOOS, status=True)
    cluster.add_resource(BARS)
    create_foo(cluster, "a")
    seen: list[tuple[object, bool]] = []

    async def main() -> None:
        source = ClusterSource(cluster)
        async with SharedInformerFactory(source, backoff=BACKOFF) as informers:
            foos, bars = informers.informer(FOOS), informers.informer(BARS)

            async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> Result | None:
                obj = foos.lister[key]
                runs = obj.get("status", {}).get("runs", 0)
                has_child = bars.lister.get(ObjectKey("default", "child")) is not None
                seen.append((runs, has_child))
                if len(seen) > 4:
                    return None
                await ctx.patch_status({"runs": runs + 1})
                if has_child:
                    assert await ctx.prune(bars) == (ObjectKey("default", "child"),)
                else:
                    await ctx.apply(CHILD)
                return Result(requeue_after=0)

            with source.faults.latency(0.3, verb="watch"):
                async with Controller(foos, reconcile).owns(bars):
                    await asyncio.sleep(60)

    run_simulated(main)
    assert seen[:5] == [(0, False), (1, True), (2, False), (3, True), (4, False)]


def test_a_deletion_by_key_alone_is_waited_for() -> None:
    cluster, seen = make_cluster("a"), list[bool]()
    cluster.create(BARS, {"metadata": {"name": "child"}})

    async def main() -> None:
        source = ClusterSource(cluster)
        async with SharedInformerFactory(source, backoff=BACKOFF) as informers:
            foos, bars = informers.informer(FOOS), informers.informer(BARS)

            async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> Result | None:
                seen.append(bars.lister.get(ObjectKey("default", "child")) is None)
                if len(seen) > 1:
                    return None
                await ctx.api(BARS, namespace="default").delete("child")
                return Result(requeue_after=0)

            async with Controller(foos, reconcile).watches(bars, lambda obj: []):
                await asyncio.sleep(5)

    run_simulated(main)
    assert seen == [False, True]


def test_an_object_that_was_created_again_shows_the_deletion_of_its_predecessor() -> None:
    cluster, times = make_cluster("a"), list[float]()
    cluster.create(BARS, {"metadata": {"name": "child"}})

    async def main() -> None:
        source = ClusterSource(cluster)
        async with SharedInformerFactory(source, backoff=BACKOFF) as informers:
            foos, bars = informers.informer(FOOS), informers.informer(BARS)

            async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> Result | None:
                times.append(loop_time())
                if len(times) > 1:
                    return None
                await ctx.api(BARS, namespace="default").delete("child")
                cluster.create(BARS, {"metadata": {"name": "child"}})
                return Result(requeue_after=0)

            async with Controller(foos, reconcile).watches(bars, lambda obj: []):
                await asyncio.sleep(5)

    run_simulated(main)
    assert len(times) == 2


def test_a_run_waits_for_a_write_that_was_made_while_it_waited_for_an_earlier_one() -> None:
    """A task that the last run left behind writes the same object again."""
    cluster, seen = make_cluster("a"), list[object]()
    left_behind = set[asyncio.Task[object]]()

    async def main() -> None:
        source = ClusterSource(cluster)
        async with SharedInformerFactory(source, backoff=BACKOFF) as informers:
            foos, bars = informers.informer(FOOS), informers.informer(BARS)

            async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> Result | None:
                child = bars.lister.get(ObjectKey("default", "child"))
                seen.append(None if child is None else child["spec"]["size"])
                if len(seen) > 1:
                    return None

                async def write_later() -> object:
                    await asyncio.sleep(0.6)
                    return await ctx.apply(applied(2))

                await ctx.apply(applied(1))
                left_behind.add(asyncio.create_task(write_later()))
                return Result(requeue_after=0)

            # The event of the first write arrives in parts, and that of the second one behind it.
            with source.faults.drip(size=100, every=0.3, verb="watch", resource=BARS):
                async with Controller(foos, reconcile).owns(bars):
                    await asyncio.sleep(30)

    run_simulated(main)
    assert seen[:2] == [None, 2]


def test_a_cache_that_is_behind_for_long_fails_the_run_and_is_shown() -> None:
    cluster, seen = make_cluster("a"), list[object]()

    async def main() -> None:
        source = ClusterSource(cluster)
        async with SharedInformerFactory(source, backoff=BACKOFF) as informers:
            foos, bars = informers.informer(FOOS), informers.informer(BARS)

            async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> Result | None:
                child = bars.lister.get(ObjectKey("default", "child"))
                seen.append(None if child is None else child["spec"]["size"])
                if child is None:
                    await ctx.apply(applied(1))
                return Result(requeue_after=0) if child is None else None

            controller = Controller(foos, reconcile, backoff=ItemExponential(1, 1)).owns(bars)
            async with controller:
                stalled = source.faults.stall(verb="watch", after=0)
                refused = source.faults.status(503, verb="list")
                await wait_until(lambda: bool(seen))
                await asyncio.sleep(25)
                failing = controller.failing(key("a"))
                assert failing is not None
                assert "the cache of bars.samples.example.com doesn't show" in failing.error
                assert seen == [None]
                stalled.end()
                refused.end()
                await asyncio.sleep(300)
                assert controller.failing(key("a")) is None

    run_simulated(main)
    assert set(seen[1:]) == {1}


def test_a_run_does_not_wait_for_ever_for_an_object_that_the_informer_never_selects(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = Cluster()
    for resource in (FOOS, BARS):
        cluster.add_resource(resource)
    create_foo(cluster, "a")
    times: list[float] = []

    async def main() -> None:
        source = ClusterSource(cluster)
        source.faults.drop_bookmarks()
        async with SharedInformerFactory(source, backoff=BACKOFF) as informers:
            foos, bars = informers.informer(FOOS), informers.informer(BARS, labels="of=foos")

            async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> Result | None:
                times.append(loop_time())
                if len(times) == 1:
                    await ctx.apply(applied(1))  # without the label
                    return Result(requeue_after=1)
                return None

            backoff = ItemExponential(5, 5)
            async with Controller(foos, reconcile, backoff=backoff).owns(bars):
                await asyncio.sleep(400)

    run_simulated(main)
    first, second = times
    assert 120 <= second - first <= 150
    assert "Do its selectors exclude the object?" in caplog.text


def test_a_write_to_a_namespace_that_no_informer_reads_is_not_waited_for() -> None:
    cluster, times = make_cluster("a"), list[float]()
    cluster.create("namespaces", {"metadata": {"name": "other"}})

    async def main() -> None:
        async with SharedInformerFactory(ClusterSource(cluster), backoff=BACKOFF) as informers:
            foos = informers.informer(FOOS)
            bars = informers.informer(BARS, namespace="default")

            async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> Result | None:
                times.append(loop_time())
                if len(times) == 1:
                    body = applied(1) | {"metadata": {"name": "x", "namespace": "other"}}
                    await ctx.apply(body, owned=False)
                    return Result(requeue_after=1)
                return None

            async with Controller(foos, reconcile).owns(bars):
                await asyncio.sleep(30)

    run_simulated(main)
    assert times[1] - times[0] < 2


def test_a_controller_that_ends_does_not_wait_for_a_cache() -> None:
    cluster = make_cluster("a")

    async def main() -> float:
        source = ClusterSource(cluster)
        async with SharedInformerFactory(source, backoff=BACKOFF) as informers:
            foos, bars = informers.informer(FOOS), informers.informer(BARS)
            wrote = asyncio.Event()

            async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> Result:
                await ctx.apply(applied(1))
                wrote.set()
                return Result(requeue_after=0)

            controller = Controller(foos, reconcile).owns(bars)
            async with controller:
                source.faults.stall(verb="watch", after=0)
                source.faults.status(503, verb="list")
                await wrote.wait()
                await asyncio.sleep(1)
                before = loop_time()
            return loop_time() - before

    assert run_simulated(main) < 1


def test_the_writes_of_the_runs_of_deleted_objects_are_forgotten_in_time() -> None:
    """A deleted object has no next run that would wait for the writes of the last one."""
    cluster = make_cluster()
    cluster.create(BARS, {"metadata": {"name": "summary"}})

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
        if ctx.obj is None:
            await ctx.api(BARS).patch("default/summary", {"spec": {"last": key.name}})

    async def main() -> None:
        async with SharedInformerFactory(ClusterSource(cluster), backoff=BACKOFF) as informers:
            foos, bars = informers.informer(FOOS), informers.informer(BARS)
            controller = Controller(foos, reconcile)
            async with controller.watches(bars, lambda obj: []):
                for number in range(200):
                    create_foo(cluster, f"a{number}")
                    await asyncio.sleep(1)
                    cluster.delete(FOOS, f"a{number}", namespace="default")
                    await asyncio.sleep(1)
                assert len(own_writes_of(controller)) <= 65, (
                    "the time for which a write is remembered"
                )
                await asyncio.sleep(300)
                assert len(own_writes_of(controller)) == 0
                # All at once: they are forgotten in several steps.
                names = [f"b{number}" for number in range(1100)]
                for name in names:
                    create_foo(cluster, name)
                await asyncio.sleep(5)
                for name in names:
                    cluster.delete(FOOS, name, namespace="default")
                await asyncio.sleep(5)
                assert len(own_writes_of(controller)) == 1100
                await asyncio.sleep(300)
                assert len(own_writes_of(controller)) == 0

    run_simulated(main)


@pytest.mark.parametrize("outage", [5.0, 400.0])
def test_an_object_that_is_created_again_waits_for_the_writes_of_its_deletion(
    outage: float,
) -> None:
    cluster, seen = make_cluster("a"), list[tuple[bool, bool]]()
    cluster.create(BARS, {"metadata": {"name": "child"}})
    child = ObjectKey("default", "child")

    async def main() -> None:
        source, faulty = ClusterSource(cluster), ClusterSource(cluster)
        async with (
            SharedInformerFactory(source, backoff=BACKOFF) as informers,
            SharedInformerFactory(faulty, backoff=BACKOFF) as others,
        ):
            foos, bars = informers.informer(FOOS), others.informer(BARS)

            async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
                seen.append((ctx.obj is not None, bars.lister.get(child) is not None))
                if ctx.obj is None:
                    await ctx.api(BARS).delete(child)

            backoff = ItemExponential(1, 1)
            async with Controller(foos, reconcile, backoff=backoff).watches(bars, lambda obj: []):
                await wait_until(lambda: len(seen) == 1)
                with faulty.faults.refuse(), faulty.faults.reset(verb="watch"):
                    cluster.delete(FOOS, "a", namespace="default")
                    await asyncio.sleep(outage)
                    create_foo(cluster, "a")
                    await asyncio.sleep(30)
                    assert len(seen) == 2, "the cache still shows the child"
                await asyncio.sleep(120)

    run_simulated(main)
    assert seen == [(True, True), (False, True), (True, False)]


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000))
def test_a_counter_that_each_run_increments_counts_the_runs(seed: int) -> None:
    """Each run reads the counter from the cache and writes it plus one. A run that sees a cache
    older than its own last write would repeat a number. The model is the number of runs.
    """
    cluster = make_cluster("a")
    seen: list[int] = []

    async def main() -> None:
        source = ClusterSource(cluster)
        async with SharedInformerFactory(source, backoff=BACKOFF) as informers:
            foos, bars = informers.informer(FOOS), informers.informer(BARS)

            async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> Result | None:
                child = bars.lister.get(ObjectKey("default", "child"))
                count = 0 if child is None else child["spec"]["size"]
                seen.append(count)
                if count >= 12:
                    return None
                await ctx.apply(applied(count + 1))
                return Result(requeue_after=0.01)

            async with Controller(foos, reconcile).owns(bars):
                for step in range(6):
                    with source.faults.reset(verb="watch", after=(seed * step) % 400):
                        await asyncio.sleep(0.3)
                    update_foo(cluster, "a", step=step)
                    await asyncio.sleep(3)
                await asyncio.sleep(30)

    run_simulated(main, seed=seed)
    increments = [count for count in seen if count < 12]
    assert increments == sorted(set(increments)), "a run saw a cache older than its own write"
    assert json.loads(cluster.list(BARS))["items"][0]["spec"] == {"size": 12}
