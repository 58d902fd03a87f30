"""Who listens to an informer: the half of it that programs register handlers and streams with.

``informer`` is the other half: what is listed, watched and cached, and the tasks that do it. How
a registration calls its handler is ``handlers``', how a stream is read is ``streams``'.

Resyncs: one timer for all listeners of an informer, each with a period of its own.

A resync tells a listener the cached state once more, so that what it does about an object is done
again now and then. It asks nothing of the server. What is handed over is one sequence for all
listeners that are due, in one short step however much is cached; when its objects are told is up
to each listener, in between whatever else it does, and behind everything that is news.

The rules are client-go's (``ResyncPeriod``, ``resyncCheckPeriod`` and ``shouldResync``), except:

- A listener's period is its own. In client-go none is shorter than the informer's, all are rounded
  up to multiples of it, and 0 for the informer forbids them to everybody.
- It goes on while the server can't be reached. In client-go each attempt to list starts the timer
  anew, so that short failures starve it.
- A listener that has not been through with its last resync is not given another; client-go queues
  them up. Nor is there one for somebody before the informer's first state.
- What has changed since the resync began, or is about to be told anyway, is not told again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any, Generic, NoReturn

from typing_extensions import TypeVar

from aioinformer._core.cache.indexer import Indexer
from aioinformer._core.delivery.mailbox import LIMIT, Mailbox, Overflow, OverflowName
from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.view import ObjectSnapshot, ObjectView
from aioinformer._core.selectors.event_filter import EventFilter, Filter
from aioinformer._runtime.delivery.call import current_call
from aioinformer._runtime.delivery.handler_errors import HandlerErrors
from aioinformer._runtime.delivery.handlers import (
    CompiledHandler,
    Handler,
    OnAdd,
    OnDelete,
    OnUpdate,
    compile_handler,
    compile_method,
    with_view,
)
from aioinformer._runtime.delivery.inline_dispatch import InlineDispatcher
from aioinformer._runtime.delivery.listener import Listener
from aioinformer._runtime.delivery.options import HandlerOptions, ListenerOptions
from aioinformer._runtime.delivery.registration import Registration
from aioinformer._runtime.delivery.streams import EventStream
from aioinformer._runtime.informer.pump import Pump
from aioinformer._runtime.tasks.event_loop import check_loop
from aioinformer._runtime.tasks.task_group import StrictTaskGroup
from aioinformer.errors import NotRunning, SyncTimeout, UsageError

__all__ = ["MIN_RESYNC_PERIOD", "ListenerRegistry", "ResyncTimer"]


MIN_RESYNC_PERIOD = 1.0
"""Seconds: the least that a listener can ask for (client-go's ``minimumResyncPeriod``)."""


class ResyncTimer:
    """Tells the listeners of one pump what is cached, each when it is due."""

    def __init__(self, pump: Pump, period: float = 0.0) -> None:
        """Make a timer; ``run`` starts it.

        Args:
            pump: whose listeners are told.
            period: seconds, for listeners that don't ask for their own; 0 for never.
        """
        if not period >= 0:  # nor may it be nan
            raise ValueError(f"resync must be seconds, or 0 for never, not {period:g}")
        self._pump = pump
        self._default_period = period
        self._next_due: float | None = None
        self._rescheduled = asyncio.Event()
        self._running = False

    def resolve_period(self, requested: float | None) -> float:
        """The period of a listener that has ``requested`` for one.

        Args:
            requested: seconds; 0 for never; ``None`` for what the informer does.
        """
        if requested is None:
            return self._default_period
        if not requested >= 0:
            raise ValueError(f"resync must be seconds, or 0 for never, not {requested:g}")
        return max(requested, MIN_RESYNC_PERIOD) if requested else 0.0

    def add(self, listener: Listener) -> None:
        """A listener has joined: its first resync is due one period from now."""
        if not (listener.resync_period and self._running):
            return  # those that are there when it begins to run are found then
        due = listener.resync_due = asyncio.get_running_loop().time() + listener.resync_period
        if self._next_due is None or due < self._next_due:
            self._rescheduled.set()

    async def run(self) -> NoReturn:
        """Tell who is due, until cancelled."""
        loop = asyncio.get_running_loop()
        self._running = True
        while True:
            self._resync_due_listeners(loop.time())
            await self._wait_until_due()

    def _resync_due_listeners(self, now: float) -> None:
        """Have those told that are due, and find out who is next. Who left is forgotten."""
        due: list[Listener] = []
        self._next_due = None
        for listener in self._pump.listeners:
            if not listener.resync_period:
                continue
            if listener.resync_due is None:
                listener.resync_due = now + listener.resync_period
            elif listener.resync_due <= now:
                due.append(listener)
                listener.resync_due = now + listener.resync_period
            if self._next_due is None or listener.resync_due < self._next_due:
                self._next_due = listener.resync_due
        self._pump.resync(due)

    async def _wait_until_due(self) -> None:
        try:
            async with asyncio.timeout_at(self._next_due):
                await self._rescheduled.wait()
        except TimeoutError:
            return
        self._rescheduled.clear()

    def __repr__(self) -> str:
        return f"<ResyncTimer period={self._default_period:g} next={self._next_due}>"


T = TypeVar("T", default=KubeObject)
R = TypeVar("R", bound=Awaitable[None] | None)


class ListenerRegistry(Generic[T]):
    """Registers the listeners of one informer, and starts the tasks of its handlers."""

    def __init__(self, name: str, pump: Pump, indexer: Indexer, *, resync: float = 0.0) -> None:
        """Nobody listens yet; ``resync``: their period if they don't ask for another."""
        self.name = name
        self._pump = pump
        self._indexer = indexer
        self._view: ObjectView[T] | None = indexer.view
        self._resync_timer = ResyncTimer(pump, resync)
        self._task_group = StrictTaskGroup("informer", self._task_failed)
        self._dispatcher = InlineDispatcher()
        self._ended = False
        self._registrations: dict[Registration, None] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def add_handler(
        self,
        handler: Handler[T],
        *,
        limit: int = LIMIT,
        overflow: Overflow | OverflowName = "coalesce",
        concurrency: int = 1,
        resync: float | None = None,
        filter: Filter[T] | None = None,  # noqa: A002 - what everybody calls it
        timeout: float | None = None,
        run_in_thread: bool = False,
        drain: bool = False,
        fail_fast: bool = False,
        name: str | None = None,
    ) -> Registration:
        """Have ``handler`` called with what changes, beginning with what is cached now.

        Args:
            handler: an object with any of ``on_add(obj, *, initial)``, ``on_update(old, new, *,
                resync)``, ``on_delete(obj, *, reason)``, or a function of one event; async or
                not. One that isn't async runs in the event loop and must be quick.
            limit: live events that may be pending for it.
            overflow: what happens when more come. ``"coalesce"``: they are merged by object.
                ``"block"``: the watch isn't read until it catches up. ``"error"``: it is ended.
            concurrency: for how many objects it may be called at once, never for one twice.
            resync: seconds between two times that it is told the cached state again as
                ``Updated(resync=True)``; 0 for never; ``None`` for what the informer does.
            filter: a predicate, or a function that is true of objects to hear of. One that ceases
                to pass is ``Deleted(reason="filtered")``, one that begins to is ``Added``, one at
                which the filter raises passes, and that is reported.
            timeout: seconds that a call may take before it is cancelled. A thread can't be.
            run_in_thread: whether to call it in threads of its own, ``concurrency`` many. It may
                block, and not be async. One that hangs is left to itself, with an error, when
                the factory's ``shutdown_timeout`` is over.
            drain: whether it is to finish what is pending when the factory is left, within the
                factory's ``shutdown_timeout``; else that is dropped, as in client-go.
            fail_fast: whether an exception or a timeout of a call ends the informer and the
                factory, which raises that very exception.
            name: what to call it in logs, health and errors; the handler's own by default.

        Raises:
            NotRunning: the informer has ended.
            TypeError: ``handler`` or ``filter`` is none, an async handler with ``run_in_thread``,
                or ``limit`` or ``concurrency`` no integer.
            ValueError: a number is out of range.
            UsageError: ``filter`` is a predicate, and the informer has a ``model=``, and so no JSON
                for it to read.
        """
        options = HandlerOptions(
            limit=limit,
            overflow=overflow,
            resync=resync,
            filter=filter,
            name=name,
            concurrency=concurrency,
            timeout=timeout,
            run_in_thread=run_in_thread,
            drain=drain,
            fail_fast=fail_fast,
        )
        return self._register(compile_handler(handler), options)

    def check_bytes(self, what: str) -> None:
        """Raise unless the JSON of objects is kept; ``what`` says who wants to read it.

        Raises:
            UsageError: the informer has a ``model=``.
        """
        if self._view is not None:
            self._view.require_json(what)

    def _make_filter(
        self, predicate: Filter[T] | None, errors: HandlerErrors
    ) -> EventFilter | None:
        if predicate is None:
            return None
        return EventFilter(predicate, errors.report_filter_exception, view=self._view)

    def _register(self, handler: CompiledHandler, options: HandlerOptions) -> Registration:
        name = f"{options.name or handler.name} of {self.name}"
        errors = HandlerErrors(name, self._handler_failed)
        listener = self._make_listener(name, options, errors, concurrency=options.concurrency)
        listener.call_times.on_calls = self._metrics_callback(name)
        seen = with_view(self._add_spans(handler, name), self._view)
        registration = Registration(seen, options, listener, errors, self._dispatcher)
        self._join(listener)
        self._registrations[registration] = None
        if self._task_group.entered:
            self._start(registration)
        return registration

    def on_add(self, function: OnAdd[T, R]) -> OnAdd[T, R]:
        """Decorator: call ``function(obj, *, initial)`` for each object that is new.

        Each decorated function is a handler of its own: two of them don't wait for each other. It
        raises a TypeError if ``function`` is none.
        """
        self._register(compile_method("on_add", function), HandlerOptions())
        return function

    def on_update(self, function: OnUpdate[T, R]) -> OnUpdate[T, R]:
        """Decorator: call ``function(old, new, *, resync)`` for each change."""
        self._register(compile_method("on_update", function), HandlerOptions())
        return function

    def on_delete(self, function: OnDelete[T, R]) -> OnDelete[T, R]:
        """Decorator: call ``function(obj, *, reason)`` for each object that is gone."""
        self._register(compile_method("on_delete", function), HandlerOptions())
        return function

    def events(
        self,
        *,
        limit: int = LIMIT,
        overflow: Overflow | OverflowName = "coalesce",
        resync: float | None = None,
        filter: Filter[T] | None = None,  # noqa: A002 - what everybody calls it
    ) -> EventStream[T]:
        """A stream of what changes, beginning with what is cached when it is entered.

        Args:
            limit: live events that may be pending for it.
            overflow: what happens when more come, as for ``add_handler``. With ``"error"`` it is
                the stream that raises ``ListenerOverflow``.
            resync: as for ``add_handler``.
            filter: as for ``add_handler``.

        Raises:
            TypeError: ``filter`` is none.
            ValueError: a number is out of range.
            UsageError: as for ``add_handler``.
        """
        options = ListenerOptions(limit=limit, overflow=overflow, resync=resync, filter=filter)
        return self._make_stream(options, replay=True)

    @asynccontextmanager
    async def snapshot_and_events(
        self,
        *,
        timeout: float | None = None,
        limit: int = LIMIT,
        overflow: Overflow | OverflowName = "coalesce",
        resync: float | None = None,
    ) -> AsyncGenerator[tuple[Mapping[ObjectKey, T], EventStream[T]]]:
        """What is cached, and a stream of what follows, with nothing missing or twice in between.

        Waits for the first full state. The snapshot stays as it is. ::

            async with pods.snapshot_and_events(timeout=30) as (snapshot, events):
                ...

        Args:
            timeout: seconds to wait for the first full state; ``None`` for no limit.
            limit: as for ``events``.
            overflow: as for ``events``.
            resync: as for ``events``.

        Raises:
            SyncTimeout: there was none within that time.
            NotRunning: the informer has ended.
        """
        await self.wait_synced(timeout)
        options = ListenerOptions(limit=limit, overflow=overflow, resync=resync)
        async with self._make_stream(options, replay=False) as events:
            # Taken in the step in which the stream joined: entering it doesn't wait.
            objects: Any = MappingProxyType(self._indexer.state.objects.copy())
            yield objects if self._view is None else ObjectSnapshot(objects, self._view), events

    def _make_stream(self, options: ListenerOptions, *, replay: bool) -> EventStream[T]:
        name = f"stream of {self.name}"
        listener = self._make_listener(name, options, HandlerErrors(name, self._handler_failed))

        def join() -> Listener:
            self._join(listener, replay=replay)
            return listener

        return EventStream(self, join, self._view)

    def _make_listener(
        self, name: str, options: ListenerOptions, errors: HandlerErrors, *, concurrency: int = 1
    ) -> Listener:
        period = self._resync_timer.resolve_period(options.resync)
        event_filter = self._make_filter(options.filter, errors)
        mailbox = self._make_mailbox(options.limit, Overflow(options.overflow), event_filter)
        return Listener(
            name,
            mailbox,
            self._pump.gate,
            describe=self._describe,
            resync=period,
            concurrency=concurrency,
        )

    def _make_mailbox(
        self, limit: int, overflow: Overflow, event_filter: EventFilter | None
    ) -> Mailbox:
        each = None if event_filter is None else event_filter.apply
        return Mailbox(limit=limit, overflow=overflow, holds=self._indexer.holds, event_map=each)

    def _join(self, listener: Listener, *, replay: bool = True) -> None:
        if self._task_group.is_ending() or self._ended:
            raise NotRunning(f"the informer of {self.name} has ended")
        check_loop(self._loop, f"the informer of {self.name}")
        self._pump.join(listener, replay=replay)
        self._resync_timer.add(listener)

    @property
    def synced(self) -> bool:
        """Whether the cache has held a full state. Once true, it stays true."""
        return self._indexer.state.synced

    async def wait_synced(self, timeout: float | None = None) -> None:
        """Wait for ``synced``.

        Args:
            timeout: seconds.

        Raises:
            SyncTimeout: not within that time; it says why.
            NotRunning: the informer ended before.
            UsageError: it is called by a handler of this informer that has ``overflow="block"``.
        """
        self._check_not_in_handler()
        try:
            async with asyncio.timeout(timeout):
                await self._pump.synced.wait()
        except TimeoutError:
            raise SyncTimeout(timeout or 0.0, {self.name: self._describe()}) from None
        if not self.synced:
            raise NotRunning(f"the informer of {self.name} ended before it was synced")

    @property
    def registrations(self) -> tuple[Registration, ...]:
        """The handlers that have not been removed."""
        return tuple(each for each in self._registrations if not each.closed)

    @property
    def unfinished(self) -> tuple[Registration, ...]:
        """The handlers whose task has yet to end, those that were removed included."""
        return tuple(each for each in self._registrations if each.running)

    def _start(self, registration: Registration) -> None:
        task = registration.start(
            self._task_group.group, self._task_group.is_ending, self._task_group.fail
        )
        self._task_group.monitor(task)
        task.add_done_callback(lambda _: self._registrations.pop(registration, None))

    def _task_failed(self, error: BaseException) -> None:
        """One of the tasks has failed, and so all of them end."""

    def _handler_failed(self, listener: str, error: Exception) -> None:
        """A handler raised, timed out or overflowed, and that was logged and counted."""

    def _metrics_callback(self, listener: str) -> Callable[[float, int], None] | None:
        """Who wants to know how long the calls of a handler take, if anybody does."""
        return None

    def _add_spans(self, handler: CompiledHandler, name: str) -> CompiledHandler:
        """The handler, or what calls it inside a span, if somebody makes spans of its calls."""
        return handler

    def _check_not_in_handler(self, *, synced: bool = True) -> None:
        """Raise if this would wait inside a call of a handler that the informer may wait for.
        If it is for the first state only (``synced``), there is nothing to wait for behind it.

        Raises:
            UsageError: it is one with ``overflow="block"``, or the reader of such a stream.
        """
        if self.synced and synced:
            return
        call = current_call()
        listener = None if call is None else call.caller.listener
        if listener and listener.gate is self._pump.gate and listener.mailbox.overflow.blocks:
            raise UsageError(
                f"{listener.name} has overflow='block': inside a call, it can't wait for its own "
                "informer, which may be waiting for it"
            )
        if reader := self._pump.listener_read_by(asyncio.current_task()):
            raise UsageError(
                f"the {reader.name} has overflow='block': who reads it can't wait for its own "
                "informer, which may be waiting for them"
            )

    def _describe(self) -> str:
        """What the informer does now, for errors of those who wait."""
        return self.name
