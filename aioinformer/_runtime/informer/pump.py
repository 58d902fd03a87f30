"""The pump: from the queue into the cache, and from there into every mailbox.

This is where the order of things is made. An entry is popped, applied and handed to the
listeners in one step without an await: so the cache leads, a listener that joins between two
steps misses nothing and hears nothing twice, and client-go's locks have no twin here. A whole
new state is staged in small steps beside the live one; only its swap is one step.

What the entries mean is decided by ``Indexer``, what a listener has yet to hear by ``Mailbox``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from aioinformer._core.cache.indexer import Indexer, Replacement, untraced
from aioinformer._core.delivery.replay import one_by_one
from aioinformer._core.objects.deltas import Bookmark, Delta, Replaced, Resync
from aioinformer._core.objects.kube_object import Event, KubeObject, ObjectKey
from aioinformer._runtime.delivery.listener import Gate, Listener
from aioinformer._runtime.informer.waiters import Waits
from aioinformer._runtime.reflector.delta_queue import DeltaQueue
from aioinformer._runtime.tasks.event_loop import STAGING, STEP, Pace
from aioinformer.errors import ModelMismatch, TransformFailed

__all__ = ["Pump"]

log = logging.getLogger("aioinformer.pump")

T = TypeVar("T")

BATCH = 256
"""Changes applied between two hand-overs to the mailboxes: about a millisecond."""
FIRST = 16
"""The same to begin with if there are filters: each looks at every change, and may open its body.
It doubles as long as that is quick."""
HANDED = 0.002
"""Seconds that a hand-over may take: after one that took longer the next has half as much."""
BLOCKED = 10.0
"""Seconds after which a listener that keeps the watch from being read is warned of."""
LOOKS = 16
"""Changes applied between two looks at the clock: an index function may open every body."""


class Pump:
    """Drains one queue into one cache, and tells its audience."""

    def __init__(self, name: str, queue: DeltaQueue, indexer: Indexer) -> None:
        """Make a pump; ``run`` starts it.

        Args:
            name: the informer's, for logs.
            queue: what to drain.
            indexer: what to write to.
        """
        self.synced = asyncio.Event()
        """Set when the first full state has been applied, or will never be."""
        self.gate = Gate()
        """What a listener opens when its mailbox has room again."""
        self.waits = Waits(indexer, name)
        """Those who wait for the cache to show something."""
        self.on_rejected: Callable[[Exception], None] | None = None
        """Is told why an object was rejected; once if many were in one go."""
        self._name = name
        self._queue = queue
        self._indexer = indexer
        self._joined: dict[Listener, None] = {}
        self._audience: list[Listener] | None = []
        self._waited_for: list[Listener] = []
        self._batch = BATCH
        """Changes to apply until the next hand-over."""
        self._full: list[Listener] = []
        self._behind: list[Listener] = []
        self._state: tuple[Sequence[KubeObject], ...] | None = None
        """What is cached, as long as nothing has changed since somebody asked."""

    def join(self, listener: Listener, *, replay: bool = True) -> None:
        """Tell ``listener`` of everything from now on; with ``replay`` of what is cached, first."""
        state = self._indexer.state
        if state.synced or state.objects:
            at = asyncio.get_running_loop().time()
            listener.replay(self._cached() if replay else (), at, full=state.synced)
        self._joined[listener] = None
        listener.on_closed = self._leave
        self._audience = None

    def _leave(self, listener: Listener) -> None:
        self._joined.pop(listener, None)
        self._audience = None

    @property
    def audience(self) -> list[Listener]:
        """The listeners that are still there. Who comes or goes makes a new list of it."""
        if self._audience is None:
            self._audience = list(self._joined)
            self._waited_for = [each for each in self._audience if each.blocks]
            self._batch = FIRST if any(each.filters for each in self._audience) else BATCH
        return self._audience

    @property
    def _blocking(self) -> list[Listener]:
        """Those of the audience that the pump waits for."""
        return self._waited_for if self.audience else []

    def _cached(self) -> Iterator[KubeObject]:
        """What is cached, in batches that all who are told of it share."""
        if self._state is None:
            objects = list(self._indexer.state.objects.values())
            self._state = tuple(_batches(objects))
        return one_by_one(self._state)

    @property
    def blocked_by(self) -> tuple[str, ...]:
        """The names of the listeners for whose mailbox the pump waits: it was full, and isn't
        drained yet. May be read from any thread.
        """
        return tuple(each.name for each in self._full if not each.closed)

    def read_by(self, task: asyncio.Task[Any] | None) -> Listener | None:
        """Whom ``task`` reads of those that the pump may be waiting for."""
        for listener in self._blocking:
            if listener.consumer is not None and listener.consumer() is task:
                return listener
        return None

    @property
    def pending(self) -> int:
        """Live events that wait in mailboxes. May be read from any thread."""
        return sum(each.pending for each in tuple(self._joined))

    def end(self) -> None:
        """Nothing more will come. What is pending can still be taken."""
        self.synced.set()
        self.waits.end()
        for listener in self.audience:
            listener.close(drop=False)

    async def run(self) -> NoReturn:
        """Drain the queue until cancelled."""
        pace = Pace()
        while True:
            if not self._queue.fifo:
                await self._queue.ready()
                pace.rested()
            while (room := self._room) <= 0:
                await self._wait_for([each for each in self._blocking if each.room <= 0], pace)
            self._full = []
            entry = self._apply_changes(pace, room)
            if self._behind:
                await self._fold(pace)
            if isinstance(entry, Replaced):
                replacement = self._indexer.replace(entry)
                del entry  # so that only the replacement holds what it is to free in steps
                await self._apply_state(replacement, pace)
            elif isinstance(entry, Resync):
                self.resync(self.audience)
            await pace.breathe()

    async def _wait_for(self, full: list[Listener], pace: Pace) -> None:
        """Wait until one of them has taken what is pending, or has left."""
        self._full = full
        warning = asyncio.get_running_loop().call_later(BLOCKED, self._warn)
        try:
            await self.gate.wait()
        finally:
            warning.cancel()
        pace.rested()

    def _warn(self) -> None:
        """It is what ``overflow="block"`` asks for, but not what anybody wants for so long."""
        names = ", ".join(self.blocked_by)
        log.warning("%s has not read its watch for %g s: %s", self._name, BLOCKED, names)

    @property
    def _room(self) -> int:
        return min([each.room for each in self._blocking], default=self._batch)

    def _apply_changes(self, pace: Pace, room: int) -> Replaced | Resync | None:
        """Apply changes and hand over what they mean, up to the first entry of another kind.

        A re-created object is two events, so that a mailbox may go over its limit by one.
        """
        events: list[Event] = []
        rejected: dict[ObjectKey, Exception] = {}
        special: Replaced | Resync | None = None
        for count in range(self._batch):
            if len(events) >= room or (count % LOOKS == LOOKS - 1 and pace.due):
                break
            if (entry := self._queue.pop()) is None:
                break
            if isinstance(entry, Delta):
                if error := self._indexer.apply(entry, events):
                    rejected[entry.obj.key] = untraced(error) if rejected else error
            elif isinstance(entry, Bookmark):
                self._indexer.bookmark(entry)
            else:
                special = entry
                break
        if events:
            self._hand_over(tuple(events))
        if self.waits:
            self.waits.look(events)
        self._report(rejected)
        return special

    def _hand_over(self, events: tuple[Event, ...]) -> None:
        """All mailboxes get the same batch."""
        self._state = None
        clock = asyncio.get_running_loop().time
        at = clock()
        self._behind = [each for each in self.audience if each.put(events, at)]
        if (took := clock() - at) > HANDED:
            self._batch = self._batch // 2 or 1
        elif self._batch <= len(events) and took < HANDED / 4:
            self._batch = min(self._batch * 2, BATCH)

    async def _fold(self, pace: Pace) -> None:
        """Have those merge what is pending who hold more than they may. Seldom needed: few merges
        are too many for one step.
        """
        for listener in self._behind:
            while listener.behind:
                listener.fold(STEP)
                await pace.breathe()
        self._behind = []

    async def _apply_state(self, replacement: Replacement, pace: Pace) -> None:
        """Stage a new state in steps, then swap it in and tell of it, at once."""
        while not replacement.step(STEP):
            await pace.breathe(STAGING)
        await self._told(pace)
        batches = list(_batches(replacement.commit()))
        self._state = None
        at = asyncio.get_running_loop().time()
        for listener in self.audience:
            listener.tell(batches, at, initial=replacement.initial)
        del batches  # behind the last listener each batch falls away: not all of it at once
        self.synced.set()
        self.waits.look_at_all()
        self._report(replacement.rejected)
        count = len(self._indexer.state.objects)
        log.info("%s: %d object%s listed", self._name, count, "s" * (count != 1))
        await pace.breathe()
        while not replacement.step(STEP):
            await pace.breathe()

    async def _told(self, pace: Pace) -> None:
        """See to it that nobody has the changes of another list pending. Of a listener that never
        comes back they would pile up: lists times objects.
        """
        for listener in self.audience:
            while listener.merges and (listener.telling or listener.behind):
                listener.fold(STEP)
                await pace.breathe()
        while full := [each for each in self._blocking if each.telling]:
            await self._wait_for(full, pace)
        self._full = []

    def resync(self, listeners: Sequence[Listener]) -> None:
        """Tell some listeners once more what is cached. Nothing before the first full state."""
        if self._indexer.state.synced:
            for listener in listeners:
                listener.resync(self._cached(), self._shows)

    def _shows(self, obj: KubeObject) -> bool:
        return self._indexer.state.objects.get(obj.key) is obj

    def _report(self, rejected: Mapping[ObjectKey, Exception]) -> None:
        """One line for all of them: a wrong model or index function rejects every object."""
        for key, error in rejected.items():
            others = f" and {len(rejected) - 1} others" if len(rejected) > 1 else ""
            misfit = isinstance(error, ModelMismatch | TransformFailed)
            what = error if misfit else f"an index function raised at {key}"
            stays = "what was cached of it stays"
            log.error("%s: %s%s; %s", self._name, what, others, stays, exc_info=error)
            if self.on_rejected is not None:
                self.on_rejected(error)
            untraced(error)  # its frames would keep alive what the cache let go
            break

    def __repr__(self) -> str:
        return f"<Pump {self._name} listeners={len(self._joined)} {self._queue!r}>"


def _batches(whole: Sequence[T]) -> Iterator[tuple[T, ...]]:
    for start in range(0, len(whole), BATCH):
        yield tuple(whole[start : start + BATCH])
