"""What a handler and a stream have in common: a mailbox, and somebody waiting at it.

The informer's pump fills mailboxes and never waits for anybody, except at the ``Gate``: while a
mailbox with ``overflow="block"`` is full, nothing is taken from the queue. A listener looks into
its mailbox after each wake-up and takes the event with no await in between, so that a
cancellation can't lose one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from aioinformer._core.mailbox import Mailbox
from aioinformer._core.objects import Event, KubeObject
from aioinformer.errors import NotRunning, SyncTimeout

__all__ = ["Gate", "Listener", "Statistics"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """A listener's numbers at one moment."""

    pending: int
    """Live events queued."""
    limit: int
    """Live events that the mailbox holds."""
    delivered: int
    """Events handed to the handler or taken from the stream."""
    errors: int
    """Events at which the handler raised."""
    synced: bool
    """Whether the state that the listener found was told and dealt with."""


class Gate:
    """Closed while a full mailbox keeps the pump waiting."""

    def __init__(self) -> None:
        """An open gate."""
        self._open = asyncio.Event()
        self._open.set()
        self.closed = False
        """Whether the pump is waiting. Listeners look at it after every event."""

    def open(self) -> None:
        """Some mailbox has room again, or is gone."""
        self.closed = False
        self._open.set()

    async def wait(self) -> None:
        """Close the gate and wait until somebody opens it."""
        self.closed = True
        self._open.clear()
        await self._open.wait()


class Listener:
    """A mailbox that can be waited at."""

    def __init__(
        self, name: str, mailbox: Mailbox, gate: Gate, *, why: Callable[[], str] | None = None
    ) -> None:
        """Make a listener with an empty mailbox.

        Args:
            name: for logs, health and errors.
            mailbox: its pending events.
            gate: what to open when there is room again.
            why: says what its informer is doing, for errors.
        """
        self.name = name
        self._why = why or self.__repr__
        self._mailbox = mailbox
        self._gate = gate
        self._filled = asyncio.Event()
        self._synced = asyncio.Event()
        self._closed = False

    # -- the informer's side -------------------------------------------------------------------

    def put(self, events: Sequence[Event]) -> None:
        """Live events have come."""
        self._mailbox.extend(events)
        self._filled.set()

    def tell(self, events: Iterable[Event], *, initial: bool) -> None:
        """A list was applied; these are the changes."""
        self._mailbox.tell(events, initial=initial)
        self._filled.set()

    def replay(self, objects: Sequence[KubeObject]) -> None:
        """The listener has joined; these are the objects that are cached."""
        self._mailbox.replay(objects)
        self._filled.set()

    def resync(self, objects: Sequence[KubeObject]) -> None:
        """Hear once more what is cached."""
        self._mailbox.resync(objects)
        self._filled.set()

    def close(self, *, drop: bool) -> None:
        """Nothing more will come; ``drop`` what is pending, or leave it to be taken."""
        self._closed = True
        if drop:
            self._mailbox.clear()
        self._filled.set()
        self._synced.set()
        self._gate.open()

    @property
    def room(self) -> int:
        """Live events that its mailbox still takes."""
        return self._mailbox.room

    @property
    def closed(self) -> bool:
        """Whether nothing more will come."""
        return self._closed

    # -- the consumer's side -------------------------------------------------------------------

    def next_nowait(self) -> Event | None:
        """The next event if there is one."""
        event = self._mailbox.pop()
        if self._gate.closed and self._mailbox.drained:
            self._gate.open()
        if self._mailbox.synced and not self._synced.is_set():
            self._synced.set()
        return event

    async def next(self) -> Event | None:
        """The next event; ``None`` when the listener is closed and everything was taken."""
        while (event := self.next_nowait()) is None:
            if not self._mailbox.empty:  # it skipped what is told no more, and gives way
                await asyncio.sleep(0)
                continue
            if self._closed:
                return None
            self._filled.clear()
            await self._filled.wait()
        return event

    # -- its owner's side ----------------------------------------------------------------------

    @property
    def synced(self) -> bool:
        """Whether everything that was cached when it joined was told, and dealt with."""
        return self._mailbox.synced

    async def wait_synced(self, timeout: float | None = None) -> None:
        """Wait for ``synced``.

        Args:
            timeout: seconds.

        Raises:
            SyncTimeout: not within that time.
            NotRunning: the listener was removed or its informer ended before.
        """
        try:
            async with asyncio.timeout(timeout):
                await self._synced.wait()
        except TimeoutError:
            raise SyncTimeout(timeout or 0.0, {self.name: self._why()}) from None
        if not self.synced:
            raise NotRunning(f"{self.name} ended before it was synced")

    def statistics(self) -> Statistics:
        """Its numbers now."""
        box = self._mailbox
        return Statistics(
            pending=box.pending,
            limit=box.limit,
            delivered=box.delivered,
            errors=0,
            synced=box.synced,
        )

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open"
        return f"<{type(self).__name__} {self.name} {state} {self._mailbox!r}>"
