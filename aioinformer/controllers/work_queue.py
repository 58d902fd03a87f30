"""``WorkQueue``: client-go's work queue for asyncio. ``KeyQueue`` holds the state; this module
waits.

``FairWaiters`` wakes waiting workers in FIFO order. One key is reserved for each woken worker until
the worker's task runs, and other workers must not take reserved keys. The woken worker takes the
key itself, with no await in between, so a cancelled ``get`` has taken nothing, and its reserved key
is passed to the next worker.
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

from aioinformer._core.instrumentation import Metrics, QueueStatistics
from aioinformer._runtime.reporting.safe_metrics import wrap_metrics
from aioinformer._runtime.tasks.event_loop import check_loop, loop_time, running_loop
from aioinformer.controllers.state.key_queue import KeyQueue
from aioinformer.controllers.state.queue_items import Priority
from aioinformer.controllers.state.rate_limiters import RateLimiter, default_limiter
from aioinformer.errors import QueueShutDown


class FairWaiters:
    """Tasks that wait for items, in the order in which they came."""

    __slots__ = ("_items", "reserved", "waiters")

    def __init__(self, items: Sized) -> None:
        """Start without waiters; ``items`` is read only for the number of items that it holds."""
        self.reserved = 0
        """Items for waiters that were woken and have not run yet."""
        self.waiters: deque[asyncio.Future[bool]] = deque()
        self._items = items

    async def wait(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Wait for an item, in the running ``loop``; return False after ``wake_all_empty``."""
        waiter: asyncio.Future[bool] = loop.create_future()
        self.waiters.append(waiter)
        try:
            has_item = await waiter
        except asyncio.CancelledError:
            with suppress(ValueError):  # absent if it was woken meanwhile
                self.waiters.remove(waiter)
            # Woken and cancelled before it ran: its reserved item goes to the next waiter.
            if not waiter.cancelled() and waiter.result():
                self.reserved -= 1
                self.wake()
            raise
        self.reserved -= has_item
        return has_item

    def wake(self) -> None:
        """Wake as many waiters as there are unreserved items, and reserve an item for each."""
        while self.waiters and len(self._items) > self.reserved:
            waiter = self.waiters.popleft()
            if not waiter.done():  # a cancelled waiter is skipped
                self.reserved += 1
                waiter.set_result(True)

    def wake_all_empty(self) -> None:
        """Wake all waiters without an item."""
        while self.waiters:
            waiter = self.waiters.popleft()
            if not waiter.done():
                waiter.set_result(False)

    def __repr__(self) -> str:
        return f"<FairWaiters waiting={len(self.waiters)} reserved={self.reserved}>"


K = TypeVar("K", bound=Hashable)

KEYS_PER_STEP = 512
"""Delayed keys that are moved or discarded in one step of the loop, which takes about 1 ms."""

NORMAL = Priority.NORMAL


