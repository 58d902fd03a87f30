"""A listener of a history: it registers, writes down what it hears, does something, and leaves.

What each temper does with an event is ``tempers``' to say, how streams are read ``reading``'s.

What handlers do with an event, by temper.

How streams are read: in a loop, in one whose waits are cancelled, and two of them as one.

Which objects a filtered listener hears of: the question, and an answer of our own.

``filter_of`` gives the library a filter: a predicate over labels, or one over fields, or a function
that raises at some objects, or a predicate of changes. ``passes`` and ``shown`` answer the same of
what was written, and share no code with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from random import Random
from typing import Any, Protocol, TypeAlias

from aioinformer._core.objects.kube_object import Added, Deleted, Event, KubeObject, Updated
from aioinformer._core.selectors.event_filter import Filter
from aioinformer._core.selectors.predicates import changed, labelled, where
from aioinformer._runtime.delivery.registration import Registration
from aioinformer._runtime.delivery.streams import EventStream, MergedStream, Sourced, merge
from aioinformer.errors import ListenerOverflow
from tests.simulation.plan import Behaviour, ListenerSpec
from tests.simulation.probes import ObservedInformer, ObservedMailbox
from tests.simulation.records import (
    EventDelivered,
    FilterRaised,
    History,
    Joined,
    Left,
    ListenerSample,
    Overflowed,
    Write,
)

FOREVER = 1e9
"""Seconds: longer than any history."""
TOO_LONG = 30.0
"""Seconds: longer than any timeout."""
_EVENTS_BEFORE_LEAVING = 20
"""Events after which a leaver leaves."""
_EVENTS_PER_CHANGE = 8
"""One event in so many makes somebody meddle."""
_MOST = 4
"""Listeners that it adds at most."""


class HandlerRaised(Exception):
    """What a raising handler raises."""


async def behave(one: SimulatedListener, record: EventDelivered) -> None:
    """Deal with what it was told.

    Raises:
        HandlerBroke: it is a raising one, and this is such an event.
        CancelledError: it is a cancelling one, or was cancelled.
    """
    number = record.version.number
    match one.spec.behaviour:
        case "slow":
            await asyncio.sleep(one.spec.delay)
        case "parallel":
            await asyncio.sleep(one.chance.uniform(0.0, one.spec.delay))
        case "timed":
            await asyncio.sleep(TOO_LONG if number % 6 == 0 else one.spec.delay)
        case "stuck":
            await asyncio.sleep(FOREVER)
        case "leaves_early" if one.received == _EVENTS_BEFORE_LEAVING:
            await one.leave(wait=one.chance.random() < 0.5, inside=True)
            await asyncio.sleep(1)
        case "raising" if number % 5 == 0:
            raise HandlerRaised(f"at {record.key}")
        case "cancelling":
            await _cancel(number)
        case "adds_listeners" if one.received % _EVENTS_PER_CHANGE == 0:
            await _add_or_remove_listener(one)
        case _:
            return


def act(one: SimulatedListener, record: EventDelivered) -> None:
    """The same, if it is a plain function.

    Raises:
        HandlerBroke: it is a raising one, and this is such an event.
        CancelledError: it is a cancelling one.
    """
    number = record.version.number
    match one.spec.behaviour:
        case "leaves_early" if one.received == _EVENTS_BEFORE_LEAVING:
            one.leave_at_once()
        case "raising" if number % 5 == 0:
            raise HandlerRaised(f"at {record.key}")
        case "cancelling" if number % 7 == 0:
            task = asyncio.current_task()
            if task is not None:
                task.cancel("by the handler itself")
            record.raised = asyncio.CancelledError.__name__  # it is a failure all the same
            if number % 2 == 0:
                raise asyncio.CancelledError("the handler's own")
        case "cancelling" if number % 5 == 0:
            raise asyncio.CancelledError("the handler's own")
        case _:
            return


async def _cancel(number: int) -> None:
    """A CancelledError that nobody asked for: raised, or asked for by itself."""
    if number % 5 == 0:
        raise asyncio.CancelledError("the handler's own")
    task = asyncio.current_task()
    if number % 7 == 0 and task is not None:
        task.cancel("by the handler itself")
        await asyncio.sleep(1)


async def _add_or_remove_listener(one: SimulatedListener) -> None:
    """Add another listener, or remove one of these."""
    if one.added and one.chance.random() < 0.5:
        await one.added.pop(0).leave(wait=one.chance.random() < 0.5)
        return
    number = one.received // _EVENTS_PER_CHANGE
    if number <= _MOST:
        behaviour: Behaviour = one.chance.choice(("quick", "slow"))
        name = f"{one.spec.name}+{number}"
        delay = 0.02 if behaviour == "slow" else 0.0
        spec = replace(one.spec, name=name, behaviour=behaviour, delay=delay, resync=None)
        one.added.append(one.host.admit(spec))


_RAISES = 3
"""At objects whose value, divided by 7, leaves this a clumsy filter raises."""


class FilterFailed(Exception):
    """What a clumsy filter raises."""


def filter_of(
    passing: str, changes: str = "", raised: Callable[[], None] = lambda: None
) -> Filter | None:
    """What to give as ``filter=`` for ``passing``, an ``app=`` or ``node=`` or nothing, or for
    ``changes``. ``raised`` is called as it raises.
    """
    if changes:
        return changed("metadata.labels.app" if changes == "app" else "spec.nodeName")
    what, _, value = passing.rstrip("!").partition("=")
    if not what:
        return None
    question = labelled(f"app={value}") if what == "app" else where("spec.nodeName", value)
    if not passing.endswith("!"):
        return question

    def raising_at_some(obj: KubeObject) -> bool:
        if obj["spec"]["value"] % 7 == _RAISES:
            raised()
            raise FilterFailed(f"at {obj.key}")
        return question(obj)

    return raising_at_some


def passes(passing: str, write: Write) -> bool:
    """Whether the object that was written so is to be heard of."""
    what, _, value = passing.rstrip("!").partition("=")
    if passing.endswith("!") and write.value % 7 == _RAISES and not write.deleted:
        return True
    return not what or value == (write.app if what == "app" else write.node)


def shown(changes: str, write: Write) -> str:
    """What a listener that hears of such ``changes`` alone knows of an object."""
    return write.app if changes == "app" else write.node


_LOOKS = 12
"""One event in so many is an occasion to look at the whole cache."""


class Host(Protocol):
    """What listeners are in: the world."""

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Start a task."""
        ...

    def admit(self, spec: ListenerSpec) -> SimulatedListener:
        """Have another listener join."""
        ...


