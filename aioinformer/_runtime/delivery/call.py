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
from aioinformer._runtime.delivery.handler_errors import HandlerErrors
from aioinformer._runtime.delivery.handlers import (
    Handler,
    HandlerOptions,
    compile_handler,
    is_async,
)
from aioinformer._runtime.delivery.thread_pool import HandlerThreads
from aioinformer._runtime.tasks.event_loop import running_task

__all__ = [
    "CURRENT_CALL",
    "ActiveCall",
    "CallLimit",
    "CallTimeouts",
    "HandlerCaller",
    "as_awaitable",
    "current_call",
    "detached_context",
]


class ActiveCall(Struct, eq=False):
    """One call of a handler that is awaited."""

    owner: object
    """The registration."""
    event: Event
    started_at: float
    """When it began, in the loop's time."""
    task: asyncio.Task[Any]
    """The task that it runs in."""
    timeout_error: Exception | None = None
    """Why it was cancelled, if its time ran out."""
    done: bool = False
    """Whether it has returned."""
    limits_passed: int = 0
    """How many of the limits of its ``CallTimeouts`` it has passed."""

    def __repr__(self) -> str:
        state = "over" if self.done else "late" if self.timeout_error else "in flight"
        return f"<Call at {type(self.event).__name__} of {self.event.obj.key} {state}>"


CURRENT_CALL: ContextVar[ActiveCall | None] = ContextVar("aioinformer_call", default=None)
"""The call of a handler that this code runs in, or that its task was started in."""


def detached_context() -> Context:
    """A copy of this context that is in no call, and keeps none alive."""
    context = copy_context()
    context.run(CURRENT_CALL.set, None)
    return context


def current_call() -> ActiveCall | None:
    """The call that waits, or may wait, for the code that asks: ``None`` outside of any, or if it
    is over, as for a task that a handler has left behind.
    """
    call = CURRENT_CALL.get()
    return None if call is None or call.done else call


CallLimit: TypeAlias = tuple[float, Callable[[ActiveCall], None]]
"""Seconds, and what is told of a call that takes longer."""


