"""The listeners of a history: handlers with a behaviour, and streams.

A ``SimulatedListener`` registers itself with an informer, records each event, behaves as its
``Behaviour`` says, and leaves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from typing import Any, Protocol, TypeAlias

from aioinformer._core.objects.kube_object import Added, Deleted, Event, Updated
from aioinformer._runtime.delivery.registration import Registration
from aioinformer._runtime.delivery.streams import EventStream, MergedStream, Sourced, merge
from aioinformer.errors import ListenerOverflow
from tests.simulation.filters import filter_of
from tests.simulation.plan import Behaviour, ListenerSpec
from tests.simulation.probes import InformerProbe, MailboxProbe
from tests.simulation.records import (
    EventDelivered,
    FilterRaised,
    History,
    Joined,
    Left,
    ListenerSample,
    Overflowed,
)

_EVENTS_PER_SAMPLE = 12
"""One event in so many is an occasion to sample the whole cache."""


class Host(Protocol):
    """The surroundings of a listener: the world."""

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Start a task."""
        ...

    def admit(self, spec: ListenerSpec) -> SimulatedListener:
        """Create another listener and let it join."""
        ...


class SimulatedListener:
    """One listener of one informer."""

    def __init__(
        self, spec: ListenerSpec, probe: InformerProbe, history: History, random: Random, host: Host
    ) -> None:
        """Create a listener that has not joined."""
        self.spec = spec
        self.__qualname__ = spec.name  # logs and health name a handler by this
        self.probe = probe
        self.informer = probe.informer
        self.random = random
        self.host = host
        self.received = 0
        """The number of events so far."""
        self.mailbox: MailboxProbe | None = None
        """The mailbox; ``None`` while the listener is not registered."""
        self.reading: asyncio.Task[None] | None = None
        """The task that reads the stream."""
        self.company: Sequence[SimulatedListener] = (self,)
        """The listeners whose streams are merged with this one's."""
        self.added: list[SimulatedListener] = []
        """The listeners that this one has added and not removed."""
        self._history = history
        self._registration: Registration | None = None
        self._stream: EventStream | None = None
        self._overflowed: Overflowed | None = None
        self._left = False

    # -- joining and leaving ------------------------------------------------------------------

    def register(self) -> None:
        """Register the handler."""
        spec = self.spec
        self._record_joining()
        self._registration = self.informer.add_handler(
            self,
            limit=spec.limit,
            overflow=spec.overflow,
            concurrency=spec.concurrency,
            timeout=spec.timeout,
            resync=spec.resync,
            filter=filter_of(spec.passing, spec.changes, self._record_filter_error),
        )
        self._take_mailbox()

    def stream(self) -> EventStream:
        """Return the listener's stream, which must be entered at once."""
        spec = self.spec
        self._record_joining()
        self._stream = self.informer.events(
            limit=spec.limit,
            overflow=spec.overflow,
            resync=spec.resync,
            filter=filter_of(spec.passing, spec.changes),
        )
        self._take_mailbox()
        return self._stream

    def _take_mailbox(self) -> None:
        self.probe.listeners.append(self)
        self.mailbox = self.probe.newest_mailbox
        if self.mailbox is not None:
            self.mailbox.on_overflow = self._record_overflow

    async def leave(self, *, wait: bool = False, inside: bool = False) -> None:
        """Unregister, once.

        Args:
            wait: wait for the calls in flight, which otherwise just go on.
            inside: this is one of these calls, which therefore are not waited for.
        """
        if self._left or self._overflowed:
            return
        for each in self.company:
            each._left = True
        if self._registration is not None:
            if wait:
                await self._registration.aclose()
            else:
                self._registration.remove()
        if self.reading is not None:
            self.reading.cancel()
            await asyncio.wait({self.reading})
        for each in self.company:
            each.record_leaving(waited=wait and not inside)

    def leave_at_once(self) -> None:
        """Unregister, inside a call that can't wait."""
        if self._registration is not None and not (self._left or self._overflowed):
            self._registration.remove()
            self.record_leaving()

    # -- recording ----------------------------------------------------------------------------

    def record_leaving(self, *, waited: bool = False) -> None:
        """Record that the listener has left."""
        self._left, self.mailbox = True, None
        self._history.add(Left, self.spec.name, waited)

    def _record_joining(self) -> None:
        lister, version_of = self.informer.lister, self._history.version_of
        cached = {obj.key: version_of(obj) for obj in lister} if self.informer.synced else None
        self._history.add(Joined, self.spec, cached)

    def _record_filter_error(self) -> None:
        self._history.add(FilterRaised, self.spec.name)

    def _record_overflow(self) -> None:
        box, self.mailbox = self.mailbox, None
        if box is not None:
            self._overflowed = self._history.add(
                Overflowed,
                self.spec.name,
                box.mailbox.limit,
                box.mailbox.max_pending,
                box.twice,
                [],
            )

    def record_overflow_error(self, error: ListenerOverflow) -> None:
        """Record the error with which the stream ended."""
        if self._overflowed is not None:
            self._overflowed.raised.append(str(error))

    # -- events -------------------------------------------------------------------------------

    def __call__(self, event: Event) -> Coroutine[Any, Any, None] | None:
        """Handle an event.

        The event is recorded when the handler is called, not when its coroutine begins to run: in
        between the listener may have been removed.
        """
        record = self.record(event)
        if not self.spec.plain:
            return self._behave(record)
        with self._until_returned(record):
            if (behave := PLAIN_BEHAVIOURS.get(self.spec.behaviour)) is not None:
                behave(self, record)
        return None

    async def _behave(self, record: EventDelivered) -> None:
        with self._until_returned(record):
            if (behave := BEHAVIOURS.get(self.spec.behaviour)) is not None:
                await behave(self, record)

    async def handle_streamed(self, event: Event) -> None:
        """Handle an event of the stream."""
        with self._until_returned(self.record(event)):
            await asyncio.sleep(self.spec.delay)

    @contextmanager
    def _until_returned(self, record: EventDelivered) -> Generator[None]:
        try:
            yield
        except BaseException as error:
            record.raised = type(error).__name__
            raise
        finally:
            record.returned, record.until = self._history.stamp()

    def record(self, event: Event) -> EventDelivered:
        """Record an event, with the version that the cache shows at this moment."""
        add, version_of = self._history.add, self._history.version_of
        cached = self.informer.lister.unsynced.get(event.obj.key)
        held = None if cached is None else version_of(cached)
        key, version, name = event.obj.key, version_of(event.obj), self.spec.name
        match event:
            case Added(_, initial):
                note = "initial" if initial else ""
                record = add(EventDelivered, name, "added", key, version, None, note, held)
            case Updated(old, _, resync):
                note, before = "resync" if resync else "", version_of(old)
                record = add(EventDelivered, name, "updated", key, version, before, note, held)
            case Deleted(_, reason):
                record = add(EventDelivered, name, "deleted", key, version, None, reason, held)
        record.merged = self.mailbox is not None and self.mailbox.was_merged(event)
        self.received += 1
        if record.note != "resync" and self.random.random() * _EVENTS_PER_SAMPLE < 1:
            self.probe.sample()
        return record

    # -- looking ------------------------------------------------------------------------------

    async def wait_synced(self) -> None:
        """Wait until the initial state was handled."""
        if self._registration is not None:
            await self._registration.wait_synced()

    def sample_listener(self) -> ListenerSample | None:
        """Return the listener's numbers; ``None`` while it is not registered."""
        listener, box = self._registration or self._stream, self.mailbox
        if listener is None or box is None:
            return None
        numbers = listener.statistics()
        return ListenerSample(
            self.spec.name,
            numbers.synced,
            numbers.pending,
            numbers.limit,
            box.batches,
            box.dropping,
            numbers.errors,
        )

    def __repr__(self) -> str:
        state = "absent" if self.mailbox is None else "present"
        return f"<SimulatedListener {self.spec.name} {state}>"


