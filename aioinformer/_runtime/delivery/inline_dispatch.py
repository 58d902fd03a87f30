"""Handlers that are plain functions are called in rounds, which need no wake-up of each.

To wake a task up costs a microsecond, three times what it takes to call a function with an event
and to keep the account of it. So where many handlers of an informer hear of one event, the loop is
asked for one callback, which goes round those that have something pending.

Each call is still its own task's: it runs in that task's context, is what ``current_task`` says
there, and whatever is more than a function that returns is left to the task, which is woken up for
it: something to await, an exception that ends it, a cancellation. The first state, what was merged
and a resync are not for rounds either.
"""

from __future__ import annotations

import asyncio
from asyncio.tasks import (
    _enter_task,  # pyright: ignore[reportPrivateUsage] - documented, for who runs code as a task
    _leave_task,  # pyright: ignore[reportPrivateUsage] - as above
)
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import Any, TypeAlias

from aioinformer._core.delivery.mailbox import Mailbox
from aioinformer._core.objects.kube_object import Event
from aioinformer._runtime.delivery.call import HandlerCaller, as_awaitable, detached_context
from aioinformer._runtime.delivery.listener import Listener
from aioinformer._runtime.tasks.event_loop import SLICE_SECONDS

__all__ = ["InlineDispatcher", "InlineHandler", "UnfinishedCall"]

UnfinishedCall: TypeAlias = tuple[Event, Awaitable[None], float]
"""An event, what is left to await of its call, and when that began."""


class InlineDispatcher:
    """Those that have something pending, in the order in which it came."""

    def __init__(self) -> None:
        """Nobody has anything."""
        self.deadline = 0.0
        """When the round that is on has to give way."""
        self.scheduled: deque[InlineHandler] = deque()
        """Whom to visit, once each. Who asks to be, adds itself and has the round ``schedule_callback``."""
        self.callback_pending = False
        """Whether a round is about to begin."""
        # Not that of whoever asked: it would be kept alive, and has nothing to do with this.
        self._context = detached_context()

    def schedule_callback(self) -> None:
        """Go round in the next turn of the loop."""
        self.callback_pending = True
        asyncio.get_running_loop().call_soon(self._run, context=self._context)

    def _run(self) -> None:
        """One round, as far as there is time."""
        loop, asked = asyncio.get_running_loop(), self.scheduled
        now = loop.time()
        self.deadline = due = now + SLICE_SECONDS
        try:
            while asked and now < due:
                now = asked.popleft().run_pending(loop, now)
        finally:
            self.callback_pending = False
            if asked:
                self.schedule_callback()

    def __repr__(self) -> str:
        return f"<InlineDispatcher {len(self.scheduled)} to be visited>"


class InlineHandler:
    """Calls a plain handler in the name of its task, while that waits."""

    def __init__(
        self,
        dispatcher: InlineDispatcher,
        listener: Listener,
        mailbox: Mailbox,
        handler_caller: HandlerCaller,
        context: Context,
    ) -> None:
        """Visit nobody before there is somebody who waits ``wait``.

        Args:
            dispatcher: who visits.
            listener: who is told what was done.
            mailbox: the listener's, where the events are.
            handler_caller: calls the handler.
            context: the one that the task runs in.
        """
        self._dispatcher = dispatcher
        self._listener = listener
        self._mailbox = mailbox
        self._handler_caller = handler_caller
        self._call, self._blocking_limit = handler_caller.call, handler_caller.blocking_limit
        self._run_in_context = context.run
        self._scheduled = False
        self._task: asyncio.Task[Any] | None = None
        self._waiter: asyncio.Future[None] | None = None  # what it awaits
        self._unfinished: UnfinishedCall | None = None
        self._error: BaseException | None = None
        self._cancelled = False

    def schedule(self) -> None:
        """Something has come."""
        if not self._scheduled:
            self._scheduled = True
            rounds = self._dispatcher
            rounds.scheduled.append(self)
            if not rounds.callback_pending:
                rounds.schedule_callback()

    # -- the task's side -----------------------------------------------------------------------

    async def wait(
        self, task: asyncio.Task[Any], waiter: asyncio.Future[None]
    ) -> UnfinishedCall | None:
        """Wait in ``task``, this one, until there is something for it to do: what is left of a
        call, or what it finds at its listener.
        """
        self._task, self._waiter = task, waiter
        try:
            await waiter
        except asyncio.CancelledError:
            self._on_cancelled(task)
        finally:
            self._waiter, self._cancelled = None, False
            error, self._error = self._error, None
            left, self._unfinished = self._unfinished, None
        if error is not None:
            raise error
        return left

    def _on_cancelled(self, task: asyncio.Task[Any]) -> None:
        if self._cancelled and self._handler_caller.cleared_self_cancel(task):
            return
        if self._unfinished is not None:  # has begun: that it is to end is felt inside of it
            task.uncancel()
            task.cancel()
        elif self._error is None:
            raise asyncio.CancelledError

    # -- the visitor's side --------------------------------------------------------------------

    def run_pending(self, loop: asyncio.AbstractEventLoop, now: float) -> float:
        """Deal with what is pending, beginning ``now``, and as long as there is time; until when
        that took.
        """
        self._scheduled = False
        task, waiter = self._task, self._waiter
        if task is None or waiter is None or waiter.done():  # it is awake, and sees for itself
            return now
        try:
            _enter_task(loop, task)
        except RuntimeError:  # in a loop within another task's step, as nest_asyncio has them
            waiter.set_result(None)
            return now
        try:
            now = self._run_in_context(self._call_pending, waiter, loop.time, now)
        except BaseException as error:  # noqa: BLE001 - it is raised again, in the task
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
        """Call the handler until nothing is pending that is for rounds, or time is up."""
        box, call, patience, due = (
            self._mailbox,
            self._call,
            self._blocking_limit,
            self._dispatcher.deadline,
        )
        began, first, count, longest, took = now, now, 0, 0.0, 0.0
        try:
            while (run := box.borrow_batch()) is not None:
                for event in run:
                    result = None
                    try:
                        result = call(event)
                    except BaseException as error:  # noqa: BLE001 - a program's code
                        self._handler_caller.on_exception(event, error)
                    now = clock()
                    if result is not None and (rest := as_awaitable(result)) is not None:
                        self._unfinished = event, rest, began
                        return now
                    took = now - began
                    began = now
                    count += 1
                    if took > longest:
                        longest = took
                    if took > patience:
                        self._handler_caller.on_blocking_call(event, took)
                    if waiter.done():
                        return now
                    if now >= due:
                        self.schedule()
                        return now
                if not box.more_batches:
                    return now
            if not box.empty:  # what is pending is the task's
                waiter.set_result(None)
        finally:
            if count:
                self._listener.record_calls(began - first, count, took, longest)
            self._listener.release()
        return now

    def __repr__(self) -> str:
        state = "asked for" if self._scheduled else "idle"
        return f"<InlineHandler to {self._listener.name} {state}>"
