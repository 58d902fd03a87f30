"""The next run of a key sees the writes of the last one."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioinformer import (
    Client,
    Controller,
    ItemExponential,
    KubeObject,
    ObjectKey,
    ReconcileContext,
    Result,
    Scope,
    Shard,
    SharedInformerFactory,
    labelled,
)
from aioinformer._runtime.writing.resource_writer import CheckedClient
from aioinformer.testing import ApiServer, Cluster, ClusterSource, Features
from tests.controllers.reconcilers import (
    BACKOFF,
    BARS,
    FOOS,
    add_resources,
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
    """The object lacks the field, so that only the server knows the value that it selects by."""
    cluster, times = make_cluster("a"), list[float]()

    async def main() -> None:
        source = ClusterSource(cluster)
        source.faults.drop_bookmarks()
        async with SharedInformerFactory(source, backoff=BACKOFF) as informers:
            foos = informers.informer(FOOS)
            pods = informers.informer("pods", fields="spec.hostNetwork=true")

            async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> Result | None:
                times.append(loop_time())
                if len(times) == 1:
                    await ctx.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}})
                    return Result(requeue_after=1)
                return None

            backoff = ItemExponential(5, 5)
            async with Controller(foos, reconcile, backoff=backoff).owns(pods):
                await asyncio.sleep(400)

    run_simulated(main)
    first, second = times
    assert 120 <= second - first <= 150
    assert "Do its selectors exclude the object?" in caplog.text


def drop(_: KubeObject) -> None:
    """Drop each object, as a ``transform=``."""


OTHERS: dict[str, dict[str, Any]] = {
    "label": {"labels": "of=others"},
    "absent label": {"labels": "!of"},
    "name": {"fields": "metadata.name=other"},
    "field": {"fields": "spec.schedulerName=other"},
    "absent field": {"fields": "spec.nodeName=node-1"},
    "label of a namespace": {"namespaces": {"default": Scope(labels="of=others")}},
    "label of followed namespaces": {"namespaces": {labelled("on=yes"): Scope(labels="of=others")}},
    "other namespaces": {"namespaces": ["kube-system"]},
    "shard": {"shard": Shard(0, 65536)},
    "transform": {"transform": drop},
}
"""Informers of pods that never show the pod that is written."""


@pytest.mark.parametrize("chosen", OTHERS)
def test_a_run_does_not_wait_for_a_second_informer_that_never_shows_the_child(chosen: str) -> None:
    cluster, times = Cluster(features=Features(sharding=True)), list[float]()
    add_resources(cluster)
    create_foo(cluster, "a")
    cluster.create("namespaces", {"metadata": {"name": "default", "labels": {"on": "yes"}}})
    head = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "labels": {"of": "foos"}}}

    async def main() -> None:
        async with SharedInformerFactory(ClusterSource(cluster), backoff=BACKOFF) as informers:
            foos, pods = informers.informer(FOOS), informers.informer("pods")
            others = informers.informer("pods", **OTHERS[chosen])

            async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> Result | None:
                if len(times) > 3:
                    return None
                child = pods.lister.get(ObjectKey("default", "x"))
                seen = 0 if child is None else child["spec"]["priority"]
                assert seen == len(times), "the other informer has the last write"
                times.append(loop_time())
                spec = {"schedulerName": "mine", "priority": len(times)}
                await ctx.apply(head | {"spec": spec})
                return Result(requeue_after=1)

            controller = Controller(foos, reconcile).owns(pods).watches(others, lambda obj: [])
            async with controller:
                await asyncio.sleep(30)
                assert controller.health.failed_runs == 0

    run_simulated(main)
    assert times[3] - times[0] < 4


def test_a_run_does_not_wait_for_informers_of_another_cluster() -> None:
    """The versions of the other cluster are far behind."""
    near, far, times = make_cluster("a"), make_cluster("a"), list[float]()
    for number in range(50):
        update_foo(near, "a", number=number)

    async def main() -> None:
        async with (
            SharedInformerFactory(ClusterSource(near), backoff=BACKOFF) as informers,
            SharedInformerFactory(ClusterSource(far), backoff=BACKOFF) as others,
        ):
            foos, bars = informers.informer(FOOS), informers.informer(BARS)
            far_bars, far_foos = others.informer(BARS), others.informer(FOOS)

            async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> Result | None:
                if len(times) > 3:
                    return None
                child = bars.lister.get(ObjectKey("default", "child"))
                seen = 0 if child is None else child["spec"]["size"]
                assert seen == len(times), "the informer of the same cluster has the last write"
                times.append(loop_time())
                await ctx.apply(applied(len(times)))
                await ctx.api(FOOS).patch(key, {"spec": {"runs": len(times)}})
                return Result(requeue_after=1)

            controller = Controller(foos, reconcile).owns(bars)
            controller.watches(far_bars, lambda obj: []).watches(far_foos, lambda obj: [])
            async with controller:
                await asyncio.sleep(30)
                assert controller.health.failed_runs == 0

    run_simulated(main)
    assert times[3] - times[0] < 4


def test_a_run_waits_for_a_guarded_client_and_a_second_client_of_the_same_cluster() -> None:
    cluster, seen = make_cluster("a"), list[int]()

    async def main() -> None:
        source = ClusterSource(cluster)
        writer = CheckedClient(ClusterSource(cluster), check=lambda: None)
        async with SharedInformerFactory(source, backoff=BACKOFF) as informers:
            foos, bars = informers.informer(FOOS), informers.informer(BARS)

            async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> Result | None:
                child = bars.lister.get(ObjectKey("default", "child"))
                seen.append(0 if child is None else child["spec"]["size"])
                if len(seen) > 3:
                    return None
                await ctx.apply(applied(len(seen)))
                return Result(requeue_after=0)

            with source.faults.latency(0.5, verb="watch"):
                async with Controller(foos, reconcile, client=writer).owns(bars):
                    await asyncio.sleep(30)

    run_simulated(main)
    assert seen == [0, 1, 2, 3]


def test_a_run_waits_until_a_child_that_its_last_run_has_excluded_leaves_the_cache() -> None:
    cluster, seen = make_cluster("a"), list[bool]()
    cluster.create(BARS, {"metadata": {"name": "child", "labels": {"of": "foos"}}})
    faults: list[Any] = []

    async def main() -> None:
        source = ClusterSource(cluster)
        async with SharedInformerFactory(source, backoff=BACKOFF) as informers:
            foos, bars = informers.informer(FOOS), informers.informer(BARS, labels="of=foos")

            async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> Result | None:
                seen.append(bars.lister.get(ObjectKey("default", "child")) is not None)
                if len(seen) > 1:
                    return None
                faults.append(source.faults.stall(verb="watch", after=0))
                faults.append(source.faults.status(503, verb="list"))
                labels = {"metadata": {"labels": {"of": None}}}
                await ctx.api(BARS).patch("default/child", labels)
                return Result(requeue_after=0)

            controller = Controller(foos, reconcile, backoff=ItemExponential(1, 1))
            async with controller.watches(bars, lambda obj: []):
                await asyncio.sleep(15)
                failing = controller.failing(key("a"))
                assert failing is not None
                assert "of=foos excludes" in failing.error
                for fault in faults:
                    fault.end()
                await asyncio.sleep(120)

    run_simulated(main)
    assert seen == [True, False]


def test_a_controller_warns_once_if_its_informer_of_children_excludes_them(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster, times = make_cluster("a", "b"), list[float]()

    async def main() -> None:
        async with SharedInformerFactory(ClusterSource(cluster), backoff=BACKOFF) as informers:
            foos, bars = informers.informer(FOOS), informers.informer(BARS, labels="of=foos")

            async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> Result | None:
                times.append(loop_time())
                if len(times) > 4:
                    return None
                await ctx.apply({**CHILD, "metadata": {"name": key.name}})  # without the label
                return Result(requeue_after=1)

            async with Controller(foos, reconcile).owns(bars):
                await asyncio.sleep(30)

    run_simulated(main)
    assert times[-1] - times[0] < 4
    assert caplog.text.count("of=foos excludes it, so that its changes lead to no run") == 1


@pytest.mark.parametrize("write", ["update", "deletion", "departure"])
def test_a_run_waits_seconds_for_informers_whose_role_may_list_and_not_watch(write: str) -> None:
    """Such an informer lists once a minute, and sooner for a wait."""
    cluster, seen, times = make_cluster("a"), list[int | None](), list[float]()
    cluster.create(BARS, {"metadata": {"name": "child", "labels": {"of": "foos"}}})
    child = ObjectKey("default", "child")

    async def main() -> None:
        source = ClusterSource(cluster)
        source.faults.status(403, reason="Forbidden", verb="watch")
        async with SharedInformerFactory(source, backoff=BACKOFF) as informers:
            foos = informers.informer(FOOS)
            bars = informers.informer(BARS, labels="of=foos" if write == "departure" else "")

            async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> Result | None:
                shown = bars.lister.get(child)
                seen.append(None if shown is None else shown.get("spec", {}).get("size", 0))
                times.append(loop_time())
                if shown is None or len(times) > 3:
                    return None
                match write:
                    case "update":
                        await ctx.api(BARS).patch(child, {"spec": {"size": len(times)}})
                    case "deletion":
                        await ctx.api(BARS).delete(child)
                    case _:
                        await ctx.api(BARS).patch(child, {"metadata": {"labels": None}})
                return Result(requeue_after=0)

            controller = Controller(foos, reconcile).watches(bars, lambda obj: [])
            async with controller:
                await asyncio.sleep(50)
                assert controller.health.failed_runs == 0
                assert bars.health.state == "polling"

    run_simulated(main)
    assert seen == ([0, 1, 2, 3] if write == "update" else [0, None])
    assert times[-1] - times[0] < 6 * (len(times) - 1)


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


async def test_clients_know_the_clusters_and_the_selectors_of_their_informers() -> None:
    times: list[float] = []
    near, far = make_cluster("a"), make_cluster()
    for number in range(50):
        update_foo(near, "a", number=number)
    async with (
        ApiServer(near) as near_server,
        ApiServer(far) as far_server,
        Client(near_server.url) as client,
        Client(near_server.url) as writer,
        Client(far_server.url) as far_client,
        SharedInformerFactory(client, backoff=BACKOFF) as informers,
        SharedInformerFactory(far_client, backoff=BACKOFF) as others,
    ):
        foos, bars = informers.informer(FOOS), informers.informer(BARS)
        missed = [informers.informer(BARS, labels="a=b"), others.informer(BARS)]

        async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> Result | None:
            if len(times) > 2:
                return None
            child = bars.lister.get(ObjectKey("default", "child"))
            assert (0 if child is None else child["spec"]["size"]) == len(times)
            times.append(loop_time())
            await ctx.apply(applied(len(times)))
            return Result(requeue_after=0)

        controller = Controller(foos, reconcile, client=writer).owns(bars)
        for informer in missed:
            controller.watches(informer, lambda obj: [])
        async with controller, asyncio.timeout(8):
            await wait_until(lambda: len(times) == 3)
            assert controller.health.failed_runs == 0
