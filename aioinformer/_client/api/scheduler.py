"""One client's informers take turns: few initial states at once, restarts one after the other.

A reflector asks when its own backoff says so, and enters a ``turn`` to do it. Here it waits, if
it must: for one of the places of those who list, for the gate that a ``Retry-After`` closes, for
a token where it follows a failure (``rates`` has the rules and numbers). Every wait is first come,
first served, and whoever is cancelled while waiting takes nothing along. A reflector's question
whether its resource is served at all passes here as well; what a program asks itself does not: one
that asks once is not what brings a server down.

``Traffic`` knows no HTTP, so that a cluster in memory gets the same (``ClusterSource``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from contextlib import asynccontextmanager

from aioinformer._core.listwatch.rate_limit import Limits, Rates
from aioinformer._core.listwatch.requests import AnyRequest, ListRequest, WatchRequest
from aioinformer.errors import FetchError

__all__ = ["Lane", "Stream", "Traffic", "Turn"]

log = logging.getLogger("aioinformer.traffic")

BETWEEN_PAGES = 1.0
"""Seconds for which a place is kept after a page, for the next one. Without it, every page of one
list would let another list begin, and all of them would be half done at once."""


class Traffic:
    """What the informers of one client share. It belongs to one event loop."""

    def __init__(self, limits: Limits | None = None) -> None:
        """Nobody has asked yet; no running loop is needed.

        Args:
            limits: the numbers.
        """
        self.limits = limits or Limits()
        self.rates = Rates(self.limits)
        """What is known of the server's patience."""
        self.waiting = 0
        """How many wait for their turn."""
        self.initial = 0
        """How many initial states are under way."""
        self._places = asyncio.Semaphore(self.limits.lists)
        self._line = asyncio.Lock()

    def lane(self) -> Lane:
        """The way of one reflector, whose requests follow each other."""
        return Lane(self)

    # -- places --------------------------------------------------------------------------------

    async def place(self) -> Place:
        """Wait for a place among those who read an initial state."""
        self.waiting += 1
        try:
            await self._places.acquire()
        finally:
            self.waiting -= 1
        self.initial += 1
        return Place(self)

    def vacate(self) -> None:
        """A place is free. ``Place.give_back`` calls it, once."""
        self.initial -= 1
        self._places.release()

    # -- the gate and the bucket ---------------------------------------------------------------

    async def admit(self, request: AnyRequest, failures: int) -> None:
        """Wait until a request may be sent.

        Args:
            request: which.
            failures: how many there were when it began to wait. What was in line when the
                server went down is not let loose when it is back.
        """
        self.waiting += 1
        try:
            now = asyncio.get_running_loop().time
            while not self._takes_token(request, failures):
                if self.rates.opens <= now():
                    return
                await _until(self.rates.opens)
            async with self._line:
                while self.rates.ready > now():
                    await _until(self.rates.ready)
                self.rates.take(now())
        finally:
            self.waiting -= 1

    def _takes_token(self, request: AnyRequest, failures: int) -> bool:
        if request.restart:
            return True
        # The next page, and the watch after the list, follow a success and complete it.
        troubled = self.rates.troubled or self.rates.failures != failures
        return troubled and _begins(request)

    def failed(self, error: FetchError) -> None:
        """A request, or the reading of its answer, ended so."""
        now = asyncio.get_running_loop().time()
        was_open = self.rates.opens <= now
        self.rates.failed(error, now)
        if was_open and self.rates.opens > now:
            pause = self.rates.opens - now
            log.info("the server asks for patience: no list or watch for %.1f s", pause)

    def __repr__(self) -> str:
        trouble = ", server in trouble" if self.rates.troubled else ""
        held = f"{self.initial} of {self.limits.lists} initial states"
        return f"<Traffic {held}, {self.waiting} waiting{trouble}>"


