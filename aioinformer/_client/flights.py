"""``SingleFlight``: one run at a time of something slow, shared by all who ask for it meanwhile.

Three requests that need a token at once are one run of an exec plugin, not three. A run outlives
those who wait for it: a plugin that takes twelve seconds would never come to its end if a request
that waits for ten took it along. So a run is a task of its own, ended by ``aclose``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from aioinformer.errors import NotRunning

__all__ = ["SingleFlight"]

T = TypeVar("T")

CLOSED = "the client was closed before the request was sent: its credentials were being renewed"


class SingleFlight(Generic[T]):
    """Runs something, once at a time."""

    def __init__(self, run: Callable[[], Coroutine[Any, Any, T]], *, name: str) -> None:
        """Make one; nothing runs yet.

        Args:
            run: what to run.
            name: what its task is called.
        """
        self._run = run
        self._name = name
        self._task: asyncio.Task[T] | None = None
        self._closed = False

    @property
    def running(self) -> bool:
        """Whether a run is under way."""
        return self._task is not None and not self._task.done()

    def start(self) -> asyncio.Task[T]:
        """The run under way, or a new one. Needs no one to wait for it.

        Raises:
            NotRunning: it was closed.
        """
        if self._closed:
            raise NotRunning(CLOSED)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name=self._name)
            self._task.add_done_callback(_retrieve)
        return self._task

    async def __call__(self) -> T:
        """What the run under way yields, or a new one.

        A cancellation ends the wait and not the run.

        Raises:
            NotRunning: it was closed meanwhile, or before.
        """
        task = self.start()
        await asyncio.wait({task})
        if task.cancelled():
            raise NotRunning(CLOSED)
        return task.result()

    async def aclose(self) -> None:
        """Cancel what runs and wait for its end. Nothing can be started after that."""
        self._closed = True
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})

    def __repr__(self) -> str:
        return f"<SingleFlight {self._name} {'running' if self.running else 'idle'}>"


def _retrieve(task: asyncio.Task[Any]) -> None:
    """Look at a failure: whoever waited has it, and if nobody did, asyncio would complain."""
    if not task.cancelled():
        task.exception()
