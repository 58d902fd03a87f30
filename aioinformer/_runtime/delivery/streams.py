"""Event streams: ``async with informer.events() as events: async for event in events``.

A stream is a listener whose consumer is a loop of the program. The listener joins when the stream
is entered, and its mailbox is freed when the stream is left. A stream is an object and not an async
generator, since the clean-up of a generator runs at an unknown time in the garbage collector. A
stream that a program doesn't leave is freed when it is collected, with a ResourceWarning.

``merge(pods.events(), nodes.events())`` reads several streams as one, in one task: each stream sets
the same future when it has an event. The streams take turns, one event each, so that a busy stream
doesn't delay the others. There is no order between streams, as there is none between informers.
"""

from __future__ import annotations

import asyncio
import warnings
from collections import deque
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, Self, overload
from weakref import ref

from typing_extensions import TypeVar

from aioinformer._core.objects.kube_object import Event, KubeObject
from aioinformer._core.objects.view import EventView, ObjectView
from aioinformer._runtime.delivery.listener import Listener
from aioinformer._runtime.tasks.event_loop import TimeSlice
from aioinformer.errors import NotRunning, UsageError

if TYPE_CHECKING:  # for programs that read the numbers
    from aioinformer._runtime.delivery.statistics import Statistics

T_co = TypeVar("T_co", covariant=True, default=KubeObject)


class EventSource(Protocol):
    """A source of events: an informer."""

    @property
    def name(self) -> str:
        """The name of the informer in logs and errors."""
        ...


