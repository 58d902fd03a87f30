"""The work queue that workers wait at, in simulated time."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Coroutine
from math import inf, nan
from typing import Any

import pytest

from aioinformer import FastSlow, Metrics, ObjectKey, Priority, RateLimiter, WorkQueue
from aioinformer._core.instrumentation import ReadQueue
from aioinformer.controllers.work_queue import KEYS_PER_STEP
from aioinformer.errors import QueueShutDown, UsageError
from aioinformer.testing.simulation.loop import run
from tests.runtime.scripted_source import yield_to_loop


def simulated(main: Coroutine[Any, Any, None], *, seed: int = 1) -> None:
    run(main, seed=seed)


def time() -> float:
    return asyncio.get_running_loop().time()


async def waiting(queue: WorkQueue[str], count: int = 1) -> list[asyncio.Task[str]]:
    """Workers that wait at a queue, in this order."""
    tasks: list[asyncio.Task[str]] = []
    for _ in range(count):
        tasks.append(asyncio.create_task(queue.get()))
        await yield_to_loop()
    return tasks


async def ended(*tasks: asyncio.Task[str]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


# -- waiting and taking --------------------------------------------------------------------------


async def test_get_returns_a_waiting_key_at_once() -> None:
    queue = WorkQueue[str]()
    assert queue.add("a")
    assert await queue.get() == "a"
    assert len(queue) == 0


async def test_a_waiting_worker_is_woken_by_an_add() -> None:
    queue = WorkQueue[str]()
    (worker,) = await waiting(queue)
    assert not worker.done()
    queue.add("a")
    assert await worker == "a"


async def test_waiting_workers_receive_keys_in_the_order_of_their_arrival() -> None:
    queue = WorkQueue[str]()
    workers = await waiting(queue, 3)
    for key in ("a", "b", "c"):
        queue.add(key)
    assert [await worker for worker in workers] == ["a", "b", "c"]


async def test_no_worker_overtakes_a_woken_worker() -> None:
    queue = WorkQueue[str]()
    (first,) = await waiting(queue)
    late = asyncio.create_task(queue.get())  # runs before who is woken after this
    queue.add("a")
    assert await first == "a"
    assert not late.done()
    queue.add("b")
    assert await late == "b"


async def test_a_woken_worker_takes_the_most_urgent_key_at_that_time() -> None:
    queue = WorkQueue[str]()
    (worker,) = await waiting(queue)
    queue.add("low", priority=Priority.LOW)
    queue.add("normal")
    assert await worker == "normal"
    assert len(queue) == 1


@pytest.mark.client_go(130)
async def test_a_key_under_way_is_not_given_to_another_worker() -> None:
    queue = WorkQueue[str]()
    queue.add("a")
    key = await queue.get()
    queue.add("a")
    (worker,) = await waiting(queue)
    assert not worker.done()
    queue.done(key)
    assert await worker == "a"


async def test_a_work_context_counts_as_done_if_its_body_raises() -> None:
    queue = WorkQueue[str]()
    queue.add("a")

    async def fail() -> None:
        async with queue.work() as key:
            assert (key, queue.statistics().processing) == ("a", 1)
            raise KeyError(key)

    with pytest.raises(KeyError):
        await fail()
    assert (queue.statistics().processing, queue.statistics().done) == (0, 1)


async def test_done_for_a_key_that_is_not_processed_is_an_error() -> None:
    queue = WorkQueue[ObjectKey](name="pods")
    with pytest.raises(UsageError, match=r"web-0.* is not in the work queue pods"):
        queue.done(ObjectKey("web", "web-0"))


async def test_the_queue_returns_the_priority_of_a_key_until_it_is_done() -> None:
    queue = WorkQueue[str]()
    queue.add("a", priority=Priority.LOW)
    async with queue.work() as key:
        assert queue.priority(key) is Priority.LOW
    assert queue.priority("a") is None


# -- cancellation --------------------------------------------------------------------------------


async def test_a_key_that_is_added_after_the_cancellation_of_a_worker_goes_to_the_next_worker() -> (
    None
):
    queue = WorkQueue[str]()
    first, second = await waiting(queue, 2)
    await ended(first)
    queue.add("a")
    assert await second == "a"


async def test_a_worker_that_is_cancelled_before_it_runs_passes_the_key_on() -> None:
    queue = WorkQueue[str]()
    first, second = await waiting(queue, 2)
    queue.add("a")  # the first is woken
    first.cancel()  # and doesn't get to it
    assert await second == "a"
    await ended(first)


async def test_a_key_that_is_added_to_a_worker_under_cancellation_goes_to_the_next_worker() -> None:
    queue = WorkQueue[str]()
    first, second = await waiting(queue, 2)
    first.cancel()
    queue.add("a")
    assert await second == "a"
    await ended(first)


async def test_a_key_whose_only_worker_was_cancelled_stays_in_the_queue() -> None:
    queue = WorkQueue[str]()
    (worker,) = await waiting(queue)
    queue.add("a")
    worker.cancel()
    await ended(worker)
    assert len(queue) == 1
    assert await queue.get() == "a"


async def test_cancelled_workers_leave_no_waiters_in_the_queue() -> None:
    queue = WorkQueue[str]()
    for _ in range(50):
        (worker,) = await waiting(queue)
        await ended(worker)
    assert "waiters=0" in repr(queue)


@pytest.mark.parametrize("seed", range(40))
def test_no_key_is_lost_or_processed_by_two_workers_at_once_despite_cancellations(
    seed: int,
) -> None:
    """Producers, workers and a task that cancels them at every await, in a seed's order."""

    async def main() -> None:
        queue, chance = WorkQueue[str](), random.Random(seed)
        owed, working = Counter[str](), set[str]()

        async def produce() -> None:
            for _ in range(60):
                key = f"k{chance.randrange(8)}"
                owed[key] = 1  # what was added before it is taken needs one run
                if chance.random() < 0.4:
                    queue.add_after(key, chance.choice([0.0, 0.5, 3.0]))
                else:
                    queue.add(key, priority=chance.choice(list(Priority)))
                await asyncio.sleep(chance.choice([0, 0, 0.1]))

        async def work() -> None:
            while True:
                async with queue.work() as key:
                    assert key not in working
                    working.add(key)
                    owed[key] = 0
                    try:
                        await asyncio.sleep(chance.choice([0, 0.2]))
                    finally:
                        working.discard(key)

        async def disturb(workers: list[asyncio.Task[None]]) -> None:
            while True:
                await asyncio.sleep(chance.choice([0, 0.05, 0.1]))
                place = chance.randrange(len(workers))
                workers[place].cancel()
                await asyncio.wait([workers[place]])
                workers[place] = asyncio.create_task(work())

        workers = [asyncio.create_task(work()) for _ in range(3)]
        disturber = asyncio.create_task(disturb(workers))
        await asyncio.gather(produce(), produce())
        await asyncio.sleep(5)  # until the delayed ones have come
        disturber.cancel()
        await asyncio.wait([disturber])
        assert await queue.drain(timeout=60)
        for worker in workers:
            with pytest.raises((QueueShutDown, asyncio.CancelledError)):
                await worker
        assert not +owed
        found = queue.statistics()
        assert (found.depth, found.delayed, found.processing) == (0, 0, 0)
        assert found.done == found.adds

    simulated(main(), seed=seed)


