"""An informer that can be looked into, and listeners that write down what they hear.

The informer is the library's own; what is added are looks at what is not public: how much waits in
the queue and in each mailbox. A subclass with a planted bug in the place of ``ObservedInformer``
shows what the checker is worth.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from aioinformer._core.delta_fifo import DeltaFIFO
from aioinformer._core.filtering import EventFilter
from aioinformer._core.mailbox import Mailbox, Overflow
from aioinformer._core.objects import Added, Deleted, Event, KubeObject, ObjectKey, Updated
from aioinformer._runtime.informer import SharedInformer
from aioinformer._runtime.reflector import Reflector
from aioinformer._runtime.registration import Registration
from aioinformer._runtime.reports import Problem
from aioinformer._runtime.sources import ListerWatcher
from aioinformer._runtime.streams import EventStream
from aioinformer.testing.simulation.history import History
from aioinformer.testing.simulation.plan import InformerSpec, ListenerSpec
from aioinformer.testing.simulation.records import (
    Joined,
    Latch,
    Left,
    Sample,
    Told,
    Trouble,
)
from aioinformer.testing.simulation.reflecting import (
    CountedFailures,
    ObservedCursor,
    ObservedReflector,
)

__all__ = [
    "HandlerBroke",
    "ObservedInformer",
    "ObservedMailbox",
    "Participant",
]

INDEX = "node"
FOREVER = 1e9
"""Seconds: longer than any history."""
_LOOKS = 12
"""One event in so many is an occasion to look at the whole cache."""
_ENOUGH = 20
"""Events after which a leaver leaves."""
_INDEX_LOOKS = 4
"""One sample in so many has the index in it."""


class HandlerBroke(Exception):
    """What a raising handler raises."""


class NodeRefused(ValueError):
    """What a touchy index function raises."""


class ObservedMailbox(Mailbox):
    """A mailbox that says how many batches it holds."""

    @property
    def batches(self) -> int:
        """What isn't made of live events: replays, diffs of lists, resyncs, marks."""
        return self._told + (self._found is not None) + (self._again is not None)

    @property
    def dropping(self) -> bool:
        """Whether some of what is pending will not be told, since it is of objects that went."""
        return bool(self._gone)


class ObservedInformer(SharedInformer):
    """An informer of a history."""

    def __init__(self, source: ListerWatcher, spec: InformerSpec, history: History) -> None:
        """Make an informer of ``spec`` whose samples go to ``history``."""
        super().__init__(
            source,
            name=spec.name,
            namespace=spec.namespace,
            indexers={INDEX: _refusing if spec.touchy else _node},
            resync=spec.resync,
            metrics=CountedFailures(history),
            on_error=self._hear,
        )
        self._reflector = self.make_reflector(source, self.make_cursor(spec, history))
        self._queue.fifo = DeltaFIFO(self._indexer, high_mark=spec.high_mark)
        self.spec = spec
        self.participants: list[Participant] = []
        self.newest_mailbox: ObservedMailbox | None = None
        """That of the listener that joined last."""
        self._history = history

    def make_cursor(self, spec: InformerSpec, history: History) -> ObservedCursor:
        """What decides what to ask for next."""
        return ObservedCursor(spec, history)

    def make_reflector(self, source: ListerWatcher, cursor: ObservedCursor) -> Reflector:
        """What feeds the queue."""
        return ObservedReflector(
            source, self._queue, cursor, known=self._indexer.known, reports=self._reports
        )

    def _hear(self, problem: Problem) -> None:
        """The error hook."""
        order, now = self._history.stamp()
        said = f"{type(problem.error).__name__}: {problem.error}"
        self._history.troubles.append(
            Trouble(order, now, problem.informer, problem.phase, problem.cause, said)
        )

    def _mailbox(
        self, limit: int, overflow: Overflow, passing: EventFilter | None = None
    ) -> Mailbox:
        self.newest_mailbox = self.make_mailbox(limit, overflow)
        return self.newest_mailbox

    def make_mailbox(self, limit: int, overflow: Overflow) -> ObservedMailbox:
        """A mailbox for a listener."""
        return ObservedMailbox(limit=limit, overflow=overflow, holds=self._indexer.holds)

    def sample(self) -> None:
        """Write down what it shows now, unless everything is being ended."""
        if self._history.over:
            return
        health = self.health
        order, now = self._history.stamp()
        lister, version_of = self.lister.unsynced, self._history.version_of
        with_index = len(self._history.samples) % _INDEX_LOOKS == 0
        self._history.samples.append(
            Sample(
                order,
                now,
                self.name,
                self.synced,
                health.resource_version,
                {obj.key: version_of(obj) for obj in lister},
                self._filed() if with_index else None,
                frozenset(health.rejected),
                health.state,
                f"{type(health.error).__name__}: {health.error}" if health.error else "",
                health.retry_in,
                health.blocked_by,
                health.rewinds,
                len(self._queue.fifo),
                tuple(filter(None, (each.latch() for each in self.participants))),
            )
        )

    def _filed(self) -> dict[str, frozenset[ObjectKey]]:
        lister = self.lister.unsynced
        values = sorted(lister.index_values(INDEX))
        return {
            value: frozenset(obj.key for obj in lister.by_index(INDEX, value)) for value in values
        }


