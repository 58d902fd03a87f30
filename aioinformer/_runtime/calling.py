"""Calling a handler: one event after the other, or several keys at once, and what comes of it.

The loop here takes events from a listener and calls the handler; in the event loop, or in threads
of its own. What the handler raises is a failure of that one call, and the next event follows; so
is a CancelledError, unless it is the informer that ends. Who starts and ends this is
``registration``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any

from aioinformer._core.lanes import Lanes
from aioinformer._core.objects import Event
from aioinformer._runtime.affinity import this_task
from aioinformer._runtime.calls import INSIDE, Call, CallWatch, Limit
from aioinformer._runtime.failures import Failures
from aioinformer._runtime.handlers import Handler, dispatch, is_async
from aioinformer._runtime.listeners import Listener
from aioinformer._runtime.pace import BUDGET
from aioinformer._runtime.threads import Threads

__all__ = ["Caller", "Terms", "check_whole"]

SLOW = 10.0
"""Seconds after which a call that still goes on is warned of. A call to an API server that takes
as long has failed."""

BLOCKING = 1.0
"""Seconds after which a call that kept the event loop is warned of: nothing else ran meanwhile."""


def check_whole(name: str, value: object) -> None:
    """Raise TypeError unless the argument of this name is an integer."""
    if not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, not {value!r}")


@dataclass(frozen=True, slots=True)
class Terms:
    """How a handler is to be called. ``add_handler`` explains each."""

    concurrency: int = 1
    timeout: float | None = None
    run_in_thread: bool = False
    drain: bool = False
    fail_fast: bool = False

    def __post_init__(self) -> None:
        check_whole("concurrency", self.concurrency)
        if self.concurrency < 1:
            raise ValueError(f"concurrency must be at least 1, not {self.concurrency}")
        if self.timeout is not None and not self.timeout > 0:
            raise ValueError(f"timeout must be seconds, or None for no limit, not {self.timeout:g}")


class Caller:
    """Calls one handler with what its listener hears."""

    def __init__(
        self, listener: Listener, handler: Handler, terms: Terms, failures: Failures
    ) -> None:
        """Make a caller; ``run`` starts it.

        Args:
            listener: where the events are.
            handler: what to call.
            terms: how.
            failures: where to tell of what goes wrong.

        Raises:
            TypeError: ``handler`` is none, or async where it must not be.
        """
        call = dispatch(handler)
        name, count = listener.name, terms.concurrency
        if terms.run_in_thread and is_async(handler):
            raise TypeError(f"{name} is async: it runs in the event loop, not in a thread")
        self.lanes = Lanes(count)
        """The keys that it is busy with, if there may be several."""
        self._listener = listener
        self._terms = terms
        self._failures = failures
        self._threads = Threads(call, count=count, name=name) if terms.run_in_thread else None
        self._call: Callable[[Event], Any] = self._threads or call
        timeout = terms.timeout
        limits: list[Limit] = []
        if timeout is None or timeout > SLOW:  # what runs out of time before isn't warned of
            limits.append((SLOW, self._slow))
        if timeout is not None:
            limits.append((timeout, self._late))
        self._watch = CallWatch(limits)
        self._patience = min(BLOCKING, timeout or BLOCKING)
        self._turn = asyncio.Event()
        self._ending: Callable[[], bool] | None = None
        self._told: Callable[[Exception], None] | None = None

    async def run(
        self,
        ending: Callable[[], bool] | None,
        fatal: Callable[[Exception], None] | None = None,
    ) -> None:
        """Call the handler until its listener is closed and everything was taken.

        Args:
            ending: whether a cancellation is meant: a handler may cancel the task that it runs
                in. ``None``: every one is.
            fatal: is told at once of what ends it, with ``fail_fast``.
        """
        self._ending, self._told = ending, fatal
        try:
            await (self._one_by_one() if self.lanes.count == 1 else self._side_by_side())
        finally:
            self._watch.stop()
            if self._threads is not None:
                self._threads.close()

    async def _one_by_one(self) -> None:
        task, clock = this_task(), asyncio.get_running_loop().time
        rested = clock()
        while True:
            if task.cancelling():
                await self._go_on(task)
            if (waiter := self._listener.parked()) is not None:
                await waiter
            if self._listener.ended:
                return
            first = began = clock()  # of plain calls, whose times are told of together
            rested = began if waiter is not None else rested
            plain = 0
            for event in self._listener.take():
                unfinished = self._begin(event)
                if unfinished is None:
                    plain += 1
                    now = clock()
                    if now - began > self._patience:
                        self._kept_the_loop(event, now - began)
                else:
                    if plain:
                        self._listener.spent(began - first, plain)
                    if task.cancelling():  # a plain call before this one did it
                        await self._undo(task)
                    await self._finish(task, event, unfinished, began)
                    if task.cancelling() or (self._ending is not None and self._ending()):
                        await self._go_on(task)
                    first = now = clock()
                    plain = 0
                    self._listener.spent(now - began)
                    self._listener.relieve()
                if now - rested >= BUDGET:
                    self._listener.spent(now - first, plain)
                    await (self._go_on(task) if task.cancelling() else asyncio.sleep(0))
                    first = now = rested = clock()
                    plain = 0
                    self._listener.relieve()
                began = now
            self._listener.spent(began - first, plain)

    # -- several keys at once ------------------------------------------------------------------

    async def _side_by_side(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                task, clock = this_task(), asyncio.get_running_loop().time
                rested = clock()
                while (event := await self._next_for_a_lane()) is not None:
                    if self.lanes.enter(event):
                        self._open_lane(group, event)
                    if task.cancelling():
                        await self._go_on(task)
                    if clock() - rested >= BUDGET:
                        await asyncio.sleep(0)
                        rested = clock()
        except BaseExceptionGroup as failed:
            error = failed.exceptions[0]
            raise error from error.__cause__

    async def _next_for_a_lane(self) -> Event | None:
        """The next event, once there may be a lane for it."""
        while self.lanes.full:
            self._turn.clear()
            await self._turn.wait()
        event = self._listener.next_nowait()
        return await self._listener.next() if event is None else event

    def _open_lane(self, group: asyncio.TaskGroup, event: Event) -> None:
        """Call the handler; if there is something to await, in a task of its own."""
        following: Event | None = event
        while following is not None:
            event, began = following, asyncio.get_running_loop().time()
            unfinished = self._begin(event)
            if unfinished is not None:
                lane = self._lane(event, unfinished, began)
                group.create_task(lane, name=self._listener.name)
                return
            following = self._leave(event, began, kept_the_loop=True)

    async def _lane(self, event: Event, unfinished: Awaitable[None] | None, began: float) -> None:
        """Deal with an event, and with what has come for its key meanwhile."""
        task = this_task()
        while True:
            if unfinished is not None:
                await self._finish(task, event, unfinished, began)
            following = self._leave(event, began, kept_the_loop=unfinished is None)
            if task.cancelling() or (self._ending is not None and self._ending()):
                await self._go_on(task)
            if following is None:
                return
            event, began = following, asyncio.get_running_loop().time()
            unfinished = self._begin(event)

    def _leave(self, event: Event, began: float, *, kept_the_loop: bool) -> Event | None:
        took = asyncio.get_running_loop().time() - began
        if kept_the_loop and took > self._patience:
            self._kept_the_loop(event, took)
        self._listener.spent(took)
        following = self.lanes.leave(event)
        self._turn.set()
        self._listener.relieve()
        return following

    # -- one call ------------------------------------------------------------------------------

    def _begin(self, event: Event) -> Awaitable[None] | None:
        """Call the handler; what is left to await, if it is async."""
        try:
            result: Awaitable[None] | None = self._call(event)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - a program's code
            self._raised(event, error)
            return None
        # Functions that aren't async mostly return None, and isawaitable is slow to reject it.
        return result if result is not None and isawaitable(result) else None

    async def _finish(
        self, task: asyncio.Task[Any], event: Event, unfinished: Awaitable[None], began: float
    ) -> None:
        """Await the rest of a call, in ``task``, which is this one."""
        call = Call(self._listener, event, began, task)
        INSIDE.set(call)
        self._watch.begin(call)
        try:
            await unfinished
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            if isinstance(error, GeneratorExit) and not _runs(task):
                raise  # it isn't the handler's: the loop is gone, and this coroutine with it
            if call.late is None or not isinstance(error, asyncio.CancelledError):
                self._raised(event, error)
        finally:
            call.over = True
            self._watch.calls.pop(call, None)
            if call.late is not None and self._threads is None:
                task.uncancel()
        if call.late is not None and self._terms.fail_fast:
            raise call.late

    def _raised(self, event: Event, error: BaseException) -> None:
        """A call has failed, unless it is its task that is being told to end."""
        if isinstance(error, asyncio.CancelledError) and self._told_to_end(this_task()):
            raise error
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

    def _kept_the_loop(self, event: Event, took: float) -> None:
        """A call that isn't async took long. Nobody could have stopped it."""
        if self._terms.timeout is not None and took > self._terms.timeout:
            error = self._failures.timed_out(event, self._terms.timeout, ends="it isn't async")
            if self._terms.fail_fast:
                raise self._fatal(error)
        if took > BLOCKING:
            what = f"kept the event loop for {took:.1f} s; run_in_thread=True would not"
            self._failures.slow(event, what)

    def _told_to_end(self, task: asyncio.Task[Any]) -> bool:
        """Whether ``task``, this one, was cancelled from outside. A cancellation that the handler
        has made is undone.
        """
        if task.cancelling() and (self._ending is None or self._ending()):
            return True
        while task.cancelling():
            task.uncancel()
        return False

    async def _undo(self, task: asyncio.Task[Any]) -> None:
        """Let nothing but the handler feel that it has cancelled its own task, this one.

        ``uncancel()`` doesn't take back, before Python 3.13, what is still to be raised at the
        next await: it is raised here.
        """
        if self._told_to_end(task):
            return
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
        if self._told_to_end(task):  # that came meanwhile; once more, for whoever awaits next
            task.cancel()
        error = self._failures.cancelled_itself()
        if self._terms.fail_fast:
            raise self._fatal(error)

    async def _go_on(self, task: asyncio.Task[Any]) -> None:
        """The same, but if ``task`` is to end, it ends here: the handler may have swallowed that,
        and a task group asks only once.
        """
        if task.cancelling():
            await self._undo(task)
        if task.cancelling() or (self._ending is not None and self._ending()):
            raise asyncio.CancelledError

    def give_up(self) -> None:
        """Wait no more for threads."""
        if self._threads is not None:
            self._threads.give_up()

    def __repr__(self) -> str:
        return f"<Caller of {self._listener.name} {self.lanes!r}>"


def _runs(task: asyncio.Task[Any]) -> bool:
    """Whether this is run by ``task``, rather than being closed by whoever lets go of it."""
    try:
        return asyncio.current_task() is task
    except RuntimeError:
        return False
