"""The pipeline of one informer: its parts, connected, and run in one task group.

Reflector ──▶ DeltaQueue ──▶ Pump ──▶ Indexer ◀── Lister, CacheReader
                              └─────▶ ListenerRegistry ──▶ handlers, streams
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Generic

from typing_extensions import TypeVar

from aioinformer._core.cache.indexer import Indexer
from aioinformer._core.cache.store import Indexers, check_indexers
from aioinformer._core.callables import weak_call
from aioinformer._core.codec.shape import Shape
from aioinformer._core.listwatch.server_profile import ServerProfile
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.object_key import ObjectFilter
from aioinformer._core.objects.resources import Resource
from aioinformer._runtime.delivery.registration import Registration
from aioinformer._runtime.informer.cache_reader import CacheReader
from aioinformer._runtime.informer.feature import (
    DepartureGuard,
    Feature,
    InformerParts,
    MakeReflectors,
    Selection,
)
from aioinformer._runtime.informer.listener_registry import ListenerRegistry
from aioinformer._runtime.informer.options import PipelineOptions
from aioinformer._runtime.informer.pump import Pump
from aioinformer._runtime.informer.reflector_builder import ReflectorBuilder, Select
from aioinformer._runtime.informer.reflectors import (
    Reflectors,
    RunReflector,
    SingleReflector,
    run_reflector,
)
from aioinformer._runtime.informer.status import InformerStatus
from aioinformer._runtime.reflector.delta_queue import DeltaQueue, EntryQueue
from aioinformer._runtime.reflector.lister_watcher import (
    ListerWatcher,
    NamesSelectors,
    served_namespace,
)
from aioinformer._runtime.reporting.error_texts import describe_error
from aioinformer._runtime.reporting.reporter import InformerReporter
from aioinformer._runtime.tasks.event_loop import own_loop
from aioinformer._runtime.tasks.task_group import StrictTaskGroup
from aioinformer.errors import InformerError, NotRunning, UsageError

if TYPE_CHECKING:  # for types alone
    from aioinformer._core.cache.protocols import ObjectCache

log = logging.getLogger("aioinformer.informer")

T = TypeVar("T", default=KubeObject)
P = TypeVar("P")


class InformerPipeline(Generic[T]):
    """The parts of one informer. A pipeline runs once."""

    def __init__(
        self,
        source: ListerWatcher,
        shape: Shape[T],
        reporter: InformerReporter,
        options: PipelineOptions,
        *,
        namespace: str | None,
        indexers: Indexers[T] | None,
        managed_fields: bool,
        profile: ServerProfile | None,
        features: Iterable[Feature] = (),
    ) -> None:
        """Make and connect the parts. ``SharedInformer`` documents the arguments."""
        self.name = reporter.informer
        self.reporter = reporter
        self.features = list(features)
        self._source = source
        self._guards: dict[DepartureGuard, None] = {}
        self.indexer = _make_cache(self.features, indexers, shape)
        # Without known keys: while a list is being staged, the queue can't know which objects will
        # be cached. The indexer ignores deletions of objects that it doesn't hold.
        self.queue = DeltaQueue()
        self.pump = Pump(
            self.name,
            self.queue,
            self.indexer,
            namespace=namespace,
            observers=_overriding(self.features, "record", "record_list", "prepare_removal"),
            on_rejected=reporter.object_rejected,
        )
        self.builder = ReflectorBuilder(
            options=options,
            reporter=reporter,
            deduplicate=self.indexer.deduplicate,
            converter=shape.converter(partial(_report_dropped, self._guards)),
            metadata_only=shape.metadata_only,
            managed_fields=managed_fields,
            profile=profile,
            select=_selector(self.features),
        )
        self.reflectors = self._attach_features(shape)
        registrations: dict[Registration, None] = {}
        self.status = InformerStatus(
            reporter,
            self.queue,
            self.indexer,
            self.pump,
            self.reflectors,
            registrations,
            self.features,
        )
        self._logs_stacks = options.report_blocking == "stack"
        self._on_fatal: Callable[[Exception], None] | None = None
        self._task_group = StrictTaskGroup("informer", weak_call(self._record_fatal))
        self.listeners = self._make_registry(options, registrations)
        self.reader = self._make_reader(namespace)

    def _make_registry(
        self, options: PipelineOptions, registrations: dict[Registration, None]
    ) -> ListenerRegistry[T]:
        return ListenerRegistry(
            self.name,
            self.pump,
            self.indexer,
            self.reporter,
            self._task_group,
            registrations,
            resync=options.resync,
            report_blocking=bool(options.report_blocking),
            describe=self.status.weak_describe(),
        )

    def _make_reader(self, namespace: str | None) -> CacheReader[T]:
        return CacheReader(
            self.name,
            self._source.resource,
            self.indexer,
            self.pump,
            self.listeners,
            namespace=namespace,
            describe=self.status.weak_describe(),
            find_reflector=self.reflectors.find,
        )

    def _attach_features(self, shape: Shape[T]) -> Reflectors:
        make: MakeReflectors = self._make_single
        if self.features:
            parts = InformerParts(
                name=self.name,
                source=self._source,
                shape=shape,
                queue=self.queue,
                cache=self.indexer,
                builder=self.builder,
                update_synced=self.pump.update_synced,
                guards=self._guards,
                features=tuple(self.features),
            )
            for feature in self.features:
                feature.attach(parts)
            for feature in self.features:
                make = feature.wrap_reflectors(make, parts)
        return make(run_reflector)

    def _make_single(self, run: RunReflector) -> Reflectors:
        if not isinstance(self.indexer, Indexer):
            raise AssertionError("a feature that makes the cache makes the reflectors, too")
        reflector = self.builder.make(self._source, self.queue)
        return SingleReflector(self.name, reflector, self.queue, self.indexer, run)

    def exclusion(self, obj: KubeObject) -> str:
        """Return what certainly keeps an object of the server out of the cache; empty if nothing
        does.
        """
        for feature in self.features:
            if why := feature.exclusion(obj):
                return why
        reflector = self.reflectors.find(obj.key.namespace)
        if reflector is None:
            return ""
        source = reflector.source
        if served_namespace(source) not in (None, obj.key.namespace):
            return f"namespace {obj.key.namespace}"
        if not isinstance(source, NamesSelectors):
            return ""
        from aioinformer._core.cache.query import Query  # for controllers that write

        chosen = source.selectors
        labels, fields = chosen.get("labelSelector", ""), chosen.get("fieldSelector", "")
        if obj.api_version != source.resource.api_version:  # which may have other fields
            fields = ""
        return Query.of(labels=labels, fields=fields).excludes(obj)

    @property
    def selection(self) -> Selection:
        """The objects that are read."""
        source = self._source
        chosen: Mapping[str, str] = source.selectors if isinstance(source, NamesSelectors) else {}
        selectors = (chosen.get("labelSelector", ""), chosen.get("fieldSelector", ""))
        namespace = served_namespace(source)
        selection = Selection(
            None if namespace is None else frozenset((namespace,)),
            frozenset((selectors,) if any(selectors) else ()),
        )
        for feature in self.features:
            selection = feature.narrow(selection)
        return selection

    def add_guard(self, guard: DepartureGuard) -> None:
        """See ``SharedInformer``."""
        found = [each.departure for each in self.features]
        guard.check(next(filter(None, found), "") or departure_from(self.selection.selectors))
        self._guards.setdefault(guard)

    def check_running(self) -> None:
        """Raise ``NotRunning`` after the end, and ``UsageError`` in another event loop."""
        if self._task_group.is_ending():
            raise NotRunning(f"the informer of {self.name} has ended")
        self.listeners.check_loop()

    # -- running ---------------------------------------------------------------------------------

    async def run(self, on_fatal: Callable[[Exception], None] | None) -> None:
        """Run the tasks until cancelled; see ``SharedInformer.run``."""
        if self._task_group.entered:
            raise UsageError(f"the informer of {self.name} was started before; make another one")
        own_loop()  # raises under another library than asyncio
        self._on_fatal = on_fatal
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
            try:
                async with AsyncExitStack() as closing:  # which goes on if one of them raises
                    for feature in self.features:
                        closing.push_async_callback(feature.close)
            finally:
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
        self.reflectors.close()
        self._task_group.forget_failure()
        self._on_fatal = None

    async def _run_tasks(self) -> None:
        async with self._task_group as tasks:
            self.listeners.start_all()
            for feature in self.features:
                feature.start(tasks)
            self.reflectors.start(tasks)
            tasks.start(self.pump.run(), name=f"pump of {self.name}")

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


def _make_cache(
    features: Iterable[Feature], indexers: Indexers[Any] | None, shape: Shape[Any]
) -> ObjectCache:
    found, view = check_indexers(indexers), shape.view()
    made = [(each, each.make_cache(found, view)) for each in features]
    return _only("make a cache", made) or Indexer(found, view=view)


def _overriding(features: Iterable[Feature], *methods: str) -> list[Feature]:
    """Return the features that override one of the methods."""
    return [
        each
        for each in features
        if any(getattr(type(each), name) is not getattr(Feature, name) for name in methods)
    ]


def _selector(features: Iterable[Feature]) -> Select:
    # Without the other features: one of them may keep the builder of reflectors, which keeps this.
    choosing = _overriding(features, "select")

    def select(resource: Resource, queue: EntryQueue) -> tuple[EntryQueue, ObjectFilter | None]:
        found: list[tuple[Feature, ObjectFilter | None]] = []
        for feature in choosing:
            queue, chosen = feature.select(resource, queue)
            found.append((feature, chosen))
        return queue, _only("select objects", found)

    return select


def _only(what: str, found: Iterable[tuple[Feature, P | None]]) -> P | None:
    """Return what one feature has made; raise ``UsageError`` if several have."""
    made = [(feature, part) for feature, part in found if part is not None]
    if len(made) > 1:
        names = " and ".join(type(feature).__name__ for feature, _ in made)
        raise UsageError(
            f"{names} {what}, which only one feature of an informer can; leave one out"
        )
    return made[0][1] if made else None


def _report_dropped(guards: Iterable[DepartureGuard], obj: KubeObject) -> None:
    for guard in guards:
        guard.dropped(obj)


def departure_from(selectors: Iterable[tuple[str, str]]) -> str:
    """Return the first of these selectors that an object may leave, as text; empty for none."""
    for labels, fields in sorted(selectors):
        if labels:
            return f"the label selector {labels}"
        from aioinformer._core.selectors.parsed_selectors import selects_for_good  # rarely needed

        if fields and not selects_for_good(fields):
            return f"the field selector {fields}"
    return ""
