"""A controller with a finalizer: added first, cleaned up, removed, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from aioinformer import (
    Controller,
    KubeObject,
    ObjectKey,
    ReconcileContext,
    Resource,
    Result,
    Scope,
    Shard,
    SharedInformer,
    SharedInformerFactory,
    changed,
    labelled,
)
from aioinformer.errors import NotFound, PermanentError, UsageError
from aioinformer.testing import Cluster, ClusterSource, Faults
from tests.controllers.reconcilers import (
    BACKOFF,
    BARS,
    FOOS,
    NoteRecorder,
    RecordingReconciler,
    body_with_owner,
    create_foo,
    key,
    loop_time,
    make_cluster,
    run_simulated,
    update_foo,
    wait_until,
)

OURS = "example.com/cleanup"
THEIRS = "example.com/theirs"
NEWER_FOOS = Resource("samples.example.com", "v2", "foos", "Foo")


class Finalizing:
    """A cluster, a controller with a finalizer, and a record of what it does."""

    def __init__(self, cluster: Cluster, faults: Faults | None = None) -> None:
        self.cluster = cluster
        self.source = ClusterSource(cluster, faults or Faults())
        self.reconciled = RecordingReconciler()
        self.cleaned = RecordingReconciler()
        self.seen = list[list[str]]()
        """The finalizers that each reconcile has seen in the cache."""

    @asynccontextmanager
    async def running(self, **keywords: Any) -> AsyncGenerator[Controller]:
        async with SharedInformerFactory(self.source, backoff=BACKOFF) as informers:
            foos, bars = informers.informer(FOOS), informers.informer(BARS)
            self.foos: SharedInformer = foos
            controller = Controller(
                foos,
                self.reconcile,
                finalizer=OURS,
                cleanup=self.cleaned,
                client=self.source,
                **keywords,
            )
            async with controller.owns(bars):
                yield controller

    async def reconcile(self, key: ObjectKey, ctx: ReconcileContext) -> Result | None:
        obj = self.foos.lister.get(key)
        if obj is not None:
            assert obj.deletion_timestamp is None
            self.seen.append(list(obj["metadata"].get("finalizers") or ()))
        return await self.reconciled(key, ctx)

    def finalizers(self, name: str = "a") -> list[str]:
        found = self.cluster.get(FOOS, name, namespace="default")
        return list(found["metadata"].get("finalizers") or ())

    def exists(self, name: str = "a") -> bool:
        return any(each["metadata"]["name"] == name for each in self.cluster.objects(FOOS))

    def delete(self, name: str = "a") -> None:
        self.cluster.delete(FOOS, name, namespace="default")

    def set_finalizers(self, *finalizers: str, name: str = "a") -> None:
        patch = {"metadata": {"finalizers": list(finalizers)}}
        self.cluster.merge_patch(FOOS, name, patch, namespace="default")


def test_the_finalizer_is_there_before_the_first_reconcile() -> None:
    it = Finalizing(make_cluster("a"))

    async def main() -> None:
        async with it.running():
            await asyncio.sleep(1)
            create_foo(it.cluster, "b")
            await asyncio.sleep(1)

    run_simulated(main)
    assert it.seen
    assert all(each == [OURS] for each in it.seen)
    assert it.finalizers("a") == it.finalizers("b") == [OURS]
    assert it.cleaned.names == []


def test_a_deleted_object_is_removed_after_its_cleanup() -> None:
    it = Finalizing(make_cluster("a"))

    async def main() -> None:
        async with it.running() as controller:
            await asyncio.sleep(1)
            count = len(it.seen)
            it.delete()
            await asyncio.sleep(1)
            assert not it.exists()
            assert len(it.seen) == count  # never reconciled as a living object
            assert controller.health.failing == ()
            create_foo(it.cluster, "a")
            await asyncio.sleep(1)
            assert it.finalizers() == [OURS]

    run_simulated(main)
    assert it.cleaned.names == ["a"]


def test_a_controller_keeps_the_finalizers_of_other_controllers() -> None:
    it = Finalizing(make_cluster("a"))
    it.set_finalizers(THEIRS)

    async def main() -> None:
        async with it.running():
            await asyncio.sleep(1)
            assert it.finalizers() == [THEIRS, OURS]
            it.delete()
            await asyncio.sleep(1)
            assert it.finalizers() == [THEIRS]
            it.cluster.create(BARS, body_with_owner("child", "a"))  # another trigger
            await asyncio.sleep(1)
            it.set_finalizers()
            await asyncio.sleep(1)
            assert not it.exists()

    run_simulated(main)
    assert it.cleaned.names == ["a"]


def test_an_object_that_is_being_deleted_at_the_start_is_cleaned_up_only_with_our_entry() -> None:
    it = Finalizing(make_cluster("a", "b"))
    it.set_finalizers(THEIRS, name="a")
    it.set_finalizers(THEIRS, OURS, name="b")
    for name in "ab":
        it.delete(name)

    async def main() -> None:
        async with it.running():
            await asyncio.sleep(1)

    run_simulated(main)
    assert (it.reconciled.names, it.cleaned.names) == ([], ["b"])
    assert it.finalizers("a") == it.finalizers("b") == [THEIRS]


def test_a_failing_cleanup_is_retried_and_shown_and_never_skipped() -> None:
    it = Finalizing(make_cluster("a"))
    it.cleaned.results = [ValueError("not yet"), PermanentError("never"), ValueError("still"), None]
    events = NoteRecorder()

    async def main() -> None:
        async with it.running(events=events) as controller:
            await asyncio.sleep(1)
            it.delete()
            await wait_until(lambda: len(it.cleaned.names) == 2, every=0.001)
            failing = controller.failing(key("a"))
            assert failing is not None
            assert not failing.permanent
            assert it.finalizers() == [OURS]
            await wait_until(lambda: not it.exists())

    run_simulated(main)
    assert it.cleaned.names == ["a"] * 4
    assert [each[:3] for each in events.notes] == [("a", "Warning", "CleanupFailed")] * 3


def test_a_cleanup_that_returns_a_result_is_called_again() -> None:
    it = Finalizing(make_cluster("a"))
    it.cleaned.results = [Result(requeue_after=30), None]

    async def main() -> None:
        async with it.running():
            await asyncio.sleep(1)
            it.delete()
            await asyncio.sleep(20)
            assert it.exists()
            await asyncio.sleep(20)
            assert not it.exists()

    run_simulated(main)
    assert it.cleaned.times == [1.0, 31.0]


def test_a_conflict_with_another_writer_is_resolved_by_the_newest_object() -> None:
    it = Finalizing(make_cluster("a"))
    it.set_finalizers(THEIRS)

    async def main() -> None:
        async with it.running() as controller:
            await asyncio.sleep(1)
            it.cleaned.duration = 5
            it.delete()
            await asyncio.sleep(1)
            # The entry is the second of the state that the cleanup has begun with.
            it.set_finalizers(OURS)
            await asyncio.sleep(10)
            assert not it.exists()
            assert controller.health.failed_runs == 0

    run_simulated(main)
    assert it.cleaned.names == ["a"]


@pytest.mark.parametrize("seed", range(3))
def test_two_controllers_add_and_remove_their_entries_at_the_same_time(seed: int) -> None:
    cluster = make_cluster(*(f"foo-{number}" for number in range(20)))
    done = dict[str, list[str]]()

    async def nothing(key: ObjectKey, ctx: ReconcileContext) -> None:
        pass

    async def run_one(finalizer: str) -> None:
        source, cleaned = ClusterSource(cluster), done.setdefault(finalizer, [])

        async def cleanup(key: ObjectKey, ctx: ReconcileContext) -> None:
            cleaned.append(key.name)

        async with SharedInformerFactory(source, backoff=BACKOFF) as informers:
            await Controller(
                informers.informer(FOOS), nothing, finalizer=finalizer, cleanup=cleanup,
                client=source,
            ).run()  # fmt: skip

    def finalizers() -> list[set[str]]:
        return [set(each["metadata"].get("finalizers") or ()) for each in cluster.objects(FOOS)]

    async def main() -> None:
        tasks = [asyncio.create_task(run_one(each)) for each in (OURS, THEIRS)]
        await wait_until(lambda: all(each == {OURS, THEIRS} for each in finalizers()))
        for number in range(20):
            cluster.delete(FOOS, f"foo-{number}", namespace="default")
        await wait_until(lambda: not list(cluster.objects(FOOS)))
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    run_simulated(main, seed=seed)
    for cleaned in done.values():
        assert sorted(cleaned) == sorted(f"foo-{number}" for number in range(20))


def test_an_entry_that_could_not_be_written_is_written_later() -> None:
    faults = Faults()
    it = Finalizing(make_cluster("a"), faults)

    async def main() -> None:
        async with it.running() as controller:
            await controller.wait_synced()
            with faults.refuse():
                create_foo(it.cluster, "b")
                await asyncio.sleep(5)
                assert "b" not in it.reconciled.names
            await wait_until(lambda: "b" in it.reconciled.names)
            assert it.finalizers("b") == [OURS]

    run_simulated(main)


@pytest.mark.parametrize(
    "seed",
    [
        *range(4),
        *(pytest.param(seed, marks=pytest.mark.simulation) for seed in range(4, 8)),
    ],
)
def test_each_reconciled_object_is_cleaned_up_before_its_removal_despite_any_failures(
    seed: int,
) -> None:
    """The controller is replaced as after a crash, and requests and their answers are lost."""
    random, cluster = Random(seed), make_cluster()
    reconciled, cleaned, wrong = set[str](), set[str](), list[str]()

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
        if ctx.obj is not None:
            wrong.extend(["reconciled after its cleanup"] * (ctx.obj.uid in cleaned))
            wrong.extend(["reconciled while deleted"] * (ctx.obj.deletion_timestamp is not None))
            reconciled.add(ctx.obj.uid)
        await asyncio.sleep(random.random())
        if random.random() < 0.2:
            raise ValueError("no")

    async def cleanup(key: ObjectKey, ctx: ReconcileContext) -> None:
        obj = ctx.obj
        if obj is None:
            wrong.append("cleaned up without an object")
            return
        await asyncio.sleep(random.random())
        if random.random() < 0.3:
            raise ValueError("not yet")
        cleaned.add(obj.uid)

    async def operate(faults: Faults) -> None:
        source = ClusterSource(cluster, faults)
        async with SharedInformerFactory(source, backoff=BACKOFF) as informers:
            await Controller(
                informers.informer(FOOS), reconcile, finalizer=OURS, cleanup=cleanup, client=source,
            ).run()  # fmt: skip

    def present() -> dict[str, str]:
        found = cluster.objects(FOOS)
        return {each["metadata"]["name"]: each["metadata"]["uid"] for each in found}

    def change() -> None:
        """Create or delete an object, as users do."""
        name = random.choice("abcdef")
        if name not in present():
            create_foo(cluster, name)
        elif random.random() < 0.5:
            cluster.delete(FOOS, name, namespace="default")
        else:
            update_foo(cluster, name, size=random.random())

    async def main() -> None:
        faults = Faults(random=random)
        task = asyncio.create_task(operate(faults))
        for _ in range(60):
            change()
            await asyncio.sleep(random.random())
            assert reconciled <= cleaned | set(present().values())
            fault = random.choice([faults.refuse, faults.reset, None, None])
            if fault is not None:
                with fault():
                    await asyncio.sleep(3 * random.random())
            if random.random() < 0.1:
                task.cancel()
                await asyncio.wait({task})
                task = asyncio.create_task(operate(faults))
        for name in present():
            cluster.delete(FOOS, name, namespace="default")
        await wait_until(lambda: not present(), every=0.5)
        task.cancel()
        await asyncio.wait({task})

    run_simulated(main, seed=seed)
    assert wrong == []
    assert reconciled <= cleaned
    assert len(cleaned) > 10


def test_a_deleted_object_is_cleaned_up_although_a_filter_excludes_the_event() -> None:
    it = Finalizing(make_cluster("a"))

    async def main() -> None:
        async with it.running(filter=changed("spec")):
            await asyncio.sleep(1)
            it.delete()
            await asyncio.sleep(1)
            assert not it.exists()

    run_simulated(main)
    assert it.cleaned.names == ["a"]


def test_the_cleanup_does_not_overlap_a_reconcile_of_the_key() -> None:
    it = Finalizing(make_cluster("a"))
    it.reconciled.duration = 5

    async def main() -> None:
        async with it.running():
            await asyncio.sleep(1)
            it.delete()
            await wait_until(lambda: not it.exists())
            assert loop_time() >= 5.0

    run_simulated(main)
    assert it.cleaned.times[0] >= 5.0


def test_a_role_that_may_list_and_not_watch_suffices_for_a_finalizer() -> None:
    it = Finalizing(make_cluster("a"))
    it.source.faults.status(403, reason="Forbidden", verb="watch")

    async def main() -> None:
        async with it.running() as controller:
            await asyncio.sleep(20)
            assert it.seen
            assert all(each == [OURS] for each in it.seen)
            it.delete()
            await asyncio.sleep(120)
            assert not it.exists()
            assert controller.health.failed_runs == 0

    run_simulated(main)
    assert it.cleaned.names == ["a"]


def test_an_object_that_vanishes_during_the_cleanup_is_no_failure() -> None:
    it = Finalizing(make_cluster("a"))
    it.cleaned.duration = 5

    async def main() -> None:
        async with it.running() as controller:
            await asyncio.sleep(1)
            it.delete()
            await asyncio.sleep(1)
            it.set_finalizers()
            create_foo(it.cluster, "a")  # under the same name, and so another object
            await asyncio.sleep(10)
            assert controller.health.failed_runs == 0
            assert it.finalizers() == [OURS]

    run_simulated(main)


def test_a_cleanup_is_not_repeated_while_the_cache_lags() -> None:
    it = Finalizing(make_cluster("a"))
    it.cleaned.duration = 5

    async def main() -> None:
        async with it.running() as controller:
            await asyncio.sleep(1)
            it.delete()
            await asyncio.sleep(1)
            with it.source.faults.stall(verb="watch", after=0):
                it.set_finalizers()  # the object is gone when our entry is to be removed
                await asyncio.sleep(5)
                controller.trigger(key("a"))
                await asyncio.sleep(1)
                assert it.foos.lister.get(key("a")) is not None

    run_simulated(main)
    assert it.cleaned.names == ["a"]


def test_an_object_that_was_created_again_while_the_cache_lagged_is_cleaned_up_too() -> None:
    it = Finalizing(make_cluster("a"))
    it.cleaned.duration = 5

    async def main() -> None:
        async with it.running():
            await asyncio.sleep(1)
            it.delete()
            await asyncio.sleep(1)
            with it.source.faults.stall(verb="watch", after=0):
                await asyncio.sleep(5)
                assert not it.exists()
                metadata = {"name": "a", "finalizers": [OURS]}
                it.cluster.create(FOOS, {"metadata": metadata}, namespace="default")
                it.delete()
                await asyncio.sleep(1)
            await asyncio.sleep(120)
            assert not it.exists()

    run_simulated(main)
    assert it.cleaned.names == ["a", "a"]


@pytest.mark.parametrize("verb", ["patch", "get"])
def test_a_404_of_a_proxy_does_not_leave_an_object_with_its_finalizer(verb: Any) -> None:
    """The 404 doesn't name the object, so that the removal is repeated."""
    it = Finalizing(make_cluster("a"))
    faults = it.source.faults

    async def main() -> None:
        async with it.running() as controller:
            await asyncio.sleep(1)
            if verb == "get":
                faults.status(409, verb="patch", times=1)
            faults.status(404, plain=True, verb=verb, times=1)
            it.delete()
            await asyncio.sleep(30)
            assert not it.exists()
            assert controller.health.failing == ()

    run_simulated(main)
    assert it.cleaned.names == ["a", "a"]


