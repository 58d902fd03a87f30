"""Event streams: ``async with informer.events() as events: async for event in events``.

A stream is a listener whose consumer is the program's own loop. It registers when it is entered
and frees its mailbox when it is left; it is an object rather than an async generator, whose
clean-up would run whenever the garbage collector sees fit.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

from aioinformer._core.objects import Event
from aioinformer._runtime.listeners import Listener, Statistics
from aioinformer._runtime.pace import Pace
from aioinformer.errors import NotRunning, UsageError

__all__ = ["EventStream"]


class EventStream:
    """The events of one informer, for one consumer. ``SharedInformer.events`` makes them.

    It begins with an ``Added(initial=True)`` for each cached object and ends when the informer
    does, after what was pending.
    """

    def __init__(self, name: str, join: Callable[[], Listener]) -> None:
        """A stream that registers with ``join`` when it is entered."""
        self._name = name
        self._join = join
        self._listener: Listener | None = None
        self._pace: Pace | None = None
        self._waiting = False

    async def __aenter__(self) -> Self:
        if self._listener is not None:
            raise UsageError(f"the {self._name} was entered already; ask for another one")
        self._pace = Pace()
        self._listener = self._join()
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
        self._entered.close(drop=True)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        if self._waiting:
            raise UsageError(f"two tasks read the {self._name}; open one for each")
        listener = self._entered
        self._waiting = True
        try:
            if self._pace is not None:
                await self._pace.breathe()  # before the pop: a cancellation here loses nothing
            event = listener.next_nowait()
            if event is None:
                event = await listener.next()
                if self._pace is not None:
                    self._pace.rested()
        finally:
            self._waiting = False
        if event is None:
            raise StopAsyncIteration
        return event

    @property
    def _entered(self) -> Listener:
        if self._listener is None:
            raise NotRunning(
                f"the {self._name} is not open; write `async with informer.events() as ...`"
            )
        return self._listener

    @property
    def synced(self) -> bool:
        """Whether the next event was asked for after all that was cached at the start."""
        return self._entered.synced

    def statistics(self) -> Statistics:
        """Its numbers now."""
        return self._entered.statistics()

    def __repr__(self) -> str:
        state = repr(self._listener) if self._listener else "not open"
        return f"<EventStream {self._name} {state}>"
