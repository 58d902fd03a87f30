"""Informers and a factory with one planted bug each in the service of listeners."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from inspect import isfunction
from typing import Any

from aioinformer import Deleted, Event, Handler, KubeObject, SharedInformer, SharedInformerFactory
from aioinformer._core.delivery.key_concurrency import KeyConcurrency
from aioinformer._core.delivery.mailbox import Overflow, OverflowName
from aioinformer._core.delivery.replay import EventMap
from aioinformer._core.selectors.event_filter import Filter
from aioinformer._core.selectors.predicates import ChangePredicate
from aioinformer._runtime.delivery.inline_dispatch import InlineDispatcher
from aioinformer._runtime.delivery.registration import Registration
from aioinformer._runtime.delivery.streams import EventStream
from aioinformer._runtime.reflector.lister_watcher import ListerWatcher
from aioinformer.errors import ListenerOverflow
from tests.simulation.listeners import FilterFailed, SimulatedListener
from tests.simulation.plan import InformerSpec
from tests.simulation.probes import ObservedInformer, ObservedMailbox, replace_attribute
from tests.simulation.records import History


async def await_handler(handler: SimulatedListener, event: Event) -> None:
    """Call a handler that may be a plain function."""
    rest = handler(event)
    if rest is not None:
        await rest


# -- calls -------------------------------------------------------------------------------------


class UnboundedKeyConcurrency(KeyConcurrency):
    """Takes every key for a key without a call in flight."""

    def start(self, event: Event) -> bool:
        return True

    def finish(self, event: Event) -> Event | None:
        return None


class IgnoresKeyOrder(ObservedInformer):
    """Calls a handler for one key twice at once, and for any number of keys."""

    def add_handler(self, handler: Handler, **options: Any) -> Registration:
        registration = super().add_handler(handler, **options)
        if options["concurrency"] > 1:
            unbounded = UnboundedKeyConcurrency(options["concurrency"])
            replace_attribute(registration.listener, "in_flight", unbounded)
        return registration


class NeverTimesOut(ObservedInformer):
    """Ignores the timeouts of calls."""

    def add_handler(self, handler: Handler, **options: Any) -> Registration:
        options["timeout"] = None
        return super().add_handler(handler, **options)


class StopsAfterCancelledError(ObservedInformer):
    """Takes a CancelledError for the end of a handler."""

    def add_handler(self, handler: Handler, **options: Any) -> Registration:
        assert isinstance(handler, SimulatedListener)

        async def fragile(event: Event) -> None:
            try:
                await await_handler(handler, event)
            except asyncio.CancelledError:
                registration.remove()
                raise

        fragile.__qualname__ = handler.spec.name
        registration = super().add_handler(fragile, **options)
        return registration


class ClosesWithoutDraining(ObservedInformer):
    """Doesn't wait for the calls in flight."""

    def add_handler(self, handler: Handler, **options: Any) -> Registration:
        registration = super().add_handler(handler, **options)

        async def aclose(timeout: float | None = None, *, drain: bool | None = None) -> None:
            registration.remove()

        registration.aclose = aclose  # type: ignore[method-assign]
        return registration


class DroppingInlineDispatcher(InlineDispatcher):
    """Forgets the handlers for which a round has no time."""

    def _run(self) -> None:
        super()._run()
        self.scheduled.clear()


class DropsInlineHandlers(ObservedInformer):
    """Has rounds that forget handlers."""

    def __init__(self, source: ListerWatcher, spec: InformerSpec, history: History) -> None:
        super().__init__(source, spec, history)
        replace_attribute(self._listeners, "_dispatcher", DroppingInlineDispatcher())


class StopsAfterSelfCancellation(ObservedInformer):
    """Lets a plain handler that has cancelled its own task end with it, silently."""

    def add_handler(self, handler: Handler, **options: Any) -> Registration:
        assert isinstance(handler, SimulatedListener)

        def fragile(event: Event) -> Awaitable[None] | None:
            rest = handler(event)
            task = asyncio.current_task()
            if rest is None and task is not None and task.cancelling():
                registration.remove()
            return rest

        fragile.__qualname__ = handler.spec.name
        registration = super().add_handler(fragile, **options)
        return registration


# -- overflow ----------------------------------------------------------------------------------


class HidesOverflows(ObservedInformer):
    """Doesn't report that a handler was ended."""

    def __init__(self, source: ListerWatcher, spec: InformerSpec, history: History) -> None:
        super().__init__(source, spec, history)
        handler_failed = self._reporter.handler_failed

        def hide_overflow(listener: str, error: Exception) -> None:
            if not isinstance(error, ListenerOverflow):
                handler_failed(listener, error)

        replace_attribute(self._reporter, "handler_failed", hide_overflow)


