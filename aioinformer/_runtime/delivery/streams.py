"""Event streams: ``async with informer.events() as events: async for event in events``.

A stream is a listener whose consumer is the program's own loop. It registers when it is entered
and frees its mailbox when it is left; it is an object rather than an async generator, whose
clean-up would run whenever the garbage collector sees fit. A program that forgets to leave one is
warned when it is collected, and its mailbox is freed then. Several at once are ``merging``'s.

Several streams as one: ``async with merge(pods.events(), nodes.events()) as events``.

One task reads them all, and no task is started for it: whichever stream has something next sets
one future. What is taken is taken in turn, one event of each that has one, so that a busy stream
doesn't starve the others. Between streams there is no order: their informers don't have one.
"""

from __future__ import annotations

import asyncio
import warnings
from collections import deque
from collections.abc import Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Generic, NamedTuple, Protocol, Self, overload
from weakref import ref

from typing_extensions import TypeVar

from aioinformer._core.objects.kube_object import Event, KubeObject
from aioinformer._core.objects.view import ObjectView
from aioinformer._runtime.delivery.listener import Listener, Statistics
from aioinformer._runtime.tasks.event_loop import TimeSlice
from aioinformer.errors import NotRunning, UsageError

__all__ = ["EventSource", "EventStream", "MergedStream", "Sourced", "merge"]


T_co = TypeVar("T_co", covariant=True, default=KubeObject)


class EventSource(Protocol):
    """What has events: an informer."""

    @property
    def name(self) -> str:
        """What it is called in logs and errors."""
        ...


class EventStream(Generic[T_co]):
    """The events of one informer, for one consumer. ``SharedInformer.events`` makes them.

    It begins with an ``Added(initial=True)`` for each cached object and ends when the informer
    does, after what was pending. A cancellation while it waits loses no event: who asks next gets
    it. It leaves the event loop to others every few milliseconds, however much is pending.
    """

    def __init__(
        self,
        source: EventSource,
        join: Callable[[], Listener],
        view: ObjectView[T_co] | None = None,
    ) -> None:
        """A stream of ``source`` that registers with ``join`` when it is entered, and shows what
        its objects look like in ``view``.
        """
        self._listener: Listener | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.source = source
        """The informer whose events these are."""
        self._name = f"stream of {source.name}"
        self._join = join
        self._view = view
        self._time_slice: TimeSlice | None = None
        self._waiting = False
        self._blocks = False

    async def __aenter__(self) -> Self:
        if self._listener is not None:
            raise UsageError(f"the {self._name} was entered already; ask for another one")
        self._time_slice = TimeSlice()
        self._loop = asyncio.get_running_loop()
        self._listener = self._join()
        self._blocks = self._listener.mailbox.overflow.blocks
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Hear no more, and drop what is pending."""
        self._open_listener.close(drop=True)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event[T_co]:
        """The next event.

        Raises:
            StopAsyncIteration: the stream was left, or its informer has ended.
            ListenerOverflow: it has ``overflow="error"`` and was too slow.
            ModelMismatch: ``convert=`` raised at the object of the next event, which is passed
                over; the stream can be read on.
            UsageError: another task is waiting for the next one.
        """
        if self._waiting:
            raise UsageError(f"two tasks read the {self._name}; open one for each")
        listener, pace = self._open_listener, self._time_slice
        self._waiting = True
        self._record_consumer(listener)
        try:
            if pace is not None and pace.expired:
                await pace.maybe_yield()  # before the pop: a cancellation here loses nothing
            event = listener.next_nowait()
            if event is None:
                event = await listener.next()
                if pace is not None:
                    pace.reset()
        finally:
            self._waiting = False
        if event is None:
            raise listener.failure or StopAsyncIteration
        found: Any = event
        shown: Event[T_co] = found if self._view is None else self._view.convert_event(event)
        return shown

    def next_nowait(self) -> Event[T_co] | None:
        """The next event if there is one; asking says that the one before was dealt with.

        Raises:
            NotRunning: the stream was not entered.
            ListenerOverflow: it has ``overflow="error"`` and was too slow.
        """
        listener = self._open_listener
        self._record_consumer(listener)
        event = listener.next_nowait()
        if event is None and listener.failure is not None:
            raise listener.failure
        found: Any = event
        shown: Event[T_co] | None = found
        return shown if self._view is None or event is None else self._view.convert_event(event)

    def wake(self, waiter: asyncio.Future[None]) -> None:
        """Set ``waiter`` once something comes, or the stream ends; for who reads several."""
        self._open_listener.wake(waiter)

    def _record_consumer(self, listener: Listener) -> None:
        """Whose waiting for its own informer could last for ever."""
        if self._blocks and (task := asyncio.current_task()) is not None:
            listener.consumer = ref(task)

    @property
    def ended(self) -> bool:
        """Whether it brings nothing more."""
        return self._open_listener.ended

    @property
    def _open_listener(self) -> Listener:
        if self._listener is None:
            raise NotRunning(
                f"the {self._name} is not open; write `async with informer.events() as ...`"
            )
        return self._listener

    @property
    def synced(self) -> bool:
        """Whether the next event was asked for after all that was cached at the start."""
        return self._open_listener.synced

    def statistics(self) -> Statistics:
        """Its numbers now."""
        return self._open_listener.statistics()

    def __del__(self) -> None:
        listener, loop = self._listener, self._loop
        if listener is None or loop is None or listener.closed:
            return
        warnings.warn(
            f"the {self._name} was dropped without being left; its mailbox is freed now; "
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
    """An event, and the informer that it is of."""

    source: EventSource
    """The informer itself: ``if source is pods``."""
    event: Event[T]
    """What it told."""


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
        streams: not entered yet; at least one. Each keeps its own limit and overflow rule.

    Raises:
        UsageError: there is no stream, or one twice.
    """
    if not streams:
        raise UsageError("there is nothing to merge: give one stream at least")
    if len(set(map(id, streams))) < len(streams):
        raise UsageError("a stream can't be merged with itself; ask for another one")
    return MergedStream(streams)


