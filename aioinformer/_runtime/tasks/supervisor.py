"""The supervisor: a task that owns a task group, for something that is entered and left.

A task group must be left by the task that entered it, and wraps what goes wrong into groups. A
pytest fixture, a FastAPI lifespan or an exit stack may leave in another task, and a program's
``async with`` body wants its own exceptions back as they are. So the group lives inside a task
of its own: entering starts it, leaving ends it, and a failure inside cancels the body and is
raised bare where the body is left. Who fails may take long to end, so a failure can be told of
before.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Literal

from aioinformer._runtime.tasks.event_loop import check_loop, running_loop
from aioinformer.errors import NotRunning, ShutdownIncomplete, UsageError

__all__ = ["Supervisor"]

log = logging.getLogger("aioinformer.supervisor")

CANCELLED_ENTER_TIMEOUT = 1.0
"""Seconds to wait for the tasks of something whose entering was cancelled: they have hardly begun.
"""


class Supervisor:
    """Owns the tasks of one thing that runs once."""

    def __init__(self, name: str) -> None:
        """Make a supervisor of nothing yet; ``name`` is for errors and the task."""
        self._name = name
        self._group: asyncio.TaskGroup | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._leaving = asyncio.Event()
        self._entered = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._body: asyncio.Task[Any] | None = None
        self._body_cancelled = False
        self._reported_failure: BaseException | None = None
        self._children: set[asyncio.Task[None]] = set()

    @property
    def state(self) -> Literal["new", "running", "ended"]:
        """How far it is."""
        if self._leaving.is_set():
            return "ended"
        return "new" if self._group is None else "running"

    @property
    def running(self) -> bool:
        """Whether tasks can be started."""
        return self.state == "running"

    def check_usable(self) -> None:
        """Raise unless it can be used from here.

        Raises:
            NotRunning: it has ended.
            UsageError: it runs in another event loop.
        """
        if self._leaving.is_set():
            raise NotRunning(f"the {self._name} has ended; make another one")
        check_loop(self._loop, f"the {self._name}")

    def spawn(self, coroutine: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None]:
        """Start a task. If it raises, everything ends, and that is what is raised."""
        if self._group is None:
            coroutine.close()
            raise NotRunning(f"the {self._name} doesn't run")
        task = self._group.create_task(coroutine, name=name)
        self._children.add(task)
        task.add_done_callback(self._children.discard)
        return task

    def fail(self, error: BaseException) -> None:
        """One of the tasks has failed, and may take a while to end: everything else ends now."""
        if self._reported_failure is None:
            self._reported_failure = error
            self._leaving.set()
            self._cancel_body(error)

    async def enter(self, start_tasks: Callable[[], None]) -> None:
        """Own the tasks from a task of its own.

        Args:
            start_tasks: called once tasks can be started.
        """
        if self._loop is not None:
            raise UsageError(f"the {self._name} runs once; make another one")
        self._loop = asyncio.get_running_loop()
        self._body = asyncio.current_task()
        self._task = asyncio.create_task(self._supervise(start_tasks), name=self._name)
        self._task.add_done_callback(self._on_task_done)
        try:
            await self._entered.wait()
        except asyncio.CancelledError:  # what isn't entered won't be left either
            self._body = None
            await self._end(CANCELLED_ENTER_TIMEOUT, running_names=tuple)
            raise

    async def leave(
        self,
        error: BaseException | None,
        *,
        timeout: float,
        running_names: Callable[[], tuple[str, ...]],
    ) -> None:
        """End the tasks and wait for that, also when cancelled meanwhile.

        Args:
            error: with what the body ended.
            timeout: seconds to wait.
            running_names: what to call that which is still running then.

        Raises:
            ShutdownIncomplete: something was still running then. It is logged, too: the end of
                the event loop waits for what is left, perhaps for ever, and says nothing.
        """
        body, self._body = self._body, None
        try:
            await self._end(timeout, running_names)
        except ShutdownIncomplete:
            if error is None and self._failure is None:
                raise
        failure = self._failure
        if failure is None:
            return
        others = 0
        if self._body_cancelled and body is not None and body is asyncio.current_task():
            others = body.uncancel()
        # NotRunning is how the body may have heard of the failure first.
        if error is None or isinstance(error, NotRunning):
            raise failure from failure.__cause__
        # If somebody else wants the body to end as well, that goes first.
        if self._body_cancelled and isinstance(error, asyncio.CancelledError) and not others:
            raise failure from failure.__cause__

    @property
    def _failure(self) -> BaseException | None:
        """What has failed first, or with what the tasks have ended."""
        if self._reported_failure is not None:
            return self._reported_failure
        if self._task is None or not self._task.done() or self._task.cancelled():
            return None
        return self._task.exception()

    async def _supervise(self, start_tasks: Callable[[], None]) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                start_tasks()
                self._entered.set()
                await self._leaving.wait()
                for task in list(self._children):
                    task.cancel()
        except BaseExceptionGroup as failed:
            if self._reported_failure is None:
                error = failed.exceptions[0]
                raise error from error.__cause__
        finally:
            self._leaving.set()
            self._entered.set()

    def _on_task_done(self, _: asyncio.Task[None]) -> None:
        """If the tasks have ended by a failure, the body is not to go on."""
        if (failure := self._failure) is not None:
            self._cancel_body(failure)

    def _cancel_body(self, failure: BaseException) -> None:
        if self._body is not None and not self._body.done() and not self._body_cancelled:
            self._body_cancelled = True
            self._body.cancel(f"the {self._name} failed: {type(failure).__name__}")

    async def _end(self, timeout: float, running_names: Callable[[], tuple[str, ...]]) -> None:
        clock = running_loop().time
        deadline = clock() + timeout
        cancelled: asyncio.CancelledError | None = None
        self._leaving.set()
        while self._task is not None and not self._task.done():
            if clock() >= deadline:
                left = running_names() or tuple(sorted(task.get_name() for task in self._children))
                incomplete = ShutdownIncomplete(left, waited=timeout)
                log.error("%s", incomplete)
                raise incomplete
            try:
                await asyncio.wait({self._task}, timeout=deadline - clock())
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled

    def __repr__(self) -> str:
        return f"<Supervisor {self._name} {self.state} tasks={len(self._children)}>"
