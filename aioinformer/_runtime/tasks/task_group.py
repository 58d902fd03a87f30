"""A task group whose tasks live and end together.

``asyncio.TaskGroup`` ignores a child that ends with CancelledError, so an informer could lose its
reflector unnoticed. This group treats such an end as a failure, unless the group itself is ending:
because its own task is cancelled, or because a task has failed already.

``asyncio.TaskGroup`` also reports a failure only after its last child has ended, and a child may
take for ever: a thread, or a handler that swallows its cancellation. So this group reports the
first failure as it happens.

An exception of a task refers by its traceback to frames, and so to the objects that own the task,
which may refer to the task. Until Python 3.12 a frame of ``asyncio.TaskGroup`` refers to the
exception that it has raised, too. In such a cycle only a garbage collection would free an informer
and its cache. So what ends here keeps neither an exception of a cancellation nor the ended tasks.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Any, Self


def discard_cancellation(task: asyncio.Task[Any]) -> None:
    """Discard the CancelledError of a cancelled task, whose traceback refers to frames."""
    with suppress(asyncio.CancelledError):
        task.exception()  # asyncio forgets the CancelledError that it raises


@asynccontextmanager
async def task_group() -> AsyncGenerator[asyncio.TaskGroup]:
    """Enter an ``asyncio.TaskGroup`` that leaves no reference cycle."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except (asyncio.CancelledError, BaseExceptionGroup) as raised:
        raised.__traceback__ = None  # a frame in it may refer to the exception
        raise


class StrictTaskGroup:
    """A task group in which every unexpected end of a task is a failure. Enter it once."""

    def __init__(self, name: str, on_fatal: Callable[[BaseException], None] | None = None) -> None:
        """Create a group without tasks.

        Args:
            name: the owner of the group, for errors.
            on_fatal: see the attribute.
        """
        self.on_fatal = on_fatal
        """Called with the first failure at once, while other tasks may still run. Forgotten at the
        end of the group."""
        self.group = asyncio.TaskGroup()
        """The group that runs the tasks."""
        self.failure: BaseException | None = None
        """The first failure."""
        self._name = name
        self._owner: asyncio.Task[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._cancelled: set[asyncio.Task[None]] = set()
        self._ended = False

    async def __aenter__(self) -> Self:
        await self.group.__aenter__()
        self._owner = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, Exception):
            self._record_failure(error)
        try:
            await self.group.__aexit__(kind, error, trace)
        except (asyncio.CancelledError, BaseExceptionGroup) as raised:
            raised.__traceback__ = None  # a frame in it may refer to the exception
            raise
        finally:
            self._ended = True
            self._owner = self.on_fatal = None
            self.group = asyncio.TaskGroup()  # the ended one refers to the task that has entered it

    def forget_failure(self) -> None:
        """Forget the failure, whose traceback refers to frames, and so to the group's owner."""
        self.failure = None

    @property
    def entered(self) -> bool:
        """True once the group was entered."""
        return self._loop is not None

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop in which the group was entered; ``None`` before."""
        return self._loop

    def is_ending(self) -> bool:
        """Return True if the tasks are to end, or have ended."""
        cancelled = self._owner is not None and self._owner.cancelling() > 0
        return self._ended or self.failure is not None or cancelled

    def start(self, coroutine: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None]:
        """Start a task that lives as long as the group, or until ``cancel``."""
        task = self.group.create_task(coroutine, name=name)
        self.monitor(task)
        return task

    def cancel(self, task: asyncio.Task[None]) -> None:
        """End one task on purpose. The group goes on."""
        self._cancelled.add(task)
        task.add_done_callback(self._cancelled.discard)  # runs after ``_on_task_done``
        task.cancel()

    def monitor(self, task: asyncio.Task[None]) -> None:
        """Treat a cancellation of ``task`` as a failure, unless the group is ending."""
        task.add_done_callback(self._on_task_done)

    def fail(self, error: BaseException) -> None:
        """End all tasks with ``error``. The task that failed may run on for a while."""
        if not self.is_ending():
            self.group.create_task(_raise(error), name=f"failure of the {self._name}")
        self._record_failure(error)

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            if (error := task.exception()) is not None:
                self._record_failure(error)
            return
        discard_cancellation(task)
        if task not in self._cancelled and not self.is_ending():
            name = task.get_name()
            self.fail(RuntimeError(f"the {name} was cancelled, but not by the {self._name}"))

    def _record_failure(self, error: BaseException) -> None:
        if self.failure is None:
            self.failure = error
            if self.on_fatal is not None:
                self.on_fatal(error)

    def __repr__(self) -> str:
        state = "ending" if self.is_ending() else "running" if self.entered else "new"
        return f"<StrictTaskGroup of {self._name} {state}>"


async def _raise(error: BaseException) -> None:
    try:
        raise error
    finally:
        del error  # the traceback refers to this frame
