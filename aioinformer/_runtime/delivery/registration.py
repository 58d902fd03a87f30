"""A registration: one handler of one informer, from ``add_handler`` to its removal.

A registration puts the parts of a handler together: the listener with the pending events, the
caller, and the runner with the task. None of the parts refers to the registration.

An operation that would wait for the call from which it was called doesn't wait (``aclose``) or
raises (``wait_synced``), in whichever task of the handler it runs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import TYPE_CHECKING

from aioinformer._runtime.delivery.call import (
    ActiveCall,
    HandlerCaller,
    current_call,
    detached_context,
)
from aioinformer._runtime.delivery.handler_errors import HandlerErrors
from aioinformer._runtime.delivery.handlers import CompiledHandler
from aioinformer._runtime.delivery.inline_dispatch import InlineDispatcher, InlineHandler
from aioinformer._runtime.delivery.listener import Listener
from aioinformer._runtime.delivery.options import HandlerOptions
from aioinformer._runtime.delivery.runner import HandlerRunner
from aioinformer._runtime.tasks.event_loop import check_loop
from aioinformer._runtime.tasks.sync_timeout import start_limit
from aioinformer.errors import ListenerOverflow, ShutdownIncomplete, UsageError

if TYPE_CHECKING:  # for programs that read the numbers
    from aioinformer._runtime.delivery.statistics import Statistics

log = logging.getLogger("aioinformer.handlers")


class Registration:
    """One handler of one informer. ``SharedInformer.add_handler`` makes registrations.

    Example::

        async def show(event: Event) -> None:
            print(event.obj.name)

        registration: Registration = pods.add_handler(show)
        await registration.wait_synced(timeout=30)
        numbers: Statistics = registration.statistics()
        assert (numbers.delivered, numbers.errors) == (2, 0)
        await registration.aclose()
    """

    def __init__(
        self,
        handler: CompiledHandler,
        options: HandlerOptions,
        listener: Listener,
        errors: HandlerErrors,
        dispatcher: InlineDispatcher,
    ) -> None:
        """Register ``handler``, to be called in a copy of the current context.

        Args:
            handler: the handler.
            options: the options of the handler.
            listener: the pending events.
            errors: reports what goes wrong.
            dispatcher: calls the handler while its task waits, if it is a plain function.

        Raises:
            TypeError: the handler is async and its options say ``run_in_thread``.
        """
        self.listener = listener
        """The pending events. For the informer only."""
        self._options = options
        self._errors = errors
        self._context = detached_context()  # ``add_handler`` may be called inside of a call
        self._caller = HandlerCaller(handler, options, listener, errors)
        self._inline_handler: InlineHandler | None = None
        if self._caller.returns_at_once and options.concurrency == 1:
            self._inline_handler = InlineHandler(dispatcher, self._caller, self._context)
        self._runner = HandlerRunner(self._caller, self._inline_handler)
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(
        self,
        group: asyncio.TaskGroup,
        is_ending: Callable[[], bool] | None = None,
        on_fatal: Callable[[Exception], None] | None = None,
    ) -> asyncio.Task[None]:
        """Start to call the handler.

        Args:
            group: owns the task.
            is_ending: returns True if a cancellation comes from the informer: a handler may cancel
                the task that it runs in. By default every cancellation comes from outside.
            on_fatal: ends the informer with an error of a handler with ``fail_fast``. Called at
                once, since the task may have to wait for other calls in flight.
        """
        self._loop = asyncio.get_running_loop()
        # From now on until the listener is closed, since these methods refer to the listener.
        self.listener.on_overflow = self._caller.on_overflow
        if self._inline_handler is not None:
            self.listener.on_ready = self._inline_handler.schedule
        self._caller.start(is_ending, on_fatal)
        return self._runner.start(group, self._context)

    # -- the program's side --------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name of the handler in logs, health and errors."""
        return self.listener.name

    @property
    def closed(self) -> bool:
        """True once the handler receives no new events."""
        return self.listener.closed

    @property
    def failure(self) -> ListenerOverflow | None:
        """The overflow that closed the registration, if one did."""
        return self.listener.failure

    @property
    def synced(self) -> bool:
        """True if the handler has returned from all that was cached when it was registered."""
        return self.listener.synced

    def remove(self) -> None:
        """Deliver no more events.

        Returns at once: calls in flight run to their end, pending events are discarded. May be
        called from the handler, and more than once.
        """
        check_loop(self._loop, self.name)
        self.listener.close(drop=True)

    async def aclose(self, timeout: float | None = None, *, drain: bool | None = None) -> None:
        """Deliver no new events, and wait until the calls in flight have returned.

        Inside one of these calls, or in a task that such a call awaits, the method returns without
        waiting. The same holds inside a call that this handler's calls wait for, as where two
        handlers close each other.

        Args:
            timeout: seconds. After them the pending events are discarded; calls in flight go on.
            drain: whether to deliver the pending events first; as registered by default.

        Raises:
            ShutdownIncomplete: the calls had not returned within that time.
        """
        check_loop(self._loop, self.name)
        drain = self._options.drain if drain is None else drain
        self.listener.close(drop=not drain)
        task, call = self.task, current_call()
        if task is None or task is asyncio.current_task():
            return
        if call is not None and self._caller.waits_for(call.caller):
            return
        await self._wait_for(task, call, timeout)
        if self.running:
            unfinished = self.unfinished_work
            self.listener.close(drop=True)
            raise ShutdownIncomplete((unfinished,), waited=timeout or 0.0)

    async def _wait_for(
        self, task: asyncio.Task[None], call: ActiveCall | None, timeout: float | None
    ) -> None:
        """Wait for ``task``, and note meanwhile that ``call`` waits for this handler."""
        if call is not None:
            call.closing.append(self._caller)
        try:
            await asyncio.wait({task}, timeout=timeout)
        finally:
            if call is not None:
                call.closing.remove(self._caller)

    async def wait_synced(self, timeout: float | None = None) -> None:
        """Wait until the handler has returned from all that was cached when it was registered.

        Args:
            timeout: seconds; ``None`` for no limit.

        Raises:
            SyncTimeout: not within that time.
            NotRunning: the handler was removed or its informer ended before.
            UsageError: the handler itself calls this, which would wait for its own call; or without
                a timeout, the informer was not started within five seconds.
        """
        call = current_call()
        if not self.synced and call is not None and call.caller is self._caller:
            raise UsageError(f"{self.name} can't wait, inside a call, for its calls to be over")
        limit = start_limit(lambda: self._loop is not None, f"handler {self.name}")
        async with limit if timeout is None else nullcontext():
            await self.listener.wait_synced(timeout)

    def statistics(self) -> Statistics:
        """Return the numbers of this moment. May be called from any thread."""
        from dataclasses import replace  # when first read

        return replace(
            self.listener.statistics(),
            errors=self._errors.count,
            blocking_calls=self._errors.blocking_calls,
        )

    @property
    def blocking_calls(self) -> int:
        """Times that a call has held the event loop for more than 250 ms."""
        return self._errors.blocking_calls

    # -- the informer's side -------------------------------------------------------------------

    @property
    def drains(self) -> bool:
        """True if the pending events are delivered when the factory is left.

        A durable handler would receive again what it has handled since its last position.
        """
        return self._options.drain or self._options.position is not None

    @property
    def task(self) -> asyncio.Task[None] | None:
        """The task that calls the handler, once it was started."""
        return self._runner.task

    @property
    def running(self) -> bool:
        """True if the task was started and has not ended."""
        return self.task is not None and not self.task.done()

    @property
    def unfinished_work(self) -> str:
        """The name, with the calls in flight and the number of pending events."""
        mailbox = self.listener.mailbox
        pending = mailbox.pending + self.listener.in_flight.waiting
        rest = [
            self._caller.in_flight,
            f"{pending} pending" if pending else "",
            "part of a whole state pending" if mailbox.state_pending else "",
        ]
        shown = ", ".join(filter(None, rest))
        return f"{self.name} ({shown})" if shown else self.name

    def give_up(self) -> None:
        """Stop waiting for threads that don't return: the task ends, and they may go on."""
        self._caller.give_up()

    def __repr__(self) -> str:
        state = "closed" if self.closed else "open"
        return f"<Registration {self.name} {state} {self.listener.mailbox!r}>"


async def drain_handlers(registrations: Iterable[Registration], timeout: float) -> tuple[str, ...]:
    """Close the handlers that drain, and wait until their pending events are delivered.

    Args:
        registrations: handlers; those without ``drain`` are left alone.
        timeout: seconds. After them the pending events of the unfinished handlers are discarded.

    Returns:
        Descriptions of the unfinished handlers.
    """
    tasks = {each.task: each for each in registrations if each.task and each.drains}
    for each in tasks.values():
        each.listener.close(drop=False)
    if not tasks:
        return ()
    _, unfinished = await asyncio.wait(tasks, timeout=timeout)
    late = [tasks[task] for task in unfinished]
    names = tuple(sorted(each.unfinished_work for each in late))
    for each in late:
        log.warning(
            "handler %s was not done within %g s of draining", each.unfinished_work, timeout
        )
        each.listener.close(drop=True)
    return names
