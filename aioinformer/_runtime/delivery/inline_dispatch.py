"""Calls of plain functions, made together in one callback of the event loop.

To wake a task takes a microsecond, three times as long as to call a function with an event and to
record the call. So where many handlers of an informer receive one event, the loop is asked for one
callback, which calls each plain handler that has pending events.

Each call still belongs to the task of its handler: it runs in that task's context, and
``current_task`` returns that task. If the function returns an awaitable, is cancelled, or raises
an exception that ends the task, the handler's task is woken and continues. The task also handles
the initial state, merged events and resyncs.
"""

from __future__ import annotations

import asyncio
from asyncio.tasks import (
    _enter_task,  # pyright: ignore[reportPrivateUsage] - documented, for code that runs as a task
    _leave_task,  # pyright: ignore[reportPrivateUsage] - as above
)
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import Context
from inspect import isawaitable
from typing import Any, TypeAlias

from aioinformer._core.objects.kube_object import Event
from aioinformer._runtime.delivery.call import HandlerCaller, detached_context
from aioinformer._runtime.tasks.blocking import BLOCKING_LIMIT
from aioinformer._runtime.tasks.event_loop import SLICE_SECONDS, loop_clock

UnfinishedCall: TypeAlias = tuple[Event, Awaitable[None], float]
"""An event, the awaitable that its call returned, and the time at which the call began."""


class InlineDispatcher:
    """The inline handlers of one informer that have pending events, in order of arrival."""

    def __init__(self) -> None:
        """Make a dispatcher with nothing to do."""
        self._clock: Callable[[], float] | None = None
        """Returns the loop's time; ``None`` before the first callback."""
        self.deadline = 0.0
        """The loop's time at which the running callback has to yield to the loop."""
        self.scheduled: deque[InlineHandler] = deque()
        """The handlers to run, each once. A handler adds itself, and calls
        ``schedule_callback``."""
        self.callback_pending = False
        """True if the callback is scheduled."""
        # Not the context of the code that schedules the callback, which it would keep alive.
        self._context = detached_context()

    def schedule_callback(self) -> None:
        """Run the scheduled handlers in the next turn of the loop."""
        self.callback_pending = True
        asyncio.get_running_loop().call_soon(self._run, context=self._context)

    def _run(self) -> None:
        """Run the scheduled handlers, as far as there is time."""
        loop, scheduled, clock = asyncio.get_running_loop(), self.scheduled, self._clock
        if clock is None:
            clock = self._clock = loop_clock()
        now = clock()
        self.deadline = due = now + SLICE_SECONDS
        handler = None
        try:
            while scheduled and now < due:
                handler = scheduled.popleft()
                now = handler.run_pending(loop, clock, now)
            # Only the last handler can have run for long: those before it have left it time.
            if handler is not None and now - due > BLOCKING_LIMIT:
                handler.report_blocking(now - due + SLICE_SECONDS)
        finally:
            self.callback_pending = False
            if scheduled:
                self.schedule_callback()

    def __repr__(self) -> str:
        return f"<InlineDispatcher {len(self.scheduled)} scheduled>"


