"""Calls in flight: who is inside one, and which take too long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Any, TypeVarTuple, Unpack

from aioinformer import Added
from aioinformer._runtime.delivery.call import INSIDE, Call, CallWatch, enclosing_call
from aioinformer._runtime.tasks.event_loop import this_task
from aioinformer.testing.simulation import SimulatedLoop, run
from tests.runtime.sources import pod

Ts = TypeVarTuple("Ts")
EVENT = Added(pod("a", 1))


async def test_a_task_that_a_call_starts_is_inside_it_until_the_call_is_over() -> None:
    call = Call(object(), EVENT, 0.0, this_task())

    async def asks() -> Call | None:
        INSIDE.set(call)
        inside = await asyncio.create_task(asking())
        assert inside is call
        call.over = True
        return await asyncio.create_task(asking())

    async def asking() -> Call | None:
        return enclosing_call()

    assert await asyncio.create_task(asks()) is None
    assert enclosing_call() is None


class CountingLoop(SimulatedLoop):
    """Counts timers."""

    timers = 0

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        self.timers += 1
        return super().call_at(when, callback, *args, context=context)


def in_counted_time(work: Callable[[CountingLoop], Any]) -> CountingLoop:
    loop = CountingLoop(seed=0)
    try:
        loop.run_until_complete(work(loop))
    finally:
        loop.close()
    return loop


def test_a_thousand_quick_calls_need_no_thousand_timers() -> None:
    async def main(loop: CountingLoop) -> None:
        late: list[Call] = []
        watch = CallWatch([(10.0, late.append)])
        for _ in range(1000):
            call = Call(None, EVENT, loop.time(), this_task())
            watch.begin(call)
            await asyncio.sleep(0.01)  # a timer too
            del watch.calls[call]
        assert not late
        watch.stop()

    assert in_counted_time(main).timers <= 1000 + 10


def test_each_call_that_takes_too_long_is_told_of_once_and_in_time() -> None:
    told: list[tuple[float, Call]] = []

    async def main() -> list[Call]:
        loop = asyncio.get_running_loop()
        watch = CallWatch([(10.0, lambda call: told.append((loop.time(), call)))])
        calls: list[Call] = []
        for _ in range(4):
            calls.append(Call(None, EVENT, loop.time(), this_task()))
            watch.begin(calls[-1])
            await asyncio.sleep(3)
        del watch.calls[calls[1]]
        await asyncio.sleep(60)
        assert repr(watch) == "<CallWatch 3 calls in flight>"
        return calls

    calls = run(main(), seed=0)

    assert told == [(10.0, calls[0]), (16.0, calls[2]), (19.0, calls[3])]


def test_a_call_passes_one_limit_after_the_other() -> None:
    told: list[tuple[float, str]] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        watch = CallWatch(
            [
                (10.0, lambda call: told.append((loop.time(), "slow"))),
                (30.0, lambda call: told.append((loop.time(), "late"))),
            ]
        )
        watch.begin(Call(None, EVENT, loop.time(), this_task()))
        await asyncio.sleep(25)
        watch.begin(Call(None, EVENT, loop.time(), this_task()))
        await asyncio.sleep(60)

    run(main(), seed=0)

    assert told == [(10.0, "slow"), (30.0, "late"), (35.0, "slow"), (55.0, "late")]


def test_what_is_stopped_tells_of_nothing() -> None:
    told: list[Call] = []

    async def main() -> None:
        watch = CallWatch([(10.0, told.append)])
        watch.begin(Call(None, EVENT, 0.0, this_task()))
        watch.stop()
        await asyncio.sleep(60)

    run(main(), seed=0)

    assert not told


async def test_a_call_shows_its_state() -> None:
    call = Call(None, EVENT, 0.0, this_task())
    shown = [repr(call)]
    call.late = TimeoutError()
    shown.append(repr(call))
    call.over = True
    shown.append(repr(call))

    states = ("in flight", "late", "over")
    assert shown == [f"<Call at Added of web/a {state}>" for state in states]
