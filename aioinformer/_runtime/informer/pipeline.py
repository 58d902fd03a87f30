"""The pipeline of one informer: its parts, connected, and run in one task group.

Reflector ──▶ DeltaQueue ──▶ Pump ──▶ Indexer ◀── Lister, CacheReader
                              └─────▶ ListenerRegistry ──▶ handlers, streams
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol

from typing_extensions import TypeVar

from aioinformer._core.cache.indexer import Indexer
from aioinformer._core.cache.store import Indexers, check_indexers
from aioinformer._core.codec.shape import Shape
from aioinformer._core.listwatch.server_profile import ServerProfile
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._runtime.informer.cache_reader import CacheReader
from aioinformer._runtime.informer.listener_registry import ListenerRegistry
from aioinformer._runtime.informer.options import InformerOptions
from aioinformer._runtime.informer.pump import Pump
from aioinformer._runtime.informer.reflector_builder import ReflectorBuilder
from aioinformer._runtime.informer.reflectors import (
    Reflectors,
    RunReflector,
    SingleReflector,
    run_reflector,
)
from aioinformer._runtime.informer.status import InformerStatus
from aioinformer._runtime.reflector.delta_queue import DeltaQueue
from aioinformer._runtime.reflector.lister_watcher import (
    ListerWatcher,
    NamesSelectors,
    served_namespace,
)
from aioinformer._runtime.reporting.error_texts import describe_error
from aioinformer._runtime.reporting.reporter import InformerReporter
from aioinformer._runtime.tasks.event_loop import own_loop
from aioinformer._runtime.tasks.task_group import StrictTaskGroup
from aioinformer.errors import InformerError, NotRunning, NotSynced, UsageError
from aioinformer.namespaces.scoped_source import ScopedSource
from aioinformer.sharding.shard_source import group_of, read_shard

# Parts for the users of an option alone: their modules are loaded by the first informer with the
# option, so that other programs start sooner.
if TYPE_CHECKING:  # for programs that use these features, and for types
    from aioinformer._core.cache.protocols import ObjectCache
    from aioinformer.cachefile.checkpointer import Checkpointer
    from aioinformer.namespaces.scope_set import ScopeSet
    from aioinformer.namespaces.state.partitions import PartitionedIndexer
    from aioinformer.namespaces.state.scopes import Scope
    from aioinformer.sharding.group_shards import GroupShards
    from aioinformer.sharding.state.assignment import ShardAssignment
    from aioinformer.sharding.state.shard import Shard
    from aioinformer.verification.state.verification import Verification

log = logging.getLogger("aioinformer.informer")

T = TypeVar("T", default=KubeObject)


class DepartureGuard(Protocol):
    """Objects to the departure of existing objects from a cache."""

    def check(self, departure: str) -> None:
        """Raise if there is something that an object may leave, and with it the cache, without
        being deleted: a selector, or the namespaces that are followed. Empty for nothing.
        """

    def dropped(self, obj: KubeObject) -> None:
        """Take a version of an object that ``transform=`` drops, before the transform."""


class InformerPipeline(Generic[T]):
    """The parts of one informer. A pipeline runs once."""

    def __init__(
        self,
        source: ListerWatcher | ScopedSource,
        shape: Shape[T],
        reporter: InformerReporter,
        options: InformerOptions,
        *,
        namespace: str | None,
        indexers: Indexers[T] | None,
        managed_fields: bool,
        profile: ServerProfile | None,
    ) -> None:
        """Make and connect the parts. ``SharedInformer`` documents the arguments."""
        self.name = reporter.informer
        self._source = source
        self._guards: dict[DepartureGuard, None] = {}
        self._converter = shape.converter(partial(_report_dropped, self._guards))
        self.keeps_bodies = shape.is_whole
        """True if objects are cached as the server sent them."""
        self._managed_fields = managed_fields
        self._shard = options.shard
        """The shard to read, or the group whose shards are read; ``None`` for all objects."""
        self.indexer: ObjectCache
        make_reflectors: Callable[[ReflectorBuilder], Reflectors]
        found: Any = check_indexers(indexers)
        if isinstance(source, ScopedSource):
            from aioinformer.namespaces.state.partitions import PartitionedIndexer

            self.indexer = partitioned = PartitionedIndexer(found, view=shape.view())
            make_reflectors = partial(self._make_scopes, source, partitioned)
        else:
            self.indexer = indexer = Indexer(found, view=shape.view())
            make_reflectors = partial(self._make_single, source, indexer)
        # Without known keys: while a list is being staged, the queue can't know which objects will
        # be cached. The indexer ignores deletions of objects that it doesn't hold.
        self._queue = DeltaQueue()
        self.pump = Pump(self.name, self._queue, self.indexer, namespace=namespace)
        self.pump.on_rejected = reporter.object_rejected
        self.reporter = reporter
        self.checkpointer = self._make_checkpointer(options, shape)
        self.pump.observer = self.checkpointer
        self.scopes: ScopeSet | None = None
        """The namespaces of an informer that reads several."""
        self.group_shards: GroupShards | None = None
        """The shards of an informer on a group."""
        self._reflectors = make_reflectors(self._make_builder(options, shape, profile))
        self.status = self._make_status()
        self._logs_stacks = options.report_blocking == "stack"
        self._on_fatal: Callable[[Exception], None] | None = None
        self._task_group = StrictTaskGroup("informer")
        listeners = self._make_registry(options)
        self.listeners: ListenerRegistry[T] = listeners
        self.status.registrations = lambda: listeners.registrations
        self.reader: CacheReader[T] = self._make_reader(namespace)

    def _make_builder(
        self, options: InformerOptions, shape: Shape[T], profile: ServerProfile | None
    ) -> ReflectorBuilder:
        return ReflectorBuilder(
            options=options,
            fail_fast=options.fail_fast,
            reporter=self.reporter,
            deduplicate=self.indexer.deduplicate,
            converter=self._converter,
            metadata_only=shape.metadata_only,
            managed_fields=self._managed_fields,
            profile=profile,
            select=partial(read_shard, options.shard),
        )

    def _make_checkpointer(self, options: InformerOptions, shape: Shape[T]) -> Checkpointer | None:
        if options.cache is None:
            return None
        from aioinformer.cachefile.checkpointer import Checkpointer
        from aioinformer.cachefile.state.identity import scope_identity

        source, family = self._source, ""
        selection = {
            "managed fields": str(self._managed_fields),
            "shape": str(shape),
            "shard": _describe_shard(options.shard),
            "scopes": "several" if isinstance(source, ScopedSource) else "one",
            "version": options.cache.version,
        }
        if isinstance(source, ScopedSource):
            selectors = {**selection, "selectors": source.selectors}
            family = scope_identity(source.resource, selectors, shape.transform)
        return Checkpointer(
            self.name,
            options.cache,
            self.indexer,
            selection=selection,
            transform=shape.transform,
            refusal=options.cache.refusal(source.resource, shape),
            group=group_of(options.shard),
            family=family,
        )

    def _make_status(self) -> InformerStatus:
        return InformerStatus(
            self.reporter,
            self._queue,
            self.indexer,
            self.pump,
            self._reflectors,
            self.checkpointer,
        )

    def _make_registry(self, options: InformerOptions) -> ListenerRegistry[T]:
        registry: ListenerRegistry[T] = ListenerRegistry(
            self.name,
            self.pump,
            self.indexer,
            self.reporter,
            self._task_group,
            resync=options.resync,
            report_blocking=bool(options.report_blocking),
            describe=self.status.weak_describe(),
        )
        registry.checkpointer = self.checkpointer
        return registry

    def _make_reader(self, namespace: str | None) -> CacheReader[T]:
        return CacheReader(
            self.name,
            self._source.resource,
            self.indexer,
            self.pump,
            self.listeners,
            namespace=namespace,
            describe=self.status.weak_describe(),
            find_reflector=self._reflectors.find,
        )

    def _make_single(
        self, source: ListerWatcher, indexer: Indexer, builder: ReflectorBuilder
    ) -> Reflectors:
        reflector = builder.make(source, self._queue)
        return self._run_on_group(
            lambda run: SingleReflector(self.name, reflector, self._queue, indexer, run)
        )

    def _make_scopes(
        self, source: ScopedSource, indexer: PartitionedIndexer, builder: ReflectorBuilder
    ) -> Reflectors:
        from aioinformer.namespaces.scope_set import ScopeSet

        def make_scopes(run: RunReflector) -> ScopeSet:
            self.scopes = ScopeSet(
                self.name,
                source,
                self._queue,
                indexer,
                make_reflector=partial(builder.make_scoped, source),
                update_synced=self.pump.update_synced,
                run=run,
            )
            return self.scopes

        return self._run_on_group(make_scopes)

    def _run_on_group(self, make_scopes: Callable[[RunReflector], Reflectors]) -> Reflectors:
        """Return the reflectors of the scopes; on a group, they read the shards that are held."""
        group = group_of(self._shard)
        if group is None:
            return make_scopes(self._run_reflector)
        from aioinformer.sharding.group_reflectors import GroupReflectors

        open_shards = None if self.checkpointer is None else self.checkpointer.open_shards
        reflectors = GroupReflectors(self.name, group, make_scopes, open_shards)
        self.group_shards = reflectors.shards
        return reflectors

    @property
    def _run_reflector(self) -> RunReflector:
        return run_reflector if self.checkpointer is None else self.checkpointer.restore_and_run

    def exclusion(self, obj: KubeObject) -> str:
        """Return what certainly keeps an object of the server out of the cache; empty if nothing
        does.
        """
        key, shards = obj.key, self.group_shards
        reflector = self._reflectors.find(key.namespace)
        if self.indexer.state.part_of(key) is None:
            return f"namespace {key.namespace}"
        if shards is not None and shards.shard_of_object(obj) not in shards.held:
            return "another shard"
        if reflector is None:
            return ""
        source, filter = reflector.source, reflector.filter
        if shards is None and filter is not None and not filter.admits(obj.uid, key.namespace):
            return "another shard"
        if served_namespace(source) not in (None, key.namespace):
            return f"namespace {key.namespace}"
        if not isinstance(source, NamesSelectors):
            return ""
        from aioinformer._core.cache.query import Query  # for controllers that write

        chosen = source.selectors
        labels, fields = chosen.get("labelSelector", ""), chosen.get("fieldSelector", "")
        if obj.api_version != source.resource.api_version:  # which may have other fields
            fields = ""
        return Query.of(labels=labels, fields=fields).excludes(obj)

    @property
    def _selectors(self) -> tuple[tuple[str, str], ...]:
        """The label selector and the field selector of each part that the informer reads."""
        source = self._source
        if isinstance(source, ScopedSource):
            return source.scope_selectors
        chosen: Mapping[str, str] = source.selectors if isinstance(source, NamesSelectors) else {}
        return ((chosen.get("labelSelector", ""), chosen.get("fieldSelector", "")),)

    def add_guard(self, guard: DepartureGuard) -> None:
        """See ``SharedInformer``."""
        source, departure = self._source, _departure(self._selectors)
        if isinstance(source, ScopedSource) and source.followed is not None:
            departure = f"the namespaces that match {source.followed.predicate!r}"
        guard.check(departure)
        self._guards.setdefault(guard)

    @property
    def selection(self) -> tuple[frozenset[str] | None, frozenset[tuple[str, str]], object]:
        """The namespaces, the selectors and the shard that are read; ``None`` for all."""
        source = self._source
        if isinstance(source, ScopedSource):
            found = None if self.scopes is None else self.scopes.namespaces
        else:
            found = (name,) if (name := served_namespace(source)) else None
        namespaces = None if found is None else frozenset(found)
        return namespaces, frozenset(filter(any, self._selectors)), self._shard

    def add_namespace(self, namespace: str, scope: Scope | None) -> None:
        """Read one more namespace, with the selectors of the informer without a ``scope``."""
        # Imported here, since only informers of several namespaces have scopes.
        from aioinformer.namespaces.state.scopes import Scope, check_namespace, check_scope

        scopes = self.changeable_scopes()
        chosen = check_scope(Scope() if scope is None else scope)
        for guard in self._guards:
            guard.check(_departure([(chosen.label_selector, chosen.field_selector)]))
        scopes.add(check_namespace(namespace), chosen)

    def changeable_scopes(self) -> ScopeSet:
        """Return the namespaces for a change. Raises ``NotRunning`` after the end, and
        ``UsageError`` for an informer that has one scope or follows namespaces.
        """
        if self._task_group.is_ending():
            raise NotRunning(f"the informer of {self.name} has ended")
        self.listeners.check_loop()
        if self.scopes is None:
            raise UsageError(
                f"the informer of {self.name} was made without namespaces=, and can't change what "
                "it reads; request one with namespaces=[...]"
            )
        self.scopes.check_changeable()
        return self.scopes

    async def verify(self, *, contents: bool, repair: bool, timeout: float | None) -> Verification:
        """Compare the cache with the server; raise ``CacheWaitTimeout`` after ``timeout``."""
        if not self.indexer.state.synced:
            raise NotSynced("there is nothing to verify before the initial list is complete")
        return await self.reader.run_with_timeout(
            timeout,
            lambda: "a state that the server has confirmed",
            lambda: self.compare(contents=contents, repair=repair),
        )

    async def compare(self, *, contents: bool, repair: bool) -> Verification:
        """Compare the cache with the server, and record the number of differences."""
        from aioinformer.verification.state.verification import Verification
        from aioinformer.verification.verifier import verify

        results = [
            await verify(
                part,
                self.pump.waiters,
                contents=contents,
                managed_fields=self._managed_fields,
                converter=self._converter,
                repair=self._queue.put if repair else None,
            )
            for part in self._reflectors.parts()
        ]
        result = Verification.merge([each for each in results if each is not None])
        self.reporter.status.record_comparison(len(result.differences), result.repaired)
        return result

    # -- running ---------------------------------------------------------------------------------

    async def run(self, on_fatal: Callable[[Exception], None] | None) -> None:
        """Run the tasks until cancelled; see ``SharedInformer.run``."""
        if self._task_group.entered:
            raise UsageError(f"the informer of {self.name} was started before; make another one")
        own_loop()  # raises under another library than asyncio
        self._on_fatal, self._task_group.on_fatal = on_fatal, self._record_fatal
        self.status.start()
        failure: BaseException | None = None
        reporter = self.reporter
        reporter.metrics.informer_started(reporter.label, self.status.levels)
        try:
            with self._stack_log():
                await self._run_tasks()
        except (asyncio.CancelledError, BaseExceptionGroup):
            failure = self._task_group.failure
            if failure is None:
                reporter.status.set_state("stopped")
                raise
        finally:
            if self.checkpointer is not None:
                await self.checkpointer.close()
            self._close()
        try:
            # Not in the handler above: the exception group would become the context of its own
            # exception.
            if failure is not None:
                raise failure from failure.__cause__
        finally:
            del failure  # the traceback refers to this frame

    def _stack_log(self) -> AbstractContextManager[None]:
        if not self._logs_stacks:
            return nullcontext()
        from aioinformer._runtime.tasks.blocking_stacks import log_stacks

        return log_stacks()

    def _close(self) -> None:
        """End the parts, and release what would keep the cache: tracebacks, tasks and callbacks."""
        reporter = self.reporter
        self.pump.end()
        reporter.close()
        reporter.metrics.informer_ended(reporter.label, self.status.levels)
        self._reflectors.close()
        self._task_group.forget_failure()
        self._on_fatal = None

    async def _run_tasks(self) -> None:
        async with self._task_group as tasks:
            self.listeners.start_all()
            if self.scopes is not None:  # the reflectors have statuses of their own
                self.reporter.start(asyncio.get_running_loop().time)
            self._reflectors.start(tasks)
            tasks.start(self.pump.run(), name=f"pump of {self.name}")
            if self.checkpointer is not None:
                tasks.start(self.checkpointer.run(), name=f"cache file of {self.name}")

    def _record_fatal(self, error: BaseException) -> None:
        """Report the error that ends the informer; called by the task group at once."""
        status = self.reporter.status
        status.set_state("failed")
        # An error of the library needs no traceback, and is raised to the informer's owner as well.
        trace = None if isinstance(error, InformerError) else error
        why = f": {describe_error(error)}" if trace is None else ""
        log.critical("the informer of %s failed%s", self.name, why, exc_info=trace)
        if isinstance(error, Exception):
            status.record_error(error)
            if self._on_fatal is not None:
                self._on_fatal(error)

    def __repr__(self) -> str:
        return f"<InformerPipeline of {self.name}>"


def _describe_shard(shard: Shard | ShardAssignment | None) -> str:
    group = group_of(shard)
    return (
        str(shard) if group is None else f"group {group.name}: {group.count} shards by {group.by}"
    )


def _report_dropped(guards: Iterable[DepartureGuard], obj: KubeObject) -> None:
    for guard in guards:
        guard.dropped(obj)


def _departure(selectors: Iterable[tuple[str, str]]) -> str:
    for labels, fields in selectors:
        if labels:
            return f"the label selector {labels}"
        from aioinformer._core.selectors.parsed_selectors import selects_for_good  # rarely needed

        if fields and not selects_for_good(fields):
            return f"the field selector {fields}"
    return ""
