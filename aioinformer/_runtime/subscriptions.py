"""Who listens to an informer: the half of it that programs register handlers and streams with.

``informer`` is the other half: what is listed, watched and cached, and the tasks that do it. How
a registration calls its handler is ``handlers``', how a stream is read is ``streams``'.
"""

from __future__ import annotations

import asyncio
from typing import TypeVar

from aioinformer._core.indexer import Indexer
from aioinformer._core.mailbox import LIMIT, Mailbox, Overflow
from aioinformer._runtime.affinity import check_loop
from aioinformer._runtime.crew import Crew
from aioinformer._runtime.handlers import (
    Handler,
    OnAdd,
    OnDelete,
    OnUpdate,
    Registration,
    adds_only,
    deletions_only,
    handler_name,
    updates_only,
)
from aioinformer._runtime.listeners import Listener
from aioinformer._runtime.pump import Pump
from aioinformer._runtime.streams import EventStream
from aioinformer.errors import NotRunning

__all__ = ["Subscriptions"]

F_add = TypeVar("F_add", bound=OnAdd)
F_update = TypeVar("F_update", bound=OnUpdate)
F_delete = TypeVar("F_delete", bound=OnDelete)


class Subscriptions:
    """Registers the listeners of one informer, and starts the tasks of its handlers."""

    def __init__(self, name: str, pump: Pump, indexer: Indexer) -> None:
        """Nobody listens yet."""
        self.name = name
        self._pump = pump
        self._indexer = indexer
        self._crew = Crew("informer")
        self._ended = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def add_handler(
        self, handler: Handler, *, limit: int = LIMIT, overflow: Overflow = "block"
    ) -> Registration:
        """Have ``handler`` called with what changes, beginning with what is cached now.

        Args:
            handler: an object with any of ``on_add(obj, *, initial)``, ``on_update(old, new, *,
                resync)``, ``on_delete(obj, *, reason)``, or a function of one event; async or
                not. One that isn't async runs in the event loop and must be quick.
            limit: live events that may be pending for it.
            overflow: ``"block"``: when that many are, the watch isn't read until it catches up.

        Raises:
            NotRunning: the informer has ended.
        """
        name = f"{handler_name(handler)} of {self.name}"
        registration = Registration(
            handler, name, self._mailbox(limit, overflow), self._pump.gate, why=self._why
        )
        self._join(registration)
        if self._crew.at_work:
            self._start(registration)
        return registration

    def on_add(self, function: F_add) -> F_add:
        """Decorator: call ``function(obj, *, initial)`` for each object that is new.

        Each decorated function is a handler of its own: two of them don't wait for each other.
        """
        self.add_handler(adds_only(function))
        return function

    def on_update(self, function: F_update) -> F_update:
        """Decorator: call ``function(old, new, *, resync)`` for each change."""
        self.add_handler(updates_only(function))
        return function

    def on_delete(self, function: F_delete) -> F_delete:
        """Decorator: call ``function(obj, *, reason)`` for each object that is gone."""
        self.add_handler(deletions_only(function))
        return function

    def events(self, *, limit: int = LIMIT, overflow: Overflow = "block") -> EventStream:
        """A stream of what changes, beginning with what is cached when it is entered.

        Args:
            limit: live events that may be pending for it.
            overflow: ``"block"``: when that many are, the watch isn't read until it catches up.
        """
        name = f"stream of {self.name}"

        def join() -> Listener:
            listener = Listener(
                name, self._mailbox(limit, overflow), self._pump.gate, why=self._why
            )
            self._join(listener)
            return listener

        return EventStream(name, join)

    def _mailbox(self, limit: int, overflow: Overflow) -> Mailbox:
        return Mailbox(limit=limit, overflow=overflow, holds=self._indexer.holds)

    def _join(self, listener: Listener) -> None:
        if self._crew.ending() or self._ended:
            raise NotRunning(f"the informer of {self.name} has ended")
        check_loop(self._loop, f"the informer of {self.name}")
        self._pump.join(listener)

    @property
    def registrations(self) -> tuple[Registration, ...]:
        """The handlers that have not been removed."""
        return tuple(each for each in self._pump.audience if isinstance(each, Registration))

    def _start(self, registration: Registration) -> None:
        self._crew.watch_over(registration.start(self._crew.group, self._crew.ending))

    def _why(self) -> str:
        """What the informer does now, for errors of those who wait."""
        return self.name