class InlineHandler:
    """A plain handler that is called on behalf of its task, while the task waits."""

    def __init__(
        self, dispatcher: InlineDispatcher, caller: HandlerCaller, context: Context
    ) -> None:
        """Make an inline handler, which is called only while its task is in ``wait``.

        Args:
            dispatcher: runs the handler.
            caller: the caller of the handler.
            context: the context that the task runs in.
        """
        self._dispatcher = dispatcher
        self._listener = caller.listener
        self._caller = caller
        self._run_in_context = context.run
        mailbox = caller.listener.mailbox
        self._parts = (
            caller.listener, caller, mailbox, mailbox.recent, caller.call, caller.timeout
        )  # fmt: skip
        """The parts that are read for every event: one attribute instead of six."""
        self._scheduled = False
        self._task: asyncio.Task[Any] | None = None
        self._waiter: asyncio.Future[None] | None = None  # what the task awaits
        self._unfinished: UnfinishedCall | None = None
        self._error: BaseException | None = None
        self._cancelled = False

    def schedule(self) -> None:
        """Have the dispatcher run this handler, since events have come."""
        if not self._scheduled:
            self._scheduled = True
            dispatcher = self._dispatcher
            dispatcher.scheduled.append(self)
            if not dispatcher.callback_pending:
                dispatcher.schedule_callback()

    # -- the task's side -----------------------------------------------------------------------

    async def wait(
        self, task: asyncio.Task[Any], waiter: asyncio.Future[None]
    ) -> UnfinishedCall | None:
        """Wait in ``task``, the running one, until the task has something to do.

        Returns:
            A call to be finished, or ``None`` if the task has to look at its listener.
        """
        self._task, self._waiter = task, waiter
        try:
            await waiter
        except asyncio.CancelledError:
            self._on_cancelled(task)
        finally:
            self._waiter, self._cancelled = None, False
            error, self._error = self._error, None
            unfinished, self._unfinished = self._unfinished, None
        if error is not None:
            raise error
        return unfinished

    def _on_cancelled(self, task: asyncio.Task[Any]) -> None:
        if self._cancelled and self._caller.consume_raised_cancel(task):
            return
        if self._unfinished is not None:  # the cancellation must be raised inside of that call
            task.uncancel()
            task.cancel()
        elif self._error is None:
            raise asyncio.CancelledError

    # -- the dispatcher's side -----------------------------------------------------------------

    def run_pending(
        self, loop: asyncio.AbstractEventLoop, clock: Callable[[], float], now: float
    ) -> float:
        """Call the handler with the pending events, as long as there is time.

        Args:
            loop: the running loop.
            clock: returns the loop's time.
            now: the loop's time.

        Returns:
            The loop's time afterwards.
        """
        self._scheduled = False
        task, waiter = self._task, self._waiter
        if task is None or waiter is None or waiter.done():  # the task is awake and takes them
            return now
        try:
            _enter_task(loop, task)
        except RuntimeError:  # inside another task's step, in a nested loop as of nest_asyncio
            waiter.set_result(None)
            return now
        try:
            now = self._run_in_context(self._call_pending, waiter, clock, now)
        except BaseException as error:  # noqa: BLE001 - raised again in the task
            self._error = error
        finally:
            _leave_task(loop, task)
        if waiter.done():
            self._cancelled = waiter.cancelled() or task.cancelling() > 0
        elif self._unfinished is not None or self._error is not None:
            waiter.set_result(None)
        return now

    def _call_pending(
        self, waiter: asyncio.Future[None], clock: Callable[[], float], now: float
    ) -> float:
        """Call the handler until no live event is pending, or time is up."""
        listener, caller, mailbox, recent, call, timeout = self._parts
        due, waiter_done = self._dispatcher.deadline, waiter.done
        began, first, count, longest, took = now, now, 0, 0.0, 0.0
        notable = 0.0  # a call that took longer is the longest one, or late
        try:
            while (batch := mailbox.borrow_batch()) is not None:
                for event in batch:
                    try:
                        result = call(event)
                    except BaseException as error:  # noqa: BLE001 - a program's code
                        caller.on_exception(event, error)
                        result = None
                    now = clock()
                    if result is not None and isawaitable(result):
                        self._unfinished = event, result, began
                        return now
                    took = now - began
                    began = now
                    count += 1
                    if took > notable:
                        if took > longest:
                            longest = notable = took
                        if took > timeout:
                            notable = timeout
                            caller.on_late_call(event)
                    if waiter_done():  # the handler has closed its listener or cancelled its task
                        return now
                    if now >= due:
                        self.schedule()
                        return now
                if not recent.queue:
                    return now
            if not mailbox.empty:  # the rest is for the task, which takes events one by one
                waiter.set_result(None)
        finally:
            if count:
                listener.call_times.record_calls(count, began - first, took, longest)
            if listener.sync_pending or listener.gate.closed:
                listener.release()
        return now

    def report_blocking(self, seconds: float) -> None:
        """Report that ``run_pending`` has held the event loop."""
        if self._caller.report_blocking is not None:
            self._caller.report_blocking(seconds)

    def __repr__(self) -> str:
        state = "scheduled" if self._scheduled else "idle"
        return f"<InlineHandler of {self._listener.name} {state}>"
