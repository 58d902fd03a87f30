"""Virtual time, and an order of callbacks that the seed decides within asyncio's guarantees."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from itertools import count, pairwise
from typing import Any

import pytest

from aioinformer.testing.simulation import Order, SimulatedLoop, Stuck, run

# -- time --------------------------------------------------------------------------------------


async def an_hour_of_everything() -> list[float]:
    """Return the times at which timers, timeouts, waits and task groups end."""
    clock = asyncio.get_running_loop().time
    seen = [clock()]
    await asyncio.sleep(1800)
    seen.append(clock())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(600):
            await asyncio.Event().wait()
    seen.append(clock())
    sleeper = asyncio.create_task(asyncio.sleep(1000))
    done, pending = await asyncio.wait({sleeper}, timeout=300)
    assert (done, pending) == (set[asyncio.Task[None]](), {sleeper})
    seen.append(clock())
    async with asyncio.TaskGroup() as group:
        for seconds in (900, 100):
            group.create_task(asyncio.sleep(seconds))
    return [*seen, clock()]


def test_a_simulated_hour_takes_no_real_time() -> None:
    assert run(an_hour_of_everything(), seed=0) == [0, 1800, 2400, 2700, 3600]


def test_a_cost_advances_the_time_between_two_reads_of_the_clock() -> None:
    async def looks() -> list[float]:
        clock = asyncio.get_running_loop().time
        return [clock() for _ in range(1000)]

    assert set(run(looks(), seed=1)) == {0.0}
    seen = run(looks(), seed=1, cost=0.01)
    assert seen == sorted(seen)
    assert seen[0] < seen[-1] < 1000 * 0.01
    assert max(after - before for before, after in pairwise(seen)) <= 0.01


def test_a_cancelled_timer_doesnt_keep_time_going() -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        loop.call_later(1000, lambda: None).cancel()
        await asyncio.sleep(1)
        return loop.time()

    assert run(main(), seed=0) == 1


# -- order -------------------------------------------------------------------------------------


async def three_counters() -> list[str]:
    said: list[str] = []

    async def count(name: str) -> None:
        for number in range(3):
            said.append(f"{name}{number}")
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for name in "abc":
            group.create_task(count(name))
    return said


def test_the_same_seed_gives_the_same_order_and_another_seed_another() -> None:
    orders = [tuple(run(three_counters(), seed=seed)) for seed in range(20)]
    assert orders == [tuple(run(three_counters(), seed=seed)) for seed in range(20)]
    assert len(set(orders)) > 10


@pytest.mark.parametrize("seed", range(20))
def test_the_steps_of_each_task_keep_their_order(seed: int) -> None:
    said = run(three_counters(), seed=seed)
    for name in "abc":
        assert [each for each in said if each[0] == name] == [f"{name}{n}" for n in range(3)]


@pytest.mark.parametrize("seed", range(20))
def test_callbacks_of_one_step_are_called_in_the_order_of_their_registration(seed: int) -> None:
    async def main() -> list[int]:
        loop, called = asyncio.get_running_loop(), list[int]()

        def register(start: int) -> None:
            for number in range(start, start + 5):
                loop.call_soon(called.append, number)

        for start in (0, 10, 20):
            loop.call_soon(register, start)
        await asyncio.sleep(1)
        return called

    called = run(main(), seed=seed)
    assert sorted(called) == [*range(5), *range(10, 15), *range(20, 25)]
    for start in (0, 10, 20):
        own = [number for number in called if start <= number < start + 5]
        assert own == sorted(own)


def test_fifo_is_asyncios_own_order() -> None:
    expected = asyncio.run(three_counters())
    assert [run(three_counters(), seed=seed, order="fifo") for seed in range(5)] == [expected] * 5


@pytest.mark.parametrize(("order", "orders"), [("shuffled", 6), ("fifo", 1)])
def test_timers_that_are_due_together_come_in_any_order(order: Order, orders: int) -> None:
    async def main() -> str:
        loop, called = asyncio.get_running_loop(), list[str]()
        for name in "abc":
            loop.call_at(5.0, called.append, name)
        await asyncio.sleep(10)
        return "".join(called)

    seen = {run(main(), seed=seed, order=order) for seed in range(60)}
    assert len(seen) == orders


def test_a_task_group_cancels_in_the_same_order_every_time() -> None:
    async def main() -> list[str]:
        ended: list[str] = []

        async def wait(name: str) -> None:
            try:
                await asyncio.sleep(100)
            finally:
                ended.append(name)

        async def fail() -> None:
            await asyncio.sleep(1)
            raise ValueError

        async def group_of_all() -> None:
            async with asyncio.TaskGroup() as group:
                for name in "abcdefgh":
                    group.create_task(wait(name))
                group.create_task(fail())

        with pytest.raises(ExceptionGroup):
            await group_of_all()
        return ended

    assert run(main(), seed=3, order="fifo") == list("abcdefgh")


# -- the end -----------------------------------------------------------------------------------


async def _deadlock() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.Event().wait(), name="the waiter")
        group.create_task(asyncio.sleep(5), name="the sleeper")


async def _livelock() -> None:
    for _ in count():
        await asyncio.sleep(0)


async def _eternity() -> None:
    for _ in count():
        await asyncio.sleep(3600)


async def _thread() -> None:
    await asyncio.get_running_loop().run_in_executor(None, print)


@pytest.mark.parametrize(
    ("main", "message"),
    [
        (
            _deadlock,
            r"(?s)no timer is set at 5\.0.*1: at _deadlock.*the waiter: at Event\.wait",
        ),
        (_livelock, r"(?s)time stands still; tasks:\n  task 1: at _livelock"),
        (_eternity, r"not at an end after 86400 virtual seconds"),
        (_thread, r"given to a thread"),
    ],
)
def test_a_program_that_can_not_end_raises_an_error_that_shows_the_tasks(
    main: Callable[[], Coroutine[Any, Any, None]], message: str
) -> None:
    with pytest.raises(Stuck, match=message):
        run(main(), seed=0, horizon=86_400)


def test_a_closed_loop_rejects_callbacks() -> None:
    loop = SimulatedLoop(seed=0)
    assert repr(loop) == "<SimulatedLoop at 0.000000 s ready=0 shuffled>"
    loop.close()
    with pytest.raises(RuntimeError, match="closed"):
        loop.call_soon(print)
    with pytest.raises(RuntimeError, match="closed"):
        loop.call_later(1, print)


def test_random_numbers_depend_on_the_seed_and_the_state_is_restored() -> None:
    async def draws() -> float:
        return random.random()

    before = random.getstate()
    assert run(draws(), seed=7) == run(draws(), seed=7) != run(draws(), seed=8)
    assert random.getstate() == before


def test_a_failure_is_raised_as_it_is() -> None:
    async def fails() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError, match="x"):
        run(fails(), seed=0)
