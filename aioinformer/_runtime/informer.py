"""The shared informer: one reflector, one cache, many listeners.

It puts the parts together and is what a program sees of them: the reflector feeds the queue, the
pump drains it into the cache and the mailboxes, the lister reads.

Tasks: the reflector, the pump, the resync timer, and one for each handler, in one task group.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from itertools import islice
from typing import NoReturn, TypeVar

from aioinformer._core.backoff import BackoffPolicy
from aioinformer._core.indexer import Indexer
from aioinformer._core.lister import Lister
from aioinformer._core.mailbox import LIMIT, Mailbox, Overflow
from aioinformer._core.resources import Resource
from aioinformer._core.store import IndexFunction
from aioinformer._core.wire import LINE_CAP
from aioinformer._runtime.affinity import check_loop
from aioinformer._runtime.crew import Crew
from aioinformer._runtime.delta_queue import DeltaQueue
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
from aioinformer._runtime.health import Health
from aioinformer._runtime.listeners import Listener
from aioinformer._runtime.pump import Pump
from aioinformer._runtime.reflector import ListerWatcher, Reflector
from aioinformer._runtime.streams import EventStream
from aioinformer.errors import NotRunning, SyncTimeout, UsageError

__all__ = ["SharedInformer"]

log = logging.getLogger("aioinformer.informer")

SHOWN = 100
"""Keys of rejected objects that health lists: a broken index function rejects all of them."""

F_add = TypeVar("F_add", bound=OnAdd)
F_update = TypeVar("F_update", bound=OnUpdate)
F_delete = TypeVar("F_delete", bound=OnDelete)


class SharedInformer:
    """Keeps a cache of one resource in one scope, and tells listeners what changes.

    Per object and listener: ``Added``, ``Updated``..., ``Deleted``, in the server's order; an
    object that is re-created under its name is deleted and added, never updated. When a listener
    hears of something, the cache shows it or something later. Nothing is promised about the
    order between listeners, nor that every state in between is told after a relist.
    """

    def __init__(
        self,
        source: ListerWatcher,
        *,
        name: str = "",
        namespace: str | None = None,
        indexers: Mapping[str, IndexFunction] | None = None,
        resync: float = 0.0,
        backoff: BackoffPolicy | None = None,
        page_size: int = 0,
        managed_fields: bool = False,
        line_cap: int = LINE_CAP,
    ) -> None:
        """Make an informer. A factory makes and runs them; alone, await ``run``.

        Args:
            source: where to list and watch.
            name: for logs and errors; the resource by default.
            namespace: the only namespace that ``source`` serves; ``None`` if it may be any.
            indexers: index functions by index name.
            resync: seconds between two times that listeners are told the cached state again as
                ``Updated(resync=True)``, with no request to the server; 0 for never.
            backoff: how long to wait after failures.
            page_size: items a page of a list; 0 for client-go's rule.
            managed_fields: whether objects keep ``metadata.managedFields``.
            line_cap: the longest watch event, in bytes, that is accepted.
        """
        if resync < 0:
            raise ValueError(f"resync must be seconds, or 0 for never, not {resync:g}")
        self.resource: Resource = source.resource
        self.name = name or str(source.resource)
        self._indexer = Indexer(indexers)
        # The queue can't know what will be cached while a whole state is being staged, so it is
        # the indexer that ignores the deletion of what it doesn't hold.
        self._queue = DeltaQueue()
        self._pump = Pump(self.name, self._queue, self._indexer)
        self._reflector = Reflector(
            source,
            self._queue,
            backoff=backoff,
            page_size=page_size,
            managed_fields=managed_fields,
            line_cap=line_cap,
        )
        self.lister = Lister(self._indexer, source.resource, namespace=namespace)
        """Reads the cache; safe from any thread."""
        self._resync = resync
        self._crew = Crew("informer")
        self._ended = False
        self._loop: asyncio.AbstractEventLoop | None = None

    # -- listeners -----------------------------------------------------------------------------

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

    # -- the program's view --------------------------------------------------------------------

    def add_indexers(self, indexers: Mapping[str, IndexFunction]) -> None:
        """Add indexes, before anything is cached.

        Raises:
            UsageError: a name is taken by another function, or objects are cached already.
        """
        self._indexer.add_indexers(indexers)

    @property
    def synced(self) -> bool:
        """Whether the cache has held a full state. Once true, it stays true."""
        return self._indexer.state.synced

    async def wait_synced(self, timeout: float | None = None) -> None:
        """Wait for ``synced``.

        Args:
            timeout: seconds.

        Raises:
            SyncTimeout: not within that time; it says why.
            NotRunning: the informer ended before.
        """
        try:
            async with asyncio.timeout(timeout):
                await self._pump.synced.wait()
        except TimeoutError:
            raise SyncTimeout(timeout or 0.0, {self.name: str(self.health)}) from None
        if not self.synced:
            raise NotRunning(f"the informer of {self.name} ended before it was synced")

    @property
    def health(self) -> Health:
        """What it does, what went wrong last, and how far it is."""
        condition, state = self._reflector.condition, self._indexer.state
        return Health(
            state=condition.state,
            since=condition.since,
            error=condition.error,
            retry_in=condition.retry_in,
            synced=state.synced,
            resource_version=state.resource_version,
            objects=len(state.objects),
            rejected=tuple(map(str, islice(self._indexer.rejected, SHOWN))),
            rejections=len(self._indexer.rejected),
            blocked_by=self._pump.blocked_by,
        )

    def _why(self) -> str:
        return str(self.health)

    @property
    def registrations(self) -> tuple[Registration, ...]:
        """The handlers that have not been removed."""
        return tuple(each for each in self._pump.audience if isinstance(each, Registration))

    # -- running -------------------------------------------------------------------------------

    async def run(self) -> None:
        """List, watch, cache and notify until cancelled. Once.

        Raises:
            UsageError: it was started before.
        """
        if self._loop is not None:
            raise UsageError(f"the informer of {self.name} was started before; make another one")
        self._loop = asyncio.get_running_loop()
        try:
            await self._run_tasks()
        except asyncio.CancelledError:
            self._reflector.condition.enter("stopped")
            raise
        except BaseExceptionGroup as group:
            error = group.exceptions[0]
            self._reflector.condition.enter("failed")
            if isinstance(error, Exception):
                self._reflector.condition.fail(error)
            log.critical("the informer of %s failed", self.name, exc_info=error)
            raise error from error.__cause__
        finally:
            self._ended = True
            self._pump.end()

    async def _run_tasks(self) -> None:
        parts = {"reflector": self._reflector.run, "pump": self._pump.run}
        if self._resync:
            parts["resync"] = self._tick
        async with self._crew as crew:
            for registration in self.registrations:
                self._start(registration)
            for part, run in parts.items():
                crew.start(run(), name=f"{part} of {self.name}")

    def _start(self, registration: Registration) -> None:
        self._crew.watch_over(registration.start(self._crew.group, self._crew.ending))

    async def _tick(self) -> NoReturn:
        while True:
            await asyncio.sleep(self._resync)
            self._queue.resync()

    def __repr__(self) -> str:
        condition, state = self._reflector.condition, self._indexer.state
        return (
            f"<SharedInformer {self.name} {condition.state} synced={state.synced} "
            f"objects={len(state.objects)} listeners={len(self._pump.audience)}>"
        )
