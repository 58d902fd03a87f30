"""A listener: one registration of an informer, with its own mailbox.

The pump fills mailboxes and never waits for a listener, with one exception: while a mailbox with
``overflow="block"`` is full, the pump takes nothing from the DeltaFIFO, so that in the end the
watch isn't read. The pump waits at the ``BackpressureGate`` then. All listeners of an informer
share one gate: each opens the gate when its mailbox has room again, and the pump checks by itself
which mailboxes are still full.

The consumer of a listener (the runner of a handler, or an event stream) waits for the wake-up and
takes events with no await in between, so that a cancellation can't lose an event.

Statistics cost nothing for each event: the clock is read once a batch, and most numbers are
computed when a program asks for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol
from weakref import ReferenceType

from aioinformer._core.delivery.key_concurrency import KeyConcurrency
from aioinformer._core.delivery.mailbox import Mailbox
from aioinformer._core.delivery.replay import EventBatch
from aioinformer._core.objects.kube_object import Event, KubeObject
from aioinformer._runtime.tasks.event_loop import loop_time
from aioinformer._runtime.tasks.sync_timeout import sync_timeout
from aioinformer.errors import ListenerOverflow, NotRunning

if TYPE_CHECKING:  # for programs that read the numbers, and for types
    from aioinformer._runtime.delivery.statistics import Statistics


class BackpressureGate:
    """A gate that is closed while a full mailbox keeps the pump waiting."""

    def __init__(self) -> None:
        """Make an open gate."""
        self._open = asyncio.Event()
        self._open.set()
        self.closed = False
        """True while the pump waits. Listeners read this when they take events."""

    def open(self) -> None:
        """Let the pump check again: a mailbox has room, or its listener was closed."""
        self.closed = False
        self._open.set()

    async def wait(self) -> None:
        """Close the gate and wait until a listener opens the gate."""
        self.closed = True
        self._open.clear()
        await self._open.wait()

    def __repr__(self) -> str:
        return f"<BackpressureGate {'closed' if self.closed else 'open'}>"


class CallTimes:
    """The times that the calls of a handler took."""

    __slots__ = ("_calls", "_total", "last", "max", "on_calls")

    def __init__(self) -> None:
        """Begin with no call."""
        self.last = 0.0
        """Seconds of the last call."""
        self.max = 0.0
        """Seconds of the longest call."""
        self.on_calls: Callable[[float, int], None] | None = None
        """Called with the seconds that a number of calls took, and with that number."""
        self._calls = 0
        self._total = 0.0

    def record(self, seconds: float) -> None:
        """Count a call that took so many seconds."""
        self.record_calls(1, seconds, seconds, seconds)

    def record_calls(self, calls: int, seconds: float, last: float, longest: float) -> None:
        """Count several calls.

        Args:
            calls: their number.
            seconds: how long they took together.
            last: seconds of the last of them.
            longest: seconds of the longest of them.
        """
        self._calls += calls
        self._total += seconds
        self.last = last
        if longest > self.max:
            self.max = longest
        if self.on_calls is not None:
            self.on_calls(seconds, calls)

    @property
    def mean(self) -> float:
        """Seconds of a call on average; 0 before the first call."""
        return self._total / self._calls if self._calls else 0.0

    def __repr__(self) -> str:
        return f"<CallTimes calls={self._calls} mean={self.mean:g} max={self.max:g}>"


class ListenerPosition(Protocol):
    """The position of a listener that outlives the process: the events that it has handled."""

    begun: bool
    """True if the first state of a scope is delivered."""

    def check_concurrency(self, concurrency: int) -> None:
        """Raise ``UsageError`` if a listener with so many calls at once can have no position."""

    def join(self, listener: Listener) -> None:
        """Give the listener this position; raise ``UsageError`` if it can't have one."""

    def skips_first_state(self, scope: str, *, restored: bool) -> bool:
        """Return True if the first state of a scope is not delivered; ``restored`` if it was known
        in an earlier run.
        """
        ...

    def close(self, *, idle: bool) -> None:
        """Record that the listener is about to be closed, ``idle`` if it has handled everything."""


