"""Cancellation of the body of an ``async with`` block when leadership is lost.

``BodyCanceller`` cancels the body through an anyio scope, again and again until the body has ended:
a body that swallows one cancellation receives the next, tasks of anyio's task groups are cancelled
together, and code in a shielded scope may finish. anyio leaves one gap: it skips a task whose wait
is over and which is due to run, so that the task would take one more step. After a long pause of
the process that step is the most dangerous one. So such a task is cancelled in asyncio's way.
Cancellations from other sources stay in effect.

``GuardedAwaitable`` runs a coroutine and checks before each step if it may take it. Cancelling a
task takes effect at its next step. But when a stopped process continues, callbacks that were due
before, timers included, run first, and one step may be one too many. A check before each step
doesn't depend on the order in which the loop runs callbacks.
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
    """Cancels the code that the current task runs between ``enter`` and ``leave``."""

    def __init__(self) -> None:
        """Prepare the cancellation of the current task's body."""
        self.requested = False
        """True if the body was cancelled from here."""
        self._scope = anyio.CancelScope()
        self._task = running_task()
        self._cancelling_before = 0
        self._own_cancels = 0

    def enter(self) -> None:
        """Begin the body. No await may come between this call and the body."""
        self._cancelling_before = self._task.cancelling()
        self._scope.__enter__()

    def cancel(self, reason: str) -> None:
        """Cancel the body. Called by the body itself, the cancellation takes effect at its next
        await.
        """
        if self.requested:
            return
        self.requested = True
        # asyncio has no public attribute for the future that a task awaits; anyio reads this too.
        waits_for: object = getattr(self._task, "_fut_waiter", None)
        due = isinstance(waits_for, asyncio.Future) and waits_for.done()
        if due and asyncio.current_task() is not self._task and self._task.cancel(reason):
            self._own_cancels += 1
        self._scope.cancel(reason)

    def leave(self) -> bool:
        """End the body. Return True if another source wants to cancel the task as well."""
        for _ in range(self._own_cancels):
            self._task.uncancel()
        # The scope must not see the exception of the body: it would split exception groups.
        self._scope.__exit__(None, None, None)
        cancelled = self._task.cancelling() > self._cancelling_before
        return cancelled or anyio.current_effective_deadline() == -float("inf")

    def __repr__(self) -> str:
        return f"<BodyCanceller {'cancelled' if self.requested else 'not cancelled'}>"


T = TypeVar("T")


class GuardedAwaitable(Generic[T]):
    """An awaitable that runs a coroutine step by step. Await it once, in the coroutine's task."""

    def __init__(self, coroutine: Coroutine[Any, Any, T], cancel_reason: Callable[[], str]) -> None:
        """Wrap a coroutine.

        Args:
            coroutine: the coroutine to run.
            cancel_reason: called before each step. If it returns a reason, the coroutine is
                cancelled at that point with the reason as message. The function returns the reason
                only once: further cancellations are up to the caller.
        """
        self._coroutine = coroutine
        self._cancel_reason = cancel_reason

    def __await__(self) -> Generator[Any, Any, T]:
        thrown: BaseException | None = None
        work = self._coroutine
        try:
            while True:
                if thrown is None and (reason := self._cancel_reason()):
                    thrown = CancelledError(reason)
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
                except BaseException as error:  # noqa: BLE001 - thrown into the coroutine
                    thrown = error
        finally:
            work.close()

    def __repr__(self) -> str:
        return f"<GuardedAwaitable {self._coroutine!r}>"