class MergedStream(Generic[T_co]):
    """The events of several streams, for one consumer. ``merge`` makes them.

    Entering it enters all of them, leaving it leaves them. It ends when all have ended. A
    cancellation while it waits loses no event.
    """

    def __init__(self, streams: tuple[EventStream[T_co], ...]) -> None:
        """Merge ``streams`` when it is entered."""
        self._streams = streams
        self._open: deque[EventStream[T_co]] = deque()
        """Those that may bring something more; whose turn it is comes first."""
        self._stack: AsyncExitStack | None = None
        self._time_slice: TimeSlice | None = None
        self._waiting = False

    async def __aenter__(self) -> Self:
        if self._stack is not None:
            raise UsageError("these streams were merged and entered already; ask for others")
        async with AsyncExitStack() as stack:
            for stream in self._streams:
                await stack.enter_async_context(stream)
            self._stack = stack.pop_all()
        self._open.extend(self._streams)
        self._time_slice = TimeSlice()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Leave all of the streams, and drop what is pending."""
        if self._stack is not None:
            await self._stack.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Sourced[T_co]:
        """The next event of any of the streams.

        Raises:
            StopAsyncIteration: all of them have ended.
            ListenerOverflow: one of them was too slow for its ``overflow="error"``. The others
                can be read on.
            UsageError: another task is waiting for the next one.
        """
        if self._time_slice is None:
            raise NotRunning("the streams are not open; write `async with merge(...) as ...`")
        if self._waiting:
            raise UsageError("two tasks read the same merged streams; merge others for each")
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
        """Give each stream a turn, from the one on whose turn it is."""
        for _ in range(len(self._open)):
            stream = self._open.popleft()
            if not stream.ended:
                self._open.append(stream)
            event = stream.next_nowait()
            if event is not None:
                return Sourced(stream.source, event)
        return None

    async def _wait_any(self) -> None:
        """Wait until one of the streams may have something."""
        waiter = asyncio.get_running_loop().create_future()
        for stream in self._open:
            stream.wake(waiter)
        if waiter.done():  # there was so much to pass over that it is time to give way
            await asyncio.sleep(0)
        await waiter

    def __repr__(self) -> str:
        state = "not open" if self._time_slice is None else f"open={len(self._open)}"
        return f"<MergedStream of {len(self._streams)} {state}>"
