"""What a handler and a stream have in common: a mailbox, and somebody waiting at it.

The informer's pump fills mailboxes and never waits for anybody, except at the ``BackpressureGate``: while a
mailbox with ``overflow="block"`` is full, nothing is taken from the queue. A listener looks into
its mailbox after each wake-up and takes the event with no await in between, so that a
cancellation can't lose one.

Where the pump waits for listeners that would rather stop it than miss anything.

While the mailbox of a listener with ``overflow="block"`` is full, nothing is taken from the queue
in front of the cache, so that in the end the watch isn't read. All listeners of an informer have
one gate: whoever has taken enough opens it, and the pump looks for itself who is still full.

The numbers of one listener, as a program sees them.

They are kept where that costs nothing for each event: time is looked at once a batch, and most of
them are only worked out when somebody asks.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import ReferenceType

from aioinformer._core.delivery.mailbox import Mailbox
from aioinformer._core.objects.kube_object import Event, KubeObject
from aioinformer.errors import ListenerOverflow, NotRunning, SyncTimeout

__all__ = ["BackpressureGate", "CallTimes", "Listener", "Statistics", "loop_time"]


class BackpressureGate:
    """Closed while a full mailbox keeps the pump waiting."""

    def __init__(self) -> None:
        """An open gate."""
        self._open = asyncio.Event()
        self._open.set()
        self.closed = False
        """Whether the pump is waiting. Listeners look at it as they take events."""

    def open(self) -> None:
        """Some mailbox has room again, or is gone."""
        self.closed = False
        self._open.set()

    async def wait(self) -> None:
        """Close the gate and wait until somebody opens it."""
        self.closed = True
        self._open.clear()
        await self._open.wait()

    def __repr__(self) -> str:
        return f"<BackpressureGate {'closed' if self.closed else 'open'}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """A listener's numbers at one moment."""

    pending: int
    """Live events queued, and what others were merged into."""
    limit: int
    """Live events that the mailbox holds."""
    high: int
    """The most that were ever pending, after those too many were merged."""
    delivered: int
    """Events handed to the handler or taken from the stream."""
    merged: int
    """Events that were not told by themselves, since later ones took them in."""
    errors: int
    """Events at which the handler raised."""
    synced: bool
    """Whether the state that the listener found was told and dealt with."""
    oldest: float
    """Seconds that the oldest pending event has waited; 0 if none does. Resyncs don't count."""
    spent_last: float
    """Seconds that the handler's last call took."""
    spent_mean: float
    """Seconds that a call took on average."""
    spent_max: float
    """The most that a call took."""


class CallTimes:
    """How long the calls of a handler took."""

    __slots__ = ("_calls", "_total", "last", "max")

    def __init__(self) -> None:
        """No call yet."""
        self.last = 0.0
        """Seconds of the last call."""
        self.max = 0.0
        """Seconds of the longest call."""
        self._calls = 0
        self._total = 0.0

    def record_calls(
        self,
        seconds: float,
        calls: int = 1,
        last: float | None = None,
        longest: float | None = None,
    ) -> None:
        """The last ``calls`` calls took so long together, the ``last`` of them and the
        ``longest`` so long, if that isn't the same.
        """
        self._calls += calls
        self._total += seconds
        self.last = seconds if last is None else last
        if longest is None:
            longest = seconds
        if longest > self.max:
            self.max = longest

    @property
    def mean(self) -> float:
        """Seconds of a call on average; 0 before the first."""
        return self._total / self._calls if self._calls else 0.0

    def __repr__(self) -> str:
        return f"<CallTimes calls={self._calls} mean={self.mean:g} max={self.max:g}>"


def loop_time() -> float:
    """The time of the loop, which is the monotonic clock where it isn't a simulated one; so it can
    be asked from a thread without one.
    """
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return time.monotonic()


