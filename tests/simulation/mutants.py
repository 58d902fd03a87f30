"""Informers, networks and mailboxes with one planted bug each."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from itertools import count
from random import Random

from aioinformer import Added, BackoffPolicy, Event, Handler, KubeObject, ObjectKey, Updated
from aioinformer._core.mailbox import Overflow
from aioinformer._core.store import Index
from aioinformer._runtime.handlers import Registration
from aioinformer._runtime.health import Condition
from aioinformer._runtime.reflector import ListerWatcher, Reflector
from aioinformer.testing import Cluster
from aioinformer.testing.simulation import History
from aioinformer.testing.simulation.network import Connection, Network
from aioinformer.testing.simulation.observed import (
    HandlerBroke,
    ObservedInformer,
    ObservedMailbox,
    Participant,
)
from aioinformer.testing.simulation.plan import InformerSpec

# -- the network -------------------------------------------------------------------------------


class DropsAnEvent(Network):
    """Keeps back every fortieth event."""

    _sent = 0

    def lines(self, connection: Connection, lines: list[bytes]) -> list[bytes]:
        kept: list[bytes] = []
        for line in super().lines(connection, lines):
            self._sent += 1
            if self._sent % 40 or b"BOOKMARK" in line:
                kept.append(line)
        return kept


class RepeatsAnEvent(Network):
    """Sends an old modification once more, after newer ones."""

    def __init__(self, cluster: Cluster, history: History, chance: Random) -> None:
        super().__init__(cluster, history, chance)
        self._sent: dict[str, list[bytes]] = {}

    def lines(self, connection: Connection, lines: list[bytes]) -> list[bytes]:
        sent = self._sent.setdefault(connection.request.informer, [])
        sent += [line for line in lines if b"MODIFIED" in line]
        if lines and len(sent) >= 30:
            again, *_ = sent
            sent.clear()
            return [*super().lines(connection, lines), again]
        return super().lines(connection, lines)


# -- mailboxes ---------------------------------------------------------------------------------


class DropsOnOverflow(ObservedMailbox):
    """Forgets what its limit has no room for."""

    def extend(self, events: Sequence[Event]) -> None:
        super().extend(events[: max(0, self.limit // 2 - self.pending)])


class HoldsTooMuch(ObservedMailbox):
    """Says that there is room when there is none."""

    @property
    def room(self) -> int:
        return super().room + 5


class ForgetsAReplay(ObservedMailbox):
    """Doesn't tell the first of the objects that a listener found."""

    def replay(self, objects: Sequence[KubeObject]) -> None:
        super().replay(objects[1:])


class RepeatsAReplay(ObservedMailbox):
    """Tells twice of one of them."""

    def replay(self, objects: Sequence[KubeObject]) -> None:
        super().replay([*objects, *objects[:1]])


class TellsTheUnchanged(ObservedMailbox):
    """Tells of what a list has confirmed."""

    def tell(self, events: Iterable[Event], *, initial: bool = False) -> None:
        events = list(events)
        changed = [event.obj for event in events if not initial and isinstance(event, Added)]
        super().tell([*events, *(Updated(obj, obj) for obj in changed)], initial=initial)


class SyncedEarly(ObservedMailbox):
    """Is synced when the last object that it found is told, not when it was dealt with."""

    def pop(self) -> Event | None:
        event = super().pop()
        self.synced = self.synced or event is not None
        return event


class PilesUpResyncs(ObservedMailbox):
    """Queues a resync behind another: what the mailbox did before the simulation."""

    def resync(self, objects: Sequence[KubeObject]) -> None:
        self._items.append(Updated(obj, obj, resync=True) for obj in objects)


# -- informers ---------------------------------------------------------------------------------


def with_mailbox(mailbox: type[ObservedMailbox]) -> type[ObservedInformer]:
    """An informer whose listeners have such mailboxes."""

    class WithMailbox(ObservedInformer):
        def make_mailbox(self, limit: int, overflow: Overflow) -> ObservedMailbox:
            return mailbox(limit=limit, overflow=overflow, holds=self._indexer.holds)

    return WithMailbox


class LossyIndex(Index):
    """Files every seventh object nowhere."""

    def move(self, key: ObjectKey, old: frozenset[str], new: frozenset[str]) -> None:
        lost = new and sum(key.name.encode()) % 7 == 0
        super().move(key, old, frozenset() if lost else new)

    def empty(self) -> LossyIndex:
        return LossyIndex(self.name, self.function)


class LosesIndexEntries(ObservedInformer):
    """Has a lossy index."""

    def __init__(self, source: ListerWatcher, spec: InformerSpec, history: History) -> None:
        super().__init__(source, spec, history)
        state = self._indexer.state
        state.indexes = {
            name: LossyIndex(name, index.function) for name, index in state.indexes.items()
        }


class SaysItIsSynced(ObservedInformer):
    """Is synced from the start."""

    def __init__(self, source: ListerWatcher, spec: InformerSpec, history: History) -> None:
        super().__init__(source, spec, history)
        self._indexer.state.synced = True


class LeavesATask(ObservedInformer):
    """Has a task that nobody ends."""

    async def run(self) -> None:
        self.stray = asyncio.create_task(asyncio.sleep(1e7), name="stray")
        await super().run()


class Spins(ObservedInformer):
    """Waits for its end by asking for it, over and over."""

    async def wait_synced(self, timeout: float | None = None) -> None:
        for _ in count():
            await asyncio.sleep(0)


class NeverWakes(ObservedInformer):
    """Has a waiter that nobody wakes."""

    async def wait_synced(self, timeout: float | None = None) -> None:
        await super().wait_synced(timeout)
        await asyncio.Event().wait()


class HidesErrors(ObservedInformer):
    """Doesn't let anybody know that a handler raised."""

    def add_handler(
        self, handler: Handler, *, limit: int = 1024, overflow: Overflow = "block"
    ) -> Registration:
        assert isinstance(handler, Participant)

        async def quiet(event: Event) -> None:
            try:
                await handler(event)
            except HandlerBroke:
                return

        return super().add_handler(quiet, limit=limit, overflow=overflow)


class OneAtATime(ObservedInformer):
    """Calls one handler after the other, as if they shared a task."""

    def __init__(self, source: ListerWatcher, spec: InformerSpec, history: History) -> None:
        super().__init__(source, spec, history)
        self._turn = asyncio.Lock()

    def add_handler(
        self, handler: Handler, *, limit: int = 1024, overflow: Overflow = "block"
    ) -> Registration:
        assert isinstance(handler, Participant)

        async def in_turn(event: Event) -> None:
            async with self._turn:
                await handler(event)

        in_turn.__qualname__ = handler.spec.name
        return super().add_handler(in_turn, limit=limit, overflow=overflow)


class MuteCondition(Condition):
    """Forgets what went wrong."""

    def fail(self, error: Exception) -> None:
        self.error = None


class HidesFailures(ObservedInformer):
    """Has a health that shows no errors."""

    def __init__(self, source: ListerWatcher, spec: InformerSpec, history: History) -> None:
        super().__init__(source, spec, history)
        self._reflector.condition = MuteCondition()


class Hammers(ObservedInformer):
    """Asks again at once."""

    def __init__(self, source: ListerWatcher, spec: InformerSpec, history: History) -> None:
        super().__init__(source, spec, history)
        hasty = BackoffPolicy(initial=0.01, maximum=0.01)
        self._reflector = Reflector(source, self._queue, backoff=hasty)
