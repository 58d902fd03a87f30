"""Informers and a factory with one planted bug each in the service of listeners."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from inspect import isfunction
from typing import Any

from aioinformer import Deleted, Event, Handler, KubeObject, SharedInformer, SharedInformerFactory
from aioinformer._core.delivery.key_concurrency import KeyConcurrency
from aioinformer._core.delivery.mailbox import Mailbox, Overflow, OverflowName
from aioinformer._core.delivery.replay import EventMap
from aioinformer._core.selectors.event_filter import Filter
from aioinformer._core.selectors.predicates import ChangePredicate
from aioinformer._runtime.delivery.inline_dispatch import InlineDispatcher
from aioinformer._runtime.delivery.registration import Registration
from aioinformer._runtime.delivery.streams import EventStream
from aioinformer._runtime.informer.pipeline import InformerPipeline
from aioinformer.errors import ListenerOverflow
from tests.simulation.listeners import FilterFailed, SimulatedListener
from tests.simulation.probes import replace_attribute


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


class IgnoresKeyOrder(SharedInformer):
    """Calls a handler for one key twice at once, and for any number of keys."""

    def add_handler(self, handler: Handler, **options: Any) -> Registration:
        registration = super().add_handler(handler, **options)
        if options["concurrency"] > 1:
            unbounded = UnboundedKeyConcurrency(options["concurrency"])
            replace_attribute(registration.listener, "in_flight", unbounded)
        return registration


class NeverTimesOut(SharedInformer):
    """Ignores the timeouts of calls."""

    def add_handler(self, handler: Handler, **options: Any) -> Registration:
        options["timeout"] = None
        return super().add_handler(handler, **options)


class StopsAfterCancelledError(SharedInformer):
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


class ClosesWithoutDraining(SharedInformer):
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


def drop_inline_handlers(pipeline: InformerPipeline) -> None:
    """Give an informer rounds that forget handlers."""
    replace_attribute(pipeline.listeners, "_dispatcher", DroppingInlineDispatcher())


class StopsAfterSelfCancellation(SharedInformer):
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


def hide_overflows(pipeline: InformerPipeline) -> None:
    """Don't report that a handler was ended."""
    handler_failed = pipeline.reporter.handler_failed

    def hide_overflow(listener: str, error: Exception) -> None:
        if not isinstance(error, ListenerOverflow):
            handler_failed(listener, error)

    replace_attribute(pipeline.reporter, "handler_failed", hide_overflow)


class OverflowsEarly(Mailbox):
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


class DropsFilteredDeletions(Mailbox):
    """Doesn't deliver that an object no longer passes the filter."""

    def __init__(self, *, event_map: EventMap | None = None, **options: Any) -> None:
        forgetful = event_map and _without_filtered_deletions(event_map)
        super().__init__(event_map=forgetful, **options)


class IgnoresFilters(Mailbox):
    """Delivers every event to every listener."""

    def __init__(self, *, event_map: EventMap | None = None, **options: Any) -> None:
        super().__init__(**options)


class IgnoresChangePredicates(SharedInformer):
    """Ignores filters of changes."""

    def add_handler(self, handler: Handler, **options: Any) -> Registration:
        if isinstance(options["filter"], ChangePredicate):
            options["filter"] = None
        return super().add_handler(handler, **options)


class DropsSecondChanges(SharedInformer):
    """Doesn't deliver a change that comes soon after another."""

    def add_handler(self, handler: Handler, **options: Any) -> Registration:
        passing = options["filter"]
        if isinstance(passing, ChangePredicate):

            def forgetful(old: KubeObject, new: KubeObject) -> bool:
                return int(new.resource_version) % 3 > 0 and passing(old, new)

            options["filter"] = ChangePredicate(forgetful)
        return super().add_handler(handler, **options)


class RejectsOnFilterError(SharedInformer):
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


class IgnoresListenerResync(SharedInformer):
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


class LosesEventOnCancellation(SharedInformer):
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