def test_objects_with_convert_are_finalized() -> None:
    cluster, cleaned = make_cluster("a"), RecordingReconciler()

    def to_name(obj: KubeObject) -> str:
        return obj.key.name

    async def main() -> None:
        source = ClusterSource(cluster)
        async with SharedInformerFactory(source) as informers:
            foos = informers.informer(FOOS, convert=to_name)
            async with Controller(
                foos, RecordingReconciler(), finalizer=OURS, cleanup=cleaned, client=source
            ):
                await asyncio.sleep(1)
                cluster.delete(FOOS, "a", namespace="default")
                await asyncio.sleep(1)

    run_simulated(main)
    assert cleaned.names == ["a"]
    with pytest.raises(NotFound):
        cluster.get(FOOS, "a", namespace="default")


class ReadingSource:
    """A source that only lists and watches."""

    def __init__(self, source: ClusterSource) -> None:
        self.lister_watcher = source.lister_watcher


def plain(key: ObjectKey, ctx: ReconcileContext) -> None:
    """Clean up in a thread."""


@pytest.mark.parametrize(
    ("chosen", "text"),
    [
        ({"labels": "of=us"}, "the label selector of=us"),
        ({"labels": "!paused"}, "the label selector !paused"),
        ({"fields": "spec.color=red"}, "the field selector spec.color=red"),
        ({"namespaces": {"a": Scope(), "b": Scope(labels="of=us")}}, "the label selector of=us"),
        ({"namespaces": [], "labels": "of=us"}, "the label selector of=us"),
        ({"namespaces": labelled("team=us")}, "the namespaces that match labelled('team=us')"),
    ],
)
def test_a_finalizer_is_refused_for_an_informer_that_existing_objects_can_leave(
    chosen: dict[str, Any], text: str
) -> None:
    source = ClusterSource(make_cluster())
    foos = SharedInformerFactory(source).informer(FOOS, **chosen)
    cleanup, reconcile = RecordingReconciler(), RecordingReconciler()
    with pytest.raises(UsageError) as raised:
        Controller(foos, reconcile, finalizer=OURS, cleanup=cleanup)
    assert text in str(raised.value)
    assert "pass filter=" in str(raised.value)
    Controller(foos, reconcile)