class OverflowsEarly(ObservedMailbox):
    """Overflows although there is room."""

    def put(self, events: Sequence[Event], at: float = 0.0) -> bool:
        came = super().put(events, at)
        if self.overflow == "error" and self.pending > self.limit // 2:
            self.overflowed = True
        return came


# -- filters, periods, streams -----------------------------------------------------------------


def _without_filtered_deletions(each: EventMap) -> EventMap:
    def one(event: Event) -> Event | None:
        delivered = each(event)
        return (
            None if isinstance(delivered, Deleted) and delivered.reason == "filtered" else delivered
        )

    return one


class DropsFilteredDeletions(ObservedInformer):
    """Doesn't deliver that an object no longer passes the filter."""

    def make_mailbox(
        self, limit: int, overflow: Overflow, each: EventMap | None
    ) -> ObservedMailbox:
        return super().make_mailbox(limit, overflow, each and _without_filtered_deletions(each))


class IgnoresFilters(ObservedInformer):
    """Delivers every event to every listener."""

    def make_mailbox(
        self, limit: int, overflow: Overflow, each: EventMap | None
    ) -> ObservedMailbox:
        return super().make_mailbox(limit, overflow, None)


class IgnoresChangePredicates(ObservedInformer):
    """Ignores filters of changes."""

    def add_handler(self, handler: Handler, **options: Any) -> Registration:
        if isinstance(options["filter"], ChangePredicate):
            options["filter"] = None
        return super().add_handler(handler, **options)


class DropsSecondChanges(ObservedInformer):
    """Doesn't deliver a change that comes soon after another."""

    def add_handler(self, handler: Handler, **options: Any) -> Registration:
        passing = options["filter"]
        if isinstance(passing, ChangePredicate):

            def forgetful(old: KubeObject, new: KubeObject) -> bool:
                return int(new.resource_version) % 3 > 0 and passing(old, new)

            options["filter"] = ChangePredicate(forgetful)
        return super().add_handler(handler, **options)


class RejectsOnFilterError(ObservedInformer):
    """Filters out an object at which a filter raises."""

    def add_handler(self, handler: Handler, **options: Any) -> Registration:
        passing = options["filter"]
        if isfunction(passing):

            def careful(obj: KubeObject) -> bool:
                try:
                    return bool(passing(obj))
                except FilterFailed:
                    return False

            options["filter"] = careful
        return super().add_handler(handler, **options)


class IgnoresListenerResync(ObservedInformer):
    """Ignores the resync periods of listeners."""

    def add_handler(self, handler: Handler, **options: Any) -> Registration:
        options["resync"] = None
        return super().add_handler(handler, **options)

    def events(
        self,
        *,
        limit: int = 1024,
        overflow: Overflow | OverflowName = "coalesce",
        resync: float | None = None,
        filter: Filter | None = None,  # noqa: A002 - its name
    ) -> EventStream:
        return super().events(limit=limit, overflow=overflow, filter=filter)


class YieldingStream(EventStream):
    """Yields to the loop between taking an event and returning it."""

    async def __anext__(self) -> Event:
        event = await super().__anext__()
        await asyncio.sleep(0.001)
        return event


class LosesEventOnCancellation(ObservedInformer):
    """Has streams that yield with an event."""

    def events(self, **options: Any) -> EventStream:
        stream = super().events(**options)
        stream.__class__ = YieldingStream
        return stream


# -- the end -----------------------------------------------------------------------------------


class NeverDrains(SharedInformerFactory):
    """Discards pending events when it is left."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        options["shutdown_timeout"] = 0.001
        super().__init__(*arguments, **options)


class IgnoresFailFast(SharedInformerFactory):
    """Goes on after an error of a handler with ``fail_fast``."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        used: Callable[..., AbstractAsyncContextManager[SharedInformer]] = self.use

        @asynccontextmanager
        async def use(*arguments: Any) -> AsyncGenerator[SharedInformer]:
            async with used(*arguments) as informer:
                add = informer.add_handler

                def add_handler(handler: Handler, **terms: Any) -> Registration:
                    terms["fail_fast"] = False
                    registration: Registration = add(handler, **terms)
                    return registration

                replace_attribute(informer, "add_handler", add_handler)
                yield informer

        replace_attribute(self, "use", use)
