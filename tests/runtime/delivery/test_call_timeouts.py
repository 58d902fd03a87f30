"""Calls in flight: the current call, and time limits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Any, TypeVarTuple, Unpack

from aioinformer import Added, Event
from aioinformer._core.delivery.mailbox import Mailbox
from aioinformer._runtime.delivery.call import (
    CURRENT_CALL,
    ActiveCall,
    CallTimeouts,
    HandlerCaller,
    current_call,
)
from aioinformer._runtime.delivery.handler_errors import HandlerErrors
from aioinformer._runtime.delivery.handlers import compile_handler
from aioinformer._runtime.delivery.listener import BackpressureGate, Listener
from aioinformer._runtime.delivery.options import HandlerOptions
from aioinformer._runtime.tasks.event_loop import running_task
from aioinformer.testing.simulation import SimulatedLoop, run
from tests.runtime.scripted_source import pod

Ts = TypeVarTuple("Ts")


def ignore(_event: Event) -> None:
    pass


def active_call(started_at: float) -> ActiveCall:
    listener = Listener("h", Mailbox(holds=lambda _: True), BackpressureGate())
    caller = HandlerCaller(
        compile_handler(ignore), HandlerOptions(), listener, HandlerErrors(listener.name)
    )
    return ActiveCall(caller, Added(pod("a", 1)), started_at, running_task())


async def test_a_task_that_a_call_starts_belongs_to_the_call_until_it_ends() -> None:
    call = active_call(0.0)

    async def asks() -> ActiveCall | None:
        CURRENT_CALL.set(call)
        inside = await asyncio.create_task(asking())
        assert inside is call
        call.done = True
        return await asyncio.create_task(asking())

    async def asking() -> ActiveCall | None:
        return current_call()

    assert await asyncio.create_task(asks()) is None
    assert current_call() is None


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


def begin(call: ActiveCall, watch: CallTimeouts) -> None:
    watch.calls[call] = None
    if watch.timer is None:
        watch.watch(call)


def test_a_thousand_quick_calls_need_no_thousand_timers() -> None:
    async def main(loop: CountingLoop) -> None:
        late: list[ActiveCall] = []
        watch = CallTimeouts([(10.0, late.append)])
        for _ in range(1000):
            call = active_call(loop.time())
            begin(call, watch)
            await asyncio.sleep(0.01)  # a timer too
            del watch.calls[call]
        assert not late
        watch.stop()

    assert in_counted_time(main).timers <= 1000 + 10


def test_each_slow_call_is_reported_once_and_in_time() -> None:
    reported: list[tuple[float, ActiveCall]] = []

    async def main() -> list[ActiveCall]:
        loop = asyncio.get_running_loop()
        watch = CallTimeouts([(10.0, lambda call: reported.append((loop.time(), call)))])
        calls: list[ActiveCall] = []
        for _ in range(4):
            calls.append(active_call(loop.time()))
            begin(calls[-1], watch)
            await asyncio.sleep(3)
        del watch.calls[calls[1]]
        await asyncio.sleep(60)
        assert repr(watch) == "<CallTimeouts 3 calls in flight>"
        return calls

    calls = run(main(), seed=0)

    assert reported == [(10.0, calls[0]), (16.0, calls[2]), (19.0, calls[3])]


def test_a_call_passes_one_limit_after_the_other() -> None:
    reported: list[tuple[float, str]] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        watch = CallTimeouts(
            [
                (10.0, lambda call: reported.append((loop.time(), "slow"))),
                (30.0, lambda call: reported.append((loop.time(), "late"))),
            ]
        )
        begin(active_call(loop.time()), watch)
        await asyncio.sleep(25)
        begin(active_call(loop.time()), watch)
        await asyncio.sleep(60)

    run(main(), seed=0)

    assert reported == [(10.0, "slow"), (30.0, "late"), (35.0, "slow"), (55.0, "late")]


def test_no_call_is_reported_after_stop() -> None:
    reported: list[ActiveCall] = []

    async def main() -> None:
        watch = CallTimeouts([(10.0, reported.append)])
        begin(active_call(0.0), watch)
        watch.stop()
        await asyncio.sleep(60)

    run(main(), seed=0)

    assert not reported


async def test_the_repr_of_a_call_shows_its_state() -> None:
    call = active_call(0.0)
    shown = [repr(call)]
    call.timeout_error = TimeoutError()
    shown.append(repr(call))
    call.done = True
    shown.append(repr(call))

    states = ("in flight", "late", "over")
    assert shown == [f"<Call at Added of web/a {state}>" for state in states]