class CallTimeouts:
    """Tells of calls that pass limits of time while they are in flight, once a limit."""

    def __init__(self, limits: Sequence[CallLimit]) -> None:
        """Watch nothing yet; the shorter limits come first."""
        self.calls: dict[ActiveCall, None] = {}
        """The calls in flight. Who ends one takes it out; the timer stays: the next will need it.
        """
        self._limits = limits
        self._timer: asyncio.TimerHandle | None = None
        # Not a call's: the loop keeps a cancelled timer for a while, and with it its context.
        self._context = detached_context()

    def add(self, call: ActiveCall) -> None:
        """A call has begun."""
        self.calls[call] = None
        if self._timer is None:
            self._set_timer(call.started_at + self._limits[0][0])

    @property
    def description(self) -> str:
        """What is in flight, and for how long the oldest of it; empty if nothing is."""
        if not self.calls:
            return ""
        first = next(iter(self.calls))
        what = f"{type(first.event).__name__} of {first.event.obj.key}"
        lasted = asyncio.get_running_loop().time() - first.started_at
        others = f" and {len(self.calls) - 1} other calls" if len(self.calls) > 1 else ""
        return f"at {what} for {lasted:.1f} s{others}"

    def stop(self) -> None:
        """Watch no more."""
        self.calls.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self, due: float) -> None:
        self._timer = asyncio.get_running_loop().call_at(due, self._check, context=self._context)

    def _check(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        for call in list(self.calls):
            while (due := self._next_limit_at(call)) is not None and due <= now:
                tell = self._limits[call.limits_passed][1]
                call.limits_passed += 1
                tell(call)
        due = min(filter(None, map(self._next_limit_at, self.calls)), default=None)
        if due is not None:
            self._set_timer(due)

    def _next_limit_at(self, call: ActiveCall) -> float | None:
        """When it passes its next limit."""
        if call.limits_passed >= len(self._limits):
            return None
        return call.started_at + self._limits[call.limits_passed][0]

    def __repr__(self) -> str:
        return f"<CallTimeouts {len(self.calls)} calls in flight>"


SLOW_CALL_SECONDS = 10.0
"""Seconds after which a call that still goes on is warned of. A call to an API server that takes
as long has failed."""

BLOCKING_CALL_SECONDS = 1.0
"""Seconds after which a call that kept the event loop is warned of: nothing else ran meanwhile."""


class HandlerCaller:
    """Calls one handler, on its terms."""

    def __init__(
        self,
        owner: object,
        name: str,
        handler: Handler,
        options: HandlerOptions,
        errors: HandlerErrors,
    ) -> None:
        """No call yet.

        Args:
            owner: whose calls they are, for who asks where they are inside of.
            name: the listener's.
            handler: what to call.
            options: how.
            errors: where to tell of what goes wrong.

        Raises:
            TypeError: ``handler`` is none, or async where it must not be.
        """
        call = compile_handler(handler)
        if options.run_in_thread and is_async(handler):
            raise TypeError(f"{name} is async: it runs in the event loop, not in a thread")
        self.synchronous = not (options.run_in_thread or is_async(handler))
        """Whether its calls are over when they return, as far as that can be seen from outside."""
        self._owner = owner
        self._options = options
        self._errors = errors
        count = options.concurrency
        self._threads = (
            HandlerThreads(call, max_threads=count, name=name) if options.run_in_thread else None
        )
        self.call: Callable[[Event], Any] = self._threads or call
        """The handler, for those who deal with what it raises and returns themselves."""
        timeout = options.timeout
        limits: list[CallLimit] = []
        if (
            timeout is None or timeout > SLOW_CALL_SECONDS
        ):  # what runs out of time before isn't warned of
            limits.append((SLOW_CALL_SECONDS, self._on_slow_call))
        if timeout is not None:
            limits.append((timeout, self._on_timeout))
        self._timeouts = CallTimeouts(limits)
        self.blocking_limit = min(BLOCKING_CALL_SECONDS, timeout or BLOCKING_CALL_SECONDS)
        """Seconds after which ``on_blocking_call`` is to be told of a call that didn't suspend."""
        self._is_ending: Callable[[], bool] | None = None
        self._on_fatal: Callable[[Exception], None] | None = None
        self._reported = False

    def start(
        self, is_ending: Callable[[], bool] | None, on_fatal: Callable[[Exception], None] | None
    ) -> None:
        """From now on it may be called.

        Args:
            is_ending: whether a cancellation is meant: a handler may cancel the task that it runs
                in. ``None``: every one is.
            on_fatal: is told at once of what ends it, with ``fail_fast``.
        """
        self._is_ending, self._on_fatal = is_ending, on_fatal

    def stop(self) -> None:
        """It will be called no more."""
        self._timeouts.stop()
        if self._threads is not None:
            self._threads.close()

    def give_up(self) -> None:
        """Wait no more for threads."""
        if self._threads is not None:
            self._threads.give_up()

    @property
    def in_flight(self) -> str:
        """The calls in flight, in words; empty if there are none."""
        return self._timeouts.description

    def begin(self, event: Event) -> Awaitable[None] | None:
        """Call the handler; what is left to await, if it is async."""
        try:
            result = self.call(event)
        except BaseException as error:  # noqa: BLE001 - a program's code
            self.on_exception(event, error)
            return None
        return as_awaitable(result)

    async def finish(
        self, task: asyncio.Task[Any], event: Event, awaitable: Awaitable[None], began: float
    ) -> None:
        """Await the rest of a call, in ``task``, which is this one."""
        call = ActiveCall(self._owner, event, began, task)
        CURRENT_CALL.set(call)
        self._timeouts.add(call)
        try:
            await awaitable
        except BaseException as error:
            if isinstance(error, GeneratorExit) and not _is_current_task(task):
                raise  # it isn't the handler's: the loop is gone, and this coroutine with it
            if call.timeout_error is None or not isinstance(error, asyncio.CancelledError):
                self.on_exception(event, error)
        finally:
            call.done = True
            self._timeouts.calls.pop(call, None)
            if call.timeout_error is not None and self._threads is None:
                task.uncancel()
        if call.timeout_error is not None and self._options.fail_fast:
            raise call.timeout_error

    def on_exception(self, event: Event, error: BaseException) -> None:
        """A call has failed, unless it is its task that is being told to end.

        Raises:
            BaseException: that very error if it is no handler's business, or with ``fail_fast``.
        """
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise error
        if isinstance(error, asyncio.CancelledError):
            task = running_task()
            if self._cancelled_from_outside(task):
                raise error
            self._reported = task.cancelling() > 0  # it is undone by whoever awaits next
        shown = self._errors.report_exception(event, error)
        if self._options.fail_fast:
            raise self._report_fatal(shown)

    def _report_fatal(self, error: Exception) -> Exception:
        """It ends everything, which is told at once: other calls may be in flight."""
        if self._on_fatal is not None:
            self._on_fatal(error)
        return error

    def _on_timeout(self, call: ActiveCall) -> None:
        """The time of a call has run out."""
        ends = "cancelled" if self._threads is None else "its thread can't be stopped"
        call.timeout_error = self._errors.report_timeout(
            call.event, self._options.timeout or 0.0, consequence=ends
        )
        if self._threads is None:
            call.task.cancel()
        if self._options.fail_fast:
            self._report_fatal(call.timeout_error)

    def _on_slow_call(self, call: ActiveCall) -> None:
        self._errors.report_slow_call(call.event, f"has not returned after {SLOW_CALL_SECONDS:g} s")

    def on_blocking_call(self, event: Event, took: float) -> None:
        """A call that isn't async took long. Nobody could have stopped it.

        Raises:
            HandlerTimeout: longer than it may, with ``fail_fast``.
        """
        if self._options.timeout is not None and took > self._options.timeout:
            error = self._errors.report_timeout(
                event, self._options.timeout, consequence="it isn't async"
            )
            if self._options.fail_fast:
                raise self._report_fatal(error)
        if took > BLOCKING_CALL_SECONDS:
            what = f"kept the event loop for {took:.1f} s; run_in_thread=True would not"
            self._errors.report_slow_call(event, what)

    # -- cancellations -------------------------------------------------------------------------

    def cancellation_pending(self, task: asyncio.Task[Any]) -> bool:
        """Whether ``task``, this one, may have to end, or to undo what the handler has done to it:
        ``check_cancelled`` then knows.
        """
        return task.cancelling() > 0 or (self._is_ending is not None and self._is_ending())

    async def check_cancelled(self, task: asyncio.Task[Any]) -> None:
        """Undo a cancellation that the handler has made itself. But if ``task``, this one, is to
        end, it ends here: the handler may have swallowed that, and a task group asks only once.
        """
        if task.cancelling():
            await self.clear_self_cancel(task)
        if self.cancellation_pending(task):
            raise asyncio.CancelledError

    async def clear_self_cancel(self, task: asyncio.Task[Any]) -> None:
        """Let nothing but the handler feel that it has cancelled its own task, this one.

        ``uncancel()`` doesn't take back, before Python 3.13, what is still to be raised at the
        next await: it is raised here.
        """
        blamed, self._reported = self._reported, False
        if self._uncancel_self(task):
            return
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
        if self._uncancel_self(task):  # that came meanwhile; once more, for whoever awaits next
            task.cancel()
        if not blamed:
            self._report_self_cancel()

    def cleared_self_cancel(self, task: asyncio.Task[Any]) -> bool:
        """The same where the cancellation was raised already; false if ``task`` is to end."""
        blamed, self._reported = self._reported, False
        if self._uncancel_self(task):
            return False
        if not blamed:
            self._report_self_cancel()
        return True

    def _report_self_cancel(self) -> None:
        error = self._errors.report_self_cancel()
        if self._options.fail_fast:
            raise self._report_fatal(error)

    def _cancelled_from_outside(self, task: asyncio.Task[Any]) -> bool:
        """Whether ``task``, this one, was cancelled from outside."""
        return task.cancelling() > 0 and (self._is_ending is None or self._is_ending())

    def _uncancel_self(self, task: asyncio.Task[Any]) -> bool:
        """The same; a cancellation that the handler has made is taken back."""
        if self._cancelled_from_outside(task):
            return True
        while task.cancelling():
            task.uncancel()
        return False

    def __repr__(self) -> str:
        return f"<HandlerCaller of {self._errors!r}>"


def as_awaitable(result: Any) -> Awaitable[None] | None:
    """What is left to await of a call that has returned this."""
    # Functions that aren't async mostly return None, and isawaitable is slow to reject it.
    return result if result is not None and isawaitable(result) else None


def _is_current_task(task: asyncio.Task[Any]) -> bool:
    """Whether this is run by ``task``, rather than being closed by whoever lets go of it."""
    try:
        return asyncio.current_task() is task
    except RuntimeError:
        return False