def _node(obj: KubeObject) -> str:
    name: str = obj["spec"]["nodeName"]
    return name


def _refusing(obj: KubeObject) -> str:
    name = _node(obj)
    if name == "node-x":
        raise NodeRefused(name)
    return name


class Participant:
    """One listener: registers, hears, behaves as its temper says, leaves."""

    def __init__(
        self, spec: ListenerSpec, informer: ObservedInformer, history: History, chance: Random
    ) -> None:
        """Make a listener that has not joined."""
        self.spec = spec
        self.__qualname__ = spec.name  # by which logs and health call a handler
        self._informer = informer
        self._history = history
        self._chance = chance
        self._registration: Registration | None = None
        self._stream: EventStream | None = None
        self._reading: asyncio.Task[None] | None = None
        self._mailbox: ObservedMailbox | None = None
        self._heard = 0
        self._left = False

    # -- coming and going ---------------------------------------------------------------------

    def join(self, spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]) -> None:
        """Register; ``spawn`` starts the task that reads a stream, which registers there."""
        self._informer.participants.append(self)
        if self.spec.temper == "stream":
            self._reading = spawn(self._read())
            return
        self._note_joining()
        self._registration = self._informer.add_handler(
            self, limit=self.spec.limit, overflow=self.spec.overflow
        )
        self._mailbox = self._informer.newest_mailbox

    async def leave(self) -> None:
        """Hear no more. Once; the call in flight goes on."""
        if self._left:
            return
        self._left = True
        if self._registration is not None:
            self._registration.remove()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait({self._reading})
        self._mailbox = None
        order, now = self._history.stamp()
        self._history.left.append(Left(order, now, self.spec.name))

    async def _read(self) -> None:
        """Read a stream to its end."""
        self._note_joining()
        spec = self.spec
        async with self._informer.events(limit=spec.limit, overflow=spec.overflow) as stream:
            self._stream, self._mailbox = stream, self._informer.newest_mailbox
            async for event in stream:
                told = self._note(event)
                await asyncio.sleep(self.spec.delay)
                told.returned = self._history.stamp()[0]
        self._mailbox = None

    def _note_joining(self) -> None:
        lister, version_of = self._informer.lister, self._history.version_of
        cached = {obj.key: version_of(obj) for obj in lister} if self._informer.synced else None
        order, now = self._history.stamp()
        self._history.joined.append(Joined(order, now, self.spec, cached))

    # -- hearing ------------------------------------------------------------------------------

    async def __call__(self, event: Event) -> None:
        """The handler."""
        told = self._note(event)
        try:
            await self._behave(told)
        except (HandlerBroke, asyncio.CancelledError) as error:
            told.raised = type(error).__name__
            raise
        finally:
            told.returned = self._history.stamp()[0]

    async def _behave(self, told: Told) -> None:
        if self.spec.temper == "slow":
            await asyncio.sleep(self.spec.delay)
        elif self.spec.temper == "stuck":
            await asyncio.sleep(FOREVER)
        elif self.spec.temper == "leaver":
            self._heard += 1
            if self._heard == _ENOUGH:
                await self.leave()
                await asyncio.sleep(1)
        elif self.spec.temper == "raising" and told.version.number % 5 == 0:
            raise HandlerBroke(f"at {told.key}")
        elif self.spec.temper == "raising" and told.version.number % 7 == 0:
            raise asyncio.CancelledError("the handler's own")

    def _note(self, event: Event) -> Told:
        version_of = self._history.version_of
        cached = self._informer.lister.unsynced.get(event.obj.key)
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
        self._history.told.append(told)
        if self._chance.random() * _LOOKS < 1:
            self._informer.sample()
        return told

    # -- looking ------------------------------------------------------------------------------

    async def wait_synced(self) -> None:
        """Wait until everything that it found was told."""
        if self._registration is not None:
            await self._registration.wait_synced()

    def latch(self) -> Latch | None:
        """Its numbers now; ``None`` while it isn't there."""
        listener, box = self._registration or self._stream, self._mailbox
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
        return f"<Participant {self.spec.name} {'absent' if self._mailbox is None else 'present'}>"
