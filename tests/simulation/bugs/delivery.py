"""The planted bugs of mailboxes, handlers, streams and factories: the name of each says what."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from inspect import isfunction
from itertools import chain, count, islice
from typing import Any
from weakref import WeakKeyDictionary

from aioinformer import Added, Event, KubeObject, SharedInformer, SharedInformerFactory, Updated
from aioinformer._core.delivery.key_concurrency import KeyConcurrency
from aioinformer._core.delivery.mailbox import Mailbox
from aioinformer._core.selectors.event_filter import EventFilter
from aioinformer._core.selectors.predicates import ChangePredicate
from aioinformer._runtime.delivery.inline_dispatch import InlineDispatcher
from aioinformer._runtime.delivery.listener import Listener
from aioinformer._runtime.delivery.registration import Registration
from aioinformer._runtime.delivery.streams import EventStream
from aioinformer._runtime.reporting.reporter import InformerReporter
from aioinformer.errors import ListenerOverflow
from tests.simulation.bugs.planted_bug import Original, other_options, planted_bug, planted_bugs
from tests.simulation.filters import FilterFailed
from tests.simulation.listeners import HandlerRaised, SimulatedListener

# -- mailboxes ---------------------------------------------------------------------------------


@planted_bug(Mailbox, "put", promises={1, 2})
def overflow_drops(put: Original, box: Mailbox, events: Sequence[Event], at: float = 0.0) -> Any:
    return put(box, events[: max(0, box.limit // 2 - box.pending)], at)


@planted_bug(Mailbox, "put", promises={8})
def an_overflow_is_none(
    put: Original, box: Mailbox, events: Sequence[Event], at: float = 0.0
) -> Any:
    """Overflow although there is room."""
    came = put(box, events, at)
    if box.overflow == "error" and box.pending > box.limit // 2:
        box.overflowed = True
    return came


@planted_bug(Mailbox, "free", promises={8})
def mailboxes_grow(free: Original, box: Mailbox) -> Any:
    return free(box) + 5


@planted_bug(Mailbox, "resync", promises={8})
def resyncs_pile_up(
    _: Original, box: Mailbox, objects: Iterable[KubeObject], current: Callable[[KubeObject], bool]
) -> Any:
    box.put_relist([[Updated(obj, obj, resync=True) for obj in objects]])
    return True


@planted_bug(Mailbox, "replay", promises={1, 2, 5})
def a_replay_has_gaps(
    replay: Original, box: Mailbox, objects: Iterable[KubeObject], *args: Any, **options: Any
) -> Any:
    return replay(box, islice(objects, 1, None), *args, **options)


@planted_bug(Mailbox, "replay", promises={5})
def a_replay_has_doubles(
    replay: Original, box: Mailbox, objects: Iterable[KubeObject], *args: Any, **options: Any
) -> Any:
    found = list(objects)
    return replay(box, [*found, *found[:1]], *args, **options)


@planted_bug(Mailbox, "put_relist", promises={4})
def unchanged_objects_are_delivered(
    put: Original,
    box: Mailbox,
    batches: Sequence[Sequence[Event]],
    at: float = 0.0,
    *,
    initial: bool = False,
    scope: str | None = None,
) -> Any:
    events = chain.from_iterable(batches)
    changed = [event.obj for event in events if not initial and isinstance(event, Added)]
    again = [[Updated(obj, obj) for obj in changed]] if changed else []
    return put(box, [*batches, *again], at, initial=initial, scope=scope)


@planted_bug(Mailbox, "pop", promises={6})
def a_listener_is_synced_early(pop: Original, box: Mailbox) -> Any:
    """Count the last initial object as handled when it is delivered."""
    event = pop(box)
    box.synced = box.synced or event is not None
    return event


# -- handlers ----------------------------------------------------------------------------------


def _replace_handler(
    handler: Any, call: Callable[[SimulatedListener, Event], Any], *, plain: bool = False
) -> Any:
    """Return a handler that awaits ``call``, unless ``handler`` is that of a visit."""
    if not isinstance(handler, SimulatedListener):
        return handler

    async def replaced(event: Event) -> None:
        await call(handler, event)

    def replaced_plainly(event: Event) -> Any:
        return call(handler, event)

    made = replaced_plainly if plain else replaced
    made.__qualname__ = handler.spec.name
    return made


async def _await_handler(handler: SimulatedListener, event: Event) -> None:
    """Call a handler that may be a plain function."""
    rest = handler(event)
    if rest is not None:
        await rest


@planted_bug(SharedInformer, "add_handler", promises={7})
def errors_are_not_counted(add: Original, informer: Any, handler: Any, **options: Any) -> Any:
    async def quiet(handler: SimulatedListener, event: Event) -> None:
        try:
            await _await_handler(handler, event)
        except HandlerRaised:
            return

    return add(informer, _replace_handler(handler, quiet), **options)


_TURNS = WeakKeyDictionary[Any, asyncio.Lock]()
"""The lock that the handlers of each informer share."""


@planted_bug(SharedInformer, "add_handler", promises={2, 7})
def handlers_wait_for_each_other(add: Original, informer: Any, handler: Any, **options: Any) -> Any:
    # A call whose timeout ends while it waits for the others never begins.
    turn = _TURNS.setdefault(informer, asyncio.Lock())

    async def in_turn(handler: SimulatedListener, event: Event) -> None:
        async with turn:
            await _await_handler(handler, event)

    return add(informer, _replace_handler(handler, in_turn), **options)


@planted_bug(KeyConcurrency, "start", promises={2, 6, 9})
def a_busy_key_is_called_for(_: Original, keys: KeyConcurrency, event: Event) -> Any:
    return True  # no key is busy then, so that an orderly end doesn't wait for calls, either


@a_busy_key_is_called_for.also(KeyConcurrency, "finish")
def _(_: Original, keys: KeyConcurrency, event: Event) -> Any:
    return None


calls_outlast_their_time = other_options(
    "calls outlast their time", SharedInformer, "add_handler", {7}, timeout=None
)


@planted_bug(SharedInformer, "add_handler", promises={1, 9})
def a_cancelled_call_is_the_end(add: Original, informer: Any, handler: Any, **options: Any) -> Any:
    async def fragile(handler: SimulatedListener, event: Event) -> None:
        try:
            await _await_handler(handler, event)
        except asyncio.CancelledError:
            registration.remove()
            raise

    registration = add(informer, _replace_handler(handler, fragile), **options)
    return registration


@planted_bug(SharedInformer, "add_handler", promises={1, 9})
def a_cancelled_task_takes_its_handler(
    add: Original, informer: Any, handler: Any, **options: Any
) -> Any:
    """Let a plain handler that has cancelled its own task end with it, silently."""

    def fragile(handler: SimulatedListener, event: Event) -> Any:
        rest, task = handler(event), asyncio.current_task()
        if rest is None and task is not None and task.cancelling():
            registration.remove()
        return rest

    registration = add(informer, _replace_handler(handler, fragile, plain=True), **options)
    return registration


@planted_bug(Registration, "aclose", promises={9})
async def aclose_does_not_wait_for_calls(
    _: Original, registration: Registration, *args: Any, **options: Any
) -> None:
    registration.remove()


@planted_bug(InlineDispatcher, "_run", promises={1, 5, 7, 9})
def a_round_is_cut_short(run: Original, dispatcher: InlineDispatcher) -> Any:
    """Forget the handlers for which a round has no time."""
    run(dispatcher)
    dispatcher.scheduled.clear()


@planted_bug(InformerReporter, "handler_failed", promises={8})
def an_overflow_is_not_reported(
    report: Original, reporter: InformerReporter, listener: str, error: Exception
) -> Any:
    if not isinstance(error, ListenerOverflow):
        report(reporter, listener, error)


@planted_bug(Listener, "ended", promises={1, 2, 9})
def a_draining_handler_loses_its_last_event(ended: Original, listener: Listener) -> Any:
    return listener.closed and listener.mailbox.pending <= 1


# -- filters, periods, streams -----------------------------------------------------------------


@planted_bug(EventFilter, "apply", promises={1, 2})
def leaving_is_not_delivered(apply: Original, event_filter: EventFilter, event: Event) -> Any:
    """Don't deliver that an object no longer passes the filter."""
    delivered: Any = apply(event_filter, event)
    filtered = getattr(delivered, "reason", "") == "filtered"
    return None if filtered else delivered