class Lane:
    """The requests of one reflector. Pages of a list keep their place from one to the next."""

    __slots__ = ("_kept", "_traffic")

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic
        self._kept: Place | None = None

    @asynccontextmanager
    async def turn(self, request: AnyRequest) -> AsyncGenerator[Turn]:
        """Wait until a request may be sent; send it and read its answer inside.

        What leaves the context as a ``FetchError`` is noted for the others, wherever in the
        answer it happened.
        """
        traffic = self._traffic
        failures = traffic.rates.failures
        place = await self._place(request)
        try:
            await traffic.admit(request, failures)
            if place is not None:
                place.hold(traffic.limits.patience)
            yield Turn(traffic, place)
        except BaseException as error:
            if place is not None:
                place.give_back()
            if isinstance(error, FetchError):
                traffic.failed(error)
            raise
        self._leave(place, request)

    async def _place(self, request: AnyRequest) -> Place | None:
        kept, self._kept = self._kept, None
        if not _initial(request):
            if kept is not None:
                kept.give_back()
            return None
        if kept is not None and kept.take_up():
            return kept
        return await self._traffic.place()

    def _leave(self, place: Place | None, request: AnyRequest) -> None:
        """The answer was read. Only the reflector knows whether there is another page to come."""
        if place is None:
            return
        if self._kept is None and isinstance(request, ListRequest):
            self._kept = place
            place.hold(BETWEEN_PAGES)
        else:
            place.give_back()

    def __repr__(self) -> str:
        return f"<Lane{' with a place' if self._kept else ''} of {self._traffic!r}>"


class Place:
    """One of the places of those who read an initial state."""

    __slots__ = ("_alarm", "_held", "_traffic")

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic
        self._held = True
        self._alarm: asyncio.TimerHandle | None = None

    def hold(self, seconds: float) -> None:
        """Give it back after that time at the latest, counted from now."""
        if self.take_up():
            self._alarm = asyncio.get_running_loop().call_later(seconds, self.give_back)

    def take_up(self) -> bool:
        """Keep it with no time set; whether it is still held."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        return self._held

    def give_back(self) -> None:
        """Let the next one have it."""
        if self.take_up():
            self._held = False
            self._traffic.vacate()

    def __repr__(self) -> str:
        return f"<Place {'held' if self._held else 'given back'}>"


class Turn:
    """A request that may be sent now."""

    __slots__ = ("_place", "_traffic")

    def __init__(self, traffic: Traffic, place: Place | None) -> None:
        self._traffic = traffic
        self._place = place

    def answered(self, chunks: AsyncIterator[bytes]) -> Stream:
        """The server has answered with 200; the chunks, with ``settled`` added."""
        self._traffic.rates.succeeded()
        return Stream(chunks, self._place)


class Stream:
    """The chunks of an answer, and a word from its reader.

    ``settled()`` is all that a reader owes beyond reading: called when the initial state is
    complete, it lets another informer begin. Who never calls it is let off when the answer ends,
    or after ``Limits.patience``.
    """

    __slots__ = ("_next", "_place")

    def __init__(self, chunks: AsyncIterator[bytes], place: Place | None) -> None:
        self._next = chunks.__anext__
        self._place = place

    def __aiter__(self) -> Stream:
        return self

    def __anext__(self) -> Awaitable[bytes]:
        return self._next()

    def settled(self) -> None:
        """The initial state is complete: the end mark, or the end of the last page, has come.

        It may be called more than once, and in answers that carry no initial state.
        """
        if self._place is not None:
            self._place.give_back()


def _initial(request: AnyRequest) -> bool:
    """Whether the answer carries an initial state, or a page of one."""
    if isinstance(request, WatchRequest):
        return request.initial
    return isinstance(request, ListRequest) and not request.probe


def _begins(request: AnyRequest) -> bool:
    """Whether it is the first of those that read a state."""
    if isinstance(request, WatchRequest):
        return request.initial
    return isinstance(request, ListRequest) and not request.continue_token


async def _until(moment: float) -> None:
    await asyncio.sleep(moment - asyncio.get_running_loop().time())
