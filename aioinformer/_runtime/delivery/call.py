"""One call of a handler: its time limit, its cancellation, and its result.

An exception of a handler fails that one call, and the next event follows. The same holds for a
CancelledError, unless the informer ends. With ``fail_fast`` a failed call closes the listener and
is passed to ``on_fatal``, which ends the informer. ``on_fatal`` is a callback and no exception of
the handler's task, because that task may have to wait for other calls, or for a thread, before it
can end.

``CURRENT_CALL`` tells code in which call it runs, also in a task that the handler awaits. So an
operation that would wait for that very call can raise instead of waiting for ever.

One timer per listener watches the time of its calls, since most calls are over long before the
timer is due.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from aioinformer._core.objects.kube_object import Event
from aioinformer._core.quantities import quantity
from aioinformer._runtime.delivery.handler_errors import HandlerErrors
from aioinformer._runtime.delivery.handlers import CompiledHandler
from aioinformer._runtime.delivery.listener import Listener
from aioinformer._runtime.delivery.options import HandlerOptions
from aioinformer._runtime.tasks.event_loop import loop_time, running_task
from aioinformer.errors import ListenerOverflow

if TYPE_CHECKING:  # for handlers that run in threads alone
    from aioinformer._runtime.delivery.thread_pool import HandlerThreads


class ActiveCall(Struct, eq=False):
    """A call of a handler that is awaited."""

    caller: HandlerCaller
    """The caller of the handler."""
    event: Event
    started_at: float
    """The loop's time at which the call began."""
    task: asyncio.Task[Any]
    """The task that the call runs in."""
    timeout_error: Exception | None = None
    """The error of a call whose time ran out."""
    done: bool = False
    """True once the handler has returned."""
    limits_passed: int = 0
    """The number of limits of its ``CallTimeouts`` that the call has passed."""
    warned: bool = False
    """True if the log says that the call takes long."""
    closing: list[HandlerCaller] = []
    """The callers whose end this call waits for."""

    def __repr__(self) -> str:
        state = "over" if self.done else "late" if self.timeout_error else "in flight"
        return f"<Call at {type(self.event).__name__} of {self.event.obj.key} {state}>"


CURRENT_CALL: ContextVar[ActiveCall | None] = ContextVar("aioinformer_call", default=None)
"""The call of a handler that this code runs in, or in which its task was started."""


def detached_context() -> Context:
    """Return a copy of the current context that belongs to no call, and keeps no call alive."""
    context = copy_context()
    context.run(CURRENT_CALL.set, None)
    return context


def leave_call() -> None:
    """Let the current task belong to no call."""
    CURRENT_CALL.set(None)


def current_call() -> ActiveCall | None:
    """Return the call that waits, or may wait, for the running code.

    Returns:
        ``None`` outside of any call, or if the call is over, as for a task that a handler left
        running.
    """
    call = CURRENT_CALL.get()
    return None if call is None or call.done else call


CallLimit: TypeAlias = tuple[float, Callable[[ActiveCall], None]]
"""Seconds, and the function to be called with a call that takes longer."""


class CallTimeouts:
    """The time limits of the calls in flight. Each call passes each limit once."""

    def __init__(self, limits: Sequence[CallLimit]) -> None:
        """Make an empty set of calls; the shorter limits come first."""
        self.calls: dict[ActiveCall, None] = {}
        """The calls in flight. The code that begins a call adds it, and calls ``watch`` if there is
        no timer; the code that ends the call removes it. The timer stays, since the next call will
        need it."""
        self.timer: asyncio.TimerHandle | None = None
        self._limits = limits
        # Not the context of a call: the loop keeps a cancelled timer for a while, and with it the
        # timer's context.
        self._context = detached_context()

    def watch(self, call: ActiveCall) -> None:
        """Set the timer for a call that has begun."""
        self._set_timer(call.started_at + self._limits[0][0])

    @property
    def description(self) -> str:
        """The oldest call in flight and the time that it has taken; empty if there is none."""
        if not self.calls:
            return ""
        first = next(iter(self.calls))
        what = f"{type(first.event).__name__} of {first.event.obj.key}"
        lasted = asyncio.get_running_loop().time() - first.started_at
        others = (
            f" and {quantity(len(self.calls) - 1, 'other call')}" if len(self.calls) > 1 else ""
        )
        return f"at {what} for {lasted:.1f} s{others}"

    def stop(self) -> None:
        """Watch no call any more."""
        self.calls.clear()
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _set_timer(self, due: float) -> None:
        self.timer = asyncio.get_running_loop().call_at(due, self._check, context=self._context)

    def _check(self) -> None:
        self.timer = None
        now = asyncio.get_running_loop().time()
        for call in list(self.calls):
            while (due := self._next_limit_at(call)) is not None and due <= now:
                on_limit = self._limits[call.limits_passed][1]
                call.limits_passed += 1
                on_limit(call)
        due = min(filter(None, map(self._next_limit_at, self.calls)), default=None)
        if due is not None:
            self._set_timer(due)

    def _next_limit_at(self, call: ActiveCall) -> float | None:
        """Return the time at which the call passes its next limit."""
        if call.limits_passed >= len(self._limits):
            return None
        return call.started_at + self._limits[call.limits_passed][0]

    def __repr__(self) -> str:
        return f"<CallTimeouts {quantity(len(self.calls), 'call')} in flight>"