# -- behaviours of handlers --------------------------------------------------------------------

_FOREVER = 1e9
"""Seconds: longer than any history."""
_TOO_LONG = 30.0
"""Seconds: longer than any timeout."""
_EVENTS_BEFORE_LEAVING = 20
_EVENTS_PER_CHANGE = 8
"""One event in so many makes a listener add or remove another one."""
_MOST_ADDED = 4
"""Listeners that one listener adds at most."""


class HandlerRaised(Exception):
    """The error of a raising handler."""


async def _sleep(one: SimulatedListener, _: EventDelivered) -> None:
    await asyncio.sleep(one.spec.delay)


async def _sleep_at_random(one: SimulatedListener, _: EventDelivered) -> None:
    await asyncio.sleep(one.random.uniform(0.0, one.spec.delay))


async def _exceed_timeout(one: SimulatedListener, record: EventDelivered) -> None:
    await asyncio.sleep(_TOO_LONG if record.version.number % 6 == 0 else one.spec.delay)


async def _never_return(_: SimulatedListener, __: EventDelivered) -> None:
    await asyncio.sleep(_FOREVER)


async def _leave(one: SimulatedListener, _: EventDelivered) -> None:
    if one.received == _EVENTS_BEFORE_LEAVING:
        await one.leave(wait=one.random.random() < 0.5, inside=True)
        await asyncio.sleep(1)


def _leave_at_once(one: SimulatedListener, _: EventDelivered) -> None:
    if one.received == _EVENTS_BEFORE_LEAVING:
        one.leave_at_once()


def _raise_at_once(_: SimulatedListener, record: EventDelivered) -> None:
    if record.version.number % 5 == 0:
        raise HandlerRaised(f"at {record.key}")


async def _raise(one: SimulatedListener, record: EventDelivered) -> None:
    _raise_at_once(one, record)


async def _cancel(_: SimulatedListener, record: EventDelivered) -> None:
    """Raise a CancelledError that no other task asked for, or cancel the handler's own task."""
    number, task = record.version.number, asyncio.current_task()
    if number % 5 == 0:
        raise asyncio.CancelledError("the handler's own")
    if number % 7 == 0 and task is not None:
        task.cancel("by the handler itself")
        await asyncio.sleep(1)


