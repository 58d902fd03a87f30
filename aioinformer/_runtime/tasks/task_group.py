"""The tasks of one informer: they live together, and none of them ends alone.

A task group forgives a child that ends cancelled. An informer whose reflector did so would live
on without it, silently. Here it is a failure, unless it is the informer that is ending: whether
it is, is told by its own task, and by what has failed already.

A task group also says nothing of a failure before its last child has ended, and a child may take
for ever: a thread, or a handler that swallows its cancellation. So the first failure is told of
as it happens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self

__all__ = ["StrictTaskGroup"]


class StrictTaskGroup:
    """A task group in which nobody is forgiven. Enter it once."""

    def __init__(self, name: str, on_fatal: Callable[[BaseException], None] | None = None) -> None:
        """Make a crew of nobody yet.

        Args:
            name: whose, for errors.
            on_fatal: called with the first failure at once, while other tasks may still run.
        """
        self.group = asyncio.TaskGroup()
        """Where the tasks are."""
        self.failure: BaseException | None = None
        """What has failed first."""
        self._name = name
        self._on_fatal = on_fatal
        self._owner: asyncio.Task[Any] | None = None
        self._ended = False

    async def __aenter__(self) -> Self:
        await self.group.__aenter__()
        self._owner = asyncio.current_task()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await self.group.__aexit__(kind, error, trace)
        finally:
            self._ended = True

    @property
    def entered(self) -> bool:
        """Whether it has been entered."""
        return self._owner is not None

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop in which the group was entered; ``None`` before."""
        return None if self._owner is None else self._owner.get_loop()

    def is_ending(self) -> bool:
        """Whether its tasks are to end, or have ended."""
        cancelled = self._owner is not None and self._owner.cancelling() > 0
        return self._ended or self.failure is not None or cancelled

    def start(self, coroutine: Coroutine[Any, Any, None], *, name: str) -> None:
        """Start a task that is to live as long as the crew."""
        self.monitor(self.group.create_task(coroutine, name=name))

    def monitor(self, task: asyncio.Task[None]) -> None:
        """Fail if ``task``, one of the group's, ends cancelled while the others go on."""
        task.add_done_callback(self._on_task_done)

    def fail(self, error: BaseException) -> None:
        """End all of them with ``error``; whose it is may go on for a while."""
        if not self.is_ending():
            self.group.create_task(_raise(error), name=f"failure of the {self._name}")
        self._record_failure(error)

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            if (error := task.exception()) is not None:
                self._record_failure(error)
        elif not self.is_ending():
            name = task.get_name()
            self.fail(RuntimeError(f"the {name} was cancelled, but not by the {self._name}"))

    def _record_failure(self, error: BaseException) -> None:
        if self.failure is None:
            self.failure = error
            if self._on_fatal is not None:
                self._on_fatal(error)

    def __repr__(self) -> str:
        state = "ending" if self.is_ending() else "at work" if self.entered else "new"
        return f"<StrictTaskGroup of {self._name} {state}>"


async def _raise(error: BaseException) -> None:
    raise error
