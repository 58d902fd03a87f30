"""The shared informer: one reflector, one cache, many listeners.

It puts the parts together and is what a program sees of them: the reflector feeds the queue, the
pump drains it into the cache and the mailboxes, the lister reads.

Who listens is ``subscriptions``' business, what programs read ``readings``'. Tasks: the reflector,
the pump, the resync timer, and one for each handler, in one task group.

What programs read of an informer: its lister, its indexes, and how to wait for what they need.

A cache shows the past. Who has just written something, and goes on by what is cached, waits for
it first; who wants to know whether the cache is right has it compared with the server. Who listens
is ``subscriptions``' business, how somebody is woken ``awaiting``'s.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from itertools import islice
from typing import Any

from typing_extensions import TypeVar

from aioinformer._core.cache.indexer import Indexer
from aioinformer._core.cache.store import Indexers, IndexFunction
from aioinformer._core.cache.verification import Verification
from aioinformer._core.codec.shape import Converter, Shape
from aioinformer._core.codec.watch_decoder import LINE_CAP
from aioinformer._core.instrumentation import Levels, Metrics, NoMetrics, Tracing
from aioinformer._core.listwatch.backoff import BackoffPolicy
from aioinformer._core.listwatch.idle_timeout import LivenessPolicy
from aioinformer._core.listwatch.server_profile import ServerProfile
from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.resources import Resource
from aioinformer._core.objects.stored import NeedsJson
from aioinformer._runtime.delivery.handlers import Handler, InternalHandler, with_span
from aioinformer._runtime.informer.live_lister import LiveLister
from aioinformer._runtime.informer.pump import Pump
from aioinformer._runtime.informer.subscriptions import ListenerRegistry
from aioinformer._runtime.informer.verifier import PeriodicVerifier, verify
from aioinformer._runtime.informer.waiters import ObjectVersion
from aioinformer._runtime.reflector.delta_queue import DeltaQueue
from aioinformer._runtime.reflector.lister_watcher import ListerWatcher
from aioinformer._runtime.reflector.reflector import Reflector
from aioinformer._runtime.reporting.health import Health
from aioinformer._runtime.reporting.reporter import InformerReporter, OnError
from aioinformer._runtime.reporting.safe_tracing import handler_span_factory, make_informer_trace
from aioinformer._runtime.tasks.event_loop import ITEMS_PER_STEP, TimeSlice, check_loop
from aioinformer.errors import CacheWaitTimeout, FetchError, UsageError

__all__ = ["CacheReader", "SharedInformer"]


T = TypeVar("T", default=KubeObject)
R = TypeVar("R")


class CacheReader(ListenerRegistry[T]):
    """Gives out what one informer has cached."""

    def __init__(
        self,
        name: str,
        pump: Pump,
        indexer: Indexer,
        resource: Resource,
        source: Callable[[], ListerWatcher],
        *,
        namespace: str | None = None,
        managed_fields: bool = False,
        converter: Converter | None = None,
        resync: float = 0.0,
    ) -> None:
        """Read from ``indexer``; ``source`` gives what is listed and watched now."""
        super().__init__(name, pump, indexer, resync=resync)
        self.resource = resource
        self.lister: LiveLister[T] = LiveLister(indexer, self.resource, namespace=namespace)
        """Reads the cache; all but its ``scan`` is safe from any thread."""
        self._source = source
        self._namespace = namespace
        self._managed_fields = managed_fields
        self._converter = converter

    # -- indexes ---------------------------------------------------------------------------------

    def add_indexers(self, indexers: Indexers[T]) -> None:
        """Add indexes, before anything is cached. The same ones again are no error.

        Raises:
            UsageError: a name is taken by another function, or objects are cached already;
                ``add_index`` can do it then; or a function reads JSON that isn't kept.
        """
        self._indexer.add_indexers(indexers)

    async def add_index(self, name: str, function: IndexFunction[T] | NeedsJson) -> None:
        """Add an index at any time. It is complete when it can be read for the first time.

        It is built a few objects at a time, so that the event loop isn't held, from the cache as
        it goes on changing. The same one again is no error. Cancelled, it leaves no trace.

        Args:
            name: the index's.
            function: gives the values of an object; see ``IndexFunction``.

        Raises:
            IndexFailed: the function raised. There is no such index, and nothing else has changed.
            UsageError: the name is taken by another function, or it reads JSON that isn't kept.
        """
        check_loop(self._loop, f"the informer of {self.name}")
        building = self._indexer.build_index(name, function)
        if building is None:
            return
        pace = TimeSlice()
        try:
            while not building.step(ITEMS_PER_STEP):
                await pace.maybe_yield()
            building.commit()
        finally:
            building.abandon()

    # -- waiting ---------------------------------------------------------------------------------

    async def wait_for(self, obj: Mapping[str, Any], *, timeout: float | None = None) -> T | None:
        """Wait until the cache shows what was written: ``await pods.wait_for(answer, timeout=5)``.

        That is so when it holds the object, by uid, in that version or a later one; or when it
        has applied everything up to that version and doesn't hold it: it is gone, or was never
        selected. The server tells of the latter with the next bookmark, up to a minute later.
        If what was written was rejected (``health.rejected``) the cache will never hold it: the
        version before is returned once that is known, or ``None``.

        Args:
            obj: what the server has answered to a write, as a dict or any mapping; or a
                ``KubeObject``.
            timeout: seconds; ``None`` for no limit.

        Returns:
            The object as it is cached now; ``None`` if it isn't.

        Raises:
            CacheWaitTimeout: not within that time; it says what the informer's health says.
            NotComparable: its resourceVersion is no number, and the cache doesn't hold that one.
            ModelMismatch: ``convert=`` raised at what is cached.
            NotRunning: the informer ended before.
            UsageError: ``obj`` has no name, uid or resourceVersion, or isn't of this informer's
                resource and namespace; or this is called by a handler of this informer that has
                ``overflow="block"``.
        """
        written = ObjectVersion.of(obj)
        self._check_own_object(obj, written)
        waits = self._pump.waiters
        found = await self._with_timeout(
            timeout, str(written), lambda: waits.wait_for_version(written)
        )
        return self._view_of(found)

    def _view_of(self, obj: KubeObject | None) -> T | None:
        found: Any = obj
        seen: T | None = found
        return seen if obj is None or self._view is None else self._view.convert(obj)

    async def wait_until(
        self,
        key: ObjectKey | str,
        predicate: Callable[[T | None], object],
        *,
        timeout: float | None = None,
    ) -> T | None:
        """Wait until the cached object of that key passes ``predicate``.

        It is asked at once, and again after changes of the object, in this task: a state that
        lasts for less than a turn of the event loop may be missed.

        Args:
            key: as for ``lister.get``.
            predicate: gets the object, or ``None`` if none is cached. What it raises is raised.
            timeout: seconds; ``None`` for no limit.

        Returns:
            What passed.

        Raises:
            CacheWaitTimeout: not within that time; it says what the informer's health says.
            ModelMismatch: ``convert=`` raised at a state that was to be asked about.
            NotRunning: the informer ended before.
            UsageError: as for ``lister.get``, and as for ``wait_for`` in a handler.
        """
        meant = self.lister.key(key)
        awaited, waits = f"what was waited for of {meant}", self._pump.waiters
        passes = self._view_predicate(predicate)
        found = await self._with_timeout(
            timeout, awaited, lambda: waits.wait_for_predicate(meant, passes)
        )
        return self._view_of(found)

    def _view_predicate(
        self, predicate: Callable[[T | None], object]
    ) -> Callable[[KubeObject | None], object]:
        return lambda obj: predicate(self._view_of(obj))

    async def verify(self, *, contents: bool = False, timeout: float | None = None) -> Verification:
        """Compare the cache with the server, to know whether it is right.

        The server is asked for the state of exactly the version that the cache shows now. Both go
        on meanwhile. It costs the server a full list, page by page.

        Args:
            contents: whether to compare what is in the objects as well, and not only which are
                there in which versions.
            timeout: seconds; ``None`` for no limit.

        Returns:
            What differs. It is true if nothing does.

        Raises:
            NotSynced: the cache doesn't hold its first full state yet.
            CacheWaitTimeout: not within that time.
            FetchError: the server could not be asked; ``Expired`` if it had forgotten each version
                that the cache came to show.
            NotRunning: the informer ended while this waited for a version that isn't forgotten.
            UsageError: as for ``wait_for`` in a handler.
        """
        awaited = "a state that the server has confirmed"
        return await self._with_timeout(timeout, awaited, lambda: self._run_verification(contents))

    async def _run_verification(self, contents: bool) -> Verification:
        found = await verify(
            self._source(),
            self._indexer,
            self._pump.waiters,
            contents=contents,
            managed_fields=self._managed_fields,
            converter=self._converter,
        )
        self._record_comparison(len(found.differences))
        return found

    def _record_comparison(self, differences: int) -> None:
        """The cache was compared with the server, and differed in so many objects."""

    async def _with_timeout(
        self, timeout: float | None, description: str, work: Callable[[], Awaitable[R]]
    ) -> R:
        """Have ``work`` done in that time, in the informer's own loop."""
        check_loop(self._loop, f"the informer of {self.name}")
        self._check_not_in_handler(synced=False)
        limit = asyncio.timeout(timeout)
        try:
            async with limit:
                return await work()
        except TimeoutError as error:
            if timeout is None or not limit.expired():
                raise  # somebody else's
            raise self._stale_error(timeout, description) from error

    def _stale_error(self, timeout: float, description: str) -> CacheWaitTimeout:
        version = self._indexer.state.resource_version
        at = f"it is at resourceVersion {version}" if version else "it holds no state"
        return CacheWaitTimeout(
            f"the cache of {self.name} doesn't show {description} after {timeout:g} s: {at}; "
            f"{self._describe()}",
            resource_version=version,
        )

    def _check_own_object(self, obj: Mapping[str, Any], target: ObjectVersion) -> None:
        kind = obj.get("kind") or self.resource.kind
        if kind != self.resource.kind:
            raise UsageError(f"{target} is a {kind}; this is the informer of {self.name}")
        if self._namespace and target.key.namespace != self._namespace:
            raise UsageError(f"{target} is in another namespace; this is of {self.name}")


