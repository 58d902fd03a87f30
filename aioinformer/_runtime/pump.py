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
from collections.abc import Iterator, Mapping
from itertools import tee
from typing import NoReturn

from aioinformer._core.deltas import Bookmark, Delta, Replaced, Resync
from aioinformer._core.indexer import Indexer, Replacement
from aioinformer._core.objects import Event, ObjectKey
from aioinformer._runtime.delta_queue import DeltaQueue
from aioinformer._runtime.listeners import Gate, Listener
from aioinformer._runtime.pace import STEP, Pace

__all__ = ["Pump"]

log = logging.getLogger("aioinformer.pump")

BATCH = 256
"""Changes applied between two hand-overs to the mailboxes: about a millisecond."""
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
        self._name = name
        self._queue = queue
        self._indexer = indexer
        self._listeners: list[Listener] = []
        self._full: list[Listener] = []

    def join(self, listener: Listener) -> None:
        """Tell ``listener`` of what is cached now and of everything from now on."""
        state = self._indexer.state
        if state.synced:
            listener.replay(list(state.objects.values()))
        self._listeners = [*self.audience, listener]

    @property
    def audience(self) -> list[Listener]:
        """The listeners that are still there."""
        if any(listener.closed for listener in self._listeners):
            self._listeners = [each for each in self._listeners if not each.closed]
        return self._listeners

    @property
    def blocked_by(self) -> tuple[str, ...]:
        """The names of the listeners for whose mailbox the pump waits: it was full, and isn't
        drained yet.
        """
        return tuple(each.name for each in self._full if not each.closed)

    def end(self) -> None:
        """Nothing more will come. What is pending can still be taken."""
        self.synced.set()
        for listener in self._listeners:
            listener.close(drop=False)

    async def run(self) -> NoReturn:
        """Drain the queue until cancelled."""
        pace = Pace()
        while True:
            if not self._queue.fifo:
                await self._queue.ready()
                pace.rested()
            while full := [each for each in self.audience if each.room <= 0]:
                self._full = full
                await self.gate.wait()
                pace.rested()
            self._full = []
            entry = self._apply_changes(pace)
            if isinstance(entry, Replaced):
                replacement = self._indexer.replace(entry)
                del entry  # so that only the replacement holds what it is to free in steps
                await self._apply_state(replacement, pace)
            elif isinstance(entry, Resync):
                self._tell_again()
            await pace.breathe()

    @property
    def _room(self) -> int:
        return min((each.room for each in self.audience), default=BATCH)

    def _apply_changes(self, pace: Pace) -> Replaced | Resync | None:
        """Apply changes and hand over what they mean, up to the first entry of another kind.

        A re-created object is two events, so that a mailbox may go over its limit by one.
        """
        events: list[Event] = []
        room = self._room
        rejected: dict[ObjectKey, Exception] = {}
        special: Replaced | Resync | None = None
        for count in range(BATCH):
            if len(events) >= room or (count % LOOKS == LOOKS - 1 and pace.due):
                break
            if (entry := self._queue.pop()) is None:
                break
            if isinstance(entry, Delta):
                if error := self._indexer.apply(entry, events):
                    rejected[entry.obj.key] = error.with_traceback(None) if rejected else error
            elif isinstance(entry, Bookmark):
                self._indexer.bookmark(entry)
            else:
                special = entry
                break
        if events:
            for listener in self.audience:
                listener.put(events)
        self._report(rejected)
        return special

    async def _apply_state(self, replacement: Replacement, pace: Pace) -> None:
        """Stage a new state in steps, then swap it in and tell of it, at once."""
        while not replacement.step(STEP):
            await pace.breathe()
        audience = self.audience
        # All read one chain, which falls away behind the last of them: not all of it at once.
        cursors = tee(_forgetting(replacement.commit()), len(audience))
        for listener, events in zip(audience, cursors, strict=True):
            listener.tell(events, initial=replacement.initial)
        self.synced.set()
        self._report(replacement.rejected)
        log.info("%s: %d objects listed", self._name, len(self._indexer.state.objects))
        await pace.breathe()
        while not replacement.step(STEP):
            await pace.breathe()

    def _tell_again(self) -> None:
        objects = list(self._indexer.state.objects.values())
        for listener in self.audience:
            listener.resync(objects)

    def _report(self, rejected: Mapping[ObjectKey, Exception]) -> None:
        """One line for all of them: an index function that is wrong raises at every object."""
        for key, error in rejected.items():
            others = f" and {len(rejected) - 1} others" if len(rejected) > 1 else ""
            log.error(
                "%s: an index function raised at %s%s; what was cached of it stays",
                self._name,
                key,
                others,
                exc_info=error,
            )
            error.with_traceback(None)  # its frames would keep alive what the cache let go
            break

    def __repr__(self) -> str:
        return f"<Pump {self._name} listeners={len(self._listeners)} {self._queue!r}>"


def _forgetting(events: list[Event]) -> Iterator[Event]:
    """Each event once, held no longer than that."""
    events.reverse()
    while events:
        yield events.pop()
