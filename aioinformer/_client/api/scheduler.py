"""One client's informers take turns: few initial states at once, restarts one after the other.

A reflector asks when its own backoff says so, and enters a ``acquire`` to do it. Here it waits, if
it must: for one of the places of those who list, for the gate that a ``Retry-After`` closes, for
a token where it follows a failure (``limiter`` has the rules and numbers). Every wait is first come,
first served, and whoever is cancelled while waiting takes nothing along. A reflector's question
whether its resource is served at all passes here as well; what a program asks itself does not: one
that asks once is not what brings a server down.

``RequestScheduler`` knows no HTTP, so that a cluster in memory gets the same (``ClusterSource``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from contextlib import asynccontextmanager

from aioinformer._core.listwatch.rate_limit import Limits, ServerLimiter
from aioinformer._core.listwatch.requests import AnyRequest, ListRequest, WatchRequest
from aioinformer.errors import FetchError

__all__ = ["Permit", "ReflectorLane", "RequestScheduler", "ScheduledStream"]

log = logging.getLogger("aioinformer.traffic")

PAGE_SLOT_SECONDS = 1.0
"""Seconds for which a place is kept after a page, for the next one. Without it, every page of one
list would let another list begin, and all of them would be half done at once."""


class RequestScheduler:
    """What the informers of one client share. It belongs to one event loop."""

    def __init__(self, limits: Limits | None = None) -> None:
        """Nobody has asked yet; no running loop is needed.

        Args:
            limits: the numbers.
        """
        self.limits = limits or Limits()
        self.limiter = ServerLimiter(self.limits)
        """What is known of the server's patience."""
        self.waiting = 0
        """How many wait for their turn."""
        self.initial_lists = 0
        """How many initial states are under way."""
        self._list_slots = asyncio.Semaphore(self.limits.lists)
        self._token_lock = asyncio.Lock()

    def create_lane(self) -> ReflectorLane:
        """The way of one reflector, whose requests follow each other."""
        return ReflectorLane(self)

    # -- places --------------------------------------------------------------------------------

    async def acquire_list_slot(self) -> ListSlot:
        """Wait for a place among those who read an initial state."""
        self.waiting += 1
        try:
            await self._list_slots.acquire()
        finally:
            self.waiting -= 1
        self.initial_lists += 1
        return ListSlot(self)

    def release_list_slot(self) -> None:
        """A place is free. ``ListSlot.give_back`` calls it, once."""
        self.initial_lists -= 1
        self._list_slots.release()

    # -- the gate and the bucket ---------------------------------------------------------------

    async def wait_permitted(self, request: AnyRequest, failures: int) -> None:
        """Wait until a request may be sent.

        Args:
            request: which.
            failures: how many there were when it began to wait. What was in line when the
                server went down is not let loose when it is back.
        """
        self.waiting += 1
        try:
            now = asyncio.get_running_loop().time
            while not self._needs_token(request, failures):
                if self.limiter.blocked_until <= now():
                    return
                await _sleep_until(self.limiter.blocked_until)
            async with self._token_lock:
                while self.limiter.ready_at > now():
                    await _sleep_until(self.limiter.ready_at)
                self.limiter.take(now())
        finally:
            self.waiting -= 1

    def _needs_token(self, request: AnyRequest, failures: int) -> bool:
        if request.restart:
            return True
        # The next page, and the watch after the list, follow a success and complete it.
        troubled = self.limiter.failing or self.limiter.failures != failures
        return troubled and _starts_initial_list(request)

    def record_failure(self, error: FetchError) -> None:
        """A request, or the reading of its answer, ended so."""
        now = asyncio.get_running_loop().time()
        was_open = self.limiter.blocked_until <= now
        self.limiter.record_failure(error, now)
        if was_open and self.limiter.blocked_until > now:
            pause = self.limiter.blocked_until - now
            log.info("the server asks for patience: no list or watch for %.1f s", pause)

    def __repr__(self) -> str:
        trouble = ", server in trouble" if self.limiter.failing else ""
        held = f"{self.initial_lists} of {self.limits.lists} initial states"
        return f"<RequestScheduler {held}, {self.waiting} waiting{trouble}>"