class EventStream(Generic[T_co]):
    """The events of one informer, for one consumer. ``SharedInformer.events`` makes streams.

    A stream begins with an ``Added(initial=True)`` for each cached object. The stream ends when the
    informer does, after the pending events. A cancellation while the stream waits loses no event:
    the next call returns the event. The stream yields to the loop every few milliseconds, however
    many events are pending.
    """

    def __init__(
        self,
        source: EventSource,
        join: Callable[[], Listener],
        view: ObjectView[T_co] | None = None,
        start_limit: Callable[[], AbstractAsyncContextManager[None] | None] = lambda: None,
    ) -> None:
        """Make a stream.

        Args:
            source: the informer.
            join: returns the listener, joined to the informer. Called when the stream is entered.
            view: converts the objects; ``None`` for the stored objects.
            start_limit: returns a context for a wait, which raises if the informer isn't started
                in time; ``None`` if the informer was started.
        """
        self._listener: Listener | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.source = source
        """The informer."""
        self._name = f"stream of {source.name}"
        self._join = join
        self._view = None if view is None else EventView(view)
        self._time_slice: TimeSlice | None = None
        self.start_limit = start_limit
        """See ``start_limit`` above."""
        self._waiting = False
        self._blocks = False
        self._prefetched: Event | None = None
        """The event that ``done`` has taken, and that is delivered next."""

    async def __aenter__(self) -> Self:
        if self._listener is not None:
            raise UsageError(f"the {self._name} was entered already; call informer.events() again")
        self._time_slice = TimeSlice()
        self._loop = asyncio.get_running_loop()
        self._listener = self._join()
        self._blocks = self._listener.mailbox.overflow.blocks
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the stream and discard the pending events."""
        self._open_listener.close(drop=True)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event[T_co]:
        """Wait for the next event and return it.

        Raises:
            StopAsyncIteration: the stream was left, or its informer has ended.
            ListenerOverflow: the stream has ``overflow="error"``, and its reader was too slow.
            ModelMismatch: ``convert=`` raised at the object of the next event. That event is
                skipped; the stream can be read on. A deletion is never skipped.
            UsageError: another task is waiting for the next event, or the informer was not started.
        """
        if self._waiting:
            raise UsageError(f"two tasks read the {self._name}; open one for each")
        listener, pace = self._open_listener, self._time_slice
        self._waiting = True
        self._record_consumer(listener)
        try:
            if pace is not None and pace.expired:
                await pace.maybe_yield()  # before the pop: a cancellation here loses nothing
            listener.acknowledged = False
            event = listener.next_nowait() if self._prefetched is None else self._take_prefetched()
            if event is None:
                if (limit := self.start_limit()) is None:
                    event = await listener.next()
                else:
                    async with limit:
                        event = await listener.next()
                if pace is not None:
                    pace.reset()
        finally:
            self._waiting = False
        if event is None:
            raise listener.make_failure() or StopAsyncIteration
        found: Any = event
        shown: Event[T_co] = found if self._view is None else self._view.convert(event)
        return shown

    def next_nowait(self) -> Event[T_co] | None:
        """Return the next event if there is one. This acknowledges the previous event.

        Raises:
            NotRunning: the stream was not entered.
            ListenerOverflow: the stream has ``overflow="error"``, and its reader was too slow.
        """
        event = self.stored_nowait()
        found: Any = event
        shown: Event[T_co] | None = found
        return shown if self._view is None or event is None else self._view.convert(event)

    def stored_nowait(self) -> Event | None:
        """Return the next event as ``next_nowait`` does, with the object as stored, whatever
        ``convert=`` makes of the object for the program.
        """
        listener = self._open_listener
        listener.acknowledged = False
        self._record_consumer(listener)
        event = listener.next_nowait() if self._prefetched is None else self._take_prefetched()
        if event is None and (failure := listener.make_failure()) is not None:
            raise failure
        return event

    def _take_prefetched(self) -> Event | None:
        """Return the event that ``done`` has taken."""
        event, self._prefetched = self._prefetched, None
        return event

    async def done(self) -> None:
        """Acknowledge the last event of a durable stream, without asking for the next one.

        The next iteration acknowledges an event, too. Use ``done`` before a long pause, and before
        leaving the stream, so that the event isn't delivered again after a restart.

        Raises:
            NotRunning: the stream was not entered.
        """
        listener = self._open_listener
        if self._prefetched is None:
            self._prefetched = listener.next_nowait()
        listener.acknowledged = self._prefetched is None

    def wake(self, waiter: asyncio.Future[None]) -> None:
        """Set ``waiter`` once an event comes or the stream ends, to wait for several streams."""
        if self._prefetched is None:
            self._open_listener.wake(waiter)
        elif not waiter.done():
            waiter.set_result(None)

    def _record_consumer(self, listener: Listener) -> None:
        """Note the reading task, which must not wait for its own informer while the pump waits."""
        if self._blocks and (task := asyncio.current_task()) is not None:
            listener.consumer = ref(task)

    @property
    def ended(self) -> bool:
        """True if no further event will come."""
        return self._prefetched is None and self._open_listener.ended

    @property
    def _open_listener(self) -> Listener:
        if self._listener is None:
            raise NotRunning(
                f"the {self._name} is not open; write `async with informer.events() as ...`"
            )
        return self._listener

    @property
    def synced(self) -> bool:
        """True if every object that was cached at the start was delivered, and another event was
        requested since.
        """
        return self._open_listener.synced

    def statistics(self) -> Statistics:
        """Return the numbers of this moment."""
        return self._open_listener.statistics()

    def __del__(self) -> None:
        listener, loop = self._listener, self._loop
        if listener is None or loop is None or listener.closed:
            return
        warnings.warn(
            f"the {self._name} was garbage-collected before it was left; its mailbox is freed now; "
            "write `async with informer.events() as ...`",
            ResourceWarning,
            stacklevel=1,
            source=self,
        )
        if not loop.is_closed():  # the garbage collector may run in any thread
            loop.call_soon_threadsafe(_close_listener, listener)

    def __repr__(self) -> str:
        state = repr(self._listener) if self._listener else "not open"
        return f"<EventStream {self._name} {state}>"


def _close_listener(listener: Listener) -> None:
    listener.close(drop=True)


T = TypeVar("T", default=KubeObject)
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")


class Sourced(NamedTuple, Generic[T]):
    """An event and its informer."""

    source: EventSource
    """The informer itself, to be compared: ``if source is pods``."""
    event: Event[T]
    """The event."""


@overload
def merge(one: EventStream[A], /) -> MergedStream[A]: ...
@overload
def merge(one: EventStream[A], two: EventStream[B], /) -> MergedStream[A | B]: ...
@overload
def merge(
    one: EventStream[A], two: EventStream[B], three: EventStream[C], /
) -> MergedStream[A | B | C]: ...
@overload
def merge(
    one: EventStream[A], two: EventStream[B], three: EventStream[C], four: EventStream[D], /
) -> MergedStream[A | B | C | D]: ...
@overload
def merge(*streams: EventStream[A]) -> MergedStream[A]: ...
def merge(*streams: EventStream[Any]) -> MergedStream[Any]:
    """Read several streams as one.

    Args:
        streams: at least one, none of them entered. Each keeps its own limit and overflow rule.

    Raises:
        UsageError: there is no stream, or the same one twice.
    """
    if not streams:
        raise UsageError("there is nothing to merge: pass at least one stream")
    if len(set(map(id, streams))) < len(streams):
        raise UsageError("a stream can't be merged with itself; call informer.events() for each")
    return MergedStream(streams)


class MergedStream(Generic[T_co]):
    """The events of several streams, for one consumer. ``merge`` makes merged streams.

    Entering a merged stream enters all of its streams, and leaving it leaves them. A merged stream
    ends when all of its streams have ended. A cancellation while the stream waits loses no event.
    """

    def __init__(self, streams: tuple[EventStream[T_co], ...]) -> None:
        """Make a merged stream, which enters ``streams`` when it is entered."""
        self._streams = streams
        self._open: deque[EventStream[T_co]] = deque()
        """The streams that may have further events. The first one has the next turn."""
        self._stack: AsyncExitStack | None = None
        self._time_slice: TimeSlice | None = None
        self._waiting = False

    async def __aenter__(self) -> Self:
        if self._stack is not None:
            raise UsageError("these streams were entered already; merge new ones")
        async with AsyncExitStack() as stack:
            for stream in self._streams:
                await stack.enter_async_context(stream)
            self._stack = stack.pop_all()
        self._open.extend(self._streams)
        self._time_slice = TimeSlice()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Leave all streams and discard their pending events."""
        if self._stack is not None:
            await self._stack.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Sourced[T_co]:
        """Wait for the next event of any of the streams and return it.

        Raises:
            StopAsyncIteration: all streams have ended.
            ListenerOverflow: the reader was too slow for a stream with ``overflow="error"``. The
                others can be read on.
            UsageError: another task is waiting for the next event, or an informer was not started.
        """
        if self._time_slice is None:
            raise NotRunning("the streams are not open; write `async with merge(...) as ...`")
        if self._waiting:
            raise UsageError("two tasks read the same merged stream; merge new streams for each")
        self._waiting = True
        try:
            return await self._next(self._time_slice)
        finally:
            self._waiting = False

    async def _next(self, time_slice: TimeSlice) -> Sourced[T_co]:
        if time_slice.expired:
            await time_slice.maybe_yield()  # before the pop: a cancellation here loses nothing
        while (sourced := self._next_nowait()) is None:
            if not self._open:
                raise StopAsyncIteration
            await self._wait_any()
            time_slice.reset()
        return sourced

    def _next_nowait(self) -> Sourced[T_co] | None:
        """Return the event of the first stream that has one, and move that stream to the end."""
        for _ in range(len(self._open)):
            stream = self._open.popleft()
            if not stream.ended:
                self._open.append(stream)
            event = stream.next_nowait()
            if event is not None:
                return Sourced(stream.source, event)
        return None

    async def _wait_any(self) -> None:
        """Wait until one of the streams may have an event."""
        waiter = asyncio.get_running_loop().create_future()
        for stream in self._open:
            stream.wake(waiter)
        if waiter.done():  # a stream has skipped many events: yield to the loop
            await asyncio.sleep(0)
        limits = [limit for each in self._open if (limit := each.start_limit()) is not None]
        if not limits:
            await waiter
            return
        async with AsyncExitStack() as stack:
            for limit in limits:
                await stack.enter_async_context(limit)
            await waiter

    def __repr__(self) -> str:
        state = "not open" if self._time_slice is None else f"open={len(self._open)}"
        return f"<MergedStream of {len(self._streams)} {state}>"