@pytest.mark.parametrize(
    "chosen",
    [
        {"fields": "metadata.name=a"},
        {"namespaces": ["default"]},
        {"namespaces": {"default": Scope(fields="metadata.name!=b")}},
        {"shard": Shard(0, 2)},
    ],
)
def test_a_finalizer_is_accepted_where_only_deleted_objects_leave(chosen: dict[str, Any]) -> None:
    source = ClusterSource(make_cluster())
    foos = SharedInformerFactory(source).informer(FOOS, **chosen)
    reconcile = RecordingReconciler()
    Controller(foos, reconcile, finalizer=OURS, cleanup=RecordingReconciler())


@pytest.mark.parametrize("entered", [False, True])
def test_a_namespace_that_objects_can_leave_is_refused_for_a_controller_with_a_finalizer(
    entered: bool,
) -> None:
    async def main() -> None:
        source, runs = ClusterSource(make_cluster()), RecordingReconciler()
        async with SharedInformerFactory(source, backoff=BACKOFF) as informers:
            foos = informers.informer(FOOS, namespaces=["default"])
            it = Controller(foos, runs, name="it", finalizer=OURS, cleanup=runs)
            async with it if entered else asyncio.timeout(None):
                for scope in (Scope(labels="of=us"), Scope(fields="spec.colour=red")):
                    with pytest.raises(
                        UsageError, match=r"it has finalizer=.* selector .*=.*filter"
                    ):
                        foos.add_namespace("b", scope)
                foos.add_namespace("b", Scope(fields="metadata.name!=c"))
                foos.add_namespace("c")
            assert foos.namespaces == ("b", "c", "default")

    run_simulated(main)


