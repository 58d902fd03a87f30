"""The shared informer: one reflector, one cache, many listeners.

It puts the parts together and is what a program sees of them: the reflector feeds the queue, the
pump drains it into the cache and the mailboxes, the lister reads.

Who listens is ``subscriptions``' business, what programs read ``readings``'. Tasks: the reflector,
the pump, the resync timer, and one for each handler, in one task group.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any

from typing_extensions import TypeVar

from aioinformer._core.backoff import BackoffPolicy
from aioinformer._core.habits import Habits
from aioinformer._core.indexer import Indexer
from aioinformer._core.liveness import LivenessPolicy
from aioinformer._core.metrics import Levels, Metrics, NoMetrics
from aioinformer._core.objects import KubeObject
from aioinformer._core.shapes import Keep, Shape
from aioinformer._core.store import Indexers
from aioinformer._core.tracing import Tracing
from aioinformer._core.wire import LINE_CAP
from aioinformer._runtime.delta_queue import DeltaQueue
from aioinformer._runtime.handlers import Handler, Inside
from aioinformer._runtime.health import Health
from aioinformer._runtime.proving import Proofs
from aioinformer._runtime.pump import Pump
from aioinformer._runtime.readings import Readings
from aioinformer._runtime.reflector import Reflector
from aioinformer._runtime.reports import OnError, Reports
from aioinformer._runtime.sources import ListerWatcher
from aioinformer._runtime.spans import traced
from aioinformer._runtime.tracing import handler_spans, informer_trace
from aioinformer.errors import FetchError, UsageError

__all__ = ["SharedInformer"]

log = logging.getLogger("aioinformer.informer")

SHOWN = 100
"""Keys of rejected objects that health lists: a wrong model or index function rejects them all."""


T = TypeVar("T", default=KubeObject)


class SharedInformer(Readings[T]):
    """Keeps a cache of one resource in one scope, and tells listeners what changes.

    Per object and listener: ``Added``, ``Updated``..., ``Deleted``, in the server's order; an
    object that is re-created under its name is deleted and added, never updated. When a listener
    hears of something, the cache shows it or something later. Nothing is promised about the
    order between listeners, nor that every state in between is told after a relist.
    """

    _told: Callable[[Exception], None] | None = None
    """What ``run`` is to tell of its failure."""

    def __init__(
        self,
        source: ListerWatcher,
        *,
        name: str = "",
        namespace: str | None = None,
        shape: Shape[T] | None = None,
        indexers: Indexers[T] | None = None,
        resync: float = 0.0,
        verify_every: float = 0.0,
        backoff: BackoffPolicy | None = None,
        liveness: LivenessPolicy | None = None,
        habits: Habits | None = None,
        watch_list: bool = True,
        page_size: int = 0,
        managed_fields: bool = False,
        line_cap: int = LINE_CAP,
        label: str = "",
        metrics: Metrics | None = None,
        tracing: Tracing | None = None,
        on_error: OnError | None = None,
        fail_fast: tuple[type[FetchError], ...] = (),
    ) -> None:
        """Make an informer. A factory makes and runs them; alone, await ``run``.

        Args:
            source: where to list and watch.
            name: for logs and errors; the resource by default.
            namespace: the only namespace that ``source`` serves; ``None`` if it may be any.
            shape: what to make of the objects, as ``Shape.of(model=Pod)``; ``KubeObject``s by
                default.
            indexers: index functions by index name.
            resync: seconds between two times that listeners are told the cached state again as
                ``Updated(resync=True)``, with no request to the server; 0 for never.
            verify_every: seconds, a minute at least, between two comparisons of the cache with the
                server, as by ``verify``: each costs the server a full list. One that finds a
                difference is a ``Problem`` with ``CacheDiffers``, and in health; 0 for never.
            backoff: how long to wait after failures.
            liveness: how long to bear the silence of a watch.
            habits: what is known of how the server serves the resource; informers of one
                resource may share it.
            watch_list: whether to get the state by a WatchList where the server can do that.
            page_size: items a page of a list; 0 for client-go's rule.
            managed_fields: whether objects keep ``metadata.managedFields``.
            line_cap: the longest watch event, in bytes, that is accepted.
            label: its name in metrics; ``name`` by default.
            metrics: what to feed with numbers.
            tracing: what makes spans of its requests, and perhaps of its handlers' calls.
            on_error: is told of every ``Problem``, in the event loop; must be quick.
            fail_fast: errors of requests after which it gives up instead of trying again:
                ``run`` raises them, and so does a factory that runs it.
        """
        shape = shape or Shape()
        keep = shape.keep()
        found: Any = indexers
        indexer = Indexer(found, view=shape.view())
        self._queue = DeltaQueue()
        name = name or str(source.resource)
        super().__init__(
            name,
            Pump(name, self._queue, indexer),
            indexer,
            source.resource,
            lambda: self._reflector.source,
            namespace=namespace,
            managed_fields=managed_fields,
            keep=keep,
            resync=resync,
        )
        trace = informer_trace(tracing, label or name, str(source.resource))
        self._tracing = tracing
        self._reports = Reports(name, label=label, metrics=metrics, trace=trace, on_error=on_error)
        self._pump.on_rejected = self._reports.rejected
        self._proofs = Proofs(
            verify_every, lambda: self._verified(contents=False), self._reports.unproven
        )
        make = partial(self._reflect, source, backoff, liveness, habits, watch_list, keep)
        self._reflector = make(page_size, managed_fields, line_cap, fail_fast)

    def _reflect(
        self,
        source: ListerWatcher,
        backoff: BackoffPolicy | None,
        liveness: LivenessPolicy | None,
        habits: Habits | None,
        watch_list: bool,
        keep: Keep | None,
        page_size: int,
        managed_fields: bool,
        line_cap: int,
        fail_fast: tuple[type[FetchError], ...],
    ) -> Reflector:
        # The queue can't know what will be cached while a whole state is being staged, so it is
        # the indexer that ignores the deletion of what it doesn't hold.
        return Reflector(
            source,
            self._queue,
            backoff=backoff,
            liveness=liveness,
            habits=habits,
            watch_list=watch_list,
            page_size=page_size,
            managed_fields=managed_fields,
            line_cap=line_cap,
            keep=keep,
            known=self._indexer.known,
            fail_fast=fail_fast,
            reports=self._reports,
        )

    # -- the program's view --------------------------------------------------------------------

    @property
    def health(self) -> Health:
        """What it does, what went wrong last, and how far it is."""
        condition, state = self._reports.condition, self._indexer.state
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
            unconverted=0 if self._view is None else self._view.failures,
            blocked_by=self._pump.blocked_by,
            fresh=condition.fresh,
            strategy=self._reflector.strategy,
            rewinds=self._reports.rewinds,
            verified=condition.verified,
            differences=condition.differences,
        )

    def _levels(self) -> Levels:
        """What metrics read off it, from another thread perhaps: attributes, and nothing else."""
        state, fifo, fresh = self._indexer.state, self._queue.fifo, self._reports.condition.fresh
        version = state.resource_version
        return Levels(
            resource_version=int(version) if version.isdecimal() else 0,
            freshness_seconds=float("inf") if fresh is None else fresh,
            queue_entries=len(fifo),
            queue_bytes=fifo.size,
            objects=len(state.objects),
            rejected=len(self._indexer.rejected),
            pending=self._pump.pending,
            blocking=len(self._pump.blocked_by),
            synced=state.synced,
        )

    def _compared(self, differences: int) -> None:
        self._reports.condition.compared(differences)

    def _handler_failed(self, listener: str, error: Exception) -> None:
        self._reports.handler_failed(listener, error)

    def _clocked(self, listener: str) -> Callable[[float, int], None] | None:
        if isinstance(self._reports.metrics, NoMetrics):
            return None
        reports = self._reports
        return partial(reports.metrics.handled, reports.label, reports.listener(listener))

    def _traced(self, handler: Handler[T], name: str) -> Handler[T]:
        known: object = handler
        # Not of a controller's triggers: its runs have spans of their own.
        tracing = None if isinstance(known, Inside) else self._tracing
        own = name.removesuffix(f" of {self.name}")  # which has the selectors in it
        begin = handler_spans(tracing, self._reports.label, own)
        return handler if begin is None else traced(handler, begin)

    def _why(self) -> str:
        return str(self.health)

    # -- running -------------------------------------------------------------------------------

    async def run(self, *, failed: Callable[[Exception], None] | None = None) -> None:
        """List, watch, cache and notify until cancelled. Once.

        It ends when the calls in flight have ended, however long that takes; a factory waits for
        no longer than its ``shutdown_timeout``.

        Args:
            failed: is told at once of what ends it, while calls may still be in flight.

        Raises:
            UsageError: it was started before.
        """
        if self._loop is not None:
            raise UsageError(f"the informer of {self.name} was started before; make another one")
        self._loop = asyncio.get_running_loop()
        self._told = failed
        reports = self._reports
        reports.metrics.informer_started(reports.label, self._levels)
        try:
            await self._run_tasks()
        except (asyncio.CancelledError, BaseExceptionGroup):
            if (error := self._crew.failure) is not None:
                raise error from error.__cause__
            reports.condition.enter("stopped")
            raise
        finally:
            self._ended = True
            self._pump.end()
            reports.trace.closed()
            reports.metrics.informer_ended(reports.label, self._levels)

    def _task_failed(self, error: BaseException) -> None:
        condition = self._reports.condition
        condition.enter("failed")
        log.critical("the informer of %s failed", self.name, exc_info=error)
        if isinstance(error, Exception):
            condition.fail(error)
            if self._told is not None:
                self._told(error)

    async def _run_tasks(self) -> None:
        parts = {
            "reflector": self._reflector.run,
            "pump": self._pump.run,
            "resync": self._resyncs.run,
        }
        if self._proofs.period:
            parts["verification"] = self._proofs.run
        async with self._crew as crew:
            for registration in self.registrations:
                self._start(registration)
            for part, run in parts.items():
                crew.start(run(), name=f"{part} of {self.name}")

    def __repr__(self) -> str:
        condition, state = self._reports.condition, self._indexer.state
        return (
            f"<SharedInformer {self.name} {condition.state} synced={state.synced} "
            f"objects={len(state.objects)} listeners={len(self._pump.audience)}>"
        )
