"""Cancellation of the body of an ``async with`` block when leadership is lost.

``BodyCanceller`` cancels the body through an anyio scope, again and again until the body has ended:
a body that swallows one cancellation receives the next, tasks of anyio's task groups are cancelled
together, and code in a shielded scope may finish. A task whose wait is over and which is due to run
takes that step, because anyio skips it once. In time, the step is harmless: no other candidate can
lead yet. After a long pause of the process it is the most dangerous one. So a late cancellation is
made in asyncio's way as well, which prevents that step and reaches into shielded scopes.
Cancellations from other sources stay in effect.

``GuardedAwaitable`` runs a coroutine and checks before each step if it may take it. Cancelling a
task takes effect at its next step. But when a stopped process continues, callbacks that were due
before, timers included, run first, and one step may be one too many. A check before each step
doesn't depend on the order in which the loop runs callbacks.
"""

from __future__ import annotations

import asyncio
from asyncio import CancelledError
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import anyio

from aioinformer._runtime.tasks.event_loop import running_task
from aioinformer._runtime.tasks.steps import CoroutineSteps


class BodyCanceller:
    """Cancels the code that the current task runs between ``enter`` and ``leave``."""

    def __init__(self) -> None:
        """Prepare the cancellation of the current task's body."""
        self.requested = False
        """True if the body was cancelled from here."""
        self._scope = anyio.CancelScope()
        self._task = running_task()
        self._cancelling_before = 0
        self._cancelled_late = False

    def enter(self) -> None:
        """Begin the body. No await may come between this call and the body."""
        self._cancelling_before = self._task.cancelling()
        self._scope.__enter__()

    def cancel(self, reason: str, *, late: bool = False) -> None:
        """Cancel the body. Called by the body itself, the cancellation takes effect at its next
        await.

        Args:
            reason: the message of the cancellation.
            late: True if the body must not take the step that may be due.
        """
        if self.requested:
            return
        self.requested = True
        if late and asyncio.current_task() is not self._task and self._task.cancel(reason):
            self._cancelled_late = True
        self._scope.cancel(reason)

    def leave(self) -> bool:
        """End the body. Return True if another source wants to cancel the task as well."""
        if self._cancelled_late:
            self._task.uncancel()
        # The scope must not see the exception of the body: it would split exception groups.
        self._scope.__exit__(None, None, None)
        cancelled = self._task.cancelling() > self._cancelling_before
        return cancelled or anyio.current_effective_deadline() == -float("inf")

    def __repr__(self) -> str:
        return f"<BodyCanceller {'cancelled' if self.requested else 'not cancelled'}>"


T = TypeVar("T")


class GuardedAwaitable(CoroutineSteps[T]):
    """An awaitable that runs a coroutine step by step. Await it once, in the coroutine's task."""

    __slots__ = ("_cancel_reason",)

    def __init__(self, work: Coroutine[Any, Any, T], cancel_reason: Callable[[], str]) -> None:
        """Wrap a coroutine.

        Args:
            work: the coroutine to run.
            cancel_reason: called before each step. If it returns a reason, the coroutine is
                cancelled at that point with the reason as message. The function returns the reason
                only once: further cancellations are up to the caller.
        """
        super().__init__(work)
        self._cancel_reason = cancel_reason

    def send(self, value: Any = None) -> Any:
        """Take the next step, or cancel the coroutine."""
        reason = self._cancel_reason()
        return self.throw(CancelledError(reason)) if reason else super().send(value)

    __next__ = send
