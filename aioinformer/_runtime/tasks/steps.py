"""A coroutine whose steps pass through another object, on their way from the task to the work."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from operator import attrgetter
from typing import Any, TypeVar

T = TypeVar("T")


class CoroutineSteps(Coroutine[Any, Any, T], Generator[Any, Any, T]):
    """Passes each step on to a coroutine; a base class. Give it to a task, or await it once.

    It doesn't await the coroutine, and so has no part in cancellations and exceptions. Debuggers
    see the coroutine, whose attributes it has.
    """

    __slots__ = ("_work",)

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        """Wrap a coroutine."""
        self._work = work

    def send(self, value: Any = None) -> Any:
        """Take the next step. A subclass repeats ``__next__ = send``, which tasks call."""
        return self._work.send(value)

    __next__ = send

    def throw(self, *error: Any) -> Any:
        """Take the next step with an exception."""
        try:
            return self._work.throw(*error)
        finally:
            del error  # its traceback refers to this frame

    def close(self) -> None:
        """End the coroutine."""
        self._work.close()

    def __await__(self) -> Generator[Any, Any, T]:
        return self

    __name__ = property(attrgetter("_work.__qualname__"))  # pyright: ignore[reportAssignmentType]
    cr_await = property(attrgetter("_work.cr_await"))
    cr_code = property(attrgetter("_work.cr_code"))
    cr_frame = property(attrgetter("_work.cr_frame"))
    cr_running = property(attrgetter("_work.cr_running"))
    cr_suspended = property(attrgetter("_work.cr_suspended"))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._work!r}>"
