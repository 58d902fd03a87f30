"""The supervisor: a task that owns a task group, for something that is entered and left.

A task group must be left by the task that entered it, and wraps errors in exception groups. A
pytest fixture, a FastAPI lifespan or an exit stack may leave in another task, and a program's
``async with`` body must get its own exceptions unchanged. So the group lives inside a task of its
own: entering starts the task, leaving ends it. A failure inside cancels the body, and is raised
unwrapped where the body is left. The failed task may take long to end, so the failure can be
reported before.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Literal

from aioinformer._runtime.tasks.event_loop import check_loop, own_loop, running_loop
from aioinformer._runtime.tasks.task_group import discard_cancellation, task_group
from aioinformer.errors import NotRunning, ShutdownIncomplete, UsageError

log = logging.getLogger("aioinformer.supervisor")

CANCELLED_ENTER_TIMEOUT = 1.0
"""Seconds to wait for the tasks if entering was cancelled, when the tasks have hardly begun."""


ENTER_TURNS = 10
"""Turns of the loop in which a task that was just created may enter the owner."""


class Supervisor:
    """The owner of the tasks of one thing that runs once."""

    def __init__(self, name: str) -> None:
        """Create a supervisor without tasks. ``name`` is for errors and the task."""
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
        """The state of the supervisor."""
        if self._leaving.is_set():
            return "ended"
        return "new" if self._group is None else "running"

    @property
    def running(self) -> bool:
        """True if tasks can be started."""
        return self.state == "running"

    def check_usable(self) -> None:
        """Raise unless the owner can be used by the caller.

        Raises:
            NotRunning: the tasks have ended.
            UsageError: the tasks run in another event loop.
        """
        if self._leaving.is_set():
            raise NotRunning(f"the {self._name} has ended; make another one")
        check_loop(self._loop, f"the {self._name}")

    async def is_entered_soon(self) -> bool:
        """Return True if the owner was entered, or is entered by a task that was just created."""
        for _ in range(ENTER_TURNS):
            if self.state != "new":
                return True
            await asyncio.sleep(0)
        return False

    def spawn(self, coroutine: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None]:
        """Start a task. If the task raises, all tasks end, and leaving raises the error."""
        if self._group is None:
            coroutine.close()
            raise NotRunning(f"the {self._name} doesn't run")
        task = self._group.create_task(coroutine, name=name)
        self._children.add(task)
        task.add_done_callback(self._on_child_done)
        return task

    def _on_child_done(self, task: asyncio.Task[None]) -> None:
        self._children.discard(task)
        if task.cancelled():
            discard_cancellation(task)

    def fail(self, error: BaseException) -> None:
        """End all tasks because of ``error``. The task that failed may take a while to end."""
        if self._reported_failure is None:
            self._reported_failure = error
            self._leaving.set()
            self._cancel_body(error)

    async def enter(self, start_tasks: Callable[[], None]) -> None:
        """Start the task that owns the tasks.

        Args:
            start_tasks: is called once tasks can be started.
        """
        if self._loop is not None:
            raise UsageError(f"the {self._name} runs once; make another one")
        self._loop = own_loop()
        self._body = asyncio.current_task()
        self._task = asyncio.create_task(self._supervise(start_tasks), name=self._name)
        self._task.add_done_callback(self._on_task_done)
        try:
            await self._entered.wait()
        except asyncio.CancelledError:  # a context that isn't entered isn't left either
            body, self._body = self._body, None
            await self._end(CANCELLED_ENTER_TIMEOUT, running_names=tuple)
            if self._body_cancelled and body is not None and not body.uncancel():
                self._raise_failure()  # a task has failed in its first step
            raise

    async def leave(
        self,
        error: BaseException | None,
        *,
        timeout: float,
        running_names: Callable[[], tuple[str, ...]],
    ) -> None:
        """End the tasks and wait for their end, also if the caller is cancelled meanwhile.

        Args:
            error: the exception of the body; ``None`` if it ended without one.
            timeout: seconds to wait.
            running_names: returns the names of tasks that still run after that time.

        Raises:
            ShutdownIncomplete: a task still ran after that time. The error is logged too, because
                the end of the event loop silently waits for such tasks, perhaps for ever.
        """
        body, self._body = self._body, None
        try:
            await self._end(timeout, running_names)
        except ShutdownIncomplete:
            if error is None and self._failure is None:
                raise
        failure = self._take_failure()
        if failure is None:
            return
        try:
            others = 0
            if self._body_cancelled and body is not None and body is asyncio.current_task():
                others = body.uncancel()
            # The failure may have reached the body as NotRunning.
            if error is None or isinstance(error, NotRunning):
                raise failure from failure.__cause__
            # A cancellation of the body by its program has precedence.
            if self._body_cancelled and isinstance(error, asyncio.CancelledError) and not others:
                raise failure from failure.__cause__
        finally:
            del failure, error, body  # the traceback refers to this frame

    def _raise_failure(self) -> None:
        failure = self._take_failure()
        try:
            if failure is not None:
                raise failure from failure.__cause__
        finally:
            del failure  # the traceback refers to this frame

    def _take_failure(self) -> BaseException | None:
        """Return the failure, and forget it: its traceback refers to the frames of the owner."""
        failure, self._reported_failure = self._failure, None
        if self._task is not None and self._task.done():
            self._task = self._group = None
        return failure

    @property
    def _failure(self) -> BaseException | None:
        """The first failure, or the error with which the tasks have ended."""
        if self._reported_failure is not None:
            return self._reported_failure
        if self._task is None or not self._task.done() or self._task.cancelled():
            return None
        return self._task.exception()

    async def _supervise(self, start_tasks: Callable[[], None]) -> None:
        error: BaseException | None = None
        try:
            async with task_group() as group:
                self._group = group
                start_tasks()
                self._entered.set()
                await self._leaving.wait()
                for task in list(self._children):
                    task.cancel()
        except BaseExceptionGroup as failed:
            error = failed.exceptions[0]
        finally:
            self._leaving.set()
            self._entered.set()
        try:
            # Not in the handler above: the exception group would become the context of its own
            # exception.
            if error is not None and self._reported_failure is None:
                raise error from error.__cause__
        finally:
            del error  # the traceback refers to this frame

    def _on_task_done(self, _: asyncio.Task[None]) -> None:
        """Cancel the body if the tasks have ended by a failure."""
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