# -- delays --------------------------------------------------------------------------------------


@pytest.mark.client_go(131)
def test_a_delayed_key_is_available_when_its_delay_is_over() -> None:
    async def main() -> None:
        queue = WorkQueue[str]()
        queue.add_after("hour", 3600)
        queue.add_after("minute", 60)
        queue.add_after("now", 0)
        queue.add_after("past", -1)
        assert [await queue.get() for _ in range(2)] == ["now", "past"]
        assert (await queue.get(), time()) == ("minute", 60.0)
        assert (await queue.get(), time()) == ("hour", 3600.0)

    simulated(main())


@pytest.mark.client_go(131)
def test_the_earliest_of_several_delays_wins() -> None:
    async def main() -> None:
        queue = WorkQueue[str]()
        for delay in (50, 10, 30):
            queue.add_after("a", delay)
        assert queue.statistics().delayed == 1
        assert (await queue.get(), time()) == ("a", 10.0)
        queue.done("a")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(100):
                await queue.get()

    simulated(main())


def test_any_number_of_delayed_keys_uses_one_timer() -> None:
    async def main() -> None:
        queue, loop = WorkQueue[str](), asyncio.get_running_loop()
        for number in range(1000):
            queue.add_after(f"k{number}", 10 + number)

        def timers() -> list[float]:
            return [each[0] for each in vars(loop)["_later"] if not each[3].cancelled()]

        assert timers() == [10.0]
        queue.add_after("sooner", 5)
        assert timers() == [5.0]
        queue.shut_down()
        assert timers() == []

    simulated(main())


