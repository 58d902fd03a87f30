"""The scheduler of one client's informers: few initial lists at once, restarts one after the other.

A reflector's request waits in ``ReflectorLane.acquire`` for one of the slots for initial lists,
until a ``Retry-After`` has passed, and, if it follows a failure, for a token. Every wait is first
come, first served, and a waiter that is cancelled takes neither slot nor token along. Single
requests of the program don't wait here: the restart of many informers overloads a server.

``RequestScheduler`` knows no HTTP, so that a cluster in memory (``ClusterSource``) behaves equally.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from aioinformer._core.listwatch.rate_limit import Limits, ServerLimiter, is_server_trouble
from aioinformer._core.listwatch.reflector_requests import AnyRequest, ListRequest, WatchRequest
from aioinformer.errors import FetchError, ServerError

log = logging.getLogger("aioinformer.traffic")

PAGE_SLOT_SECONDS = 1.0
"""Seconds for which a slot is kept for the list's next page. Without this time every page would let
another list begin, and all of them would be half done at once."""


class RequestScheduler:
    """The limits that the informers of one client share. A scheduler belongs to one event loop."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.limiter = ServerLimiter(self.limits)
        self.wait_for_credentials: Callable[[float], Awaitable[bool]] | None = None
        """The wait of an open client for other credentials."""
        self.waiting = 0
        self.initial_lists = 0
        self.answers = 0
        """Answers of the server so far, whatever they were."""
        self._list_slots = asyncio.Semaphore(self.limits.lists)
        self._token_lock = asyncio.Lock()
        self._answer = asyncio.Event()
        """Set at the next answer of the server, and then replaced."""
        self._success = asyncio.Event()
        """The same, for answers that show no trouble of the server."""

    def create_lane(self) -> ReflectorLane:
        return ReflectorLane(self)

    # -- slots ---------------------------------------------------------------------------------

    async def acquire_list_slot(self) -> ListSlot:
        self.waiting += 1
        try:
            await self._list_slots.acquire()
        finally:
            self.waiting -= 1
        self.initial_lists += 1
        return ListSlot(self)

    def release_list_slot(self) -> None:
        """Free a slot. ``ListSlot.release`` calls this, once."""
        self.initial_lists -= 1
        self._list_slots.release()

    # -- Retry-After and tokens ----------------------------------------------------------------

    async def wait_permitted(self, request: AnyRequest, failures: int) -> None:
        """Wait until ``request`` may be sent.

        If the server has failed more often than the ``failures`` at the beginning of the wait, the
        request needs a token: requests that waited must not all be sent at once.
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
        # The next page, and the watch after the list, follow a success and complete its work.
        troubled = self.limiter.failing or self.limiter.failures != failures
        return troubled and _starts_initial_list(request)

    # -- answers -------------------------------------------------------------------------------

    async def wait_for_answer(self, timeout: float, *, success: bool = False) -> bool:
        """Wait until the server answers; return False if ``timeout`` seconds pass first.

        With ``success``, answers with 429 or 5xx don't count.
        """
        answer = self._success if success else self._answer
        try:
            async with asyncio.timeout(timeout):
                await answer.wait()
        except TimeoutError:
            return answer.is_set()
        return True

    def record_success(self) -> None:
        self.limiter.record_success()
        self._end_waits(success=True)

    def _end_waits(self, *, success: bool) -> None:
        self.answers += 1
        answer, self._answer = self._answer, asyncio.Event()
        answer.set()
        if success:
            answer, self._success = self._success, asyncio.Event()
            answer.set()

    def record_failure(self, error: FetchError) -> None:
        """Record that a request, or reading its response, ended with ``error``."""
        if isinstance(error, ServerError):
            self._end_waits(success=not is_server_trouble(error))
        now = asyncio.get_running_loop().time()
        was_open = self.limiter.blocked_until <= now
        self.limiter.record_failure(error, now)
        if was_open and self.limiter.blocked_until > now:
            pause = self.limiter.blocked_until - now
            log.info(
                "the server asks for a pause (Retry-After): no list or watch for %.1f s", pause
            )

    def __repr__(self) -> str:
        trouble = ", server in trouble" if self.limiter.failing else ""
        slots = f"{self.initial_lists} of {self.limits.lists} initial lists"
        return f"<RequestScheduler {slots}, {self.waiting} waiting{trouble}>"


class ReflectorLane:
    """The requests of one reflector. The pages of a list keep one slot from page to page."""

    __slots__ = ("_page_slot", "_scheduler", "_watch_slot")

    def __init__(self, scheduler: RequestScheduler) -> None:
        self._scheduler = scheduler
        self._page_slot: ListSlot | None = None
        """The slot that is kept for the next page."""
        self._watch_slot: ListSlot | None = None
        """The slot of the open WatchList."""

    @asynccontextmanager
    async def acquire(self, request: AnyRequest) -> AsyncGenerator[None]:
        """Wait until a request may be sent. Send it and read its response inside the context.

        A ``FetchError`` that leaves the context counts as a failure, wherever in the response it
        happened. A slot is freed at the end of the context, or after ``Limits.slot_timeout``.
        """
        scheduler = self._scheduler
        failures = scheduler.limiter.failures
        slot = await self._acquire_slot(request)
        try:
            await scheduler.wait_permitted(request, failures)
            if slot is not None:
                slot.release_after(scheduler.limits.slot_timeout)
            yield
        except BaseException as error:
            if slot is not None:
                slot.release()
            if isinstance(error, FetchError):
                scheduler.record_failure(error)
            raise
        self._keep_or_release(slot, request)

    def record_response(self) -> None:
        """Record that the server has answered a request with 200."""
        self._scheduler.record_success()

    @property
    def answers(self) -> int:
        """The number of answers to all informers so far."""
        return self._scheduler.answers

    async def wait_for_credentials(self, timeout: float) -> bool:
        """Wait until the client has other credentials, or ``timeout`` seconds."""
        wait = self._scheduler.wait_for_credentials
        if wait is not None:
            return await wait(timeout)
        await asyncio.sleep(timeout)
        return False

    async def wait_for_answer(self, timeout: float, *, success: bool = False) -> bool:
        """Wait until the server answers any informer. See ``RequestScheduler.wait_for_answer``."""
        return await self._scheduler.wait_for_answer(timeout, success=success)

    def release_list_slot(self) -> None:
        """Let another informer begin: the initial list of the open WatchList is complete."""
        if self._watch_slot is not None:
            self._watch_slot.release()

    async def _acquire_slot(self, request: AnyRequest) -> ListSlot | None:
        slot, self._page_slot = self._page_slot, None
        if not _reads_initial_list(request):
            if slot is not None:
                slot.release()
            return None
        if slot is None or not slot.cancel_release():
            slot = await self._scheduler.acquire_list_slot()
        if isinstance(request, WatchRequest):
            self._watch_slot = slot
        return slot

    def _keep_or_release(self, slot: ListSlot | None, request: AnyRequest) -> None:
        """Keep the slot of a page for a while: only the reflector knows if a page follows."""
        if slot is None:
            return
        if self._page_slot is None and isinstance(request, ListRequest):
            self._page_slot = slot
            slot.release_after(PAGE_SLOT_SECONDS)
        else:
            slot.release()

    def __repr__(self) -> str:
        return f"<ReflectorLane{' with a slot' if self._page_slot else ''} of {self._scheduler!r}>"


class ListSlot:
    """One of the slots for initial lists."""

    __slots__ = ("_held", "_release_timer", "_scheduler")

    def __init__(self, scheduler: RequestScheduler) -> None:
        self._scheduler = scheduler
        self._held = True
        self._release_timer: asyncio.TimerHandle | None = None

    def release_after(self, seconds: float) -> None:
        if self.cancel_release():
            self._release_timer = asyncio.get_running_loop().call_later(seconds, self.release)

    def cancel_release(self) -> bool:
        """Stop the timer of ``release_after``. Return True if the slot is still held."""
        if self._release_timer is not None:
            self._release_timer.cancel()
            self._release_timer = None
        return self._held

    def release(self) -> None:
        """Free the slot for the next waiter. Further calls do nothing."""
        if self.cancel_release():
            self._held = False
            self._scheduler.release_list_slot()

    def __repr__(self) -> str:
        return f"<ListSlot {'held' if self._held else 'released'}>"


def _reads_initial_list(request: AnyRequest) -> bool:
    if isinstance(request, WatchRequest):
        return request.initial
    return isinstance(request, ListRequest) and not request.freshness_check


def _starts_initial_list(request: AnyRequest) -> bool:
    if isinstance(request, WatchRequest):
        return request.initial
    return isinstance(request, ListRequest) and not request.continue_token


async def _sleep_until(moment: float) -> None:
    await asyncio.sleep(moment - asyncio.get_running_loop().time())
