"""One call of a handler, and what comes of it.

What a handler raises is a failure of that one call, and the next event follows; so is a
CancelledError, unless it is the informer that ends. A call that takes too long is cancelled, or
warned of. Which call comes when is ``calling``'s and ``rounds``'.

Calls of handlers that are in flight: who is inside one, and which take too long.

A contextvar tells a piece of code in which call it runs, also when it is a task that the handler
awaits. What would wait for that very call to end, for ever, can then say so instead.

Time is watched by one timer a listener, not one a call: most calls are over long before it is due.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from inspect import isawaitable
from typing import Any, TypeAlias

from msgspec import Struct

from aioinformer._core.objects.kube_object import Event
from aioinformer._runtime.delivery.handler_errors import Failures
from aioinformer._runtime.delivery.handlers import Handler, Terms, dispatch, is_async
from aioinformer._runtime.delivery.thread_pool import Threads
from aioinformer._runtime.tasks.event_loop import this_task

__all__ = [
    "INSIDE",
    "Attempts",
    "Call",
    "CallWatch",
    "Limit",
    "context_outside",
    "enclosing_call",
    "unfinished",
]


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


SLOW = 10.0
"""Seconds after which a call that still goes on is warned of. A call to an API server that takes
as long has failed."""

BLOCKING = 1.0
"""Seconds after which a call that kept the event loop is warned of: nothing else ran meanwhile."""


class Attempts:
    """Calls one handler, on its terms."""

    def __init__(
        self, owner: object, name: str, handler: Handler, terms: Terms, failures: Failures
    ) -> None:
        """No call yet.

        Args:
            owner: whose calls they are, for who asks where they are inside of.
            name: the listener's.
            handler: what to call.
            terms: how.
            failures: where to tell of what goes wrong.

        Raises:
            TypeError: ``handler`` is none, or async where it must not be.
        """
        call = dispatch(handler)
        if terms.run_in_thread and is_async(handler):
            raise TypeError(f"{name} is async: it runs in the event loop, not in a thread")
        self.plain = not (terms.run_in_thread or is_async(handler))
        """Whether its calls are over when they return, as far as that can be seen from outside."""
        self._owner = owner
        self._terms = terms
        self._failures = failures
        count = terms.concurrency
        self._threads = Threads(call, count=count, name=name) if terms.run_in_thread else None
        self.call: Callable[[Event], Any] = self._threads or call
        """The handler, for those who deal with what it raises and returns themselves."""
        timeout = terms.timeout
        limits: list[Limit] = []
        if timeout is None or timeout > SLOW:  # what runs out of time before isn't warned of
            limits.append((SLOW, self._slow))
        if timeout is not None:
            limits.append((timeout, self._late))
        self._watch = CallWatch(limits)
        self.patience = min(BLOCKING, timeout or BLOCKING)
        """Seconds after which ``kept_the_loop`` is to be told of a call that didn't suspend."""
        self._ending: Callable[[], bool] | None = None
        self._told: Callable[[Exception], None] | None = None
        self._blamed = False

    def start(
        self, ending: Callable[[], bool] | None, fatal: Callable[[Exception], None] | None
    ) -> None:
        """From now on it may be called.

        Args:
            ending: whether a cancellation is meant: a handler may cancel the task that it runs
                in. ``None``: every one is.
            fatal: is told at once of what ends it, with ``fail_fast``.
        """
        self._ending, self._told = ending, fatal

    def stop(self) -> None:
        """It will be called no more."""
        self._watch.stop()
        if self._threads is not None:
            self._threads.close()

    def give_up(self) -> None:
        """Wait no more for threads."""
        if self._threads is not None:
            self._threads.give_up()

    @property
    def in_flight(self) -> str:
        """The calls in flight, in words; empty if there are none."""
        return self._watch.shown

    def begin(self, event: Event) -> Awaitable[None] | None:
        """Call the handler; what is left to await, if it is async."""
        try:
            result = self.call(event)
        except BaseException as error:  # noqa: BLE001 - a program's code
            self.raised(event, error)
            return None
        return unfinished(result)

    async def finish(
        self, task: asyncio.Task[Any], event: Event, rest: Awaitable[None], began: float
    ) -> None:
        """Await the rest of a call, in ``task``, which is this one."""
        call = Call(self._owner, event, began, task)
        INSIDE.set(call)
        self._watch.begin(call)
        try:
            await rest
        except BaseException as error:
            if isinstance(error, GeneratorExit) and not _runs(task):
                raise  # it isn't the handler's: the loop is gone, and this coroutine with it
            if call.late is None or not isinstance(error, asyncio.CancelledError):
                self.raised(event, error)
        finally:
            call.over = True
            self._watch.calls.pop(call, None)
            if call.late is not None and self._threads is None:
                task.uncancel()
        if call.late is not None and self._terms.fail_fast:
            raise call.late

    def raised(self, event: Event, error: BaseException) -> None:
        """A call has failed, unless it is its task that is being told to end.

        Raises:
            BaseException: that very error if it is no handler's business, or with ``fail_fast``.
        """
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise error
        if isinstance(error, asyncio.CancelledError):
            task = this_task()
            if self._meant(task):
                raise error
            self._blamed = task.cancelling() > 0  # it is undone by whoever awaits next
        shown = self._failures.raised(event, error)
        if self._terms.fail_fast:
            raise self._fatal(shown)

    def _fatal(self, error: Exception) -> Exception:
        """It ends everything, which is told at once: other calls may be in flight."""
        if self._told is not None:
            self._told(error)
        return error

    def _late(self, call: Call) -> None:
        """The time of a call has run out."""
        ends = "cancelled" if self._threads is None else "its thread can't be stopped"
        call.late = self._failures.timed_out(call.event, self._terms.timeout or 0.0, ends=ends)
        if self._threads is None:
            call.task.cancel()
        if self._terms.fail_fast:
            self._fatal(call.late)

    def _slow(self, call: Call) -> None:
        self._failures.slow(call.event, f"has not returned after {SLOW:g} s")

    def kept_the_loop(self, event: Event, took: float) -> None:
        """A call that isn't async took long. Nobody could have stopped it.

        Raises:
            HandlerTimeout: longer than it may, with ``fail_fast``.
        """
        if self._terms.timeout is not None and took > self._terms.timeout:
            error = self._failures.timed_out(event, self._terms.timeout, ends="it isn't async")
            if self._terms.fail_fast:
                raise self._fatal(error)
        if took > BLOCKING:
            what = f"kept the event loop for {took:.1f} s; run_in_thread=True would not"
            self._failures.slow(event, what)

    # -- cancellations -------------------------------------------------------------------------

    def ends(self, task: asyncio.Task[Any]) -> bool:
        """Whether ``task``, this one, may have to end, or to undo what the handler has done to it:
        ``go_on`` then knows.
        """
        return task.cancelling() > 0 or (self._ending is not None and self._ending())

    async def go_on(self, task: asyncio.Task[Any]) -> None:
        """Undo a cancellation that the handler has made itself. But if ``task``, this one, is to
        end, it ends here: the handler may have swallowed that, and a task group asks only once.
        """
        if task.cancelling():
            await self.undo(task)
        if self.ends(task):
            raise asyncio.CancelledError

    async def undo(self, task: asyncio.Task[Any]) -> None:
        """Let nothing but the handler feel that it has cancelled its own task, this one.

        ``uncancel()`` doesn't take back, before Python 3.13, what is still to be raised at the
        next await: it is raised here.
        """
        blamed, self._blamed = self._blamed, False
        if self._told_to_end(task):
            return
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
        if self._told_to_end(task):  # that came meanwhile; once more, for whoever awaits next
            task.cancel()
        if not blamed:
            self._cancelled_itself()

    def undone(self, task: asyncio.Task[Any]) -> bool:
        """The same where the cancellation was raised already; false if ``task`` is to end."""
        blamed, self._blamed = self._blamed, False
        if self._told_to_end(task):
            return False
        if not blamed:
            self._cancelled_itself()
        return True

    def _cancelled_itself(self) -> None:
        error = self._failures.cancelled_itself()
        if self._terms.fail_fast:
            raise self._fatal(error)

    def _meant(self, task: asyncio.Task[Any]) -> bool:
        """Whether ``task``, this one, was cancelled from outside."""
        return task.cancelling() > 0 and (self._ending is None or self._ending())

    def _told_to_end(self, task: asyncio.Task[Any]) -> bool:
        """The same; a cancellation that the handler has made is taken back."""
        if self._meant(task):
            return True
        while task.cancelling():
            task.uncancel()
        return False

    def __repr__(self) -> str:
        return f"<Attempts of {self._failures!r}>"


def unfinished(result: Any) -> Awaitable[None] | None:
    """What is left to await of a call that has returned this."""
    # Functions that aren't async mostly return None, and isawaitable is slow to reject it.
    return result if result is not None and isawaitable(result) else None


def _runs(task: asyncio.Task[Any]) -> bool:
    """Whether this is run by ``task``, rather than being closed by whoever lets go of it."""
    try:
        return asyncio.current_task() is task
    except RuntimeError:
        return False
