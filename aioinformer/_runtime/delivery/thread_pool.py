"""Handlers that block run in threads of their own.

Each such listener has its own few threads, as many as keys may be dealt with at once. The loop's
default executor is everybody's: one slow handler could fill it, and with it each ``to_thread`` of
the program. A thread can't be stopped, so nobody here pretends to: a call is over when it returns.

Nor can it be waited for if it never returns. So when the time for that is over, who waits gives
up: hence these are daemon threads, and no executor's, for which the interpreter's exit waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import copy_context
from inspect import isawaitable, iscoroutine
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeAlias

from aioinformer._core.objects.kube_object import Event

__all__ = ["HandlerThreads"]

_Job: TypeAlias = Callable[[], None]


class HandlerThreads:
    """Calls a function of events in threads."""

    def __init__(self, call: Callable[[Event], Any], *, max_threads: int, name: str) -> None:
        """No thread runs before the first call.

        Args:
            call: what to call.
            max_threads: calls that may come at once; there are as many threads at most.
            name: what they are called.
        """
        self._call = call
        self._max_threads = max_threads
        self._name = name
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread_count = 0
        self._in_flight: set[asyncio.Future[Any]] = set()

    def __call__(self, event: Event) -> Awaitable[None]:
        """Call it in a thread."""
        return self._run(event)

    async def _run(self, event: Event) -> None:
        """Wait until the call returns, also when cancelled meanwhile: it goes on in its thread.

        Who cancelled finds it in ``task.cancelling()``, as behind a handler that swallows it.
        """
        work = self._start(event)
        while not work.done():
            try:
                await asyncio.wait({work})
            except asyncio.CancelledError:
                continue
        self._in_flight.discard(work)
        if work.cancelled():
            return  # given up; its name was told of as what is left
        result: object = work.result()
        if iscoroutine(result):
            result.close()  # nobody will await it
        if isawaitable(result):
            raise TypeError("with run_in_thread=True the handler must not be async")

    def _start(self, event: Event) -> asyncio.Future[Any]:
        loop, context = asyncio.get_running_loop(), copy_context()
        work: asyncio.Future[Any] = loop.create_future()

        def job() -> None:
            outcome = context.run(self._execute, work, event)
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(outcome)

        self._in_flight.add(work)
        if len(self._in_flight) > self._thread_count:
            name = f"{self._name}_{self._thread_count}"
            Thread(target=_run_jobs, args=(self._jobs,), name=name, daemon=True).start()
            self._thread_count += 1
        self._jobs.put(job)
        return work

    def _execute(self, work: asyncio.Future[Any], event: Event) -> _Job:
        """Make the call; what is to be done with its outcome, in the loop."""
        try:
            result = self._call(event)
        except StopIteration as stop:  # no future takes it, and nobody would ever hear of the end
            error: BaseException = RuntimeError("the handler raised StopIteration")
            error.__cause__ = stop
        except BaseException as raised:  # noqa: BLE001 - it is raised again in the loop
            error = raised
        else:
            return lambda: None if work.done() else work.set_result(result)
        return lambda: None if work.done() else work.set_exception(error)

    def give_up(self) -> None:
        """Wait no more for the calls in flight. They go on; what becomes of them isn't told."""
        for work in self._in_flight:
            work.cancel()

    def close(self) -> None:
        """Let the threads end; what they do now goes on."""
        for _ in range(self._thread_count):
            self._jobs.put(None)
        self._thread_count = 0

    def __repr__(self) -> str:
        return f"<HandlerThreads {self._max_threads} at most>"


def _run_jobs(jobs: SimpleQueue[_Job | None]) -> None:
    """What a thread does: one job after the other, until there is none."""
    while (job := jobs.get()) is not None:
        job()
        del job  # it would keep its event until the next one comes