class SimulatedListener:
    """One listener."""

    def __init__(
        self,
        spec: ListenerSpec,
        informer: ObservedInformer,
        history: History,
        chance: Random,
        host: Host,
    ) -> None:
        """Make a listener that has not joined."""
        self.spec = spec
        self.__qualname__ = spec.name  # by which logs and health call a handler
        self.informer = informer
        self.chance = chance
        self.host = host
        self.received = 0
        """How much it was told."""
        self.mailbox: ObservedMailbox | None = None
        """What waits for it; ``None`` while it isn't there."""
        self.reading: asyncio.Task[None] | None = None
        """What reads its stream."""
        self.company: Sequence[SimulatedListener] = (self,)
        """Those whose streams are read as one."""
        self.added: list[SimulatedListener] = []
        """Those that it has added, and not removed."""
        self._history = history
        self._registration: Registration | None = None
        self._stream: EventStream | None = None
        self._overflowed: Overflowed | None = None
        self._left = False

    # -- coming and going ---------------------------------------------------------------------

    def register(self) -> None:
        """Have it called from now on."""
        spec = self.spec
        self.note_joining()
        self._registration = self.informer.add_handler(
            self,
            limit=spec.limit,
            overflow=spec.overflow,
            concurrency=spec.concurrency,
            timeout=spec.timeout,
            resync=spec.resync,
            filter=filter_of(spec.passing, spec.changes, self._filter_raised),
        )
        self._present()

    def stream(self) -> EventStream:
        """A stream for it, which is to be entered at once."""
        spec = self.spec
        self.note_joining()
        self._stream = self.informer.events(
            limit=spec.limit,
            overflow=spec.overflow,
            resync=spec.resync,
            filter=filter_of(spec.passing, spec.changes),
        )
        self._present()
        return self._stream

    def _present(self) -> None:
        self.informer.listeners.append(self)
        self.mailbox = self.informer.newest_mailbox
        if self.mailbox is not None:
            self.mailbox.on_overflow = self._overflow

    async def leave(self, *, wait: bool = False, inside: bool = False) -> None:
        """Hear no more. Once; calls in flight go on, and are waited for if ``wait``. ``inside``:
        this is one of them, so that they are not.
        """
        if self._left or self._overflowed:
            return
        for each in self.company:
            each._left = True
        if self._registration is not None:
            await self._end(self._registration, wait=wait)
        if self.reading is not None:
            self.reading.cancel()
            await asyncio.wait({self.reading})
        for each in self.company:
            each.note_leaving(waited=wait and not inside)

    def leave_at_once(self) -> None:
        """The same, inside a call that can't wait."""
        if self._registration is not None and not (self._left or self._overflowed):
            self._registration.remove()
            self.note_leaving()

    async def _end(self, registration: Registration, *, wait: bool) -> None:
        if wait:
            await registration.aclose()
        else:
            registration.remove()

    def note_leaving(self, *, waited: bool = False) -> None:
        """It has left."""
        self._left, self.mailbox = True, None
        order, now = self._history.stamp()
        self._history.left.append(Left(order, now, self.spec.name, waited))

    def note_joining(self) -> None:
        """It joins now."""
        lister, version_of = self.informer.lister, self._history.version_of
        cached = {obj.key: version_of(obj) for obj in lister} if self.informer.synced else None
        order, now = self._history.stamp()
        self._history.joined.append(Joined(order, now, self.spec, cached))

    def _filter_raised(self) -> None:
        order, now = self._history.stamp()
        self._history.filter_errors.append(FilterRaised(order, now, self.spec.name))

    def _overflow(self) -> None:
        """Its mailbox was too full."""
        box, self.mailbox = self.mailbox, None
        if box is not None:
            order, now = self._history.stamp()
            self._overflowed = Overflowed(
                order, now, self.spec.name, box.limit, box.max_pending, box.twice, []
            )
            self._history.overflowed.append(self._overflowed)

    def note_overflow(self, error: ListenerOverflow) -> None:
        """Its stream has told it so."""
        if self._overflowed is not None:
            self._overflowed.raised.append(str(error))

    @property
    def overflowed(self) -> bool:
        """Whether its mailbox was too full."""
        return self._overflowed is not None

    # -- hearing ------------------------------------------------------------------------------

    def __call__(self, event: Event) -> Coroutine[Any, Any, None] | None:
        """The handler. What it is told is written down when it is called, not when that begins to
        run: in between it may have been removed.
        """
        record = self.note(event)
        if not self.spec.plain:
            return self._deal_with(record)
        self._deal_at_once(record)
        return None

    def _deal_at_once(self, record: EventDelivered) -> None:
        try:
            act(self, record)
        except BaseException as error:
            record.raised = type(error).__name__
            raise
        finally:
            record.returned, record.until = self._history.stamp()

    async def _deal_with(self, record: EventDelivered) -> None:
        try:
            await behave(self, record)
        except BaseException as error:
            record.raised = type(error).__name__
            raise
        finally:
            record.returned, record.until = self._history.stamp()

    async def take_in(self, event: Event) -> None:
        """What the reader of a stream does with each event."""
        record = self.note(event)
        try:
            await asyncio.sleep(self.spec.delay)
        finally:
            record.returned, record.until = self._history.stamp()

    def note(self, event: Event) -> EventDelivered:
        """Write down what it is told, and what the cache shows then."""
        version_of = self._history.version_of
        cached = self.informer.lister.unsynced.get(event.obj.key)
        held = None if cached is None else version_of(cached)
        order, now = self._history.stamp()
        key, version, name = event.obj.key, version_of(event.obj), self.spec.name
        match event:
            case Added(_, initial):
                note = "initial" if initial else ""
                record = EventDelivered(order, now, name, "added", key, version, None, note, held)
            case Updated(old, _, resync):
                note = "resync" if resync else ""
                record = EventDelivered(
                    order, now, name, "updated", key, version, version_of(old), note, held
                )
            case Deleted(_, reason):
                record = EventDelivered(
                    order, now, name, "deleted", key, version, None, reason, held
                )
        record.merged = self.mailbox is not None and self.mailbox.was_merged(event)
        self._history.delivered.append(record)
        self.received += 1
        if record.note != "resync" and self.chance.random() * _LOOKS < 1:
            self.informer.sample()
        return record

    # -- looking ------------------------------------------------------------------------------

    async def wait_synced(self) -> None:
        """Wait until everything that it found was told."""
        if self._registration is not None:
            await self._registration.wait_synced()

    def sample_listener(self) -> ListenerSample | None:
        """Its numbers now; ``None`` while it isn't there."""
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
        return f"<Participant {self.spec.name} {'absent' if self.mailbox is None else 'present'}>"


