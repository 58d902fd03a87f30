"""One run of a controller: its start, its end, and the reasons for its end."""

from __future__ import annotations

import asyncio
import logging

import pytest

from aioinformer import (
    Controller,
    ItemExponential,
    KubeObject,
    Metrics,
    ObjectKey,
    ReconcileContext,
    Result,
    SharedInformerFactory,
)
from aioinformer._core.instrumentation import ReadQueue
from aioinformer.controllers.lifecycle import PENDING_LIMIT
from aioinformer.errors import Forbidden, NotRunning, ShutdownIncomplete, UsageError
from aioinformer.testing import ClusterSource, Faults
from tests.controllers.reconcilers import (
    BARS,
    FOOS,
    RecordingReconciler,
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
from tests.leaderelection import electors


def tasks_left() -> set[str]:
    return {task.get_name() for task in asyncio.all_tasks()} - {
        task.get_name() for task in (asyncio.current_task(),) if task is not None
    }


async def within(controller: Controller, error: Exception) -> None:
    """Work for a second, and leave by an exception."""
    async with controller:
        await asyncio.sleep(1)
        raise error


def cancel(name: str) -> None:
    """Cancel the task of that name."""
    (task,) = [each for each in asyncio.all_tasks() if each.get_name() == name]
    task.cancel()


# -- leaving ----------------------------------------------------------------------------------


def test_a_controller_that_is_left_finishes_its_runs_and_starts_no_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "aioinformer.controller")
    cluster, diary = make_cluster(*"abcde"), RecordingReconciler(duration=5)

    async def main() -> None:
        async with foo_informer(cluster) as foos:
            async with Controller(foos, diary, concurrency=2, name="it") as it:
                await asyncio.sleep(1)
            assert loop_time() == 5.0
            assert it.state == "stopped"
            assert foos.registrations == ()
            assert it.health.waiting == 3
            create_foo(cluster, "f")
            await asyncio.sleep(10)

    run_simulated(main)
    assert len(diary.ended) == 2
    assert diary.cancelled == []
    assert (
        "controller it stopped: 0 runs cancelled, 3 waiting keys and 0 delayed keys" in caplog.text
    )
    assert caplog.records[-1].levelno == logging.INFO, "no run was cancelled, so nothing is lost"


@pytest.mark.parametrize("deaf", [False, True])
def test_runs_that_are_not_done_by_the_deadline_are_cancelled_and_named(deaf: bool) -> None:
    cluster, ends, cancelled = make_cluster("a", "b"), asyncio.Event(), list[str]()

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
        while not ends.is_set():
            try:
                await ends.wait()
            except asyncio.CancelledError:
                cancelled.append(key.name)
                if not deaf:
                    raise

    async def main() -> None:
        async with foo_informer(cluster) as foos:
            with pytest.raises(ShutdownIncomplete) as caught:
                async with Controller(foos, reconcile, shutdown_timeout=3, name="it"):
                    await asyncio.sleep(1)
            assert caught.value.left == ("it: default/a", "it: default/b")
            assert loop_time() == 4.0 + deaf  # one second to honour the cancellation
            ends.set()
            await asyncio.sleep(1)

    run_simulated(main)
    assert sorted(cancelled) == ["a", "b"]


def test_the_keys_of_a_failed_run_and_a_requeue_count_as_not_reconciled(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "aioinformer.controller")
    cluster = make_cluster("a", "b")
    diary = RecordingReconciler(duration=2, results=[ValueError("no"), Result(requeue_after=60)])

    async def main() -> None:
        async with foo_informer(cluster) as foos:
            async with Controller(foos, diary, name="it") as it:
                await asyncio.sleep(1)
            assert it.health.waiting == 2

    run_simulated(main)
    assert "0 waiting keys and 2 delayed keys not reconciled" in caplog.text


@pytest.mark.parametrize("before_the_start", [False, True])
def test_stop_ends_run_when_the_runs_are_over(before_the_start: bool) -> None:
    cluster, diary = make_cluster("a"), RecordingReconciler(duration=5)

    async def main() -> None:
        async with foo_informer(cluster) as foos:
            it = Controller(foos, diary)
            if before_the_start:
                it.stop()
            asyncio.get_running_loop().call_later(1, it.stop)
            await it.run()
            assert loop_time() == (0.0 if before_the_start else 5.0)

    run_simulated(main)
    assert diary.ended == ([] if before_the_start else ["a"])


def stalled_informers() -> SharedInformerFactory:
    """Return a factory whose lists never end."""
    faults = Faults()
    faults.stall(resource=FOOS.plural)
    return SharedInformerFactory(ClusterSource(make_cluster(), faults))


