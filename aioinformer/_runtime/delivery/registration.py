"""One handler of one informer: the task that calls it, and that task's life.

How it is called is ``calling``'s, what a handler may look like ``handlers``'.

Nobody waits for himself: what would wait for the call that it is made from either doesn't wait
(``aclose``) or raises (``wait_synced``), whichever task of the handler's it is in.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import replace

from aioinformer._core.delivery.mailbox import Mailbox
from aioinformer._runtime.delivery.call import HandlerCaller, current_call, detached_context
from aioinformer._runtime.delivery.handler_errors import HandlerErrors
from aioinformer._runtime.delivery.handlers import Handler, HandlerOptions
from aioinformer._runtime.delivery.inline_dispatch import InlineDispatcher, InlineHandler
from aioinformer._runtime.delivery.listener import BackpressureGate, Listener, Statistics
from aioinformer._runtime.delivery.runner import HandlerRunner
from aioinformer._runtime.tasks.event_loop import check_loop
from aioinformer.errors import ShutdownIncomplete, UsageError

__all__ = ["Registration", "drain_handlers"]

log = logging.getLogger("aioinformer.handlers")


class Registration(Listener):
    """One handler of one informer. ``SharedInformer.add_handler`` makes them."""

    def __init__(
        self,
        handler: Handler,
        name: str,
        mailbox: Mailbox,
        gate: BackpressureGate,
        *,
        describe: Callable[[], str] | None = None,
        resync: float = 0.0,
        options: HandlerOptions | None = None,
        errors: HandlerErrors | None = None,
        dispatcher: InlineDispatcher | None = None,
    ) -> None:
        """Register ``handler``, to run in a copy of the current context.

        Args:
            handler: what to call.
            name: for logs, health and errors.
            mailbox: its pending events.
            gate: what to open when there is room again.
            describe: says what its informer is doing, for errors.
            resync: seconds between two times that it is told the cached state again; 0 for never.
            options: how to call it; one event after the other by default.
            errors: where to tell of what goes wrong; the log by default.
            dispatcher: calls it while its task waits, if it is a plain function.

        Raises:
            TypeError: ``handler`` is none, or async where it must not be.
        """
        super().__init__(name, mailbox, gate, describe=describe, resync=resync)
        self._options = options or HandlerOptions()
        self._errors = errors or HandlerErrors(name)
        self._context = detached_context()  # also of the call in which it may be registered
        self._handler_caller = HandlerCaller(self, name, handler, self._options, self._errors)
        visits: InlineHandler | None = None
        if (
            dispatcher is not None
            and self._handler_caller.synchronous
            and self._options.concurrency == 1
        ):
            visits = InlineHandler(dispatcher, self, mailbox, self._handler_caller, self._context)
            self.on_ready = visits.schedule
        self._runner = HandlerRunner(self, self._handler_caller, self._options.concurrency, visits)
        self._sync_marked = False
        self._on_fatal: Callable[[Exception], None] | None = None
        self._closing: list[Registration] = []
        """What its calls are waiting for, to be closed."""
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(
        self,
        group: asyncio.TaskGroup,
        is_ending: Callable[[], bool] | None = None,
        on_fatal: Callable[[Exception], None] | None = None,
    ) -> asyncio.Task[None]:
        """Start to call the handler.

        Args:
            group: what owns the task.
            is_ending: whether a cancellation is meant: a handler may cancel the task that it runs
                in. By default every one is.
            on_fatal: is told of what ends everything, with ``fail_fast``, at once: other calls may
                be in flight, for which the task waits.
        """
        self._loop = asyncio.get_running_loop()
        self._on_fatal = on_fatal
        work = self._run(is_ending)
        self._task = group.create_task(work, name=self.name, context=self._context)
        return self._task

    async def _run(self, is_ending: Callable[[], bool] | None) -> None:
        if self._task is None:  # eager: the handler isn't called before add_handler returns
            await asyncio.sleep(0)
        self._handler_caller.start(is_ending, self._on_fatal)
        await self._runner.run()
        if self.failure is not None and self._options.fail_fast:
            raise self.failure

    def _fail(self) -> None:
        """Told at once: the call in flight, for which it was too slow, may never return."""
        if self.closed:
            return
        super()._fail()
        if self.failure is not None:
            self._errors.report_end(self.failure)
            if self._options.fail_fast and self._on_fatal is not None:
                self._on_fatal(self.failure)

    def _mark_synced(self) -> None:
        """All that was cached when it joined was taken; some of it may still be dealt with."""
        if not self._sync_marked:
            self._sync_marked = True
            self._runner.key_concurrency.mark()
        if not self._runner.key_concurrency.marked:
            super()._mark_synced()

    # -- the program's side --------------------------------------------------------------------

    def close(self, *, drop: bool) -> None:
        """Nothing more will come; ``drop`` what is pending, or leave it to be dealt with."""
        super().close(drop=drop)
        if drop:
            self._runner.key_concurrency.clear()

    def remove(self) -> None:
        """Hear no more. Returns at once: calls in flight go on to their end; what is pending is
        dropped. May be called from the handler, and more than once.
        """
        check_loop(self._loop, self.name)
        self.close(drop=True)

    async def aclose(self, timeout: float | None = None, *, drain: bool | None = None) -> None:
        """Hear no more, and wait for the calls in flight. From inside one of them, or from a task
        that it awaits, don't wait; nor from a call of another handler that this one's calls are
        waiting for, as where two handlers close each other.

        Args:
            timeout: seconds. Then what is pending is dropped; the calls in flight go on.
            drain: whether to finish what is pending first; as registered by default.

        Raises:
            ShutdownIncomplete: it was not done within that time.
        """
        check_loop(self._loop, self.name)
        self.close(drop=not (self._options.drain if drain is None else drain))
        call = current_call()
        caller = call.owner if call is not None else None
        if self._task is None or self._task is asyncio.current_task():
            return
        if isinstance(caller, Registration):
            if self._waits_for(caller):
                return
            caller._closing.append(self)
        try:
            await asyncio.wait({self._task}, timeout=timeout)
        finally:
            if isinstance(caller, Registration):
                caller._closing.remove(self)
        if self.running:
            left = self.unfinished_work
            self.close(drop=True)
            raise ShutdownIncomplete((left,), waited=timeout or 0.0)

    def _waits_for(self, other: Registration) -> bool:
        """Whether it is the other, or its calls wait for it. That never goes round in a circle:
        who would close one doesn't wait.
        """
        return self is other or any(each._waits_for(other) for each in self._closing)

    def give_up(self) -> None:
        """Wait no more for threads that don't return: its task ends, and they may go on."""
        self._handler_caller.give_up()

    async def wait_synced(self, timeout: float | None = None) -> None:
        """Wait until the handler has returned from all that was cached when it joined.

        Args:
            timeout: seconds.

        Raises:
            SyncTimeout: not within that time.
            NotRunning: it was removed or its informer ended before.
            UsageError: it is the handler that asks, which would wait for itself.
        """
        call = current_call()
        if not self.synced and call is not None and call.owner is self:
            raise UsageError(f"{self.name} can't wait, inside a call, for its calls to be over")
        await super().wait_synced(timeout)

    @property
    def synced(self) -> bool:
        """Whether the handler has returned from all that was cached when it joined."""
        return self._mailbox.synced and not self._runner.key_concurrency.marked

    @property
    def drains(self) -> bool:
        """Whether it is to finish what is pending when its factory is left."""
        return self._options.drain

    @property
    def task(self) -> asyncio.Task[None] | None:
        """The task that calls the handler, once it was started."""
        return self._task

    @property
    def running(self) -> bool:
        """Whether its task has yet to end."""
        return self._task is not None and not self._task.done()

    @property
    def unfinished_work(self) -> str:
        """Its name, what it is at, and how much it has yet to do."""
        pending = self._mailbox.pending + self._runner.key_concurrency.waiting
        rest = [
            self._handler_caller.in_flight,
            f"{pending} pending" if pending else "",
            "part of a whole state pending" if self._mailbox.state_pending else "",
        ]
        shown = ", ".join(filter(None, rest))
        return f"{self.name} ({shown})" if shown else self.name

    def may_block(self, gate: BackpressureGate) -> bool:
        """Whether what waits at ``gate`` may be waiting for this handler."""
        return self._gate is gate and self._mailbox.overflow == "block"

    def statistics(self) -> Statistics:
        """Its numbers now."""
        return replace(super().statistics(), errors=self._errors.count, synced=self.synced)


async def drain_handlers(registrations: Iterable[Registration], timeout: float) -> tuple[str, ...]:
    """Let the handlers that are meant to drain finish what is pending.

    Args:
        registrations: handlers. Those that drain hear of nothing new from now on.
        timeout: seconds.

    Returns:
        What to call those that were not done by then; what was pending for them is dropped.
    """
    tasks = {each.task: each for each in registrations if each.task and each.drains}
    for each in tasks.values():
        each.close(drop=False)
    if not tasks:
        return ()
    _, unfinished = await asyncio.wait(tasks, timeout=timeout)
    left = [tasks[task] for task in unfinished]
    names = tuple(sorted(each.unfinished_work for each in left))
    for each in left:
        log.warning(
            "handler %s was not done within %g s of draining", each.unfinished_work, timeout
        )
        each.close(drop=True)
    return names