class Listener:
    """A mailbox that can be waited at. There is one consumer.

    It takes one event at a time with ``next_nowait`` or ``next``, or many::

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
    ) -> None:
        """Make a listener with an empty mailbox.

        Args:
            name: for logs, health and errors.
            mailbox: its pending events. A filter is the mailbox's (its ``each``).
            gate: what to open when there is room again.
            describe: says what its informer is doing, for errors.
            resync: seconds between two times that it is told the cached state again; 0 for never.
        """
        self.name = name
        self.on_calls: Callable[[float, int], None] | None = None
        """Is told the seconds that so many calls of its handler took, for metrics."""
        self.on_closed: Callable[[Listener], None] | None = None
        """Is told when it is closed, each time."""
        self.on_ready: Callable[[], None] | None = None
        """Is called when live events have come, instead of waking up who waits."""
        self.resync_period = resync
        self.resync_due: float | None = None
        """When it is to be told the cached state again; whoever keeps that time sets it."""
        self.consumer: ReferenceType[asyncio.Task[Any]] | None = None
        """The task that reads it, as far as that is known, which is of streams only."""
        self.failure: ListenerOverflow | None = None
        """Why it was closed, if nobody asked for that; a stream raises it, a handler reports it."""
        self._describe = describe or self.__repr__
        self._mailbox = mailbox
        self._gate = gate
        self._waiter: asyncio.Future[None] | None = None
        self._synced = asyncio.Event()
        self._closed = False
        self._call_times = CallTimes()

    # -- the informer's side -------------------------------------------------------------------

    def put(self, events: Sequence[Event], at: float = 0.0) -> bool:
        """Live events have come, ``at`` this time of the loop. They are kept, not copied.

        Returns:
            Whether to ``merge_oldest`` before it is given anything more.
        """
        box = self._mailbox
        if box.put(events, at):
            waiter = self._waiter
            if waiter is not None:
                if self.on_ready is not None:
                    self.on_ready()
                else:
                    self._waiter = None
                    if not waiter.done():
                        waiter.set_result(None)
            if box.overflowed:
                self._fail()
        return box.needs_merge

    def put_relist(
        self, batches: Sequence[Sequence[Event]], at: float = 0.0, *, initial: bool = False
    ) -> None:
        """A list was applied; these are the changes, in batches that all listeners share."""
        self._mailbox.put_relist(batches, at, initial=initial)
        self._wake()
        if self._mailbox.overflowed:
            self._fail()

    def replay(self, objects: Iterable[KubeObject], at: float = 0.0, *, full: bool = True) -> None:
        """The listener has joined; these are the objects that are cached. ``full``: whether they
        are a full state.
        """
        self._mailbox.replay(objects, at, full=full)
        self._wake()

    def resync(self, objects: Iterable[KubeObject], current: Callable[[KubeObject], bool]) -> None:
        """Hear once more what is cached, unless the last time isn't over.

        Args:
            objects: what is cached now.
            current: whether the cache still has this very state of an object.
        """
        if self._mailbox.resync(objects, current):
            self._wake()

    def merge_oldest(self, count: int) -> None:
        """Merge some of the oldest events that are pending."""
        self._mailbox.merge_oldest(count)

    def close(self, *, drop: bool) -> None:
        """Nothing more will come; ``drop`` what is pending, or leave it to be taken, but for a
        resync, which is no news.
        """
        self._closed = self._mailbox.closed = True
        _free_in_steps(self._mailbox.clear() if drop else self._mailbox.drop_resync())
        self._wake()
        self._synced.set()
        if self.on_closed is not None:
            self.on_closed(self)
        self._gate.open()

    def _fail(self) -> None:
        self.failure = ListenerOverflow(self.name, limit=self._mailbox.limit)
        self.close(drop=True)

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            _set_done(waiter)

    @property
    def free(self) -> int:
        """Live events that its mailbox still takes."""
        return self._mailbox.free

    @property
    def needs_merge(self) -> bool:
        """Whether to ``merge_oldest``: more is pending than may be."""
        return self._mailbox.needs_merge

    @property
    def relist_pending(self) -> bool:
        """Whether the changes of a list are still pending."""
        return self._mailbox.relist_pending

    @property
    def blocks(self) -> bool:
        """Whether the pump is to wait when it is full."""
        return self._mailbox.overflow == "block"

    @property
    def merges(self) -> bool:
        """Whether its events are merged when it is full."""
        return self._mailbox.overflow == "coalesce"

    @property
    def filters(self) -> bool:
        """Whether events go through a filter on their way in, which takes time."""
        return self._mailbox.has_filter

    @property
    def pending(self) -> int:
        """Live events queued. May be read from any thread."""
        return self._mailbox.pending

    @property
    def empty(self) -> bool:
        """Whether nothing is pending."""
        return self._mailbox.empty

    @property
    def closed(self) -> bool:
        """Whether nothing more will come."""
        return self._closed

    # -- the consumer's side -------------------------------------------------------------------

    def next_nowait(self) -> Event | None:
        """The next event if there is one. Asking says that the one before was dealt with."""
        event = self._mailbox.pop()
        self.release()
        return event

    async def next(self) -> Event | None:
        """The next event; ``None`` when the listener is closed and everything was taken."""
        while (event := self.next_nowait()) is None:
            if not await self.ready():
                return None
        return event

    async def ready(self) -> bool:
        """Wait until there may be something to take; false when the listener is closed and
        everything was taken. Doesn't wait, nor give way, if there is something already.
        """
        if (waiter := self.waiter()) is not None:
            await waiter
        return not (self._closed and self._mailbox.empty)

    def waiter(self) -> asyncio.Future[None] | None:
        """What to await until there may be something to take; ``None`` if there is something
        already, or nothing more will come. ``ready`` without a coroutine, for those who can't
        afford one for each event.
        """
        box = self._mailbox
        if box.should_yield:  # it passes over what is told no more: give way
            box.should_yield = False
            loop = asyncio.get_running_loop()
            waiter: asyncio.Future[None] = loop.create_future()
            loop.call_soon(_set_done, waiter)
            return waiter
        if self._closed or not box.empty:
            return None
        if self._gate.closed:
            self.release()  # a batch that was taken in one go has left room
        self._waiter = waiter = asyncio.get_running_loop().create_future()
        return waiter

    def wake(self, waiter: asyncio.Future[None]) -> None:
        """Set ``waiter`` as soon as there may be something to take, or nothing more will come;
        once. For who waits at several listeners.
        """
        self._waiter = waiter
        if self._closed or not self._mailbox.empty:
            self._wake()

    @property
    def ended(self) -> bool:
        """Whether it is closed and everything was taken."""
        return self._closed and self._mailbox.empty

    def take(self) -> Iterator[Event]:
        """What is pending, as far as that can be had in one go: to take an event from the iterator
        is to pop it, at a fraction of what ``next_nowait`` costs.

        What is dropped or merged while the consumer is busy with an event doesn't come any more.
        Nothing is lost by not taking it to its end: the next one goes on from there. Call
        ``release`` after each suspension in between.
        """
        run = self._mailbox.borrow_batch()
        self.release()
        return run if run is not None else self._pop_each()

    def _pop_each(self) -> Iterator[Event]:
        while (event := self.next_nowait()) is not None:
            yield event

    def release(self) -> None:
        """Let the pump go on if it waits for room and there is enough, and whoever waits for
        ``synced`` if it is.
        """
        if self._gate.closed and self._mailbox.half_empty:
            self._gate.open()
        if self._mailbox.synced and not self._synced.is_set():
            self._mark_synced()

    def _mark_synced(self) -> None:
        """All that was cached when it joined was taken, and with one consumer dealt with."""
        self._synced.set()

    def record_calls(
        self,
        seconds: float,
        calls: int = 1,
        last: float | None = None,
        longest: float | None = None,
    ) -> None:
        """The handler's last ``calls`` calls took so long together; and so the last and longest."""
        self._call_times.record_calls(seconds, calls, last, longest)
        if self.on_calls is not None:
            self.on_calls(seconds, calls)

    # -- its owner's side ----------------------------------------------------------------------

    @property
    def synced(self) -> bool:
        """Whether everything that was cached when it joined was told, and dealt with."""
        return self._mailbox.synced

    async def wait_synced(self, timeout: float | None = None) -> None:
        """Wait for ``synced``.

        Args:
            timeout: seconds.

        Raises:
            SyncTimeout: not within that time.
            NotRunning: the listener was removed or its informer ended before.
        """
        try:
            async with asyncio.timeout(timeout):
                await self._synced.wait()
        except TimeoutError:
            raise SyncTimeout(timeout or 0.0, {self.name: self._describe()}) from None
        if not self.synced:
            raise NotRunning(f"{self.name} ended before it was synced") from self.failure

    def statistics(self) -> Statistics:
        """Its numbers now. Costs nothing while nobody asks; may be asked from any thread."""
        box = self._mailbox
        since, timing = box.oldest, self._call_times
        return Statistics(
            pending=box.pending,
            limit=box.limit,
            high=box.max_pending,
            delivered=box.delivered,
            merged=box.merged,
            errors=0,
            synced=box.synced,
            oldest=0.0 if since is None else max(0.0, loop_time() - since),
            spent_last=timing.last,
            spent_mean=timing.mean,
            spent_max=timing.max,
        )

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open"
        return f"<{type(self).__name__} {self.name} {state} {self._mailbox!r}>"


def _set_done(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():  # cancelled
        waiter.set_result(None)


def _free_in_steps(steps: Iterator[None]) -> None:
    """Let go of what was pending, one step a turn of the loop; at once if there is no loop."""
    for _ in steps:
        try:
            asyncio.get_running_loop().call_soon(_free_in_steps, steps)
        except RuntimeError:
            continue
        return