SHARED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "one informer": ({}, {}, OURS),
    "two shapes": ({}, {"metadata_only": True}, OURS),
    "all namespaces and one": ({}, {"namespace": "default"}, OURS),
    "several namespaces": ({"namespaces": ["a", "b"]}, {"namespaces": ["b", "c"]}, OURS),
    "one object": ({"namespace": "a"}, {"fields": "metadata.name=a"}, OURS),
    "a shard": ({}, {"shard": Shard(0, 2)}, OURS),
    "two API versions": ({}, {"resource": NEWER_FOOS}, OURS),
}
DIVIDED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "two finalizers": ({}, {}, THEIRS),
    "two namespaces": ({"namespace": "a"}, {"namespaces": ["b", "c"]}, OURS),
    "two names": ({"fields": "metadata.name=a"}, {"fields": "metadata.name=b"}, OURS),
    "two shards": ({"shard": Shard(0, 2)}, {"shard": Shard(1, 2)}, OURS),
    "two resources": ({}, {"resource": BARS}, OURS),
}


@pytest.mark.parametrize(
    ("first", "second", "finalizer", "refused"),
    [*((*each, True) for each in SHARED.values()), *((*each, False) for each in DIVIDED.values())],
    ids=[*SHARED, *DIVIDED],
)
def test_two_controllers_with_one_finalizer_for_the_same_objects_are_refused(
    first: dict[str, Any], second: dict[str, Any], finalizer: str, refused: bool
) -> None:
    runs = RecordingReconciler()

    def controller(informers: SharedInformerFactory, chosen: Any, name: str, of: str) -> Controller:
        informer = informers.informer(**({"resource": FOOS} | chosen))
        return Controller(informer, runs, name=name, finalizer=of, cleanup=runs)

    async def main() -> None:
        cluster = make_cluster()
        cluster.add_resource(NEWER_FOOS)
        source = ClusterSource(cluster)
        async with (
            SharedInformerFactory(source) as informers,
            SharedInformerFactory(ClusterSource(cluster)) as others,  # another client
            SharedInformerFactory(ClusterSource(make_cluster())) as elsewhere,
        ):
            late = controller(others, second, "late", finalizer)
            async with (
                controller(informers, first, "one", OURS),
                controller(elsewhere, first, "in another cluster", OURS),
            ):
                two = controller(informers, second, "two", finalizer)
                if refused:
                    with pytest.raises(UsageError, match="the controllers one and two have the s"):
                        await two.run()
                    with pytest.raises(UsageError, match="the controllers one and late have the"):
                        await late.run()
                else:
                    async with two:
                        await asyncio.sleep(1)
            async with two if refused else controller(informers, second, "third", finalizer):
                await asyncio.sleep(1)

    run_simulated(main)


