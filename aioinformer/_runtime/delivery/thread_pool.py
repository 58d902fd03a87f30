"""Threads for one function with ``run_in_thread=True``, which may block: a handler or a reconciler.

Each such function has threads of its own, ``concurrency`` many. The loop's default executor is
shared by the whole program: one slow handler could occupy all of its threads, and so block every
``to_thread`` of the program.

A thread can't be stopped: a call is over when it returns, also after its timeout. When the time of
a shutdown is over, the informer stops waiting for such calls. So these are daemon threads and not
an executor's, since the interpreter waits for an executor's threads when it exits.
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

_Job: TypeAlias = Callable[[], None]


class HandlerThreads:
    """Daemon threads that call one function: of an event, or of a key and a context."""

    def __init__(self, call: Callable[..., Any], *, max_threads: int, name: str) -> None:
        """Make a pool. The first thread starts with the first call.

        Args:
            call: the function to call.
            max_threads: the number of calls that may be made at once, and of threads.
            name: the prefix of the threads' names.
        """
        self._call = call
        self._max_threads = max_threads
        self._name = name
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread_count = 0
        self._in_flight: set[asyncio.Future[Any]] = set()

    def __call__(self, *arguments: object) -> Awaitable[Any]:
        """Call the function in a thread, and return its result."""
        return self._run(arguments)

    async def _run(self, arguments: tuple[object, ...]) -> Any:
        """Wait until the call returns.

        A cancellation doesn't end this wait, since the call goes on in its thread. The caller finds
        the cancellation in ``task.cancelling()``, as after a handler that swallows it.
        """
        work = self._start(arguments)
        while not work.done():
            try:
                await asyncio.wait({work})
            except asyncio.CancelledError:
                continue
        self._in_flight.discard(work)
        if work.cancelled():
            return None  # ``give_up`` was called; the shutdown error names the handler
        result: object = work.result()
        if iscoroutine(result):
            result.close()  # or Python warns that it was never awaited
        if isawaitable(result):
            raise TypeError("with run_in_thread=True the handler must not be async")
        return result

    def _start(self, arguments: tuple[object, ...]) -> asyncio.Future[Any]:
        loop, context = asyncio.get_running_loop(), copy_context()
        work: asyncio.Future[Any] = loop.create_future()

        def job() -> None:
            outcome = context.run(self._execute, work, arguments)
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(outcome)

        self._in_flight.add(work)
        if len(self._in_flight) > self._thread_count:
            name = f"{self._name}_{self._thread_count}"
            Thread(target=_run_jobs, args=(self._jobs,), name=name, daemon=True).start()
            self._thread_count += 1
        self._jobs.put(job)
        return work

    def _execute(self, work: asyncio.Future[Any], arguments: tuple[object, ...]) -> _Job:
        """Make the call. Returns the function that passes its outcome to the loop."""
        try:
            result = self._call(*arguments)
        except StopIteration as stop:  # a future rejects this exception, and would never be done
            error: BaseException = RuntimeError("the handler raised StopIteration")
            error.__cause__ = stop
        except BaseException as raised:  # noqa: BLE001 - raised again in the loop
            error = raised
        else:
            return lambda: None if work.done() else work.set_result(result)
        return lambda: None if work.done() else work.set_exception(error)

    def give_up(self) -> None:
        """Stop waiting for the calls in flight. The calls go on, and their outcome is ignored."""
        for work in self._in_flight:
            work.cancel()

    def close(self) -> None:
        """End each thread after its call in flight."""
        for _ in range(self._thread_count):
            self._jobs.put(None)
        self._thread_count = 0

    def __repr__(self) -> str:
        return f"<HandlerThreads {self._max_threads} at most>"


def _run_jobs(jobs: SimpleQueue[_Job | None]) -> None:
    """Run jobs until ``None`` comes."""
    while (job := jobs.get()) is not None:
        job()
        del job  # or it keeps its event alive until the next job comes