SLOW_CALL_SECONDS = 10.0
"""Seconds after which a warning names a call that has not returned. A call to an API server that
takes as long has failed."""


class HandlerCaller:
    """The caller of one handler."""

    def __init__(
        self,
        handler: CompiledHandler,
        options: HandlerOptions,
        listener: Listener,
        errors: HandlerErrors,
    ) -> None:
        """Make a caller; ``start`` comes before the first call.

        Args:
            handler: the handler.
            options: the options of the handler.
            listener: the listener whose events are passed to the handler.
            errors: reports what goes wrong.

        Raises:
            TypeError: the handler is async and its options say ``run_in_thread``.
        """
        name, timeout = listener.name, options.timeout
        if options.run_in_thread and handler.is_async:
            raise TypeError(f"{name} is async: it runs in the event loop, not in a thread")
        self.listener = listener
        self.returns_at_once = not (options.run_in_thread or handler.is_async)
        """True for a plain function that runs in the loop. The function may still return an
        awaitable."""
        self.timeout = float("inf") if timeout is None else timeout
        """Seconds after which a call that didn't suspend must be passed to ``on_late_call``."""
        self.report_blocking = errors.report_blocking if errors.on_blocked is not None else None
        """Called after a step that held the event loop, with its seconds; ``None`` if steps are not
        timed."""
        self._options = options
        self._errors = errors
        self._threads = _make_threads(handler, options, name) if options.run_in_thread else None
        self.call: Callable[[Event], Any] = self._threads or handler.call
        """Calls the handler. An exception must be passed to ``on_exception``, an awaitable to
        ``finish``."""
        limits: list[CallLimit] = []
        if timeout is None or timeout > SLOW_CALL_SECONDS:  # else the timeout comes first
            limits.append((SLOW_CALL_SECONDS, _report_slow))
        if timeout is not None:
            limits.append((timeout, _end_late))
        self._timeouts = CallTimeouts(limits)
        self._is_ending: Callable[[], bool] | None = None
        self._on_fatal: Callable[[Exception], None] | None = None
        self._reported = False  # the handler's cancellation of its own task

    def start(
        self, is_ending: Callable[[], bool] | None, on_fatal: Callable[[Exception], None] | None
    ) -> None:
        """Prepare for calls.

        Args:
            is_ending: returns True if a cancellation comes from the informer: a handler may cancel
                the task that it runs in. ``None`` if every cancellation comes from outside.
            on_fatal: ends the informer with an error of a handler with ``fail_fast``.
        """
        self._is_ending, self._on_fatal = is_ending, on_fatal

    def stop(self) -> None:
        """Release the timer and the threads: no further call follows.

        Called in the context of the handler's task.
        """
        self._timeouts.stop()
        self._errors.flush()
        CURRENT_CALL.set(None)  # the task keeps this context, and the last call keeps the task
        if self._threads is not None:
            self._threads.close()

    def give_up(self) -> None:
        """Stop waiting for threads that don't return."""
        if self._threads is not None:
            self._threads.give_up()

    @property
    def in_flight(self) -> str:
        """A description of the calls in flight; empty if there are none."""
        return self._timeouts.description

    def waits_for(self, other: HandlerCaller) -> bool:
        """Return True if this is ``other``, or its calls wait for the end of ``other``.

        The graph has no circle: a call whose wait would close one doesn't wait.
        """
        return self is other or any(
            each.waits_for(other) for call in self._timeouts.calls for each in call.closing
        )

    async def finish(
        self, task: asyncio.Task[Any], event: Event, awaitable: Awaitable[None], began: float
    ) -> None:
        """Await the rest of a call in ``task``, the running one.

        Args:
            task: the running task.
            event: the event of the call.
            awaitable: what the call returned.
            began: the loop's time at which the call began.
        """
        call = ActiveCall(self, event, began, task)
        CURRENT_CALL.set(call)
        timeouts = self._timeouts
        timeouts.calls[call] = None
        if timeouts.timer is None:
            timeouts.watch(call)
        try:
            await awaitable
        except BaseException as error:
            if isinstance(error, GeneratorExit) and not _is_current_task(task):
                raise  # not the handler's: the loop is closed, and this coroutine with it
            # The cancellation by ``on_timeout`` was reported there.
            if call.timeout_error is None or not isinstance(error, asyncio.CancelledError):
                self.on_exception(event, error)
        finally:
            call.done = True
            timeouts.calls.pop(call, None)
            if call.warned and call.timeout_error is None:
                self._errors.report_return(event, loop_time() - began)
            if call.timeout_error is not None and self._threads is None:
                task.uncancel()

    def on_exception(self, event: Event, error: BaseException) -> None:
        """Report a failed call, unless its task is being cancelled from outside.

        Raises:
            BaseException: that very error, if it ends the task or the program.
        """
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise error
        if isinstance(error, asyncio.CancelledError):
            task = running_task()
            if self._cancelled_from_outside(task):
                raise error
            self._reported = task.cancelling() > 0  # cleared before the next await
        self._fail(self._errors.report_exception(event, error))

    def on_overflow(self, error: ListenerOverflow) -> None:
        """Report that the listener was closed because its mailbox was full.

        At once, since the call in flight, which was too slow, may never return.
        """
        self._errors.report_end(error)
        self._fail(error)

    def on_late_call(self, event: Event) -> None:
        """Report a call that took longer than its timeout and could not be stopped."""
        self._fail(self._errors.report_timeout(event, self.timeout, consequence="it isn't async"))

    def on_timeout(self, call: ActiveCall) -> None:
        """Cancel a call whose time has run out, and report the timeout."""
        consequence = "cancelled" if self._threads is None else "its thread can't be stopped"
        call.timeout_error = self._errors.report_timeout(
            call.event, self.timeout, consequence=consequence
        )
        if self._threads is None:
            call.task.cancel()
        self._fail(call.timeout_error)

    def on_slow_call(self, call: ActiveCall) -> None:
        """Report a call that takes long."""
        what = f"has not returned after {SLOW_CALL_SECONDS:g} s"
        call.warned = self._errors.report_slow_call(call.event, what)

    def _fail(self, error: Exception) -> None:
        """With ``fail_fast``, make this call the last one and end the informer."""
        if not self._options.fail_fast:
            return
        self.listener.close(drop=True)
        if self._on_fatal is not None:
            self._on_fatal(error)

    # -- cancellations -------------------------------------------------------------------------

    def cancellation_pending(self, task: asyncio.Task[Any]) -> bool:
        """Return True if ``check_cancelled`` must be called for ``task``, the running one.

        The task may have to end, or to clear a cancellation that the handler has made.
        """
        return task.cancelling() > 0 or (self._is_ending is not None and self._is_ending())

    async def check_cancelled(self, task: asyncio.Task[Any]) -> None:
        """Clear a cancellation that the handler has made, or end ``task``, the running one.

        The task is ended here because the handler may have swallowed the cancellation, and a task
        group cancels a task only once.

        Raises:
            CancelledError: the task has to end.
        """
        if task.cancelling():
            await self.clear_self_cancel(task)
        if self.cancellation_pending(task):
            raise asyncio.CancelledError

    async def clear_self_cancel(self, task: asyncio.Task[Any]) -> None:
        """If the handler cancelled its own task, the running one, clear that cancellation.

        Before Python 3.13, ``uncancel()`` does not take back the CancelledError that is still to
        be raised at the next await. So the CancelledError is raised and suppressed here.
        """
        reported, self._reported = self._reported, False
        if self._cancelled_from_outside(task):
            return
        _uncancel(task)
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
        if self._cancelled_from_outside(task):  # meanwhile: raise it again
            task.cancel()
        else:
            _uncancel(task)
        if not reported:
            self._report_self_cancel()

    def consume_raised_cancel(self, task: asyncio.Task[Any]) -> bool:
        """Clear a cancellation by the handler that was raised already.

        Returns:
            False if the cancellation comes from outside, so that ``task`` has to end.
        """
        reported, self._reported = self._reported, False
        if self._cancelled_from_outside(task):
            return False
        _uncancel(task)
        if not reported:
            self._report_self_cancel()
        return True

    def _report_self_cancel(self) -> None:
        self._fail(self._errors.report_self_cancel())

    def _cancelled_from_outside(self, task: asyncio.Task[Any]) -> bool:
        return task.cancelling() > 0 and (self._is_ending is None or self._is_ending())

    def __repr__(self) -> str:
        return f"<HandlerCaller of {self._errors!r}>"


def _uncancel(task: asyncio.Task[Any]) -> None:
    """Take back all cancellations of ``task``."""
    while task.cancelling():
        task.uncancel()


# Functions, not methods of a caller: the caller keeps them, and they must not keep the caller.
def _report_slow(call: ActiveCall) -> None:
    call.caller.on_slow_call(call)


def _end_late(call: ActiveCall) -> None:
    call.caller.on_timeout(call)


def _make_threads(handler: CompiledHandler, options: HandlerOptions, name: str) -> HandlerThreads:
    from aioinformer._runtime.delivery.thread_pool import HandlerThreads  # for its users alone

    return HandlerThreads(handler.call, max_threads=options.concurrency, name=name)


def _is_current_task(task: asyncio.Task[Any]) -> bool:
    """Return True if ``task`` runs this code, and not the garbage collector."""
    try:
        return asyncio.current_task() is task
    except RuntimeError:
        return False