@planted_bug(EventFilter, "apply", promises={2})
def filters_are_ignored(_: Original, event_filter: EventFilter, event: Event) -> Any:
    return event


@planted_bug(SharedInformer, "add_handler", promises={2})
def every_change_is_delivered(add: Original, informer: Any, handler: Any, **options: Any) -> Any:
    if isinstance(options.get("filter"), ChangePredicate):
        options["filter"] = None
    return add(informer, handler, **options)


@planted_bug(SharedInformer, "add_handler", promises={1, 2})
def some_changes_are_not_delivered(
    add: Original, informer: Any, handler: Any, **options: Any
) -> Any:
    passing = options.get("filter")
    if isinstance(passing, ChangePredicate):

        def forgetful(old: KubeObject, new: KubeObject) -> bool:
            return int(new.resource_version) % 3 > 0 and passing(old, new)

        options["filter"] = ChangePredicate(forgetful)
    return add(informer, handler, **options)


@planted_bug(SharedInformer, "add_handler", promises={1, 2, 5, 6, 7})
def a_filter_hides(add: Original, informer: Any, handler: Any, **options: Any) -> Any:
    """Filter out an object at which a filter raises."""
    passing = options.get("filter")
    if isfunction(passing):

        def careful(obj: KubeObject) -> bool:
            try:
                return bool(passing(obj))
            except FilterFailed:
                return False

        options["filter"] = careful
    return add(informer, handler, **options)


