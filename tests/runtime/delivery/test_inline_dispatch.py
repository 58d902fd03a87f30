"""Plain handlers are called in one callback, each on behalf of its own task."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

import pytest

from aioinformer import Event
from aioinformer._core.objects.kube_object import Added
from aioinformer._runtime.delivery.inline_dispatch import InlineDispatcher
from aioinformer._runtime.delivery.listener import BackpressureGate
from aioinformer._runtime.delivery.registration import Registration
from aioinformer._runtime.tasks.event_loop import SLICE_SECONDS
from aioinformer.errors import HandlerCancelled
from aioinformer.testing.simulation import run
from tests.runtime.registrations import A1, LIFECYCLE_EVENTS, make_registration
from tests.runtime.scripted_source import pod, wait_until, yield_to_loop


@asynccontextmanager
async def waiting(*its: Registration) -> AsyncGenerator[None]:
    """Start the tasks, and wait until they sleep."""
    async with asyncio.TaskGroup() as group:
        for it in its:
            it.start(group, lambda: False)
        await yield_to_loop()
        yield
        for it in its:
            it.remove()


class Steps:
    """Runs a task's work, and counts how often it is woken up."""

    def __init__(self, work: Coroutine[Any, Any, None]) -> None:
        self.taken = 0
        self._work = work

    def __await__(self) -> Generator[Any, None, None]:
        for future in self._work.__await__():
            yield future
            self.taken += 1


async def _all(steps: Steps) -> None:
    await steps


async def test_the_task_of_a_handler_takes_no_step_while_its_handler_is_called_inline() -> None:
    seen, counted = list[Event](), list[Steps]()

    def counting(
        loop: asyncio.AbstractEventLoop, work: Any, /, **options: Any
    ) -> asyncio.Task[Any]:
        counted.append(Steps(work))
        return asyncio.Task(_all(counted[-1]), loop=loop, **options)

    it = make_registration(seen.append)
    async with asyncio.TaskGroup() as group:
        asyncio.get_running_loop().set_task_factory(counting)
        it.start(group)
        asyncio.get_running_loop().set_task_factory(None)
        await yield_to_loop()
        for event in LIFECYCLE_EVENTS:
            it.listener.put([event])
            await yield_to_loop(2)
        assert ([each.taken for each in counted], seen) == ([0], LIFECYCLE_EVENTS)
        it.remove()

    assert counted[0].taken == 1
    assert it.statistics().delivered == 3


def test_one_callback_of_the_loop_calls_all_handlers() -> None:
    """Every event is delivered within the next turn."""
    seen: list[int] = []

    def noting(number: int) -> Callable[[Event], None]:
        return lambda _: seen.append(number)

    async def main() -> None:
        rounds = InlineDispatcher()
        its = [make_registration(noting(number), dispatcher=rounds) for number in range(50)]
        async with waiting(*its):
            for it in its:
                it.listener.put(LIFECYCLE_EVENTS[:1])
            assert repr(rounds) == "<InlineDispatcher 50 scheduled>"
            await asyncio.sleep(0)
            assert seen == list(range(50))

    run(main(), seed=0, order="fifo")  # where no time passes, however busy the machine is


TENANT = ContextVar("TENANT", default="nobody")


async def test_each_inline_call_has_the_task_and_the_context_of_its_handler() -> None:
    found: list[tuple[object, str]] = []
    rounds, its = InlineDispatcher(), list[Registration]()

    def look(event: Event) -> None:
        found.append((asyncio.current_task(), TENANT.get()))
        TENANT.set(f"{TENANT.get()}+")  # kept for the next call, and nobody else's

    for tenant in ("red", "blue"):
        TENANT.set(tenant)
        its.append(make_registration(look, dispatcher=rounds))
    async with waiting(*its):
        for _ in range(2):
            for it in its:
                it.listener.put(LIFECYCLE_EVENTS[:1])
            await yield_to_loop()

    red, blue = (it.task for it in its)
    assert found == [(red, "red"), (blue, "blue"), (red, "red+"), (blue, "blue+")]
    assert TENANT.get() == "blue"


async def test_the_callback_yields_to_the_loop_and_every_handler_has_its_turn() -> None:
    steps: list[int] = []
    rounds, calls, turn = InlineDispatcher(), list[int](), 0

    def slow(number: int) -> Callable[[Event], None]:
        def call(event: Event) -> None:
            calls.append(number)
            steps.append(turn)
            time.sleep(SLICE_SECONDS / 3)

        return call

    its = [make_registration(slow(number), dispatcher=rounds) for number in range(2)]
    async with waiting(*its):
        for it in its:
            it.listener.put([Added(pod(f"p-{number}", 1)) for number in range(8)])
        while len(calls) < 16:
            await asyncio.sleep(0)
            turn += 1

    assert max(steps.count(turn) for turn in steps) <= 4, "4 ms, and the call that was begun"
    assert {calls.index(0), calls.index(1)} <= set(range(5)), "they take turns"


async def test_a_function_that_returns_an_awaitable_is_awaited_by_its_task() -> None:
    order: list[object] = []

    async def rest(event: Event) -> None:
        await asyncio.sleep(0)
        order.append(event)

    def handler(event: Event) -> Awaitable[None]:
        order.append(asyncio.current_task())
        return rest(event)

    it = make_registration(handler)
    async with waiting(it):
        it.listener.put(LIFECYCLE_EVENTS)
        await wait_until(lambda: len(order) == 6)

    assert order == [
        it.task,
        LIFECYCLE_EVENTS[0],
        it.task,
        LIFECYCLE_EVENTS[1],
        it.task,
        LIFECYCLE_EVENTS[2],
    ]


