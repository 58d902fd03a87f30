"""The task of one handler: takes events from the listener and calls the handler.

With ``concurrency=1`` the handler is called with one event after the other. With more, the events
of different objects are handled at once, each in a task of its own, and the events of one object
in order. A plain function may be called by the ``InlineDispatcher`` while this task waits.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextvars import Context
from inspect import isawaitable, iscoroutine
from typing import Any

from aioinformer._core.objects.kube_object import Event
from aioinformer._runtime.delivery.call import CURRENT_CALL, HandlerCaller
from aioinformer._runtime.delivery.inline_dispatch import InlineHandler
from aioinformer._runtime.tasks.blocking import time_steps
from aioinformer._runtime.tasks.event_loop import SLICE_SECONDS, loop_clock, running_task
from aioinformer._runtime.tasks.task_group import task_group


class HandlerRunner:
    """The task that passes the events of a listener to its handler."""

    def __init__(self, caller: HandlerCaller, inline_handler: InlineHandler | None = None) -> None:
        """Make a runner; ``start`` starts the task.

        Args:
            caller: calls the handler.
            inline_handler: calls the handler while the task waits, if it is a plain function.
        """
        self.task: asyncio.Task[None] | None = None
        """The task, once it was started."""
        self._caller = caller
        self._listener = caller.listener
        self._inline_handler = inline_handler
        self._clock: Callable[[], float] = time.monotonic
        """Returns the loop's time, once the task was started."""
        self._key_finished = asyncio.Event()
        self._unstarted: dict[int, Awaitable[None]] = {}
        """The rest of each call whose task has not begun, by the identity of its event."""

    def start(self, group: asyncio.TaskGroup, context: Context) -> asyncio.Task[None]:
        """Start the task in ``group``. The task ends once the listener is closed and empty."""
        sequential = self._listener.in_flight.count == 1
        work = self._run_sequential() if sequential else self._run_concurrent()
        self._clock = loop_clock()
        work = time_steps(work, self._caller.report_blocking, self._clock)
        self.task = group.create_task(work, name=self._listener.name, context=context)
        self.task.add_done_callback(lambda _: self._caller.stop(), context=context)
        return self.task

    # -- one event after the other -------------------------------------------------------------

    async def _run_sequential(self) -> None:
        """Call the handler with each event, and record the times of its calls.

        The calls that return at once are recorded together, since to record each would take as
        long as a short call.
        """
        if self.task is None:  # an eager task: the handler isn't called before ``start`` returns
            await asyncio.sleep(0)
        task, listener, caller = running_task(), self._listener, self._caller
        call, times, clock = caller.call, listener.call_times, self._clock
        rested = clock()
        while True:
            if task.cancelling():
                await caller.check_cancelled(task)
            if (waiter := listener.waiter()) is not None:
                await (waiter if self._inline_handler is None else self._wait_inline(task, waiter))
            if listener.closed and listener.mailbox.empty:
                return
            first = began = clock()
            rested = began if waiter is not None else rested
            plain, took, longest = 0, 0.0, 0.0  # calls that returned at once, since ``first``
            for event in listener.take():
                try:
                    result = call(event)
                except BaseException as error:  # noqa: BLE001 - a program's code
                    caller.on_exception(event, error)
                    result = None
                # Most plain functions return None, which isawaitable is slow to reject.
                if result is None or not isawaitable(result):
                    plain += 1
                    now = clock()
                    took = now - began
                    if took > longest:
                        longest = took
                    if took > caller.timeout:
                        caller.on_late_call(event)
                else:
                    if plain:
                        times.record_calls(plain, began - first, took, longest)
                    if task.cancelling():  # by the function, before it returned the awaitable
                        await caller.clear_self_cancel(task)
                    await caller.finish(task, event, result, began)
                    if caller.cancellation_pending(task):
                        await caller.check_cancelled(task)
                    first = now = clock()
                    plain, longest = 0, 0.0
                    times.record(now - began)
                    listener.release()
                if now - rested >= SLICE_SECONDS or task.cancelling():
                    if plain:
                        times.record_calls(plain, now - first, took, longest)
                    await (caller.check_cancelled(task) if task.cancelling() else asyncio.sleep(0))
                    first = now = rested = clock()
                    plain, longest = 0, 0.0
                    listener.release()
                began = now
            if plain:
                times.record_calls(plain, began - first, took, longest)

    async def _wait_inline(self, task: asyncio.Task[Any], waiter: asyncio.Future[None]) -> None:
        """Wait, while the ``InlineDispatcher`` calls the handler."""
        listener, caller = self._listener, self._caller
        unfinished = (
            None if self._inline_handler is None else await self._inline_handler.wait(task, waiter)
        )
        if unfinished is None:
            return
        # The function returned an awaitable, so from now on its task calls the function.
        self._inline_handler = listener.on_ready = None
        event, awaitable, began = unfinished
        await caller.finish(task, event, awaitable, began)
        if caller.cancellation_pending(task):
            await caller.check_cancelled(task)
        listener.call_times.record(self._clock() - began)
        listener.release()

    # -- several keys at once ------------------------------------------------------------------

    async def _run_concurrent(self) -> None:
        """Call the handler with the events of several keys at once."""
        if self.task is None:  # as above
            await asyncio.sleep(0)
        try:
            async with task_group() as group:
                await self._start_keys(group)
        finally:
            for awaitable in self._unstarted.values():  # of tasks cancelled before their first step
                if iscoroutine(awaitable):
                    awaitable.close()  # or Python warns that it was never awaited
            self._unstarted.clear()

    async def _start_keys(self, group: asyncio.TaskGroup) -> None:
        caller, in_flight = self._caller, self._listener.in_flight
        task, clock = running_task(), self._clock
        rested = clock()
        while (event := await self._next_event()) is not None:
            if in_flight.start(event):
                self._start_key(group, event)
            if task.cancelling():
                await caller.check_cancelled(task)
            if clock() - rested >= SLICE_SECONDS:
                await asyncio.sleep(0)
                rested = clock()

    async def _next_event(self) -> Event | None:
        """Return the next event, once there may be room for its key."""
        while self._listener.in_flight.full:
            self._key_finished.clear()
            await self._key_finished.wait()
        event = self._listener.next_nowait()
        return await self._listener.next() if event is None else event

    def _start_key(self, group: asyncio.TaskGroup, event: Event) -> None:
        """Call the handler, and start a task for the key if there is something to await."""
        following: Event | None = event
        while following is not None:
            event, began = following, self._clock()
            awaitable = self._begin(event)
            if awaitable is not None:
                self._unstarted[id(event)] = awaitable
                work = self._run_key(event, awaitable, began)
                work = time_steps(work, self._caller.report_blocking, self._clock)
                group.create_task(work, name=self._listener.name)
                return
            following = self._finish_event(event, began, plain=True)

    async def _run_key(self, event: Event, awaitable: Awaitable[None] | None, began: float) -> None:
        """Finish the call for an event, and handle the events of its key that came meanwhile."""
        task, caller = running_task(), self._caller
        del self._unstarted[id(event)]
        try:
            while True:
                if awaitable is not None:
                    await caller.finish(task, event, awaitable, began)
                following = self._finish_event(event, began, plain=awaitable is None)
                if caller.cancellation_pending(task):
                    await caller.check_cancelled(task)
                if following is None:
                    return
                event, began = following, self._clock()
                awaitable = self._begin(event)
        except asyncio.CancelledError as cancelled:
            cancelled.__traceback__ = None  # the task keeps the error, and the frames the task
            raise
        finally:
            CURRENT_CALL.set(None)  # the task keeps this context, and the last call keeps the task
            del task

    def _begin(self, event: Event) -> Awaitable[None] | None:
        """Call the handler. Return the awaitable if the call is async."""
        try:
            result = self._caller.call(event)
        except BaseException as error:  # noqa: BLE001 - a program's code
            self._caller.on_exception(event, error)
            return None
        return result if result is not None and isawaitable(result) else None

    def _finish_event(self, event: Event, began: float, *, plain: bool) -> Event | None:
        """Record a call. Returns the next event of its key, if there is one."""
        listener = self._listener
        took = self._clock() - began
        if plain and took > self._caller.timeout:
            self._caller.on_late_call(event)
        listener.call_times.record(took)
        following = listener.in_flight.finish(event)
        self._key_finished.set()
        listener.release()
        return following

    def __repr__(self) -> str:
        return f"<HandlerRunner of {self._listener.name} {self._listener.in_flight!r}>"