_INTERRUPTIONS_BEFORE_LEAVING = 60
"""Cancelled waits after which some leave."""
_LONGEST = 15.0
"""Seconds that one waits."""
_SHORTEST = 0.001
"""A wait of nothing at all is over before a stream that must give way can do so, every time."""
_AT_ONCE = 0.2
"""The share of events that come together with a cancellation."""

_Way: TypeAlias = Callable[[SimulatedListener, EventStream], Awaitable[None]]


def read(one: SimulatedListener) -> Coroutine[Any, Any, None]:
    """Read the stream of one listener to its end, as its temper says."""
    return _read(one, _interrupted if one.spec.behaviour == "interrupted" else _plain)


async def _read(one: SimulatedListener, way: _Way) -> None:
    try:
        async with one.stream() as stream:
            await way(one, stream)
    except ListenerOverflow as error:
        one.note_overflow(error)
    one.mailbox = None


async def _plain(one: SimulatedListener, stream: EventStream) -> None:
    async for event in stream:
        await one.take_in(event)


async def _interrupted(one: SimulatedListener, stream: EventStream) -> None:
    """Nothing that was pending may be lost to a wait that is cancelled."""
    leaves, interruptions = one.chance.random() < 0.5, 0
    while not (leaves and interruptions >= _INTERRUPTIONS_BEFORE_LEAVING):
        try:
            async with asyncio.timeout(one.chance.uniform(_SHORTEST, _LONGEST)) as scope:
                event = await _next_or_cancelled(one, stream, scope)
        except TimeoutError:
            interruptions += 1
            continue
        except StopAsyncIteration:
            return
        await one.take_in(event)
    one.note_leaving()