def _cancel_at_once(_: SimulatedListener, record: EventDelivered) -> None:
    number, task = record.version.number, asyncio.current_task()
    if number % 7 == 0:
        if task is not None:
            task.cancel("by the handler itself")
        record.raised = asyncio.CancelledError.__name__  # a failure, although nothing is raised
        if number % 2 == 0:
            raise asyncio.CancelledError("the handler's own")
    elif number % 5 == 0:
        raise asyncio.CancelledError("the handler's own")


async def _change_listeners(one: SimulatedListener, _: EventDelivered) -> None:
    """Add another listener, or remove one that was added."""
    if one.received % _EVENTS_PER_CHANGE:
        return
    if one.added and one.random.random() < 0.5:
        await one.added.pop(0).leave(wait=one.random.random() < 0.5)
        return
    number = one.received // _EVENTS_PER_CHANGE
    if number <= _MOST_ADDED:
        behaviour: Behaviour = one.random.choice(("quick", "slow"))
        name = f"{one.spec.name}+{number}"
        delay = 0.02 if behaviour == "slow" else 0.0
        spec = replace(one.spec, name=name, behaviour=behaviour, delay=delay, resync=None)
        one.added.append(one.host.admit(spec))


BEHAVIOURS: Mapping[
    Behaviour, Callable[[SimulatedListener, EventDelivered], Coroutine[Any, Any, None]]
] = {
    "slow": _sleep,
    "parallel": _sleep_at_random,
    "timed": _exceed_timeout,
    "stuck": _never_return,
    "leaves_early": _leave,
    "raising": _raise,
    "cancelling": _cancel,
    "adds_listeners": _change_listeners,
}
"""The behaviours of async handlers. Handlers with another behaviour return at once."""

PLAIN_BEHAVIOURS: Mapping[Behaviour, Callable[[SimulatedListener, EventDelivered], None]] = {
    "leaves_early": _leave_at_once,
    "raising": _raise_at_once,
    "cancelling": _cancel_at_once,
}
"""The same for handlers that are plain functions."""

# -- streams -----------------------------------------------------------------------------------

_INTERRUPTIONS_BEFORE_LEAVING = 60
_LONGEST_WAIT = 15.0
_SHORTEST_WAIT = 0.001
"""Seconds. A wait of 0 s always ends before a stream that yields to the loop can return."""
_CANCELLED_WITH_EVENT = 0.2
"""Share of the events that arrive together with a cancellation."""

_Reading: TypeAlias = Callable[[SimulatedListener, EventStream], Awaitable[None]]


async def read(one: SimulatedListener) -> None:
    """Read the stream of one listener to its end, as its behaviour says."""
    reading: _Reading = _read_interrupted if one.spec.behaviour == "interrupted" else _read_plainly
    try:
        async with one.stream() as stream:
            await reading(one, stream)
    except ListenerOverflow as error:
        one.record_overflow_error(error)
    one.mailbox = None


async def _read_plainly(one: SimulatedListener, stream: EventStream) -> None:
    async for event in stream:
        await one.handle_streamed(event)


async def _read_interrupted(one: SimulatedListener, stream: EventStream) -> None:
    """Read with waits that are cancelled now and then, which must lose no pending event."""
    leaves, interruptions = one.random.random() < 0.5, 0
    while not (leaves and interruptions >= _INTERRUPTIONS_BEFORE_LEAVING):
        try:
            wait = one.random.uniform(_SHORTEST_WAIT, _LONGEST_WAIT)
            async with asyncio.timeout(wait) as scope:
                event = await _next_or_cancelled(one, stream, scope)
        except TimeoutError:
            interruptions += 1
            continue
        except StopAsyncIteration:
            return
        await one.handle_streamed(event)
    one.record_leaving()


async def _next_or_cancelled(
    one: SimulatedListener, stream: EventStream, scope: asyncio.Timeout
) -> Event:
    """Return the next event, now and then cancelled as it arrives; the loop decides the order."""

    def cancel() -> None:
        if one.random.random() < _CANCELLED_WITH_EVENT and not scope.expired():
            scope.reschedule(asyncio.get_running_loop().time())

    box = one.mailbox
    if box is not None:
        box.on_event = cancel
    try:
        return await anext(stream)
    finally:
        if box is not None:
            box.on_event = None


async def read_merged(several: Sequence[SimulatedListener]) -> None:
    """Read the merged streams of several listeners, which are of different informers."""
    by_source = {id(each.informer): each for each in several}
    async with merge(*(each.stream() for each in several)) as events:
        while (sourced := await _next_merged(events, several)) is not None:
            await by_source[id(sourced.source)].handle_streamed(sourced.event)
    for each in several:
        each.mailbox = None


async def _next_merged(
    events: MergedStream, several: Sequence[SimulatedListener]
) -> Sourced | None:
    """Return the next event of any stream. When one has ended, the others are read on."""
    while True:
        try:
            return await anext(events)
        except StopAsyncIteration:
            return None
        except ListenerOverflow as error:
            for each in several:
                if f"stream of {each.informer.name} " in str(error):
                    each.record_overflow_error(error)
