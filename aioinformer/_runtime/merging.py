"""Several streams as one: ``async with merge(pods.events(), nodes.events()) as events``.

One task reads them all, and no task is started for it: whichever stream has something next sets
one future. What is taken is taken in turn, one event of each that has one, so that a busy stream
doesn't starve the others. Between streams there is no order: their informers don't have one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Generic, NamedTuple, Self, overload

from typing_extensions import TypeVar

from aioinformer._core.objects import Event, KubeObject
from aioinformer._runtime.pace import Pace
from aioinformer._runtime.streams import EventSource, EventStream
from aioinformer.errors import NotRunning, UsageError

__all__ = ["MergedStream", "Sourced", "merge"]


T = TypeVar("T", default=KubeObject)
T_co = TypeVar("T_co", covariant=True, default=KubeObject)
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
        self._pace: Pace | None = None
        self._waiting = False

    async def __aenter__(self) -> Self:
        if self._stack is not None:
            raise UsageError("these streams were merged and entered already; ask for others")
        async with AsyncExitStack() as stack:
            for stream in self._streams:
                await stack.enter_async_context(stream)
            self._stack = stack.pop_all()
        self._open.extend(self._streams)
        self._pace = Pace()
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
        if self._pace is None:
            raise NotRunning("the streams are not open; write `async with merge(...) as ...`")
        if self._waiting:
            raise UsageError("two tasks read the same merged streams; merge others for each")
        self._waiting = True
        try:
            return await self._next(self._pace)
        finally:
            self._waiting = False

    async def _next(self, pace: Pace) -> Sourced[T_co]:
        if pace.due:
            await pace.breathe()  # before the pop: a cancellation here loses nothing
        while (sourced := self._next_nowait()) is None:
            if not self._open:
                raise StopAsyncIteration
            await self._something()
            pace.rested()
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

    async def _something(self) -> None:
        """Wait until one of the streams may have something."""
        waiter = asyncio.get_running_loop().create_future()
        for stream in self._open:
            stream.wake(waiter)
        if waiter.done():  # there was so much to pass over that it is time to give way
            await asyncio.sleep(0)
        await waiter

    def __repr__(self) -> str:
        state = "not open" if self._pace is None else f"open={len(self._open)}"
        return f"<MergedStream of {len(self._streams)} {state}>"