class ReflectorLane:
    """The requests of one reflector. Pages of a list keep their place from one to the next."""

    __slots__ = ("_held_slot", "_scheduler")

    def __init__(self, scheduler: RequestScheduler) -> None:
        self._scheduler = scheduler
        self._held_slot: ListSlot | None = None

    @asynccontextmanager
    async def acquire(self, request: AnyRequest) -> AsyncGenerator[Permit]:
        """Wait until a request may be sent; send it and read its answer inside.

        What leaves the context as a ``FetchError`` is noted for the others, wherever in the
        answer it happened.
        """
        traffic = self._scheduler
        failures = traffic.limiter.failures
        place = await self._acquire_slot(request)
        try:
            await traffic.wait_permitted(request, failures)
            if place is not None:
                place.release_after(traffic.limits.patience)
            yield Permit(traffic, place)
        except BaseException as error:
            if place is not None:
                place.release()
            if isinstance(error, FetchError):
                traffic.record_failure(error)
            raise
        self._hold_or_release(place, request)

    async def _acquire_slot(self, request: AnyRequest) -> ListSlot | None:
        kept, self._held_slot = self._held_slot, None
        if not _reads_initial_list(request):
            if kept is not None:
                kept.release()
            return None
        if kept is not None and kept.cancel_release():
            return kept
        return await self._scheduler.acquire_list_slot()

    def _hold_or_release(self, slot: ListSlot | None, request: AnyRequest) -> None:
        """The answer was read. Only the reflector knows whether there is another page to come."""
        if slot is None:
            return
        if self._held_slot is None and isinstance(request, ListRequest):
            self._held_slot = slot
            slot.release_after(PAGE_SLOT_SECONDS)
        else:
            slot.release()

    def __repr__(self) -> str:
        return f"<ReflectorLane{' with a place' if self._held_slot else ''} of {self._scheduler!r}>"


class ListSlot:
    """One of the places of those who read an initial state."""

    __slots__ = ("_held", "_release_timer", "_scheduler")

    def __init__(self, scheduler: RequestScheduler) -> None:
        self._scheduler = scheduler
        self._held = True
        self._release_timer: asyncio.TimerHandle | None = None

    def release_after(self, seconds: float) -> None:
        """Give it back after that time at the latest, counted from now."""
        if self.cancel_release():
            self._release_timer = asyncio.get_running_loop().call_later(seconds, self.release)

    def cancel_release(self) -> bool:
        """Keep it with no time set; whether it is still held."""
        if self._release_timer is not None:
            self._release_timer.cancel()
            self._release_timer = None
        return self._held

    def release(self) -> None:
        """Let the next one have it."""
        if self.cancel_release():
            self._held = False
            self._scheduler.release_list_slot()

    def __repr__(self) -> str:
        return f"<ListSlot {'held' if self._held else 'given back'}>"


class Permit:
    """A request that may be sent now."""

    __slots__ = ("_scheduler", "_slot")

    def __init__(self, scheduler: RequestScheduler, slot: ListSlot | None) -> None:
        self._scheduler = scheduler
        self._slot = slot

    def open_stream(self, chunks: AsyncIterator[bytes]) -> ScheduledStream:
        """The server has answered with 200; the chunks, with ``release`` added."""
        self._scheduler.limiter.record_success()
        return ScheduledStream(chunks, self._slot)


class ScheduledStream:
    """The chunks of an answer, and a word from its reader.

    ``release()`` is all that a reader owes beyond reading: called when the initial state is
    complete, it lets another informer begin. Who never calls it is let off when the answer ends,
    or after ``Limits.patience``.
    """

    __slots__ = ("_next", "_slot")

    def __init__(self, chunks: AsyncIterator[bytes], slot: ListSlot | None) -> None:
        self._next = chunks.__anext__
        self._slot = slot

    def __aiter__(self) -> ScheduledStream:
        return self

    def __anext__(self) -> Awaitable[bytes]:
        return self._next()

    def release(self) -> None:
        """The initial state is complete: the end mark, or the end of the last page, has come.

        It may be called more than once, and in answers that carry no initial state.
        """
        if self._slot is not None:
            self._slot.release()


def _reads_initial_list(request: AnyRequest) -> bool:
    """Whether the answer carries an initial state, or a page of one."""
    if isinstance(request, WatchRequest):
        return request.initial
    return isinstance(request, ListRequest) and not request.freshness_check


def _starts_initial_list(request: AnyRequest) -> bool:
    """Whether it is the first of those that read a state."""
    if isinstance(request, WatchRequest):
        return request.initial
    return isinstance(request, ListRequest) and not request.continue_token


async def _sleep_until(moment: float) -> None:
    await asyncio.sleep(moment - asyncio.get_running_loop().time())
