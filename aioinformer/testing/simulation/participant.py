"""A listener of a history: it registers, writes down what it hears, does something, and leaves.

What each temper does with an event is ``tempers``' to say, how streams are read ``reading``'s.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from random import Random
from typing import Any, Protocol

from aioinformer._core.objects.kube_object import Added, Deleted, Event, Updated
from aioinformer._runtime.delivery.registration import Registration
from aioinformer._runtime.delivery.streams import EventStream
from aioinformer.errors import ListenerOverflow
from aioinformer.testing.simulation.departures import Overflowed
from aioinformer.testing.simulation.history import History
from aioinformer.testing.simulation.observed import ObservedInformer, ObservedMailbox
from aioinformer.testing.simulation.passing import filter_of
from aioinformer.testing.simulation.plan import ListenerSpec
from aioinformer.testing.simulation.records import Clumsy, Joined, Latch, Left, Told
from aioinformer.testing.simulation.tempers import act, behave

__all__ = ["Host", "Participant"]

_LOOKS = 12
"""One event in so many is an occasion to look at the whole cache."""


class Host(Protocol):
    """What listeners are in: the world."""

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Start a task."""
        ...

    def admit(self, spec: ListenerSpec) -> Participant:
        """Have another listener join."""
        ...


class Participant:
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
        self.heard = 0
        """How much it was told."""
        self.mailbox: ObservedMailbox | None = None
        """What waits for it; ``None`` while it isn't there."""
        self.reading: asyncio.Task[None] | None = None
        """What reads its stream."""
        self.company: Sequence[Participant] = (self,)
        """Those whose streams are read as one."""
        self.added: list[Participant] = []
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
        self.informer.participants.append(self)
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
        self._history.clumsy.append(Clumsy(order, now, self.spec.name))

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
        told = self.note(event)
        if not self.spec.plain:
            return self._deal_with(told)
        self._deal_at_once(told)
        return None

    def _deal_at_once(self, told: Told) -> None:
        try:
            act(self, told)
        except BaseException as error:
            told.raised = type(error).__name__
            raise
        finally:
            told.returned, told.until = self._history.stamp()

    async def _deal_with(self, told: Told) -> None:
        try:
            await behave(self, told)
        except BaseException as error:
            told.raised = type(error).__name__
            raise
        finally:
            told.returned, told.until = self._history.stamp()

    async def take_in(self, event: Event) -> None:
        """What the reader of a stream does with each event."""
        told = self.note(event)
        try:
            await asyncio.sleep(self.spec.delay)
        finally:
            told.returned, told.until = self._history.stamp()

    def note(self, event: Event) -> Told:
        """Write down what it is told, and what the cache shows then."""
        version_of = self._history.version_of
        cached = self.informer.lister.unsynced.get(event.obj.key)
        held = None if cached is None else version_of(cached)
        order, now = self._history.stamp()
        key, version, name = event.obj.key, version_of(event.obj), self.spec.name
        match event:
            case Added(_, initial):
                note = "initial" if initial else ""
                told = Told(order, now, name, "added", key, version, None, note, held)
            case Updated(old, _, resync):
                note = "resync" if resync else ""
                told = Told(order, now, name, "updated", key, version, version_of(old), note, held)
            case Deleted(_, reason):
                told = Told(order, now, name, "deleted", key, version, None, reason, held)
        told.merged = self.mailbox is not None and self.mailbox.was_merged(event)
        self._history.told.append(told)
        self.heard += 1
        if told.note != "resync" and self.chance.random() * _LOOKS < 1:
            self.informer.sample()
        return told

    # -- looking ------------------------------------------------------------------------------

    async def wait_synced(self) -> None:
        """Wait until everything that it found was told."""
        if self._registration is not None:
            await self._registration.wait_synced()

    def latch(self) -> Latch | None:
        """Its numbers now; ``None`` while it isn't there."""
        listener, box = self._registration or self._stream, self.mailbox
        if listener is None or box is None:
            return None
        numbers = listener.statistics()
        return Latch(
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