def test_a_controller_logs_that_its_informer_is_not_synced(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        async with (
            stalled_informers() as informers,
            Controller(informers.informer(FOOS), RecordingReconciler(), name="c"),
        ):
            await asyncio.sleep(40)

    run_simulated(main)
    (said,) = [
        each.message for each in caplog.records if "has not started its workers yet" in each.message
    ]
    assert said.startswith(
        "controller c has not started its workers yet: not synced after 30 s: foos.samples"
    )


async def test_running_a_controller_whose_factory_was_not_entered_is_an_error() -> None:
    cluster = make_cluster("a")
    informers, diary = SharedInformerFactory(ClusterSource(cluster)), RecordingReconciler()
    it = Controller(informers.informer(FOOS), diary, name="c")
    with pytest.raises(UsageError, match=r"controller c can't run, .*foos.* was not started: run"):
        await it.run()
    async with informers, it:  # nothing was lost by the mistake
        await it.wait_synced(timeout=30)
        assert it.state == "running"


async def test_a_controller_can_be_run_beside_a_factory_that_a_later_task_runs() -> None:
    informers = SharedInformerFactory(ClusterSource(make_cluster("a")))
    it = Controller(informers.informer(FOOS), RecordingReconciler())
    running = asyncio.create_task(it.run())
    factory = asyncio.create_task(informers.run())
    await it.wait_synced(timeout=30)
    it.stop()
    await running
    factory.cancel()
    await asyncio.wait({factory})


@pytest.mark.parametrize("after", [0, 1])
def test_stop_while_it_waits_for_its_informer_is_no_failure(after: float) -> None:
    async def main() -> None:
        async with stalled_informers() as informers:
            it = Controller(informers.informer(FOOS), RecordingReconciler())
            asyncio.get_running_loop().call_later(after, it.stop)
            await it.run()
            assert (it.state, loop_time()) == ("stopped", after)

    run_simulated(main)


def test_an_exception_in_the_body_cancels_runs_at_once_and_is_raised_unchanged() -> None:
    cluster, diary, mine = make_cluster("a"), RecordingReconciler(duration=100), ValueError("mine")

    async def main() -> None:
        async with foo_informer(cluster) as foos:
            with pytest.raises(ValueError, match="mine") as caught:
                await within(Controller(foos, diary), mine)
            assert caught.value is mine
            assert loop_time() == 1.0

    run_simulated(main)
    assert diary.cancelled == ["a"]


def test_a_cancelled_controller_cancels_its_runs_in_the_same_step() -> None:
    """So that nothing is written after a lease was lost, but what was on its way already: in the
    turn of the cancellation and, before it has come through, in the next one.
    """
    cluster = make_cluster("a")
    writes = list[float]()

    async def busy(key: ObjectKey, ctx: ReconcileContext) -> None:
        while True:
            writes.append(loop_time())
            await asyncio.sleep(0)  # always ready to go on
            if len(writes) > 1000:
                await asyncio.sleep(1)

    async def main() -> None:
        async with foo_informer(cluster) as foos:
            running = asyncio.create_task(Controller(foos, busy).run())
            await wait_until(lambda: len(writes) >= 100, every=0)
            before = len(writes)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            assert len(writes) <= before + 2
            assert foos.registrations == ()

    for seed in range(20):
        writes.clear()
        run_simulated(main, seed=seed)


def test_a_cancellation_cuts_the_time_for_finishing_short() -> None:
    cluster, diary = make_cluster("a"), RecordingReconciler(duration=100)

    async def main() -> None:
        async with foo_informer(cluster) as foos:
            it = Controller(foos, diary, shutdown_timeout=60)
            running = asyncio.create_task(it.run())
            await asyncio.sleep(1)
            it.stop()
            await asyncio.sleep(1)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            assert loop_time() == 2.0

    run_simulated(main)
    assert diary.cancelled == ["a"]


@pytest.mark.parametrize("after", [0, 1, 2, 3, 4, 5, 8, 13, 21])
def test_a_controller_that_is_cancelled_at_any_moment_leaves_no_task_or_handler(after: int) -> None:
    cluster = make_cluster("a", "b")

    async def main() -> None:
        async with foo_informer(cluster) as foos:
            before = tasks_left()
            running = asyncio.create_task(Controller(foos, RecordingReconciler(duration=1)).run())
            for _ in range(after):
                await asyncio.sleep(0)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            await asyncio.sleep(0)
            assert foos.registrations == ()
            assert {each for each in tasks_left() if "it" in each} <= before

    for seed in range(10):
        run_simulated(main, seed=seed)


def test_an_error_of_a_cancelled_run_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    cluster = make_cluster("a")

    async def clumsy(key: ObjectKey, ctx: ReconcileContext) -> None:
        try:
            await asyncio.sleep(100)
        finally:
            raise ValueError("while cleaning up")

    async def main() -> None:
        async with foo_informer(cluster) as foos:
            with pytest.raises(KeyError):
                await within(Controller(foos, clumsy), KeyError())

    run_simulated(main)
    assert "raised when it was cancelled: ValueError: while cleaning up" in caplog.text


# -- what ends it -----------------------------------------------------------------------------


def test_a_factory_that_is_left_first_ends_the_controller_with_a_reason() -> None:
    cluster = make_cluster("a")

    async def main() -> None:
        informers = SharedInformerFactory(ClusterSource(cluster))
        await informers.__aenter__()
        running = asyncio.create_task(
            Controller(informers.informer(FOOS), RecordingReconciler()).run()
        )
        await asyncio.sleep(1)
        await informers.__aexit__(None, None, None)
        with pytest.raises(
            NotRunning, match="factory was left before the controller, or the controller's handler"
        ):
            await running

    run_simulated(main)


def test_the_factory_raises_the_error_of_the_failed_informer() -> None:
    """The controller's own error is a consequence; the cause comes out."""
    cluster, faults = make_cluster("a"), Faults()
    states = list[str]()

    async def main() -> None:
        source = ClusterSource(cluster, faults)
        async with SharedInformerFactory(source, fail_fast=(Forbidden,)) as informers:
            it = Controller(informers.informer(FOOS), RecordingReconciler())
            try:
                async with it:
                    await asyncio.sleep(1)
                    with faults.status(403):
                        cluster.empty_watch_cache()
                        await asyncio.sleep(4000)
            finally:
                states.append(it.state)

    with pytest.raises(Forbidden):
        run_simulated(main)
    assert len(states) == 1


def test_the_end_of_one_informer_ends_a_controller_of_several_informers() -> None:
    cluster = make_cluster("a")

    async def main() -> None:
        async with running_factory(cluster) as informers:
            bars = informers.informer(BARS)
            controller = Controller(
                informers.informer(FOOS), RecordingReconciler(), name="it"
            ).owns(bars)
            running = asyncio.create_task(controller.run())
            await asyncio.sleep(1)
            (trigger,) = bars.registrations
            trigger.remove()
            with pytest.raises(NotRunning, match="it receives no more events of bars"):
                await running
            assert controller.state == "failed"
            assert "NotRunning" in str(controller.health)

    run_simulated(main)


def test_a_controller_of_an_informer_that_has_ended_raises_not_running() -> None:
    cluster = make_cluster("a")

    async def main() -> None:
        async with foo_informer(cluster) as foos:
            pass
        it = Controller(foos, RecordingReconciler())
        with pytest.raises(NotRunning):
            await it.run()

    run_simulated(main)


@pytest.mark.parametrize("name", ["worker 0 of controller it", "supervisor of controller it"])
def test_a_task_that_is_cancelled_from_outside_is_a_failure(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = make_cluster("a")

    async def main() -> None:
        async with foo_informer(cluster) as foos:
            it = Controller(foos, RecordingReconciler(), name="it")
            asyncio.get_running_loop().call_later(1, cancel, name)
            with pytest.raises(RuntimeError, match="was cancelled, but not by its controller"):
                await it.run()
            assert it.state == "failed"
            assert foos.registrations == ()

    run_simulated(main)
    assert "the controller it failed" in caplog.text


class Broken(ItemExponential):
    """A program's limiter, with a mistake in it."""

    def when(self, key: object, now: float) -> float:
        raise KeyError("the limiter is broken")


def test_a_worker_that_fails_ends_the_controller_and_is_raised() -> None:
    cluster, diary = make_cluster("a"), RecordingReconciler(results=[ValueError("no")])

    async def main() -> None:
        async with foo_informer(cluster) as foos:
            it = Controller(foos, diary, backoff=Broken())
            with pytest.raises(KeyError, match="the limiter is broken"):
                await it.run()
            assert it.state == "failed"
            assert isinstance(it.health.error, KeyError)

    run_simulated(main)


def test_controllers_share_informers_and_end_independently() -> None:
    cluster, first, second = make_cluster("a"), RecordingReconciler(), RecordingReconciler()

    async def main() -> None:
        async with foo_informer(cluster) as foos, Controller(foos, first):
            async with Controller(foos, second):
                await asyncio.sleep(1)
            update_foo(cluster, "a", size=1)
            await asyncio.sleep(1)

    run_simulated(main)
    assert (len(first.runs), len(second.runs)) == (2, 1)


def test_one_task_can_enter_a_controller_and_another_can_leave_it() -> None:
    cluster, diary = make_cluster("a"), RecordingReconciler()

    async def main() -> None:
        async with foo_informer(cluster) as foos:
            it = await asyncio.create_task(Controller(foos, diary).__aenter__())
            await asyncio.sleep(1)
            await asyncio.create_task(it.__aexit__(None, None, None))
            assert it.state == "stopped"

    run_simulated(main)
    assert diary.names == ["a"]


def test_all_children_that_are_added_and_deleted_in_a_burst_are_delivered() -> None:
    """If pending events were merged by object, a child that was added and deleted would leave no
    event, and its owner would not be reconciled.
    """
    cluster, asked = make_cluster("a"), set[str]()

    def to_keys(bar: KubeObject) -> list[ObjectKey]:
        asked.add(bar.name)
        if len(asked) < 1000:
            electors.pause_process(0.01)  # slow enough to yield to the loop after each
        return [key("a")]

    async def main() -> None:
        async with running_factory(cluster) as informers:
            bars = informers.informer(BARS)
            async with Controller(informers.informer(FOOS), RecordingReconciler()).watches(
                bars, to_keys
            ) as it:
                await it.wait_synced(30)
                for number in range(PENDING_LIMIT):
                    cluster.create(BARS, {"metadata": {"name": f"bar-{number}"}})
                    cluster.delete(BARS, f"bar-{number}")
                async with asyncio.timeout(1000):
                    await wait_until(lambda: len(asked) == PENDING_LIMIT, every=1)
                (registration,) = bars.registrations
                assert registration.statistics().merged == 0

    electors.run_simulated(main)


# -- measured ---------------------------------------------------------------------------------


class Counting(Metrics):
    def __init__(self) -> None:
        self.results = list[tuple[str, str, float]]()
        self.queues = list[str]()
        self.worked_on = 0

    def reconciled(self, controller: str, result: str, seconds: float) -> None:
        self.results.append((controller, result, round(seconds, 3)))

    def queue_started(self, queue: str, read: ReadQueue) -> None:
        self.queues.append(f"{queue} started")

    def queue_ended(self, queue: str, read: ReadQueue) -> None:
        self.queues.append(f"{queue} ended")

    def worked(self, queue: str, waited: float, seconds: float) -> None:
        self.worked_on += 1


@pytest.mark.parametrize("cancelled", [False, True])
def test_runs_are_measured_and_the_queue_ends_with_the_controller(cancelled: bool) -> None:
    cluster, metrics = make_cluster("a"), Counting()
    diary = RecordingReconciler(
        duration=1,
        results=[None, ValueError("no"), Result(requeue=True), Result(requeue_after=1)],
    )

    async def main() -> None:
        async with foo_informer(cluster) as foos:
            it = Controller(foos, diary, name="it", concurrency=1, metrics=metrics, timeout=5)
            running = asyncio.create_task(it.run())
            await asyncio.sleep(2)
            update_foo(cluster, "a", size=1)
            await asyncio.sleep(8)
            diary.duration = 10
            update_foo(cluster, "a", size=2)
            await asyncio.sleep(5)
            for name in "bcdef":
                create_foo(cluster, name)
            await asyncio.sleep(0.2)
            if cancelled:
                running.cancel()
            else:
                it.stop()
            await asyncio.wait({running})
            assert it.health.queue.depth == 0
            assert it.health.waiting >= 4

    run_simulated(main)
    words = ["success", "error", "requeue", "requeue_after", "success", "timeout"]
    assert [result for _, result, _ in metrics.results][:6] == words
    assert metrics.results[5] == ("it", "timeout", 5.0)
    assert metrics.queues == ["it started", "it ended"]
    assert metrics.worked_on == len(diary.runs)


def test_a_hundred_thousand_waiting_keys_do_not_delay_the_shutdown(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "aioinformer.controller")
    cluster, diary = make_cluster("a"), RecordingReconciler()

    async def main() -> None:
        async with foo_informer(cluster) as foos:
            async with Controller(foos, diary, name="it") as it:
                await it.wait_synced(30)
                for i in range(100_000):
                    it.trigger(key(f"foo-{i}"))
            assert it.health.queue.depth == 0
            assert it.health.waiting > 99_000

    run_simulated(main)
    assert "not reconciled" in caplog.text
    assert caplog.records[-1].levelno == logging.INFO
