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

from aioinformer._core.delivery.key_concurrency import Lanes
from aioinformer._core.objects.kube_object import Event
from aioinformer._runtime.delivery.call import Attempts
from aioinformer._runtime.delivery.inline_dispatch import Visits
from aioinformer._runtime.delivery.listener import Listener
from aioinformer._runtime.tasks.event_loop import BUDGET, this_task

__all__ = ["Caller"]


class Caller:
    """Calls one handler with what its listener hears."""

    def __init__(
        self, listener: Listener, attempts: Attempts, count: int, visits: Visits | None = None
    ) -> None:
        """Make a caller; ``run`` starts it.

        Args:
            listener: where the events are.
            attempts: calls the handler.
            count: keys that may be dealt with at once.
            visits: calls it while the task waits, if it may.
        """
        self.lanes = Lanes(count)
        """The keys that it is busy with, if there may be several."""
        self._listener = listener
        self._attempts = attempts
        self._visits = visits
        self._turn = asyncio.Event()

    async def run(self) -> None:
        """Call the handler until its listener is closed and everything was taken."""
        try:
            await (self._one_by_one() if self.lanes.count == 1 else self._side_by_side())
        finally:
            self._attempts.stop()

    # -- one event after the other -------------------------------------------------------------

    async def _one_by_one(self) -> None:
        task, listener, attempts = this_task(), self._listener, self._attempts
        clock = asyncio.get_running_loop().time
        rested = clock()
        while True:
            if task.cancelling():
                await attempts.go_on(task)
            if (waiter := listener.parked()) is not None:
                await (waiter if self._visits is None else self._visited(task, waiter))
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
                    if took > attempts.patience:
                        attempts.kept_the_loop(event, took)
                else:
                    if plain:
                        listener.spent(began - first, plain, took, longest)
                    if task.cancelling():  # the function did it, before it returned this
                        await attempts.undo(task)
                    await attempts.finish(task, event, unfinished, began)
                    if attempts.ends(task):
                        await attempts.go_on(task)
                    first = now = clock()
                    plain, longest = 0, 0.0
                    listener.spent(now - began)
                    listener.relieve()
                if now - rested >= BUDGET or task.cancelling():
                    if plain:
                        listener.spent(now - first, plain, took, longest)
                    await (attempts.go_on(task) if task.cancelling() else asyncio.sleep(0))
                    first = now = rested = clock()
                    plain, longest = 0, 0.0
                    listener.relieve()
                began = now
            if plain:
                listener.spent(began - first, plain, took, longest)

    async def _visited(self, task: asyncio.Task[Any], waiter: asyncio.Future[None]) -> None:
        """Wait, while the handler is called in rounds."""
        listener, attempts = self._listener, self._attempts
        left = None if self._visits is None else await self._visits.until(task, waiter)
        if left is None:
            return
        self._visits = listener.summon = None  # it is async, though it didn't look like it
        event, unfinished, began = left
        await attempts.finish(task, event, unfinished, began)
        if attempts.ends(task):
            await attempts.go_on(task)
        listener.spent(asyncio.get_running_loop().time() - began)
        listener.relieve()

    # -- several keys at once ------------------------------------------------------------------

    async def _side_by_side(self) -> None:
        attempts = self._attempts
        try:
            async with asyncio.TaskGroup() as group:
                task, clock = this_task(), asyncio.get_running_loop().time
                rested = clock()
                while (event := await self._next_for_a_lane()) is not None:
                    if self.lanes.enter(event):
                        self._open_lane(group, event)
                    if task.cancelling():
                        await attempts.go_on(task)
                    if clock() - rested >= BUDGET:
                        await asyncio.sleep(0)
                        rested = clock()
        except BaseExceptionGroup as failed:
            error = failed.exceptions[0]
            raise error from error.__cause__

    async def _next_for_a_lane(self) -> Event | None:
        """The next event, once there may be a lane for it."""
        while self.lanes.full:
            self._turn.clear()
            await self._turn.wait()
        event = self._listener.next_nowait()
        return await self._listener.next() if event is None else event

    def _open_lane(self, group: asyncio.TaskGroup, event: Event) -> None:
        """Call the handler; if there is something to await, in a task of its own."""
        following: Event | None = event
        while following is not None:
            event, began = following, asyncio.get_running_loop().time()
            unfinished = self._attempts.begin(event)
            if unfinished is not None:
                lane = self._lane(event, unfinished, began)
                group.create_task(lane, name=self._listener.name)
                return
            following = self._leave(event, began, kept_the_loop=True)

    async def _lane(self, event: Event, unfinished: Awaitable[None] | None, began: float) -> None:
        """Deal with an event, and with what has come for its key meanwhile."""
        task, attempts = this_task(), self._attempts
        while True:
            if unfinished is not None:
                await attempts.finish(task, event, unfinished, began)
            following = self._leave(event, began, kept_the_loop=unfinished is None)
            if attempts.ends(task):
                await attempts.go_on(task)
            if following is None:
                return
            event, began = following, asyncio.get_running_loop().time()
            unfinished = attempts.begin(event)

    def _leave(self, event: Event, began: float, *, kept_the_loop: bool) -> Event | None:
        took = asyncio.get_running_loop().time() - began
        if kept_the_loop and took > self._attempts.patience:
            self._attempts.kept_the_loop(event, took)
        self._listener.spent(took)
        following = self.lanes.leave(event)
        self._turn.set()
        self._listener.relieve()
        return following

    def __repr__(self) -> str:
        return f"<Caller of {self._listener.name} {self.lanes!r}>"