def test_an_object_that_has_left_the_filter_is_cleaned_up_nevertheless() -> None:
    it = Finalizing(make_cluster("a"))
    it.cluster.merge_patch(FOOS, "a", {"metadata": {"labels": {"of": "us"}}})

    async def main() -> None:
        async with it.running(filter=labelled("of=us")):
            await asyncio.sleep(1)
            it.cluster.merge_patch(FOOS, "a", {"metadata": {"labels": None}})
            await asyncio.sleep(1)
            it.delete()
            await asyncio.sleep(1)
            assert not it.exists()

    run_simulated(main)
    assert it.cleaned.names == ["a"]


@pytest.mark.parametrize("when", ["at once", "later", "when it is being deleted"])
def test_an_object_with_the_finalizer_that_a_transform_drops_is_named(
    when: str, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = make_cluster("a", "b", "c")
    cleaned = RecordingReconciler()
    for name in ("a", "c") if when == "at once" else "c":
        finalizers = [OURS, THEIRS] if name == "a" else [THEIRS]
        patch = {"metadata": {"finalizers": finalizers}, "spec": {"paused": True}}
        cluster.merge_patch(FOOS, name, patch)

    async def cleanup(key: ObjectKey, ctx: ReconcileContext) -> Result | None:
        await cleaned(key, ctx)
        return Result(requeue_after=10) if key.name == "a" else None

    def transform(obj: KubeObject) -> KubeObject | None:
        return None if obj["spec"].get("paused") else obj

    async def main() -> None:
        async with SharedInformerFactory(ClusterSource(cluster), backoff=BACKOFF) as informers:
            foos = informers.informer(FOOS, transform=transform)
            for term in range(2):
                reconcile = RecordingReconciler()
                async with Controller(foos, reconcile, name="it", finalizer=OURS, cleanup=cleanup):
                    await asyncio.sleep(1)
                    if term == 0:
                        cluster.delete(FOOS, "b", namespace="default")
                    if when == "when it is being deleted" and term == 0:
                        cluster.delete(FOOS, "a", namespace="default")
                        await asyncio.sleep(1)
                    update_foo(cluster, "a", paused=True, size=term)
                    await asyncio.sleep(1)

    run_simulated(main)
    assert sorted(cleaned.names) == (["a", "b"] if when == "when it is being deleted" else ["b"])
    assert [each for each in caplog.messages if "transform=" in each] == [
        "controller it: transform= drops default/a, which has the finalizer example.com/cleanup. "
        "While it is not cached, it is not cleaned up, and so can't be deleted: let transform= "
        "keep objects with this finalizer, and pass filter= to the controller"
    ]


async def test_wrong_arguments_are_rejected_at_once() -> None:
    source, runs = ClusterSource(make_cluster()), RecordingReconciler()
    async with SharedInformerFactory(source) as informers:
        foos = informers.informer(FOOS)
        with pytest.raises(TypeError, match="belong together"):
            Controller(foos, runs, finalizer=OURS, client=source)
        with pytest.raises(TypeError, match="belong together"):
            Controller(foos, runs, cleanup=runs, client=source)
        with pytest.raises(ValueError, match="a domain, a slash and a name"):
            Controller(foos, runs, finalizer="cleanup", cleanup=runs, client=source)
        reading = SharedInformerFactory(ReadingSource(source)).informer(FOOS)
        with pytest.raises(UsageError, match="pass client=client"):
            Controller(reading, runs, finalizer=OURS, cleanup=runs)
        with pytest.raises(TypeError, match="plain function"):
            Controller(foos, runs, finalizer=OURS, cleanup=plain, client=source)
        with pytest.raises(TypeError, match="client must be a Client, or None, not 5"):
            Controller(foos, runs, client=5)  # type: ignore[arg-type]