def test_thousands_of_keys_that_are_ready_at_once_are_added_in_several_steps() -> None:
    """The promise is 10 ms: others run in between."""

    async def main() -> None:
        queue = WorkQueue[int]()
        for key in range(3 * KEYS_PER_STEP):
            queue.add_after(key, 1.0)
        await asyncio.sleep(1.0)
        lengths: set[int] = set()
        while queue.statistics().delayed:
            lengths.add(len(queue))
            await asyncio.sleep(0)
        assert {KEYS_PER_STEP, 2 * KEYS_PER_STEP} <= lengths
        assert [await queue.get() for _ in range(3 * KEYS_PER_STEP)] == list(
            range(3 * KEYS_PER_STEP)
        )

    simulated(main())


async def test_a_blocked_loop_adds_all_keys_that_are_ready_afterwards() -> None:
    queue, loop = WorkQueue[str](), asyncio.get_running_loop()
    for number in range(10):
        queue.add_after(f"k{number}", 0.0001 * (1 + number))
    added = loop.time()
    while loop.time() < added + 0.002:
        pass  # another task blocks the loop
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert len(queue) == 10


@pytest.mark.parametrize("delay", [inf, nan, -inf])
async def test_a_delay_is_a_finite_number(delay: float) -> None:
    with pytest.raises(ValueError, match="the delay of 'a' must be finite"):
        WorkQueue[str]().add_after("a", delay)


# -- retries -------------------------------------------------------------------------------------


def test_the_delay_of_a_failing_key_grows_until_forget_is_called() -> None:
    async def main() -> None:
        queue, times = WorkQueue[str](), list[float]()
        queue.add("a")
        for _ in range(4):
            async with queue.work() as key:
                times.append(time())
                queue.add_rate_limited(key)
        assert times == pytest.approx([0.0, 0.005, 0.015, 0.035])
        assert (queue.retries("a"), queue.statistics().retries) == (4, 4)
        queue.forget("a")
        assert queue.retries("a") == 0
        async with queue.work() as key:
            queue.add_rate_limited(key)
        before = time()
        await queue.get()
        assert time() - before == pytest.approx(0.005)

    simulated(main())


def test_many_failing_keys_are_retried_ten_times_a_second() -> None:
    async def main() -> None:
        queue, tried = WorkQueue[int](), list[float]()
        for key in range(200):
            queue.add_rate_limited(key)
        for _ in range(200):
            await queue.get()
            tried.append(time())
        assert sum(at < 0.01 for at in tried) == 100
        assert tried[-1] == pytest.approx(10.0)

    simulated(main())


def test_a_queue_uses_the_rate_limiter_of_the_program() -> None:
    class ByName:
        """Even keys are quick."""

        def when(self, key: int, now: float) -> float:
            return key % 2

        def forget(self, key: int) -> None:
            raise AssertionError

        def retries(self, key: int) -> int:
            return key

    async def main() -> None:
        limiter: RateLimiter[int] = ByName()
        queue = WorkQueue[int](backoff=limiter)
        queue.add_rate_limited(3)
        assert queue.last_backoff == 1.0
        queue.add_rate_limited(4)
        assert queue.last_backoff == 0.0
        assert (await queue.get(), time()) == (4, 0.0)
        assert (await queue.get(), time()) == (3, 1.0)
        assert queue.retries(3) == 3

    simulated(main())


def test_a_retry_keeps_the_priority_that_it_is_given() -> None:
    async def main() -> None:
        queue = WorkQueue[str](backoff=FastSlow(1.0, 1.0, 1))
        queue.add_rate_limited("low", priority=Priority.LOW)
        queue.add_after("normal", 1.0)
        await asyncio.sleep(2.0)
        assert [await queue.get(), await queue.get()] == ["normal", "low"]

    simulated(main())


# -- the end -------------------------------------------------------------------------------------


async def test_a_queue_that_is_shut_down_returns_waiting_keys_and_then_raises() -> None:
    queue = WorkQueue[str](name="pods")
    queue.add("a")
    queue.shut_down()
    queue.shut_down()
    assert queue.is_shut_down
    assert not queue.add("b")
    assert not queue.add_after("c", 1.0)
    assert not queue.add_rate_limited("d")
    assert await queue.get() == "a"
    with pytest.raises(QueueShutDown, match="the work queue pods is shut down, and no key waits"):
        await queue.get()