class WorkQueue(Generic[K]):
    """A queue of distinct keys, each processed by one worker at a time.

        queue = WorkQueue[str](name="pods")
        queue.add("web/web-0")
        async with queue.work() as key: ...     # get() and done()

    A key that is added again while it waits runs once. A key that is added while it is processed
    runs exactly once more. Keys are handed out in the order of their adds, those of
    ``Priority.LOW`` after the others: while both wait, every tenth key is a low one, so that no key
    waits for ever.

    A queue belongs to the event loop in which it is first used, and raises ``UsageError``
    elsewhere. From a thread, use ``loop.call_soon_threadsafe(queue.add, key)``. ``len()``,
    ``statistics()`` and ``repr()`` may be called in any thread.
    """

    def __init__(
        self,
        *,
        name: str = "",
        backoff: RateLimiter[K] | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        """Make an empty queue.

        Args:
            name: for errors and metrics.
            backoff: returns the delay of ``add_rate_limited``; client-go's default if ``None``.
            metrics: receives, under the name, how long keys waited and were processed.

        Raises:
            ValueError: ``metrics`` is given without a name.
        """
        if metrics is not None and not name:
            raise ValueError("a work queue with metrics= needs a name=")
        self.name = name
        self.last_backoff: float = 0.0
        """Seconds after which the key of the last ``add_rate_limited`` is retried."""
        self._keys: KeyQueue[K] = KeyQueue(f"the work queue {name}".rstrip())
        self._limiter: RateLimiter[K] = default_limiter() if backoff is None else backoff
        self._metrics = None if metrics is None else wrap_metrics(metrics)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0  # no thread has this number
        self._clock = loop_time
        self._fair_waiters = FairWaiters(self._keys)
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = inf  # the loop's time at which it fires
        self._idle: asyncio.Future[None] | None = None

    # -- adding --------------------------------------------------------------------------------

    def add(self, key: K, *, priority: Priority = NORMAL) -> bool:
        """Request a run of ``key``; return False if the queue is shut down.

        A key that waits at low priority is moved up by a normal one.
        """
        if get_ident() != self._thread:
            self._bind_loop()
        added = self._keys.add(key, self._clock(), priority)
        if self._fair_waiters.waiters:
            self._fair_waiters.wake()
        return added

    def add_after(self, key: K, delay: float, *, priority: Priority = NORMAL) -> bool:
        """Request a run of ``key`` in ``delay`` seconds, or at once if that isn't above 0; return
        False if the queue is shut down.

        Of several delays of a key the earliest counts, and the highest priority. An ``add`` in the
        meantime is a separate run. ``shut_down`` discards delayed keys, as in client-go.

        Raises:
            ValueError: the delay is infinite or not a number.
        """
        if not isfinite(delay):
            raise ValueError(f"the delay of {key!r} must be finite, not {delay} seconds")
        if delay <= 0:
            return self.add(key, priority=priority)
        loop = self._bind_loop()
        ready = self._clock() + delay
        accepted = self._keys.add_at(key, ready, priority)
        if accepted and ready < self._timer_due:
            self._set_timer(loop)
        return accepted

    def add_rate_limited(self, key: K, *, priority: Priority = NORMAL) -> bool:
        """Request a retry of ``key`` after the backoff; return False if the queue is shut down.
        Call ``forget`` when the key succeeds.
        """
        if not self._keys.is_shut_down:
            self._keys.retries += 1
        self.last_backoff = self._limiter.when(key, self._now())
        return self.add_after(key, self.last_backoff, priority=priority)

    def forget(self, key: K) -> None:
        """Forget the failures of ``key``. The caller must still call ``done``."""
        self._limiter.forget(key)

    def retries(self, key: K) -> int:
        """Return how often ``key`` has been retried since it was last forgotten."""
        return self._limiter.retries(key)

    # -- processing ----------------------------------------------------------------------------

    async def get(self) -> K:
        """Wait for the next key and begin to process it. Call ``done`` afterwards, in any case.

        The worker that has waited longest is served first. A cancelled ``get`` has taken nothing.

        Raises:
            QueueShutDown: the queue is shut down, and has no more keys.
        """
        keys = self._keys
        if get_ident() != self._thread:
            self._bind_loop()
        # Keys that are reserved for woken workers must not be taken here.
        if keys.waiting <= self._fair_waiters.reserved:
            await self._wait_for_key()
        key = keys.take(self._clock())  # no await since the wake-up, so the key is there
        if keys.is_shut_down:
            self._release_waiters()
        return key

    def done(self, key: K) -> None:
        """End the run of a key that ``get`` returned.

        Raises:
            UsageError: the key is not being processed.
        """
        keys = self._keys
        if get_ident() != self._thread:
            self._bind_loop()
        moment = self._clock()
        item = keys.done(key, moment)
        if self._metrics is not None and item.started_at is not None:
            waited, worked = item.started_at - item.added_at, moment - item.started_at
            self._metrics.worked(self.name, waited, worked)
        if item.rerun is not None:  # the key waits again
            self._fair_waiters.wake()
        if keys.is_shut_down:
            self._release_waiters()

    def work(self) -> WorkContext[K]:
        """Return ``async with queue.work() as key``: one ``get``, and ``done`` in any case."""
        return WorkContext(self)

    def priority(self, key: K) -> Priority | None:
        """Return the priority of a key that waits or is processed; ``None`` for others."""
        return self._keys.priority(key)

    # -- shutdown ------------------------------------------------------------------------------

    def shut_down(self, *, drop: bool = False) -> None:
        """Accept no more keys, and discard delayed ones. Returns at once; further calls have no
        effect.

        Waiting keys are still handed out, and also keys that are processed and were added
        meanwhile. After that, ``get`` raises ``QueueShutDown``. With ``drop=True``, they are
        discarded too, and ``get`` raises from now on. Keys that are being processed must still be
        ``done``.
        """
        loop = self._bind_loop()
        self._keys.shut_down(drop=drop)
        self._set_timer(loop)  # cancels the timer, since no key is delayed any more
        self._free(loop)  # in steps, so that the loop isn't blocked
        self._release_waiters()

    def _free(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._keys.free(KEYS_PER_STEP):
            loop.call_soon(self._free, loop)

    async def drain(self, timeout: float | None = None) -> bool:
        """Shut down, and wait until the workers are done with all keys that waited; return True
        then, or False after ``timeout`` seconds. ``None`` is no limit: for ever, if there are no
        workers.

        client-go's ShutDownWithDrain waits only for keys that are being processed at the moment.
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
        """True if no more keys are accepted."""
        return self._keys.is_shut_down

    # -- state ---------------------------------------------------------------------------------

    def statistics(self) -> QueueStatistics:
        """Return the statistics at this moment. May be called in any thread."""
        return self._keys.statistics(self._clock())

    def __len__(self) -> int:
        """Return the number of keys that wait, without delayed and processed ones."""
        return len(self._keys)

    def __bool__(self) -> bool:
        """Return True: an empty queue is not false."""
        return True

    def __repr__(self) -> str:
        name = f" {self.name}" if self.name else ""
        return f"<WorkQueue{name} waiters={len(self._fair_waiters.waiters)} {self._keys!r}>"

    # -- inside --------------------------------------------------------------------------------

    def _now(self) -> float:
        """Return the time; raise outside of the queue's event loop."""
        if get_ident() != self._thread:
            self._bind_loop()
        return self._clock()

    def _bind_loop(self) -> asyncio.AbstractEventLoop:
        """Return the queue's loop if it is the running one; the first use decides.

        Finding the running loop takes longer than an add (a system call in Python 3.11), so only
        waits and timers do it. Other calls compare the thread, which runs one loop at a time.
        """
        loop = running_loop()
        check_loop(self._loop, self._keys.label)
        if self._loop is None:
            self._loop, self._clock, self._thread = loop, loop.time, get_ident()
            if self._metrics is not None:
                self._metrics.queue_started(self.name, self.statistics)
        return loop

    async def _wait_for_key(self) -> None:
        """Wait until a key is reserved for the caller, which must take it."""
        has_key = not self._keys.finished and await self._fair_waiters.wait(self._bind_loop())
        if not has_key or not self._keys.waiting:  # discarded meanwhile
            raise QueueShutDown(f"{self._keys.label} is shut down, and no key waits in it")

    def _release_waiters(self) -> None:
        """Wake all waiters if no more keys will be handed out."""
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
        # One timer for the earliest key, instead of one for each delayed key.
        due = self._keys.delays.next_due
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if due is None else loop.call_at(due, self._collect_ready, loop, due)
        self._timer_due = inf if due is None else due

    def _collect_ready(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        """Move keys that are ready to the waiting ones. A loop may call a little early."""
        self._keys.collect_ready(max(due, loop.time()), KEYS_PER_STEP)
        self._fair_waiters.wake()
        self._set_timer(loop)


class WorkContext(Generic[K]):
    """A context manager that processes one key. ``WorkQueue.work`` makes it; enter it once."""

    __slots__ = ("_key", "_queue")
    _key: K

    def __init__(self, queue: WorkQueue[K]) -> None:
        """Take no key before the context is entered."""
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
