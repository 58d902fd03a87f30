"""Handlers in threads of their own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar

import pytest

from aioinformer import Added, Event
from aioinformer._runtime.delivery.thread_pool import HandlerThreads
from aioinformer.errors import HandlerTimeout
from tests.runtime.registrations import (
    A1,
    LIFECYCLE_EVENTS,
    make_registration,
    running_registration,
)
from tests.runtime.scripted_source import pod, wait_until

B1 = pod("b", 1)
REQUEST = ContextVar("REQUEST", default="none")


@contextmanager
def held() -> Generator[threading.Event]:
    """Something that threads wait for, until the block is over."""
    event = threading.Event()
    try:
        yield event
    finally:
        event.set()


def blocking_handler(log: list[str], end: threading.Event) -> Callable[[Event], None]:
    """Return a handler that blocks its thread until ``end``."""

    def handle(event: Event) -> None:
        log.append("begin")
        end.wait(50)
        log.append("end")

    return handle


async def test_a_blocking_handler_is_called_in_a_thread_named_after_it() -> None:
    seen: list[tuple[Event, str]] = []

    def blocking(event: Event) -> None:
        seen.append((event, threading.current_thread().name))

    async with running_registration(make_registration(blocking, run_in_thread=True)) as it:
        it.listener.put(LIFECYCLE_EVENTS)
        await wait_until(lambda: len(seen) == 3)

    assert [event for event, _ in seen] == LIFECYCLE_EVENTS
    assert {name.rpartition("_")[0] for _, name in seen} == {it.name}
    assert it.statistics().errors == 0


async def test_a_handler_in_a_thread_runs_in_the_context_of_its_registration() -> None:
    seen: list[str] = []
    token = REQUEST.set("r-1")
    it = make_registration(lambda _: seen.append(REQUEST.get()), run_in_thread=True)
    REQUEST.reset(token)

    async with running_registration(it):
        it.listener.put([Added(A1)])
        await wait_until(lambda: bool(seen))

    assert seen == ["r-1"]


async def test_handlers_that_hang_do_not_use_the_default_executor() -> None:
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1) as pool, held() as end:
        loop.set_default_executor(pool)

        def hangs(event: Event) -> None:
            end.wait(50)

        async with asyncio.TaskGroup() as group:
            some = [make_registration(hangs, run_in_thread=True) for _ in range(3)]
            for it in some:
                it.start(group)
                it.listener.put([Added(A1)])
            await asyncio.sleep(0)
            assert await asyncio.wait_for(asyncio.to_thread(lambda: 7), 30) == 7
            for it in some:
                it.remove()
            end.set()


async def test_an_exception_in_a_thread_is_a_failure_of_its_handler() -> None:
    def clumsy(event: Event) -> None:
        raise ValueError("clumsy me")

    failures: list[Exception] = []
    it = make_registration(
        clumsy, run_in_thread=True, on_error=lambda _, error: failures.append(error)
    )
    async with running_registration(it):
        it.listener.put(LIFECYCLE_EVENTS)
        await wait_until(lambda: it.statistics().errors == 3)

    assert [str(error) for error in failures] == ["clumsy me"] * 3


async def test_a_stop_iteration_in_a_thread_is_a_failure_too() -> None:
    """A future doesn't take one, and the call would never be over."""
    failures: list[Exception] = []

    def clumsy(event: Event) -> None:
        next(iter(()))

    it = make_registration(
        clumsy, run_in_thread=True, on_error=lambda _, error: failures.append(error)
    )
    async with running_registration(it):
        it.listener.put(LIFECYCLE_EVENTS)
        await wait_until(lambda: len(failures) == 3)

    assert {str(error) for error in failures} == {"the handler raised StopIteration"}
    assert isinstance(failures[0].__cause__, StopIteration)


async def test_give_up_leaves_the_thread_running() -> None:
    log: list[str] = []

    with held() as end:
        it = make_registration(blocking_handler(log, end), run_in_thread=True)
        async with asyncio.TaskGroup() as group:
            task = it.start(group)
            it.listener.put(LIFECYCLE_EVENTS)
            await wait_until(lambda: log == ["begin"])
            task.cancel()
            await asyncio.sleep(0.002)
            assert it.running
            it.give_up()
        assert log == ["begin"]

    await wait_until(lambda: log == ["begin", "end"])
    await asyncio.sleep(0.002)


async def test_a_thread_ends_with_its_handler_and_keeps_no_program_alive() -> None:
    threads: list[threading.Thread] = []

    def handler(event: Event) -> None:
        threads.append(threading.current_thread())

    it = make_registration(handler, run_in_thread=True)
    async with running_registration(it):
        it.listener.put(LIFECYCLE_EVENTS)
        await wait_until(lambda: len(threads) == 3)

    assert len(set(threads)) == 1
    assert threads[0].daemon
    await asyncio.to_thread(threads[0].join, 30)
    assert not threads[0].is_alive()


async def test_a_call_that_timed_out_keeps_its_object_busy_until_it_returns() -> None:
    log: list[str] = []
    failures: list[Exception] = []

    def failures_of(name: str) -> list[Exception]:
        return [each for each in failures if f"<Pod web/{name} " in str(each)]

    with held() as end:

        def stuck(event: Event) -> None:
            log.append(f"begin {event.obj.name}")
            if event.obj.name == "a":
                end.wait(50)
            log.append(f"end {event.obj.name}")

        it = make_registration(
            stuck,
            run_in_thread=True,
            concurrency=2,
            timeout=0.2,
            on_error=lambda _, error: failures.append(error),
        )
        async with running_registration(it):
            it.listener.put([Added(A1), *LIFECYCLE_EVENTS[1:2], Added(B1)])
            await wait_until(lambda: bool(failures_of("a")) and "end b" in log)
            # The thread of b may begin before the thread of a.
            assert sorted(log) == ["begin a", "begin b", "end b"]
            # On a busy machine the call of b may take as long.
            (error,) = failures_of("a")
            end.set()
            await wait_until(lambda: log.count("end a") == 2)

    assert isinstance(error, HandlerTimeout)
    assert "its thread can't be stopped" in str(error)


async def test_the_end_of_a_handler_waits_for_its_thread() -> None:
    log: list[str] = []

    with held() as end:
        it = make_registration(blocking_handler(log, end), run_in_thread=True)
        async with asyncio.TaskGroup() as group:
            task = it.start(group)
            it.listener.put(LIFECYCLE_EVENTS)
            await wait_until(lambda: log == ["begin"])
            task.cancel()
            await asyncio.sleep(0.002)
            task.cancel()
            await asyncio.sleep(0.002)
            assert it.running
            end.set()

    assert log == ["begin", "end"]
    assert not it.running


def test_an_async_handler_can_not_run_in_a_thread() -> None:
    async def handler(event: Event) -> None: ...

    with pytest.raises(TypeError, match="handler is async: it runs in the event loop"):
        make_registration(handler, run_in_thread=True)


async def test_a_handler_in_a_thread_that_returns_an_awaitable_fails_at_each_call() -> None:
    async def work(event: Event) -> None: ...

    failures: list[Exception] = []
    it = make_registration(
        lambda event: work(event),
        run_in_thread=True,
        on_error=lambda _, error: failures.append(error),
    )
    async with running_registration(it):
        it.listener.put([Added(A1)])
        await wait_until(lambda: bool(failures))

    assert "with run_in_thread=True the handler must not be async" in str(failures[0])


def test_the_repr_of_handler_threads_shows_the_limit() -> None:
    threads = HandlerThreads(print, max_threads=3, name="print")

    assert repr(threads) == "<HandlerThreads 3 at most>"
    threads.close()
