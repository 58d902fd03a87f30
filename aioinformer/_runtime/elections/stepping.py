"""A coroutine that is asked before each of its steps whether it may take it.

Cancelling a task takes effect at its next step. But when a process was stopped in the middle of
something, what was due before comes first as it goes on, timers and all, and one step may be one
too many. Where the coroutine is driven from here, each is looked at, whatever the loop's order.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

__all__ = ["Stepwise"]

T = TypeVar("T")


class Stepwise(Generic[T]):
    """Awaits a coroutine, step by step. Await it once, in the task that it is to run in."""

    def __init__(self, work: Coroutine[Any, Any, T], refusal: Callable[[], str]) -> None:
        """Make it.

        Args:
            work: what to run.
            refusal: asked before each step; if it says anything, the coroutine is cancelled there,
                with that. It says so once: from then on cancelling is somebody else's.
        """
        self._work = work
        self._refusal = refusal

    def __await__(self) -> Generator[Any, Any, T]:
        thrown: BaseException | None = None
        work = self._work
        try:
            while True:
                if thrown is None and (refused := self._refusal()):
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
        return f"<Stepwise {self._work!r}>"
