"""Handlers: a task each, that takes events from a mailbox and calls the program's code.

A handler is an object with any of ``on_add(obj, *, initial)``, ``on_update(old, new, *,
resync)``, ``on_delete(obj, *, reason)``, or a function of one event; ``async`` or not. Calls of
one handler come one after the other. What it raises is logged under its name and counted, and
the next event follows; a CancelledError too, unless it is the informer that ends.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextvars import Context, copy_context
from dataclasses import replace
from inspect import isawaitable
from typing import Any, Protocol, TypeAlias, TypeVar

from aioinformer._core.mailbox import Mailbox
from aioinformer._core.objects import Added, Deleted, DeleteReason, Event, KubeObject, Updated
from aioinformer._runtime.affinity import check_loop
from aioinformer._runtime.listeners import Gate, Listener, Statistics
from aioinformer._runtime.pace import Pace
from aioinformer.errors import ObjectDecodeError, ShutdownIncomplete

__all__ = [
    "Handler",
    "HandlesAdd",
    "HandlesDelete",
    "HandlesUpdate",
    "OnAdd",
    "OnDelete",
    "OnUpdate",
    "Registration",
    "adds_only",
    "deletions_only",
    "handler_name",
    "updates_only",
]

log = logging.getLogger("aioinformer.handlers")


QUIET = 1.0
"""Seconds between two tracebacks of one handler; in between, a failure is one line. One with a
wrong signature raises at each of 100,000 objects."""


class HandlesAdd(Protocol):
    """Hears of objects that are new to it."""

    def on_add(self, obj: KubeObject, /, *, initial: bool) -> Awaitable[None] | None:
        """``initial``: it was cached when this handler joined."""
        ...


class HandlesUpdate(Protocol):
    """Hears of objects that have changed."""

    def on_update(
        self, old: KubeObject, new: KubeObject, /, *, resync: bool
    ) -> Awaitable[None] | None:
        """``resync``: nothing has changed, this is the state told again."""
        ...


class HandlesDelete(Protocol):
    """Hears of objects that are gone."""

    def on_delete(self, obj: KubeObject, /, *, reason: DeleteReason) -> Awaitable[None] | None:
        """``obj`` is the last known state."""
        ...


class OnAdd(Protocol):
    """A function for ``SharedInformer.on_add``."""

    def __call__(self, obj: KubeObject, /, *, initial: bool) -> Awaitable[None] | None:
        """As ``HandlesAdd.on_add``."""
        ...


class OnUpdate(Protocol):
    """A function for ``SharedInformer.on_update``."""

    def __call__(
        self, old: KubeObject, new: KubeObject, /, *, resync: bool
    ) -> Awaitable[None] | None:
        """As ``HandlesUpdate.on_update``."""
        ...


class OnDelete(Protocol):
    """A function for ``SharedInformer.on_delete``."""

    def __call__(self, obj: KubeObject, /, *, reason: DeleteReason) -> Awaitable[None] | None:
        """As ``HandlesDelete.on_delete``."""
        ...


Handler: TypeAlias = (
    HandlesAdd | HandlesUpdate | HandlesDelete | Callable[[Event], Awaitable[None] | None]
)
"""What can be given to ``add_handler``."""

_Call: TypeAlias = Callable[[Event], Any]
F = TypeVar("F", bound=Callable[[Event], Awaitable[None] | None])


class Registration(Listener):
    """One handler of one informer. ``SharedInformer.add_handler`` makes them."""

    def __init__(
        self,
        handler: Handler,
        name: str,
        mailbox: Mailbox,
        gate: Gate,
        *,
        why: Callable[[], str] | None = None,
    ) -> None:
        """Register ``handler``, to run in a copy of the current context."""
        super().__init__(name, mailbox, gate, why=why)
        self._call = _dispatch(handler)
        self._context: Context = copy_context()
        self._errors = 0
        self._task: asyncio.Task[None] | None = None
        self._ending: Callable[[], bool] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._traced_at = float("-inf")

    def start(
        self, group: asyncio.TaskGroup, ending: Callable[[], bool] | None = None
    ) -> asyncio.Task[None]:
        """Start to call the handler.

        Args:
            group: what owns the task.
            ending: whether a cancellation is meant: a handler may cancel the task that it runs
                in. By default every one is.
        """
        self._ending = ending
        self._loop = asyncio.get_running_loop()
        self._task = group.create_task(self._run(), name=self.name, context=self._context)
        return self._task

    async def _run(self) -> None:
        task = asyncio.current_task()
        pace = Pace()
        while True:
            event = self.next_nowait()
            if event is None:
                event = await self.next()
                pace.rested()
            if event is None or self._closed:
                return
            unfinished = self._begin(event)
            if unfinished is not None:
                await self._finish(event, unfinished)
                if task is not None and task.cancelling() and self._asked_to_end(task):
                    return  # the handler swallowed it, and a task group asks only once
            if pace.due:
                await pace.breathe()

    def _begin(self, event: Event) -> Awaitable[None] | None:
        """Call the handler; what is left to await, if it is async."""
        try:
            result: Awaitable[None] | None = self._call(event)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - a program's code
            self._failed(event, error)
            return None
        # Functions that aren't async mostly return None, and isawaitable is slow to reject it.
        return result if result is not None and isawaitable(result) else None

    async def _finish(self, event: Event, unfinished: Awaitable[None]) -> None:
        try:
            await unfinished
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - a program's code
            self._failed(event, error)

    def _failed(self, event: Event, error: BaseException) -> None:
        """Log and count what the handler raised, unless it is this task being told to end."""
        if isinstance(error, asyncio.CancelledError):
            task = asyncio.current_task()
            if task is None or self._asked_to_end(task):
                raise error
        if isinstance(error, ObjectDecodeError):  # the server's doing, not the handler's
            log.error("handler %s: %s", self.name, error)
            return
        self._errors += 1
        now = asyncio.get_running_loop().time()
        in_full = now - self._traced_at >= QUIET
        self._traced_at = now if in_full else self._traced_at
        log.error(
            "handler %s raised at %s of %r: %s",
            self.name,
            type(event).__name__,
            event.obj,
            f"{type(error).__name__}: {error}",
            exc_info=error if in_full else None,
        )

    def _asked_to_end(self, task: asyncio.Task[Any]) -> bool:
        """Whether a cancellation came from outside. One that the handler made is undone."""
        if task.cancelling() and (self._ending is None or self._ending()):
            return True
        while task.cancelling():
            task.uncancel()
        return False

    # -- the program's side --------------------------------------------------------------------

    def remove(self) -> None:
        """Hear no more. Returns at once: the call in flight, if any, goes on to its end; what
        is pending is dropped. May be called from the handler, and more than once.
        """
        check_loop(self._loop, self.name)
        self.close(drop=True)

    async def aclose(self, timeout: float | None = None) -> None:
        """``remove``, and wait for the call in flight; from inside that call, don't wait.

        Args:
            timeout: seconds.

        Raises:
            ShutdownIncomplete: the call has not ended within that time.
        """
        self.remove()
        if self._task is not None and self._task is not asyncio.current_task():
            await asyncio.wait({self._task}, timeout=timeout)
            if self.running:
                raise ShutdownIncomplete((self.name,), waited=timeout or 0.0)

    @property
    def running(self) -> bool:
        """Whether its task has yet to end."""
        return self._task is not None and not self._task.done()

    def statistics(self) -> Statistics:
        """Its numbers now."""
        return replace(super().statistics(), errors=self._errors)


def handler_name(handler: object) -> str:
    """What to call a handler in logs: its function's name, or its class's."""
    name = getattr(handler, "__qualname__", None) or type(handler).__qualname__
    return str(name).replace("<locals>.", "")


def adds_only(function: OnAdd) -> Callable[[Event], Awaitable[None] | None]:
    """A handler that calls ``function`` for additions."""

    def on_event(event: Event) -> Awaitable[None] | None:
        return function(event.obj, initial=event.initial) if isinstance(event, Added) else None

    return _named(on_event, function)


def updates_only(function: OnUpdate) -> Callable[[Event], Awaitable[None] | None]:
    """A handler that calls ``function`` for updates."""

    def on_event(event: Event) -> Awaitable[None] | None:
        if not isinstance(event, Updated):
            return None
        return function(event.old, event.new, resync=event.resync)

    return _named(on_event, function)


def deletions_only(function: OnDelete) -> Callable[[Event], Awaitable[None] | None]:
    """A handler that calls ``function`` for deletions."""

    def on_event(event: Event) -> Awaitable[None] | None:
        return function(event.obj, reason=event.reason) if isinstance(event, Deleted) else None

    return _named(on_event, function)


def _named(on_event: F, function: object) -> F:
    on_event.__qualname__ = handler_name(function)
    return on_event


def _dispatch(handler: Handler) -> _Call:
    """One function of an event for whatever form the handler has."""
    if isinstance(handler, type):
        raise TypeError(f"a handler is an object: pass {handler.__name__}(), not the class")
    on_add = getattr(handler, "on_add", None)
    on_update = getattr(handler, "on_update", None)
    on_delete = getattr(handler, "on_delete", None)
    if not (on_add or on_update or on_delete):
        if not callable(handler):
            raise TypeError(
                f"a handler has on_add, on_update or on_delete, or is a function of one event; "
                f"{type(handler).__name__} is neither"
            )
        return handler

    def call(event: Event) -> Any:
        match event:
            case Added(obj, initial):
                return on_add(obj, initial=initial) if on_add else None
            case Updated(old, new, resync):
                return on_update(old, new, resync=resync) if on_update else None
            case Deleted(obj, reason):
                return on_delete(obj, reason=reason) if on_delete else None

    return call
