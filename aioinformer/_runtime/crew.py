"""The tasks of one informer: they live together, and none of them ends alone.

A task group forgives a child that ends cancelled. An informer whose reflector did so would live
on without it, silently. Here it is a failure, unless it is the informer that is ending: whether
it is, is told by its own task, and by what has failed already.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self

__all__ = ["Crew"]


class Crew:
    """A task group in which nobody is forgiven. Enter it once."""

    def __init__(self, name: str) -> None:
        """Make a crew of nobody yet; ``name`` is whose, for errors."""
        self.group = asyncio.TaskGroup()
        """Where the tasks are."""
        self._name = name
        self._owner: asyncio.Task[Any] | None = None
        self._failing = False
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
    def at_work(self) -> bool:
        """Whether it has been entered."""
        return self._owner is not None

    def ending(self) -> bool:
        """Whether its tasks are to end, or have ended."""
        cancelled = self._owner is not None and self._owner.cancelling() > 0
        return self._ended or self._failing or cancelled

    def start(self, work: Coroutine[Any, Any, None], *, name: str) -> None:
        """Start a task that is to live as long as the crew."""
        self.watch_over(self.group.create_task(work, name=name))

    def watch_over(self, task: asyncio.Task[None]) -> None:
        """Fail if ``task``, one of the group's, ends cancelled while the others go on."""
        task.add_done_callback(self._over)

    def _over(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() and not self.ending():
            self.group.create_task(self._fail(task.get_name()))
        self._failing = self._failing or task.cancelled() or task.exception() is not None

    async def _fail(self, name: str) -> None:
        raise RuntimeError(f"the {name} was cancelled, but not by the {self._name}")

    def __repr__(self) -> str:
        state = "ending" if self.ending() else "at work" if self.at_work else "new"
        return f"<Crew of {self._name} {state}>"
