"""Calling a handler: one event after the other, or several keys at once.

The loop here takes events from a listener and has the handler called, in the event loop or in
threads of its own. While nothing is pending, one that is a plain function may be visited instead;
see ``rounds``. What comes of a call is ``attempts``'; who starts and ends this is
``registration``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from aioinformer._core.delivery.key_concurrency import KeyConcurrency
from aioinformer._core.objects.kube_object import Event
from aioinformer._runtime.delivery.call import HandlerCaller
from aioinformer._runtime.delivery.inline_dispatch import InlineHandler
from aioinformer._runtime.delivery.listener import Listener
from aioinformer._runtime.tasks.event_loop import SLICE_SECONDS, running_task

__all__ = ["HandlerRunner"]


class HandlerRunner:
    """Calls one handler with what its listener hears."""

    def __init__(
        self,
        listener: Listener,
        handler_caller: HandlerCaller,
        concurrency: int,
        inline_handler: InlineHandler | None = None,
    ) -> None:
        """Make a caller; ``run`` starts it.

        Args:
            listener: where the events are.
            handler_caller: calls the handler.
            concurrency: keys that may be dealt with at once.
            inline_handler: calls it while the task waits, if it may.
        """
        self.key_concurrency = KeyConcurrency(concurrency)
        """The keys that it is busy with, if there may be several."""
        self._listener = listener
        self._handler_caller = handler_caller
        self._inline_handler = inline_handler
        self._key_finished = asyncio.Event()

    async def run(self) -> None:
        """Call the handler until its listener is closed and everything was taken."""
        try:
            await (
                self._run_sequential()
                if self.key_concurrency.count == 1
                else self._run_concurrent()
            )
        finally:
            self._handler_caller.stop()

    # -- one event after the other -------------------------------------------------------------

    async def _run_sequential(self) -> None:
        task, listener, attempts = running_task(), self._listener, self._handler_caller
        clock = asyncio.get_running_loop().time
        rested = clock()
        while True:
            if task.cancelling():
                await attempts.check_cancelled(task)
            if (waiter := listener.waiter()) is not None:
                await (waiter if self._inline_handler is None else self._wait_inline(task, waiter))
            if listener.ended:
                return
            first = began = clock()  # of plain calls, whose times are told of together
            rested = began if waiter is not None else rested
            plain, took, longest = 0, 0.0, 0.0
            for event in listener.take():
                unfinished = attempts.begin(event)
                if unfinished is None:
                    plain += 1
                    now = clock()
                    took = now - began
                    if took > longest:
                        longest = took
                    if took > attempts.blocking_limit:
                        attempts.on_blocking_call(event, took)
                else:
                    if plain:
                        listener.record_calls(began - first, plain, took, longest)
                    if task.cancelling():  # the function did it, before it returned this
                        await attempts.clear_self_cancel(task)
                    await attempts.finish(task, event, unfinished, began)
                    if attempts.cancellation_pending(task):
                        await attempts.check_cancelled(task)
                    first = now = clock()
                    plain, longest = 0, 0.0
                    listener.record_calls(now - began)
                    listener.release()
                if now - rested >= SLICE_SECONDS or task.cancelling():
                    if plain:
                        listener.record_calls(now - first, plain, took, longest)
                    await (
                        attempts.check_cancelled(task) if task.cancelling() else asyncio.sleep(0)
                    )
                    first = now = rested = clock()
                    plain, longest = 0, 0.0
                    listener.release()
                began = now
            if plain:
                listener.record_calls(began - first, plain, took, longest)

    async def _wait_inline(self, task: asyncio.Task[Any], waiter: asyncio.Future[None]) -> None:
        """Wait, while the handler is called in rounds."""
        listener, attempts = self._listener, self._handler_caller
        left = (
            None if self._inline_handler is None else await self._inline_handler.wait(task, waiter)
        )
        if left is None:
            return
        self._inline_handler = listener.on_ready = (
            None  # it is async, though it didn't look like it
        )
        event, unfinished, began = left
        await attempts.finish(task, event, unfinished, began)
        if attempts.cancellation_pending(task):
            await attempts.check_cancelled(task)
        listener.record_calls(asyncio.get_running_loop().time() - began)
        listener.release()

    # -- several keys at once ------------------------------------------------------------------

    async def _run_concurrent(self) -> None:
        attempts = self._handler_caller
        try:
            async with asyncio.TaskGroup() as group:
                task, clock = running_task(), asyncio.get_running_loop().time
                rested = clock()
                while (event := await self._next_event()) is not None:
                    if self.key_concurrency.start(event):
                        self._start_key(group, event)
                    if task.cancelling():
                        await attempts.check_cancelled(task)
                    if clock() - rested >= SLICE_SECONDS:
                        await asyncio.sleep(0)
                        rested = clock()
        except BaseExceptionGroup as failed:
            error = failed.exceptions[0]
            raise error from error.__cause__

    async def _next_event(self) -> Event | None:
        """The next event, once there may be a lane for it."""
        while self.key_concurrency.full:
            self._key_finished.clear()
            await self._key_finished.wait()
        event = self._listener.next_nowait()
        return await self._listener.next() if event is None else event

    def _start_key(self, group: asyncio.TaskGroup, event: Event) -> None:
        """Call the handler; if there is something to await, in a task of its own."""
        following: Event | None = event
        while following is not None:
            event, began = following, asyncio.get_running_loop().time()
            unfinished = self._handler_caller.begin(event)
            if unfinished is not None:
                lane = self._run_key(event, unfinished, began)
                group.create_task(lane, name=self._listener.name)
                return
            following = self._finish_event(event, began, blocking=True)

    async def _run_key(self, event: Event, awaitable: Awaitable[None] | None, began: float) -> None:
        """Deal with an event, and with what has come for its key meanwhile."""
        task, attempts = running_task(), self._handler_caller
        while True:
            if awaitable is not None:
                await attempts.finish(task, event, awaitable, began)
            following = self._finish_event(event, began, blocking=awaitable is None)
            if attempts.cancellation_pending(task):
                await attempts.check_cancelled(task)
            if following is None:
                return
            event, began = following, asyncio.get_running_loop().time()
            awaitable = attempts.begin(event)

    def _finish_event(self, event: Event, began: float, *, blocking: bool) -> Event | None:
        took = asyncio.get_running_loop().time() - began
        if blocking and took > self._handler_caller.blocking_limit:
            self._handler_caller.on_blocking_call(event, took)
        self._listener.record_calls(took)
        following = self.key_concurrency.finish(event)
        self._key_finished.set()
        self._listener.release()
        return following

    def __repr__(self) -> str:
        return f"<HandlerRunner of {self._listener.name} {self.key_concurrency!r}>"
