"""How a body is made to end: the code in an ``async with`` whose reason has gone.

An anyio scope cancels it, again and again until it has ended: a body that swallows one
cancellation is given the next, tasks of anyio's task groups are reached all at once, and what
stands in a shielded scope is left to finish. There is one gap, which is closed here: anyio leaves
out a task whose wait is over and which is due to run, and that one would do another step, the most
dangerous one after a long pause. It is cancelled as asyncio does.

Cancellations that others ask for meanwhile stay theirs.

A coroutine that is asked before each of its steps whether it may take it.

Cancelling a task takes effect at its next step. But when a process was stopped in the middle of
something, what was due before comes first as it goes on, timers and all, and one step may be one
too many. Where the coroutine is driven from here, each is looked at, whatever the loop's order.
"""

from __future__ import annotations

import asyncio
from asyncio import CancelledError
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

import anyio

from aioinformer._runtime.tasks.event_loop import running_task

__all__ = ["BodyCanceller", "GuardedAwaitable"]


class BodyCanceller:
    """Ends what the current task does between ``enter`` and ``leave``, if it is told to."""

    def __init__(self) -> None:
        """Nobody is to go."""
        self.requested = False
        """Whether the body was told to end."""
        self._scope = anyio.CancelScope()
        self._task = running_task()
        self._cancelling_before = 0
        self._own_cancels = 0

    def enter(self) -> None:
        """The body begins. No await may come between this and the body."""
        self._cancelling_before = self._task.cancelling()
        self._scope.__enter__()

    def cancel(self, reason: str) -> None:
        """Make it end. The body itself may say so, and is cancelled where it next waits."""
        if self.requested:
            return
        self.requested = True
        # asyncio's own way to see what a task waits for is not public; anyio looks there, too.
        waits_for: object = getattr(self._task, "_fut_waiter", None)
        due = isinstance(waits_for, asyncio.Future) and waits_for.done()
        if due and asyncio.current_task() is not self._task and self._task.cancel(reason):
            self._own_cancels += 1
        self._scope.cancel(reason)

    def leave(self) -> bool:
        """The body has ended; whether somebody else wants its task to end as well."""
        for _ in range(self._own_cancels):
            self._task.uncancel()
        # It isn't told with what the body ended: it would take exception groups apart.
        self._scope.__exit__(None, None, None)
        asked = self._task.cancelling() > self._cancelling_before
        return asked or anyio.current_effective_deadline() == -float("inf")

    def __repr__(self) -> str:
        return f"<BodyCanceller {'wanted' if self.requested else 'not wanted'}>"


T = TypeVar("T")


class GuardedAwaitable(Generic[T]):
    """Awaits a coroutine, step by step. Await it once, in the task that it is to run in."""

    def __init__(self, coroutine: Coroutine[Any, Any, T], cancel_reason: Callable[[], str]) -> None:
        """Make it.

        Args:
            coroutine: what to run.
            cancel_reason: asked before each step; if it says anything, the coroutine is cancelled there,
                with that. It says so once: from then on cancelling is somebody else's.
        """
        self._coroutine = coroutine
        self._cancel_reason = cancel_reason

    def __await__(self) -> Generator[Any, Any, T]:
        thrown: BaseException | None = None
        work = self._coroutine
        try:
            while True:
                if thrown is None and (refused := self._cancel_reason()):
                    thrown = CancelledError(refused)
                try:
                    waits = work.send(None) if thrown is None else work.throw(thrown)
                except StopIteration as done:
                    result: T = done.value
                    return result
                thrown = None
                try:
                    yield waits
                except GeneratorExit:
                    raise
                except BaseException as error:  # noqa: BLE001 - it is the coroutine's
                    thrown = error
        finally:
            work.close()

    def __repr__(self) -> str:
        return f"<GuardedAwaitable {self._coroutine!r}>"