log = logging.getLogger("aioinformer.informer")

MAX_REJECTED_KEYS = 100
"""Keys of rejected objects that health lists: a wrong model or index function rejects them all."""


class SharedInformer(CacheReader[T]):
    """Keeps a cache of one resource in one scope, and tells listeners what changes.

    Per object and listener: ``Added``, ``Updated``..., ``Deleted``, in the server's order; an
    object that is re-created under its name is deleted and added, never updated. When a listener
    hears of something, the cache shows it or something later. Nothing is promised about the
    order between listeners, nor that every state in between is told after a relist.
    """

    _on_failure: Callable[[Exception], None] | None = None
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
        habits: ServerProfile | None = None,
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
            converter=keep,
            resync=resync,
        )
        trace = make_informer_trace(tracing, label or name, str(source.resource))
        self._tracing = tracing
        self._reporter = InformerReporter(
            name, label=label, metrics=metrics, trace=trace, on_error=on_error
        )
        self._pump.on_rejected = self._reporter.object_rejected
        self._verifier = PeriodicVerifier(
            verify_every,
            lambda: self._run_verification(contents=False),
            self._reporter.verification_failed,
        )
        make = partial(self._make_reflector, source, backoff, liveness, habits, watch_list, keep)
        self._reflector = make(page_size, managed_fields, line_cap, fail_fast)

    def _make_reflector(
        self,
        source: ListerWatcher,
        backoff: BackoffPolicy | None,
        liveness: LivenessPolicy | None,
        server_profile: ServerProfile | None,
        watch_list: bool,
        converter: Converter | None,
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
            habits=server_profile,
            watch_list=watch_list,
            page_size=page_size,
            managed_fields=managed_fields,
            line_cap=line_cap,
            keep=converter,
            known=self._indexer.deduplicate,
            fail_fast=fail_fast,
            reports=self._reporter,
        )

    # -- the program's view --------------------------------------------------------------------

    @property
    def health(self) -> Health:
        """What it does, what went wrong last, and how far it is."""
        condition, state = self._reporter.status, self._indexer.state
        return Health(
            state=condition.state,
            since=condition.since,
            error=condition.error,
            retry_in=condition.retry_in,
            synced=state.synced,
            resource_version=state.resource_version,
            objects=len(state.objects),
            rejected=tuple(map(str, islice(self._indexer.rejected, MAX_REJECTED_KEYS))),
            rejections=len(self._indexer.rejected),
            unconverted=0 if self._view is None else self._view.failures,
            blocked_by=self._pump.blocked_by,
            fresh=condition.fresh,
            strategy=self._reflector.strategy,
            rewinds=self._reporter.rewinds,
            verified=condition.verified,
            differences=condition.differences,
        )

    def _read_levels(self) -> Levels:
        """What metrics read off it, from another thread perhaps: attributes, and nothing else."""
        state, fifo, fresh = self._indexer.state, self._queue.fifo, self._reporter.status.fresh
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

    def _record_comparison(self, differences: int) -> None:
        self._reporter.status.record_comparison(differences)

    def _handler_failed(self, listener: str, error: Exception) -> None:
        self._reporter.handler_failed(listener, error)

    def _metrics_callback(self, listener: str) -> Callable[[float, int], None] | None:
        if isinstance(self._reporter.metrics, NoMetrics):
            return None
        reports = self._reporter
        return partial(reports.metrics.handled, reports.label, reports.listener_label(listener))

    def _add_spans(self, handler: Handler[T], name: str) -> Handler[T]:
        known: object = handler
        # Not of a controller's triggers: its runs have spans of their own.
        tracing = None if isinstance(known, InternalHandler) else self._tracing
        own = name.removesuffix(f" of {self.name}")  # which has the selectors in it
        begin = handler_span_factory(tracing, self._reporter.label, own)
        return handler if begin is None else with_span(handler, begin)

    def _describe(self) -> str:
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
        self._on_failure = failed
        reports = self._reporter
        reports.metrics.informer_started(reports.label, self._read_levels)
        try:
            await self._run_tasks()
        except (asyncio.CancelledError, BaseExceptionGroup):
            if (error := self._task_group.failure) is not None:
                raise error from error.__cause__
            reports.status.set_state("stopped")
            raise
        finally:
            self._ended = True
            self._pump.end()
            reports.trace.closed()
            reports.metrics.informer_ended(reports.label, self._read_levels)

    def _task_failed(self, error: BaseException) -> None:
        condition = self._reporter.status
        condition.set_state("failed")
        log.critical("the informer of %s failed", self.name, exc_info=error)
        if isinstance(error, Exception):
            condition.record_error(error)
            if self._on_failure is not None:
                self._on_failure(error)

    async def _run_tasks(self) -> None:
        parts = {
            "reflector": self._reflector.run,
            "pump": self._pump.run,
            "resync": self._resync_timer.run,
        }
        if self._verifier.period:
            parts["verification"] = self._verifier.run
        async with self._task_group as crew:
            for registration in self.registrations:
                self._start(registration)
            for part, run in parts.items():
                crew.start(run(), name=f"{part} of {self.name}")

    def __repr__(self) -> str:
        condition, state = self._reporter.status, self._indexer.state
        return (
            f"<SharedInformer {self.name} {condition.state} synced={state.synced} "
            f"objects={len(state.objects)} listeners={len(self._pump.listeners)}>"
        )