async def _next_or_cancelled(
    one: SimulatedListener, stream: EventStream, scope: asyncio.Timeout
) -> Event:
    """The next event; now and then cancelled as it comes. Which is first the loop decides."""

    def cancel() -> None:
        if one.chance.random() < _AT_ONCE and not scope.expired():
            scope.reschedule(asyncio.get_running_loop().time())

    box = one.mailbox
    if box is not None:
        box.on_event = cancel
    try:
        return await anext(stream)
    finally:
        if box is not None:
            box.on_event = None


async def read_as_one(several: Sequence[SimulatedListener]) -> None:
    """Read the streams of several listeners, which are of different informers."""
    by_source = {id(each.informer): each for each in several}
    async with merge(*(each.stream() for each in several)) as events:
        while (sourced := await _next(events, several)) is not None:
            await by_source[id(sourced.source)].take_in(sourced.event)
    for each in several:
        each.mailbox = None


async def _next(events: MergedStream, several: Sequence[SimulatedListener]) -> Sourced | None:
    """The next event of any. When one of them has ended, the others are read on."""
    while True:
        try:
            return await anext(events)
        except StopAsyncIteration:
            return None
        except ListenerOverflow as error:
            for each in several:
                if f"stream of {each.informer.name} " in str(error):
                    each.note_overflow(error)