class Listener:
    """A mailbox with a wake-up. There is one consumer.

    The consumer takes one event at a time with ``next_nowait`` or ``next``, or many::

        while await listener.ready():
            for event in listener.take():
                ...
    """

    def __init__(
        self,
        name: str,
        mailbox: Mailbox,
        gate: BackpressureGate,
        *,
        describe: Callable[[], str] | None = None,
        resync: float = 0.0,
        concurrency: int = 1,
    ) -> None:
        """Make a listener.

        Args:
            name: for logs, health and errors.
            mailbox: the pending events. A filter is the ``event_map`` of the mailbox.
            gate: opened when the mailbox has room again.
            describe: returns the state of the informer, for errors.
            resync: seconds between two resyncs; 0 for none.
            concurrency: objects whose events may be handled at once.
        """
        self.name = name
        self.mailbox = mailbox
        self.gate = gate
        self.in_flight = KeyConcurrency(concurrency)
        """The keys whose events are being handled. Used only if ``concurrency`` is above 1."""
        self.call_times = CallTimes()
        self.closed = False
        """True once nothing more will come. To be read only."""
        self.failure: ListenerOverflow | None = None
        """The error that closed the listener. A stream raises it, a handler's errors report it."""
        self.on_ready: Callable[[], None] | None = None
        """Called when live events have come, instead of waking the consumer."""
        self.on_overflow: Callable[[ListenerOverflow], None] | None = None
        """Called when an overflow has closed the listener."""
        self.on_closed: Callable[[Listener], None] | None = None
        """Called once, when the listener is closed. Set by the pump."""
        self.resync_period = resync
        self.resync_due: float | None = None
        """The loop's time of the next resync. Set by the resync timer."""
        self.position: ListenerPosition | None = None
        """The position that outlives the process, if the listener has one."""
        self.acknowledged = False
        """True if the reader of a stream has handled the last event, and asked for no other."""
        self.consumer: ReferenceType[asyncio.Task[Any]] | None = None
        """The task that reads a stream, if known."""
        self._describe = describe
        self._waiter: asyncio.Future[None] | None = None
        self._synced = asyncio.Event()
        self.sync_pending = True
        """True until ``synced`` is set because the mailbox is synced. To be read only."""
        self._sync_marked = False

    # -- the informer's side -------------------------------------------------------------------

    def put(self, events: EventBatch, at: float = 0.0) -> bool:
        """Queue live events that have come ``at`` this time of the loop. Nothing is copied.

        Returns:
            True if the mailbox needs ``merge_oldest`` before it is given anything more.
        """
        mailbox = self.mailbox
        if mailbox.put(events, at):
            waiter = self._waiter
            if waiter is not None:
                if self.on_ready is not None:
                    self.on_ready()
                else:
                    # Not _wake(): a call less for each event.
                    self._waiter = None
                    if not waiter.done():
                        waiter.set_result(None)
            if mailbox.overflowed:
                self._overflow()
        return mailbox.needs_merge

    def put_relist(
        self,
        batches: Sequence[EventBatch],
        at: float = 0.0,
        *,
        initial: bool = False,
        scope: str | None = None,
    ) -> None:
        """Queue the changes of a list, in batches that all listeners share."""
        self.mailbox.put_relist(batches, at, initial=initial, scope=scope)
        self._wake()
        if self.mailbox.overflowed:
            self._overflow()

    def replay(self, objects: Iterable[KubeObject], at: float = 0.0, *, full: bool = True) -> None:
        """Deliver the cached ``objects`` first, since the listener has just joined.

        Args:
            objects: the cached objects.
            at: the time of the loop.
            full: True if they are a full state.
        """
        self.mailbox.replay(objects, at, full=full)
        self._wake()

    def resync(self, objects: Iterable[KubeObject], current: Callable[[KubeObject], bool]) -> None:
        """Deliver the cached state again, unless the previous resync is still pending.

        Args:
            objects: the cached objects.
            current: returns True if the cache still has this very state of an object.
        """
        if self.mailbox.resync(objects, current):
            self._wake()

    def close(self, *, drop: bool) -> None:
        """Accept nothing more.

        Args:
            drop: whether to discard the pending events. Otherwise they can still be taken, except
                for a resync, which holds no change.
        """
        if self.position is not None:
            self.position.close(idle=self.idle)
        self.closed = self.mailbox.closed = True
        _free_in_steps(self.mailbox.clear() if drop else self.mailbox.drop_resync())
        if drop:
            self.in_flight.clear()
        self._wake()
        self._synced.set()  # ``wait_synced`` raises if the mailbox isn't synced
        on_closed = self.on_closed
        # Forgotten, since the parts that are called refer to this listener.
        self.on_closed = self.on_ready = self.on_overflow = None
        if on_closed is not None:
            on_closed(self)
        self.gate.open()

    @property
    def idle(self) -> bool:
        """True if the consumer has handled everything, and waits for the next event."""
        mailbox, waiter = self.mailbox, self._waiter
        if mailbox.pending or mailbox.state_pending:
            return False
        waiting = waiter is not None and (not waiter.done() or waiter.cancelled())
        return waiting or self.acknowledged

    def mark(self) -> None:
        """Mark the events up to now, unless all of them were handled."""
        if not self.idle:
            self.mailbox.mark()

    def make_failure(self) -> ListenerOverflow | None:
        """Return an error like ``failure``, to be raised; ``None`` if there is no failure.

        A new one, since the traceback of a raised error refers to the reader's frames, and so to
        this listener.
        """
        if self.failure is None:
            return None
        return ListenerOverflow(self.name, limit=self.mailbox.limit)

    def _overflow(self) -> None:
        if self.closed:
            return
        failure = ListenerOverflow(self.name, limit=self.mailbox.limit)
        self.failure = failure
        on_overflow = self.on_overflow
        self.close(drop=True)
        if on_overflow is not None:
            on_overflow(failure)

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            _set_done(waiter)

    # -- the consumer's side -------------------------------------------------------------------

    def next_nowait(self) -> Event | None:
        """Return the next event if there is one. This acknowledges the previous event."""
        event = self.mailbox.pop()
        if self.gate.closed or (self.sync_pending and self.mailbox.synced):
            self.release()
        return event

    async def next(self) -> Event | None:
        """Return the next event, or ``None`` once the listener is closed and empty."""
        while (event := self.next_nowait()) is None:
            if not await self.ready():
                return None
        return event

    async def ready(self) -> bool:
        """Wait until there may be an event to take.

        Neither waits nor yields to the loop if something is pending already.

        Returns:
            False once the listener is closed and empty.
        """
        if (waiter := self.waiter()) is not None:
            await waiter
        return not self.ended

    def waiter(self) -> asyncio.Future[None] | None:
        """Return a future that is done once there may be an event to take.

        This is ``ready`` without a coroutine, for a consumer that calls it for each event.

        Returns:
            ``None`` if something is pending already, or nothing more will come.
        """
        mailbox = self.mailbox
        if mailbox.should_yield:  # many events were skipped without a pause: yield to the loop
            mailbox.should_yield = False
            loop = asyncio.get_running_loop()
            waiter: asyncio.Future[None] = loop.create_future()
            loop.call_soon(_set_done, waiter)
            return waiter
        if self.closed or not mailbox.empty:
            return None
        if self.gate.closed:
            self.release()  # the events of a batch were taken without a look at the gate
        self._waiter = waiter = asyncio.get_running_loop().create_future()
        return waiter

    def wake(self, waiter: asyncio.Future[None]) -> None:
        """Set ``waiter``, once, as soon as there may be an event to take or nothing more will come.

        For a consumer that waits for several listeners.
        """
        self._waiter = waiter
        if self.closed or not self.mailbox.empty:
            self._wake()

    @property
    def ended(self) -> bool:
        """True if the listener is closed and every event was taken."""
        return self.closed and self.mailbox.empty

    def take(self) -> Iterator[Event]:
        """Return an iterator over the events that can be taken without waiting.

        Advancing the iterator pops an event, at lower cost than ``next_nowait``. Events that are
        discarded or merged meanwhile don't come. An iterator that is abandoned loses nothing: the
        next one goes on from there. Call ``release`` after each suspension in between.
        """
        batch = self.mailbox.borrow_batch()
        if self.sync_pending or self.gate.closed:
            self.release()
        return batch if batch is not None else self._pop_each()

    def _pop_each(self) -> Iterator[Event]:
        while (event := self.next_nowait()) is not None:
            yield event

    def release(self) -> None:
        """Open the gate if there is enough room, and set ``synced`` if that is reached."""
        if self.gate.closed and self.mailbox.half_empty:
            self.gate.open()
        if self.sync_pending and self.mailbox.synced:
            self._update_synced()

    def _update_synced(self) -> None:
        """Set ``synced`` if no event of the initial state is in flight any more."""
        if not self._sync_marked:  # all of that state was taken just now
            self._sync_marked = True
            self.in_flight.mark()
        if not self.in_flight.marked:
            self.sync_pending = False
            self._synced.set()

    # -- the owner's side ----------------------------------------------------------------------

    @property
    def synced(self) -> bool:
        """True if every object that was cached when the listener joined was delivered, and the
        handler has returned from it.
        """
        return self.mailbox.synced and not self.in_flight.marked

    async def wait_synced(self, timeout: float | None = None) -> None:
        """Wait until ``synced``.

        Args:
            timeout: seconds; ``None`` for no limit.

        Raises:
            SyncTimeout: not within that time.
            NotRunning: the listener was removed or its informer ended before.
        """
        describe = self._describe or self.__repr__
        async with sync_timeout(timeout, lambda: {self.name: describe()}):
            await self._synced.wait()
        if not self.synced:
            raise NotRunning(f"{self.name} ended before it was synced") from self.failure

    def statistics(self) -> Statistics:
        """Return the numbers of this moment. May be called from any thread."""
        from aioinformer._runtime.delivery.statistics import Statistics  # when first read

        mailbox, times = self.mailbox, self.call_times
        since = mailbox.oldest
        return Statistics(
            pending=mailbox.pending,
            limit=mailbox.limit,
            high=mailbox.max_pending,
            delivered=mailbox.delivered,
            merged=mailbox.merged,
            errors=0,
            synced=self.synced,
            oldest=0.0 if since is None else max(0.0, loop_time() - since),
            spent_last=times.last,
            spent_mean=times.mean,
            spent_max=times.max,
        )

    def __repr__(self) -> str:
        state = "closed" if self.closed else "open"
        return f"<Listener {self.name} {state} {self.mailbox!r}>"


def _set_done(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():  # the waiting task may have been cancelled
        waiter.set_result(None)


def _free_in_steps(steps: Iterator[None]) -> None:
    """Free what was pending, one step a turn of the loop; at once if no loop is running."""
    for _ in steps:
        try:
            asyncio.get_running_loop().call_soon(_free_in_steps, steps)
        except RuntimeError:
            continue
        return