async def test_an_awaitable_that_an_inline_call_returned_receives_the_cancellation() -> None:
    felt: list[str] = []

    async def rest() -> None:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            felt.append("the end")
            raise

    it = make_registration(lambda _: rest())
    async with asyncio.TaskGroup() as group:
        task = it.start(group, lambda: True)
        await yield_to_loop()
        it.listener.put(LIFECYCLE_EVENTS)
        asyncio.get_running_loop().call_soon(task.cancel)  # behind the round, before the task
        await asyncio.wait({task})

    assert (felt, task.cancelled()) == (["the end"], True)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_exception_that_ends_the_program_leaves_the_loop(error: type[BaseException]) -> None:
    def handler(event: Event) -> None:
        raise error

    async def main() -> None:
        it = make_registration(handler)
        async with waiting(it):
            it.listener.put(LIFECYCLE_EVENTS)
            await asyncio.sleep(1)

    with pytest.raises(error):
        asyncio.run(main())
    gc.collect()  # asyncio complains of what such an end leaves behind: now, not in another test


async def test_with_fail_fast_an_error_is_fatal_though_the_handler_was_removed() -> None:
    def handler(event: Event) -> None:
        it.remove()
        raise ValueError("fatal")

    it = make_registration(handler, fail_fast=True)

    assert [str(each) for each in await fatal_errors(it)] == ["fatal"]


@pytest.mark.parametrize("raises", [False, True])
async def test_a_handler_that_cancels_its_task_fails_once_and_other_handlers_continue(
    raises: bool,
) -> None:
    seen: list[Event] = []
    rounds = InlineDispatcher()

    def rude(event: Event) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        if raises:
            raise asyncio.CancelledError

    its = [
        make_registration(rude, dispatcher=rounds),
        make_registration(seen.append, dispatcher=rounds),
    ]
    async with waiting(*its):
        for number in range(1, 4):
            for it in its:
                it.listener.put(LIFECYCLE_EVENTS[:1])
            await yield_to_loop()
            assert its[0].statistics().errors == number
        assert all(it.running for it in its)

    assert seen == LIFECYCLE_EVENTS[:1] * 3


async def test_with_fail_fast_a_handler_that_cancels_its_task_ends_it_with_an_error() -> None:
    def rude(event: Event) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()

    it = make_registration(rude, fail_fast=True)

    assert [type(each) for each in await fatal_errors(it)] == [HandlerCancelled]


async def fatal_errors(it: Registration) -> list[Exception]:
    """Return the errors that a handler ends its informer with."""
    fatal: list[Exception] = []
    async with asyncio.TaskGroup() as group:
        it.start(group, lambda: False, fatal.append)
        await yield_to_loop()
        it.listener.put(LIFECYCLE_EVENTS)
    return fatal


async def test_a_dispatch_inside_the_step_of_another_task_wakes_the_task_of_the_handler() -> None:
    seen: list[Event] = []
    rounds = InlineDispatcher()
    it = make_registration(seen.append, dispatcher=rounds)
    async with waiting(it):
        it.listener.put(LIFECYCLE_EVENTS)
        loop = asyncio.get_running_loop()
        assert rounds.scheduled.popleft().run_pending(loop, loop.time, 1.0) == 1.0
        assert seen == []
        await yield_to_loop()

    assert seen == LIFECYCLE_EVENTS


async def test_a_merged_event_is_delivered_by_the_task() -> None:
    seen: list[Event] = []
    it = make_registration(seen.append, dispatcher=InlineDispatcher(), limit=1)
    async with waiting(it):
        it.listener.put([Added(A1), *LIFECYCLE_EVENTS[1:2]])
        await yield_to_loop()

    assert seen == [Added(LIFECYCLE_EVENTS[1].obj)]


async def test_taking_events_inline_opens_the_gate() -> None:
    gate = BackpressureGate()
    it = make_registration(
        lambda _: None, dispatcher=InlineDispatcher(), limit=3, overflow="block", gate=gate
    )
    async with waiting(it):
        pump = asyncio.create_task(gate.wait())
        await yield_to_loop()
        it.listener.put(LIFECYCLE_EVENTS)
        await yield_to_loop()
        assert pump.done()


async def test_a_plain_call_that_takes_too_long_is_a_failure() -> None:
    it = make_registration(lambda _: time.sleep(0.003), timeout=0.002)
    async with waiting(it):
        it.listener.put(LIFECYCLE_EVENTS)
        await yield_to_loop()

    assert it.statistics().errors == 3


async def test_the_statistics_contain_the_longest_of_several_calls_recorded_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now)

    def handler(event: Event) -> None:
        nonlocal now
        if event is LIFECYCLE_EVENTS[1]:
            now += 0.003

    it = make_registration(handler)
    async with waiting(it):
        it.listener.put(LIFECYCLE_EVENTS)
        await wait_until(lambda: it.statistics().delivered == 3)
        await yield_to_loop()

    numbers = it.statistics()
    assert numbers.spent_max == pytest.approx(0.003)
    assert numbers.spent_last == 0.0
    assert numbers.spent_mean == pytest.approx(0.001)