async def test_waiting_workers_are_woken_by_a_shutdown() -> None:
    queue = WorkQueue[str]()
    workers = await waiting(queue, 3)
    queue.shut_down()
    for worker in workers:
        with pytest.raises(QueueShutDown):
            await worker


async def test_a_worker_still_waits_for_a_requeued_key_after_the_shutdown() -> None:
    """No worker would be left to take it if all idle workers ended."""
    queue = WorkQueue[str]()
    queue.add("a")
    key = await queue.get()
    queue.add("a")
    queue.shut_down()
    idle, other = await waiting(queue, 2)
    assert not idle.done()
    queue.done(key)
    assert await idle == "a"
    with pytest.raises(QueueShutDown):
        await other


async def test_waiting_and_woken_workers_raise_after_a_dropping_shutdown() -> None:
    queue = WorkQueue[str]()
    queue.add("held")
    held = await queue.get()
    queue.add("held")
    woken, other = await waiting(queue, 2)
    queue.add("a")  # reserved for the first waiter, which did not run yet
    queue.shut_down(drop=True)
    for worker in (woken, other):
        with pytest.raises(QueueShutDown):
            await worker
    with pytest.raises(QueueShutDown):
        await queue.get()
    assert not await queue.drain(0)
    queue.done(held)
    assert await queue.drain(0)
    assert queue.statistics().dropped == 2


async def test_a_woken_worker_that_is_cancelled_in_the_shutdown_passes_the_last_key_on() -> None:
    queue = WorkQueue[str]()
    first, second = await waiting(queue, 2)
    queue.add("a")
    first.cancel()
    queue.shut_down()
    assert await second == "a"
    await ended(first)


async def test_a_shutdown_drops_delayed_keys_and_their_timer() -> None:
    queue = WorkQueue[str]()
    queue.add_after("a", 0.001)
    queue.shut_down()
    found = queue.statistics()
    assert (found.delayed, found.dropped) == (0, 1)
    assert await queue.drain(0)


def test_a_shutdown_frees_thousands_of_delayed_keys_in_several_steps() -> None:
    async def main() -> None:
        queue = WorkQueue[Key]()
        for number in range(3 * KEYS_PER_STEP):
            queue.add_after(Key(number), 60)
        queue.shut_down()
        counts = list[int]()
        while counts[-1:] != [0]:
            counts.append(Key.alive)
            await asyncio.sleep(0)
        assert counts == [2 * KEYS_PER_STEP, KEYS_PER_STEP, 0]

    run(main(), seed=1, order="fifo")


class Key:
    """Knows how many of them there are."""

    alive = 0

    def __init__(self, number: int) -> None:
        self.number = number
        Key.alive += 1

    def __del__(self) -> None:
        Key.alive -= 1


@pytest.mark.client_go(130)
def test_a_drain_waits_for_queued_keys_and_for_keys_under_way() -> None:
    """client-go's would return after the key that is worked on at the time."""

    async def main() -> None:
        queue, done = WorkQueue[str](), list[str]()

        async def work() -> None:
            while True:
                async with queue.work() as key:
                    await asyncio.sleep(1.0)
                    done.append(key)

        for key in ("a", "b", "c", "d"):
            queue.add(key)
        worker = asyncio.create_task(work())
        await asyncio.sleep(0.5)
        queue.add("a")  # once more
        assert await queue.drain(timeout=60)
        assert (time(), done) == (5.0, ["a", "b", "c", "d", "a"])
        with pytest.raises(QueueShutDown):
            await worker

    simulated(main())


def test_a_drain_ends_at_its_timeout_and_can_be_repeated() -> None:
    async def main() -> None:
        queue = WorkQueue[str]()
        queue.add("a")
        key = await queue.get()
        assert not await queue.drain(timeout=2.0)
        assert time() == 2.0
        asyncio.get_running_loop().call_later(3.0, queue.done, key)
        first, second, third = queue.drain(), queue.drain(10), queue.drain(1)
        assert tuple(await asyncio.gather(first, second, third)) == (True, True, False)
        assert time() == 5.0
        assert await queue.drain(timeout=0)

    simulated(main())


def test_a_queue_works_after_a_cancelled_drain() -> None:
    async def main() -> None:
        queue = WorkQueue[str]()
        queue.add("a")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0):
                await queue.drain()
        async with queue.work() as key:
            assert key == "a"
        assert await queue.drain(0)

    simulated(main())


# -- numbers -------------------------------------------------------------------------------------


