"""The listeners of one informer: registered handlers and event streams.

The registry joins each listener to the pump and the resync timer, and starts tasks of handlers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Generic

from typing_extensions import TypeVar

from aioinformer._core.delivery.mailbox import Mailbox
from aioinformer._core.delivery.overflow import Overflow
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.view import ObjectView
from aioinformer._runtime.delivery.call import current_call
from aioinformer._runtime.delivery.handler_errors import HandlerErrors
from aioinformer._runtime.delivery.handlers import (
    CompiledHandler,
    Handler,
    Method,
    compile_handler,
    compile_method,
    with_span,
    with_view,
)
from aioinformer._runtime.delivery.inline_dispatch import InlineDispatcher
from aioinformer._runtime.delivery.listener import Listener
from aioinformer._runtime.delivery.options import HandlerOptions, ListenerOptions
from aioinformer._runtime.delivery.registration import Registration
from aioinformer._runtime.informer.pump import Pump
from aioinformer._runtime.informer.resync_timer import ResyncTimer
from aioinformer._runtime.reporting.reporter import InformerReporter
from aioinformer._runtime.tasks.event_loop import check_loop
from aioinformer._runtime.tasks.sync_timeout import start_limit
from aioinformer._runtime.tasks.task_group import StrictTaskGroup
from aioinformer.errors import NotRunning, UsageError

if TYPE_CHECKING:  # for programs with streams, and for types
    from aioinformer._core.cache.protocols import ObjectCache
    from aioinformer._core.selectors.event_filter import EventFilter, Filter
    from aioinformer._runtime.delivery.streams import EventSource, EventStream

T = TypeVar("T", default=KubeObject)


class ListenerRegistry(Generic[T]):
    def __init__(
        self,
        name: str,
        pump: Pump,
        indexer: ObjectCache,
        reporter: InformerReporter,
        task_group: StrictTaskGroup,
        registrations: dict[Registration, None],
        *,
        resync: float,
        report_blocking: bool,
        describe: Callable[[], str],
    ) -> None:
        """Make a registry without listeners.

        Args:
            name: the informer's name.
            pump: delivers the events.
            indexer: holds the cached objects.
            reporter: receives failures and measurements of handlers.
            task_group: owns the tasks of handlers. Handlers that are added before the group is
                entered start with ``start_all``.
            registrations: is filled with the handlers.
            resync: seconds between two resyncs of listeners without a period of their own.
            report_blocking: True to report calls of handlers that held the event loop.
            describe: returns what the informer does now, for errors.
        """
        self._name = name
        self._pump = pump
        self._indexer = indexer
        self._reporter = reporter
        self._task_group = task_group
        self._report_blocking = report_blocking
        self._describe = describe
        self._view: ObjectView[T] | None = indexer.view
        self.resync_timer = ResyncTimer(pump, resync)
        self._dispatcher = InlineDispatcher()
        self._registrations = registrations

    # -- handlers --------------------------------------------------------------------------------

    def add_handler(self, handler: Handler[T], options: HandlerOptions) -> Registration:
        """Register ``handler``; see ``SharedInformer.add_handler``."""
        return self._register(compile_handler(handler), options)

    def add_method(self, method: Method, function: Callable[..., Awaitable[None] | None]) -> None:
        """Register a function as a handler's only method; see ``SharedInformer.on_add``."""
        self._register(compile_method(method, function), HandlerOptions())

    def _register(self, handler: CompiledHandler, options: HandlerOptions) -> Registration:
        name = f"{options.name or handler.name} of {self._name}"
        on_blocked = self._reporter.blocking_timer(name) if self._report_blocking else None
        errors = HandlerErrors(name, self._reporter.handler_failed, on_blocked)
        listener = self._make_listener(name, options, errors, concurrency=options.concurrency)
        listener.call_times.on_calls = self._reporter.handler_timer(name)
        seen = with_view(self._with_spans(handler, name), self._view)
        registration = Registration(seen, options, listener, errors, self._dispatcher)
        self._join(listener, options)
        self._registrations[registration] = None
        if self._task_group.entered:
            self._start(registration)
        return registration

    def _with_spans(self, handler: CompiledHandler, name: str) -> CompiledHandler:
        if handler.internal:
            return handler  # its owner makes spans of what the events cause
        begin = self._reporter.handler_spans(name)
        return handler if begin is None else with_span(handler, begin)

    def start_all(self) -> None:
        """Start the tasks of the handlers that were added before the task group was entered."""
        # A handler that was removed before its start has no task whose end would remove it here.
        for registration in tuple(self._registrations):
            if registration.closed:
                del self._registrations[registration]
            else:
                self._start(registration)
        self._start_resyncs()

    def _start_resyncs(self) -> None:
        """Start the resync timer when a listener first has a period. Most informers have none."""
        if self._task_group.entered and self.resync_timer.begin():
            self._task_group.start(self.resync_timer.run(), name=f"resync of {self._name}")

    def _start(self, registration: Registration) -> None:
        group = self._task_group
        task = registration.start(group.group, group.is_ending, group.fail)
        group.monitor(task)
        task.add_done_callback(lambda _: self._registrations.pop(registration, None))

    @property
    def registrations(self) -> tuple[Registration, ...]:
        """The handlers that have not been removed."""
        return tuple(each for each in self._registrations if not each.closed)

    @property
    def unfinished(self) -> tuple[Registration, ...]:
        """The handlers whose task has not ended, including removed handlers."""
        return tuple(each for each in self._registrations if each.running)

    # -- streams ---------------------------------------------------------------------------------

    def make_stream(
        self, source: EventSource, options: ListenerOptions, *, replay: bool = True
    ) -> EventStream[T]:
        """Make a stream, which joins on entering; ``replay`` delivers the cached objects first."""
        from aioinformer._runtime.delivery.streams import EventStream  # for its users alone

        name = f"stream of {self._name}"
        errors = HandlerErrors(name, self._reporter.handler_failed)
        listener = self._make_listener(name, options, errors)

        def join() -> Listener:
            self._join(listener, options, replay=replay)
            return listener

        return EventStream(source, join, self._view, self.start_limit)

    # -- any listener ----------------------------------------------------------------------------

    def _make_listener(
        self, name: str, options: ListenerOptions, errors: HandlerErrors, *, concurrency: int = 1
    ) -> Listener:
        event_filter = self._make_filter(options.filter, errors)
        return Listener(
            name,
            self.make_mailbox(options.limit, Overflow(options.overflow), event_filter),
            self._pump.gate,
            describe=self._describe,
            resync=self.resync_timer.resolve_period(options.resync),
            concurrency=concurrency,
        )

    def _make_filter(
        self, predicate: Filter[T] | None, errors: HandlerErrors
    ) -> EventFilter | None:
        if predicate is None:
            return None
        from aioinformer._core.selectors.event_filter import EventFilter  # for its users alone

        return EventFilter(predicate, errors.report_filter_exception, view=self._view)

    def make_mailbox(
        self, limit: int, overflow: Overflow, event_filter: EventFilter | None
    ) -> Mailbox:
        each = None if event_filter is None else event_filter.apply
        return Mailbox(limit=limit, overflow=overflow, holds=self._indexer.holds, event_map=each)

    def check_listener(self, event_filter: Filter[T] | None) -> None:
        """Raise as ``add_handler`` would for a handler with this filter."""
        self._make_filter(event_filter, HandlerErrors(self._name, self._reporter.handler_failed))
        self._check_can_join()

    def _check_can_join(self) -> None:
        if self._task_group.is_ending():
            raise NotRunning(f"the informer of {self._name} has ended")
        self.check_loop()

    def _join(self, listener: Listener, options: ListenerOptions, *, replay: bool = True) -> None:
        self._check_can_join()
        if options.position is not None:
            options.position.join(listener)
        self._pump.join(listener, replay=replay)
        self.resync_timer.add(listener)
        self._start_resyncs()

    def start_limit(self, timeout: float | None = None) -> AbstractAsyncContextManager[None] | None:
        """Return a context for a wait, which raises ``UsageError`` if the informer isn't started in
        time; ``None`` if it was started, or the wait has an end of its own.
        """
        if timeout is not None or self._task_group.entered:
            return None
        return start_limit(lambda: self._task_group.entered, f"informer of {self._name}")

    def check_loop(self) -> None:
        """Raise ``UsageError`` in another event loop than the informer's."""
        check_loop(self._task_group.loop, f"the informer of {self._name}")

    def check_can_wait(self) -> None:
        """Raise ``UsageError`` in a call of a handler with ``overflow="block"``, in the task that
        reads such a stream, which the informer may wait for, or in another event loop.
        """
        self.check_loop()
        call = current_call()
        listener = None if call is None else call.caller.listener
        if listener and listener.gate is self._pump.gate and listener.mailbox.overflow.blocks:
            raise UsageError(
                f"{listener.name} has overflow='block': inside a call, it can't wait for its own "
                "informer, which may be waiting for it"
            )
        if reader := self._pump.listener_read_by(asyncio.current_task()):
            raise UsageError(
                f"the {reader.name} has overflow='block': the task that reads it can't wait for "
                "its own informer, which may be waiting for that task"
            )

    def __repr__(self) -> str:
        return f"<ListenerRegistry of {self._name} listeners={len(self._pump.listeners)}>"
