"""Reports of handlers and reconcilers that held the event loop.

An async function that calls ``time.sleep``, a synchronous client or a long computation holds the
event loop: no other task runs meanwhile. The steps of the tasks in which handlers and reconcilers
run are timed, from one wake-up to the next wait, and a long step is reported when it has ended.
Such a task yields to the loop every few milliseconds, so that a long step is that of one call.
``blocking_stacks`` shows the code, for programs that ask for it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from aioinformer._runtime.tasks.steps import CoroutineSteps

BLOCKING_LIMIT = 0.25
"""Seconds after which a step that holds the event loop is reported. A probe of the kubelet times
out after one second, and a lease is renewed every two."""

T = TypeVar("T")


def describe_blocking(seconds: float) -> str:
    """Return a report for the log, to be put after the name of the handler or reconciler."""
    return (
        f"held the event loop for {seconds:.2f} s, while nothing else ran: await an async function "
        "or asyncio.to_thread() instead of a call that blocks, or pass run_in_thread=True; "
        'report_blocking="stack" logs the stack of the call'
    )


def time_steps(
    work: Coroutine[Any, Any, T], report: Callable[[float], None] | None, clock: Callable[[], float]
) -> Coroutine[Any, Any, T]:
    """Return ``work``, for a task, with steps that are timed unless ``report`` is ``None``.

    Args:
        work: the coroutine.
        report: called in the loop after a step that held the loop, with its seconds.
        clock: returns the loop's time.
    """
    return work if report is None else TimedSteps(work, report, clock)


class TimedSteps(CoroutineSteps[T]):
    """Reports each step of a coroutine that held the event loop for too long."""

    __slots__ = ("_clock", "_report")

    def __init__(
        self,
        work: Coroutine[Any, Any, T],
        report: Callable[[float], None],
        clock: Callable[[], float],
    ) -> None:
        """Time ``work`` by ``clock``; see ``time_steps``."""
        self._work = work
        self._report = report
        self._clock = clock

    def send(self, value: Any = None) -> Any:
        """Take the next step."""
        clock = self._clock
        began = clock()
        try:
            return self._work.send(value)
        finally:
            if (took := clock() - began) > BLOCKING_LIMIT:
                self._report(took)

    __next__ = send

    def throw(self, *error: Any) -> Any:
        """Take the next step with an exception, such as that of an awaited future."""
        began = self._clock()
        try:
            return super().throw(*error)
        finally:
            del error  # its traceback refers to this frame
            if (took := self._clock() - began) > BLOCKING_LIMIT:
                self._report(took)