def test_the_statistics_of_a_queue_use_the_time_of_the_loop() -> None:
    async def main() -> None:
        queue = WorkQueue[str]()
        queue.add("a")
        queue.add("b", priority=Priority.LOW)
        await asyncio.sleep(2.0)
        async with queue.work():
            await asyncio.sleep(3.0)
            found = queue.statistics()
            assert (found.waited_max, found.running_longest, found.waiting_longest) == (2, 3, 5)
            assert (found.depth, found.low, found.processing) == (1, 1, 1)
        assert queue.statistics().worked_mean == 3.0

    simulated(main())


def test_an_unused_queue_has_statistics_outside_of_any_loop() -> None:
    queue = WorkQueue[str]()
    assert (len(queue), queue.statistics().depth, queue.is_shut_down) == (0, 0, False)
    assert queue  # an empty queue is not nothing


class RecordingMetrics(Metrics):
    """Metrics that record their calls."""

    def __init__(self) -> None:
        self.calls: list[object] = []

    def queue_started(self, queue: str, read: ReadQueue) -> None:
        self.calls.append(("started", queue, read().depth))

    def queue_ended(self, queue: str, read: ReadQueue) -> None:
        self.calls.append(("ended", queue, read().done))

    def worked(self, queue: str, waited: float, seconds: float) -> None:
        self.calls.append((queue, waited, seconds))


@pytest.mark.client_go(132)
def test_metrics_receive_a_queue_from_its_first_use_to_its_last_key() -> None:
    async def main() -> None:
        metrics = RecordingMetrics()
        queue = WorkQueue[str](name="pods", metrics=metrics)
        assert metrics.calls == []
        queue.add("a")
        await asyncio.sleep(1.0)
        async with queue.work():
            queue.shut_down()
            await asyncio.sleep(2.0)
        await queue.drain(0)
        assert metrics.calls == [("started", "pods", 0), ("pods", 1.0, 2.0), ("ended", "pods", 1)]

    simulated(main())


def test_metrics_receive_no_keys_that_were_not_processed() -> None:
    async def main() -> None:
        metrics = RecordingMetrics()
        queue = WorkQueue[str](name="pods", metrics=metrics)
        queue.add("a")
        queue.shut_down(drop=True)
        assert metrics.calls == [("started", "pods", 0), ("ended", "pods", 0)]

    simulated(main())


async def test_a_queue_that_is_measured_needs_a_name() -> None:
    with pytest.raises(ValueError, match="needs a name="):
        WorkQueue[str](metrics=Metrics())


async def test_the_repr_of_a_queue_shows_its_state() -> None:
    queue = WorkQueue[str](name="pods")
    (worker,) = await waiting(queue)
    shown = "<KeyQueue open normal=0 low=0 delayed=0 processing=0>"
    assert repr(queue) == f"<WorkQueue pods waiters=1 {shown}>"
    await ended(worker)
    assert repr(queue.work()) == f"<WorkContext of {queue!r}>"


# -- where it may be used ------------------------------------------------------------------------


async def test_a_queue_raises_usage_error_in_another_thread() -> None:
    queue, errors = WorkQueue[str](name="pods"), list[UsageError]()
    queue.add("a")

    def elsewhere() -> None:
        for use in (lambda: queue.add("b"), lambda: queue.done("a"), queue.shut_down):
            try:
                use()
            except UsageError as error:
                errors.append(error)
        assert queue.statistics().depth == len(queue) == 1

    thread = threading.Thread(target=elsewhere)
    thread.start()
    await asyncio.to_thread(thread.join)
    assert ["not from a thread" in str(error) for error in errors] == [True] * 3


async def test_a_thread_adds_through_the_loop() -> None:
    queue, loop = WorkQueue[str](), asyncio.get_running_loop()
    (worker,) = await waiting(queue)
    await asyncio.to_thread(lambda: loop.call_soon_threadsafe(queue.add, "a"))
    assert await worker == "a"


def test_a_queue_belongs_to_the_loop_of_its_first_use() -> None:
    queue = WorkQueue[str](name="pods")

    async def use() -> None:
        queue.add("a")
        async with queue.work():
            queue.add_after("b", 60)

    async def wait() -> None:
        await queue.get()

    async def delay() -> None:
        queue.add_after("c", 1)

    asyncio.run(use())
    for again in (wait, delay):
        with pytest.raises(UsageError, match="the work queue pods runs in another event loop"):
            asyncio.run(again())
