"""The work queue that workers wait at.

Workers are served in the order of coming (``turns``); a key is taken after the wait, with no await
in between, so that a cancelled ``get`` leaves it to the next one. One timer waits for the delayed
key that comes first; there is none for each. What a queue is, the core's ``KeyQueue`` knows.

Whose turn it is: a line of those who wait for things, one thing for each.

Whoever waits is called in the order of coming, and one of the things is kept for it until it runs:
who comes in between must look at ``reserved`` and doesn't overtake. What was kept for somebody who is
cancelled before that goes to the next. Nothing is taken here: whoever was called takes for itself,
with no await in between, so that a cancellation can't lose anything.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Hashable, Sized
from contextlib import suppress
from math import inf, isfinite
from threading import get_ident
from types import TracebackType
from typing import Generic, TypeVar

from aioinformer._core.controllers.queue_items import Priority, QueueStatistics
from aioinformer._core.controllers.rate_limiters import RateLimiter, default_limiter
from aioinformer._core.controllers.work_queue import KeyQueue
from aioinformer._core.instrumentation import Metrics
from aioinformer._runtime.controllers.options import resolve_alias
from aioinformer._runtime.delivery.listener import loop_time
from aioinformer._runtime.reporting.safe_metrics import wrap_metrics
from aioinformer._runtime.tasks.event_loop import check_loop, running_loop
from aioinformer.errors import QueueShutDown

__all__ = ["FairWaiters", "WorkContext", "WorkQueue"]


class FairWaiters:
    """Those who wait for what ``things`` has."""

    __slots__ = ("_items", "reserved", "waiters")

    def __init__(self, items: Sized) -> None:
        """Nobody waits yet for any of ``items``, whose number is asked for when it may matter."""
        self.reserved = 0
        """How many things are kept for those who were called and did not run yet."""
        self.waiters: deque[asyncio.Future[bool]] = deque()
        """Those who were not called yet."""
        self._items = items

    async def wait(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Wait for one's turn, in the running ``loop``; whether there is something to take.

        If not, ``wake_all_empty`` was called: there won't be anything.
        """
        waiter: asyncio.Future[bool] = loop.create_future()
        self.waiters.append(waiter)
        try:
            called = await waiter
        except asyncio.CancelledError:
            with suppress(ValueError):  # it is there unless it was to be called
                self.waiters.remove(waiter)
            if not waiter.cancelled() and waiter.result():
                self.reserved -= 1
                self.wake()
            raise
        self.reserved -= called
        return called

    def wake(self) -> None:
        """Keep a thing for each of those who wait, as far as there are things."""
        while self.waiters and len(self._items) > self.reserved:
            waiter = self.waiters.popleft()
            if not waiter.done():
                self.reserved += 1
                waiter.set_result(True)

    def wake_all_empty(self) -> None:
        """Let all of them go with nothing."""
        while self.waiters:
            waiter = self.waiters.popleft()
            if not waiter.done():
                waiter.set_result(False)

    def __repr__(self) -> str:
        return f"<FairWaiters waiting={len(self.waiters)} kept={self.reserved}>"


K = TypeVar("K", bound=Hashable)

KEYS_PER_STEP = 512
"""Delayed keys that are put in line, or dropped, in one step of the loop: about a millisecond. A
hundred thousand that are ready at once would hold it for a tenth of a second."""

NORMAL = Priority.NORMAL


