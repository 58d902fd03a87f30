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
from aioinformer._runtime.delivery.call import Attempts, context_outside, unfinished
from aioinformer._runtime.delivery.listener import Listener
from aioinformer._runtime.tasks.event_loop import BUDGET

__all__ = ["Rounds", "Unfinished", "Visits"]

Unfinished: TypeAlias = tuple[Event, Awaitable[None], float]
"""An event, what is left to await of its call, and when that began."""


class Rounds:
    """Those that have something pending, in the order in which it came."""

    def __init__(self) -> None:
        """Nobody has anything."""
        self.due = 0.0
        """When the round that is on has to give way."""
        self.asked: deque[Visits] = deque()
        """Whom to visit, once each. Who asks to be, adds itself and has the round ``begin``."""
        self.soon = False
        """Whether a round is about to begin."""
        # Not that of whoever asked: it would be kept alive, and has nothing to do with this.
        self._context = context_outside()

    def begin(self) -> None:
        """Go round in the next turn of the loop."""
        self.soon = True
        asyncio.get_running_loop().call_soon(self._go, context=self._context)

    def _go(self) -> None:
        """One round, as far as there is time."""
        loop, asked = asyncio.get_running_loop(), self.asked
        now = loop.time()
        self.due = due = now + BUDGET
        try:
            while asked and now < due:
                now = asked.popleft().visit(loop, now)
        finally:
            self.soon = False
            if asked:
                self.begin()

    def __repr__(self) -> str:
        return f"<Rounds {len(self.asked)} to be visited>"


class Visits:
    """Calls a plain handler in the name of its task, while that waits."""

    def __init__(
        self,
        rounds: Rounds,
        listener: Listener,
        mailbox: Mailbox,
        attempts: Attempts,
        context: Context,
    ) -> None:
        """Visit nobody before there is somebody who waits ``until``.

        Args:
            rounds: who visits.
            listener: who is told what was done.
            mailbox: the listener's, where the events are.
            attempts: calls the handler.
            context: the one that the task runs in.
        """
        self._rounds = rounds
        self._listener = listener
        self._mailbox = mailbox
        self._attempts = attempts
        self._call, self._patience = attempts.call, attempts.patience
        self._within = context.run
        self._asked = False
        self._task: asyncio.Task[Any] | None = None
        self._waiter: asyncio.Future[None] | None = None  # what it awaits
        self._left: Unfinished | None = None
        self._error: BaseException | None = None
        self._cancelled = False

    def ask(self) -> None:
        """Something has come."""
        if not self._asked:
            self._asked = True
            rounds = self._rounds
            rounds.asked.append(self)
            if not rounds.soon:
                rounds.begin()

    # -- the task's side -----------------------------------------------------------------------

    async def until(
        self, task: asyncio.Task[Any], waiter: asyncio.Future[None]
    ) -> Unfinished | None:
        """Wait in ``task``, this one, until there is something for it to do: what is left of a
        call, or what it finds at its listener.
        """
        self._task, self._waiter = task, waiter
        try:
            await waiter
        except asyncio.CancelledError:
            self._interrupted(task)
        finally:
            self._waiter, self._cancelled = None, False
            error, self._error = self._error, None
            left, self._left = self._left, None
        if error is not None:
            raise error
        return left

    def _interrupted(self, task: asyncio.Task[Any]) -> None:
        if self._cancelled and self._attempts.undone(task):
            return
        if self._left is not None:  # has begun: that it is to end is felt inside of it
            task.uncancel()
            task.cancel()
        elif self._error is None:
            raise asyncio.CancelledError

    # -- the visitor's side --------------------------------------------------------------------

    def visit(self, loop: asyncio.AbstractEventLoop, now: float) -> float:
        """Deal with what is pending, beginning ``now``, and as long as there is time; until when
        that took.
        """
        self._asked = False
        task, waiter = self._task, self._waiter
        if task is None or waiter is None or waiter.done():  # it is awake, and sees for itself
            return now
        try:
            _enter_task(loop, task)
        except RuntimeError:  # in a loop within another task's step, as nest_asyncio has them
            waiter.set_result(None)
            return now
        try:
            now = self._within(self._calls, waiter, loop.time, now)
        except BaseException as error:  # noqa: BLE001 - it is raised again, in the task
            self._error = error
        finally:
            _leave_task(loop, task)
        if waiter.done():
            self._cancelled = waiter.cancelled() or task.cancelling() > 0
        elif self._left is not None or self._error is not None:
            waiter.set_result(None)
        return now

    def _calls(self, waiter: asyncio.Future[None], clock: Callable[[], float], now: float) -> float:
        """Call the handler until nothing is pending that is for rounds, or time is up."""
        box, call, patience, due = self._mailbox, self._call, self._patience, self._rounds.due
        began, first, count, longest, took = now, now, 0, 0.0, 0.0
        try:
            while (run := box.run()) is not None:
                for event in run:
                    result = None
                    try:
                        result = call(event)
                    except BaseException as error:  # noqa: BLE001 - a program's code
                        self._attempts.raised(event, error)
                    now = clock()
                    if result is not None and (rest := unfinished(result)) is not None:
                        self._left = event, rest, began
                        return now
                    took = now - began
                    began = now
                    count += 1
                    if took > longest:
                        longest = took
                    if took > patience:
                        self._attempts.kept_the_loop(event, took)
                    if waiter.done():
                        return now
                    if now >= due:
                        self.ask()
                        return now
                if not box.more:
                    return now
            if not box.empty:  # what is pending is the task's
                waiter.set_result(None)
        finally:
            if count:
                self._listener.spent(began - first, count, took, longest)
            self._listener.relieve()
        return now

    def __repr__(self) -> str:
        state = "asked for" if self._asked else "idle"
        return f"<Visits to {self._listener.name} {state}>"
