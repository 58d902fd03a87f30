"""Calls of handlers that are in flight: who is inside one, and which take too long.

A contextvar tells a piece of code in which call it runs, also when it is a task that the handler
awaits. What would wait for that very call to end, for ever, can then say so instead.

Time is watched by one timer a listener, not one a call: most calls are over long before it is due.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeAlias

from msgspec import Struct

from aioinformer._core.objects import Event

__all__ = ["INSIDE", "Call", "CallWatch", "Limit", "context_outside", "enclosing_call"]


class Call(Struct, eq=False):
    """One call of a handler that is awaited."""

    owner: object
    """The registration."""
    event: Event
    since: float
    """When it began, in the loop's time."""
    task: asyncio.Task[Any]
    """The task that it runs in."""
    late: Exception | None = None
    """Why it was cancelled, if its time ran out."""
    over: bool = False
    """Whether it has returned."""
    passed: int = 0
    """How many of the limits of its ``CallWatch`` it has passed."""

    def __repr__(self) -> str:
        state = "over" if self.over else "late" if self.late else "in flight"
        return f"<Call at {type(self.event).__name__} of {self.event.obj.key} {state}>"


INSIDE: ContextVar[Call | None] = ContextVar("aioinformer_call", default=None)
"""The call of a handler that this code runs in, or that its task was started in."""


def context_outside() -> Context:
    """A copy of this context that is in no call, and keeps none alive."""
    context = copy_context()
    context.run(INSIDE.set, None)
    return context


def enclosing_call() -> Call | None:
    """The call that waits, or may wait, for the code that asks: ``None`` outside of any, or if it
    is over, as for a task that a handler has left behind.
    """
    call = INSIDE.get()
    return None if call is None or call.over else call


Limit: TypeAlias = tuple[float, Callable[[Call], None]]
"""Seconds, and what is told of a call that takes longer."""


class CallWatch:
    """Tells of calls that pass limits of time while they are in flight, once a limit."""

    def __init__(self, limits: Sequence[Limit]) -> None:
        """Watch nothing yet; the shorter limits come first."""
        self.calls: dict[Call, None] = {}
        """The calls in flight. Who ends one takes it out; the timer stays: the next will need it.
        """
        self._limits = limits
        self._timer: asyncio.TimerHandle | None = None
        # Not a call's: the loop keeps a cancelled timer for a while, and with it its context.
        self._context = context_outside()

    def begin(self, call: Call) -> None:
        """A call has begun."""
        self.calls[call] = None
        if self._timer is None:
            self._set(call.since + self._limits[0][0])

    @property
    def shown(self) -> str:
        """What is in flight, and for how long the oldest of it; empty if nothing is."""
        if not self.calls:
            return ""
        first = next(iter(self.calls))
        what = f"{type(first.event).__name__} of {first.event.obj.key}"
        lasted = asyncio.get_running_loop().time() - first.since
        others = f" and {len(self.calls) - 1} other calls" if len(self.calls) > 1 else ""
        return f"at {what} for {lasted:.1f} s{others}"

    def stop(self) -> None:
        """Watch no more."""
        self.calls.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set(self, due: float) -> None:
        self._timer = asyncio.get_running_loop().call_at(due, self._look, context=self._context)

    def _look(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        for call in list(self.calls):
            while (due := self._due(call)) is not None and due <= now:
                tell = self._limits[call.passed][1]
                call.passed += 1
                tell(call)
        due = min(filter(None, map(self._due, self.calls)), default=None)
        if due is not None:
            self._set(due)

    def _due(self, call: Call) -> float | None:
        """When it passes its next limit."""
        if call.passed >= len(self._limits):
            return None
        return call.since + self._limits[call.passed][0]

    def __repr__(self) -> str:
        return f"<CallWatch {len(self.calls)} calls in flight>"