class WorkQueue(Generic[K]):
    """Keys to be worked on, each by one worker at a time, each once however often it is added.

        queue = WorkQueue[str](name="pods")
        queue.add("web/web-0")
        async with queue.work() as key: ...     # get() and done()

    A key that is added while it waits runs once; added while it is worked on, exactly once more.
    Keys come in the order of their adds, those of ``Priority.LOW`` after the others: while both
    wait, one in ten is a low one, so that nothing waits for ever.

    It belongs to the event loop that it is first used in. From a thread, use
    ``loop.call_soon_threadsafe(queue.add, key)``; ``len()``, ``statistics()`` and ``repr()`` may
    be asked from anywhere.
    """

    def __init__(
        self,
        *,
        name: str = "",
        backoff: RateLimiter[K] | None = None,
        metrics: Metrics | None = None,
        limiter: RateLimiter[K] | None = None,
    ) -> None:
        """Make an empty queue.

        Args:
            name: for errors and metrics.
            backoff: returns the delay of ``add_rate_limited``; client-go's default if ``None``.
            metrics: receives, under the name, how long keys waited and were processed.
            limiter: another name for ``backoff``, as in client-go.

        Raises:
            TypeError: both ``backoff`` and ``limiter`` are given.
            ValueError: ``metrics`` is given without a name.
        """
        if metrics is not None and not name:
            raise ValueError("a work queue that is measured needs a name=")
        self.name = name
        """What it is called in errors and metrics."""
        self._keys: KeyQueue[K] = KeyQueue(f"the work queue {name}".rstrip())
        self._limiter: RateLimiter[K] = resolve_alias(
            default_limiter(), backoff=backoff, limiter=limiter
        )
        self._metrics = None if metrics is None else wrap_metrics(metrics)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0  # none has this number
        self._clock = loop_time
        self._fair_waiters = FairWaiters(self._keys)
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = inf  # when it rings
        self._idle: asyncio.Future[None] | None = None

    # -- in ------------------------------------------------------------------------------------

    def add(self, key: K, *, priority: Priority = NORMAL) -> bool:
        """Have ``key`` worked on. One that waits at low priority is moved up by a normal one.

        Returns:
            Whether it will be: ``False`` once the queue is shut down.

        Raises:
            UsageError: called outside of the queue's event loop.
        """
        if get_ident() != self._thread:
            self._bind_loop()
        added = self._keys.add(key, self._clock(), priority)
        if self._fair_waiters.waiters:
            self._fair_waiters.wake()
        return added

    def add_after(self, key: K, delay: float, *, priority: Priority = NORMAL) -> bool:
        """Have it worked on in ``delay`` seconds, or at once if that isn't above 0.

        Of several delays of a key the earliest counts, and the highest priority. An ``add`` in the
        meantime is a run of its own. ``shut_down`` drops what is still delayed, as in client-go.

        Returns:
            ``False`` if the queue is shut down.

        Raises:
            ValueError: the delay is infinite or not a number.
            UsageError: called outside of the queue's event loop.
        """
        if not isfinite(delay):
            raise ValueError(f"{key!r} can't be added after {delay} seconds")
        if delay <= 0:
            return self.add(key, priority=priority)
        loop = self._bind_loop()
        ready = self._clock() + delay
        accepted = self._keys.add_at(key, ready, priority)
        if accepted and ready < self._timer_due:
            self._set_timer(loop)
        return accepted

    def add_rate_limited(self, key: K, *, priority: Priority = NORMAL) -> bool:
        """Have it tried again when the limiter allows. ``forget`` it when it went well.

        Returns:
            ``False`` if the queue is shut down.
        """
        if not self._keys.is_shut_down:
            self._keys.retries += 1
        return self.add_after(key, self._limiter.when(key, self._now()), priority=priority)

    def forget(self, key: K) -> None:
        """Its failures don't count any more. It is still to be ``done``."""
        self._limiter.forget(key)

    def retries(self, key: K) -> int:
        """How often it has been tried again since it was last forgotten."""
        return self._limiter.retries(key)

    # -- out -----------------------------------------------------------------------------------

    async def get(self) -> K:
        """Wait for the next key and begin to work on it; ``done`` ends that, in any case.

        Whoever waits longest is served first. A cancelled ``get`` has taken nothing.

        Raises:
            QueueShutDown: the queue is shut down, and will hand out nothing more.
            UsageError: called outside of the queue's event loop.
        """
        keys = self._keys
        if get_ident() != self._thread:
            self._bind_loop()
        if keys.waiting <= self._fair_waiters.reserved:
            await self._wait_for_key()
        key = keys.take(self._clock())
        if keys.is_shut_down:
            self._release_waiters()
        return key

    def done(self, key: K) -> None:
        """End the work on a key that ``get`` returned.

        Raises:
            UsageError: it is not being worked on, or this is not the queue's event loop.
        """
        keys = self._keys
        if get_ident() != self._thread:
            self._bind_loop()
        moment = self._clock()
        item = keys.done(key, moment)
        if self._metrics is not None and item.started_at is not None:
            waited, worked = item.started_at - item.added_at, moment - item.started_at
            self._metrics.worked(self.name, waited, worked)
        if item.rerun is not None:
            self._fair_waiters.wake()
        if keys.is_shut_down:
            self._release_waiters()

    def work(self) -> WorkContext[K]:
        """``async with queue.work() as key``: one ``get``, and ``done`` whatever happens."""
        return WorkContext(self)

    def priority(self, key: K) -> Priority | None:
        """That of a key which waits or is worked on; ``None`` for others.

        A key that failed should be tried again at the priority that it had.
        """
        return self._keys.priority(key)

    # -- the end -------------------------------------------------------------------------------

    def shut_down(self, *, drop: bool = False) -> None:
        """Take no more keys, and drop those that are delayed.

        What waits is still handed out, keys included that are worked on and were added meanwhile;
        after that, ``get`` raises ``QueueShutDown``. Returns at once; calling it twice does no
        harm.

        Args:
            drop: drop what waits, too: ``get`` raises from now on. What is worked on is to be
                ``done``, and has no run after this one.

        Raises:
            UsageError: called outside of the queue's event loop.
        """
        loop = self._bind_loop()
        self._keys.shut_down(drop=drop)
        self._set_timer(loop)
        self._free(loop)
        self._release_waiters()

    def _free(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._keys.free(KEYS_PER_STEP):
            loop.call_soon(self._free, loop)

    async def drain(self, timeout: float | None = None) -> bool:
        """Shut down, and wait until the workers are done with everything that was in line.

        client-go's ShutDownWithDrain waits only for what is being worked on at the moment.

        Args:
            timeout: seconds; ``None`` waits for as long as it takes: for ever, if nobody works.

        Returns:
            Whether everything is done.
        """
        self.shut_down()
        if self._keys.idle:
            return True
        if self._idle is None:
            self._idle = self._bind_loop().create_future()
        await asyncio.wait([self._idle], timeout=timeout)
        return self._keys.idle

    @property
    def is_shut_down(self) -> bool:
        """Whether it takes no more keys."""
        return self._keys.is_shut_down

    # -- asked ---------------------------------------------------------------------------------

    def statistics(self) -> QueueStatistics:
        """Its numbers at this moment. May be asked in any thread."""
        return self._keys.statistics(self._clock())

    def __len__(self) -> int:
        """Keys that wait to be handed out: neither delayed ones nor those that are worked on."""
        return len(self._keys)

    def __bool__(self) -> bool:
        """Always: an empty queue is a queue."""
        return True

    def __repr__(self) -> str:
        name = f" {self.name}" if self.name else ""
        return f"<WorkQueue{name} waiters={len(self._fair_waiters.waiters)} {self._keys!r}>"

    # -- inside --------------------------------------------------------------------------------

    def _now(self) -> float:
        """The time, if this is the right thread."""
        if get_ident() != self._thread:
            self._bind_loop()
        return self._clock()

    def _bind_loop(self) -> asyncio.AbstractEventLoop:
        """The queue's loop, if it is the running one; its first use decides.

        Asking for the running loop costs more than an add (a system call, in Python 3.11), and so
        only those who wait or set a timer do. To the others the thread says as much: a thread runs
        one loop at a time, and who adds a key in between two of them does no harm.
        """
        loop = running_loop()
        check_loop(self._loop, self._keys.label)
        if self._loop is None:
            self._loop, self._clock, self._thread = loop, loop.time, get_ident()
            if self._metrics is not None:
                self._metrics.queue_started(self.name, self.statistics)
        return loop

    async def _wait_for_key(self) -> None:
        """Wait until a key is kept for the caller, who is to take it."""
        called = not self._keys.finished and await self._fair_waiters.wait(self._bind_loop())
        if not called or not self._keys.waiting:  # it was dropped meanwhile
            raise QueueShutDown(f"{self._keys.label} is shut down, and nothing waits in it")

    def _release_waiters(self) -> None:
        """Let those go who wait for something that can't come any more."""
        if self._keys.finished:
            self._fair_waiters.wake_all_empty()
            if self._keys.idle:
                self._mark_idle()

    def _mark_idle(self) -> None:
        if self._idle is None or not self._idle.done():
            if self._idle is None:
                self._idle = self._bind_loop().create_future()
            self._idle.set_result(None)
            if self._metrics is not None:
                self._metrics.queue_ended(self.name, self.statistics)

    def _set_timer(self, loop: asyncio.AbstractEventLoop) -> None:
        due = self._keys.delays.next_due
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if due is None else loop.call_at(due, self._collect_ready, loop, due)
        self._timer_due = inf if due is None else due

    def _collect_ready(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        """Put in line what is ready. A loop may call a little early, so ``due`` counts."""
        self._keys.collect_ready(max(due, loop.time()), KEYS_PER_STEP)
        self._fair_waiters.wake()
        self._set_timer(loop)


class WorkContext(Generic[K]):
    """One key for as long as the context lasts. ``WorkQueue.work`` makes it; enter it once."""

    __slots__ = ("_key", "_queue")
    _key: K

    def __init__(self, queue: WorkQueue[K]) -> None:
        """Nothing is taken yet."""
        self._queue = queue

    async def __aenter__(self) -> K:
        self._key = key = await self._queue.get()
        return key

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._queue.done(self._key)

    def __repr__(self) -> str:
        return f"<WorkContext of {self._queue!r}>"
