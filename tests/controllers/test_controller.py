"""A controller: what triggers runs, when they run, and what becomes of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextvars import ContextVar
from datetime import timedelta
from math import inf
from typing import Any, cast

import pytest
from msgspec import Struct

from aioinformer import (
    ALL_NAMESPACES,
    Controller,
    ItemExponential,
    KubeObject,
    ObjectKey,
    Priority,
    Problem,
    Reason,
    Reconcile,
    ReconcileContext,
    Result,
    SharedInformerFactory,
    changed,
    field,
)
from aioinformer.errors import (
    HandlerCancelled,
    NotRunning,
    PermanentError,
    ReconcileTimeout,
    SyncTimeout,
    TemporaryError,
    UsageError,
)
from aioinformer.metrics import Metrics
from aioinformer.testing import ClusterSource, Faults
from tests.controllers.reconcilers import (
    BARS,
    DOUBLING_LIMITER,
    FOOS,
    REALMS,
    NoteRecorder,
    RecordingReconciler,
    body_with_owner,
    create_foo,
    foo_informer,
    key,
    loop_time,
    make_cluster,
    run_simulated,
    running_factory,
    update_foo,
    wait_until,
)


class RunResults(Metrics):
    """The results of the runs, in order."""

    def __init__(self) -> None:
        self.results = list[str]()

    def reconciled(self, controller: str, result: str, seconds: float) -> None:
        self.results.append(result)


def doubling() -> ItemExponential:
    return ItemExponential(1.0, 100.0)


# -- triggers ---------------------------------------------------------------------------------


def test_every_cached_object_is_reconciled_and_every_change_after_that() -> None:
    cluster, diary = make_cluster("a", "b"), RecordingReconciler()

    async def main() -> None:
        async with foo_informer(cluster) as foos, Controller(foos, diary):
            await asyncio.sleep(1)
            assert sorted(diary.names) == ["a", "b"]
            update_foo(cluster, "a", size=2)
            await asyncio.sleep(1)
            create_foo(cluster, "c")
            await asyncio.sleep(1)

    run_simulated(main)
    assert diary.names[2:] == ["a", "c"]
    assert diary.causes == [["initial"], ["initial"], ["updated"], ["added"]]


def test_the_key_of_a_deleted_object_is_reconciled_without_the_object_in_the_cache() -> None:
    cluster, seen = make_cluster("a"), list[object]()

    async def main() -> None:
        async with foo_informer(cluster) as foos:

            async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
                seen.append((ctx.reasons[0].cause, foos.lister.get(key) is None))

            async with Controller(foos, reconcile):
                await asyncio.sleep(1)
                cluster.delete(FOOS, "a")
                await asyncio.sleep(1)

    run_simulated(main)
    assert seen == [("initial", False), ("deleted", True)]


def test_a_run_sees_a_cache_at_least_as_new_as_the_event() -> None:
    cluster, sizes = make_cluster("a"), list[int]()

    async def main() -> None:
        async with foo_informer(cluster) as foos:

            async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
                sizes.append(foos.lister[key]["spec"].get("size", 0))

            async with Controller(foos, reconcile):
                for size in range(1, 20):
                    await asyncio.sleep(1)
                    update_foo(cluster, "a", size=size)
                await asyncio.sleep(1)

    run_simulated(main)
    assert sizes == list(range(20))


def test_only_an_event_that_passes_the_filter_is_a_trigger() -> None:
    cluster, diary = make_cluster("a"), RecordingReconciler()

    async def main() -> None:
        async with (
            foo_informer(cluster) as foos,
            Controller(foos, diary, filter=changed("spec.size")),
        ):
            await asyncio.sleep(1)
            update_foo(cluster, "a", colour="red")
            await asyncio.sleep(1)
            update_foo(cluster, "a", size=2)
            await asyncio.sleep(1)

    run_simulated(main)
    assert diary.causes == [["initial"], ["updated"]]


def test_an_owner_is_reconciled_when_an_object_that_it_controls_changes() -> None:
    cluster, diary = make_cluster("a", "b"), RecordingReconciler()

    async def main() -> None:
        async with running_factory(cluster) as informers:
            bars = informers.informer(BARS)
            async with Controller(informers.informer(FOOS), diary).owns(bars):
                await asyncio.sleep(1)
                del diary.runs[:], diary.contexts[:]
                cluster.create(BARS, body_with_owner("child", "a"))
                await asyncio.sleep(1)
                cluster.create(BARS, body_with_owner("stranger", "a", controller=False))
                await asyncio.sleep(1)
                cluster.delete(BARS, "child")
                await asyncio.sleep(1)

    run_simulated(main)
    assert diary.names == ["a", "a"]
    assert [each.reasons for each in diary.contexts] == [
        (Reason("added", "bars.samples.example.com"),),
        (Reason("deleted", "bars.samples.example.com"),),
    ]


def test_a_child_that_gets_another_owner_triggers_both_owners() -> None:
    cluster, diary = make_cluster("a", "b"), RecordingReconciler()
    cluster.create(BARS, body_with_owner("child", "a"))

    async def main() -> None:
        async with running_factory(cluster) as informers:
            bars = informers.informer(BARS)
            async with Controller(informers.informer(FOOS), diary).owns(bars):
                await asyncio.sleep(1)
                del diary.runs[:]
                cluster.merge_patch(BARS, "child", body_with_owner("child", "b"))
                await asyncio.sleep(1)

    run_simulated(main)
    assert sorted(diary.names) == ["a", "b"]


def test_a_cluster_scoped_owner_is_found_from_any_namespace() -> None:
    cluster, diary = make_cluster(), RecordingReconciler()
    cluster.create(REALMS, {"metadata": {"name": "r"}})

    async def main() -> None:
        async with (
            running_factory(cluster) as informers,
            Controller(informers.informer(REALMS), diary).owns(informers.informer(BARS)),
        ):
            await asyncio.sleep(1)
            cluster.create(BARS, body_with_owner("child", "r", REALMS), namespace="web")
            await asyncio.sleep(1)

    run_simulated(main)
    assert diary.names == ["r", "r"]


async def test_a_namespaced_object_can_not_own_a_cluster_scoped_object() -> None:
    async with running_factory(make_cluster()) as informers:
        controller = Controller(informers.informer(FOOS), RecordingReconciler())
        with pytest.raises(UsageError, match="cluster-scoped"):
            controller.owns(informers.informer(REALMS))


def by_colour(obj: KubeObject) -> Sequence[str]:
    return [f"default/{obj['spec']['colour']}"]


def test_watched_objects_trigger_the_keys_that_the_program_returns() -> None:
    cluster, diary = make_cluster(), RecordingReconciler()
    cluster.create(BARS, {"metadata": {"name": "x"}, "spec": {"colour": "red"}})

    async def main() -> None:
        async with running_factory(cluster) as informers:
            controller = Controller(informers.informer(FOOS), diary)
            async with controller.watches(informers.informer(BARS), by_colour):
                await asyncio.sleep(1)
                cluster.merge_patch(BARS, "x", {"spec": {"colour": "blue"}})
                await asyncio.sleep(1)

    run_simulated(main)
    assert diary.names[0] == "red"
    assert sorted(diary.names[1:]) == ["blue", "red"]


@pytest.mark.parametrize("reader", ["to_keys", "the filter of a trigger", "the own filter"])
def test_functions_of_triggers_read_caches_that_are_complete(
    reader: str, caplog: pytest.LogCaptureFixture
) -> None:
    cluster, diary, problems = make_cluster(), RecordingReconciler(), list[Problem]()
    for name in ("a", "b"):
        create_foo(cluster, name, colour="red")
        cluster.create(BARS, {"metadata": {"name": name}, "spec": {"colour": "red"}})
    faults = Faults()
    faults.latency(5 if reader != "the own filter" else 0, resource=FOOS, times=1)
    faults.latency(5 if reader == "the own filter" else 0, resource=BARS, times=1)

    async def main() -> None:
        source = ClusterSource(cluster, faults)
        async with SharedInformerFactory(source, on_error=problems.append) as informers:
            colour = {"colour": field("spec.colour")}
            foos = informers.informer(FOOS, indexers=colour)
            bars = informers.informer(BARS, indexers=colour)

            def matching(obj: KubeObject) -> list[ObjectKey]:
                other = bars if obj.kind == "Foo" else foos
                return [each.key for each in other.lister.by_index("colour", "red")]

            it = Controller(
                foos,
                diary,
                filter=matching if reader == "the own filter" else None,
                on_error=problems.append,
            )
            chosen = matching if reader == "the filter of a trigger" else None
            async with it.watches(bars, matching, filter=chosen):
                await asyncio.sleep(2)
                assert it.state == "syncing"
                await it.wait_synced(timeout=30)
                await asyncio.sleep(1)
                assert loop_time() < 10

    run_simulated(main)
    assert (problems, caplog.records) == ([], [])
    assert sorted(diary.names) == ["a", "b"]


def test_a_key_can_be_a_name_if_the_informer_has_one_namespace() -> None:
    cluster, diary = make_cluster(), RecordingReconciler()
    cluster.create(BARS, {"metadata": {"name": "x"}})

    async def main() -> None:
        source = ClusterSource(cluster)
        async with SharedInformerFactory(source, namespace="default") as informers:
            foos, bars = (
                informers.informer(FOOS),
                informers.informer(BARS, namespace=ALL_NAMESPACES),
            )
            async with Controller(foos, diary).watches(bars, lambda obj: [obj.name]) as it:
                await asyncio.sleep(1)
                it.trigger("y")
                await asyncio.sleep(1)

    run_simulated(main)
    assert diary.names == ["x", "y"]
    assert diary.causes == [["initial"], ["request"]]


def test_an_exception_in_to_keys_omits_only_the_keys_of_that_state(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster, diary, problems = make_cluster(), RecordingReconciler(), list[Problem]()
    own = list[Problem]()
    cluster.create(BARS, {"metadata": {"name": "good"}, "spec": {"colour": "red"}})
    cluster.create(BARS, {"metadata": {"name": "bad"}, "spec": {}})

    async def main() -> None:
        source = ClusterSource(cluster)
        async with SharedInformerFactory(source, on_error=problems.append) as informers:
            bars = informers.informer(BARS)
            controller = Controller(informers.informer(FOOS), diary, on_error=own.append, name="it")
            async with controller.watches(bars, by_colour):
                await asyncio.sleep(1)
                assert diary.names == ["red"]
                cluster.merge_patch(BARS, "bad", {"spec": {"colour": "blue"}})
                await asyncio.sleep(1)
                (registration,) = bars.registrations
                assert registration.statistics().errors == 2

    run_simulated(main)
    assert diary.names == ["red", "blue"]
    assert [type(each.error) for each in problems] == [KeyError, KeyError]
    assert [(each.phase, each.cause) for each in own] == [("trigger", "it")] * 2
    assert "raised at Added of <Bar default/bad" in caplog.text


def test_a_string_instead_of_a_list_of_keys_is_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster, diary = make_cluster(), RecordingReconciler()
    cluster.create(BARS, {"metadata": {"name": "x"}})

    async def main() -> None:
        async with running_factory(cluster) as informers:
            controller = Controller(informers.informer(FOOS), diary)
            async with controller.watches(informers.informer(BARS), lambda obj: obj.name):
                await asyncio.sleep(1)

    run_simulated(main)
    assert diary.runs == []
    assert "must return a list of keys, not 'x'" in caplog.text


async def test_wrong_arguments_are_rejected_when_they_are_given() -> None:
    async def later(obj: KubeObject) -> list[str]:
        return [obj.name]

    async def sync(key: ObjectKey) -> None: ...

    async with running_factory(make_cluster()) as informers:
        foos, diary = informers.informer(FOOS), RecordingReconciler()
        with pytest.raises(TypeError, match="is async"):
            Controller(foos, diary).watches(foos, later)  # type: ignore[arg-type] # on purpose
        with pytest.raises(TypeError, match="function of an object"):
            Controller(foos, diary).watches(foos, "name")  # type: ignore[arg-type] # on purpose
        with pytest.raises(TypeError, match="a filter is"):
            Controller(foos, diary, filter="name")  # type: ignore[arg-type] # on purpose
        with pytest.raises(TypeError, match="async function of a key"):
            Controller(foos, "reconcile")  # type: ignore[arg-type] # on purpose
        with pytest.raises(TypeError, match=r"sync\(key: .* called as \(key, ctx\): too many"):
            Controller(foos, sync)  # type: ignore[arg-type] # on purpose
        with pytest.raises(TypeError, match=r"takes an informer, .* not 'foos'"):
            Controller("foos", diary)
        with pytest.raises(TypeError, match=r"takes an informer, .* not 'bars'"):
            Controller(foos, diary).owns("bars")  # type: ignore[arg-type] # on purpose
        with pytest.raises(TypeError, match=r"takes an informer, .* not 'bars'"):
            Controller(foos, diary).watches("bars", str)  # type: ignore[arg-type] # on purpose
        with pytest.raises(TypeError, match=r"is to be called as \(obj\): too many"):
            Controller(foos, diary).watches(foos, lambda: [""])  # type: ignore[misc,arg-type] # too
        with pytest.raises(ValueError, match="concurrency must be at least 1"):
            Controller(foos, diary, concurrency=0)
        with pytest.raises(ValueError, match="timeout must be seconds"):
            Controller(foos, diary, timeout=0)
        async with Controller(foos, diary) as it:
            with pytest.raises(UsageError, match="has started"):
                it.owns(informers.informer(BARS))
            with pytest.raises(UsageError, match="runs once"):
                await it.run()
        with pytest.raises(NotRunning, match="has stopped"):
            it.trigger(key("a"))


class Spec(Struct, frozen=True):
    colour: str = ""


class Coloured(Struct, frozen=True, gc=False):
    spec: Spec


def of_its_colour(obj: Coloured) -> list[str]:
    return [f"default/{obj.spec.colour}"]


def test_filters_and_to_keys_of_informers_with_models_receive_models() -> None:
    cluster, diary = make_cluster("a"), RecordingReconciler()
    cluster.create(BARS, {"metadata": {"name": "x"}, "spec": {"colour": "red"}})

    async def main() -> None:
        async with running_factory(cluster) as informers:
            foos = informers.informer(FOOS, model=Coloured)
            bars = informers.informer(BARS, model=Coloured)
            controller = Controller(foos, diary, filter=lambda foo: foo.spec.colour != "dull")
            with pytest.raises(UsageError, match=r"owns\(\) reads ownerReferences") as raised:
                controller.owns(bars)
            assert str(raised.value).endswith(
                "model= keeps none: use convert= in place of model= for the informer of "
                f"{bars.name}, or watches() in place of owns()"
            )
            async with controller.watches(bars, of_its_colour):
                await asyncio.sleep(1)
                create_foo(cluster, "b", colour="dull")
                cluster.delete(FOOS, "a")
                await asyncio.sleep(1)

    run_simulated(main)
    assert sorted(diary.names) == ["a", "a", "red"]


def colour_of(obj: KubeObject) -> str:
    colour: str = obj["spec"]["colour"]
    return colour


def test_a_key_is_reconciled_although_its_object_can_not_be_converted() -> None:
    """Each read of the object raises the error until the object is corrected.

    What it owns is found without converting it.
    """
    cluster = make_cluster("a")
    cluster.create(BARS, body_with_owner("child", "a"))
    read = list[str]()

    async def main() -> None:
        async with running_factory(cluster) as informers:
            foos = informers.informer(FOOS, convert=colour_of)
            bars = informers.informer(BARS, convert=colour_of)

            async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
                read.append(foos.lister[key])

            async with Controller(foos, reconcile, backoff=doubling()).owns(bars) as it:
                await asyncio.sleep(5)
                failing = it.failing(key("a"))
                assert failing is not None
                assert failing.error.startswith("ModelMismatch")
                update_foo(cluster, "a", colour="red")
                await asyncio.sleep(5)
                assert it.failing(key("a")) is None
                cluster.merge_patch(BARS, "child", {"spec": {"size": 1}})
                await asyncio.sleep(1)

    run_simulated(main)
    assert read == ["red", "red", "red"]  # the change, the retry that was due, the child


def test_a_resync_reconciles_all_again_at_low_priority() -> None:
    cluster, diary = make_cluster("a"), RecordingReconciler()

    async def main() -> None:
        async with foo_informer(cluster) as foos, Controller(foos, diary, resync=60):
            await asyncio.sleep(130)

    run_simulated(main)
    assert diary.causes == [["initial"], ["resync"], ["resync"]]
    assert {each.priority for each in diary.contexts} == {Priority.LOW}


# -- one run of a key after the other ---------------------------------------------------------


def test_events_during_a_run_lead_to_exactly_one_more_run() -> None:
    cluster, diary = make_cluster("a"), RecordingReconciler(duration=10)

    async def main() -> None:
        async with foo_informer(cluster) as foos, Controller(foos, diary):
            await asyncio.sleep(1)
            for size in range(5):
                update_foo(cluster, "a", size=size)
                await asyncio.sleep(1)
            await asyncio.sleep(30)

    run_simulated(main)
    assert diary.times == [0.0, 10.0]
    assert diary.max_active_runs == 1


def test_as_many_keys_as_there_are_workers_are_reconciled_at_once() -> None:
    cluster, diary = make_cluster(*"abcdef"), RecordingReconciler(duration=10)

    async def main() -> None:
        async with foo_informer(cluster) as foos, Controller(foos, diary, concurrency=2):
            await asyncio.sleep(100)

    run_simulated(main)
    assert diary.times == [0.0, 0.0, 10.0, 10.0, 20.0, 20.0]


def test_a_fresh_event_overtakes_ten_thousand_initial_ones() -> None:
    cluster, diary = (
        make_cluster(*(f"foo-{i}" for i in range(10_000))),
        RecordingReconciler(duration=0.01),
    )

    async def main() -> None:
        async with foo_informer(cluster) as foos, Controller(foos, diary, concurrency=1) as it:
            await it.wait_synced(30)
            await asyncio.sleep(1)
            update_foo(cluster, "foo-9999", size=1)
            at = loop_time()
            await wait_until(lambda: "foo-9999" in diary.names)
            assert loop_time() - at < 0.1
            it.stop()

    run_simulated(main)
    assert len(diary.runs) < 200
    fresh = diary.contexts[diary.names.index("foo-9999")]
    assert fresh.priority is Priority.NORMAL
    assert fresh.because("initial")
    assert fresh.because("updated")


def test_workers_start_when_all_triggers_have_received_the_cached_objects() -> None:
    cluster, seen = make_cluster("a"), list[int]()
    for i in range(1000):
        cluster.create(BARS, body_with_owner(f"child-{i}", "a"))

    async def main() -> None:
        async with running_factory(cluster) as informers:
            foos, bars = informers.informer(FOOS), informers.informer(BARS)

            async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
                seen.append(len(bars.lister))

            async with Controller(foos, reconcile).owns(bars):
                await asyncio.sleep(5)

    run_simulated(main)
    assert seen == [1000]


# -- what a run answers, and what it raises ---------------------------------------------------


def test_a_key_that_fails_is_tried_again_with_backoff_until_it_succeeds() -> None:
    cluster = make_cluster("a")
    diary = RecordingReconciler(results=[ValueError("no")] * 4)

    async def main() -> None:
        async with foo_informer(cluster) as foos, Controller(foos, diary, backoff=doubling()):
            await asyncio.sleep(100)
            diary.results.append(ValueError("again"))
            update_foo(cluster, "a", size=1)
            await asyncio.sleep(100)

    run_simulated(main)
    assert diary.times == [0.0, 1.0, 3.0, 7.0, 15.0, 100.0, 101.0]  # forgotten after success
    assert [each.retries for each in diary.contexts] == [0, 1, 2, 3, 4, 0, 1]
    assert diary.causes[1:5] == [["retry"]] * 4


def test_a_failing_key_does_not_delay_other_keys() -> None:
    cluster = make_cluster()

    async def main() -> list[tuple[str, float]]:
        runs = list[tuple[str, float]]()

        async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
            runs.append((key.name, round(loop_time(), 3)))
            if key.name == "bad":
                raise ValueError("no")

        async with (
            foo_informer(cluster) as foos,
            Controller(foos, reconcile, concurrency=1, backoff=doubling()),
        ):
            await asyncio.sleep(1)
            create_foo(cluster, "bad")
            create_foo(cluster, "good")
            await asyncio.sleep(0.5)
        return runs

    assert sorted(run_simulated(main)) == [("bad", 1.0), ("good", 1.0)]


def test_an_event_reconciles_a_failing_key_at_once_and_its_backoff_continues() -> None:
    cluster = make_cluster("a")
    diary = RecordingReconciler(results=[ValueError("no")] * 3)

    async def main() -> None:
        async with foo_informer(cluster) as foos, Controller(foos, diary, backoff=doubling()):
            await asyncio.sleep(1.5)  # failed at 0 and at 1, to be tried again at 3
            update_foo(cluster, "a", size=1)
            await asyncio.sleep(100)

    run_simulated(main)
    assert diary.times == [0.0, 1.0, 1.5, 3.0]
    assert diary.causes == [["initial"], ["retry"], ["updated"], ["retry"]]


def test_the_earliest_of_several_requeue_times_is_used() -> None:
    cluster = make_cluster("a")
    answers = [Result(requeue_after=60), Result(requeue_after=10), Result(requeue_after=30)]
    diary = RecordingReconciler(results=[*answers])

    async def main() -> None:
        async with foo_informer(cluster) as foos, Controller(foos, diary):
            await asyncio.sleep(1)
            update_foo(cluster, "a", size=1)
            await asyncio.sleep(1)
            update_foo(cluster, "a", size=2)
            await asyncio.sleep(200)

    run_simulated(main)
    assert diary.times == [0.0, 1.0, 2.0, 11.0]
    assert diary.causes[-1] == ["requeue"]


def test_a_requeue_backs_off_without_being_a_failure() -> None:
    cluster = make_cluster("a")
    diary = RecordingReconciler(results=[Result(requeue=True)] * 3)

    async def main() -> None:
        async with (
            foo_informer(cluster) as foos,
            Controller(foos, diary, backoff=doubling()) as it,
        ):
            await asyncio.sleep(5)
            assert it.health.failing_keys == 0
            assert it.health.failed_runs == 0
            await asyncio.sleep(50)

    run_simulated(main)
    assert diary.times == [0.0, 1.0, 3.0, 7.0]
    assert [each.retries for each in diary.contexts] == [0, 0, 0, 0]


def test_requeue_after_zero_seconds_starts_a_run_at_once() -> None:
    cluster, diary = make_cluster("a"), RecordingReconciler(results=[Result(requeue_after=0)])

    async def main() -> None:
        async with foo_informer(cluster) as foos, Controller(foos, diary):
            await asyncio.sleep(5)

    run_simulated(main)
    assert diary.times == [0.0, 0.0]


def test_a_run_that_takes_too_long_is_cancelled_and_tried_again() -> None:
    cluster, problems = make_cluster("a"), list[Problem]()
    diary = RecordingReconciler(duration=1000)

    async def main() -> None:
        async with (
            foo_informer(cluster) as foos,
            Controller(
                foos, diary, timeout=5, backoff=doubling(), on_error=problems.append, name="it"
            ) as it,
        ):
            await asyncio.sleep(8)
            failing = it.failing(key("a"))
            assert failing is not None
            assert failing.error.startswith("ReconcileTimeout: it: the run of default/a took")
            diary.duration = 0
            await asyncio.sleep(20)

    run_simulated(main)
    assert diary.times == [0.0, 6.0, 13.0]
    assert diary.cancelled == ["a", "a"]
    assert [type(each.error) for each in problems] == [ReconcileTimeout] * 2
    assert problems[0].key == key("a")
    assert problems[0].retry_in == 1.0
    assert "reconcile of default/a it: ReconcileTimeout" in str(problems[0])


def test_a_run_that_ignores_its_cancellation_keeps_its_key_and_is_warned_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster, runs, ended = make_cluster("a"), list[float](), list[float]()

    async def stubborn(key: ObjectKey, ctx: ReconcileContext) -> None:
        runs.append(loop_time())
        try:
            await asyncio.sleep(1000 if len(runs) == 1 else 0)
        except asyncio.CancelledError:
            await asyncio.sleep(25)
        ended.append(loop_time())

    async def main() -> None:
        async with (
            foo_informer(cluster) as foos,
            Controller(foos, stubborn, timeout=5, backoff=doubling()),
        ):
            await asyncio.sleep(2)
            update_foo(cluster, "a", size=1)
            await asyncio.sleep(29)

    run_simulated(main)
    assert ended[0] == 30.0
    assert runs[:2] == [0.0, 30.0]
    assert "has not ended after 15 s, although it was cancelled" in caplog.text


def test_a_timeout_error_inside_the_reconciler_is_reported_as_it_is() -> None:
    cluster, problems = make_cluster("a"), list[Problem]()

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
        async with asyncio.timeout(1):
            await asyncio.sleep(10)

    async def main() -> None:
        async with (
            foo_informer(cluster) as foos,
            Controller(foos, reconcile, timeout=5, on_error=problems.append),
        ):
            await asyncio.sleep(1.001)

    run_simulated(main)
    assert type(problems[0].error) is TimeoutError


async def raise_cancelled(key: ObjectKey, ctx: ReconcileContext) -> None:
    raise asyncio.CancelledError


async def cancel_oneself(key: ObjectKey, ctx: ReconcileContext) -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)


@pytest.mark.parametrize("reconcile", [raise_cancelled, cancel_oneself])
def test_a_cancellation_of_the_reconcilers_own_is_a_failure(reconcile: Any) -> None:
    cluster, problems = make_cluster("a"), list[Problem]()

    async def main() -> None:
        async with foo_informer(cluster) as foos:
            controller = Controller(foos, reconcile, backoff=doubling(), on_error=problems.append)
            async with controller:
                await asyncio.sleep(4)
                assert controller.state == "running"
                assert controller.health.failed_runs == 3

    run_simulated(main)
    assert [type(each.error) for each in problems] == [HandlerCancelled] * 3


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5, "not 5: return Result(requeue_after=5) for another run after that time"),
        (2.5, "not 2.5: return Result(requeue_after=2.5) for"),
        (timedelta(seconds=30), "return Result(requeue_after=datetime.timedelta(seconds=30)) for"),
        (True, "not True: return Result(requeue=True) for another run with backoff, and None for"),
        (
            "done",
            "not 'done': return Result(requeue_after=30) for another run after 30 s, and None",
        ),
        (Result, "return Result(requeue_after=30) for another run after 30 s"),
    ],
)
def test_a_reconciler_that_returns_a_wrong_value_fails_with_a_clear_error(
    value: object, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def answers_nonsense(key: ObjectKey, ctx: ReconcileContext) -> object:
        return value

    cluster, nonsense = make_cluster("a"), cast("Reconcile", answers_nonsense)

    async def main() -> None:
        async with foo_informer(cluster) as foos, Controller(foos, nonsense) as it:
            await asyncio.sleep(0.001)
            failing = it.failing(key("a"))
            assert failing is not None
            assert "must return a Result or None, not " in failing.error

    run_simulated(main)
    assert "must return a Result or None, not " in caplog.text
    assert text in caplog.text


async def test_only_the_controllers_of_an_operator_accept_names_of_resources() -> None:
    name: Any = "foos"
    said = r"informers\.informer\('foos'\).*Operator\(client, name=\.\.\.\)\.controller"
    with pytest.raises(TypeError, match=said):
        Controller(name, RecordingReconciler())
    async with foo_informer(make_cluster()) as foos:
        controller = Controller(foos, RecordingReconciler())
        with pytest.raises(TypeError, match=said):
            controller.owns(name)
        with pytest.raises(TypeError, match=said):
            controller.watches(name, lambda obj: [])


# -- errors that only a change can end -----------------------------------------------------------


def test_a_permanent_error_is_not_retried_before_the_object_changes() -> None:
    cluster, problems = make_cluster("a"), list[Problem]()
    runs = RecordingReconciler(results=[PermanentError("no size"), None])

    async def main() -> None:
        async with (
            foo_informer(cluster) as foos,
            Controller(foos, runs, resync=30, on_error=problems.append) as it,
        ):
            await asyncio.sleep(200)
            assert runs.causes == [["initial"]]  # neither retries nor resyncs
            (failing,) = it.health.failing
            assert failing.permanent
            assert (failing.failures, failing.retry_in) == (1, inf)
            assert "no attempt before the object changes: PermanentError: no size" in str(failing)
            assert it.health.runs == 1
            update_foo(cluster, "a", size=2)
            await asyncio.sleep(1)
            assert runs.causes[1:] == [["updated"]]
            assert it.health.failing == ()

    run_simulated(main)
    assert [(each.phase, each.retry_in) for each in problems] == [("reconcile", None)]


def test_a_recorder_of_the_programs_own_receives_the_events_of_a_controller() -> None:
    events = NoteRecorder()

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
        ctx.event("Normal", "Checked", "it has no size")
        raise PermanentError("no size")

    async def main() -> None:
        async with (
            foo_informer(make_cluster("a")) as foos,
            Controller(foos, reconcile, events=events),
        ):
            await asyncio.sleep(1)

    run_simulated(main)
    assert events.notes == [
        ("a", "Normal", "Checked", "it has no size"),
        ("a", "Warning", "PermanentError", "PermanentError: no size"),
    ]


def test_a_permanent_error_of_a_deletion_is_reported_and_not_kept() -> None:
    """No event of a deleted object follows that would end the failure."""
    cluster, problems = make_cluster("a"), list[Problem]()
    runs = RecordingReconciler(results=[None, RuntimeError("once"), PermanentError("no")])

    async def main() -> None:
        async with (
            foo_informer(cluster) as foos,
            Controller(foos, runs, backoff=DOUBLING_LIMITER, on_error=problems.append) as it,
        ):
            await asyncio.sleep(1)
            cluster.delete(FOOS, "a", namespace="default")
            await asyncio.sleep(0.5)
            assert it.health.failing_keys == 1, "a deletion that is retried fails"
            await asyncio.sleep(100)
            assert it.health.failing == ()
            create_foo(cluster, "a")
            await asyncio.sleep(1)
            assert runs.contexts[-1].retries == 0

    run_simulated(main)
    assert runs.causes == [["initial"], ["deleted"], ["retry"], ["added"]]
    assert [each.retry_in for each in problems] == [1.0, None]


def test_a_failing_object_that_leaves_the_filter_fails_no_more_when_it_is_deleted() -> None:
    cluster = make_cluster("a")
    runs = RecordingReconciler(results=[PermanentError("no")] * 2)

    async def main() -> None:
        async with (
            foo_informer(cluster) as foos,
            Controller(foos, runs, filter=lambda foo: not foo["spec"]) as it,
        ):
            await asyncio.sleep(1)
            update_foo(cluster, "a", size=1)
            await asyncio.sleep(1)
            assert it.health.failing[0].failures == 2
            cluster.delete(FOOS, "a", namespace="default")
            await asyncio.sleep(1)
            assert it.health.failing == ()

    run_simulated(main)
    assert runs.causes == [["initial"], ["deleted"]], "the filter excludes the deletion"


def test_the_failures_of_an_excluded_object_that_is_deleted_during_a_run_still_count() -> None:
    cluster = make_cluster("a")
    runs = RecordingReconciler(results=[RuntimeError("no")] * 3, duration=2)

    async def main() -> None:
        async with (
            foo_informer(cluster) as foos,
            Controller(
                foos, runs, filter=lambda foo: bool(foo["spec"]), backoff=DOUBLING_LIMITER
            ) as it,
        ):
            it.trigger(key("a"))
            await wait_until(lambda: len(runs.runs) == 2)
            await asyncio.sleep(1)
            cluster.delete(FOOS, "a", namespace="default")
            await asyncio.sleep(60)

    run_simulated(main)
    assert [each.retries for each in runs.contexts] == [0, 1, 2, 3]


def test_a_child_and_a_request_start_a_run_after_a_permanent_error() -> None:
    cluster = make_cluster("a")
    runs = RecordingReconciler(results=[PermanentError("no")] * 3)

    async def main() -> None:
        async with running_factory(cluster) as informers:
            controller = Controller(informers.informer(FOOS), runs).owns(informers.informer(BARS))
            async with controller as it:
                await asyncio.sleep(1)
                cluster.create(BARS, body_with_owner("child", "a"))
                await asyncio.sleep(1)
                it.trigger(key("a"))
                await asyncio.sleep(1)
                assert it.health.failing[0].failures == 3

    run_simulated(main)
    assert runs.causes == [["initial"], ["added"], ["request"]]


def test_a_requeue_of_an_earlier_run_does_not_repeat_a_permanent_error() -> None:
    cluster = make_cluster("a")
    runs = RecordingReconciler(results=[Result(requeue_after=10), PermanentError("no")])

    async def main() -> None:
        async with foo_informer(cluster) as foos, Controller(foos, runs):
            await asyncio.sleep(5)
            update_foo(cluster, "a", size=2)
            await asyncio.sleep(100)

    run_simulated(main)
    assert runs.times == [0.0, 5.0]


# -- errors that name the time of their retry ----------------------------------------------------


def test_a_temporary_error_is_retried_after_its_own_time_and_counts_as_a_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster, problems, metrics = make_cluster("a"), list[Problem](), RunResults()
    runs = RecordingReconciler(
        results=[
            TemporaryError("the bucket is being created", requeue_after=30),
            TemporaryError("still", requeue_after=timedelta(minutes=2)),
            None,
        ]
    )

    async def main() -> None:
        async with (
            foo_informer(cluster) as foos,
            Controller(foos, runs, on_error=problems.append, metrics=metrics) as it,
        ):
            await asyncio.sleep(10)
            (failing,) = it.health.failing
            assert (failing.failures, failing.permanent) == (1, False)
            assert failing.retry_in == pytest.approx(20, abs=0.1)
            await asyncio.sleep(990)
            assert it.health.failing == ()

    run_simulated(main)
    assert runs.times == [0.0, 30.0, 150.0]
    assert runs.causes[1:] == [["retry"], ["retry"]]
    assert [each.retry_in for each in problems] == [30.0, 120.0]
    assert metrics.results == ["temporary_error", "temporary_error", "success"]
    (first, _) = [each for each in caplog.records if "failed (" in each.message]
    assert (first.levelno, first.exc_info) == (logging.WARNING, None)
    assert first.message.endswith(
        "a failed (1 in a row), retried in 30 s: TemporaryError: the bucket is being created"
    )


def test_a_temporary_error_leaves_the_backoff_as_it_is() -> None:
    cluster = make_cluster("a")
    runs = RecordingReconciler(
        results=[
            ValueError("1 s of backoff"),
            TemporaryError("no backoff", requeue_after=10),
            TemporaryError("2 s of backoff"),
            ValueError("4 s of backoff"),
            None,
        ]
    )

    async def main() -> None:
        async with foo_informer(cluster) as foos, Controller(foos, runs, backoff=doubling()):
            await asyncio.sleep(100)

    run_simulated(main)
    assert runs.times == [0.0, 1.0, 11.0, 13.0, 17.0]


def test_an_event_starts_a_run_before_the_time_of_a_temporary_error() -> None:
    cluster = make_cluster("a")
    runs = RecordingReconciler(results=[TemporaryError("later", requeue_after=60), None])

    async def main() -> None:
        async with foo_informer(cluster) as foos, Controller(foos, runs):
            await asyncio.sleep(5)
            update_foo(cluster, "a", size=2)
            await asyncio.sleep(5)

    run_simulated(main)
    assert runs.times == [0.0, 5.0]


# -- programming errors --------------------------------------------------------------------------


@pytest.mark.parametrize("make_error", [TypeError, AttributeError, NameError, KeyError])
def test_a_programming_error_is_retried_with_backoff_and_visible(
    make_error: type[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    cluster, metrics = make_cluster("a"), RunResults()
    runs = RecordingReconciler(results=[make_error("size")] * 3)

    async def main() -> None:
        async with (
            foo_informer(cluster) as foos,
            Controller(foos, runs, backoff=doubling(), metrics=metrics) as it,
        ):
            await asyncio.sleep(3.5)
            (failing,) = it.health.failing
            assert (failing.key, failing.failures) == (key("a"), 3)
            assert failing.error.startswith(make_error.__name__)
            await asyncio.sleep(10)

    run_simulated(main)
    assert runs.times == [0.0, 1.0, 3.0, 7.0]  # no spinning
    assert metrics.results == ["error", "error", "error", "success"]
    first = next(each for each in caplog.records if "failed (1 in a row)" in each.message)
    assert first.levelno == logging.ERROR
    assert first.exc_info is not None
    assert str(key("a")) in first.message


def test_an_exception_in_the_error_hook_does_not_affect_the_runs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster, diary = make_cluster("a"), RecordingReconciler(results=[ValueError("no")])

    def hook(problem: Problem) -> None:
        raise RuntimeError("the hook is broken")

    async def main() -> None:
        async with foo_informer(cluster) as foos, Controller(foos, diary, on_error=hook):
            await asyncio.sleep(10)

    run_simulated(main)
    assert len(diary.runs) == 2
    assert "the error hook raised when it was called with" in caplog.text


REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="none")


def test_each_run_has_a_copy_of_the_context_of_the_start() -> None:
    cluster, seen = make_cluster("a"), list[str]()

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> Result | None:
        seen.append(REQUEST_ID.get())
        REQUEST_ID.set("of a run")
        return Result(requeue_after=1) if len(seen) < 3 else None

    async def main() -> None:
        async with foo_informer(cluster) as foos:
            REQUEST_ID.set("of the start")
            async with Controller(foos, reconcile, concurrency=1):
                REQUEST_ID.set("of later")
                await asyncio.sleep(10)

    run_simulated(main)
    assert seen == ["of the start"] * 3


# -- health -----------------------------------------------------------------------------------


def test_health_shows_failing_running_and_waiting_keys() -> None:
    cluster = make_cluster("a")
    diary = RecordingReconciler(results=[ValueError("no"), ValueError("never")])

    async def main() -> None:
        async with foo_informer(cluster) as foos:
            it = Controller(foos, diary, backoff=doubling(), name="it")
            states = [it.health.state]
            assert repr(it) == "<Controller it new triggers=1 running=0 waiting=0 failing=0>"
            async with it:
                await it.wait_synced(5)
                states.append(it.health.state)
                await asyncio.sleep(2)
                health = it.health
                assert (health.state, health.runs, health.failed_runs) == ("running", 2, 2)
                (failing,) = health.failing
                assert (failing.key, failing.error) == (key("a"), "ValueError: never")
                assert (failing.failures, failing.since, failing.retry_in) == (2, 2.0, 1.0)
                assert (health.waiting, health.queue.delayed) == (1, 1)
                assert "1 key failing, such as default/a failed 2 times" in str(health)
                diary.duration = 10
                await asyncio.sleep(5)
                assert it.health.running == {key("a"): 4.0}
                await asyncio.sleep(10)
                assert (it.health.failing_keys, it.failing(key("a"))) == (0, None)
            assert [*states, it.health.state] == ["new", "running", "stopped"]

    run_simulated(main)


def test_health_lists_a_hundred_failing_keys_and_counts_the_rest() -> None:
    cluster = make_cluster(*(f"foo-{i}" for i in range(150)))

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
        raise ValueError("no")

    async def main() -> None:
        async with (
            foo_informer(cluster) as foos,
            Controller(foos, reconcile, backoff=doubling()) as it,
        ):
            await asyncio.sleep(0.5)
            assert (len(it.health.failing), it.health.failing_keys) == (100, 150)
            for i in range(150):
                cluster.delete(FOOS, f"foo-{i}")

    run_simulated(main)


def test_a_reconciler_that_always_raises_logs_one_traceback_a_second(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = make_cluster(*(f"foo-{i}" for i in range(50)))

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
        raise ValueError("no")

    async def main() -> None:
        async with (
            foo_informer(cluster) as foos,
            Controller(foos, reconcile, backoff=doubling()),
        ):
            await asyncio.sleep(0.5)

    run_simulated(main)
    failures = [each for each in caplog.records if "failed" in each.message]
    assert len(failures) == 50
    assert sum(each.exc_info is not None for each in failures) == 1


async def test_the_error_of_wait_synced_contains_the_state_of_the_informer() -> None:
    faults = Faults()
    faults.stall(resource=FOOS.plural)
    async with (
        SharedInformerFactory(ClusterSource(make_cluster(), faults)) as informers,
        Controller(informers.informer(FOOS), RecordingReconciler(), name="it") as it,
    ):
        await wait_until(lambda: it.informer.health.state == "listing")
        with pytest.raises(SyncTimeout, match="listing for"):
            await it.wait_synced(0.01)
        assert it.health.waiting_for == (it.informer.name,)
    with pytest.raises(NotRunning, match="has ended"):
        await it.wait_synced(1)


def test_a_request_that_failed_is_a_warning_without_a_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = make_cluster("a")
    caplog.set_level(logging.INFO, "aioinformer.controller")

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
        cluster.create(FOOS, {"metadata": {"name": "a"}})

    async def main() -> None:
        async with foo_informer(cluster) as foos, Controller(foos, reconcile, backoff=doubling()):
            await asyncio.sleep(0.5)

    run_simulated(main)
    (record, *_) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.exc_info is None
    assert "AlreadyExists" in record.message