handlers_have_no_resync_period = other_options(
    "handlers have no resync period", SharedInformer, "add_handler", {2, 9}, resync=None
)


streams_have_no_resync_period = other_options(
    "streams have no resync period", SharedInformer, "events", {2, 9}, resync=None
)


@planted_bug(EventStream, "__anext__", promises={1, 2, 5})
async def a_cancelled_wait_loses_an_event(next_event: Original, stream: Any) -> Any:
    event = await next_event(stream)
    await asyncio.sleep(0.001)
    return event


# -- the end -----------------------------------------------------------------------------------


a_fatal_failure_is_none = other_options(
    "a fatal failure is none", SharedInformer, "add_handler", {7}, fail_fast=False
)


nothing_is_drained = other_options(
    "nothing is drained", SharedInformerFactory, "__init__", {9}, shutdown_timeout=0.001
)


@planted_bug(SharedInformer, "run", promises={9})
async def a_task_is_left(run: Original, informer: Any, **options: Any) -> None:
    informer.stray = asyncio.create_task(asyncio.sleep(1e7), name="stray")
    await run(informer, **options)


@planted_bug(SharedInformer, "wait_synced", promises={9})
async def a_wait_does_not_end(wait: Original, informer: Any, *args: Any, **options: Any) -> None:
    await wait(informer, *args, **options)
    await asyncio.Event().wait()


@planted_bug(SharedInformer, "wait_synced")
async def a_wait_never_sleeps(_: Original, informer: Any, *args: Any, **options: Any) -> None:
    for _turn in count():
        await asyncio.sleep(0)


BUGS = [each for each in planted_bugs(globals()) if each.promises]
"""The bugs that the drawn histories find. The others need a history of their own."""
